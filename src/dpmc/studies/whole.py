"""Metrics of a study, looked up by cell; files that lack rows which each of its cells must have are refused.

A file that was cut at the end of a line is a table like any other, from which chains, cells or exact samples
would silently be missing.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpmc.common.errors import DpmcError
from dpmc.data import images
from dpmc.data.datasets import BASELINES
from dpmc.metrics.table import read_metrics
from dpmc.models import definition
from dpmc.studies.loading import load_study
from dpmc.studies.study import Study

if TYPE_CHECKING:  # pandas takes half a second
    from pandas import DataFrame

FEW_ITERATIONS = 10  # a box of chains shorter than this says how short they are
BASELINE = ("baseline", "")  # method and ε of exact samples


def parts(study: Study) -> list[tuple[str, str]]:
    """Return the (study, model) whose metrics a study's table has: its own, and those of reused cells."""
    chains = [(study.name, model) for model, _, _ in study.cells()]
    exact = [(study.name, model) for model, spec in study.models.items() if ":" not in spec.model]
    return list(dict.fromkeys([*chains, *exact, *study.reused()]))


def read_whole(study: Study, *paths: Path) -> DataFrame:
    """Return metrics files as one table, as `read_metrics`.

    Raises DpmcError for <study>/metrics.csv or <study>/metrics/<model>.csv without rows that the study's
    cells must have. Other files may have any rows.
    """
    for path in paths:
        whole = path.name == "metrics.csv" and path.parent.name == study.name
        if not whole and path.parent.name != "metrics":
            continue
        table, one = read_metrics(path), (path.parent.parent.name, path.stem)
        for name, model in parts(study):
            if whole or one == (name, model):
                of = study if name == study.name else load_study(study.path.parent / f"{name}.yaml")
                if lacking := _lacking(table, of, model):
                    rule = f"rule {'metrics' if whole else 'evaluate'} makes it anew once it is removed"
                    raise DpmcError(f"{path}: {lacking} is missing, it may be cut off; {rule}")
    return read_metrics(*paths)


def _lacking(table: DataFrame, study: Study, model: str) -> str:
    """Return the first of the rows of a model that is missing, in words; "" if none is."""
    spec = study.models[model]
    if images.why_missing(spec.data):  # left out by the pipeline
        return ""
    rows = table[(table["study"] == study.name) & (table["model"] == model)]
    metrics = rows.groupby(["method", "epsilon", "seed"])["metric"].agg(set).to_dict()
    for _, method, epsilon in (cell for cell in study.cells() if cell[0] == model):
        # What is not computed is in a row `status`, after all others.
        last = ["mcse_mean_max"]
        if study.epsilon_kind == "total" and epsilon != "inf":
            last.append("epsilon_spent_tight")
        for seed in (*map(str, range(study.seeds)), ""):
            made = metrics.get((method, epsilon, seed), set())
            for metric in last if seed == "" else ["covariance_error"]:
                if not made & {metric, "status"}:
                    which = f"seed {seed}" if seed else "all seeds"
                    return f"{model}, {method}, ε = {epsilon}, {which}: {metric}"
    exact = ":" not in spec.model and hasattr(definition(spec.model).model, "posterior")
    first = metrics.get((*BASELINE, "0"), set()) | {"mmd"}
    for number in range(BASELINES if exact else 0):
        if missing := first - metrics.get((*BASELINE, str(number)), set()):
            return f"{model}, exact sample {number}: {min(missing)}"
    return ""


def own_rows(metrics: DataFrame, study: Study) -> DataFrame:
    """Return a study's rows of a typed table: what it runs, and what it takes from others."""
    elsewhere = {label: spec.from_study for label, spec in study.methods.items() if spec.from_study}
    ran = metrics["method"].map(lambda method: elsewhere.get(method, study.name))
    return metrics[metrics["study"] == ran]


class Results:
    """A study's rows of a typed table, looked up by cell: what it runs, and what it takes from others."""

    def __init__(self, metrics: DataFrame, study: Study) -> None:
        # (model, method, epsilon, metric) -> seed -> value
        self.numbers: dict[tuple[str, str, str, str], dict[str, float]] = {}
        self.statuses: dict[tuple[str, str, str], list[str]] = {}
        self.variants: dict[str, str] = {}  # method -> how it departs from its name
        rows = own_rows(metrics, study)[["model", "method", "epsilon", "metric", "seed", "value", "text"]]
        for model, method, epsilon, metric, seed, value, text in rows.itertuples(index=False):
            if metric == "status":
                self.statuses.setdefault((model, method, epsilon), []).append(text)
            elif metric == "variant":
                self.variants[method] = text
            else:
                self.numbers.setdefault((model, method, epsilon, metric), {})[seed] = value

    def values(self, model: str, method: str, epsilon: str, metric: str) -> list[float]:
        """The metric's value for each seed that has one."""
        return list(self.by_seed(model, method, epsilon, metric).values())

    def by_seed(self, model: str, method: str, epsilon: str, metric: str) -> dict[str, float]:
        """The metric's values, by seed."""
        return self.numbers.get((model, method, epsilon, metric), {})

    def baselines(self, model: str, metric: str) -> list[float]:
        """The metric's value for exact samples."""
        return self.values(model, "baseline", "", metric)

    def iterations(self, model: str, method: str, epsilon: str) -> int | None:
        """Iterations of the cell's shortest chain."""
        lengths = self.values(model, method, epsilon, "iterations")
        return int(min(lengths)) if lengths else None

    def remark(self, model: str, method: str, epsilon: str, metric: str) -> str:
        """Say why a cell has no values, or how many iterations if few, and how many chains have a value."""
        known = len(self.values(model, method, epsilon, metric))
        if not known:
            return "no box: " + self._why_missing(model, method, epsilon, metric)
        lengths = self.values(model, method, epsilon, "iterations")
        parts = [f"k = {min(lengths):.0f}"] if lengths and min(lengths) < FEW_ITERATIONS else []
        return ", ".join([*parts, f"{known} of {len(lengths)}"] if known < len(lengths) else parts)

    def _why_missing(self, model: str, method: str, epsilon: str, metric: str) -> str:
        """Why there is no value, in at most 30 letters."""
        length = self.iterations(model, method, epsilon)
        if length is None:
            return "no results"
        if length < FEW_ITERATIONS:
            return f"{length} iteration{'' if length == 1 else 's'}"
        for status in self.statuses.get((model, method, epsilon), []):
            for reason in status.split("; "):
                names, _, text = reason.partition(": ")
                if metric in names.split(", "):
                    return text if len(text) <= 30 else text[:29].rstrip() + "…"
        return "not computed"
