"""Pages with executed cells: all cells run, with smaller numbers, and the stated results hold."""

import os
import re
import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
CELL = re.compile(
    r"^(```|~~~)\{code-cell\}[^\n]*\n((?::[^\n]*\n)*)(.*?)^\1$", re.MULTILINE | re.DOTALL
)  # fence, options, code
ALT = re.compile(r'^:mystnb: \{image: \{alt: "[^"]{20,}"\}\}$', re.MULTILINE)
COMMAND = re.compile(r"^!(.*)$", re.MULTILINE)  # as notebooks run those of the shell
PAGES = sorted(
    str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md") if "{code-cell}" in page.read_text()
)
WORKED = "tutorials/health-insurance.md"

#: Numbers in pages -> smaller ones, with which their cells run in seconds.
SHORTER = {
    WORKED: {"epsilon, 20)": "epsilon, 5)", "range(40)": "range(10)"},
    "how-to/choose-hyperparameters.md": {
        "iterations=1500": "iterations=400",
        "clips = [1, 1.5, 2, 3, 4, 6, 8, 12]": "clips = [2, 8]",
        "taus = [0.35, 0.5, 0.75, 1, 1.5, 2, 3]": "taus = [0.5, 2]",
        "steps = [0.2, 0.35, 0.5, 0.75, 1, 1.4, 2]": "steps = [0.5, 1]",
        "in [60, 125, 250, 500, 1000]:": "in [250]:",
        "trials=10": "trials=2",
    },
    "start/first-chain.md": {"--epsilon 1 --seed 0": "--epsilon 0.2 --seed 0"},
}


def by_python(command: re.Match[str]) -> str:
    """Write a notebook's line for the shell as Python."""
    return f"import subprocess; subprocess.run({command[1]!r}, shell=True, check=True)"


def executed(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run the cells of a page one after the other, in a new folder; return the names that they define.

    A cell that draws has an alternative text for its figure.
    """
    plt.switch_backend("Agg")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    monkeypatch.setenv("COLUMNS", "90")  # set by a page; so it is reset after the test
    text = (DOCS / name).read_text()
    for number, smaller in SHORTER.get(name, {}).items():
        assert number in text
        text = text.replace(number, smaller)
    names: dict[str, Any] = {"__name__": "page"}
    cells = list(CELL.finditer(text))
    assert cells
    for match in cells:
        line = text[: match.start(3)].count("\n")
        cell = COMMAND.sub(by_python, match[3])
        exec(compile("\n" * line + cell, str(DOCS / name), "exec"), names)
        assert bool(plt.get_fignums()) == bool(ALT.search(match[2])), f"{name}, line {line}: alternative text"
        plt.close("all")
    return names


def test_there_are_executed_pages() -> None:
    assert WORKED in PAGES


@pytest.mark.parametrize("name", [name for name in PAGES if name != WORKED])
def test_the_cells_of_a_page_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert executed(name, tmp_path, monkeypatch)


@pytest.mark.slow  # half a minute
def test_the_worked_example_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("statsmodels", reason="the worked example takes its rows from statsmodels")
    names = executed(WORKED, tmp_path, monkeypatch)
    assert len(names["years"]) == 20190
    assert len(names["people"]) == names["people"].index.size == names["years"]["zper"].nunique()
    private = names["private"]
    assert private["width"].is_monotonic_decreasing and private["error"].is_monotonic_decreasing
    assert 1.05 < private["width"][1] < 1.25 and private["width"][4] < 1.1 and private["error"][4] < 0.4
    assert np.mean(names["held"]) > 0.8
    assert names["every_year"].to_frame()["noise"].gt(0.5).all()
    ratio = names["fit"].contrast("4.615 * logc")["ratio"].iloc[0]
    assert 0.4 < ratio < 0.6 and names["fit"].to_frame()["lower"]["female:xage"] > 0.0
