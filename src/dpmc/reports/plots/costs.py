"""Measured CPU seconds of sampling jobs, and of an iteration."""

from collections.abc import Collection
from pathlib import Path

import pandas as pd

from dpmc.common.errors import DpmcError
from dpmc.reports.plots import ToDraw
from dpmc.studies import Study
from dpmc.studies.whole import own_rows

MEASURED = ["wall_seconds", "cpu_seconds", "peak_mib"]  # of `dpmc sample --times`


def job_times(study: Study, results: Path) -> pd.DataFrame:
    """Return model, job and `MEASURED` of each measured sampling job, in `logs` beside `results`."""
    folder = results.parent / "logs" / study.name / "sampling"
    jobs = [pd.DataFrame(columns=["model", "job", *MEASURED])]
    for path in sorted(folder.rglob("*.tsv")):
        try:
            model, job = path.relative_to(folder).with_suffix("").parts[:2]
            times = pd.read_csv(path, sep="\t")
            if "cpu_time" not in times:  # made by Snakemake, which only estimated the CPU seconds
                jobs.append(times[MEASURED].astype(float).assign(model=model, job=job))
        except (KeyError, ValueError) as error:
            raise DpmcError(f"{path}: not a measurement of a job ({error})") from None
    return pd.concat(jobs, ignore_index=True)


def methods_of_job(study: Study, model: str, job: str, jobs: Collection[str]) -> list[str]:
    """Return the methods of a job: its own, and those of its algorithm without budget and own job."""
    return [
        label
        for label, spec in study.methods.items()
        if model in spec.models and not spec.from_study
        if label == job
        or (spec.algorithm == job and study.epsilons(model, label) == ("inf",) and label not in jobs)
    ]


def seconds_per_iteration(given: ToDraw) -> dict[tuple[str, str], float]:
    """Return CPU seconds of an iteration by model and method: of its jobs, shared by all their iterations."""
    rows = own_rows(given.metrics, given.study)
    made = rows[rows["metric"] == "iterations"].groupby(["model", "method"])["value"].sum()
    seconds: dict[tuple[str, str], float] = {}
    for model, times in job_times(given.study, given.results).groupby("model"):
        for job, spent in times.groupby("job")["cpu_seconds"].sum().items():
            methods = methods_of_job(given.study, model, job, set(times["job"]))
            total = made[made.index.isin([(model, method) for method in methods])].sum()
            seconds |= {(model, method): spent / total for method in methods if total}
    return pd.Series(
        seconds, index=pd.MultiIndex.from_tuples(seconds, names=["model", "method"]), dtype=float
    )
