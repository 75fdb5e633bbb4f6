"""Metrics along a chain: divergence, accuracy, rows used and ε spent against the iteration.

All draws count, from the first on. Symmetric KL divergence and rows used are computed at iterations 1, 501,
1001, …, total ε at some of these, test accuracy of the running mean every 100 iterations; of a thinned chain
from its first kept draw on.
"""

import json
import math
from collections.abc import Iterable, Iterator

import numpy as np

from dpmc.data.chain_files import Chains
from dpmc.data.histogram import accuracy, bin_counts, symmetric_kl_of_counts
from dpmc.data.problem import Problem
from dpmc.metrics.table import Row
from dpmc.privacy import accountants
from dpmc.privacy.events import NonPrivateQuery, counts, from_counts, from_json, repeat

TRACE_COLUMNS = ("study", "model", "method", "epsilon", "seed", "iteration", "metric", "value")
DISTANCE_EVERY = 500
ACCURACY_EVERY = 100
MILESTONES = (4_000, 10_000)  # iterations
MILESTONE_ROWS = (1_000_000, 50_000_000)


def traces(chains: Iterable[Chains], problem: Problem) -> Iterator[Row]:
    """Yield the rows of several cells' chains, which must come cell by cell.

    The total ε, equal for all runs of a cell, is given once with seed "", and only with divergences; for
    other models the total ε of whole chains is among the metrics.
    """
    previous = None
    for chain in chains:
        names, seed = [str(chain.attrs[key]) for key in TRACE_COLUMNS[:4]], int(chain.attrs["seed"])
        along: list[tuple[int | str, str, dict[int, float]]] = [(seed, "rows_used", rows_used(chain))]
        if problem.exact.histogram_counts.size:
            along.append((seed, "symmetric_kl", divergences(chain, problem)))
            if names != previous:
                along.insert(0, ("", "epsilon_total", spent(chain)))
        if len(problem.test_rows):
            along.append((seed, "test_accuracy", accuracies(chain, problem)))
        previous = names
        for of, metric, values in along:
            for iteration, value in values.items():
                yield dict(zip(TRACE_COLUMNS, (*names, of, iteration, metric, value), strict=True))


def divergences(chain: Chains, problem: Problem) -> dict[int, float]:
    """Return iteration -> symmetric KL divergence of all draws up to there from the exact posterior."""
    truth = problem.exact.histogram_counts
    seen, done, values = np.zeros(truth.shape, np.int64), 0, {}
    for iteration, kept in _kept_until(chain, distance_iterations(chain)):
        draws = chain.draws[:, done:kept].reshape(-1, chain.draws.shape[-1])
        seen += bin_counts(draws, problem.exact.histogram_edges)[0]
        done = kept
        values[iteration] = symmetric_kl_of_counts(seen, truth)
    return values


def milestones(chain: Chains) -> dict[str, int]:
    """Return name -> iteration: k + 1 of each k of `MILESTONES` that a chain has, and of `MILESTONE_ROWS`.

    Of each number of rows that it uses up, the last of 1, 501, … within it.
    """
    rows = rows_used(chain)
    found = {f"at_{most}": most + 1 for most in MILESTONES if most + 1 in rows}
    for most in MILESTONE_ROWS:
        within = [iteration for iteration, used in rows.items() if used <= most]
        if within and rows[max(rows)] >= most:
            found[f"by_{most}_rows"] = within[-1]
    return found


def accuracies(chain: Chains, problem: Problem) -> dict[int, float]:
    """Return iteration -> share of the test rows predicted correctly by the mean of all draws up to there."""
    iterations = range(ACCURACY_EVERY, int(chain.attrs["iterations"]) + 1, ACCURACY_EVERY)
    sums = np.cumsum(np.asarray(chain.draws).mean(axis=0), axis=0)  # (k, d)
    return {
        iteration: accuracy(sums[kept - 1] / kept, problem.test_rows)
        for iteration, kept in _kept_until(chain, iterations)
    }


def rows_used(chain: Chains) -> dict[int, float]:
    """Return iteration -> rows used so far, all chains of the run together."""
    attrs = chain.attrs
    if "rows_used" not in chain.counts:
        evaluations = sum(int(attrs[f"{kind}_evaluations_per_iteration"]) for kind in ("ratio", "gradient"))
        each = evaluations * int(attrs["rows_per_evaluation"]) * len(chain.draws)
        return {iteration: each * iteration for iteration in distance_iterations(chain)}
    sums = np.cumsum(chain.counts["rows_used"].sum(axis=0))
    return {
        iteration: int(sums[kept - 1]) for iteration, kept in _kept_until(chain, distance_iterations(chain))
    }


def spent(chain: Chains) -> dict[int, float]:
    """Return iteration -> ε spent so far; inf without a guarantee, empty if the ledger has no δ."""
    ledger = json.loads(str(chain.attrs["ledger"]))
    delta = ledger.get("delta") or (ledger["budget"] or {}).get("delta")
    if delta is None:
        return {}
    accountant, total = accountants.get(str(ledger["accountant"]["name"])), int(chain.attrs["iterations"])
    performed = counts(from_json([*ledger["performed"], *ledger["forfeited"]]))
    # Ledgers have totals: what the iterations do not share evenly was asked before the first one.
    once = from_counts({event: count % total for event, count in performed.items() if count % total})
    each = from_counts({event: count // total for event, count in performed.items() if count >= total})
    private = not any(isinstance(event, NonPrivateQuery) for event in performed)
    # Some iterations, increasingly far apart, and the last: computing a total ε can take seconds.
    iterations = distance_iterations(chain)
    places = {0, len(iterations) - 1, *(1 << power for power in range(len(iterations).bit_length()))}
    return {
        iterations[i]: accountant.epsilon((*once, *repeat(each, iterations[i])), float(delta))
        if private
        else math.inf
        for i in sorted(places)
        if i < len(iterations)
    }


def distance_iterations(chain: Chains) -> range:
    """Return the iterations 1, 501, 1001, … of a chain."""
    return range(1, int(chain.attrs["iterations"]) + 1, DISTANCE_EVERY)


def _kept_until(chain: Chains, iterations: range) -> Iterator[tuple[int, int]]:
    """Yield (iteration, number of draws kept up to it), without iterations before the first kept draw."""
    thin = int(chain.attrs.get("thin", 1))
    for iteration in iterations:
        if iteration >= thin:
            yield iteration, iteration // thin
