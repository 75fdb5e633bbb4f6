"""Files written beside their final name."""

import os
import threading
import time
from pathlib import Path

import pytest
import xarray

from dpmc.common import files
from dpmc.common.errors import DpmcError


def test_a_file_of_the_longest_name_is_written_and_locked(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 255)
    for text in ("one", "two"):
        with files.replacing(path) as temporary:
            temporary.write_text(text)
        assert path.read_text() == text
    with pytest.raises(DpmcError, match=r"cannot be written \(File name too long\)"):
        files.lock_of(tmp_path / ("x" * 256))
    files.file_named_as(path, ".partial").touch()
    assert files.file_named_as(path, ".partial") != files.file_named_as(path.with_name("x" * 254), ".partial")
    assert files.file_named_as(tmp_path / "r.nc", ".partial") == tmp_path / "r.nc.partial"
    files.file_named_as(path, ".partial").unlink()
    with files.alone(files.lock_of(path), "waiting"):
        assert len(os.listdir(tmp_path)) == 2
    assert os.listdir(tmp_path) == [path.name]
    with (
        pytest.raises(DpmcError, match=r"cannot be written \(File name too long\)"),
        files.replacing(tmp_path / ("x" * 256)),
    ):
        pass


def test_another_writer_of_the_same_file_is_left_in_peace(tmp_path: Path) -> None:
    path = tmp_path / "result"
    with files.replacing(path) as one:
        one.write_text("one")
        with files.replacing(path) as other:
            other.write_text("other")
        assert path.read_text() == "other"
    assert path.read_text() == "one" and os.listdir(tmp_path) == ["result"]


def test_threads_write_the_same_file(tmp_path: Path) -> None:
    path, errors = tmp_path / "result", []

    def write(text: str) -> None:
        try:
            for _ in range(50):
                with files.replacing(path) as temporary:
                    temporary.write_text(text)
        except DpmcError as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(letter * 1000,)) for letter in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and os.listdir(tmp_path) == ["result"] and len(set(path.read_text())) == 1


@pytest.mark.parametrize("name", ["result", "x" * 255])
def test_what_a_killed_process_left_is_removed_after_a_day(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    left = [tmp_path / f".{digit * 16}.tmp" for digit in "12"]
    others = [".result.tmp", ".1.tmp", ".other.1111111111111111.tmp", "1111111111111111.tmp"]
    for file in (*left, *(tmp_path / other for other in others)):
        file.touch()
        os.utime(file, (0, 0))
    os.utime(left[1])
    with files.replacing(path) as temporary:
        temporary.touch()
    assert sorted(os.listdir(tmp_path)) == sorted([name, left[1].name, *others])


def test_a_process_killed_while_it_tries_an_output_leaves_nothing_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Path, "unlink", killed)
        files.require_writable(tmp_path / "release.nc")
    assert not (tmp_path / "release.nc").exists()


def test_an_error_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "result"
    path.write_text("old")
    for error in (ValueError("own"), OSError(28, "No space left on device", str(path) + "?")):
        with pytest.raises(type(error)), files.replacing(path) as temporary:
            temporary.write_text("new")
            raise error
    full = pytest.raises(DpmcError, match=r"result: cannot be written \(No space left on device\)")
    with full, files.replacing(path) as temporary:
        temporary.write_text("new")
        raise OSError(28, "No space left on device")
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["result"]


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a folder that takes no file")
@pytest.mark.parametrize("path", ["x.nc", "/proc/x.nc"])
def test_a_netcdf_file_that_cannot_be_written_is_an_error_of_one_line(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/proc")  # xarray makes relative paths absolute before it fails
    with pytest.raises(DpmcError, match=rf"^{path}: cannot be written"):
        files.write_netcdf(Path(path), xarray.Dataset({"a": 1.0}), {})


def test_a_folder_that_cannot_be_made_is_an_error_of_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "link")
    for folder, words in {
        "file": "exists|Not a directory",
        "link": "exists|symbolic links",
        "y" * 300: "too long",
    }.items():
        for place in (tmp_path / folder / "result", tmp_path / folder / "deep" / "result"):
            for enter in (files.replacing, lambda path: files.alone(path, "waiting")):
                refused = pytest.raises(DpmcError, match=rf"result: cannot be written \(.*({words})")
                with refused, enter(place):
                    pass
    with files.replacing(tmp_path / "new" / "deep" / "result") as temporary:
        temporary.touch()
    with pytest.raises(DpmcError, match="new: is a folder"), files.replacing(tmp_path / "new"):
        pass
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DpmcError, match="pipe: is a folder or a device"), files.replacing(tmp_path / "pipe"):
        pass


@pytest.mark.parametrize("required", [True, False], ids=["of a release", "of a job"])
def test_who_waits_for_a_lock_that_is_removed_takes_the_new_one(required: bool, tmp_path: Path) -> None:
    """Eight threads enter three times each, and find no file or a removed one: one at a time is inside."""
    lock, inside, most = tmp_path / ".x.lock", [0], [0]

    def enter() -> None:
        for _ in range(3):
            with files.alone(lock, "waiting", required):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                time.sleep(0.005)
                inside[0] -= 1

    threads = [threading.Thread(target=enter) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] and not lock.exists()
