"""The page of a study: it needs no other file, lists its contents, and compares with published results."""

import html
import re
import subprocess
import sys
from pathlib import Path

import pytest
from page import made_by

from browser import needs_browser, told
from dpmc.common.version import __version__
from dpmc.reports.plots import plot
from dpmc.studies.figures import declared_figure
from figures.synthetic import metrics, write_small

ROOT = Path(__file__).parents[2]
COMPARISON = """model,method,epsilon,metric,chains,median,published,error,z
flat-banana-2d,dp-penalty,1,mmd,20,0.5,0.4,0.02,5
flat-banana-2d,dp-hmc,1,mmd,20,0.41,0.4,0.02,0.5
flat-banana-2d,dp-hmc,1,acceptance_rate,20,0.6,0.61,0.02,-0.5
"""
TAGS = re.compile("<[^>]+>")


def test_the_page_is_self_contained_and_compares_with_published_results(tmp_path: Path) -> None:
    of = write_small(tmp_path)
    metrics(of).assign(study="one").to_csv(tmp_path / "metrics.csv", index=False)
    (tmp_path / "comparison.csv").write_text(COMPARISON)
    plot("mmd-easy", of, [tmp_path / "metrics.csv"], [tmp_path / "mmd-easy.png"])
    command = [sys.executable, str(ROOT / "workflow/scripts/page.py"), "one", "page.html"]
    subprocess.run([*command, "mmd-easy.png", "comparison.csv"], cwd=tmp_path, check=True)
    page = (tmp_path / "page.html").read_text()
    (picture,) = re.findall('src="([^"]+)"', page)
    assert picture.startswith("data:image/png;base64,iVBOR")
    anchors = re.findall('id="([^"]+)"', page)
    assert anchors == ["mmd-easy", "published", "models", "hyperparameters"]
    files = ["mmd-easy.pdf", "models.csv", "hyperparameters.csv"]
    assert re.findall('href="([^"]+)"', page) == [*(f"#{anchor}" for anchor in anchors), *files]
    assert html.escape(declared_figure(ROOT / "config/studies/thesis.yaml", "mmd-easy").caption[:60]) in page
    assert "a page &amp; its figures" in page and "2 of 3 medians agree within 3 standard errors." in page
    first = page.partition("MMD, all cells")[2].split("<tr>")[1].partition("</tr>")[0]
    values = ["flat banana, d = 2", "DP penalty", "1", "0.5", "0.4", "0.02", "5"]
    assert [TAGS.sub("", line).strip() for line in first.split("\n") if "<td>" in line] == values


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """The page of a study with one figure."""
    of = write_small(tmp_path)
    metrics(of).assign(study="one").to_csv(tmp_path / "metrics.csv", index=False)
    plot("mmd-easy", of, [tmp_path / "metrics.csv"], [tmp_path / "mmd-easy.png"])
    command = [sys.executable, str(ROOT / "workflow/scripts/page.py"), "one", "page.html"]
    subprocess.run([*command, "mmd-easy.png"], cwd=tmp_path, check=True)
    return tmp_path / "page.html"


def test_the_page_says_of_what_and_by_what_it_was_made(page: Path) -> None:
    said = re.search(r"Study one, made by (.*) on \d{4}-\d\d-\d\d\.", page.read_text())
    assert said and said[1] == made_by() and f"dpmc {__version__}" in said[1]
    assert not (ROOT / ".git").exists() or re.search(r", commit [0-9a-f]{7,}(-dirty)?$", said[1])


MEASURE = """[document.documentElement.scrollWidth, getComputedStyle(document.body).backgroundColor,
(document.querySelector("label input").click(), getComputedStyle(document.querySelector("img")).position)
].join(";")"""


@needs_browser
@pytest.mark.parametrize(("dark", "paper"), [(False, "rgb(255, 255, 255)"), (True, "rgb(24, 24, 24)")])
def test_a_browser_of_390_pixels_shows_it_light_or_dark_and_enlarges_pictures(page, dark, paper) -> None:
    width, ground, position = told(page, MEASURE, dark).split(";")
    assert int(width) <= 390 and ground == paper and position == "fixed"
