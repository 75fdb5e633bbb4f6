"""Models of every form, rows, moves, and clipped sums by their formulas in extended precision."""

from typing import Any, NamedTuple

import numpy as np

from dpmc.models.banana import Banana
from dpmc.models.circle import Circle
from dpmc.models.gaussian import Gaussian
from dpmc.models.logistic import Logistic
from dpmc.models.mixture import Mixture

Array = np.ndarray


class Straight:
    """ln p(x|θ) = θ_1…k · x + θ_{k+1}, with gradients of any G and h that depend on θ."""

    def __init__(self, k: int) -> None:
        self.dimension = k + 1

    def ratio_form(self, theta: Array, proposal: Array) -> tuple[Array, Array]:
        move = proposal - theta
        return move[:, :-1], move[:, -1]

    def gradient_form(self, theta: Array) -> tuple[Array, Array]:
        chains, d = theta.shape
        linear = np.zeros((chains, d, d - 1), theta.dtype)
        linear[:, range(d - 1), range(d - 1)] = 1.0 + theta[:, :-1] ** 2
        linear[:, 0, d - 2] += 0.5 * theta[:, -1]
        return linear, theta[:, ::-1].copy()

    def statistics(self, rows: Array) -> Array:
        return rows

    def log_likelihood(self, theta: Array, rows: Array) -> Array:
        return (rows * theta[:-1]).sum(axis=1) + theta[-1]

    def simulate(self, generator: np.random.Generator, theta: Array, n: int) -> Array:
        return generator.normal(0.3, 1.5, (n, self.dimension - 1))


class Soft:
    """The softplus form with any coefficients: θ = (α, γ, β, η)."""

    def __init__(self, k: int, sign: float) -> None:
        self.dimension, self.sign, self._k = 2 * k + 2, sign, k

    def line(self, theta: Array) -> tuple[Array, Array]:
        return theta[:, : self._k], theta[:, self._k]

    def link(self, theta: Array) -> tuple[Array, Array]:
        return theta[:, self._k + 1 : -1], theta[:, -1]

    def statistics(self, rows: Array) -> Array:
        return rows

    def sigmoid_form(self, theta: Array) -> tuple[Array, Array]:
        k, (linear, constant) = self._k, np.zeros((2, len(theta), self.dimension, 2 * self._k + 1))
        linear[:, range(k + 1, 2 * k + 2), range(k + 1)] = 1.0  # the derivatives in β and η are w t and w
        linear[:, range(k), range(k + 1, 2 * k + 1)] = 1.0
        constant[:, k, 0] = 1.0
        return linear, constant[:, :, 0]

    def log_likelihood(self, theta: Array, rows: Array) -> Array:
        line, link = (slopes[0] * rows for slopes in (self.line(theta[None])[0], self.link(theta[None])[0]))
        link = link.sum(axis=1) + theta[-1]
        return line.sum(axis=1) + theta[self._k] + self.sign * np.logaddexp(np.zeros_like(link), link)

    def log_likelihood_gradient(self, theta: Array, rows: Array) -> Array:
        link = (rows * theta[self._k + 1 : -1]).sum(axis=1) + theta[-1]
        weight = self.sign / (1.0 + np.exp(-link))
        ones = np.ones((len(rows), 1))
        return np.column_stack([rows, ones, weight[:, None] * rows, weight])

    def simulate(self, generator: np.random.Generator, theta: Array, n: int) -> Array:
        return generator.normal(0.3, 1.5, (n, self._k))


class Plain:
    """A normal model by its formulas alone."""

    dimension = 3

    def log_likelihood(self, theta: Array, rows: Array) -> Array:
        return -0.5 * ((rows - theta) ** 2).sum(axis=1)

    def log_likelihood_gradient(self, theta: Array, rows: Array) -> Array:
        return rows - theta

    def simulate(self, generator: np.random.Generator, theta: Array, n: int) -> Array:
        return theta + generator.standard_normal((n, 3))


COVARIANCE = np.array([[2.0, -0.6, 0.1], [-0.6, 0.9, 0.3], [0.1, 0.3, 1.4]])
MODELS: dict[str, Any] = {
    "banana": Banana(0.7, 0.4, -0.3, np.array([2.0, 0.5]), 3.0),
    "long banana": Banana(0.7, 0.4, -0.3, np.linspace(0.5, 2.0, 11), 3.0),
    "gaussian, 1": Gaussian(np.array([[1.7]]), 3.0, 3.0),
    "gaussian, 2": Gaussian(np.linalg.inv(COVARIANCE[:2, :2]), 3.0, 3.0),
    "gaussian, 3": Gaussian(np.linalg.inv(COVARIANCE), 3.0, 3.0),
    "circle": Circle(0.03),
    "straight, 1": Straight(1),
    "straight, 2": Straight(2),
    "straight, 4": Straight(4),
    "logistic": Logistic(5, 4.0),
    "mixture": Mixture(2.0, 3.0),
    "soft, 1": Soft(1, 1.0),
    "soft, 4": Soft(4, -1.0),
    "plain": Plain(),
}


class Problem(NamedTuple):
    """A model with rows, positions and proposals (chains, d)."""

    model: Any
    rows: Array
    theta: Array
    proposal: Array


def problem(name: str, n: int, chains: int = 9) -> Problem:
    """Moves of every kind: of all components, of the first, of the last, a tiny one, and none."""
    model, generator = MODELS[name], np.random.default_rng(n)
    rows = model.simulate(generator, np.full(model.dimension, 0.4), n)
    theta = generator.normal(0.3, 0.5, (chains, model.dimension))
    proposal = theta + generator.normal(0.0, 0.3, theta.shape)
    proposal[4::9, 1:] = theta[4::9, 1:]
    proposal[5::9, :-1] = theta[5::9, :-1]
    proposal[6::9] = theta[6::9] + 1e-7
    proposal[7::9] = theta[7::9]
    return Problem(model, rows, theta, proposal)


def uneven(asked: Problem) -> Problem:
    """The same with rows of all sizes, and with equal ones."""
    generator = np.random.default_rng(1)
    rows = asked.rows * 10.0 ** generator.uniform(-8.0, 8.0, (len(asked.rows), 1))
    rows[::3] = asked.rows[::3]
    rows[: len(rows) // 6] = rows[0]
    return asked._replace(rows=rows)


class Clipped(NamedTuple):
    """A clipped sum, the number of clipped terms, and bounds on the rounding error of both."""

    total: Array
    count: int
    rounding: float
    unsure: int


def ratios(asked: Problem, c: int, rows: Array | None = None) -> tuple[Array, Array]:
    """Log ratios (n,) of chain c, and the size of the terms that they are made of."""
    rows = (asked.rows if rows is None else rows).astype(np.longdouble)
    new, old = (
        asked.model.log_likelihood(place[c].astype(np.longdouble), rows)
        for place in (asked.proposal, asked.theta)
    )
    return new - old, np.abs(new) + np.abs(old) + np.abs(rows).sum(axis=1)


def clipped_ratios(asked: Problem, c: int, bound: float, rows: Array | None = None) -> Clipped:
    """Σ clip(r_j) of chain c."""
    ratio, size = ratios(asked, c, rows)
    inside = np.abs(ratio) <= bound
    spread = size[inside].max(initial=0.0) + (0.0 if np.isinf(bound) else 0.1 * bound)
    unsure = np.abs(np.abs(ratio) - bound) <= 1e-14 * size
    return Clipped(
        np.clip(ratio, -bound, bound).sum(),
        int((~inside).sum()),
        float(1e-13 * len(ratio) * spread),
        int(unsure.sum()),
    )


def gradients(asked: Problem, c: int, rows: Array | None = None) -> tuple[Array, Array]:
    """∇ ln p(x_j|θ) (n, d) of chain c, and the size of the terms that it is made of (n,)."""
    rows, theta = asked.rows if rows is None else rows, asked.theta[c : c + 1].astype(np.longdouble)
    if not hasattr(asked.model, "gradient_form"):
        found = asked.model.log_likelihood_gradient(theta[0], rows.astype(np.longdouble))
        return found, np.abs(found).sum(axis=1) + np.abs(rows).sum(axis=1)
    linear, constant = (part[0].astype(np.longdouble) for part in asked.model.gradient_form(theta))
    statistics = asked.model.statistics(rows).astype(np.longdouble)
    size = (np.abs(statistics) @ np.abs(linear.T) + np.abs(constant)).sum(axis=1)
    return statistics @ linear.T + constant, size


def clipped_gradients(asked: Problem, c: int, bound: float, rows: Array | None = None) -> Clipped:
    """Σ clip(∇ ln p(x_j|θ)) (d,) of chain c."""
    gradient, size = gradients(asked, c, rows)
    norm = np.sqrt((gradient**2).sum(axis=1))
    inside = norm <= bound
    factor = np.where(inside, 1.0, bound / np.where(inside, 1.0, norm))
    return Clipped(
        (factor[:, None] * gradient).sum(axis=0),
        int((~inside).sum()),
        float(1e-13 * len(norm) * (factor * size).max()),
        int((np.abs(norm - bound) <= 1e-13 * size).sum()),
    )


def check(wanted: Clipped, total: Array, count: int) -> None:
    """Complain if a sum or a count differs by more than rounding."""
    assert np.abs(total - wanted.total).max() <= wanted.rounding
    assert abs(int(count) - wanted.count) <= wanted.unsure


def some_bounds(values: Array) -> list[float]:
    """Bounds that clip all values (n,), most, half, few and none."""
    quantiles = np.quantile(np.abs(values).astype(float), (0.05, 0.5, 0.95))
    return [1e-12, *map(float, quantiles), 2.0 * float(np.abs(values).max()), 1e9, np.inf]
