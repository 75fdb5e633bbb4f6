"""The command `dpmc`, also as `python -m dpmc`."""

import gc
import sys

from dpmc import cli


def main() -> int:
    """Run one command; return its exit code."""
    status = cli.main()
    gc.freeze()  # the interpreter's last collection would look at every object: 0.3 s of each process
    return status


if __name__ == "__main__":
    sys.exit(main())
