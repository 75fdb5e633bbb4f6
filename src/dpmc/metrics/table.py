"""The table of a study's metrics: read, checked, and looked up by cell."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from dpmc.common.errors import DpmcError
from dpmc.common.streams import canonical_epsilon

if TYPE_CHECKING:  # pandas takes half a second, which a workflow that draws nothing need not wait
    from pandas import DataFrame

FEW_ITERATIONS = 10  # a box of chains shorter than this says how short they are
METRIC_COLUMNS = ("study", "model", "method", "epsilon", "seed", "metric", "value")
Row = dict[str, str | int | float]  #: by column


class Metric(NamedTuple):
    """What the field calls a metric, and who has it."""

    axis: str = ""  # its name at an axis; "": its id in words
    title: str = ""  # above a panel, where that is another
    of_exact_samples: bool = False  # whether exact samples have it, too


RATIO_CLIPPED = "ratio_clip_fraction"
#: "Fewer than 10 % clipped" (Section 6.3 of the thesis): with more the chain samples another distribution.
CLIP_LIMIT = 0.10
#: Metrics of metrics.csv and of the tables along chains.
METRICS = {
    "mmd": Metric("MMD", of_exact_samples=True),
    "mean_error": Metric("distance from the true mean", "error of the mean", of_exact_samples=True),
    "covariance_error": Metric(),
    "symmetric_kl": Metric("symmetric KL"),
    "outside_fraction": Metric(),
    "test_accuracy": Metric(),
    "acceptance_rate": Metric(),
    RATIO_CLIPPED: Metric("fraction clipped", "clipped log ratios"),
    "gradient_clip_fraction": Metric("fraction clipped", "clipped gradients"),
    "sum_clip_fraction": Metric("fraction clipped", "clipped summaries"),
    "noise_fraction": Metric("iterations with noise"),
    "full_batch_fraction": Metric(),
    "rows_per_iteration": Metric(),
    "rows_used": Metric("rows looked at"),
    "iterations": Metric(),
    "kept_draws": Metric(),
    "diverged": Metric(),
    "rhat_max": Metric("R-hat"),
    "ess_bulk_min": Metric("ESS"),
    "mcse_mean_max": Metric(),
    "budget_iterations": Metric("iterations allowed"),
    "epsilon_spent": Metric(),
    "epsilon_spent_tight": Metric("ε spent (tight accounting)"),
    "epsilon_total": Metric("total ε spent"),
}
TEXT_METRICS = ("status", "variant")  #: in metrics.csv beside them, with a text as value
MILESTONE_METRIC = re.compile(r"symmetric_kl_(at_\d+|by_\d+_rows)")


def is_metric(name: str) -> bool:
    """Return whether there is a metric of this name."""
    return name in METRICS or MILESTONE_METRIC.fullmatch(name) is not None


class Borrowed(Protocol):
    """Of a method, what tells which study ran it."""

    @property
    def from_study(self) -> str:
        """The name of another study that ran it; "" for its own."""


class StudyNames(Protocol):
    """Of a study, what tells which rows are its own."""

    @property
    def name(self) -> str:
        """The study's name."""

    @property
    def methods(self) -> Mapping[str, Borrowed]:
        """Methods by label."""


def read_metrics(*paths: Path) -> DataFrame:
    """Return metrics files as one typed table, see `typed`; without files it is empty.

    Raises DpmcError for a file that is missing, empty or has other columns, and for what is not a number.
    """
    import pandas as pd

    tables = [typed(read_table(path, METRIC_COLUMNS, "a CSV table of metrics"), str(path)) for path in paths]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=[*METRIC_COLUMNS, "text"])


def typed(table: DataFrame, source: str = "metrics") -> DataFrame:
    """Return a metrics table of text with its types.

    `value` is a float, NaN where the metric is one of `TEXT_METRICS`, whose value is in the column `text`.
    `epsilon` is canonical, "" for none. Other columns stay text.

    Raises DpmcError for a value or an epsilon that is not a number.
    """
    is_text = table["metric"].isin(TEXT_METRICS)
    try:
        value = table["value"].mask(is_text, "nan").astype(float)
        names = {text: canonical_epsilon(text) if text else "" for text in table["epsilon"].unique()}
    except DpmcError as error:
        raise DpmcError(f"{source}: {error}") from None
    except ValueError as error:
        raise DpmcError(f"{source}: value: {error}") from None
    # An ε spent is infinite without a guarantee; all other metrics are finite.
    unlimited = table["metric"].str.startswith("epsilon") & value.notna()
    for row in table[~(is_text | unlimited | np.isfinite(value))].itertuples():
        raise DpmcError(f"{source}: row {row.Index + 1}: {row.metric}: {row.value!r} is not a number")
    return table.assign(
        epsilon=table["epsilon"].map(names), value=value, text=table["value"].where(is_text, "")
    )


def read_table(
    path: Path, columns: Sequence[str], what: str = "a CSV table", numbers: Mapping[str, type] | None = None
) -> DataFrame:
    """Return a CSV table with these columns, as text but for `numbers`.

    Raises DpmcError for a file that is missing or is not `what`.
    """
    import pandas as pd

    if not path.is_file():
        raise DpmcError(f"{path}: no such file")
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        missing = [column for column in columns if column not in table.columns]
        if missing:
            raise DpmcError(f"{path}: column {missing[0]!r} is missing; needed: {', '.join(columns)}")
        if table.index.nlevels > 1 or table.index.dtype.kind != "i":  # what is too much becomes an index
            raise DpmcError(f"{path}: rows have more columns than the first line")
        return table.astype(numbers or {})
    except DpmcError:
        raise
    except ValueError as error:
        raise DpmcError(f"{path}: not {what} ({error})") from None


def own_rows(metrics: DataFrame, study: StudyNames) -> DataFrame:
    """Return a study's rows of a typed table: what it runs, and what it takes from others."""
    elsewhere = {label: spec.from_study for label, spec in study.methods.items() if spec.from_study}
    ran = metrics["method"].map(lambda method: elsewhere.get(method, study.name))
    return metrics[metrics["study"] == ran]


@dataclass
class Results:
    """A study's metrics, looked up by cell."""

    # (model, method, epsilon, metric) -> seed -> value
    numbers: dict[tuple[str, str, str, str], dict[str, float]] = field(default_factory=dict)
    statuses: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)
    variants: dict[str, str] = field(default_factory=dict)  # method -> how it departs from its name

    @classmethod
    def of_study(cls, metrics: DataFrame, study: StudyNames) -> Results:
        """Look up a study's rows of a typed table: what it runs, and what it takes from others."""
        rows, results = own_rows(metrics, study), cls()
        columns = (
            rows[name].tolist() for name in ("model", "method", "epsilon", "metric", "seed", "value", "text")
        )
        for model, method, epsilon, metric, seed, value, text in zip(*columns, strict=True):
            if metric == "status":
                results.statuses.setdefault((model, method, epsilon), []).append(text)
            elif metric == "variant":
                results.variants[method] = text
            else:
                results.numbers.setdefault((model, method, epsilon, metric), {})[seed] = value
        return results

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
