"""Simulate how long a study takes on more cores, from the CPU times in the logs of a finished run.

    make figures STUDY=thesis && python benchmarks/schedule.py thesis [--folder FOLDER] [--cores 2 8 32 128]

The run must have had one sampling job for each method (`job: method`). A job of a cell or a chain gets a part
of its method's seconds, by its iterations, and the start of a process. Jobs start as Snakemake starts them:
when their inputs are there, by priority.
"""

import argparse
import heapq
from pathlib import Path
from typing import get_args

import pandas as pd
from measuring import ROOT, table
from pipeline import LAST

from dpmc import models
from dpmc.algorithms import algorithm_class
from dpmc.reports import plots
from dpmc.reports.tables import LAYOUTS
from dpmc.studies import Study, load_study
from dpmc.studies.sizes import FEW_SEEDS, MOST_SEEDS, Size, is_long

START = 1.2  # CPU seconds of a `dpmc sample` that samples next to nothing
SUBMIT = 0.012  # seconds of Snakemake itself for each job, one after the other
Job = tuple[float, float, str, set[str]]  # priority, seconds, what it makes, what it needs


def seconds_of(log: Path) -> float:
    """Return the CPU seconds that the last line of a log names; 0 without it."""
    found = LAST.search(log.read_text())
    return float(found[2]) if found else 0.0


def pieces(
    study: Study, model: str, name: str, size: str, iterations: pd.Series
) -> list[tuple[float, float]]:
    """Return the jobs that one measured job is cut into: largest ε, and share of the iterations."""
    methods = (
        [name] if name in study.methods else [m for m, s in study.methods.items() if s.algorithm == name]
    )
    cell = ["method", "epsilon", "block"]
    long = is_long(study, model, methods[0])
    size = size if size != "mixed" else "cell" if long else "method"
    levels = {"method": [], "cell": cell, "chain": [*cell, "seed"]}[size]
    chains = iterations.loc[model].loc[lambda its: its.index.get_level_values("method").isin(methods)]
    most = FEW_SEEDS if long else MOST_SEEDS
    blocks = chains.index.get_level_values("seed").astype(int) // most
    chains = chains.to_frame().set_index(blocks.rename("block"), append=True).iloc[:, 0]
    sums = chains.groupby(level=levels).sum() if levels else pd.Series({(name, "0"): chains.sum()})
    return [(float(key[1]), its / chains.sum()) for key, its in sums.items()]


def jobs_of(study: Study, folder: Path, size: str) -> list[Job]:
    """Return the jobs of a run with sampling jobs of a size, priorities as in workflow/rules."""
    logs, found = folder / "logs" / study.name, list[Job]()
    metrics = pd.read_csv(folder / "results" / study.name / "metrics.csv", dtype=str, keep_default_na=False)
    metrics = metrics[(metrics.metric == "iterations") & (metrics.study == study.name)]
    iterations = metrics.set_index(["model", "method", "epsilon", "seed"]).value.astype(float)
    for log in sorted(logs.rglob("*.log")):
        kind, *names = log.relative_to(logs).with_suffix("").parts
        cpu = seconds_of(log)
        if not cpu:
            continue
        if kind == "data":
            found.append((15000, cpu, f"data {names[0]}", set()))
        elif kind == "tuning":
            found.append((15000, cpu, " ".join(["tuning", *names]), {f"data {names[0]}-tuning"}))
        elif kind == "sampling":
            spec = study.models[names[0]]
            algorithm = study.methods[names[1]].algorithm if names[1] in study.methods else names[1]
            first = 1000 * algorithm_class(algorithm).uses_gradients
            first += 10 * len(models.definition(spec.model).true_theta)
            needs = {f"data {names[0]}-{spec.data}"}
            for epsilon, share in pieces(study, *names[:2], size, iterations):
                its = START + max(cpu - START, 0.0) * share
                found.append((first + min(epsilon, 100), its, f"sample {names[0]}", needs))
        elif kind == "evaluation" and names[0] in study.models and not names[1:]:
            found.append((10000, cpu, f"evaluate {names[0]}", {f"sample {names[0]}"}))
        elif kind == "figures" and names[0] in study.figures:
            shown = [] if names[0] in LAYOUTS else plots.reads(names[0], study)[0]
            found.append((0, cpu, "figure", {f"evaluate {model}" for model in shown}))
        else:
            found.append((0, cpu, "other", set()))
    return found


def makespan(jobs: list[Job], cores: int) -> float:
    """Return the seconds that jobs take on so many cores."""
    missing = {makes: sum(job[2] == makes for job in jobs) for _, _, makes, _ in jobs}
    waiting, ready, running = list(jobs), [], []
    now = submitted = 0.0
    while waiting or ready or running:
        for job in [job for job in waiting if not any(missing.get(need) for need in job[3])]:
            waiting.remove(job)
            heapq.heappush(ready, (-job[0], len(ready), *job[1:3]))
        while ready and len(running) < cores:
            _, _, seconds, makes = heapq.heappop(ready)
            submitted = max(submitted, now) + SUBMIT
            heapq.heappush(running, (submitted + seconds, makes))
        now, makes = heapq.heappop(running)
        missing[makes] -= 1
    return now


def main() -> None:
    """Print a row for each number of cores and size of a job."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study")
    parser.add_argument("--folder", type=Path, default=ROOT, help="where the study was run")
    parser.add_argument("--cores", type=int, nargs="+", default=[2, 8, 32, 128])
    options = parser.parse_args()
    study, rows = load_study(options.study), []
    for size in get_args(Size):
        jobs = jobs_of(study, options.folder, size)
        sampling = [job for job in jobs if job[2].startswith("sample")]
        spans = [f"{makespan(jobs, cores):.0f}" for cores in options.cores]
        total, longest = sum(job[1] for job in jobs), max(job[1] for job in sampling)
        rows.append([size, len(sampling), f"{total:.0f}", f"{longest:.0f}", *spans])
    heads = ("job", "sampling jobs", "CPU s", "longest, s", *(f"{cores} cores, s" for cores in options.cores))
    table(heads, rows)


if __name__ == "__main__":
    main()
