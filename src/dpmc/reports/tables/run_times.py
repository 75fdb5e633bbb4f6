"""Run times of the sampling jobs, which measure themselves (`dpmc sample --times`)."""

from __future__ import annotations

from pathlib import Path

from dpmc.metrics.table import own_rows, read_metrics
from dpmc.reports.plots.costs import job_times
from dpmc.reports.plots.style import method_styles, model_title
from dpmc.reports.tables.formats import Part, Table
from dpmc.studies import Study

TITLE = "Run times"
COLUMNS = ("model", "job", "jobs", "chains", "iterations", "wall_seconds", "cpu_seconds", "peak_mib")
HEADS = ("Model", "Method", "chains", "iterations", "wall s", "CPU s", "CPU µs per iteration", "peak MiB")
NOTE = (
    "Sampling jobs as their processes measured them (dpmc sample --times, in logs/): one for all ε and\n"
    "seeds of a method on a model, or of all methods of an algorithm without a budget, with start-up,\n"
    "reading of rows and writing of chains, beside whatever else the machine did. Where a cell or a chain\n"
    "is a job, seconds are summed. A job that was killed and went on has the seconds of its last part only."
)


def inputs(study: Study, results: Path) -> list[Path]:
    """Return the metrics, which have the chains' iterations and are made after all chains."""
    return [results / study.name / "metrics.csv"]


def table(study: Study, results: Path) -> Table:
    """Return the table: a row for each method on a model with measured jobs, in `logs` beside `results`."""
    iterations = own_rows(read_metrics(inputs(study, results)[0]), study).query("metric == 'iterations'")
    sizes = iterations.groupby(["model", "method"])["value"].agg(["size", "sum"])
    styles = method_styles(dict(study.methods))
    rows, shown = [], []
    measured = job_times(study, results)
    for (model, job), jobs in measured.groupby(["model", "job"], sort=False):
        labels = _methods(study, model, job, {*measured.loc[measured["model"] == model, "job"]})
        chains, total = sizes[sizes.index.isin([(model, label) for label in labels])].sum().astype(int)
        wall, cpu = jobs["wall_seconds"].sum(), jobs["cpu_seconds"].sum()
        texts = (str(chains), str(total), f"{wall:.1f}", f"{cpu:.1f}")
        peak = f"{jobs['peak_mib'].max():.0f}"
        rows.append(dict(zip(COLUMNS, (model, job, str(len(jobs)), *texts, peak), strict=True)))
        each = 1e6 * float(cpu) / max(total, 1)
        micro = f"{each:.3g}" if each < 100 else f"{each:.0f}"
        name = model_title(model, study.models[model].model) if model in study.models else model
        title = styles[job].title if job in styles else job
        shown.append((name, title, *texts, micro if each else "", peak))
    return Table(TITLE, NOTE, COLUMNS, rows, [Part("", HEADS, shown)])


def _methods(study: Study, model: str, job: str, jobs: set[str]) -> list[str]:
    """Return the methods of a job: its own, and those of its algorithm without budget and own job."""
    own = [label for label, spec in study.methods.items() if model in spec.models and not spec.from_study]
    shared = [
        label
        for label in own
        if study.methods[label].algorithm == job and study.epsilons(model, label) == ("inf",)
    ]
    return [label for label in own if label == job or (label in shared and label not in jobs)]
