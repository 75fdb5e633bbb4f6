"""Pages of docs/reference against the code: accountants, and contents of a chain file."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmc
from dpmc.privacy import accountants

REFERENCE = Path(__file__).parents[2] / "docs/reference"


def tables(page: str) -> list[list[str]]:
    """Cells of all rows of a page's tables."""
    lines = (REFERENCE / page).read_text(encoding="utf-8").split("\n")
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| ")]


def test_every_accountant_is_on_the_page_and_whether_it_is_a_filter() -> None:
    found = {row[0].strip("`"): row[4] for row in tables("accountants.md") if len(row) == 6}
    found.pop("accountant")
    found.pop("---")
    assert found == {name: "yes" if one.is_filter else "no" for name, one in accountants.ACCOUNTANTS.items()}


def test_presets_are_those_of_the_page() -> None:
    rows = [row for row in tables("accountants.md") if len(row) == 3 and row[1].startswith("`")]
    for column, preset in ((1, "tight"), (2, "thesis")):
        chosen = accountants.PRESETS[preset].values()
        assert sorted(row[column].strip("`") for row in rows) == sorted(chosen)


@pytest.fixture(scope="module")
def chain() -> Any:
    """A chain of the algorithm that records most."""
    model = dpmc.LogisticRegression("y", ["x"], norm=2.0)
    rows = model.simulate(np.random.default_rng(1), np.zeros(2), 200)
    setting = {"variant": "corrected", "clip": 3, "epsilon": 0.1, "delta": 1e-4, "proposal_sd": 0.1}
    return dpmc.sample(
        model, rows, "dp-fast-mh-full", epsilon=8, hyperparameters=setting, iterations=4, progress=False
    )


def test_every_part_of_a_chain_file_is_on_the_page(chain: Any) -> None:
    words = set(re.findall(r"`([^`\n]+)`", (REFERENCE / "chain-files.md").read_text(encoding="utf-8")))
    words |= {word.rpartition("/")[2] for word in words}
    known = set(chain.attrs)
    for group in chain.children.values():
        known |= {*group.variables, *group.attrs, group.name}
    assert known - words == set()


def test_the_page_lists_the_variables_of_all_groups(chain: Any) -> None:
    named = [row[0] for row in tables("chain-files.md") if "/" in row[0]]
    there = {f"{group.name}/{name}" for group in chain.children.values() for name in group.data_vars}
    paths = {path for cell in named for path in re.findall(r"`([^`]+/[^`]+)`", cell)}
    assert paths == there
