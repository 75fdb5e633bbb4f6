"""A finished study: CPU per chain and iterations per second beside the public code, and where the time went.

CPU time is the kernel's count, which every dpmc command writes at the end of its log.
"""

import importlib
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jobs import used_by
from measuring import ROOT, table

from dpmc import cli, compiler, sampling, starter, storage
from dpmc.studies import Study

REFERENCE = ROOT / "data" / "published" / "reference_timings.csv"
GOALS = {"median": 200.0, "least": 25.0}


@dataclass(frozen=True)
class Job:
    """What one sampling job did and used."""

    model: str
    method: str
    epsilon: str
    seeds: int
    iterations: int  # of each chain
    cpu: float  # seconds
    peak: float  # MB

    @property
    def cell(self) -> tuple[str, str]:
        """Model and method."""
        return self.model, self.method


def jobs_of(study: Study, folder: Path) -> list[Job]:
    """The finished sampling jobs of a study under `folder`/results."""
    found = []
    for model, method, epsilon in study.cells():
        place = f"{model}/{method}/eps-{epsilon}"
        chains = sorted((folder / "results" / study.name / "chains" / place).glob("seed-*.nc"))
        logs = folder / "logs" / study.name / "sampling"
        used = [used_by(log) for log in (logs / f"{place}.log", *logs.glob(f"{place}-seed-*.log"))]
        if not chains or not any(used):
            continue
        with storage.reading(chains[0]) as file:
            iterations = int(file.getncattr("iterations"))
        cpu, peak = sum(one.cpu for one in used if one), max(one.peak for one in used if one)
        found.append(Job(model, method, epsilon, len(chains), iterations, cpu, peak))
    return found


def against_reference(study: Study, jobs: list[Job]) -> None:
    """Print CPU per chain and iterations per second beside the public code's."""
    reference = pd.read_csv(REFERENCE, comment="#", dtype={"epsilon": str})
    known = {(row.model, row.method, row.epsilon): row for row in reference.itertuples()}
    rows, ratios = [], []
    for job in jobs:
        row = known.get((job.model, job.method, job.epsilon))
        if row is None:
            continue
        per_chain, rate = job.cpu / job.seeds, job.iterations * job.seeds / job.cpu
        ratios.append(row.cpu_seconds / per_chain)
        rows.append(
            [
                *(job.model, job.method, job.epsilon, job.iterations, per_chain, rate),
                *(row.cpu_seconds, row.cpu_seconds / row.iterations * 1e3, ratios[-1]),
                *(rate / (row.iterations / row.cpu_seconds), job.peak),
            ]
        )
    header = (
        *("model", "method", "ε", "iterations", "CPU s per chain", "iterations per s"),
        *("public code, CPU s", "ms per iteration", "times less CPU", "times more per s", "peak MB"),
    )
    table("study", header, rows, f"## CPU per chain in jobs of {study.seeds} seeds")
    if ratios:
        median, least = statistics.median(ratios), min(ratios)
        print(f"\ntimes less CPU than the public code: median {median:.0f}, least {least:.0f} ", end="")
        print(f"(goals {GOALS['median']:.0f} and {GOALS['least']:.0f})")


@contextmanager
def timing(module: Any, name: str) -> Iterator[list[float]]:
    """Note the CPU seconds of every call of a module's function."""
    function, seconds = getattr(module, name), []

    def timed(*arguments: Any) -> Any:
        began = time.process_time()
        answer = function(*arguments)
        seconds.append(time.process_time() - began)
        return answer

    setattr(module, name, timed)
    try:
        yield seconds
    finally:
        setattr(module, name, function)


def sample_again(work: tuple[Study, Job, Path]) -> tuple[float, float]:
    """What parts of a job's CPU time its blocks of iterations took, and laying out rows for them.

    Wants a process of its own that has imported what a job from the starter has.
    """
    study, job, folder = work
    results, model = folder / "results" / study.name, study.model(job.model)
    with (
        tempfile.TemporaryDirectory() as place,
        timing(sampling, "compiled_iterations") as blocks,
        timing(compiler, "_compile_once") as loading,  # of machine code, in the first block
        timing(sampling, "build_evaluator") as layout,
    ):
        began = time.process_time()
        status = cli.main(
            [
                *("sample", "--quiet", "--study", str(study.path), "--model", job.model),
                *("--method", job.method, "--epsilon", job.epsilon, "--seed", *map(str, range(job.seeds))),
                *("--data", str(folder / "data" / study.name / job.model / f"{model.data}.nc")),
                *("--hyperparameters", str(results / "tuning" / job.model / f"{job.method}.yaml")),
                *("--output", f"{place}/seed-{{seed}}.nc"),
            ]
        )
        whole = time.process_time() - began
    if status:
        raise SystemExit(f"{job.model} {job.method}: failed, for the reason above")
    return (sum(blocks) - sum(loading)) / whole, sum(layout) / whole


def share_of_rows(study: Study, jobs: list[Job], folder: Path, cpu: float | None, cores: int) -> None:
    """Print what the iterations took, next to all of it evaluations of rows.

    The longest job of each cell runs again, as many at a time as in the run, which share caches and cores. It
    tells the parts of the time that the job took in the run.
    """
    longest = list({job.cell: job for job in sorted(jobs, key=lambda job: job.iterations)}.values())
    longest.sort(key=lambda job: -job.cpu)
    for module in (*starter.COMMON, *starter.IMPORTS["sample"]):
        importlib.import_module(module)
    compiler.prepare()
    with multiprocessing.get_context("fork").Pool(cores, maxtasksperchild=1) as pool:
        # Machine code that was made for the run's folder is not found from another one.
        pool.apply(cli.main, [["compile", "--study", str(study.path)]])
        again = pool.map(sample_again, [(study, job, folder) for job in longest], chunksize=1)
    took = {
        job.cell: (job.iterations, *(job.cpu * part for part in parts))
        for job, parts in zip(longest, again, strict=True)
    }
    groups: dict[str, list[Any]] = {}
    trials = np.zeros(2)
    for job in jobs:
        name = study.method(job.method).algorithm
        group = groups.setdefault(name, [name, 0, 0.0, 0.0, 0.0, 0.0])
        iterations, blocks, layout = took[job.cell]
        blocks *= job.iterations / iterations
        for place, value in enumerate((1, job.cpu, blocks, layout), start=1):
            group[place] += value
        group[5] = max(group[5], job.peak)
        if study.tuning_mode != "none" and study.model(job.model).tuning_epsilon == job.epsilon:
            trials += study.tuning_seeds / job.seeds * blocks, layout
    lines = list(groups.values())
    count, used, blocks, layout = (sum(line[k] for line in lines) for k in (1, 2, 3, 4))
    lines.append(["all sampling jobs", count, used, blocks, layout, max(line[5] for line in lines)])
    lines.append(["settings tried", None, None, *map(float, trials), None])
    header = ("algorithm", "jobs", "CPU s", "in iterations", "laying out rows", "peak MB")
    table("study-rows", header, lines, "## Evaluating rows")
    total = cpu or used
    what = "the whole run" if cpu else "the sampling jobs"
    blocks, layout = np.array([blocks, layout]) + (trials if cpu else 0.0)
    print(f"\nin iterations: {blocks:.0f} s of {total:.0f} s CPU of {what}: {blocks / total:.0%}; ", end="")
    print(f"with laying out rows for them, {layout:.0f} s, {(blocks + layout) / total:.0%}")


def cpu_by_command(study: Study, folder: Path, cpu: float | None) -> None:
    """Print what the commands of a run used, and what is left for Snakemake and for scripts."""
    logs = (folder / "logs" / study.name).rglob("*.log")
    used = [one for one in map(used_by, logs) if one]
    rows: list[list[Any]] = []
    for command in dict.fromkeys(sorted(one.command for one in used)):
        some = [one for one in used if one.command == command]
        seconds = sum(one.cpu for one in some)
        rows.append([command, len(some), seconds, seconds / len(some), max(one.peak for one in some)])
    if cpu:
        rows.append(["all else", "", cpu - sum(row[2] for row in rows), "", ""])
    table("study-cpu", ("command", "jobs", "CPU s", "of one", "peak MB"), rows, "## CPU by command")


def main(study: Study, folder: str, cpu: float | None, cores: int) -> None:
    """Print all tables of a finished run."""
    place = Path(folder)
    jobs = jobs_of(study, place)
    if not jobs:
        print(f"study: no finished run of {study.name} under {place / 'results'}; make figures first")
        return
    against_reference(study, jobs)
    cpu_by_command(study, place, cpu)
    share_of_rows(study, jobs, place, cpu, cores)
