"""IDX files, the format of the MNIST family: a header of big-endian numbers, then an array.

Bytes 0 and 1 are zero, byte 2 is the type of the values, byte 3 the number of dimensions; each dimension
follows as four bytes, then the values, the last dimension fastest.
"""

import gzip
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmc.common.errors import DpmcError

TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
GZIP_MAGIC = b"\x1f\x8b"


def content(path: Path) -> bytes:
    """Return the bytes of a file, unpacked if they are gzip data, for any file name.

    Raises DpmcError for truncated or broken gzip data.
    """
    raw = path.read_bytes()
    try:
        return gzip.decompress(raw) if raw.startswith(GZIP_MAGIC) else raw
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DpmcError(f"{path}: is cut off or broken as a gzip file ({error})") from None


def parse(raw: bytes, source: str) -> npt.NDArray[Any]:
    """Return the array of an IDX file's bytes.

    Raises DpmcError, naming `source`, for bytes that are not an IDX file or have the wrong length.
    """
    if len(raw) < 4 or raw[:2] != b"\0\0" or raw[2] not in TYPES or raw[3] == 0:
        raise DpmcError(f"{source}: is no IDX file: begins with {raw[:4].hex() or 'nothing'}")
    kind, start = np.dtype(TYPES[raw[2]]), 4 + 4 * raw[3]
    if len(raw) < start:
        raise DpmcError(f"{source}: is cut off: {len(raw)} bytes do not hold its header of {start}")
    shape = tuple(int(size) for size in np.frombuffer(raw, ">u4", raw[3], 4))
    wanted = start + kind.itemsize * int(np.prod(shape, dtype=object))
    if len(raw) != wanted:
        what = "is cut off" if len(raw) < wanted else "goes on after its end"
        raise DpmcError(f"{source}: {what}: {len(raw)} bytes, an array of {shape} needs {wanted}")
    return np.frombuffer(raw, kind, offset=start).reshape(shape)


def dump(array: npt.NDArray[np.uint8]) -> bytes:
    """Return the bytes of the IDX file of an array of unsigned bytes."""
    header = bytes([0, 0, 0x08, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    return header + np.ascontiguousarray(array, np.uint8).tobytes()
