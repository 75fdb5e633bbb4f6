"""Make shared test modules and the scripts of pages and workflow importable: `from kernels import ladder`."""

import sys
from pathlib import Path

TESTS = Path(__file__).parent
sys.path[:0] = [str(TESTS), *(str(TESTS.parent / place) for place in ("docs/tools", "workflow/scripts"))]
