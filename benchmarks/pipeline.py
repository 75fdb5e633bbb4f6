"""A finished study: CPU per chain and iterations per second beside the public code, and where the time went.

CPU time is the kernel's count, which every dpmc command writes at the end of its log.
"""

import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from jobs import used_by
from measuring import ROOT, table

from dpmc import cli, compiler, sampling, storage
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


def of_sampling(study: Study, job: Job, folder: Path, place: str) -> list[str]:
    """The command that samples a job again, into another folder."""
    data = folder / "data" / study.name / job.model / f"{study.model(job.model).data}.nc"
    tuned = folder / "results" / study.name / "tuning" / job.model / f"{job.method}.yaml"
    return [
        *("sample", "--quiet", "--study", str(study.path), "--model", job.model),
        *("--method", job.method, "--epsilon", job.epsilon, "--seed", *map(str, range(job.seeds))),
        *("--data", str(data), "--output", f"{place}/seed-{{seed}}.nc"),
        *(("--hyperparameters", str(tuned)) if study.is_tried(job.model, job.method) else ()),
    ]


def of_tuning(study: Study, job: Job, folder: Path, place: str) -> list[str]:
    """The command that tries a cell's settings again."""
    data = folder / "data" / study.name / job.model / "tuning.nc"
    cell = ("--study", str(study.path), "--model", job.model, "--method", job.method)
    return ["tune", "--quiet", *cell, "--data", str(data), "--output", f"{place}/tuned.yaml"]


def run_again(work: tuple[Any, Study, Job, Path]) -> tuple[float, float]:
    """What parts of a command's CPU time its blocks of iterations took, and laying out rows for them.

    Wants a process of its own.
    """
    arguments, *job = work
    with (
        tempfile.TemporaryDirectory() as place,
        timing(sampling, "compiled_iterations") as blocks,
        timing(compiler, "_compile_once") as loading,  # of machine code, in the first block
        timing(sampling, "build_evaluator") as layout,
    ):
        status = cli.main(arguments(*job, place))
        whole = time.process_time()  # of all that this process did
    if status:  # an exit would leave the pool waiting
        raise RuntimeError(f"{job[1].model} {job[1].method}: failed, for the reason above")
    return (sum(blocks) - sum(loading)) / whole, sum(layout) / whole


def share_of_rows(study: Study, jobs: list[Job], folder: Path, cpu: float | None, cores: int) -> None:
    """Print what the iterations took, next to all of it evaluations of rows.

    The longest job of each cell and the trials of settings run again, as many at a time as in the run, which
    share caches and cores. Parts of their time are parts of what they took in the run. What the longest job
    spent beside iterations is counted for each job of its cell, which write no more.
    """
    longest = list({job.cell: job for job in sorted(jobs, key=lambda job: job.iterations)}.values())
    longest.sort(key=lambda job: -job.cpu)
    tried = [job for job in longest if study.is_tried(job.model, job.method)]
    logs = folder / "logs" / study.name / "tuning"
    trials = [used.cpu if (used := used_by(logs / job.model / f"{job.method}.log")) else 0.0 for job in tried]
    work = [(of_sampling, study, job, folder) for job in longest]
    work += [(of_tuning, study, job, folder) for job in tried]
    with multiprocessing.get_context("fork").Pool(cores, maxtasksperchild=1) as pool:
        parts = pool.map(run_again, work, chunksize=1)
    again = list(zip(longest, parts, strict=False))
    beside = {job.cell: job.cpu * (1.0 - part) for job, (part, _) in again}
    laid = {job.cell: job.cpu * part for job, (_, part) in again}
    layout = sum(laid[job.cell] for job in jobs)
    groups: dict[str, list[Any]] = {}
    for job in jobs:
        name = study.method(job.method).algorithm
        group = groups.setdefault(name, [name, 0, 0.0, 0.0, 0.0])
        for place, value in enumerate((1, job.cpu, max(0.0, job.cpu - beside[job.cell])), start=1):
            group[place] += value
        group[4] = max(group[4], job.peak)
    lines = list(groups.values())
    count, used, blocks = (sum(line[k] for line in lines) for k in (1, 2, 3))
    lines.append(["all sampling jobs", count, used, blocks, max(line[4] for line in lines)])
    pairs = list(zip(trials, parts[len(longest) :], strict=True))
    in_trials = sum(seconds * part for seconds, (part, _) in pairs)
    lines.append(["settings tried", len(tried), sum(trials), in_trials, None])
    table(
        "study-rows", ("algorithm", "jobs", "CPU s", "in iterations", "peak MB"), lines, "## Evaluating rows"
    )
    layout += sum(seconds * part for seconds, (_, part) in pairs)
    total, blocks = (cpu, blocks + in_trials) if cpu else (used, blocks)
    what = "the whole run" if cpu else "the sampling jobs"
    print(f"\nin iterations: {blocks:.0f} s of {total:.0f} s CPU of {what}: {blocks / total:.1%}; ", end="")
    print(f"with laying out rows for them, {layout:.0f} s, {(blocks + layout) / total:.1%}")


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
