"""The picture of a fit: each coefficient with its interval, that without privacy, and the prior's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpmc.analysis.reading import Reading, interval_sds
from dpmc.common.errors import DpmcError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROW_INCHES, INCHES = 0.32, 6.5  #: inches of a coefficient, and of the figure
COLOURS = {"interval": "#1f5a8c", "without privacy": "#e08a1e"}


def forest(fit: Reading, level: float = 0.9) -> Figure:
    """Draw the coefficients but the intercept, in units of their standardised predictors.

    Beside each: the interval, the narrower one that these rows would have given without privacy, and in
    percent how much of the variance is noise. A grey bar is the prior's interval where it fits in.
    """
    from matplotlib.figure import Figure

    first = int(fit.model.design.intercept)
    names = fit.names[first:]
    if not names:
        raise DpmcError("plot: there is no coefficient besides the intercept; print the summary")
    side = interval_sds(level)
    scale = 1.0 / np.abs(np.diag(fit.units))[first:]
    mean = fit.mean[first:] * scale
    sds = [np.sqrt(np.diag(m))[first:] * scale for m in (fit.covariance, fit.covariance_without_privacy)]
    noise = np.clip(1.0 - (sds[1] / sds[0]) ** 2, 0.0, 1.0)
    prior = np.broadcast_to(fit.prior_sd, fit.model.dimension)[first : first + len(names)]
    place = np.arange(len(names))[::-1]
    figure = Figure(figsize=(INCHES, 1.2 + ROW_INCHES * len(names)), layout="constrained")
    axes = figure.subplots()
    widest = 1.1 * float(np.max(np.abs(mean) + side * sds[0]))
    shown = np.minimum(side * prior, widest)
    axes.barh(
        place, 2.0 * shown, left=-shown, height=0.62, color="0.93", label="prior (clipped to the frame)"
    )
    for (label, colour), sd, width, shift in zip(
        COLOURS.items(), sds, (2.4, 2.4), (0.12, -0.16), strict=True
    ):
        axes.hlines(
            place + shift, mean - side * sd, mean + side * sd, color=colour, linewidth=width, label=label
        )
    axes.plot(mean, place + 0.12, "o", color=COLOURS["interval"], markersize=5)
    axes.axvline(0.0, color="0.4", linewidth=0.8)
    axes.set_xlim(-widest, widest)
    axes.set_yticks(place, [f"{name}  ({share:.0%} noise)" for name, share in zip(names, noise, strict=True)])
    axes.set_xlabel(f"coefficient per scale of its predictor, {level:.0%} intervals")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize="small")
    return figure


def bands(fit: Reading, column: str, level: float = 0.9) -> Figure:
    """Draw the expected outcome along a column with its interval, other columns at their centre."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(INCHES, 3.6), layout="constrained")
    axes = figure.subplots()
    table, places = fit.along(column, level)
    if isinstance(places[0], str):
        centre = table["estimate"]
        errors = [centre - table["lower"], table["upper"] - centre]
        axes.errorbar(range(len(places)), centre, yerr=errors, fmt="o", color=COLOURS["interval"], capsize=3)
        axes.set_xticks(range(len(places)), places)
    else:
        axes.fill_between(
            places, table["lower"], table["upper"], color=COLOURS["interval"], alpha=0.25, linewidth=0
        )
        axes.plot(places, table["estimate"], color=COLOURS["interval"])
    axes.set_xlabel(column)
    axes.set_ylabel(f"expected {fit.model.columns[0]}, {level:.0%} interval")
    axes.spines[["top", "right"]].set_visible(False)
    return figure
