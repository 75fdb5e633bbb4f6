"""Pages of reference against the code. Sphinx checks their links (`make docs`: warnings are errors)."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from study_keys import lists, study_schema

import dpmc
from dpmc.algorithms import ALGORITHMS, algorithm_class
from dpmc.algorithms.__main__ import page as page_of_hyperparameters
from dpmc.algorithms.hyperparameters import describe, read
from dpmc.base import Algorithm
from dpmc.privacy import accountants, data_ledger
from dpmc.privacy.events import (
    ApproximateQuery,
    BarkerQuery,
    FastMetropolisQuery,
    GaussianQuery,
    NonPrivateQuery,
    SubsampledGaussianQuery,
)
from dpmc.privacy.runs import RunQueries
from dpmc.releases import files as release_files

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs/reference"


def cells(text: str) -> list[list[str]]:
    """Return the cells of all rows of a page's tables."""
    lines = (line for line in text.split("\n") if line.startswith("| "))
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_generated_pages_are_those_of_the_declarations() -> None:
    assert (REFERENCE / "hyperparameters.md").read_text() == page_of_hyperparameters()
    assert lists() in (ROOT / "config/README.md").read_text()
    assert (ROOT / "config/study.schema.json").read_text() == study_schema()


# Algorithms

#: Some value of each hyperparameter that has no default, if it is not 1, and of a variant.
SOME: dict[str, Any] = {"steps": 5, "batch_size": 1000, "batch_mean": 10.0, "most_rows": 500, "epsilon": 0.01}
SOME |= {"delta": 1e-6, "variant": "corrected"}


@cache
def index() -> dict[str, list[str]]:
    """Return the rows of the index of algorithms by name."""
    text = (REFERENCE / "algorithms/index.md").read_text(encoding="utf-8")
    rows = cells(text.partition("\n| algorithm")[2])
    return {row[0].split("`")[1]: row for row in rows if row[0].startswith("[`")}


def algorithm(name: str) -> Algorithm:
    described = describe(algorithm_class(name), calibrated=False)
    needed = {key: SOME.get(key, 1) for key, *_, default in described if key in SOME or not default}
    return read(algorithm_class(name), needed, name, 2)


def test_the_index_has_every_algorithm_once() -> None:
    assert tuple(index()) == ALGORITHMS


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_index_agrees_with_the_algorithm(name: str) -> None:
    *_, gradient, rows, _, named = index()[name]
    made = algorithm(name)
    assert gradient == ("yes" if made.uses_gradients else "no")
    queries = RunQueries.of(made, 20_000)
    if not (queries.once or queries.each):
        assert rows == "none"
    elif made.public_clip is None:
        evaluations = made.needs(2).gradients + made.needs(2).ratios
        times = f", {evaluations} times" if evaluations > 1 else ""
        # Written with L, which is 5 here.
        assert rows.replace("L + 1", "6").replace("L + 2", "7") == ("b" if made.batch_size else f"n{times}")
    if any(isinstance(event, NonPrivateQuery) for event in (*queries.once, *queries.each)):
        assert named == "none, ε = ∞"
    else:
        assert named == f"`{queries.accountant('tight').name}`"


#: Words for the kinds of queries in the tables of accountants.
KINDS = {
    GaussianQuery: "all rows",
    SubsampledGaussianQuery: "batch",
    BarkerQuery: "Barker",
    FastMetropolisQuery: "DP-Fast MH",
    ApproximateQuery: "known (ε, δ)",
}


def of_accountants(page: Path, columns: int) -> dict[str, list[str]]:
    """Return the rows of a page's table of accountants by name, after comparing its names and queries."""
    text = page.read_text(encoding="utf-8")
    found = {row[0].strip("`"): row for row in cells(text) if len(row) == columns and row[0].startswith("`")}
    known = accountants.ACCOUNTANTS
    assert known.keys() - found.keys() == set(), f"accountants without a row in {page}"
    assert found.keys() - known.keys() == set(), f"not registered, and in {page}"
    for name, row in found.items():
        handled = {word for kind, word in KINDS.items() if issubclass(kind, known[name].handles)}
        assert {word for word in KINDS.values() if word in row[1]} == handled, f"queries of {name}"
    return found


def test_the_page_has_every_accountant_whether_it_is_a_filter_and_the_presets() -> None:
    page = REFERENCE / "accountants.md"
    filters = {name: row[4] for name, row in of_accountants(page, 6).items()}
    assert filters == {name: "yes" if a.is_filter else "no" for name, a in accountants.ACCOUNTANTS.items()}
    named = [
        row for row in cells(page.read_text(encoding="utf-8")) if len(row) == 3 and row[1].startswith("`")
    ]
    for column, preset in ((1, "tight"), (2, "thesis")):
        chosen = sorted(accountants.PRESETS[preset].values())
        assert sorted(row[column].strip("`") for row in named) == chosen


def test_the_proofs_have_every_accountant_and_name_those_that_are_filters() -> None:
    page = REFERENCE.parent / "explanation/accounting.md"
    of_accountants(page, 4)
    (named,) = re.findall(r"chosen by earlier results: (.*) only", page.read_text(encoding="utf-8"))
    filters = {name for name, one in accountants.ACCOUNTANTS.items() if one.is_filter}
    assert set(re.findall("`(.*?)`", named)) == filters, "a filter needs its theorem on this page"


def test_every_part_of_a_chain_file_is_on_the_page() -> None:
    """Of a chain of the algorithm that records most."""
    model = dpmc.LogisticRegression("y", ["x"], norm=2.0)
    rows = model.simulate(np.random.default_rng(1), np.zeros(2), 200)
    setting: dict[str, Any] = {"variant": "corrected", "clip": 3, "epsilon": 0.1, "delta": 1e-4}
    options: dict[str, Any] = {"hyperparameters": {**setting, "proposal_sd": 0.1}, "progress": False}
    chain = dpmc.sample(model, rows, "dp-fast-mh-full", epsilon=8, iterations=4, **options)
    text = (REFERENCE / "chain-files.md").read_text(encoding="utf-8")
    words = set(re.findall(r"`([^`\n]+)`", text))
    words |= {word.rpartition("/")[2] for word in words}
    groups = chain.children.values()
    parts = {part for group in groups for part in (*group.variables, *group.attrs, group.name)}
    assert {*chain.attrs, *parts} - words == set()
    paths = {path for row in cells(text) for path in re.findall(r"`([^`]+/[^`]+)`", row[0])}
    assert paths == {f"{group.name}/{name}" for group in groups for name in group.data_vars}


# Releases


def test_the_page_has_every_part_that_a_release_may_contain() -> None:
    text = (REFERENCE / "release.md").read_text(encoding="utf-8")
    words = set(re.findall(r"`([^`\n]+)`", text))
    words |= {word.rpartition("/")[2] for word in words} | {"chain", "draw", "parameter"}
    allowed = release_files.ALLOWED.values()
    assert {part for names, checks in allowed for part in (*names, *checks)} - words == set()
    axes = {"chain", "draw", "parameter"}
    paths = {path for row in cells(text) for path in re.findall(r"`([^` ]+/[^` ]+)`", row[0])}
    assert paths == {
        f"{path[1:]}/{name}" for path, (names, _) in release_files.ALLOWED.items() for name in {*names} - axes
    }
    keys = {word for row in cells(text) for word in re.findall(r"`(\w+)`", row[0])}
    assert data_ledger.HEADER | (data_ledger.ENTRY - {"ledger"}) <= keys


def test_the_tests_that_the_threat_model_names_exist() -> None:
    text = (ROOT / "docs/explanation/threat-model.md").read_text(encoding="utf-8")
    files = re.findall(r"`(tests/[\w/]+\.py)`", text)
    defined = {
        name
        for file in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.M)
    }
    named = set(re.findall(r"`(test_\w+)`", text))
    assert len(files) >= 3 and all((ROOT / file).is_file() for file in files)
    assert len(named) > 3 and named <= defined, named - defined


def test_pages_that_code_and_settings_name_exist() -> None:
    names = {"environment.yml", "pyproject.toml", "Makefile"}
    folders = ("src", "workflow", "config", "profiles", "benchmarks")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*")]
    files = [path for path in files if path.suffix in {".py", ".smk", ".yaml", ".csv"}]
    texts = [path.read_text(encoding="utf-8") for path in [*files, *(ROOT / name for name in names)]]
    named = {page for text in texts for page in re.findall(r"docs/[\w/-]+\.md", text)}
    assert len(named) > 10
    assert not [page for page in named if not (ROOT / page).exists()]
