"""Two accountings side by side: figures and the table."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tight_table

from dpmc.metrics.table import METRIC_COLUMNS, typed
from dpmc.reports.plots import lines, style
from dpmc.studies import Study, load_study
from dpmc.studies.whole import Results
from figures.synthetic import EASY, curves, draw

ROOT = Path(__file__).parents[2]
FULL = ("dp-penalty", "dp-penalty-guided", "dp-hmc")
BATCH = ("minibatch-penalty", "minibatch-penalty-guided", "dp-barker")
CAP = 20_000
GAIN = {"minibatch-penalty": 1.5, "minibatch-penalty-guided": 2.0, "dp-barker": 700.0}
PART_SPENT = {"minibatch-penalty": 0.85, "minibatch-penalty-guided": 0.7, "dp-barker": 0.028}


def two_ways(models: tuple[str, ...] = EASY) -> Study:
    made = load_study("thesis-tight")
    assert made.methods["dp-barker-tight"].most_iterations == CAP
    return replace(made, models={label: made.models[label] for label in models})


def results_of(of: Study, seeds: int = 20, better: float = 0.05) -> pd.DataFrame:
    """Made-up results; tight chains are better than the thesis's by exactly `better`, pair by pair."""
    generator, rows = np.random.default_rng(3), []
    for model, spec in of.models.items():
        for epsilon in spec.epsilons:
            base = {m: generator.gamma(9.0, 0.05, size=seeds) for m in (*FULL, *BATCH)}
            for method, how in of.methods.items():
                names = (how.from_study or of.name, model, method, epsilon)
                tight = method.endswith("-tight")
                allowed = int(100 * float(epsilon) ** 2 * (GAIN[how.algorithm] if tight else 1.0))
                made = min(allowed, how.most_iterations or allowed)
                spent = float(epsilon) * (1.0 if tight else PART_SPENT.get(method, 1.0))
                spent *= made / allowed
                for seed in range(seeds):
                    rows.append((*names, seed, "iterations", made))
                    rows.append((*names, seed, "mmd", base[how.algorithm][seed] - better * tight))
                rows.append((*names, "", "budget_iterations", allowed))
                rows.append((*names, "", "epsilon_spent_tight", spent))
        for index in range(10):
            rows.append((of.name, model, "baseline", "", index, "mmd", 0.02 + 0.001 * index))
    return pd.DataFrame([tuple(map(str, row)) for row in rows], columns=[*METRIC_COLUMNS])


def test_iterations_are_those_that_the_budget_allows() -> None:
    of = two_ways()
    table = results_of(of)
    first = (table.method == "minibatch-penalty") & (table.epsilon == "1")
    table.loc[first & (table.metric == "budget_iterations"), "value"] = "0"
    shown = curves(draw("tight-iterations", of, table).axes[0])
    assert len(shown) == 6
    for method in BATCH:
        claimed, tight = (style.line_style(of, label).colour for label in (method, f"{method}-tight"))
        least = 0.0 if method == "minibatch-penalty" else 100.0
        assert shown[claimed, True] == [(1, least), *((e, 100.0 * e**2) for e in range(2, 7))]
        assert shown[tight, False] == [(e, 100.0 * e**2 * GAIN[method]) for e in range(1, 7)]


def test_the_epsilon_spent_comes_from_the_table() -> None:
    of = two_ways()
    axes = draw("tight-spent", of, results_of(of)).axes[1]
    for method in BATCH:
        wanted = [(e, pytest.approx(e * PART_SPENT[method])) for e in range(1, 7)]
        assert curves(axes)[style.line_style(of, method).colour, True] == wanted
    (diagonal,) = [line for line in axes.lines if line.get_linewidth() == lines.DIAGONAL["linewidth"]]
    assert list(diagonal.get_xdata()) == list(diagonal.get_ydata())


def test_cells_at_one_place_are_pooled() -> None:
    of = two_ways(EASY[:1])
    table = results_of(of)
    capped = (table.method == "dp-barker-tight") & (table.metric == "epsilon_spent_tight")
    table.loc[capped, "value"] = "0.43"
    values = table[(table.method == "dp-barker-tight") & (table.metric == "mmd")].value.astype(float)
    (axes,) = draw("tight-mmd-spent", of, table).axes
    colour = style.line_style(of, "dp-barker-tight").colour
    assert curves(axes)[colour, False] == [(0.43, pytest.approx(values.median()))] and len(values) == 120


def test_rows_of_a_reused_method_are_the_other_study_s() -> None:
    of = two_ways(EASY[:1])
    table = results_of(of)
    wrong = table[table.method == "dp-barker"].assign(study=of.name, value="7")
    foreign = table[table.method == "dp-barker-tight"].assign(study="thesis", value="7")
    both = pd.concat([table, wrong, foreign])
    assert vars(Results(typed(both), of)) == vars(Results(typed(table), of))


# The table of the same numbers.


def test_differences_are_paired() -> None:
    of = two_ways(EASY[:1])
    table = list(tight_table.rows(of, Results(typed(results_of(of)), of)))
    assert len(table) == 6 * 6
    by = {(row["algorithm"], row["epsilon"]): row for row in table}
    for method in BATCH:
        row = by[method, "3"]
        # Made better by 0.05 in each pair: the spread between chains is not in the error.
        assert row["difference"] == pytest.approx(-0.05) and row["difference_error"] < 1e-12
        assert row["tight_mmd"] == pytest.approx(row["thesis_mmd"] - 0.05)
        assert row["thesis_mmd_error"] == pytest.approx(row["tight_mmd_error"])
        assert row["tight_mmd_error"] > 0.01
        assert row["tight_against_full"] == pytest.approx(row["thesis_against_full"] - 0.05)
        assert row["thesis_against_full_error"] > 0.01
    assert "difference" not in by["dp-hmc", "3"]
    barker = by["dp-barker", "6"]
    assert (barker["tight_iterations"], barker["tight_budget_iterations"]) == (CAP, 2_520_000)


def test_the_table_is_written(tmp_path: Path) -> None:
    table = results_of(two_ways())
    lost = (table.method == "minibatch-penalty") & (table.epsilon == "1") & (table.metric == "mmd")
    table[~lost].to_csv(tmp_path / "metrics.csv", index=False)
    names = ["thesis-tight", str(tmp_path / "metrics.csv"), str(tmp_path / "table.csv")]
    subprocess.run([sys.executable, str(Path(tight_table.__file__)), *names], cwd=ROOT, check=True)
    written = pd.read_csv(tmp_path / "table.csv", dtype=str, keep_default_na=False)
    assert list(written) == tight_table.COLUMNS and len(written) == 4 * 6 * 6
    assert written["algorithm"][3] == "minibatch-penalty" and written["thesis_mmd"][3] == ""
    assert set(written["tight_budget_iterations"][written["algorithm"] == "dp-barker"]) >= {
        "70000",
        "2520000",
    }
