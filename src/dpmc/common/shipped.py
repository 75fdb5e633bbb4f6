"""Paths of the files that come with dpmc: its studies, published tables and workflow."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


def shipped(*parts: str) -> Path:
    """Return the path of a file or folder that comes with dpmc, for example `shipped("config", "studies")`.

    They are in `dpmc/shipped_files` of an installed wheel, and in the root of a clone.
    """
    packed = PACKAGE / "shipped_files"
    return (packed if packed.is_dir() else PACKAGE.parent.parent).joinpath(*parts)
