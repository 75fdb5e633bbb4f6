"""IDX files of bytes, the format of the MNIST family: a header of big-endian numbers, then an array.

Bytes 0 to 2 are 0, 0 and 8, for unsigned bytes; byte 3 is the number of dimensions; each dimension follows as
four bytes, then the values, the last dimension fastest.
"""

import gzip
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dpmc.common.errors import DpmcError

Bytes = npt.NDArray[np.uint8]
GZIP_MAGIC, IDX_MAGIC = b"\x1f\x8b", b"\0\0\x08"


def content(path: Path) -> bytes:
    """Return the bytes of a file, unpacked if they are gzip data, for any file name.

    Raises DpmcError for truncated or broken gzip data.
    """
    raw = path.read_bytes()
    try:
        return gzip.decompress(raw) if raw.startswith(GZIP_MAGIC) else raw
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DpmcError(f"{path}: is cut off or broken as a gzip file ({error})") from None


def parse(raw: bytes, source: str) -> Bytes:
    """Return the array of an IDX file's bytes; raise DpmcError, naming `source`, for others."""
    try:
        if not raw.startswith(IDX_MAGIC):
            raise ValueError(f"begins with {raw[:4].hex() or 'nothing'}")
        shape = np.frombuffer(raw, ">u4", raw[3], 4)
        return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(shape)
    except (ValueError, IndexError) as error:
        raise DpmcError(f"{source}: is no IDX file of bytes, or cut off: {error}") from None


def dump(array: Bytes) -> bytes:
    """Return the bytes of the IDX file of an array of unsigned bytes."""
    header = IDX_MAGIC + bytes([array.ndim]) + np.array(array.shape, ">u4").tobytes()
    return header + np.ascontiguousarray(array, np.uint8).tobytes()
