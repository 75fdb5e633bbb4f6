"""The table of a study's metrics, read and checked; standard errors of medians."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dpmc.common.errors import DpmcError
from dpmc.common.streams import canonical_epsilon

if TYPE_CHECKING:  # pandas takes half a second, which a workflow that draws nothing need not wait
    from pandas import DataFrame

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
    "mmd_fixed": Metric("MMD, kernel of fixed width", of_exact_samples=True),
    "mean_error": Metric("distance of the mean", "error of the mean", of_exact_samples=True),
    "symmetric_kl": Metric("symmetric KL"),
    RATIO_CLIPPED: Metric("fraction clipped", "clipped log ratios"),
    "gradient_clip_fraction": Metric("fraction clipped", "clipped gradients"),
    "noise_fraction": Metric("iterations with noise"),
    "rows_used": Metric("rows looked at"),
    "rhat_max": Metric("R-hat"),
    "ess_bulk_min": Metric("ESS"),
    "budget_iterations": Metric("iterations allowed"),
    "epsilon_spent_tight": Metric("ε spent (tight accounting)"),
    "epsilon_total": Metric("total ε spent"),
    # Of repeated runs (`metrics.coverage`):
    "error": Metric("distance from the exact mean (sds)"),
    "error_true": Metric("distance from the true θ (sds)"),
    **{f"coverage_{level}": Metric(f"coverage of {level} % intervals") for level in (50, 90)},
    **{f"width_{level}": Metric(f"width of {level} % intervals (sds)") for level in (50, 90)},
    "log_score": Metric("predictive log score"),
    "cpu_seconds": Metric("CPU seconds"),
    # Whose ids are their names:
    **dict.fromkeys(("acceptance_rate", "test_accuracy", "covariance_error", "mcse_mean_max"), Metric()),
    **dict.fromkeys(("iterations", "kept_draws", "diverged", "outside_fraction", "epsilon_spent"), Metric()),
    **dict.fromkeys(("full_batch_fraction", "rows_per_iteration"), Metric()),
}
TEXT_METRICS = ("status", "variant")  #: in metrics.csv beside them, with a text as value
MILESTONE_METRIC = re.compile(r"symmetric_kl_(at_\d+|by_\d+_rows)")


def is_metric(name: str) -> bool:
    """Return whether there is a metric of this name."""
    return name in METRICS or MILESTONE_METRIC.fullmatch(name) is not None


def read_metrics(*paths: Path) -> DataFrame:
    """Return metrics files as one typed table, see `typed`; raise DpmcError for what is not such a file."""
    import pandas as pd

    tables = [typed(read_table(path, METRIC_COLUMNS, "a CSV table of metrics"), str(path)) for path in paths]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=[*METRIC_COLUMNS, "text"])


def typed(table: DataFrame, source: str = "metrics") -> DataFrame:
    """Return a metrics table of text with its types.

    `value` is a float, NaN where the metric is one of `TEXT_METRICS`, whose value is in the column `text`;
    `epsilon` is canonical, "" for none. Raises DpmcError for one of them that is not a number.
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
    """Return a CSV table with these columns, text but for `numbers`; raise DpmcError unless it is `what`."""
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


def error_of_median(q1: float, q3: float, m: int) -> float:
    """Return the standard error of a median of m values, 1.2533 σ/√m if they are normal; NaN for m < 2."""
    # √(π/2), and the distance of the quartiles in units of σ.
    return 1.2533 * float(q3 - q1) / 1.349 / math.sqrt(m) if m > 1 else math.nan


def median_error(values: list[float]) -> float:
    """Return the standard error of the median of values; NaN for fewer than two."""
    if not values:
        return math.nan
    q1, q3 = np.quantile(values, [0.25, 0.75])
    return error_of_median(q1, q3, len(values))
