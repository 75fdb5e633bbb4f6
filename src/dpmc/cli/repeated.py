"""The command that runs a method on many data sets of a model, for the coverage of its intervals."""

import argparse
import json
import math
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np

from dpmc.base import SimulatingModel
from dpmc.cli import outputs
from dpmc.cli.given import write_table
from dpmc.common import files
from dpmc.common.errors import DpmcError
from dpmc.common.progress import live_line
from dpmc.common.streams import stream
from dpmc.common.threads import one_blas_thread
from dpmc.data.problem import Problem
from dpmc.evaluators.calls import without_warnings
from dpmc.metrics import coverage, table
from dpmc.metrics.cell import second_half_of
from dpmc.models.fingerprint import digest
from dpmc.sampling.cell import Cell
from dpmc.sampling.loop import sample
from dpmc.sampling.run import file_identity
from dpmc.studies import load_study, make_cell, pinned_hyperparameters, problem_of
from dpmc.studies.whole import BASELINE
from dpmc.tuning.first_setting import without_privacy

REPEATED_VERSION = 1  #: raised whenever a change alters a metric of repeated runs
SDS_DRAWS = 4000  #: of a posterior, of which sds are taken where they are not known


def repeated(options: argparse.Namespace) -> None:
    """Run a method on the data sets of repeated runs; write the metrics of each as CSV.

    Each finished run is a line of `.<output>.jsonl` beside the output, under all that determines it: a killed
    job goes on from there, and one that has more data sets or other settings makes what is not there.
    """
    study, label, method = load_study(options.study), options.model, options.method
    study.document.require(label, study.repeated, "repeated")
    of, sets = study.repeated[label]
    is_exact = method == BASELINE[0]
    epsilons = BASELINE[1:] if is_exact else of.epsilons(label, of.own_method(method).label)
    outputs.check_outputs(options)
    kept = options.output.with_name(f".{options.output.stem}.jsonl")
    report = None if options.quiet else live_line(f"{label} {method}", "data sets")
    rows: list[table.Row] = []
    sds: np.ndarray | None = None
    waiting = f"{kept.parent}: waiting for another process that makes these runs"
    with files.alone(kept.with_suffix(".lock"), waiting, required=False):
        known = _kept(kept)
        for number in range(sets):
            problem = problem_of(of, label, dataset=f"fresh-{number}", exact=True)
            sds = _sds(problem, sds)
            for epsilon in epsilons:
                own = replace(problem)  # its rows are laid out within the time of each run
                given = None if is_exact else pinned_hyperparameters(of, label, method)
                cell = None if given is None else make_cell(of, own, method, epsilon, given)
                name = digest(REPEATED_VERSION, own.digest if cell is None else file_identity(cell, 0))
                if name not in known:
                    known[name] = _measured(own, cell, sds)
                    with open(kept, "a", encoding="utf-8") as file:
                        file.write(f"{json.dumps([name, known[name]])}\n")
                run = (study.name, label, method, epsilon, number)
                rows += [
                    dict(zip(table.METRIC_COLUMNS, (*run, *one), strict=True)) for one in known[name].items()
                ]
            if report is not None:
                report(number + 1, sets)
    write_table(options.output, table.METRIC_COLUMNS, rows)


def _kept(file: Path) -> dict[str, dict[str, float]]:
    """Return the metrics of the runs that are kept, by identity; cut off a last line that is not whole."""
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        os.truncate(file, len(whole.encode()))
    try:
        return dict(map(json.loads, whole.splitlines()))
    except (ValueError, TypeError) as error:
        raise DpmcError(f"{file}: cannot be read ({error}); delete it to start anew") from None


def _sds(problem: Problem, before: np.ndarray | None) -> np.ndarray:
    """Return sds (d,) of the exact posterior; where it is not known, of that of the first set, about."""
    covariance = problem.exact.posterior_covariance
    if np.all(np.isfinite(covariance)):
        return np.sqrt(np.diag(covariance))
    if before is not None:
        return before
    with one_blas_thread(), without_warnings():
        return without_privacy(problem, stream("sds", problem.dataset, problem.label), SDS_DRAWS).std(axis=0)


def _measured(problem: Problem, cell: Cell[Problem] | None, sds: np.ndarray) -> dict[str, float]:
    """Return the metrics of one run, or without a cell those of exact draws; without what is no number."""
    values: dict[str, float] = {}
    if cell is None:
        draws = next(iter(problem.exact.baselines), np.empty((0, problem.dimension)))
    else:
        began = time.process_time()
        (chains,) = sample(cell, [0])
        values = {"cpu_seconds": time.process_time() - began, "iterations": chains.attrs["iterations"]}
        draws = second_half_of(chains).reshape(-1, problem.dimension)
    if len(draws) and np.all(np.isfinite(draws)):
        with one_blas_thread(), without_warnings():
            values |= coverage.errors(draws, problem, sds)
            if coverage.has_intervals(problem) and not (cell and cell.algorithm.is_point):
                rows = _further_rows(problem)
                values |= coverage.intervals(draws, problem.true_theta, sds)
                values["log_score"] = coverage.log_score(draws, problem, rows)
    return {name: float(value) for name, value in values.items() if math.isfinite(value)}


def _further_rows(problem: Problem) -> np.ndarray:
    """Return rows drawn at the true θ that are not those of the problem."""
    generator = stream("rows to predict", problem.dataset, problem.label)
    model = cast(SimulatingModel, problem.model)
    return model.simulate(generator, problem.true_theta, coverage.SCORE_ROWS)
