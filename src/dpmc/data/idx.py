"""IDX files of bytes, the format of the MNIST family: a header of big-endian numbers, then an array.

Bytes 0 to 2 are 0, 0 and 8, for unsigned bytes; byte 3 is the number of dimensions; each dimension follows as
four bytes, then the values, the last dimension fastest.
"""

import gzip
import math
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dpmc.common.errors import DpmcError

Bytes = npt.NDArray[np.uint8]
GZIP_MAGIC, IDX_MAGIC = b"\x1f\x8b", b"\0\0\x08"


def content(path: Path) -> bytes:
    """Return a file's bytes, unpacked if they are gzip data; raise DpmcError if these are broken."""
    raw = path.read_bytes()
    try:
        return gzip.decompress(raw) if raw.startswith(GZIP_MAGIC) else raw
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DpmcError(f"{path}: is cut off or broken as a gzip file ({error})") from None


def parse(raw: bytes, source: str) -> Bytes:
    """Return the array of an IDX file's bytes, in its shape; raise DpmcError, naming `source`, for others."""
    if not raw.startswith(IDX_MAGIC) or raw[3:4] in (b"", b"\0"):
        raise DpmcError(f"{source}: is no IDX file of bytes: begins with {raw[:4].hex() or 'nothing'}")
    start = 4 + 4 * raw[3]
    if len(raw) < start:
        raise DpmcError(f"{source}: is cut off: {len(raw)} bytes do not hold its header of {start}")
    # Python's whole numbers: the product of a damaged header could overflow NumPy's.
    shape = tuple(np.frombuffer(raw, ">u4", raw[3], 4).tolist())
    wanted = start + math.prod(shape)
    if len(raw) != wanted:
        what = "is cut off" if len(raw) < wanted else "goes on after its end"
        raise DpmcError(f"{source}: {what}: {len(raw)} bytes, an array of {shape} needs {wanted}")
    return np.frombuffer(raw, np.uint8, offset=start).reshape(shape)


def dump(array: Bytes) -> bytes:
    """Return the bytes of the IDX file of unsigned bytes of any shape."""
    header = IDX_MAGIC + bytes([array.ndim]) + np.array(array.shape, ">u4").tobytes()
    return header + np.ascontiguousarray(array, np.uint8).tobytes()
