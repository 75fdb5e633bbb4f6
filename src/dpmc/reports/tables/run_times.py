"""Run times of the sampling jobs, which measure themselves (`dpmc sample --times`)."""

from pathlib import Path

import pandas as pd

from dpmc.common.errors import DpmcError
from dpmc.metrics.table import own_rows, read_metrics
from dpmc.studies import Study

TITLE = "Run times"
COLUMNS = ("model", "job", "jobs", "chains", "iterations", "wall_seconds", "cpu_seconds", "peak_mib")
MEASURED = ["wall_seconds", "cpu_seconds", "peak_mib"]  # of `dpmc sample --times`
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
    folder = results.parent / "logs" / study.name / "sampling"
    measured: dict[tuple[str, str], list[pd.DataFrame]] = {}  # of each (model, job)
    for path in sorted(folder.rglob("*.tsv")):
        try:
            times = pd.read_csv(path, sep="\t")
            if "cpu_time" in times:  # made by Snakemake, which only estimated the CPU seconds
                continue
            times = times[MEASURED].astype(float)
        except (KeyError, ValueError) as error:
            raise DpmcError(f"{path}: not a measurement of a job ({error})") from None
        model, job = path.relative_to(folder).with_suffix("").parts[:2]
        measured.setdefault((model, job), []).append(times)
    rows = []
    for (model, job), files in measured.items():
        methods = _methods(study, model, job, {other for m, other in measured if m == model})
        chains, total = sizes[sizes.index.isin([(model, method) for method in methods])].sum().astype(int)
        jobs = pd.concat(files)
        wall, cpu = (round(float(jobs[name].sum()), 1) for name in MEASURED[:2])
        rows.append((model, job, len(files), chains, total, wall, cpu, round(jobs["peak_mib"].max())))
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
