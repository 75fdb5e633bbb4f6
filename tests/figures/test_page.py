"""The page of a study: it needs no other file, lists its contents, and compares with published results."""

import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml

from dpmc.reports.plots import plot
from dpmc.studies.figures import declared_figure
from figures.synthetic import metrics, study

ROOT = Path(__file__).parents[2]
MODEL = "flat-banana-2d"
STUDY = {
    "title": "a page & its figures",
    "delta": "0.1/n",
    "seeds": 20,
    "settings_of": "thesis",
    "models": {MODEL: {"epsilons": [1, 2, 3, 4, 5, 6], "tuning_epsilon": 1}},
    "methods": {"dp-penalty": {}, "dp-penalty-guided": {}, "dp-hmc": {}},
    "figures": ["mmd-easy", "models", "hyperparameters"],
}
COMPARISON = """model,method,epsilon,metric,chains,median,published,error,z
flat-banana-2d,dp-penalty,1,mmd,20,0.5,0.4,0.02,5
flat-banana-2d,dp-hmc,1,mmd,20,0.41,0.4,0.02,0.5
flat-banana-2d,dp-hmc,1,acceptance_rate,20,0.6,0.61,0.02,-0.5
"""


class Page(HTMLParser):
    """What a page refers to, its anchors and the texts of its cells, rows in bold apart."""

    def __init__(self) -> None:
        super().__init__()
        self.sources: list[str] = []
        self.links: list[str] = []
        self.anchors: list[str] = []
        self.bold: list[str] = []
        self.texts: list[str] = []
        self.in_bold = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.sources += [str(given["src"])] if "src" in given else []
        self.links += [str(given["href"])] if "href" in given else []
        self.anchors += [str(given["id"])] if "id" in given else []
        self.in_bold = given.get("class") == "beyond" if tag == "tr" else self.in_bold

    def handle_data(self, data: str) -> None:
        if data.strip():
            (self.bold if self.in_bold else self.texts).append(data.strip())


def page_with(tmp_path: Path, comparison: str) -> Page:
    """The page of a small study with this comparison."""
    (tmp_path / "config/studies").mkdir(parents=True)
    shutil.copytree(ROOT / "config/hyperparameters", tmp_path / "config/hyperparameters")
    (tmp_path / "config/studies/one.yaml").write_text(yaml.safe_dump(STUDY))
    metrics(study((MODEL,))).to_csv(tmp_path / "metrics.csv", index=False)
    picture = tmp_path / "mmd-easy.png"
    plot("mmd-easy", study((MODEL,)), [tmp_path / "metrics.csv"], ROOT / "data/published", [picture])
    (tmp_path / "comparison.csv").write_text(comparison)
    command = [sys.executable, str(ROOT / "workflow/scripts/page.py"), "one", "page.html"]
    subprocess.run([*command, picture.name, "comparison.csv"], cwd=tmp_path, check=True)
    found = Page()
    found.feed((tmp_path / "page.html").read_text())
    return found


@pytest.fixture
def page(tmp_path: Path) -> Page:
    return page_with(tmp_path, COMPARISON)


def test_the_page_is_self_contained(page: Page) -> None:
    assert len(page.sources) == 1 and page.sources[0].startswith("data:image/png;base64,iVBOR")
    assert page.anchors == ["mmd-easy", "published", "models", "hyperparameters"]
    assert page.links == [*(f"#{anchor}" for anchor in page.anchors), "mmd-easy.pdf"]
    caption = declared_figure(ROOT / "config/studies/thesis.yaml", "mmd-easy").caption
    assert any(text.startswith(caption) for text in page.texts) and "a page & its figures" in page.texts
    assert "noise multiplier of log-ratio" in page.texts and "100000" in page.texts


def test_ours_against_published(page: Page) -> None:
    assert "2 of 3 medians agree within 3 standard errors." in page.texts
    assert page.bold == ["flat banana, d = 2", "DP penalty", "1", "0.5", "0.4", "0.02", "+5.00"]
    place = page.texts.index("MMD")
    assert page.texts[place : place + 3] == ["MMD", "2", "1"]


def test_without_a_published_cell_there_is_no_comparison(tmp_path: Path) -> None:
    """A small study called as a published one ended with a traceback: the fewest chains of none are NaN."""
    page = page_with(tmp_path, COMPARISON.splitlines()[0])
    assert page.anchors == ["mmd-easy", "models", "hyperparameters"]
