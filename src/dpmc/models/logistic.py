"""Logistic regression with a flat prior (DP-Fast MH paper, Section 6.1, Appendix E.2)."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from dpmc.models.exponential import FlatPrior


class LogisticForm:
    """The softplus form (`dpmc.evaluators.softplus`) in t = (2y − 1)x: ln p(y|x, θ) = −softplus(−θ·t)."""

    sign = -1.0  # s

    def line(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return α = 0 (chains, d) and γ = 0 (chains,): no part is linear in t."""
        return np.zeros(theta.shape), np.zeros(len(theta))

    def link(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return β = −θ (chains, d) and η = 0 (chains,): the log odds of the other label, −θ·t."""
        return -theta, np.zeros(len(theta))

    def sigmoid_form(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return G = −I (chains, d, d), h = 0 (chains, d): the gradient is −w t, w = −1/(1 + e^{θ·t})."""
        return np.tile(-np.eye(theta.shape[1]), (len(theta), 1, 1)), np.zeros(theta.shape)


@dataclass(frozen=True)
class Logistic(LogisticForm, FlatPrior):
    """p(y = 1|x, θ) = 1/(1 + e^{−θ·x}), flat prior; a row is (y, x_1, …, x_d) with y = 0 or 1.

    Rows must have ‖x‖ at most `norm`, a public number; clip them before they are given to the model.
    """

    dimension: int  # number of parameters d
    norm: float

    def statistics(self, rows: np.ndarray) -> np.ndarray:
        """Return t = (2y − 1)x (n, d) of rows (n, 1 + d)."""
        return (2.0 * rows[:, :1] - 1.0) * rows[:, 1:]

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return -np.logaddexp(0.0, (1.0 - 2.0 * rows[:, 0]) * (rows[:, 1:] @ theta))

    def log_likelihood_gradient(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        statistics = self.statistics(rows)
        return expit(-(statistics @ theta))[:, None] * statistics

    def row_bounds(self, rows: np.ndarray) -> np.ndarray:
        """Return c_i = ‖x_i‖ (n,): |ln p(y_i|x_i, θ') − ln p(y_i|x_i, θ)| ≤ c_i ‖θ' − θ‖ (Appendix E.2)."""
        return np.sqrt((rows[:, 1:] ** 2).sum(axis=1))

    def simulate(self, generator: np.random.Generator, theta: np.ndarray, n: int) -> np.ndarray:
        """Draw n rows (n, 1 + d): x standard normal, scaled down to `norm` if longer, then y at θ."""
        x = generator.standard_normal((n, self.dimension))
        length = np.sqrt((x**2).sum(axis=1, keepdims=True))
        x *= np.minimum(1.0, self.norm / length)
        y = generator.random(n) < 1.0 / (1.0 + np.exp(-(x @ theta)))
        return np.column_stack([y, x])
