"""Rows of a cell: every value by hand, reasons for missing values, nothing blank."""

import dataclasses
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from dpmc.common.errors import DpmcError
from dpmc.common.streams import stream
from dpmc.data.histogram import bin_counts, equal_edges, symmetric_kl
from dpmc.data.problem import Exact
from dpmc.metrics.cell import baseline_metrics, cell_metrics, second_half
from dpmc.metrics.mmd import equally_spaced, fixed_mmd, published_mmd
from dpmc.metrics.table import METRIC_COLUMNS, TEXT_METRICS, is_metric

PER_SEED = set(
    "iterations kept_draws mmd mmd_fixed mean_error covariance_error acceptance_rate ratio_clip_fraction "
    "gradient_clip_fraction diverged".split()
)


@dataclass
class Run:
    """A stand-in for a chain file."""

    draws: np.ndarray
    attrs: dict[str, Any]
    totals: dict[str, np.ndarray]


class Known:
    """A stand-in for a problem: a standard normal posterior in d dimensions."""

    dataset, label = "published", "m"
    test_rows = np.empty((0, 0))

    def __init__(self, d: int = 2) -> None:
        generator = np.random.default_rng(11)
        reference, baselines = generator.normal(size=(200, d)), generator.normal(size=(3, 200, d))
        self.exact = Exact(reference, baselines, np.zeros(d), np.eye(d))


def run(seed: int, k: int, *, chains: int = 1, thin: int = 1, **attrs: Any) -> Run:
    draws = np.random.default_rng(seed).normal(size=(chains, k // thin, 2))
    names = {"study": "s", "model": "m", "method": "a", "epsilon": "4", "dataset": "published"}
    counts = {"iterations": k, "thin": thin, "n": 100, "status": "ok", "seed": seed}
    evaluations = {"ratio_evaluations_per_iteration": 1, "gradient_evaluations_per_iteration": 11}
    totals = {"accepted": k // 2, "diverging": 1, "ratio_clipped": 5 * k, "gradient_clipped": 22 * k}
    arrays = {name: np.full(chains, value) for name, value in totals.items()}
    return Run(draws, {**names, **counts, **evaluations, **attrs}, arrays)


def values(rows: list[dict[str, Any]], seed: Any) -> dict[str, Any]:
    chosen = [row for row in rows if row["seed"] == seed]
    assert len({row["metric"] for row in chosen}) == len(chosen), "a metric appears twice"
    return {row["metric"]: row["value"] for row in chosen}


@pytest.mark.parametrize(("k", "kept"), [(33, 17), (119, 60), (3, 2), (56, 29), (1, 1), (0, 0)])
def test_second_half_as_published(k: int, kept: int) -> None:
    draws = np.arange(1.0, k + 1)[None, :, None]
    half = second_half(draws, k)[0, :, 0]
    assert len(half) == kept
    assert list(half) == list(np.arange((k - 1) // 2 + 1, k + 1)) or k == 0


def test_second_half_of_thinned_draws_goes_by_iteration_number() -> None:
    draws = np.arange(10.0, 101.0, 10.0)[None, :, None]  # iterations 10, 20, ..., 100 of 105
    assert list(second_half(draws, 105, thin=10)[0, :, 0]) == [60.0, 70.0, 80.0, 90.0, 100.0]


def test_values_of_one_seed() -> None:
    problem, chain = Known(), run(3, 40)
    rows = cell_metrics([chain, run(4, 40)], problem)
    assert all(tuple(row) == METRIC_COLUMNS for row in rows)
    assert all(is_metric(str(row["metric"])) or row["metric"] in TEXT_METRICS for row in rows)
    got = values(rows, 3)
    assert set(got) == PER_SEED
    kept = chain.draws[0, 19:]  # iterations 20 ... 40
    assert got["iterations"] == 40 and got["kept_draws"] == 21
    assert got["mean_error"] == pytest.approx(math.hypot(*kept.mean(axis=0)))
    difference = np.cov(kept.T) - np.eye(2)
    assert got["covariance_error"] == pytest.approx(math.sqrt((difference**2).sum()))
    generator = stream("published", "m", "a", "4", 3, "mmd")
    assert got["mmd"] == published_mmd(kept, problem.exact.reference, generator)
    assert got["mmd_fixed"] == fixed_mmd(kept, problem.exact.reference)
    assert got["acceptance_rate"] == pytest.approx(20 / 40)
    assert got["ratio_clip_fraction"] == pytest.approx(5 / 100)
    assert got["gradient_clip_fraction"] == pytest.approx(22 / (11 * 100))
    assert got["diverged"] == 1
    assert set(values(rows, "")) == {"rhat_max", "ess_bulk_min", "mcse_mean_max"}


def test_a_value_does_not_depend_on_the_other_seeds() -> None:
    problem = Known()
    together = cell_metrics([run(8, 40), run(3, 40)], problem)
    alone = cell_metrics([run(3, 40)], problem)
    assert values(together, 3) == values(alone, 3)
    assert together[0]["seed"] == 3  # in order of seeds


def test_no_digit_depends_on_the_order_of_the_files() -> None:
    chains = [run(seed, 200) for seed in range(20)]
    wanted = cell_metrics(chains, Known())
    for order in (sorted(range(20), key=str), range(19, -1, -1)):
        assert cell_metrics([chains[seed] for seed in order], Known()) == wanted


def test_halves_are_dropped_per_chain_and_pooled() -> None:
    chain = run(1, 10, chains=4)
    chain.draws[:, :4] = 1e6  # in the first half of each chain
    got = values(cell_metrics([chain], Known()), 1)
    assert got["kept_draws"] == 4 * 6
    assert got["mean_error"] < 3.0
    assert got["acceptance_rate"] == pytest.approx(0.5)  # totals over 4 chains of 10
    assert got["ratio_clip_fraction"] == pytest.approx(0.05)


def test_no_iterations() -> None:
    status = "budget too small: epsilon 4 allows 0 iterations"
    rows = cell_metrics([run(s, 0, status=status) for s in (0, 1)], Known())
    assert values(rows, 0) == {"iterations": 0, "kept_draws": 0, "status": status}
    assert "0 kept draws per chain, needs at least 4" in values(rows, "")["status"]


def test_unknown_exact_values_are_reported() -> None:
    problem = Known()
    known = {"reference": np.empty((0, 2)), "posterior_mean": np.full(2, np.nan)}
    problem.exact = dataclasses.replace(problem.exact, **known)
    got = values(cell_metrics([run(1, 40)], problem), 1)
    assert "no exact reference draws" in got["status"]
    assert "exact posterior mean is not known" in got["status"]
    assert "covariance_error" in got


def test_draws_that_are_not_finite_or_too_large_never_become_nan() -> None:
    for bad in (np.inf, np.nan, 1e200):
        chain = run(0, 40)
        chain.draws[0, 20:] = bad
        rows = cell_metrics([chain, run(1, 40)], Known())
        assert "status" in values(rows, 0)
        for row in rows:
            assert row["value"] != "" and row["value"] == row["value"]
            assert isinstance(row["value"], str) or math.isfinite(row["value"])


def test_a_seed_twice_and_another_dimension_are_refused() -> None:
    with pytest.raises(DpmcError, match="seed 0 is in two chain files"):
        cell_metrics([run(0, 40), run(0, 40)], Known())
    with pytest.raises(DpmcError, match="dimension 2, the data file's reference draws have 3"):
        cell_metrics([run(0, 40)], Known(d=3))


def test_baselines() -> None:
    rows = baseline_metrics(Known(), "s")
    assert [(row["seed"], row["metric"]) for row in rows] == [
        (seed, metric) for seed in range(3) for metric in ("mmd", "mmd_fixed", "mean_error")
    ]
    assert {(row["method"], row["epsilon"]) for row in rows} == {("baseline", "")}
    assert all(0.0 <= float(row["value"]) < 0.2 for row in rows)


def binned() -> Known:
    """A posterior that is known by a histogram, too."""
    problem, exact = Known(), np.random.default_rng(12).normal(size=(200_000, 2))
    edges = equal_edges(exact, 40)
    histogram = {"histogram_edges": edges, "histogram_counts": bin_counts(exact, edges)[0]}
    problem.exact = replace(problem.exact, **histogram)
    return problem


def test_distances_at_milestones_are_of_the_draws_up_to_there() -> None:
    problem, chain = binned(), run(3, 4600, rows_per_evaluation=300, gradient_evaluations_per_iteration=0)
    chain.counts = {}  # type: ignore[attr-defined]
    found = values(cell_metrics([chain], problem), 3)
    assert {name for name in found if "_at_" in name or "_by_" in name} == {
        f"{metric}_{place}" for metric in ("mmd", "symmetric_kl") for place in ("at_4000", "by_1000000_rows")
    }
    exact = problem.exact
    for place, most in (
        ("at_4000", 4001),
        ("by_1000000_rows", 3001),
    ):  # of 300 rows; every 500th is looked at
        draws = chain.draws[0, :most]
        divergence, _ = symmetric_kl(draws, exact.histogram_edges, exact.histogram_counts)
        assert found[f"symmetric_kl_{place}"] == pytest.approx(divergence)
        generator = stream("published", "m", "a", "4", 3, f"mmd_{place}")
        half = draws[(most + 1) // 2 - 1 :]
        assert found[f"mmd_{place}"] == published_mmd(equally_spaced(half), exact.reference, generator)


def test_the_floor_of_the_divergence_is_that_of_as_many_exact_draws() -> None:
    """It counts distinct draws: the floor falls as there are more of them, and is far from 0."""
    problem = binned()
    rows = baseline_metrics(problem, "s")
    floor = {
        draws: np.mean([row["value"] for row in rows if row["metric"] == name])
        for draws, name in (
            (4000, "symmetric_kl_at_4000"),
            (10_000, "symmetric_kl_at_10000"),
            (20_000, "symmetric_kl"),
        )
    }
    assert floor[4000] > 2.0 * floor[10_000] > 2.0 * floor[20_000] > 0.05
    fresh, exact = np.random.default_rng(13).normal(size=(10_000, 2)), problem.exact
    of_fresh, _ = symmetric_kl(fresh, exact.histogram_edges, exact.histogram_counts)
    assert floor[10_000] == pytest.approx(of_fresh, rel=0.15)
