"""The digest in a figure of the files it was drawn from, and galleries older than their data."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dpmc.reports.plots import figure_files, plot, stamp
from figures.synthetic import EASY, metrics, write_small

ROOT = Path(__file__).parents[2]
MODEL = EASY[0]


def test_the_digest_is_of_contents_alone(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text("1")
    other.write_text("2")
    mark = stamp.digest_of_files([one, other])
    assert mark == stamp.digest_of_files([other, one]) != stamp.digest_of_files([one])
    os.utime(one, (0, 0))
    assert stamp.digest_of_files([shutil.copy(one, tmp_path / "copy"), other]) == mark
    one.write_text("1.0")
    assert stamp.digest_of_files([one, other]) != mark


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study `one`, made-up metrics of it, its figure and a gallery with a copy."""
    monkeypatch.setattr("dpmc.studies.whole.parts", lambda study: [])  # few of the study's cells
    of = write_small(tmp_path)
    for place in ("results/one", "figures/one", "docs/gallery/one"):
        (tmp_path / place).mkdir(parents=True)
    (tmp_path / "results/one/metrics.csv").touch()  # there are results
    read = [tmp_path / f"results/one/metrics/{MODEL}.csv"]
    read[0].parent.mkdir()
    metrics(of).assign(study="one").to_csv(read[0], index=False)
    picture = tmp_path / "figures/one/mmd-easy.png"
    plot("mmd-easy", of, read, [picture, picture.with_suffix(".pdf")], tmp_path / "results")
    files = figure_files("mmd-easy", of, read, tmp_path / "results")
    assert stamp.read_stamp(picture) == stamp.digest_of_files(files) and set(read) < set(files)
    assert stamp.read_stamp(picture.with_suffix(".pdf")) == ""
    shutil.copy(picture, tmp_path / "docs/gallery/one")
    return tmp_path


def check(folder: Path) -> tuple[int, list[str]]:
    command = [sys.executable, str(ROOT / "docs/tools/check_gallery.py"), "one"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.returncode, done.stdout.splitlines()


def test_files_of_searches_are_compared_if_there_was_a_search(folder: Path) -> None:
    copies = [folder / "docs/gallery/one" / name for name in ("lessons.png", "tuned.yaml")]
    for copy in copies:
        copy.write_text("as it was")
    assert check(folder) == (0, [])
    (folder / "figures/one/search").mkdir()
    made = [folder / "figures/one/search/lessons.png", folder / "results/one/tuned.yaml"]
    for path in made:
        path.write_text("as it is")
    lines = [f"{copy.relative_to(folder)}: differs from {path.relative_to(folder)}"
             for copy, path in zip(copies, made, strict=True)]  # fmt: skip
    assert check(folder) == (1, lines)


def test_a_gallery_older_than_its_data_is_noticed(folder: Path) -> None:
    gallery = Path("docs/gallery/one")
    picture, missing, differs = (gallery / name for name in ("mmd-easy.png", "circle.png", "tuned_table.csv"))
    assert check(folder) == (0, [])
    shutil.copy(folder / picture, folder / "figures/one/circle.png")
    (folder / differs).write_text("as it was")
    (folder / "results/one/tuned_table.csv").write_text("as it is")
    lines = [f"{differs}: differs from results/one/tuned_table.csv", f"{missing}: is missing"]
    assert check(folder) == (1, lines)
    (folder / differs).unlink()
    (folder / "figures/one/circle.png").unlink()
    table = folder / f"results/one/metrics/{MODEL}.csv"
    table.write_text(table.read_text().replace(",mmd,0.", ",mmd,1.", 1))
    assert check(folder) == (1, [f"{picture}: was drawn from other results"])
    content = (folder / picture).read_bytes()
    (folder / picture).write_bytes(content.replace(stamp.KEY.encode(), b"somebodies1"))
    assert check(folder) == (1, [f"{picture}: has no stamp"])
    (folder / "results/one/metrics.csv").unlink()
    assert check(folder) == (0, ["one: not checked, there are no results of it here"])
