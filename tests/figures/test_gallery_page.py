"""Pages with pictures show every figure of their studies, from pictures that are committed."""

import re
from pathlib import Path

import pytest

from dpmc.studies import load_study
from dpmc.studies.figures import known_figures
from dpmc.tables import TABLES

ROOT = Path(__file__).parents[2]


def test_the_page_shows_the_gallery_of_the_thesis() -> None:
    shown = re.findall(
        r"!\[[^]]+\]\(\.\./(docs/gallery/thesis/[a-z-]+\.png)\)", (ROOT / "figures/README.md").read_text()
    )
    study = load_study(ROOT / "config/studies/thesis.yaml")
    assert {Path(file).stem for file in shown} == set(study.figures) - set(TABLES)
    assert [file for file in shown if not (ROOT / file).is_file()] == []


@pytest.mark.parametrize(
    "study",
    sorted(folder.name for folder in (ROOT / "docs/gallery").iterdir() if folder.name != "tuning-budgets"),
)
def test_the_results_show_every_figure_with_its_caption_and_every_table(study: str) -> None:
    path = ROOT / f"config/studies/{study}.yaml"
    figures = " ".join((ROOT / "docs/results/figures.md").read_text(encoding="utf-8").split())
    tables = "".join((ROOT / f"docs/results/{page}.md").read_text() for page in ("tables", "claims"))
    known = known_figures(path)
    for name in load_study(path).figures:
        if name in TABLES:
            written = ROOT / f"docs/gallery/{study}/{name}.md"
            assert not written.is_file() or f"../gallery/{study}/{name}.md" in tables
            continue
        caption = " ".join(known[name].caption.split())
        assert f"![{known[name].title}](../gallery/{study}/{name}.png) {caption}" in figures
        assert (ROOT / f"docs/gallery/{study}/{name}.png").is_file()
