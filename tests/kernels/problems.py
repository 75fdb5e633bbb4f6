"""Small problems whose posterior is known exactly, for the test ladder."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import ndtr

from dpmc.models.banana import Banana
from dpmc.models.circle import Circle
from dpmc.models.gaussian import Gaussian


@dataclass(frozen=True)
class Setting:
    """Rows, a model and a temperature."""

    model: Any
    rows: np.ndarray  # (n, d_x)
    temperature: float
    along_axes: bool = False  # walks are to move one component by exactly its proposal_sd

    @property
    def n(self) -> int:
        return len(self.rows)

    @property
    def posterior(self) -> Any:
        return self.model.posterior(self.rows, self.temperature)

    def log_posterior(self, theta: np.ndarray) -> float:
        """T Σ ln p(x_j|θ) + ln p(θ), straight from the model's formulas."""
        likelihood = self.model.log_likelihood(theta, self.rows).sum()
        return float(self.temperature * likelihood + self.model.log_prior(theta))

    def uniforms(self, theta: np.ndarray) -> np.ndarray:
        """Statistics (N, q) of draws (N, d), each uniform on (0, 1) under the exact posterior."""
        law = self.posterior
        if isinstance(self.model, Circle):
            sd = np.sqrt(law.square_variance)
            below = ndtr(-law.square_mean / sd)
            u = (ndtr(((theta**2).sum(axis=1) - law.square_mean) / sd) - below) / (1.0 - below)
            return np.column_stack([u, np.arctan2(theta[:, 1], theta[:, 0]) / (2.0 * np.pi) + 0.5])
        if isinstance(self.model, Gaussian):
            return normal_uniforms(np.linalg.solve(np.linalg.cholesky(law.spread), (theta - law.centre).T).T)
        return normal_uniforms((bent(self.model, theta) - law.mu) / np.sqrt(law.variance))


def bent(model: Banana, theta: np.ndarray) -> np.ndarray:
    """φ(θ) of draws (N, d): normal with independent components under prior and posterior."""
    phi = np.array(theta)
    phi[:, 1] += model.a * (theta[:, 0] - model.m) ** 2 + model.b
    return phi


def normal_uniforms(z: np.ndarray) -> np.ndarray:
    """Margins, squared length, sum and difference of standard normal z (N, 2), made uniform."""
    pairs = np.column_stack([z[:, 0] + z[:, 1], z[:, 0] - z[:, 1]]) / np.sqrt(2.0)
    return np.column_stack([ndtr(z), ndtr(pairs), stats.chi2.cdf((z**2).sum(axis=1), 2)])


def simulated(model: Any, n: int, temperature: float, seed: int) -> Setting:
    rows = model.simulate(np.random.default_rng(seed), np.array([0.5, -0.3]), n)
    return Setting(model, rows, temperature)


#: A bent Gaussian with every constant of the model different from 0 and from 1.
BANANA = Banana(a=0.4, b=0.3, m=-0.2, variance=np.array([2.0, 0.5]), prior_variance=4.0)
SLANT = Gaussian(precision=np.array([[0.8, -0.9], [-0.9, 2.0]]), prior_variance=4.0, exact_prior_variance=4.0)


def banana(n: int, temperature: float) -> Setting:
    return simulated(BANANA, n, temperature, 7)


def weighty_prior(n: int, temperature: float, prior_variance: float) -> Setting:
    """As `banana`, with a prior that is felt beside many rows."""
    return simulated(replace(BANANA, prior_variance=prior_variance), n, temperature, 10)


def corners(n: int, temperature: float, half_side: float) -> Setting:
    """A Gaussian with unit covariance whose rows are the four corners of a square, n/4 each.

    A move along an axis has log ratios of two values only, so batch noise comes near the largest that a
    clip bound allows, and no row is clipped.
    """
    square = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    rows = np.array([0.2, -0.1]) + half_side * np.tile(square, (n // 4, 1))
    return Setting(Gaussian(np.eye(2), 0.04, 0.04), rows, temperature, along_axes=True)


SMALL = banana(5, 0.6)
LARGE = banana(60, 0.2)
RING = simulated(Circle(0.02), 60, 0.2, 8)
SLANTED = simulated(SLANT, 60, 0.2, 9)
WEAK = banana(6, 0.2)  # data and prior weigh about the same
BATCHED = weighty_prior(2500, 0.02, 0.3)  # for batches of 50: nT/b = 1
CORNERS = corners(10_000, 0.005, 2.07)  # for batches of 100: nT/b = 0.5
WEAK_BATCHED = weighty_prior(900, 1.0, 0.0015)  # n/σ² = 450 and 1800, 1/σ_0² = 667
