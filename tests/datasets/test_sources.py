"""Sources of image data: each place that is searched, checksums, and the message if there are none."""

import hashlib
import os
from pathlib import Path

import fetch_images
import numpy as np
import pytest

from datasets import images as tiny
from dpmc.common.errors import DpmcError
from dpmc.data import idx, sources

FILES = tiny.pictures(train=40, test=20)
FOLDER = "usr/share/datasets/tiny"
PACKAGE = tiny.deb(FOLDER, FILES)


def source() -> sources.Source:
    """A source like that of Fashion-MNIST, with tiny files."""
    return sources.Source(
        name="tiny",
        what="Tiny pictures",
        files={name: hashlib.sha256(raw).hexdigest() for name, raw in FILES.items()},
        command=("get-tiny", "download", "tiny=1"),
        before="get-tiny update",
        archive={
            "kind": "debian",
            "name": "tiny_1_all.deb",
            "size": len(PACKAGE),
            "sha256": hashlib.sha256(PACKAGE).hexdigest(),
            "folder": FOLDER,
        },
    )


@pytest.fixture
def client(tmp_path, monkeypatch) -> Path:
    """A folder at the front of PATH, for a package client of the test's own."""
    folder = tmp_path / "bin"
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")
    return folder


def downloads(client: Path, package: Path) -> None:
    """A client that copies a file, as one that downloads it, and writes its arguments beside itself."""
    tiny.program(client, "get-tiny", f'echo "$@" >> {client}/called; cp {package} ./tiny_1_all.deb')


def refused(wanted: sources.Source, root: Path) -> str:
    with pytest.raises(DpmcError) as caught:
        fetch_images.fetch(wanted, root)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_package_client_downloads_once(tmp_path, client):
    (tmp_path / "package").write_bytes(PACKAGE)
    downloads(client, tmp_path / "package")
    lines = fetch_images.fetch(source(), tmp_path / "d")
    assert lines == "".join(f"{hashlib.sha256(raw).hexdigest()}  {name}\n" for name, raw in FILES.items())
    assert (client / "called").read_text() == "download tiny=1\n"
    assert sources.unpacked_files(source(), tmp_path / "d") == FILES
    assert fetch_images.fetch(source(), tmp_path / "d") == lines
    assert (client / "called").read_text() == "download tiny=1\n"
    assert sorted(path.name for path in (tmp_path / "d/tiny").iterdir()) == sorted(f"{n}.gz" for n in FILES)


def test_an_archive_put_there_by_hand_needs_no_client(tmp_path, client):
    (tmp_path / "d").mkdir()
    (tmp_path / "d/tiny_1_all.deb").write_bytes(PACKAGE)
    fetch_images.fetch(source(), tmp_path / "d")
    assert sources.unpacked_files(source(), tmp_path / "d") == FILES


@pytest.mark.parametrize(("ending", "dot"), [("", False), (".gz", True)])
def test_files_put_there_by_hand(tmp_path, client, ending, dot):
    names = {name.replace("-idx", ".idx") if dot else name: raw for name, raw in FILES.items()}
    tiny.put(tmp_path / "d/tiny", names, ending)
    fetch_images.fetch(source(), tmp_path / "d")
    assert sources.unpacked_files(source(), tmp_path / "d") == FILES


def test_a_source_found_nowhere_is_reported_with_places_and_remedies(tmp_path, client):
    root = tmp_path / "d"
    assert sources.why_unavailable(source(), root) is None  # not asked for yet
    said = refused(source(), root)
    places = (f"{root}/tiny has no", f"no {root}/tiny_1_all.deb", "'get-tiny'")
    assert all(words in said for words in (*places, f"remove {root}/tiny.missing and run again"))
    assert (root / "tiny.missing").read_text().strip() in said
    assert str(root / "tiny.missing") in str(sources.why_unavailable(source(), root))


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo 'E: no package' >&2; exit 100", "failed with status 100: E: no package"),
        ("exit 0", "No such file or directory"),
        ("exec sleep 60", "timed out after 0.3 seconds"),
    ],
)
def test_a_client_that_fails_is_reported(tmp_path, client, monkeypatch, script, words):
    if "sleep" in script:
        monkeypatch.setattr(fetch_images, "CLIENT_SECONDS", 0.3)
    tiny.program(client, "get-tiny", script)
    assert words in refused(source(), tmp_path / "d")


def test_a_download_with_another_checksum_is_not_opened(tmp_path, client):
    (tmp_path / "package").write_bytes(PACKAGE + b"\n")
    downloads(client, tmp_path / "package")
    said = refused(source(), tmp_path / "d")
    assert hashlib.sha256(PACKAGE + b"\n").hexdigest() in said and hashlib.sha256(PACKAGE).hexdigest() in said
    assert list((tmp_path / "d/tiny").iterdir()) == []


def test_a_wrong_file_put_there_by_hand_is_refused_and_kept(tmp_path, client):
    wrong = {**FILES, "t10k-labels-idx1-ubyte": idx.dump(np.zeros(20, np.uint8))}
    tiny.put(tmp_path / "d/tiny", wrong)
    said = refused(source(), tmp_path / "d")
    assert "t10k-labels-idx1-ubyte.gz: is not the file that is wanted" in said
    assert (tmp_path / "d/tiny/t10k-labels-idx1-ubyte.gz").exists()
    assert sources.why_unavailable(source(), tmp_path / "d") is not None


def test_a_failed_source_is_missing_until_the_mark_is_removed(tmp_path, client):
    root = tmp_path / "d"
    refused(source(), root)
    assert sources.why_unavailable(source(), root)
    (root / "tiny.missing").unlink()
    assert sources.why_unavailable(source(), root) is None
    refused(source(), root)
    tiny.put(root / "tiny", FILES)
    fetch_images.fetch(source(), root)
    assert not (root / "tiny.missing").exists()


def test_digits_of_the_npm_package_become_idx_files():
    generator = np.random.default_rng(7)
    digits = [generator.integers(0, 256, (2 + k % 3, 28, 28), dtype=np.uint8) for k in range(10)]
    digits[0][0] = np.arange(784).reshape(28, 28) % 256  # every value of a pixel
    files = fetch_images.npm_digits(tiny.npm("src/digits", digits), "src/digits", ["images", "labels"])
    np.testing.assert_array_equal(idx.parse(files["images"], "images"), np.concatenate(digits))
    labels = idx.parse(files["labels"], "labels")
    assert labels.tolist() == [digit for digit in range(10) for _ in digits[digit]]
