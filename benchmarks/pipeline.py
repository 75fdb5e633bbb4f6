"""A finished study: CPU per chain and iterations per second beside the public code, and where the time went.

CPU time is the kernel's count, which every dpmc command writes at the end of its log.
"""

import json
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jobs import used_by
from measuring import ROOT, table

from dpmc import cli, sampling, storage
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
    ratios: int  # per iteration
    gradients: int
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
            iterations, ratios, gradients = (
                int(file.getncattr(name))
                for name in (
                    "iterations",
                    "ratio_evaluations_per_iteration",
                    "gradient_evaluations_per_iteration",
                )
            )
        counts = (len(chains), iterations, ratios, gradients)
        cpu, peak = sum(one.cpu for one in used if one), max(one.peak for one in used if one)
        found.append(Job(model, method, epsilon, *counts, cpu, peak))
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


def sample_again(study: Study, job: Job, folder: Path) -> tuple[float, float]:
    """What parts of a job's CPU time its blocks of iterations took, and laying out rows for them."""
    with tempfile.TemporaryDirectory() as place:
        command = [
            *("sample", "--quiet", "--study", str(study.path), "--model", job.model, "--method", job.method),
            *("--data", str(folder / "data" / study.name / job.model / f"{study.model(job.model).data}.nc")),
            *("--epsilon", job.epsilon, "--seed", *map(str, range(job.seeds))),
            *("--output", f"{place}/seed-{{seed}}.nc"),
        ]
        with redirect_stderr(None):
            cli.main([*command, "--iterations", "1"])  # imports, and loads machine code
        began = time.process_time()
        with (
            timing(sampling, "compiled_iterations") as blocks,
            timing(sampling, "build_evaluator") as layout,
        ):
            cli.main(command)
        whole = time.process_time() - began
    return sum(blocks) / whole, sum(layout) / whole


def share_of_rows(study: Study, jobs: list[Job], folder: Path, cpu: float | None, cores: int) -> None:
    """Print what the iterations took, next to all of it evaluations of rows.

    The longest job of each cell runs again, as many at a time as in the run, which share caches and cores. It
    tells the parts of the time that the job took in the run.
    """
    longest = list({job.cell: job for job in sorted(jobs, key=lambda job: job.iterations)}.values())
    longest.sort(key=lambda job: -job.cpu)
    with ProcessPoolExecutor(cores, multiprocessing.get_context("fork")) as pool:
        again = pool.map(sample_again, repeat(study), longest, repeat(folder))
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
        seconds = [one.cpu for one in used if one.command == command]
        rows.append([command, len(seconds), sum(seconds), sum(seconds) / len(seconds)])
    if cpu:
        rows.append(["all else", "", cpu - sum(row[2] for row in rows), ""])
    table("study-cpu", ("command", "jobs", "CPU s", "of one"), rows, "## CPU by command")


def wall_by_rule(study: Study, folder: Path) -> None:
    """Print what Snakemake noted of the run: jobs, their wall time by rule, and the whole."""
    seen: dict[Any, tuple[str, float, float]] = {}
    for path in (folder / ".snakemake" / "metadata").glob("*"):
        about = json.loads(path.read_text())
        if study.name in str(about.get("shellcmd", "")) and about.get("starttime"):
            key = (about["rule"], about["shellcmd"])
            seen[key] = (about["rule"], about["starttime"], about["endtime"])
    if not seen:
        return
    rules: dict[str, list[float]] = {}
    for rule, began, ended in seen.values():
        line = rules.setdefault(rule, [0, 0.0])
        line[0] += 1
        line[1] += max(0.0, ended - began)
    rows = [[rule, int(count), seconds] for rule, (count, seconds) in sorted(rules.items())]
    table("study-wall", ("rule", "jobs", "wall s, summed"), rows, "## Jobs, as Snakemake noted them")
    first, last = min(job[1] for job in seen.values()), max(job[2] for job in seen.values())
    print(f"\nfrom the first job's start to the last one's end: {last - first:.0f} s of wall time")


def main(study: Study, folder: str, cpu: float | None, cores: int) -> None:
    """Print all tables of a finished run."""
    place = Path(folder)
    jobs = jobs_of(study, place)
    if not jobs:
        print(f"study: no finished run of {study.name} under {place / 'results'}; make figures first")
        return
    against_reference(study, jobs)
    share_of_rows(study, jobs, place, cpu, cores)
    cpu_by_command(study, place, cpu)
    wall_by_rule(study, place)
    peak = max(job.peak for job in jobs)
    print(f"largest sampling job: {peak:.0f} MB (goal: at most 1024)")
