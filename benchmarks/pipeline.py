"""A finished study: CPU per chain and iterations per second beside the public code, and where the time went.

CPU time is the kernel's count, which every dpmc command writes at the end of its log. --jobs runs one job of
each cell again, compiled beforehand.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jobs import used_by
from measuring import ROOT, Moves, batch_seconds, gradient_seconds, ratio_seconds, table, walk

from dpmc import datasets, storage
from dpmc.sampling import build_evaluator
from dpmc.studies import Study

REFERENCE = ROOT / "data" / "published" / "reference_timings.csv"
GOALS = {"median": 200.0, "least": 25.0}
SETS = 8  # of positions along the chains, at which evaluations are timed


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


def run_job(study: Study, model: str, method: str, epsilon: str, data: Path) -> tuple[float, float]:
    """CPU seconds (user and system) and peak MB of one job with all seeds, compiled beforehand."""
    for iterations in (["--iterations", "1"], []):
        with tempfile.TemporaryDirectory() as folder:
            outputs = [f"{folder}/seed-{seed}.nc" for seed in range(study.seeds)]
            command = [
                *(sys.executable, "-m", "dpmc", "sample", "--quiet"),
                *("--study", str(study.path), "--model", model, "--method", method, "--epsilon", epsilon),
                *("--data", str(data), *iterations),
                *("--output", *outputs),
            ]
            process = subprocess.Popen(command, stderr=subprocess.DEVNULL if iterations else None)
            _, status, usage = os.wait4(process.pid, 0)
            if status:
                raise SystemExit(f"failed: {' '.join(command)}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024.0


def against_reference(study: Study, jobs: list[Job], exact: bool) -> None:
    """Print CPU per chain and iterations per second beside the public code's."""
    reference = pd.read_csv(REFERENCE, comment="#", dtype={"epsilon": str})
    known = {(row.model, row.method, row.epsilon): row for row in reference.itertuples()}
    rows, ratios = [], []
    with tempfile.TemporaryDirectory() as folder:
        for job in jobs:
            row = known.get((job.model, job.method, job.epsilon))
            if row is None:
                continue
            cpu, peak = job.cpu, job.peak
            if exact:
                data = Path(folder) / f"{job.model}.nc"
                if not data.exists():
                    spec = study.model(job.model)
                    datasets.build(job.model, spec.model, "published", spec.n).write(data)
                cpu, peak = run_job(study, job.model, job.method, job.epsilon, data)
                print(f"  {job.model} {job.method}: {cpu:.2f} s, {peak:.0f} MB", file=sys.stderr, flush=True)
            per_chain, done = cpu / job.seeds, job.iterations * job.seeds
            ratios.append(row.cpu_seconds / per_chain)
            rows.append(
                [
                    *(job.model, job.method, job.epsilon, job.iterations, per_chain, done / cpu),
                    *(row.cpu_seconds, row.cpu_seconds / row.iterations * 1e3, ratios[-1]),
                    *((done / cpu) / (row.iterations / row.cpu_seconds), peak),
                ]
            )
    header = (
        *("model", "method", "ε", "iterations", "CPU s per chain", "iterations per s"),
        *("public code, CPU s", "ms per iteration", "times less CPU", "times more per s", "peak MB"),
    )
    source = "run again, compiled beforehand" if exact else "of the run"
    table("study", header, rows, f"## CPU per chain in jobs of {study.seeds} seeds ({source})")
    if ratios:
        median, least = statistics.median(ratios), min(ratios)
        print(f"\ntimes less CPU than the public code: median {median:.0f}, least {least:.0f} ", end="")
        print(f"(goals {GOALS['median']:.0f} and {GOALS['least']:.0f})")


def seconds_per_evaluation(study: Study, job: Job, folder: Path) -> tuple[float, float]:
    """CPU seconds of one log ratio and one gradient of one chain, at positions of the job's own chains."""
    spec = study.model(job.model)
    problem = datasets.build(job.model, spec.model, spec.data, spec.n)
    values, source = study.pinned_hyperparameters(job.model, job.method)
    algorithm = study.algorithm(job.method, values, problem.dimension, source)
    place = f"chains/{job.model}/{job.method}/eps-{job.epsilon}"
    chains = [
        storage.read_chain(folder / "results" / study.name / place / f"seed-{seed}.nc").draws[0]
        for seed in range(job.seeds)
    ]
    along = np.linspace(len(chains[0]) // 2, len(chains[0]) - 1, SETS).astype(int)
    theta = np.ascontiguousarray(np.stack([draws[along] for draws in chains], axis=1))
    evaluator = build_evaluator(algorithm, problem)
    clip = getattr(algorithm, "clip_l", None) or getattr(algorithm, "clip", 1.0)
    if hasattr(algorithm, "proposal_sd"):
        moves = walk(theta, algorithm.proposal_sd, clip, algorithm.one_component)
    else:  # a trajectory ends about as far away as another position of the chain
        moves = Moves(theta, np.roll(theta, 1, axis=0), clip)
    options = {"least": 0.01, "rounds": 3}
    if algorithm.batch_size:
        return batch_seconds(evaluator, problem.model, moves, algorithm.batch_size, **options), 0.0
    ratio = ratio_seconds(evaluator, problem.model, moves, **options) if job.ratios else 0.0
    gradient = 0.0
    if job.gradients:
        gradient = gradient_seconds(evaluator, problem.model, theta, algorithm.clip_g, **options)
    return ratio, gradient


def share_of_rows(study: Study, jobs: list[Job], folder: Path, cpu: float | None) -> None:
    """Print what evaluating rows took: evaluations × seconds of one, timed at each cell's own positions."""
    longest = {job.cell: job for job in sorted(jobs, key=lambda job: job.iterations)}
    timed = {cell: seconds_per_evaluation(study, job, folder) for cell, job in sorted(longest.items())}
    groups: dict[str, list[Any]] = {}
    trials = 0.0
    for job in jobs:
        name = study.method(job.method).algorithm
        group = groups.setdefault(name, [name, 0, 0.0, 0.0, 0.0])
        ratio, gradient = timed[job.cell]
        chain = job.iterations * (job.ratios * ratio + job.gradients * gradient)
        group[1] += 1
        group[2] += job.cpu
        group[3] += job.seeds * chain
        group[4] = max(group[4], job.peak)
        if study.tuning_mode != "none" and study.model(job.model).tuning_epsilon == job.epsilon:
            trials += study.tuning_seeds * study.chains * chain
    lines = list(groups.values())
    count, used, rows = (sum(line[k] for line in lines) for k in (1, 2, 3))
    lines.append(["all sampling jobs", count, used, rows, max(line[4] for line in lines)])
    lines.append(["settings tried", None, None, trials, None])
    header = ("algorithm", "jobs", "CPU s", "CPU s in rows, estimated", "peak MB")
    table("study-rows", header, lines, "## Evaluating rows")
    total = cpu or used
    what = "the whole run" if cpu else "the sampling jobs"
    rows += trials if cpu else 0.0
    print(f"\nin rows: {rows:.0f} s of {total:.0f} s CPU of {what}: overhead {1.0 - rows / total:.0%}")


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


def main(study: Study, folder: str, cpu: float | None, exact: bool) -> None:
    """Print all tables of a finished run."""
    place = Path(folder)
    jobs = jobs_of(study, place)
    if not jobs:
        print(f"study: no finished run of {study.name} under {place / 'results'}; make figures first")
        return
    against_reference(study, jobs, exact)
    share_of_rows(study, jobs, place, cpu)
    cpu_by_command(study, place, cpu)
    wall_by_rule(study, place)
    peak = max(job.peak for job in jobs)
    print(f"largest sampling job: {peak:.0f} MB (goal: at most 1024)")
