"""Draw the figure of the results of all searches of a study.

python workflow/scripts/lessons.py <study> <output.png> results/<study>/search/<model>/<method>.yaml ...
"""

import sys
from pathlib import Path

from dpmc.reports.plots import lessons, style
from dpmc.studies import load_study, read_yaml

study, output, *files = sys.argv[1:]
results = [read_yaml(Path(name)) for name in files]
style.save(lessons.draw(results, load_study(study)), Path(output))
