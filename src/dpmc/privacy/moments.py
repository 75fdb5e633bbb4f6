"""Moments: the sums Σ zzᵀ and Σ zy of a linear regression, for sufficient statistics perturbation.

Rows are clipped to ‖z‖ ≤ B and |y| ≤ C, y less the offset. Replacing a row (z, y) by (x, v) moves the least
eigenvalue of Σ zzᵀ by B² at most, since 0 ≤ zzᵀ, xxᵀ ≤ B² I; Σ zzᵀ by ‖zzᵀ − xxᵀ‖_F, which squared is ‖z‖⁴ +
‖x‖⁴ − 2(z·x)² ≤ 2B⁴; and Σ zy by 2BC. Numbers of a matrix are those of its upper triangle, √2 times off the
diagonal, so that their Euclidean norm is the matrix's Frobenius norm.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpmc.models.regression import Regression
from dpmc.privacy.questions import RowQuestion, shortened


class NoisyMoments(NamedTuple):
    """Noisy sums."""

    squares: np.ndarray  # Σ zzᵀ (p, p)
    products: np.ndarray  # Σ zy (p,)


@dataclass(frozen=True, eq=False)
class MomentsQuestion(RowQuestion):
    """Σ zzᵀ and Σ zy of clipped rows; noise is s times the sensitivity of each of the two."""

    model: Regression
    clip_z: float  # B
    clip_y: float  # C
    noise_multiplier: float  # s

    @property
    def size(self) -> int:
        p = len(self.model.design.coefficients)
        return p * (p + 3) // 2

    @property
    def sensitivity(self) -> float:
        return float(np.sqrt(2.0)) / self.noise_multiplier

    @property
    def least_sd(self) -> float:
        """Return the sd of the noise of the least eigenvalue, also s times its sensitivity."""
        return self.noise_multiplier * self.clip_z**2

    @property
    def noise_sds(self) -> tuple[float, float]:
        """Return the sds of the noise of numbers of Σ zzᵀ, and of Σ zy."""
        return float(np.sqrt(2.0)) * self.least_sd, 2.0 * self.noise_multiplier * self.clip_z * self.clip_y

    def clipped(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return z (n, p) and y (n,), clipped; 0 for a row whose numbers are not finite."""
        with np.errstate(all="ignore"):
            z, y = self.model.design(rows), self.model.response(rows) - self.model.design.offset(rows)
            usable = np.isfinite((z**2).sum(axis=1)) & np.isfinite(y)
        z, y = (np.where(usable, part.T, 0.0).T for part in (z, y))
        return shortened(z, self.clip_z), np.clip(y, -self.clip_y, self.clip_y)

    def squares(self, rows: np.ndarray) -> np.ndarray:
        """Return Σ zzᵀ (p, p), without noise."""
        z, _ = self.clipped(rows)
        return z.T @ z

    def of_rows(self, rows: np.ndarray) -> np.ndarray:
        z, y = self.clipped(rows)
        i, j = np.triu_indices(z.shape[1])
        twice, (square_sd, product_sd) = np.where(i == j, 1.0, np.sqrt(2.0)), self.noise_sds
        return np.column_stack([z[:, i] * z[:, j] * twice / square_sd, z * (y / product_sd)[:, None]])

    def moments(self, numbers: np.ndarray) -> NoisyMoments:
        """Return noisy sums from their numbers (N,)."""
        p = len(self.model.design.coefficients)
        (i, j), (square_sd, product_sd) = np.triu_indices(p), self.noise_sds
        squares = np.empty((p, p))
        squares[i, j] = squares[j, i] = numbers[: len(i)] * np.where(i == j, 1.0, np.sqrt(0.5)) * square_sd
        return NoisyMoments(squares, numbers[len(i) :] * product_sd)
