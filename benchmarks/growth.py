"""Measure the time of a clipped sum against rows n and parameters d; draw the figure of performance.md.

    python benchmarks/growth.py [--draw]

A minute on an idle machine; `--draw`: from the table of the last time, beside the figure.
Flat banana, 40 chains at posterior draws; bounds clip 1 % of the log ratios and 20 % of the gradients.
"""

import sys
from collections.abc import Callable

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from measuring import CHAINS, ROOT, Moves, gradient_seconds, ratio_seconds, table, walk

from dpmc.evaluators.affine import AffineEvaluator
from dpmc.models.banana import Banana
from dpmc.reports.plots import layout, style

FIGURE = ROOT / "docs" / "explanation" / "performance-growth.png"
SERIES = {
    "rows n, d = 2": [(10**e, 2) for e in range(3, 8)],
    "rows n, d = 10": [(10**e, 10) for e in range(3, 7)],
    "parameters d, n = 100,000": [(10**5, d) for d in (2, 3, 5, 10, 20, 30, 50)],
}
#: kind of sum -> the algorithm that needs it, whose line it has
STYLES = {"log ratio, one component": "dp-penalty-guided", "log ratio": "dp-penalty", "gradient": "dp-hmc"}


def measure(n: int, d: int) -> dict[str, float]:
    """Return microseconds per chain, by kind of sum."""
    model = Banana(20.0, 0.0, 0.0, np.array([20.0, 2.5] + [1.0] * (d - 2)), 1000.0)
    generator = np.random.default_rng(n + d)
    rows = model.simulate(generator, np.array([0.0, 3.0] + [0.0] * (d - 2)), n)
    evaluator = AffineEvaluator(model, rows)
    theta = model.posterior(rows, 1.0).draws(generator, CHAINS)
    sd = 2.4 / np.sqrt(d) * np.sqrt(model.variance / n)
    statistics = model.statistics(rows[:20_000])
    full, last = walk(theta, sd, 1.0), walk(theta, sd * (np.arange(d) == d - 1), 1.0)
    kinds: dict[str, Callable[[], float]] = {
        "log ratio, one component": lambda: ratio_seconds(evaluator, bounded(last, model, statistics)),
        "log ratio": lambda: ratio_seconds(evaluator, bounded(full, model, statistics)),
        "gradient": lambda: gradient_seconds(evaluator, theta, gradient_bound(theta, model, statistics)),
    }
    return {kind: 1e6 * seconds() for kind, seconds in kinds.items()}


def bounded(moves: Moves, model: Banana, statistics: np.ndarray) -> Moves:
    """Return the moves with a bound per unit distance that clips 1 % of the log ratios."""
    forms = zip(*model.ratio_form(moves.theta, moves.proposal), moves.bound, strict=True)
    relative = [np.abs(statistics @ alpha + gamma) / length for alpha, gamma, length in forms]
    return moves._replace(bound=np.quantile(relative, 0.99) * moves.bound)


def gradient_bound(theta: np.ndarray, model: Banana, statistics: np.ndarray) -> float:
    """Return a bound that clips 20 % of the gradients."""
    (linear, *_), (constant, *_) = model.gradient_form(theta)
    return float(np.quantile(np.sqrt(((statistics @ linear.T + constant) ** 2).sum(axis=1)), 0.8))


def main() -> None:
    """Measure, unless there is a table to draw; print the slopes, draw the figure."""
    if sys.argv[1:] != ["--draw"]:
        sizes = dict.fromkeys(size for sizes in SERIES.values() for size in sizes)
        rows = [(n, d, kind, time) for n, d in sizes for kind, time in measure(n, d).items()]
        columns = ["n", "d", "sum", "microseconds"]
        pd.DataFrame(rows, columns=columns).to_csv(FIGURE.with_suffix(".csv"), index=False)
    times = pd.read_csv(FIGURE.with_suffix(".csv")).set_index(["sum", "n", "d"])["microseconds"]
    slopes = []
    for name, sizes in SERIES.items():
        x = sizes_of(name)
        for kind in STYLES:
            y = times[kind][sizes].tolist()
            both = [float(np.polyfit(np.log(x[-k:]), np.log(y[-k:]), 1)[0]) for k in (len(x), 2)]
            slopes.append([f"{name}: {x[0]} to {x[-1]}", kind, y[0], y[-1], *both])
    table(("grows", "sum", "first, µs", "last, µs", "slope of log time", "of the last two"), slopes)
    style.save(draw(times), FIGURE)


def sizes_of(name: str) -> list[int]:
    """Return the sizes that vary in a series."""
    return [size[name.startswith("parameters")] for size in SERIES[name]]


@style.context()
def draw(times: pd.Series) -> Figure:
    """Return time against n and against d, on logarithmic axes."""
    figure, panels = layout.panels(len(SERIES), 3, 2.1, sharey=True)
    for axes, (name, sizes) in zip(panels, SERIES.items(), strict=True):
        for kind, look in STYLES.items():
            axes.plot(sizes_of(name), times[kind][sizes], **style.STYLES[look].line2d)
        axes.set_xlabel(name)
        layout.set_logarithmic(axes, "x")
        layout.set_logarithmic(axes, "y")
        axes.grid(True)
    panels[0].set_ylabel("µs per sum and chain")
    layout.add_legend(figure, {kind: style.STYLES[look].line2d for kind, look in STYLES.items()})
    return figure


if __name__ == "__main__":
    main()
