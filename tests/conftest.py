"""Make shared test modules and docs/tools importable, e.g. `from kernels import ladder`."""

import sys
from pathlib import Path

TESTS = Path(__file__).parent
sys.path[:0] = [str(TESTS), str(TESTS.parent / "docs" / "tools")]
