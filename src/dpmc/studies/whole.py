"""Metrics files of the pipeline: read, and refused if they lack rows that each cell of their study must have.

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

BASELINE = ("baseline", "")  # method and ε of exact samples


def parts(study: Study) -> list[tuple[str, str]]:
    """Return the (study, model) whose metrics a study's table has: its own, and those of reused cells."""
    chains = [(study.name, model) for model, _, _ in study.cells()]
    exact = [(study.name, model) for model, spec in study.models.items() if ":" not in spec.model]
    return list(dict.fromkeys([*chains, *exact, *study.reused()]))


def read_whole(study: Study, *paths: Path) -> DataFrame:
    """Return metrics files as one table, as `read_metrics`.

    Raises DpmcError as that does, and for <study>/metrics.csv or <study>/metrics/<model>.csv without rows
    that the study's cells must have. Other files may have any rows.
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
