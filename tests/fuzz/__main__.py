"""`python tests/fuzz SEED INDEX FOLDER`: make one input in a new folder, run it, and print what is known."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from fuzz import plan

seed, index, folder = sys.argv[1:]
verdict = plan.check(int(seed), int(index), Path(folder))
print(verdict, f"exit code {verdict.ended.code}", verdict.ended.errors, verdict.ended.printed, sep="\n")
sys.exit(bool(verdict.faults))
