"""IDX files: contents, plain and packed, and each kind of broken file."""

import gzip

import numpy as np
import pytest

from dpmc.common.errors import DpmcError
from dpmc.data import idx

IMAGES = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)


def read(path):
    return idx.parse(idx.content(path), str(path))


def test_a_file_written_by_hand_is_parsed():
    raw = bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 255])
    assert idx.parse(raw, "x").tolist() == [[1, 2, 3], [4, 5, 255]]
    assert idx.dump(np.array([[1, 2, 3], [4, 5, 255]], np.uint8)) == raw


@pytest.mark.parametrize("pack", [gzip.compress, bytes])
def test_plain_and_packed_files_are_read_under_any_name(tmp_path, pack):
    for name in ("images", "images.gz"):
        (tmp_path / name).write_bytes(pack(idx.dump(IMAGES)))
        np.testing.assert_array_equal(read(tmp_path / name), IMAGES)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "no IDX file of bytes: begins with nothing"),
        (bytes([0, 0, 7, 1, 0, 0, 0, 0]), "no IDX file"),
        (idx.dump(IMAGES)[:9], "cut off: 9 bytes do not hold its header of 16"),
        (idx.dump(IMAGES)[:-1], "is cut off: 39 bytes, an array of (2, 3, 4) needs 40"),
        (idx.dump(IMAGES) + b"!", "goes on after its end: 41 bytes"),
        (gzip.compress(idx.dump(IMAGES), mtime=0)[:-6], "cut off or broken as a gzip file"),
        (gzip.compress(idx.dump(IMAGES), mtime=0)[:10] + b"\xff" * 20, "cut off or broken as a gzip file"),
    ],
)
def test_broken_files_are_refused_by_name(tmp_path, raw, words):
    (tmp_path / "file").write_bytes(raw)
    with pytest.raises(DpmcError) as caught:
        read(tmp_path / "file")
    assert str(tmp_path / "file") in str(caught.value) and words in str(caught.value)
    assert "\n" not in str(caught.value)
