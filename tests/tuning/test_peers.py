"""The public guesses of the study `peers` are what its comments say: they follow from public tuning rows."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

import dpmc
from dpmc.data import datasets
from dpmc.studies.hyperparameters import pinned_hyperparameters
from dpmc.studies.loading import load_study

ROOT = Path(__file__).parents[2]
PEERS, PAPERS = (load_study(ROOT / f"config/studies/{name}.yaml") for name in ("peers", "peers-papers"))
ROWS_KEPT = 1.0 - 1.0 / 2000.0
OFF = {"sum": 0.0, "sum-off-3": 3.0, "sum-off-10": 10.0, "sum-off-3-narrow": 3.0}


@pytest.mark.parametrize("model", [*PEERS.models, "paper-banana", "paper-gauss"])
def test_sums_ask_what_public_rows_suggest(model: str) -> None:
    problem = datasets.build(model, model, "tuning")
    summaries = problem.model.summaries(problem.rows)
    study = PEERS if model in PEERS.models else PAPERS
    public = pinned_hyperparameters(study, model, "public-rows").values
    np.testing.assert_allclose(public["total"], summaries.sum(axis=0), rtol=1e-6, atol=1e-3)
    assert public["public"] == len(summaries)
    for label, off in OFF.items():
        given = pinned_hyperparameters(study, model, label).values
        moved = summaries.mean(axis=0) + off * summaries.std(axis=0) / np.sqrt(summaries.shape[1])
        around = summaries.mean(axis=0) if label.endswith("narrow") else moved
        norms = np.linalg.norm(summaries - around, axis=1)
        np.testing.assert_allclose(given["centre"], moved, rtol=1e-3, atol=1e-6)
        assert given["clip"] == pytest.approx(np.quantile(norms, ROWS_KEPT), rel=2e-2)


def test_the_sum_of_any_n_has_the_settings_of_peers() -> None:
    study = load_study(ROOT / "config/studies/rows.yaml")
    known = pinned_hyperparameters(PEERS, "flat-banana-2d", "sum-off-3").values
    assert all(pinned_hyperparameters(study, model, "sum-off-3").values == known for model in study.models)


def test_the_page_has_the_coverage_of_its_table() -> None:
    page = (ROOT / "docs/results/peers.md").read_text(encoding="utf-8")
    table = pd.read_csv(ROOT / "docs/results/peers-coverage.csv").set_index(["model", "method", "epsilon"])
    sums = {
        "flat banana, d = 2": "flat-banana-2d",
        "flat banana, d = 10": "flat-banana-10d",
        "Gaussian, d = 30": "gauss-30d",
        "correlated Gaussian": "correlated-gauss",
        "narrow banana": "narrow-banana",
    }
    section = page.partition("## Do intervals hold?")[2]
    lines = {
        line.split(" | ")[0].strip("| "): line.strip("| ").split(" | ")[1:] for line in section.splitlines()
    }
    for name, model in sums.items():
        cells = [("sum", 0.25), ("sum", 1.0), ("sum-naive", 0.25)]
        measured = [table.loc[(model, *cell), "coverage_90"] for cell in cells]
        assert [float(cell) for cell in lines[name][1:4]] == pytest.approx(measured, abs=0.0051), name
    for name, model in {"flat banana, d = 2": "banana-chains", "Gaussian, d = 30": "gauss-chains"}.items():
        for epsilon, shown in zip((1.0, 4.0), lines[name][4:], strict=True):
            found = table.loc[model].xs(epsilon, level="epsilon")["coverage_90"]
            assert [float(x) for x in shown.split(", ")] == pytest.approx(
                [found.max(), found.min()], abs=0.0051
            )


def cells_of(section: str) -> dict[str, list[str]]:
    """Return the tables of a section of the page: first cell of a line -> the others, without comments."""
    page = (ROOT / "docs/results/peers.md").read_text(encoding="utf-8")
    lines = (
        re.sub("<!--.*?-->", "", page.partition(section)[2], flags=re.S).partition("\n## ")[0].splitlines()
    )
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    return {name: cells for name, *cells in rows}


def test_the_page_has_what_wrong_guesses_cost() -> None:
    table = pd.read_csv(ROOT / "docs/results/peers-guesses.csv").set_index(["model", "method"])
    steps = {
        "3 times as long": "3",
        "10 times as long": "10",
        "a third as long": "third",
        "a tenth as long": "tenth",
    }
    measured = {"DP penalty, tuned": [("banana", "dp-penalty"), ("logistic", "dp-penalty")]}
    measured |= {
        f"steps {words}": [("banana", f"dp-penalty-steps-{how}"), ("logistic", f"logistic-steps-{how}")]
        for words, how in steps.items()
    }
    measured |= {
        f"start {sds} off": [
            (f"{model}-start-{sds.split()[0]}", "dp-penalty") for model in ("banana", "logistic")
        ]
        for sds in ("3 sds of the posterior", "10 of them")
    }
    measured["start 3 sds of a *row* off, as the centre"] = [("banana-start-949", "dp-penalty")]
    measured["sum; noisy scores"] = [("banana", "sum"), ("logistic", "noisy-scores")]
    measured["sum, bound 10 times as wide"] = [("banana", "sum-clip-10")]
    measured["sum, bound a third as wide"] = [("banana", "sum-clip-third")]
    shown = cells_of("Coverage of 90 % intervals, and their width")
    assert {*measured, "wrong guess", "---"} == {*shown}
    for name, runs in measured.items():
        for cell, run in zip(shown[name], runs, strict=False):
            coverage, width = map(float, cell.split(", "))
            assert coverage == pytest.approx(table.loc[run, "coverage_90"], abs=0.0051), name
            assert width == pytest.approx(table.loc[run, "width_90"], abs=0.51 if width > 10 else 0.051), name


def test_the_page_has_what_more_parameters_cost_a_chain() -> None:
    table = pd.read_csv(ROOT / "docs/results/peers-guesses.csv").set_index(["model", "method"])
    shown, sizes = cells_of("Logistic regression, n = 5,000, ε = 4"), (2, 5, 10, 50)
    assert shown["parameters d"] == [str(d) for d in sizes]
    for name, method in {"DP penalty": "dp-penalty", "noisy scores": "noisy-scores"}.items():
        for d, cell in zip(sizes, shown[name], strict=True):
            measured = table.loc[("logistic" if d == 5 else f"logistic-d-{d}", method)]
            numbers = [float(number) for number in cell.split(", ")]
            assert numbers == pytest.approx(measured[["coverage_90", "error_true"]].to_list(), abs=0.0051)


def test_the_pages_chain_has_the_numbers_of_the_page_and_answers_refuse() -> None:
    generator = np.random.default_rng(1)
    x = 2.0 * generator.random(20_000) - 1.0
    y = 1.0 + x + (1.0 + 0.5 * x) * generator.standard_exponential(20_000)
    page = (ROOT / "docs/results/peers.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.S)
    names: dict[str, Any] = {"np": np, "dpmc": dpmc, "rows": np.column_stack([y, x])}
    exec(code, names)
    model, rows = names["model"], names["rows"]
    exact = minimize(
        lambda theta: -model.log_likelihood(theta, rows).sum(), [3.0, 1.5], method="Nelder-Mead"
    ).x
    shown = re.search(r"intercept and slope are (\S+) and (\S+), without privacy (\S+) and (\S+)\.\n", page)
    assert shown
    private = dpmc.summary(names["tree"])["mean"]
    assert [float(number) for number in shown.groups()] == pytest.approx([*private, *exact], abs=0.0051)
    refusals = {
        "noisy-statistics": "the posterior given a noisy sum is not known",
        "simulated-scores": "the model has no simulate",
        "noisy-scores": "the model must be a regression",
    }
    for method, words in refusals.items():
        values = {"clip": 1.0} if method == "noisy-statistics" else None
        with pytest.raises(dpmc.DpmcError, match=words):
            dpmc.sample(model, rows, method, epsilon=1, hyperparameters=values, progress=False)


def test_the_page_has_diffprivlib() -> None:
    table = pd.read_csv(ROOT / "docs/reference/algorithms/noisy-scores.csv")
    cells = table[
        (table["part"] == "grid") & (table["n"] == 5000) & (table["d"] == 8) & (table["epsilon"] == 1)
    ]
    cells = cells[cells["diffprivlib"].notna()].set_index("regression")
    page = " ".join((ROOT / "docs/results/peers.md").read_text(encoding="utf-8").split())
    words = re.search(
        r"is (\S+) to (\S+) standard errors .* \(linear\) and (\S+) to (\S+) \(logistic\), "
        r"noisy scores (\S+) to (\S+) ",
        page,
    )
    measured = [*(cells.loc[name, "diffprivlib"] for name in ("linear", "logistic")), cells["error"]]
    shown = [
        f"{end:.2g}" if end > 10.0 else f"{end:.2f}" for each in measured for end in (each.min(), each.max())
    ]
    assert words and list(words.groups()) == shown


def test_the_page_has_the_chains_of_real_tables() -> None:
    table = pd.read_csv(ROOT / "docs/reference/algorithms/noisy-scores.csv").fillna({"case": ""})
    page = " ".join((ROOT / "docs/results/peers.md").read_text(encoding="utf-8").split())
    of_chain, of_scores = (
        r"covers (\S+) with an error of (\S+) standard errors \((\d+) sets\)",
        r"(\S+) with ([\d.]+) ",
    )
    named = {5190: ("poisson", "doctor visits"), 28155: ("linear", "wages")}
    for words, (n, (regression, case)) in zip(
        re.findall(f"{of_chain}, noisy scores {of_scores}", page), named.items(), strict=True
    ):
        own = table[(table["regression"] == regression) & (table["n"] == n)].set_index(["part", "case"])
        chain, scores = own.loc[("chains", "dp-penalty")], own.loc[("tables", case)]
        covered, error, sets, *others = map(float, words)
        assert sets == chain["sets"]
        for shown, row in (((covered, error), chain), (others, scores)):
            assert shown[0] == pytest.approx(row["coverage"] / 100.0, abs=0.0051)
            assert shown[1] == pytest.approx(row["error"], abs=0.051)


def test_the_page_has_the_papers_models() -> None:
    table = pd.read_csv(ROOT / "docs/results/peers-papers.csv").set_index(["model", "method", "epsilon"])[
        "mmd"
    ]
    cells = [("sum", 1), *((name, 2) for name in (*OFF, "public-rows"))]
    for name, model in {"banana": "paper-banana", "Gaussian, d = 10": "paper-gauss"}.items():
        measured = [table.loc[(model, *cell)] for cell in cells]
        assert [float(cell) for cell in cells_of("### The papers' models")[name][:6]] == pytest.approx(
            measured, abs=0.0051
        )
