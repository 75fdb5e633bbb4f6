"""Metrics against what they cost: rows of a model, and measured CPU seconds of a chain."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from dpmc.base import Array
from dpmc.common.errors import DpmcError
from dpmc.reports.plots import ToDraw, layout, lines, marks, style
from dpmc.reports.plots.selection import methods_of, models_of
from dpmc.studies import Study, number_of_rows
from dpmc.studies.whole import Results, own_rows

MEASURED = ["wall_seconds", "cpu_seconds", "peak_mib"]  # of `dpmc sample --times`

reads = lines.reads  # without the measurements, which may be missing


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


def by_seconds(given: ToDraw) -> Figure:
    """Return the figure of kind `lines` with `cpu_seconds` of each run."""
    rows = own_rows(given.metrics, given.study)
    runs = rows[rows["metric"] == "iterations"].set_index(["model", "method"])
    seconds = seconds_per_iteration(given)
    each = [seconds.get(cell, np.nan) for cell in runs.index]
    runs = runs.assign(metric="cpu_seconds", value=runs["value"] * each)
    metrics = pd.concat([given.metrics, runs.dropna(subset="value").reset_index()])
    return lines.draw(replace(given, metrics=metrics))


def by_rows(given: ToDraw) -> Figure:
    """Return the figure: medians with quartiles of models that differ in n, along n, by metric, at one ε."""
    study, how = given.study, given.declared
    results = Results(given.metrics, study)
    rows = {model: number_of_rows(study, model) for model in models_of(study, how.models)}
    models = sorted(rows, key=lambda model: rows[model])
    entries: layout.Entries = {}
    figure, places = layout.panels(how.wide, len(how.metric), how.columns or 1, 1.8)
    for axes, metric in zip(places, how.metric, strict=True):
        for method in methods_of(study, how.methods, models):
            look = style.line_style(study, method, how.titles.get(method, ""))
            for epsilon in study.epsilons(models[0], method):
                runs = {rows[model]: results.values(model, method, epsilon, metric) for model in models}
                if any(runs.values()):
                    lines.draw_cells(axes, lines.Curve(look, _points(runs)), aside=0.0)
                    entries[f"{look.title}, ε = {epsilon}"] = look.line2d
        exact = {rows[model]: results.baselines(model, metric) for model in models}
        if any(exact.values()):
            n, median, low, high = _points(exact, (0.5, 0.0, 1.0))
            axes.fill_between(n, low, high, **marks.EXACT_BAND, zorder=0.5)
            axes.plot(n, median, color="black", linewidth=0.4, zorder=1)
            entries |= marks.exact_samples(max(map(len, exact.values())))
        layout.set_logarithmic(axes, "x")
        layout.scale_y(axes, how.y)
        axes.set(xlabel="rows n", ylabel=style.metric_label(metric))
    layout.add_legend(figure, entries)
    return figure


def _points(runs: dict[int, list[float]], at: tuple[float, ...] = (0.5, 0.25, 0.75)) -> Array:
    """Return n and the quantiles `at` of the values of each n that has some, rows (1 + len(at), number)."""
    return np.array([(n, *np.quantile(values, at)) for n, values in runs.items() if values]).T
