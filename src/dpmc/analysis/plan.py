"""What a plan says: half widths of intervals by number of rows and ε."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpmc.analysis.fit import Summary
from dpmc.common.errors import DpmcError
from dpmc.common.files import given_path

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure


class Prediction(NamedTuple):
    """What a method gives at one n and ε, or why it refuses."""

    n: int
    epsilon: float
    method: str
    half_widths: Mapping[str, float] = {}  # of 90 % intervals by coefficient, in the table's units
    without_privacy: Mapping[str, float] = {}  # the same without noise
    by_prior: tuple[str, ...] = ()  # coefficients whose intervals are at least half as wide as the prior's
    seconds: float = np.nan  # of a fit, about
    hyperparameters: Mapping[str, Any] = {}  # without the noise that follows from ε
    obstacle: str = ""  # why the method refuses, and what would do

    @property
    def noise(self) -> dict[str, float]:
        """Return the share of the variance that is noise, by coefficient."""
        each = ((name, wide, self.without_privacy[name]) for name, wide in self.half_widths.items())
        return {name: max(0.0, 1.0 - (without / wide) ** 2) for name, wide, without in each}


class Plan:
    """Half widths of 90 % intervals at each n and ε, and what they assume; printed, it is a text.

    Attributes
    ----------
    model : the model.
    predictions : of each n, ε and method: half_widths, without_privacy, noise by coefficient, seconds,
        hyperparameters, or an obstacle.
    """

    def __init__(self, model: Any, predictions: tuple[Prediction, ...], notes: tuple[str, ...]) -> None:
        self.model, self.predictions, self._notes = model, predictions, notes

    def to_frame(self) -> pandas.DataFrame:
        """Return a row for each n, ε, method and coefficient; of a refusal one row, with its text."""
        import pandas

        rows: list[dict[str, Any]] = []
        for one in self.predictions:
            about = {"n": one.n, "epsilon": one.epsilon, "method": one.method}
            for name, wide in one.half_widths.items():
                numbers: dict[str, Any] = {"half_width": wide, "without_privacy": one.without_privacy[name]}
                numbers |= {"noise": one.noise[name], "seconds": one.seconds, "refusal": ""}
                rows.append({**about, "coefficient": name, **numbers})
            if one.obstacle:
                rows.append({**about, "coefficient": "", "refusal": one.obstacle})
        columns = "n epsilon method coefficient half_width without_privacy noise seconds refusal".split()
        return pandas.DataFrame(rows, columns=columns)

    def summary(self) -> Summary:
        """Return the plan to be read: half widths, in brackets the share of the variance that is noise."""
        import pandas

        methods = list(dict.fromkeys(one.method for one in self.predictions))
        several = len({one.n for one in self.predictions}) > 1
        columns: dict[str, dict[Any, str]] = {}
        for one in self.predictions:
            title = f"epsilon {one.epsilon:g}" + (f" {one.method}" if len(methods) > 1 else "")
            for name, wide in one.half_widths.items():
                key = (f"n = {one.n:,}", name) if several else name
                columns.setdefault(title, {})[key] = f"{wide:.3g} ({one.noise[name]:.0%})"
                columns.setdefault("without privacy", {})[key] = f"{one.without_privacy[name]:.3g}"
        if columns:
            columns["without privacy"] = columns.pop("without privacy")  # the last
        asked = getattr(getattr(self.model, "design", None), "formula", None) or type(self.model).__name__
        sizes = ", ".join(dict.fromkeys(f"{one.n:,}" for one in self.predictions))
        heading = (
            f"{asked}: half widths of 90 % intervals, by {', '.join(methods)}",
            f"rows: {sizes}; in brackets the share of the variance that is noise",
        )
        return Summary(heading, pandas.DataFrame(columns).fillna(""), (*self._said, *self._notes))

    @property
    def _said(self) -> list[str]:
        """Return refusals, where the prior decides, and how long a fit takes, as lines."""
        said = []
        for one in self.predictions:
            where = f"n = {one.n:,}, epsilon {one.epsilon:g}, {one.method}"
            if one.obstacle:
                said.append(f"{where}: refused: {one.obstacle}")
            if one.by_prior:
                said.append(
                    f"{where}: intervals at least half as wide as the prior's: {', '.join(one.by_prior)}"
                )
        seconds = [one.seconds for one in self.predictions if one.half_widths]
        return said + (
            [f"a fit takes about {max(seconds):.1g} s here; a release up to ten times as long"]
            if seconds
            else []
        )

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw half widths against ε, a panel for each n, dashed without privacy; write it to `path`."""
        from matplotlib.figure import Figure

        drawn = [one for one in self.predictions if one.half_widths]
        if not drawn:
            raise DpmcError("plot: every budget is refused; print the plan for why")
        sizes = list(dict.fromkeys(one.n for one in drawn))
        figure = Figure(figsize=(1.6 + 3.4 * len(sizes), 3.8), layout="constrained")
        panels = figure.subplots(1, len(sizes), sharey=True, squeeze=False)[0]
        for axes, n in zip(panels, sizes, strict=True):
            for method in dict.fromkeys(one.method for one in drawn):
                own = sorted(
                    (one for one in drawn if (one.n, one.method) == (n, method)), key=lambda one: one.epsilon
                )
                for i, name in enumerate(own[0].half_widths if own else ()):
                    colour, epsilons = f"C{i % 10}", [one.epsilon for one in own]
                    axes.loglog(
                        epsilons, [one.half_widths[name] for one in own], "o-", color=colour, label=name
                    )
                    axes.axhline(own[0].without_privacy[name], color=colour, linestyle="--", linewidth=0.8)
            axes.set_title(f"n = {n:,}", fontsize="medium")
            axes.set_xlabel("ε")
            budgets = sorted({one.epsilon for one in drawn})
            axes.set_xticks(budgets, [f"{epsilon:g}" for epsilon in budgets])
            axes.set_xticks([], minor=True)
        panels[0].set_ylabel("half width of a 90 % interval\n(dashed: without privacy)")
        handles = dict(zip(*reversed(panels[-1].get_legend_handles_labels()), strict=True))
        figure.legend(handles.values(), handles, loc="outside right center", frameon=False, fontsize="small")
        if path is not None:
            figure.savefig(given_path(path, "plot"), dpi=200)
        return figure

    def __repr__(self) -> str:
        return repr(self.summary())

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()
