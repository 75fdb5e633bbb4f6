"""Run times of the sampling jobs, which measure themselves (`dpmc sample --times`)."""

from pathlib import Path

import pandas as pd

from dpmc.metrics.table import own_rows, read_metrics
from dpmc.reports.plots.costs import job_times
from dpmc.studies import Study

TITLE = "Run times"
COLUMNS = ("model", "job", "jobs", "chains", "iterations", "wall_seconds", "cpu_seconds", "peak_mib")
NOTE = (
    "Sampling jobs as their processes measured them (dpmc sample --times, in logs/): one for all ε and\n"
    "seeds of a method on a model, or of all methods of an algorithm without a budget, with start-up,\n"
    "reading of rows and writing of chains, beside whatever else the machine did. Where a cell or a chain\n"
    "is a job, jobs is above 1 and seconds are summed. A job that was killed and went on has the seconds of\n"
    "its last part only."
)


def table(study: Study, results: Path) -> pd.DataFrame:
    """Return a row for each method on a model with measured jobs, in `logs` beside `results`."""
    metrics = own_rows(read_metrics(results / study.name / "metrics.csv"), study)
    iterations = metrics[metrics["metric"] == "iterations"]
    sizes = iterations.groupby(["model", "method"])["value"].agg(["size", "sum"])
    measured, rows = job_times(study, results), []
    for (model, job), jobs in measured.groupby(["model", "job"], sort=False):
        methods = _methods(study, model, job, {*measured.loc[measured["model"] == model, "job"]})
        chains, total = sizes[sizes.index.isin([(model, method) for method in methods])].sum().astype(int)
        wall, cpu = (round(float(jobs[name].sum()), 1) for name in ("wall_seconds", "cpu_seconds"))
        rows.append((model, job, len(jobs), chains, total, wall, cpu, round(jobs["peak_mib"].max())))
    return pd.DataFrame(rows, columns=[*COLUMNS])


def _methods(study: Study, model: str, job: str, jobs: set[str]) -> list[str]:
    """Return the methods of a job: its own, and those of its algorithm without budget and own job."""
    return [
        label
        for label, spec in study.methods.items()
        if model in spec.models and not spec.from_study
        if label == job
        or (spec.algorithm == job and study.epsilons(model, label) == ("inf",) and label not in jobs)
    ]
