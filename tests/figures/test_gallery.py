"""Galleries older than the figures and tables of a run."""

import subprocess
import sys
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from figures.synthetic import write_small

ROOT = Path(__file__).parents[2]
GALLERY = Path("docs/gallery/one")


def check(folder: Path) -> tuple[int, list[str]]:
    command = [sys.executable, str(ROOT / "docs/tools/check_gallery.py"), "one"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.returncode, done.stdout.splitlines()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A study `one` with a picture and a table, and a gallery with copies."""
    write_small(tmp_path)
    for place in ("results/one", "figures/one/search", GALLERY):
        (tmp_path / place).mkdir(parents=True)
    (tmp_path / "results/one/metrics.csv").touch()  # there are results
    for name, of in (("figures/one", "a run"), (GALLERY, "the gallery")):
        Figure((1, 1)).savefig(tmp_path / name / "circle.png", metadata={"Software": of})
    for name in ("results/one", GALLERY):
        (tmp_path / name / "table.csv").write_text("as it is")
    return tmp_path


def test_a_gallery_older_than_its_data_is_noticed(folder: Path) -> None:
    assert check(folder) == (0, [])  # pictures are compared by their pixels
    Figure((1, 1), facecolor="red").savefig(folder / "figures/one/circle.png")
    Figure((1, 1)).savefig(folder / "figures/one/mixture.png")
    (folder / GALLERY / "table.csv").write_text("as it was")
    (folder / GALLERY / "models.csv").touch()
    assert check(folder) == (1, [
        f"{GALLERY}/circle.png: differs from figures/one/circle.png",
        f"{GALLERY}/models.csv: is made by no run",
        f"{GALLERY}/table.csv: differs from results/one/table.csv",
        f"{GALLERY}/mixture.png: is missing",
    ])  # fmt: skip
    (folder / "results/one/metrics.csv").unlink()
    assert check(folder) == (0, ["one: not checked, there are no results of it here"])


def test_files_of_searches_are_compared_if_there_was_a_search(folder: Path) -> None:
    copies = [GALLERY / name for name in ("lessons.png", "tuned.yaml")]
    made = ["figures/one/search/lessons.png", "results/one/tuned.yaml"]
    for copy in copies:
        (folder / copy).write_text("as it was")
    assert check(folder) == (0, [])
    for path in made:
        (folder / path).write_text("as it is")
    lines = [f"{copy}: differs from {path}" for copy, path in zip(copies, made, strict=True)]
    assert check(folder) == (1, lines)
