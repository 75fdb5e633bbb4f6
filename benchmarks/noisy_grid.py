"""Measure noisy statistics and the best chain on a grid of regressions; draw the figure of the page.

    python benchmarks/noisy_grid.py [--processes 2] [--draw]

Simulated rows, parameters drawn from the prior. The table beside the figure gets a row per finished cell, and
a killed run goes on from it; `--draw`: from the table of the last time. An hour and a half on one core.
"""

import argparse
import json
import time
from collections.abc import Iterator
from multiprocessing import Pool
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from measuring import ROOT
from noisy_chains import run, searched
from noisy_questions import EPSILON, REGRESSIONS, D, N, Question, data_set, judged
from noisy_shown import draw, print_tables
from noisy_statistics import clip_bound

from dpmc import evaluators
from dpmc.algorithms.dp_penalty import exact_multiplier
from dpmc.algorithms.noisy_statistics import NoisyStatistics
from dpmc.base import Draws, State
from dpmc.common.files import replacing
from dpmc.common.threads import one_blas_thread
from dpmc.privacy.mechanisms import PrivateData
from dpmc.privacy.noise import LabNoise
from dpmc.reports.plots import style
from dpmc.sampling.loop import iterate

FIGURE = ROOT / "docs" / "reference" / "algorithms" / "noisy-statistics-grid.png"
SETS, CHAIN_SETS, CALIBRATION_SETS = 200, 50, 500
ITERATIONS, BURN_IN = 900, 150  #: of noisy statistics
WIDER = 1.5  #: times the clip bound, in cells that show what clipping costs
TWINS, TWIN_ROWS = 20, 2_000  #: simulated data sets from which clip bounds are computed, and rows of each


class Job(NamedTuple):
    """Cells that one process measures: of noisy statistics all ε together, which share the rows."""

    question: Question
    epsilons: tuple[float, ...]
    method: str
    sets: int


# Noisy statistics


class Sums:
    """Noisy sums (sets, k) that were answered, in place of the rows: a chain for each data set."""

    temperature = 1.0

    def __init__(self, total: np.ndarray, n: int) -> None:
        self.total, self.n = total, n

    def noisy_sum(self, *_: Any) -> np.ndarray:
        return self.total

    def begin(self, _: int) -> None:
        pass


def noisy_sum(
    model: Any, rows: np.ndarray, algorithm: NoisyStatistics, generator: np.random.Generator
) -> np.ndarray:
    """Return the sum (k,) that the mechanism returns."""
    noise = LabNoise(np.zeros((1, 1)), np.zeros((1, 1, 0, model.dimension)), [generator])
    private = PrivateData(evaluators.evaluator_of(model, rows), 1.0, noise, np.zeros((1, 1, 0), np.uint64))
    return private.noisy_sum(np.zeros(model.summary_count), algorithm.clip, algorithm.noise_multiplier)[0]


def bound_of(question: Question) -> float:
    """Return the clip bound: of rows simulated at parameters drawn from the prior."""
    twins = [data_set(question, -1 - twin, min(question.n, TWIN_ROWS)).rows for twin in range(TWINS)]
    return float(f"{clip_bound(question.model(), np.concatenate(twins)):.3g}")


def posterior(question: Question, algorithm: NoisyStatistics, total: np.ndarray) -> list[np.ndarray]:
    """Return draws (m, d) of each data set, whose chains step together."""
    generator, model = question.generator(1), question.model()
    private: Any = Sums(total, question.n)
    start, no = np.zeros((len(total), question.d)), np.zeros(len(total), bool)
    needs, m = algorithm.needs(question.d), ITERATIONS
    draws = Draws(
        generator.standard_normal((m, len(total), needs.normals)),
        generator.random((m, len(total), needs.uniforms)),
        np.log(generator.random((m, len(total)))),
    )
    carried = algorithm.prepare(start, model, private, ())
    states = iterate(algorithm, model, private, State(start, carried, no, no), draws)
    path = np.array([state.theta for state in states])[BURN_IN:]
    return list(path.transpose(1, 0, 2))


def noisy_cells(job: Job) -> Iterator[dict[str, Any]]:
    """Measure noisy statistics at each ε."""
    question, model = job.question, job.question.model()
    clip = (WIDER if job.method == "wider clip" else 1.0) * bound_of(question)
    ways = [
        NoisyStatistics(
            clip=clip,
            noise_multiplier=exact_multiplier(epsilon, question.delta),
            noise="ignored" if job.method.endswith("ignored") else "integrated",
        )
        for epsilon in job.epsilons
    ]
    data, totals = [], []
    for number in range(job.sets):
        one = data_set(question, number)
        # Noise of an ε is independent of that of the others.
        totals.append(
            [
                noisy_sum(model, one.rows, way, question.generator(2, number, round(100 * epsilon)))
                for way, epsilon in zip(ways, job.epsilons, strict=True)
            ]
        )
        data.append(one._replace(rows=np.empty(0)))
    for i, (way, epsilon) in enumerate(zip(ways, job.epsilons, strict=True)):
        found = posterior(question, way, np.array([total[i] for total in totals]))
        yield {**described(job, epsilon), **judged(found, data), "setting": json.dumps({"clip": clip})}


def chain_cells(job: Job) -> Iterator[dict[str, Any]]:
    """Measure the best chain at each ε."""
    for epsilon in job.epsilons:
        setting = searched(job.question, epsilon)
        data, found = [], []
        for number in range(job.sets):
            one = data_set(job.question, number)
            found.append(run(job.question, setting, one, epsilon))
            data.append(one._replace(rows=np.empty(0)))
        yield {**described(job, epsilon), **judged(found, data), "setting": json.dumps(setting._asdict())}


# The table


def described(job: Job, epsilon: float) -> dict[str, Any]:
    return {**job.question._asdict(), "epsilon": epsilon, "method": job.method}


KEY = ["regression", "predictors", "d", "n", "epsilon", "method"]


#: Predictors that are not normal, at the largest ε: where chains should win.
EXTRA = (
    Question("logistic", "skew", 2, 5_000),
    Question("logistic", "skew", 2, 50_000),
    Question("logistic", "skew", 8, 50_000),
    Question("Poisson", "binary", 2, 50_000),
)


#: Data, noise and posterior together, at ε = 1.
CALIBRATION = (
    Question("linear", "normal", 3, 5_000),
    *(Question("logistic", kind, 3, 5_000) for kind in ("normal", "binary", "skew")),
    *(Question("Poisson", kind, 3, 5_000) for kind in ("normal", "binary", "skew")),
)


def jobs() -> list[Job]:
    """Return all cells; chains on a third of the grid: each n and d of each regression, one ε of three."""
    grid = [
        (Question(regression, "normal", d, n), EPSILON[(i + j + k) % 3])
        for k, n in enumerate(N)
        for j, d in enumerate(D)
        for i, regression in enumerate(REGRESSIONS)
    ]
    last = max(EPSILON)
    found = [Job(question, (last,), "noisy-statistics", SETS) for question in EXTRA]
    found += [Job(question, EPSILON, "noisy-statistics", SETS) for question, _ in grid]
    found += [Job(question, (1.0,), "noisy-statistics", CALIBRATION_SETS) for question in CALIBRATION]
    pairs = sorted([*grid, *((question, last) for question in EXTRA)], key=lambda pair: -pair[1])
    for question, epsilon in pairs:
        costly = question.d * question.n == max(D) * max(N)
        found.append(Job(question, (epsilon,), "chain", CHAIN_SETS // 2 if costly else CHAIN_SETS))
    found += [Job(Question(way, "normal", 2, 50_000), (last,), "wider clip", SETS) for way in REGRESSIONS]
    # With the noise ignored the mode of this posterior is not found.
    ignored = [question for question, _ in grid if question != Question("Poisson", "normal", 8, 1_000)]
    return found + [Job(question, (1.0,), "noise ignored", SETS) for question in ignored]


def measured(job: Job) -> tuple[list[dict[str, Any]], float]:
    """Return a job's rows and its CPU seconds."""
    began = time.process_time()
    with one_blas_thread():
        found = list((chain_cells if job.method == "chain" else noisy_cells)(job))
    return found, time.process_time() - began


def left(job: Job, known: set[Any]) -> Job:
    """Return a job without the cells that are in the table."""
    left = tuple(epsilon for epsilon in job.epsilons if (*job.question, epsilon, job.method) not in known)
    return job._replace(epsilons=left)


def measure(processes: int) -> None:
    """Measure what is missing; write the table after each job."""
    path, rows = FIGURE.with_suffix(".csv"), pd.DataFrame()
    if path.exists():
        rows = pd.read_csv(path)
    known = set(rows[KEY].itertuples(index=False, name=None)) if len(rows) else set()
    missing = [job for job in (left(job, known) for job in jobs()) if job.epsilons]
    with Pool(processes) as pool:
        for done, (found, seconds) in enumerate(pool.imap_unordered(measured, missing), 1):
            rows = pd.concat([rows, pd.DataFrame(found)]).sort_values(KEY)
            with replacing(path) as temporary:
                rows.to_csv(temporary, index=False, float_format="%.4g")
            print(f"{done} of {len(missing)}, {seconds:.0f} CPU seconds:", *found[-1].values(), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure noisy statistics and chains on a grid.")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--draw", action="store_true", help="only draw the figure from the table")
    given = parser.parse_args()
    if not given.draw:
        measure(given.processes)
    rows = pd.read_csv(FIGURE.with_suffix(".csv"))
    print_tables(rows)
    style.save(draw(rows), FIGURE)


if __name__ == "__main__":
    main()
