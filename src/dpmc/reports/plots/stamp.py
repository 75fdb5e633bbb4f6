"""A stamp in a PNG: the digest of the files from which the picture was drawn.

With it a copy of a picture, for example in a gallery, can be compared with the current results.
"""

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from dpmc.common.errors import DpmcError

CREATOR = "dpmc"  #: in the metadata of every figure
KEY = "dpmc-inputs"  #: of the stamp in a PNG's metadata


def digest_of_files(files: Iterable[Path]) -> str:
    """Return a digest of the contents of files, whatever their names and order."""
    try:
        each = sorted(hashlib.sha256(path.read_bytes()).digest() for path in files)
    except FileNotFoundError as error:
        raise DpmcError(f"{error.filename}: no such file") from None
    return hashlib.sha256(b"".join(each)).hexdigest()


def read_stamp(picture: Path) -> str:
    """Return the stamp of a PNG; "" if it has none."""
    stamp = re.search(rb"tEXt" + KEY.encode() + rb"\0([0-9a-f]{64})", picture.read_bytes())
    return stamp[1].decode() if stamp else ""
