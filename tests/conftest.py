"""Make shared test modules importable, e.g. `from kernels import ladder`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
