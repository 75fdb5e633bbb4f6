"""The command `dpmc`, also as `python -m dpmc`."""

import sys

from dpmc.cli import main

if __name__ == "__main__":
    sys.exit(main())
