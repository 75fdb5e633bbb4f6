"""The command `dpmc`, also as `python -m dpmc`."""

import gc
import sys
from collections.abc import Sequence

from dpmc.cli.main import main as run_command


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, by default from `sys.argv`; return its exit code."""
    status = run_command(arguments)
    gc.freeze()  # without it the final garbage collection visits every object, which takes 0.3 s
    return status


if __name__ == "__main__":
    sys.exit(main())
