"""The exact log posterior on a grid, drawn as contours behind points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpmc.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpmc.problem import Problem

Floats = npt.NDArray[np.float64]
GRID = 300  # points a side: a narrow ridge stays smooth at 300 dots per inch
LEVELS = 6
DARKEST = "#6F9AC3"


def log_posterior(problem: Problem, points: Floats) -> Floats:
    """Return T Σ_j ln p(x_j|θ) + ln p(θ) of points (m, d) as (m,), up to one constant.

    From the rows' sufficient statistics, unclipped and without noise: models with an affine form are
    exponential families, whose rows enter through their totals only.
    """
    totals = problem.model.statistics(problem.rows).sum(axis=0)
    points = np.ascontiguousarray(points, dtype=float)
    origin = np.broadcast_to(np.array(problem.true_theta, dtype=float), points.shape)
    slopes, offsets = problem.model.ratio_form(origin, points)
    ratios = (slopes * totals).sum(axis=1) + problem.n * offsets
    values: Floats = problem.temperature * ratios + problem.model.log_prior(points)
    return values


@dataclass(frozen=True)
class Surface:
    """A 2-d log posterior on a grid, 0 at its maximum."""

    first: Floats  # (GRID,)
    second: Floats  # (GRID,)
    values: Floats  # (GRID, GRID), second component down

    @classmethod
    def of(cls, problem: Problem, low: Floats, high: Floats) -> Surface:
        """Compute it on the box from `low` (2,) to `high` (2,)."""
        first, second = (np.linspace(low[i], high[i], GRID) for i in range(2))
        grid = np.stack(np.meshgrid(first, second), axis=-1)
        values = log_posterior(problem, grid.reshape(-1, 2))
        # The peak may lie between grid points; some exact draw is always near it.
        peak = max(values.max(), log_posterior(problem, problem.reference).max())
        return cls(first, second, (values - peak).reshape(GRID, GRID))

    def draw(self, axes: Axes, levels: int = LEVELS) -> None:
        """Fill between contours k²/2 nats below the maximum, k = 1 … `levels`; inside is darker.

        These are k standard deviations from the ridge where the posterior is normal across it.
        """
        drops = np.append(-0.5 * np.arange(levels, 0, -1) ** 2, 0.0)
        # The innermost shade, where the posterior is, stands out however many there are: the next
        # one is 35 % of the way to white.
        power = np.log(0.35) / np.log(1.0 / (levels - 1))
        shares = 0.95 * np.linspace(1.0, 0.0, levels) ** power
        axes.contourf(
            self.first,
            self.second,
            self.values,
            levels=drops,
            colors=[style.mixed(DARKEST, "#FFFFFF", float(share)) for share in shares],
            zorder=1,
        )
