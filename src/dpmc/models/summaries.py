"""The law of a noisy sum over the rows (docs/reference/algorithms/noisy-statistics.md).

A summary t(x) of a row is a vector; the sum over n rows is approximately normal. Noise added to it is normal
too, so the likelihood of the noisy sum has a closed form in which the hidden sum is integrated. Bernstein and
Sheldon (2018, 2019) sample the hidden sum instead.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dpmc.base import Model, NoisySum

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(20)
WEIGHTS = WEIGHTS / WEIGHTS.sum()  #: of a standard normal variable at `NODES`
#: Of predictors, relative to their largest: keeps a covariance without noise invertible.
LEAST_VARIANCE = 1e-9


def log_normal(residual: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Return ln N(residual; 0, covariance) (chains,) up to a constant.

    `residual` is (chains, k), `covariance` (chains, k, k). −∞ for a covariance that is not positive definite,
    and where one of them is not finite.
    """
    usable = np.isfinite(residual).all(axis=1) & np.isfinite(covariance).all(axis=(1, 2))
    safe = np.where(usable[:, None, None], covariance, np.eye(residual.shape[1]))
    values, vectors = np.linalg.eigh(safe)
    usable &= values[:, 0] > 0.0
    values = np.where(usable[:, None], values, 1.0)
    along = (np.where(usable[:, None], residual, 0.0)[:, :, None] * vectors).sum(axis=1)
    density: np.ndarray = -0.5 * (along**2 / values + np.log(values)).sum(axis=1)
    return np.where(usable, density, -np.inf)


def outer(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the products first_i second_j (chains, p, p)."""
    return first[:, :, None] * second[:, None, :]


def times(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Return the matrix-vector products (chains, p); without BLAS, so that chains are independent."""
    return (matrices * vectors[:, None, :]).sum(axis=2)


def noise_covariance(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return Cov(Eu, Ev) (chains, p, p) of a symmetric E with independent entries of variance 1, E_00 = 0.

    The entries on and above the diagonal are independent; u and v are (chains, p).
    """
    same = u * v
    covariance = outer(v, u) + np.eye(u.shape[1]) * (same.sum(axis=1)[:, None] - same)[:, :, None]
    covariance[:, 0, 0] -= same[:, 0]
    return covariance


class WhiteSummaries:
    """The law of a noisy sum of summaries that have unit covariance, by the mean `natural(θ)` of a row."""

    natural: Callable[[np.ndarray], np.ndarray]
    summaries: Callable[[np.ndarray], np.ndarray]

    @property
    def summary_count(self: Model) -> int:
        return self.dimension

    def summary_log_likelihood(self, theta: np.ndarray, noisy: NoisySum) -> np.ndarray:
        """Return ln p(noisy sum|θ) (chains,): normal, its mean n times the summaries of a row's mean."""
        variance = noisy.n / noisy.temperature + noisy.noise_sd**2
        mean = self.summaries(self.natural(theta))
        return -0.5 * ((noisy.total - noisy.n * mean) ** 2).sum(axis=1) / variance


class Predictors(NamedTuple):
    """Mean (chains, p) and covariance (chains, p, p) of z over the rows, from the noisy sum."""

    mean: np.ndarray
    covariance: np.ndarray


class RegressionSummaries:
    """Sums b = Σ z(y − c) and A = Σ zzᵀ, z = (1, predictors), c public, and the law of noisy b given noisy A.

    Given A, b has mean Σ z(g(η_j) − c), g(η) the mean of an outcome at η = θ·z. If η is normal over the rows
    that is a function of A, by Stein's lemma. So the law is exact for linear regression, and for others if η
    is normal. It replaces g by its best line at the noisy distribution of η: for the log-likelihood a
    polynomial of degree two, fitted where the rows are and not on a fixed interval (Huggins et al. 2017).

    The true A has a flat prior, cut to covariances of z that are possible; noise of A adds to the variance of
    b by the delta method (errors in variables). No distribution of the predictors is taken as known.
    """

    dimension: int
    _intercept: bool
    _further: Callable[[], tuple[str, ...]]
    design: Callable[[np.ndarray], np.ndarray]
    response: Callable[[np.ndarray], np.ndarray]  # rows -> y − c (n,)
    #: η -> g(η) − c and its first three derivatives
    expected: Callable[[np.ndarray], tuple[np.ndarray, ...]]
    #: η (chains, nodes), θ -> the variance of an outcome
    outcome_variance: Callable[[np.ndarray, np.ndarray], np.ndarray | float]
    #: Of A beside b, which are one vector with one clip bound: what costs A's noise little and b's less.
    product_weight = 0.2

    def coefficients(self, theta: np.ndarray) -> np.ndarray:
        """Return the coefficients of z (chains, p), that of the constant first, 0 without intercept."""
        given = theta[:, : self._size - (not self._intercept)]
        return given if self._intercept else np.column_stack([np.zeros(len(theta)), given])

    @property
    def _size(self) -> int:
        """Return the number p of components of z."""
        return self.dimension - len(self._further()) + (not self._intercept)

    @property
    def summary_count(self) -> int:
        """Return the number of summaries of a row."""
        p = self._size
        return p + p * (p + 1) // 2 - 1

    def summaries(self, rows: np.ndarray) -> np.ndarray:
        """Return z(y − c), then the products z_i z_j, i ≤ j, times `product_weight`, (n, k)."""
        z = self.design(rows)
        z = z if self._intercept else np.column_stack([np.ones(len(z)), z])
        i, j = _products(z.shape[1])
        products = self.product_weight * z[:, i] * z[:, j]
        return np.column_stack([z * self.response(rows)[:, None], products])

    def summary_log_likelihood(self, theta: np.ndarray, noisy: NoisySum) -> np.ndarray:
        """Return ln p(noisy b|θ, noisy A) (chains,) up to a constant."""
        return log_normal(*self.law(theta, noisy))

    def predictors(self, noisy: NoisySum) -> Predictors:
        """Return the moments of z.

        Noise can make eigenvalues of the covariance negative: they are raised to `LEAST_VARIANCE` times the
        largest one.
        """
        p = self._size
        i, j = _products(p)
        second = np.ones((len(noisy.total), p, p))
        entries = noisy.total[:, p : p + len(i)] / (self.product_weight * noisy.n)
        second[:, i, j] = second[:, j, i] = entries
        values, vectors = np.linalg.eigh(second - outer(second[:, 0], second[:, 0]))
        values = np.maximum(values, LEAST_VARIANCE * values[:, -1:])
        return Predictors(second[:, 0], (vectors * values[:, None, :]) @ vectors.transpose(0, 2, 1))

    def law(self, theta: np.ndarray, noisy: NoisySum) -> tuple[np.ndarray, np.ndarray]:
        """Return noisy b less its mean (chains, p), and its covariance (chains, p, p)."""
        beta, (mean, covariance) = self.coefficients(theta), self.predictors(noisy)
        along = times(covariance, beta)  # Cov(z, η)
        centre = (beta * mean).sum(axis=1, keepdims=True)
        variance = np.maximum((beta * along).sum(axis=1, keepdims=True), 0.0)
        sd = np.sqrt(variance)
        eta = centre + sd * NODES
        values = self.expected(eta)
        level, slope, bend, twist = ((WEIGHTS * value).sum(axis=1, keepdims=True) for value in values)

        # b given A: an outcome's own variance, and what its best line in η leaves, less the part of it that A
        # determines: the projection of z times it on polynomials of degree two, at the same nodes.
        left = values[0] - level - slope * (eta - centre)
        own = WEIGHTS * (self.outcome_variance(eta, theta) + left**2)
        zeroth, first, second = ((own * NODES**k).sum(axis=1)[:, None, None] for k in range(3))
        unit = along / np.where(sd > 0.0, sd, 1.0)
        mixed = outer(mean, unit) + outer(unit, mean)
        spread = zeroth * (covariance + outer(mean, mean)) + first * mixed
        spread = spread + (second - zeroth) * outer(unit, unit)
        square, linear, cubic = (
            (WEIGHTS * left * values).sum(axis=1, keepdims=True)
            for values in (0.5 * (NODES**2 - 1.0), NODES**2, 0.5 * (NODES**3 - NODES))
        )
        known = square * mean + cubic * unit
        spread = spread - 2.0 * outer(known, known) - outer(linear * unit, linear * unit)

        # Noise of A: the mean of b changes by E w + (c_1 θᵀ + c_2 e_0ᵀ) E θ.
        w = slope * beta
        w[:, :1] += level - slope * centre
        c_1 = 0.5 * (bend * mean + twist * along)
        c_2 = bend * along - 2.0 * centre * c_1
        turn = outer(c_1, beta)
        turn[:, :, 0] += c_2
        cross = noise_covariance(w, beta) @ turn.transpose(0, 2, 1)
        errors = noise_covariance(w, w) + cross + cross.transpose(0, 2, 1)
        errors = errors + turn @ noise_covariance(beta, beta) @ turn.transpose(0, 2, 1)

        residual = noisy.total[:, : len(mean[0])] - noisy.n * (level * mean + slope * along)
        noise = noisy.noise_sd**2 * (np.eye(len(mean[0])) + errors / self.product_weight**2)
        return residual, noisy.n / noisy.temperature * spread + noise


def _products(p: int) -> tuple[np.ndarray, np.ndarray]:
    """Return i, j with i ≤ j < p of the products z_i z_j, without that of the constant with itself."""
    rows, columns = np.triu_indices(p)
    return rows[1:], columns[1:]
