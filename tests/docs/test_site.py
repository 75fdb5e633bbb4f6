"""The site in headless Chromium: its home, pictures, tables, searches and links, also dark and on a phone."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

from browser import PHONE, chromium, needs_browser, of_each

ROOT = Path(__file__).parents[2]
TOOLS = ("furo", "myst_nb", "sphinx", "sphinx_copybutton")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not all(map(importlib.util.find_spec, TOOLS)), reason="no tools of `make docs`"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as GitHub builds it, but without running the examples."""
    folder = tmp_path_factory.mktemp("site")
    options = ["--fail-on-warning", "-D", "nb_execution_mode=off", "--doctree-dir", folder / "trees"]
    command = [sys.executable, "-m", "sphinx", *options, ROOT / "docs", folder / "html"]
    subprocess.run(command, check=True, env=os.environ | {"GITHUB_REPOSITORY": "someone/dpmc"})
    return folder / "html"


def test_home_has_code_picture_description_icon_and_repository(site: Path) -> None:
    page = (site / "index.html").read_text(encoding="utf-8")
    assert "dpmc.fit(" in re.sub("<[^>]+>", "", page.partition("<pre>")[2].partition("</pre>")[0])
    (picture,) = re.findall(r'<img alt="[^"]{20,}" src="([^"]+)"', page)
    (icon,) = re.findall(r'<link rel="shortcut icon" href="([^"]+)"', page)
    assert (site / picture).is_file() and (site / icon).is_file()
    (described,) = re.findall(r'<meta name="description" content="([^"]+)"', page)
    assert described.startswith("Bayesian inference on private rows")
    assert page.count('href="https://github.com/someone/dpmc"') == 1
    assert "https://github.com/someone/dpmc/blob/main/docs/index.md" in page


def test_pages_that_docstrings_name_are_links(site: Path) -> None:
    page = (site / "reference/api.html").read_text(encoding="utf-8").partition("<h1>")[2]
    assert 'href="../how-to/an-analysis.html"><span class="doc">' in page
    assert re.findall(r"docs/[\w/-]+\.md", page) == []


@needs_browser
def test_no_page_is_wider_than_a_phone(site: Path) -> None:
    """Code, tables and output scroll by themselves; nothing else is beyond the edge, cut off."""
    pages = sorted(page for page in site.rglob("*.html") if "_static" not in page.parts)
    pages.remove(site / "index.html")
    outside = "e.getBoundingClientRect().right > page.documentElement.clientWidth + 1"
    own = "e.closest('pre, .table-wrapper, .cell_output, .math, .enlarge')"
    wide = f"[...page.querySelectorAll('article *')].filter(e => {outside} && !{own})"
    widths = f"{wide}.map(e => e.tagName + e.textContent.slice(0, 20)).slice(0, 1)"
    found = of_each([site / "index.html", *pages], widths)
    assert len(found) == len(pages) + 1 > 50
    assert {page: words for page, words in zip(["home", *pages], found, strict=True) if words} == {}


@needs_browser
def test_a_click_enlarges_a_picture_and_another_one_closes_it(site: Path) -> None:
    click, width = "page.querySelector('.enlarge').click()", "page.querySelector('.enlarge img').clientWidth"
    script = f"[{width}, {click}, {width}, {click}, {width}]"
    (on_phone,) = of_each([site / "index.html"], script)
    small, _, large, _, again = on_phone.split(",")
    assert 300 < int(small) == int(again) < PHONE and int(large) == 960
    (on_screen,) = of_each([site / "index.html"], script, 1280)
    assert int(on_screen.split(",")[2]) > 1200


@needs_browser
@pytest.mark.parametrize(("width", "least"), [(PHONE, 300), (1280, 600)])
def test_a_sentence_of_the_claims_is_as_wide_as_the_page(site: Path, width: int, least: int) -> None:
    cells = "[...page.querySelectorAll('table.cards td.sentence')].map(e => e.clientWidth)"
    names = "page.querySelector('table.cards .sentence:not(.first) .column').textContent"
    (found,) = of_each([site / "results/claims.html"], f"[{names}, ...{cells}]", width)
    name, *widths = found.split(",")
    assert name.strip().endswith(":") and len(widths) > 50
    assert min(map(int, widths)) > least


@needs_browser
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_on_a_page_of_figures_is_white_in_the_dark(site: Path, tmp_path: Path, dark: bool) -> None:
    page = (site / "results/figures.html").as_uri()
    chromium(page, "--window-size=1280,1600", f"--screenshot={tmp_path / 'page.png'}", dark=dark)
    bright = matplotlib.image.imread(tmp_path / "page.png")[..., :3].min(axis=-1) > 0.85
    assert np.mean(bright) < 0.03 if dark else np.mean(bright) > 0.5


@needs_browser
@pytest.mark.parametrize(
    ("words", "first"),
    [("tempering", "how-to/choose-hyperparameters.html#"), ("publish", "how-to/publish-a-chain.html")],
)
def test_a_search_finds_the_how_to_first(site: Path, words: str, first: str) -> None:
    address = f"{(site / 'search.html').as_uri()}?q={words}"
    found = re.findall(
        '<li class="kind-[^>]+><a href="([^"]+)"', chromium(address, "--virtual-time-budget=10000")
    )
    assert found[0].startswith(first)
