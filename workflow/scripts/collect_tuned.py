"""Print the results of a study's searches in the form of config/hyperparameters/<study>.tuned.yaml.

    python workflow/scripts/collect_tuned.py results/<study>/search/<model>/<method>.yaml ... > tuned.yaml

A comment compares each setting with the pinned one, on seeds that no trial used.
"""

import math
import sys
from itertools import groupby
from pathlib import Path

from dpmc.studies import read_yaml

print(
    "# Hyperparameters found by search, on tuning data: `make tune` writes this file anew as\n"
    "# results/<study>/tuned.yaml. Beside each: median MMD there, of this setting and of the pinned one."
)
results = [read_yaml(Path(name)) for name in sys.argv[1:]]
methods = list(dict.fromkeys(result["method"] for result in results))
results.sort(key=lambda result: methods.index(result["method"]))
for method, found in groupby(results, lambda result: result["method"]):
    print(f"\n{method}:")
    for result in found:
        values = ", ".join(f"{key}: {value}" for key, value in result["hyperparameters"].items())
        search = result["search"]
        chosen, pinned = (search[which].get("mmd", math.nan) for which in ("chosen", "pinned"))
        edge = f"; on the edge: {', '.join(search['at_bound'])}" if search["at_bound"] else ""
        print(f"  {result['model']}: {{{values}}}  # {chosen:.3f}, {pinned:.3f}{edge}")
