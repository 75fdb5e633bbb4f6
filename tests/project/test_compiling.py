"""If no folder can keep compiled code, numba compiles in memory, and a warning says so."""

from pathlib import Path

from pipeline_copy import run

PROGRAM = """
import importlib.util, sys, warnings
spec = importlib.util.spec_from_file_location("of_ones_own", sys.argv[1])
module = importlib.util.module_from_spec(spec)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    spec.loader.exec_module(module)
print(module.half(3.0), module.double(3.0), sum("NUMBA_CACHE_DIR" in str(w.message) for w in caught))
"""
FUNCTIONS = """
from dpmc.common.compiling import njit
@njit(cache=True)
def half(x):
    return x / 2
@njit(cache=True)
def double(x):
    return 2 * x
"""


def test_compiling_without_a_writable_folder(tmp_path: Path) -> None:
    """Folders below a file cannot be made, not even by root, so numba finds no place for its cache."""
    (tmp_path / "file").write_text("")
    package = tmp_path / "package"
    package.mkdir()
    (package / "functions.py").write_text(FUNCTIONS)
    (package / "__pycache__").write_text("no folder")
    blocked = str(tmp_path / "file" / "below")
    folders = {"HOME": blocked, "XDG_CACHE_HOME": blocked, "NUMBA_CACHE_DIR": ""}
    printed = run(
        tmp_path, "-c", PROGRAM, str(package / "functions.py"), PYTHONDONTWRITEBYTECODE="1", **folders
    )
    assert printed.split() == ["1.5", "6.0", "1"]
