"""How one evaluation grows with rows n and parameters d, with slopes and a figure."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from measuring import (
    ROOT,
    Moves,
    gradient_seconds,
    positions,
    ratio_seconds,
    slope,
    table,
    walk,
    without_sorting,
    without_tree,
)

from dpmc.evaluators.affine import AffineEvaluator
from dpmc.models.banana import Banana
from dpmc.problem import Problem

CHAINS = 20
FIGURE = ROOT / "docs" / "performance-growth.png"
DIMENSIONS = (2, 3, 5, 10, 20, 30, 50, 100)
LARGEST_ARRAY = 10**7  # numbers of a data set of more than two parameters

SORTED = "sorted, moves of a chain"
SCATTERED = "sorted, moves anywhere"
TREE = "log ratio, as built"
DENSE = "log ratio, dense"
GRADIENT = "gradient, as built"
DENSE_GRADIENT = "gradient, dense"


def problem_of(n: int, d: int) -> Problem:
    """The flat banana in d dimensions with n rows."""
    model = Banana(20.0, 0.0, 0.0, np.array([20.0, 2.5] + [1.0] * (d - 2)), 1000.0)
    true_theta = np.array([0.0, 3.0] + [0.0] * (d - 2))
    rows = model.simulate(np.random.default_rng(n + d), true_theta, n)
    none, unknown = np.empty((0, d)), np.full(d, np.nan)
    empty = np.empty((0, 0, d))
    return Problem(
        "banana",
        "banana",
        "simulated",
        model,
        rows,
        1.0,
        none,
        true_theta,
        none,
        empty,
        unknown,
        np.full((d, d), np.nan),
    )


def clip_bounds(problem: Problem, moves: Moves) -> tuple[float, float]:
    """Bounds that clip one log ratio in a hundred per unit distance, and one gradient in five."""
    model, statistics = problem.model, problem.model.statistics(problem.rows[:20000])
    alpha, ratios = np.zeros(statistics.shape[1]), []
    for theta, proposal in zip(moves.theta[:, 0], moves.proposal[:, 0], strict=True):
        gamma = model.ratio(theta, proposal, alpha)
        ratios.append(np.abs(statistics @ alpha + gamma) / np.sqrt(((theta - proposal) ** 2).sum()))
    linear, constant = np.zeros((problem.dimension, statistics.shape[1])), np.zeros(problem.dimension)
    model.gradient(moves.theta[0, 0], linear, constant)
    norms = np.sqrt(((statistics @ linear.T + constant) ** 2).sum(axis=1))
    return float(np.quantile(ratios, 0.99)), float(np.quantile(norms, 0.8))


def measure(n: int, d: int, scattered: bool) -> dict[str, float]:
    """Seconds of one evaluation of one chain, 20 chains together, by kind of evaluation."""
    problem = problem_of(n, d)
    model = problem.model
    theta = positions(problem, CHAINS)
    spread = theta.reshape(-1, d).std(axis=0)  # a chain's moves are about 2.4/√d posterior sd
    sd = 2.4 / np.sqrt(d) * np.minimum(spread, np.sqrt(problem.model.variance / n))
    clip, clip_g = clip_bounds(problem, walk(theta, sd, 1.0))
    full, one = walk(theta, sd, clip), walk(theta, sd * (np.arange(d) == d - 1), clip)
    evaluator = AffineEvaluator.build(model.statistics(problem.rows), True)
    tree = without_sorting(evaluator)
    every_row = without_tree(evaluator)
    options = {"rounds": 4 if n * d < 4_000_000 else 3}
    found = {SORTED: ratio_seconds(evaluator, model, one, **options)}
    if scattered:
        found[SCATTERED] = ratio_seconds(evaluator, model, anywhere(problem, sd), **options)
    found[TREE] = ratio_seconds(tree, model, full, **options)
    found[DENSE] = ratio_seconds(every_row, model, full, **options)
    found[GRADIENT] = gradient_seconds(tree, model, theta, clip_g, **options)
    found[DENSE_GRADIENT] = gradient_seconds(every_row, model, theta, clip_g, **options)
    return found


def anywhere(problem: Problem, sd: np.ndarray) -> Moves:
    """Moves of one component whose clip limits lie anywhere among the rows, never twice at one place."""
    generator = np.random.default_rng(3)
    sets = 2000
    rows = problem.rows[generator.integers(0, problem.n, (sets, CHAINS))]
    step = sd[1] * generator.standard_normal((sets, CHAINS))
    theta = np.zeros_like(rows)
    theta[..., 1] = rows[..., 1]
    proposal = theta.copy()
    proposal[..., 1] += step
    return Moves(theta, proposal, 0.5)


def sizes(quick: bool) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """The series: what varies, and its (n, d)."""
    largest = 5 if quick else 7
    yield "n, d = 2", [(10**e, 2) for e in range(3, largest + 1)]
    yield "n, d = 10", [(10**e, 10) for e in range(3, min(largest, 6) + 1)]
    n = 10**4 if quick else 10**5
    yield f"d, n = {n}", [(n, d) for d in DIMENSIONS if n * d <= LARGEST_ARRAY]


def main(quick: bool = False) -> None:
    """Print the tables with slopes; draw the figure."""
    series, rows, slopes = {}, [], []
    for what, grid in sizes(quick):
        found = series[what] = {size: measure(*size, what == "n, d = 2") for size in grid}
        rows += [[what, n, d, kind, 1e6 * s] for (n, d), by in found.items() for kind, s in by.items()]
        x = [size[what.startswith("d")] for size in grid]
        for kind in found[grid[0]]:
            y = [found[size][kind] for size in grid]
            upper = slice(-3, None)
            slopes.append(
                [what, kind, *(1e6 * v for v in (y[0], y[-1])), slope(x, y), slope(x[upper], y[upper])]
            )
    table("growth", ("grows", "n", "d", "evaluation", "µs"), rows, "## Growth, microseconds of CPU per chain")
    header = ("grows", "evaluation", "first, µs", "last, µs", "slope", "slope of the last three")
    table("growth-slopes", header, slopes, "## Slopes of log time")
    draw(series, slopes)


def draw(series: dict[str, Any], slopes: list[list[Any]]) -> None:
    """The figure: time against n and against d, on logarithmic axes."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    kinds = [SORTED, SCATTERED, TREE, DENSE, GRADIENT, DENSE_GRADIENT]
    styles = dict(zip(kinds, ("C2-", "C2:", "C0-", "C0--", "C3-", "C3--"), strict=True))
    by_slope = {(row[0], row[1]): row[4] for row in slopes}
    with plt.rc_context({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False}):
        figure, axes = plt.subplots(1, 3, figsize=(9.0, 3.6), sharey=True, layout="constrained")
        for ax, (what, found) in zip(axes, series.items(), strict=True):
            over_d = what.startswith("d")
            place = 0.0
            for kind in sorted(found[next(iter(found))], key=lambda kind: list(found.values())[-1][kind]):
                x, y = [size[over_d] for size in found], [1e6 * by[kind] for by in found.values()]
                (line,) = ax.loglog(x, y, styles[kind], marker=".", markersize=4, linewidth=1.2, label=kind)
                place = max(1.5 * place, y[-1])  # slopes one above the other
                ax.text(
                    1.12 * x[-1], place, f"{by_slope[what, kind]:.2f}", color=line.get_color(), fontsize=6
                )
            ax.set_xlabel("parameters d" if over_d else "rows n")
            ax.set_title(what.split(", ")[1], fontsize=8)
        axes[0].set_ylabel("µs per evaluation and chain")
        handles = axes[0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower center", ncols=3, frameon=False)
        figure.savefig(FIGURE, dpi=110)
        plt.close(figure)
    print(f"\nwritten: {FIGURE.relative_to(ROOT)}")
