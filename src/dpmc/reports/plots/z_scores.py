"""Differences between our medians and the published ones, in standard errors, against the standard normal."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from dpmc.metrics.table import read_table
from dpmc.reports.plots import ToDraw, layout, style
from dpmc.reports.plots.marks import EXACT_BAND, REFERENCE
from dpmc.studies import Study
from dpmc.studies.figures import FigureKeys

LIMIT = 3.0  # standard errors within which medians are said to agree
BLUE, RED = (style.STYLES[method].colour for method in ("dp-penalty", "minibatch-penalty"))
NEAR_MARK: dict[str, Any] = {"ls": "none", "marker": "o", "ms": 2.6, "mfc": BLUE, "mew": 0.0}
FAR_MARK: dict[str, Any] = {**NEAR_MARK, "marker": "D", "ms": 3.6, "mfc": RED}


def reads(study: Study, how: FigureKeys, results: Path) -> tuple[list[str], list[Path]]:
    """Return no model, and the table of the comparison."""
    return [], [results / study.name / "published_comparison.csv"]


def draw(given: ToDraw) -> Figure:
    """Return the figure: quantiles of all z, and of each metric's, against those of the standard normal."""
    how = given.declared
    path = reads(given.study, how, given.results)[1][0]
    table = read_table(path, ["metric", "z"], "a comparison with published boxes", {"z": float})
    table = table.dropna(subset="z")  # without a standard error there is no z
    groups = {"all": table["z"], **dict(iter(table.groupby("metric", sort=False)["z"]))}
    figure, panels = layout.panels(how.wide, len(groups), how.columns or 2, 1.6, sharex=True, sharey=True)
    for axes, (metric, scores) in zip(panels, groups.items(), strict=True):
        normal, low, high = expected(len(scores))
        z = np.sort(scores)
        axes.fill_between(normal, low, high, **EXACT_BAND)
        axes.axline((0.0, 0.0), slope=1.0, **REFERENCE)
        for side in (-LIMIT, LIMIT):
            axes.axhline(side, color=style.GREY, linewidth=0.5)
        far = np.abs(z) > LIMIT
        axes.plot(normal[~far], z[~far], **NEAR_MARK, zorder=3)
        axes.plot(normal[far], z[far], **FAR_MARK, zorder=4)
        name = "all metrics" if metric == "all" else style.metric_title(metric)
        size = np.sqrt(np.mean(z**2))
        axes.set_title(f"{name}: {len(z)}\nrms {size:.2f}, {far.sum()} beyond {LIMIT:g}")
    figure.supxlabel("quantile of the standard normal")
    figure.supylabel("z, sorted")
    layout.add_legend(
        figure,
        {
            "a median of 20 chains": NEAR_MARK,
            f"more than {LIMIT:g} errors off": FAR_MARK,
            "equal quantiles": REFERENCE,
            "95 % of independent normal z": Patch(**EXACT_BAND),
        },
    )
    return figure


def expected(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return medians (count,) of sorted independent standard normal numbers, and bounds of 95 % of each."""
    from scipy.stats import beta, norm  # slow to import, and not needed to plan a run

    rank = np.arange(1, count + 1)
    # the i-th of n uniform numbers has the distribution Beta(i, n + 1 - i)
    low, median, high = (norm.ppf(beta.ppf(share, rank, count + 1 - rank)) for share in (0.025, 0.5, 0.975))
    return median, low, high
