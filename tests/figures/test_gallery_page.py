"""The page of figures/ in a fresh clone shows every figure of the thesis, from pictures that are there."""

import re
from pathlib import Path

from dpmc.studies import load_study
from dpmc.tables import TABLES

ROOT = Path(__file__).parents[2]


def test_the_page_shows_the_gallery_of_the_thesis() -> None:
    shown = re.findall(
        r"!\[[^]]+\]\(\.\./(docs/gallery/thesis/[a-z-]+\.png)\)", (ROOT / "figures/README.md").read_text()
    )
    study = load_study(ROOT / "config/studies/thesis.yaml")
    assert {Path(file).stem for file in shown} == set(study.figures) - set(TABLES)
    assert [file for file in shown if not (ROOT / file).is_file()] == []
