"""The likelihood of a noisy sum of clipped gradients, by simulated rows: public computation on it.

If θ is the true parameter, the sum s of clipped gradients has the mean n m(θ) and the covariance n Q(θ): n
times those of one clipped gradient of a row that is simulated at θ. The likelihood is N(s; n m(θ), n Q(θ)(1 +
n/N) + σ² I); n/N is for the error of m by N rows. Rows simulated at one θ have weights at another one near
it, so that m and Q are smooth in θ. Seeds are public, and the same in each call.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dpmc.algorithms.score_answers import symmetric_power
from dpmc.base import DIFFERENCE_STEP, has_diverged
from dpmc.common.errors import DpmcError
from dpmc.evaluators import calls
from dpmc.privacy.questions import GradientQuestion

LEAST_ROWS, MOST_NUMBERS = 10_000, 4_000_000  #: rows simulated at least, and numbers in their arrays at most
WORTH = 0.5  #: of weighted rows, least part
MOST_STEPS, HALVINGS = 40, 12  #: of the search for θ, and of one of its steps, at most
LONGEST_STEP = 1.0  #: longest step, in sds of one row's estimate
SETTLED = 0.02  #: last step, in posterior sds
NEWTON, HESSIAN_STEP = 3, 0.25  #: last steps to the mode; of differences of the gradient, in posterior sds
LEAST_EIGENVALUE = 1e-12  #: of the information of a row, over its largest
FAILURES = (DpmcError, ArithmeticError, ValueError)  #: of a model, at a θ where it is not defined


class Moments(NamedTuple):
    """What is known at one θ of one clipped gradient, by weights of simulated rows."""

    mean: np.ndarray  # m (d,)
    covariance: np.ndarray  # Q (d, d)
    slope: np.ndarray  # J (d, d), J_ij the derivative of m_i in θ_j
    worth: float  # how many rows of equal weight have as much error
    weight: np.ndarray  # of the rows (N,)
    gradient: np.ndarray  # of the rows' log-likelihood at θ (N, d)


class Found(NamedTuple):
    """A normal approximation of a posterior, and whether the search for it came to an end."""

    mean: np.ndarray  # (d,)
    covariance: np.ndarray  # (d, d)
    converged: bool


def count_of(model: Any, n: int, per_row: int) -> int:
    """Return how many rows are simulated for n rows: `per_row` for each, if memory allows."""
    columns = simulated(model, start_of(model), 2).shape[1]
    return int(min(max(per_row * n, LEAST_ROWS), MOST_NUMBERS // (columns + model.dimension)))


def start_of(model: Any) -> np.ndarray:
    """Return θ (d,) where a search begins: the model's `start`, else its `true_theta`, else 0."""
    known = (getattr(model, key, None) for key in ("start", "true_theta"))
    return np.array(next((theta for theta in known if theta is not None), np.zeros(model.dimension)), float)


def simulated(
    model: Any, theta: np.ndarray, count: int, generator: np.random.Generator | None = None
) -> np.ndarray:
    """Return rows simulated at θ (count, columns); without a generator with the same random numbers."""
    generator = np.random.default_rng(0) if generator is None else generator
    rows = model.simulate(generator, theta.copy(), count)
    shape = (count, np.shape(rows)[1] if np.ndim(rows) == 2 else 1)
    return calls.real_array(rows, shape, f"model: {calls.name_of(model)}: simulate")


def gradients(model: Any, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the gradients of rows (N, d), 0 where one is not finite."""
    gradient = calls.gradient(model, theta, rows)
    return np.where(np.isfinite(gradient).all(axis=1, keepdims=True), gradient, 0.0)


def gradients_at(model: Any, theta: np.ndarray, count: int) -> np.ndarray:
    """Return the gradients at θ of rows simulated there (count, d)."""
    return gradients(model, theta, simulated(model, theta, count))


def inside(model: Any, centre: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Return centre + step (d,), or with half of the step and so on, where the prior is not 0."""
    tried = (centre + 0.5**i * step for i in range(HALVINGS))
    return next((theta for theta in tried if np.isfinite(model.log_prior(theta))), centre)


def whitening_of(gradient: np.ndarray) -> np.ndarray:
    """Return T (d, d), which makes gradients (N, d) white: the root of the inverse information of a row."""
    information = gradient.T @ gradient / len(gradient)
    values, vectors = np.linalg.eigh(information)
    values = np.maximum(values, LEAST_EIGENVALUE * max(values[-1], np.finfo(float).tiny))
    return np.asarray((vectors / np.sqrt(values)) @ vectors.T)


def prior_at(model: Any, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return gradient (d,) and curvature (d, d) of the log prior at θ, less what is not concave or finite."""
    steps = np.diag(DIFFERENCE_STEP * (1.0 + np.abs(theta)))
    near = [model.log_prior_gradient(theta + side * step) for step in steps for side in (-1.0, 1.0)]
    curvature = np.nan_to_num(np.array(near[::2]) - np.array(near[1::2])) / (2.0 * np.diag(steps))[:, None]
    values, vectors = np.linalg.eigh(0.5 * (curvature + curvature.T))
    return np.nan_to_num(model.log_prior_gradient(theta)), (vectors * np.maximum(values, 0.0)) @ vectors.T


class Likelihood:
    """The likelihood of one noisy sum, and its posterior with the prior of the model."""

    def __init__(
        self, model: Any, n: int, question: GradientQuestion, scores: np.ndarray, count: int
    ) -> None:
        self.model, self.n, self.question, self.scores, self.count = model, n, question, scores, count
        self.move(question.theta)

    def move(self, theta: np.ndarray) -> None:
        """Simulate rows at θ (d,)."""
        rows = simulated(self.model, theta, self.count)
        self._rows, self._clipped = rows, self.question.clipped(rows)
        self._log_likelihood = calls.log_likelihood(self.model, theta, rows)

    def moments(self, theta: np.ndarray) -> Moments:
        """Return the moments at θ (d,), by weights of the simulated rows; raise ArithmeticError for none."""
        logs = calls.log_likelihood(self.model, theta, self._rows) - self._log_likelihood
        weight = np.nan_to_num(np.exp(logs - np.nanmax(logs)))
        if not weight.sum() > 0.0:
            raise ArithmeticError("no simulated row has a log-likelihood")
        weight /= weight.sum()
        mean = weight @ self._clipped
        centred = self._clipped - mean
        weighted = (centred * weight[:, None]).T
        gradient = gradients(self.model, theta, self._rows)
        worth = 1.0 / float((weight**2).sum())
        return Moments(mean, weighted @ centred, weighted @ gradient, worth, weight, gradient)

    def spread(self, found: Moments) -> np.ndarray:
        """Return the covariance of the noisy sum (d, d)."""
        own = self.n * (1.0 + self.n / found.worth) * found.covariance
        return own + self.question.noise_sd**2 * np.eye(len(own))

    def slope(self, theta: np.ndarray) -> np.ndarray:
        """Return the gradient at θ of the log density of the posterior (d,), determinant included."""
        found = self.moments(theta)
        inverse = np.linalg.inv(self.spread(found))
        rest, deviation = inverse @ (self.scores - self.n * found.mean), self._clipped - found.mean
        # The derivative of the weights is their product with the gradient.
        square = (deviation @ rest) ** 2 - ((deviation @ inverse) * deviation).sum(axis=1)
        weighted = found.weight * (square - found.weight @ square)
        own = 0.5 * self.n * (1.0 + self.n / found.worth) * (weighted @ found.gradient)
        return self.n * found.slope.T @ rest + own + np.nan_to_num(self.model.log_prior_gradient(theta))

    def scoring(self, theta: np.ndarray, found: Moments) -> tuple[np.ndarray, np.ndarray]:
        """Return the step of a scoring iteration (d,), and the precision (d, d) of the posterior there."""
        slope = self.n * found.slope
        gain = np.linalg.solve(self.spread(found), slope).T
        pull, curvature = prior_at(self.model, theta)
        precision = gain @ slope + curvature
        precision = 0.5 * (precision + precision.T)
        # A direction of which nothing is known is not moved along.
        step = np.linalg.pinv(precision, hermitian=True) @ (gain @ (self.scores - self.n * found.mean) + pull)
        return step * min(1.0, LONGEST_STEP / max(self.length(step), 1e-300)), precision

    def length(self, step: np.ndarray) -> float:
        """Return the length of a step (d,), in sds of one row's estimate."""
        return float(np.linalg.norm(np.linalg.solve(self.question.whitening, step)))

    def moved(self, theta: np.ndarray, step: np.ndarray) -> tuple[np.ndarray, Moments] | None:
        """Return θ (d,) after a step, or half of it and so on, inside of the prior; None if all fail."""
        for i in range(HALVINGS):
            there = theta + 0.5**i * step
            try:
                if has_diverged(there) or not np.isfinite(self.model.log_prior(there)):
                    continue
                found = self.moments(there)
                if found.worth < WORTH * self.count:
                    self.move(there)
                    found = self.moments(there)
                if all(np.isfinite(part).all() for part in found):
                    return there, found
            except FAILURES:
                continue
        return None

    def located(self) -> Found:
        """Return what damped scoring steps find."""
        theta, found, converged = self.question.theta, self.moments(self.question.theta), False
        step, precision = self.scoring(theta, found)
        for _ in range(MOST_STEPS):
            moved = self.moved(theta, step)
            if moved is None:
                break
            theta, found = moved
            step, precision = self.scoring(theta, found)
            if step @ precision @ step < SETTLED**2:
                converged = True
                break
        return Found(theta, np.linalg.pinv(precision, hermitian=True), converged)

    def posterior(self) -> Found:
        """Return a normal approximation: `located`, its mean moved to the mode by `NEWTON` steps.

        The covariance is of the curvature before them; where that is not concave, all is as `located`.
        """
        found = self.located()
        root, mean = symmetric_power(found.covariance, 0.5), found.mean
        self.move(mean)
        sides = [[self.slope(mean + sign * step) for sign in (-HESSIAN_STEP, HESSIAN_STEP)] for step in root]
        curvature = np.array([(before - after) @ root for before, after in sides]) / (2.0 * HESSIAN_STEP)
        curvature = 0.5 * (curvature + curvature.T)
        if not np.isfinite(curvature).all() or np.linalg.eigvalsh(curvature)[0] <= 0.0:
            return found
        for _ in range(NEWTON):
            step = np.linalg.solve(curvature, root @ self.slope(mean))
            mean = mean + root @ step / max(1.0, float(np.linalg.norm(step)))
        return Found(mean, root @ np.linalg.inv(curvature) @ root, found.converged)
