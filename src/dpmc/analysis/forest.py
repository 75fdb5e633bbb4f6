"""The picture of a fit: each coefficient with its interval, that without noise, and the prior's."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpmc.common.errors import DpmcError
from dpmc.results.parameters import interval_sds

ROW_INCHES, INCHES = 0.32, 6.5  #: inches of a coefficient, and of the figure
NAME = 50  #: letters in a line of a coefficient's name
COLOURS = {"interval": "#1f5a8c", "without noise": "#e08a1e"}


def forest(fit: Any, level: float = 0.9) -> Figure:
    """Draw the coefficients but the intercept, in units of their standardised predictors.

    Beside each: the interval, the narrower one of the same bounded answer without noise, and in
    percent how much of the variance is noise. A grey bar is the prior's interval where it fits in.
    """
    mean, sds, names = _standardised(fit)
    side, axes = interval_sds(level), _axes(len(names))
    noise = np.clip(1.0 - (sds[1] / sds[0]) ** 2, 0.0, 1.0)
    first = int(fit.model.design.intercept)
    prior = np.broadcast_to(fit.prior_sd, fit.model.dimension)[first : first + len(names)]
    place = np.arange(len(names))[::-1]
    widest = 1.1 * float(np.max(np.abs(mean) + side * sds[0]))
    shown = np.minimum(side * prior, widest)
    axes.barh(place, 2.0 * shown, left=-shown, height=0.62, color="0.93", label="prior, cut at the frame")
    for (label, colour), sd, shift in zip(COLOURS.items(), sds, (0.12, -0.16), strict=True):
        ends = mean - side * sd, mean + side * sd
        axes.hlines(place + shift, *ends, color=colour, linewidth=2.4, label=label)
    axes.plot(mean, place + 0.12, "o", color=COLOURS["interval"], markersize=5)
    axes.set_xlim(-widest, widest)
    shares = ["–" if np.isnan(share) else f"{share:.0%}" for share in noise]
    labels = [f"{name}  ({share} noise)" for name, share in zip(names, shares, strict=True)]
    return _labelled(axes, place, labels, level)


def side_by_side(fits: Mapping[str, Any], level: float = 0.9) -> Figure:
    """Draw the coefficients of several answers beside each other, by their labels, as `forest` does one."""
    named = [_standardised(fit) for fit in fits.values()]
    names = named[0][2]
    if any(other != names for _, _, other in named):
        raise DpmcError("plot: answers beside each other must have the same coefficients")
    side, axes = interval_sds(level), _axes(len(names) * len(fits) / 2.0)
    place, step = np.arange(len(names))[::-1], 0.7 / len(fits)
    for i, (label, (mean, sds, _)) in enumerate(zip(fits, named, strict=True)):
        at, shade = place + 0.35 - step * (i + 0.5), colormaps["viridis"](0.85 * i / max(1, len(fits) - 1))
        axes.errorbar(mean, at, xerr=side * sds[0], fmt="o", markersize=4, color=shade, label=label)
    return _labelled(axes, place, names, level)


def _standardised(fit: Any) -> tuple[np.ndarray, list[np.ndarray], list[str]]:
    """Return means, sds with and without noise, and names of coefficients per scale of their predictors."""
    first = int(fit.model.design.intercept)
    names = fit.names[first:]
    if not names:
        raise DpmcError("plot: there is no coefficient besides the intercept; print the summary")
    scale, table = 1.0 / np.abs(np.diag(fit.units))[first:], fit.to_frame().loc[names]
    sds = [table[column].to_numpy() * scale for column in ("sd", "without_noise")]
    return fit.mean[first:] * scale, sds, names


def _axes(rows: float) -> Axes:
    """Return the axes of a new figure for so many rows."""
    return Figure(figsize=(INCHES, 1.2 + ROW_INCHES * rows), layout="constrained").subplots()


def _labelled(axes: Axes, place: np.ndarray, names: list[str], level: float) -> Figure:
    """Return the figure of axes with names of coefficients, a line at 0 and a legend."""
    axes.axvline(0.0, color="0.4", linewidth=0.8)
    size = "small" if max(map(len, names)) > NAME else None
    axes.set_yticks(place, [textwrap.fill(name, NAME) for name in names], fontsize=size)
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.spines[["top", "right"]].set_visible(False)
    figure = axes.get_figure(root=True)
    assert figure is not None
    # Below the whole figure: below axes beside long names it would be cut.
    figure.supxlabel(f"coefficient per scale of its predictor, {level:.0%} intervals", fontsize="medium")
    figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize="small")
    return figure


def bands(fit: Any, column: str, level: float = 0.9) -> Figure:
    """Draw the expected outcome along a column with its interval, other columns at their centre."""
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
