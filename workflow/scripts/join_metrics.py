"""Join the metrics of a study's models in one table, after a check that none of them is cut off.

python workflow/scripts/join_metrics.py <study> <output.csv> results/<study>/metrics/<model>.csv ...
"""

import sys
from pathlib import Path

from dpmc.common.errors import DpmcError
from dpmc.common.files import replacing
from dpmc.studies import load_study, whole

study, output, *files = load_study(sys.argv[1]), *map(Path, sys.argv[2:])
try:
    whole.read_whole(study, *files)
except DpmcError as error:
    sys.exit(f"dpmc: error: {error}")
tables = [file.read_text(encoding="utf-8").splitlines(keepends=True) for file in files]
with replacing(output) as temporary:
    lines = [*tables[0][:1], *(line for table in tables for line in table[1:])]
    temporary.write_text("".join(lines), encoding="utf-8")
