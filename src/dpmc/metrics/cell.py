"""The metrics of one cell (model, method, epsilon): tidy rows, one value each, nothing blank.

Rows have the keys of `METRIC_COLUMNS`; `seed` is "" for metrics of the whole cell. If metrics cannot be
computed, a row with metric "status" names them and the reason, at most one such row per seed and one per
cell. A cell whose algorithm is a variant has a row with metric "variant" that describes it.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from dpmc.common.draws import diagnostics
from dpmc.common.errors import DpmcError
from dpmc.common.streams import stream
from dpmc.data.chain_files import Chains
from dpmc.data.histogram import accuracy, symmetric_kl, symmetric_kl_of_counts
from dpmc.data.problem import Problem
from dpmc.metrics.mmd import equally_spaced, fixed_mmd, published_mmd
from dpmc.metrics.spending import spending
from dpmc.metrics.table import METRIC_COLUMNS, Row
from dpmc.metrics.traces import MILESTONES, divergences, milestones

#: distance of draws from the exact posterior -> what it needs of the problem, the fewest draws, its function
#: (draws, what it needs, random generator). All share one generator, which only `mmd` uses so far: another
#: that draws numbers stands after it, so that the MMDs stay.
DISTANCES: dict[str, tuple[str, int, Callable[..., float]]] = {
    "mmd": ("reference", 2, lambda draws, exact, rng: published_mmd(equally_spaced(draws), exact, rng)),
    "mmd_fixed": ("reference", 2, lambda draws, exact, _: fixed_mmd(equally_spaced(draws), exact)),
    "mean_error": ("posterior_mean", 1, lambda draws, exact, _: mean_error(draws, exact)),
    "covariance_error": ("posterior_covariance", 2, lambda draws, exact, _: covariance_error(draws, exact)),
}
CELL_KEYS = ("study", "model", "method", "epsilon", "dataset")
FLOOR_DRAWS = 20_000  # of a chain of the paper
MINIMUM_CHAINS = 2  # of an R-hat between chains
CONVERGENCE = ("rhat_max", "ess_bulk_min", "mcse_mean_max")  #: of the worst parameter


def second_half(draws: np.ndarray, iterations: int, thin: int = 1) -> np.ndarray:
    """Return the kept draws: iterations (k + 1) // 2 ... k of theta_0 ... theta_k (Section 6.3).

    `draws` is (chains, draws, d) and holds iterations thin, 2 thin, ...; k = 33 keeps 17.
    """
    iteration = thin * np.arange(1, draws.shape[1] + 1)
    return draws[:, iteration >= (iterations + 1) // 2]


def mean_error(draws: np.ndarray, exact_mean: np.ndarray) -> float:
    """Return the Euclidean distance of the mean of the draws (count, d) from the exact mean (d,)."""
    return float(np.linalg.norm(draws.mean(axis=0) - exact_mean))


def covariance_error(draws: np.ndarray, exact_covariance: np.ndarray) -> float:
    """Return the Frobenius norm of covariance of draws (count, d), divisor count - 1, minus the exact one."""
    centred = draws - draws.mean(axis=0)
    # einsum, not BLAS: bit-identical for any number of threads.
    covariance = np.einsum("ni,nj->ij", centred, centred) / (len(draws) - 1)
    return float(np.linalg.norm(covariance - exact_covariance))


def cell_metrics(chains: Sequence[Chains], problem: Problem) -> list[Row]:
    """Return the metric rows of one cell: of each seed, convergence of all chains, and ε spent."""
    rows = seed_metrics(chains, problem)
    chains = sorted(chains, key=_seed)  # so that no digit depends on the order
    (rhat, why_not), (spent, why_not_spent) = _convergence_metrics(chains), spending(chains)
    names = [str(chains[0].attrs[key]) for key in CELL_KEYS[:4]]
    variant = str(chains[0].attrs.get("variant", ""))
    # One status row per cell, for the missing metrics of both groups.
    return rows + _rows(names, "", {**rhat, **spent}, [*why_not, *why_not_spent], variant)


def seed_metrics(chains: Sequence[Chains], problem: Problem) -> list[Row]:
    """Return the metric rows of each seed of a cell; DpmcError for a seed given twice, or other draws."""
    rows: list[Row] = []
    for chain in sorted(chains, key=_seed):
        seed, dimension = _seed(chain), problem.exact.reference.shape[-1]
        if any(row["seed"] == seed for row in rows):
            raise DpmcError(f"metrics: seed {seed} is in two chain files")
        if chain.draws.shape[-1] != dimension:
            raise DpmcError(
                f"metrics: draws of seed {seed} have dimension {chain.draws.shape[-1]}, "
                f"the data file's reference draws have {dimension}"
            )
        names = [str(chain.attrs.get(key, "")) for key in CELL_KEYS[:4]]  # a trial has no study
        rows += _rows(names, seed, *_seed_metrics(chain, problem))
    return rows


def metrics_of_cells(chains: Iterable[Chains], problem: Problem) -> list[Row]:
    """Return the metric rows of cells of one problem, given cell by cell; DpmcError for others."""
    rows: list[Row] = []
    seen: list[tuple[str, ...]] = []
    for names, group in itertools.groupby(chains, lambda chain: tuple(chain.attrs[key] for key in CELL_KEYS)):
        if names in seen:
            raise DpmcError(f"metrics: the chains of cell {', '.join(names)} must be given one after another")
        seen.append(names)
        for key, first, other in zip(CELL_KEYS, seen[0], names, strict=True):
            if key in ("study", "model", "dataset") and first != other:
                raise DpmcError(f"metrics: {key} is {first!r} in one chain file and {other!r} in another")
        rows += cell_metrics(list(group), problem)
    return rows


def baseline_metrics(problem: Problem, study: str) -> list[Row]:
    """Return MMDs and mean error of exact samples, the lowest attainable; `seed` is the sample's number.

    Of a model with a histogram also its divergence from as many exact draws as the milestones have: the
    divergence counts distinct draws, and this is its floor.
    """
    rows: list[Row] = []
    counts = problem.exact.histogram_counts
    for index, sample in enumerate(problem.exact.baselines):
        generator = stream(problem.dataset, problem.label, "baseline", "", index, "mmd")
        values = {"mmd": published_mmd(sample, problem.exact.reference, generator)}
        values["mmd_fixed"] = fixed_mmd(sample, problem.exact.reference)
        if np.all(np.isfinite(problem.exact.posterior_mean)):
            values["mean_error"] = mean_error(sample, problem.exact.posterior_mean)
        for most in (FLOOR_DRAWS, *MILESTONES) if counts.size else ():
            drawn = generator.multinomial(most, (counts / counts.sum()).ravel())
            name = "symmetric_kl" if most == FLOOR_DRAWS else f"symmetric_kl_at_{most}"
            values[name] = symmetric_kl_of_counts(drawn, counts)
        rows += _rows((study, problem.label, "baseline", ""), index, values, [])
    return rows


def _seed(chain: Chains) -> int:
    return int(chain.attrs["seed"])


def _rows(
    names: Sequence[str],
    seed: int | str,
    values: Mapping[str, float],
    reasons: Sequence[str],
    variant: str = "",
) -> list[Row]:
    """Return a row per value, one for missing metrics with the reasons, and one for a variant."""
    texts = {"status": "; ".join(reasons), "variant": variant}
    cells: list[tuple[str, float | str]] = [*values.items(), *(text for text in texts.items() if text[1])]
    return [dict(zip(METRIC_COLUMNS, (*names, seed, *cell), strict=True)) for cell in cells]


def second_half_of(chain: Chains) -> np.ndarray:
    """Return a run's kept draws per chain, (chains, kept, d)."""
    return second_half(chain.draws, int(chain.attrs["iterations"]), int(chain.attrs.get("thin", 1)))


def _seed_metrics(chain: Chains, problem: Problem) -> tuple[dict[str, float], list[str]]:
    """Return one seed's values by metric, and the reasons for missing ones."""
    attrs, iterations = chain.attrs, int(chain.attrs["iterations"])
    kept = second_half_of(chain)
    pooled = kept.reshape(-1, kept.shape[-1])
    values: dict[str, float] = {"iterations": iterations, "kept_draws": len(pooled)}
    reasons = [] if attrs["status"] == "ok" else [str(attrs["status"])]
    if iterations == 0:
        return values, reasons or ["budget too small: 0 iterations"]

    values |= fractions(chain, iterations)
    # The metrics of the DP-Fast MH paper are from all kept draws, also those of the first half.
    draws = chain.draws.reshape(-1, chain.draws.shape[-1])
    if len(draws) and np.all(np.isfinite(draws)):
        if problem.exact.histogram_counts.size:
            divergence, outside = symmetric_kl(
                draws, problem.exact.histogram_edges, problem.exact.histogram_counts
            )
            values |= {"symmetric_kl": divergence, "outside_fraction": outside / len(draws)}
            values |= _at_milestones(chain, problem)
        if problem.test_rows.size:
            values["test_accuracy"] = accuracy(draws.mean(axis=0), problem.test_rows)
    if len(pooled) == 0:
        return values, [*reasons, f"{', '.join(DISTANCES)}: no kept draws (iterations: {iterations})"]
    if not np.all(np.isfinite(pooled)):
        return values, [*reasons, f"{', '.join(DISTANCES)}: some draws are not finite"]
    # By cell and seed, so that no value depends on which other cells are evaluated.
    names = [str(attrs[key]) for key in ("dataset", "model", "method", "epsilon")]
    generator = stream(*names, int(attrs["seed"]), "mmd")
    missing: dict[str, list[str]] = {}  # reason -> metrics
    for name, (needed, fewest, distance) in DISTANCES.items():
        exact = getattr(problem.exact, needed)
        try:
            if len(pooled) < fewest:
                raise ValueError(f"{len(pooled)} kept draw, needs at least {fewest}")
            if not exact.size:
                raise ValueError("the data set has no exact reference draws")
            if not np.all(np.isfinite(exact)):
                raise ValueError(f"the exact {needed.replace('_', ' ')} is not known")
            with np.errstate(over="ignore", invalid="ignore"):  # reported below
                value = distance(pooled, exact, generator)
            if not math.isfinite(value):
                raise ValueError(f"not a finite number ({value})")
            values[name] = value
        except ValueError as error:
            missing.setdefault(f"{error} (iterations: {iterations})", []).append(name)
    return values, reasons + [f"{', '.join(names)}: {why}" for why, names in missing.items()]


def _at_milestones(chain: Chains, problem: Problem) -> dict[str, float]:
    """Return symmetric KL of all draws up to each milestone, and MMD of the second half of them."""
    along, thin, values = divergences(chain, problem), int(chain.attrs.get("thin", 1)), {}
    names = [str(chain.attrs[key]) for key in ("dataset", "model", "method", "epsilon")]
    for name, iteration in milestones(chain).items():
        values[f"symmetric_kl_{name}"] = along[iteration]
        draws = second_half(chain.draws[:, : iteration // thin], iteration, thin)
        draws = draws.reshape(-1, draws.shape[-1])
        if len(draws) > 1 and len(problem.exact.reference):
            generator = stream(*names, int(chain.attrs["seed"]), f"mmd_{name}")
            values[f"mmd_{name}"] = published_mmd(equally_spaced(draws), problem.exact.reference, generator)
    return values


def fractions(chain: Chains, iterations: int) -> dict[str, float]:
    """Return acceptance rate, clip fractions and diverged proposals over all k iterations, where defined.

    A clip fraction is #{rows clipped} / (rows x evaluations), rejected proposals included (Section 6.3); rows
    are those used if their number is random. That is reported too, with the fractions of tests with noise and
    of tests on all rows; if ε is per iteration, the number of rows for each method.
    """
    attrs = chain.attrs
    total = {name: int(np.sum(counts)) for name, counts in chain.totals.items()}
    proposals = int(chain.draws.shape[0]) * iterations
    values: dict[str, float] = {}
    tested = int(attrs.get("ratio_evaluations_per_iteration", 0)) or attrs.get("is_tested", False)
    if tested and "accepted" in total:
        values["acceptance_rate"] = total["accepted"] / proposals
    for name in ("ratio", "gradient"):
        evaluations = proposals * int(attrs.get(f"{name}_evaluations_per_iteration", 0))
        rows = evaluations * int(attrs.get("rows_per_evaluation", attrs["n"]))
        if "rows_used" in total and name == "ratio":
            rows = total["rows_used"]
        if evaluations:
            # No row is used if every proposal was rejected without looking at one.
            values[f"{name}_clip_fraction"] = total[f"{name}_clipped"] / rows if rows else 0.0
    if "rows_used" in total:
        values["rows_per_iteration"] = total["rows_used"] / proposals
        values["noise_fraction"] = total["noise_drawn"] / proposals
        values["full_batch_fraction"] = total["all_rows"] / proposals
    elif attrs.get("epsilon_kind") == "per-iteration":
        evaluations = sum(int(attrs[f"{name}_evaluations_per_iteration"]) for name in ("ratio", "gradient"))
        values["rows_per_iteration"] = evaluations * int(attrs["rows_per_evaluation"])
    values["diverged"] = total.get("diverging", 0)
    return values


def _convergence_metrics(chains: Sequence[Chains]) -> tuple[dict[str, float], list[str]]:
    """Return the convergence diagnostics over all chains of all seeds, or the reason for none."""
    kept = [half for chain in chains for half in second_half_of(chain)]
    # Chains of a cell have the same budget and length; otherwise the shortest length is used.
    length = min(len(half) for half in kept)
    try:
        if len(kept) < MINIMUM_CHAINS:
            raise ValueError(f"{len(kept)} chain, needs at least {MINIMUM_CHAINS}")
        return convergence(np.stack([half[len(half) - length :] for half in kept])), []
    except ValueError as error:
        return {}, [f"{', '.join(CONVERGENCE)}: {error}"]


def convergence(draws: np.ndarray) -> dict[str, float]:
    """Return `CONVERGENCE` of draws (chains, draws, d); ValueError for too few, or if not all are finite."""
    rhat, ess, mcse = diagnostics(draws)
    worst = (float(rhat.max()), float(ess.min()), float(mcse.max()))
    if not np.all(np.isfinite(worst)):
        raise ValueError("not defined for these chains (some never moved)")
    return dict(zip(CONVERGENCE, worst, strict=True))
