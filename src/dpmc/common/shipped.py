"""Paths of the files that come with dpmc: its studies, published tables and workflow."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


def shipped(*parts: str) -> Path:
    """Return the path of what comes with dpmc, in a wheel or a clone: `shipped("config", "studies")`."""
    packed = PACKAGE / "shipped_files"
    return (packed if packed.is_dir() else PACKAGE.parent.parent).joinpath(*parts)
