"""The command `dpmc`, also as `python -m dpmc`."""

import gc
import sys
from collections.abc import Sequence

from dpmc import cli


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, by default that of the command line; return its exit code."""
    status = cli.main(arguments)
    gc.freeze()  # the interpreter's last collection would look at every object: 0.3 s of each process
    return status


if __name__ == "__main__":
    sys.exit(main())
