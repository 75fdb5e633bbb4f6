"""Metrics against the CPU seconds of a chain, from what sampling jobs measured (`dpmc sample --times`)."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from dpmc.common.errors import DpmcError
from dpmc.metrics.table import own_rows
from dpmc.reports.plots import Given, lines
from dpmc.studies import Study

MEASURED = ["wall_seconds", "cpu_seconds", "peak_mib"]  # of `dpmc sample --times`

reads = lines.reads  # without the measurements, which may be missing


def job_times(study: Study, results: Path) -> pd.DataFrame:
    """Return a row for each measured sampling job, in `logs` beside `results`: model, job and `MEASURED`.

    Raises DpmcError for a file that is no measurement.
    """
    folder = results.parent / "logs" / study.name / "sampling"
    jobs = [pd.DataFrame(columns=["model", "job", *MEASURED])]
    for path in sorted(folder.rglob("*.tsv")):
        model, job = path.relative_to(folder).with_suffix("").parts[:2]
        try:
            times = pd.read_csv(path, sep="\t")
            if "cpu_time" not in times:  # made by Snakemake, which only estimated the CPU seconds
                jobs.append(times[MEASURED].astype(float).assign(model=model, job=job))
        except (KeyError, ValueError) as error:
            raise DpmcError(f"{path}: not a measurement of a job ({error})") from None
    return pd.concat(jobs, ignore_index=True)


def draw(given: Given) -> Figure:
    """Return the figure, as of kind `lines`, with one more metric: `cpu_seconds` of each run.

    A job makes runs of several lengths; the seconds of a run are its share by iterations.
    """
    rows = own_rows(given.metrics, given.study)
    runs = rows[rows["metric"] == "iterations"].set_index(["model", "method"])
    seconds = job_times(given.study, given.results).groupby(["model", "job"])["cpu_seconds"].sum()
    each = seconds.rename_axis(["model", "method"]) / runs.groupby(level=[0, 1])["value"].sum()
    runs = runs.assign(metric="cpu_seconds", value=runs["value"] * each.reindex(runs.index))
    metrics = pd.concat([given.metrics, runs.dropna(subset="value").reset_index()])
    return lines.draw(replace(given, metrics=metrics))
