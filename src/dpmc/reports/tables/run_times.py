"""Run times of the sampling jobs, measured by Snakemake."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpmc.common.errors import DpmcError
from dpmc.metrics.table import read_metrics
from dpmc.reports.plots.style import method_styles, model_title
from dpmc.reports.tables.formats import Part, Table

if TYPE_CHECKING:
    from dpmc.studies import Study

TITLE = "Run times"
COLUMNS = ("model", "job", "jobs", "chains", "iterations", "wall_seconds", "cpu_seconds", "peak_mib")
HEADS = ("Model", "Method", "chains", "iterations", "wall s", "CPU s", "CPU µs per iteration", "peak MiB")
NOTE = (
    "Sampling jobs as the run measured them (Snakemake's benchmark files in logs/): a process for all ε and\n"
    "seeds of a method on a model, or of all methods of an algorithm without a budget, with start-up,\n"
    "reading of rows and writing of chains, beside whatever else the machine did. Where a cell or a chain\n"
    "is a job, seconds are summed. A job that was killed and went on has the seconds of its last part only."
)


def inputs(study: Study, results: Path) -> list[Path]:
    """Return the metrics, which have the chains' iterations and are made after all chains."""
    return [results / study.name / "metrics.csv"]


def table(study: Study, results: Path) -> Table:
    """Return the table: a row for each method on a model whose jobs were measured.

    Measurements are read from the folder `logs` beside `results`. Raises DpmcError for missing metrics and
    for a file that is not a measurement.
    """
    metrics = read_metrics(inputs(study, results)[0])
    own = metrics[(metrics["study"] == study.name) & (metrics["metric"] == "iterations")]
    sizes = own.groupby(["model", "method"])["value"].agg(["size", "sum"])
    folder = results.parent / "logs" / study.name / "sampling"
    found: dict[tuple[str, str], list[Path]] = {}
    for path in sorted(folder.rglob("*.tsv")):
        model, job = path.relative_to(folder).with_suffix("").parts[:2]
        found.setdefault((model, job), []).append(path)
    rows = []
    for (model, job), files in found.items():
        measured = [one for path in files for one in _measured(path)]
        labels = _methods(study, model, job, {other for m, other in found if m == model})
        values = (
            *(model, job, len(files)),
            *sizes[sizes.index.isin([(model, label) for label in labels])].sum().astype(int),
            *(f"{sum(one[k] for one in measured):.1f}" for k in (0, 1)),
            f"{max(one[2] for one in measured):.0f}",
        )
        rows.append(dict(zip(COLUMNS, map(str, values), strict=True)))
    return Table(TITLE, NOTE, COLUMNS, rows, [Part("", HEADS, [_shown(study, row) for row in rows])])


def _methods(study: Study, model: str, job: str, jobs: set[str]) -> list[str]:
    """Return the methods of a job: its own, and those of its algorithm without budget and own job."""
    return [
        label
        for label, spec in study.methods.items()
        if model in spec.models
        and not spec.from_study
        and (
            label == job
            or (spec.algorithm == job and label not in jobs and study.epsilons(model, label) == ("inf",))
        )
    ]


def _measured(path: Path) -> list[tuple[float, float, float]]:
    """Return wall and CPU seconds and peak memory in MiB of each run of a job; 0 if not measured."""
    import pandas as pd

    columns = ["s", "cpu_time", "max_rss"]
    try:
        table = pd.read_csv(path, sep="\t", usecols=columns, na_values=["-", "NA"])
        return list(table[columns].astype(float).fillna(0.0).itertuples(index=False, name=None))
    except (KeyError, ValueError) as error:
        raise DpmcError(f"{path}: not a measurement of a job ({error!r})") from None


def _shown(study: Study, row: dict[str, str]) -> list[str]:
    """Return a row for readers."""
    styles, model, job = method_styles(dict(study.methods)), row["model"], row["job"]
    name = model_title(model, study.models[model].model) if model in study.models else model
    each = 1e6 * float(row["cpu_seconds"]) / int(row["iterations"]) if int(row["iterations"]) else 0.0
    return [
        name,
        styles[job].title if job in styles else job,
        *(row[column] for column in ("chains", "iterations", "wall_seconds", "cpu_seconds")),
        (f"{each:.0f}" if each >= 100 else f"{each:.3g}") if each else "",
        row["peak_mib"],
    ]
