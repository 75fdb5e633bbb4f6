"""Measure the time of a clipped sum against rows n and parameters d; draw the figure of performance.md.

    python benchmarks/growth.py

Flat banana, 40 chains at posterior draws; bounds clip 1 % of the log ratios and 20 % of the gradients.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from measuring import CHAINS, ROOT, Moves, gradient_seconds, ratio_seconds, table, walk

from dpmc.evaluators.affine import AffineEvaluator
from dpmc.models.banana import Banana

FIGURE = ROOT / "docs" / "explanation" / "performance-growth.png"
SERIES = {
    "rows n, d = 2": [(10**e, 2) for e in range(3, 8)],
    "rows n, d = 10": [(10**e, 10) for e in range(3, 7)],
    "parameters d, n = 100000": [(10**5, d) for d in (2, 3, 5, 10, 20, 30, 50)],
}
STYLES = {"log ratio, one component": "C2", "log ratio": "C0", "gradient": "C3"}


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
    """Print the slopes, draw the figure."""
    found = {name: {size: measure(*size) for size in sizes} for name, sizes in SERIES.items()}
    rows = []
    for name, by in found.items():
        x = sizes_of(name, by)
        for kind in STYLES:
            y = [one[kind] for one in by.values()]
            slopes = [float(np.polyfit(np.log(x[-k:]), np.log(y[-k:]), 1)[0]) for k in (len(x), 2)]
            rows.append([f"{name}: {x[0]} to {x[-1]}", kind, y[0], y[-1], *slopes])
    table(("grows", "sum", "first, µs", "last, µs", "slope of log time", "of the last two"), rows)
    draw(found)


def sizes_of(name: str, by: dict[tuple[int, int], Any]) -> list[int]:
    """Return the sizes that vary in a series."""
    return [size[name.startswith("parameters")] for size in by]


def draw(found: dict[str, Any]) -> None:
    """Draw time against n and against d, on logarithmic axes."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 3, figsize=(9.0, 3.2), sharey=True, layout="constrained")
    for ax, (name, by) in zip(axes, found.items(), strict=True):
        for kind, color in STYLES.items():
            ax.loglog(sizes_of(name, by), [one[kind] for one in by.values()], color, marker=".", label=kind)
        ax.set_xlabel(name)
        if name.startswith("parameters"):
            ax.set_xticks(sizes_of(name, by), map(str, sizes_of(name, by)))
        ax.minorticks_off()
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("µs per sum and chain")
    axes[0].legend(frameon=False, fontsize="small")
    figure.savefig(FIGURE, dpi=110)


if __name__ == "__main__":
    main()
