"""`python tests/fuzz`: run inputs, print those that went wrong and counts per category."""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from fuzz import plan


def main() -> int:
    """Run the inputs that the command line selects; return 1 if something went wrong."""
    parser = argparse.ArgumentParser(prog="python tests/fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--input", type=int, help="one input, and all that is known of it")
    parser.add_argument("--keep", type=Path, help="leave the input's files in this new folder")
    options = parser.parse_args()
    inputs = range(options.first, options.first + options.count) if options.input is None else [options.input]
    verdicts = []
    with tempfile.TemporaryDirectory() as place:
        for index in inputs:
            folder = options.keep if options.keep and options.input is not None else Path(place, "input")
            verdict = plan.check(options.seed, index, folder)
            verdicts.append(verdict)
            if verdict.faults or options.input is not None:
                print(verdict, flush=True)
            if options.input is not None:
                print(f"exit code {verdict.ended.code}\n{verdict.ended.errors}{verdict.ended.printed}")
            if folder != options.keep:
                shutil.rmtree(folder)
    print(plan.table(verdicts))
    return int(any(verdict.faults for verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main())
