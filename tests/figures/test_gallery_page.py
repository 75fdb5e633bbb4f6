"""Pages with pictures show every figure of their studies, from pictures that are committed."""

import runpy
from pathlib import Path

import pytest

from dpmc.reports.tables import LAYOUTS
from dpmc.studies import load_study

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["figures", "tables", "claims"])
def test_pages_of_results_are_those_of_the_gallery(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    script = runpy.run_path("docs/tools/gallery_pages.py")
    assert Path(f"docs/results/{page}.md").read_text(encoding="utf-8") == script["text"](page)


def test_the_gallery_has_every_figure_of_its_studies() -> None:
    for folder in (ROOT / "docs/gallery").iterdir():
        figures = set(load_study(ROOT / f"config/studies/{folder.name}.yaml").figures) - set(LAYOUTS)
        assert not figures - {picture.stem for picture in folder.glob("*.png")}, folder.name
