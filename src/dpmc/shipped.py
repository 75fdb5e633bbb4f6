"""Where the files lie that come with the project: its studies, published tables and workflow."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def shipped(*parts: str) -> Path:
    """Return the path of a file or folder that comes with the project, as `shipped("config", "studies")`.

    An installed wheel has them in `dpmc/shipped_files`, a clone in the repository's root.
    """
    packed = PACKAGE / "shipped_files"
    return (packed if packed.is_dir() else PACKAGE.parent.parent).joinpath(*parts)
