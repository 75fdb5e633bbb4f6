"""One noisy sum of statistics, then a Markov chain on the posterior given it, which costs no privacy."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from dpmc.algorithms.acceptance import metropolis
from dpmc.algorithms.dp_penalty import exact_multiplier
from dpmc.algorithms.hyperparameters import choice, numbers, positive
from dpmc.base import (
    DIFFERENCE_STEP,
    Algorithm,
    Draws,
    Model,
    Needs,
    NoisySum,
    PrivateData,
    Queries,
    State,
    SummaryModel,
    Values,
    has_diverged,
)
from dpmc.common.errors import DpmcError
from dpmc.privacy.events import GaussianQuery

FREEDOM = 5.0  #: degrees of freedom of proposals that do not depend on the position
#: Longest first step of the search for the mode. Far from the mode the law of a noisy sum can be so wide that
#: the density has ridges there, which long steps reach.
REACH = 0.03

Target = Callable[[np.ndarray], np.ndarray]  # θ (m, d) -> (m,)


@dataclass(frozen=True, kw_only=True)
class NoisyStatistics(Algorithm):
    """Ask for Σ clip(t(x_j)) + N(0, σ² I) once a run; sample p(θ | noisy sum) by Metropolis–Hastings.

    t is the model's `summaries`, clipped to norm `clip` around `centre`. The whole budget is spent on the
    sum, which all chains of a run share: σ = 2 clip times the noise multiplier. The likelihood of the noisy
    sum has the noise and the hidden sum integrated, as far as the sum is normal and clipping is rare. With
    `noise: ignored` it is that of a sum without noise, for comparison: intervals are too narrow.

    Half of the proposals are a random walk, half are drawn around the posterior's mode whatever the position.
    Both have the covariance of a Laplace approximation, which is computed from the noisy sum.
    """

    noise_multiplier: float = positive("noise sd over the sum's sensitivity; by default that of the budget")
    clip: float = positive("clip bound of the norm of a row's summaries, less the centre")
    centre: tuple[float, ...] = numbers("centre of the summaries, in their units", (0.0,))
    noise: str = choice("account for the noise, or ignore it", "integrated", "ignored")
    step_scale: float = positive("length of the random walk's steps, in units of 2.38/√d sds", 1.0)

    calibrates_run = has_public_test = is_recommended = True
    draws_version = 2

    @classmethod
    def calibrate(cls, values: Values, epsilon: float, delta: float, n: int, per_person: int = 1) -> Values:
        """Return the hyperparameters `values` with the least noise such that the run is (ε, δ)-DP.

        The m = `per_person` rows of a person move the sum by m times as much as one row.
        """
        multiplier = exact_multiplier(epsilon, delta)
        if per_person > 1:
            multiplier *= per_person * (1.0 + 1e-12)  # beyond the rounding of the person's bound
        return {"noise_multiplier": multiplier, **values}

    @property
    def note(self) -> str:
        return "ignores the noise: intervals too narrow" if self.noise == "ignored" else ""

    def needs(self, dimension: int) -> Needs:
        """Return what one iteration consumes; uniforms choose the proposal and its length."""
        return Needs(normals=dimension, uniforms=2, ratios=0)

    def queries(self, n: int) -> Queries:
        return Queries(run=(GaussianQuery("sum", self.noise_multiplier, sensitivity=2.0 * self.clip),))

    def check(self, model: Model) -> None:
        """Raise DpmcError for a model without summaries, and for a centre of another size."""
        # An exponential family has the count only if it has as many statistics as parameters.
        if not all(hasattr(model, name) for name in ("summary_log_likelihood", "summary_count")):
            raise DpmcError(
                "noisy-statistics: the law of a noisy sum is not known for this model; it is for Gaussians, "
                "bananas, and exponential families with as many statistics as parameters"
            )
        self._centre(model)

    def _centre(self, model: Model) -> np.ndarray:
        k = cast(SummaryModel, model).summary_count
        if len(self.centre) not in (1, k):
            rule = f"has {len(self.centre)} values, must be one or {k}, the summaries of a row"
            raise DpmcError(f"hyperparameters: centre: {rule}")
        return np.broadcast_to(np.array(self.centre), (k,))

    def prepare(
        self,
        theta: np.ndarray,
        model: Model,
        private: PrivateData,
        generators: Sequence[np.random.Generator],
    ) -> np.ndarray:
        """Ask for the sum; return it (k) with the log density at θ (1), the mode (d) and a root (d²).

        The root R has RRᵀ = the covariance of the Laplace approximation. Everything but the sum is computed
        from the sum and public numbers.
        """
        total = private.noisy_sum(self._centre(model), self.clip, self.noise_multiplier)
        carried, known = [], dict[bytes, np.ndarray]()
        for own, start in zip(total, theta, strict=True):
            target = self._target(model, private, own[None])
            if own.tobytes() not in known:  # by the first chain of a run
                mode, root = laplace(target, start)
                known[own.tobytes()] = np.concatenate([mode, root.ravel()])
            carried.append(np.concatenate([own, target(start[None]), known[own.tobytes()]]))
        return np.array(carried)

    def _target(self, model: Model, private: PrivateData, total: np.ndarray) -> Target:
        """Return the log posterior given noisy sums (m, k) or one for all (1, k); −∞ where θ has diverged."""
        sd = 0.0 if self.noise == "ignored" else 2.0 * self.clip * self.noise_multiplier

        def density(theta: np.ndarray) -> np.ndarray:
            lost = has_diverged(theta)
            safe = np.where(lost[:, None], 0.0, theta)
            sums = np.broadcast_to(total, (len(theta), total.shape[1]))
            noisy = NoisySum(sums, private.n, sd, private.temperature)
            value = cast(SummaryModel, model).summary_log_likelihood(safe, noisy) + model.log_prior(safe)
            return np.where(lost, -np.inf, value)

        return density

    def step(self, state: State, model: Model, private: PrivateData, draws: Draws) -> State:
        from scipy.special import gammaincinv

        d = state.theta.shape[1]
        total, before, mode, flat = np.split(state.carried, [-1 - d - d * d, -d - d * d, -d * d], axis=1)
        root = flat.reshape(-1, d, d)
        jumps = draws.uniform[:, :1] < 0.5
        spread = np.sqrt(0.5 * FREEDOM / gammaincinv(0.5 * FREEDOM, draws.uniform[:, 1:]))
        length = np.where(jumps, spread, 2.38 / np.sqrt(d) * self.step_scale)
        centre = np.where(jumps, mode, state.theta)
        proposal = centre + (root * (length * draws.normal)[:, None, :]).sum(axis=2)

        after = self._target(model, private, total)(proposal)
        log_ratio = after - before[:, 0]
        jumped = log_student(state.theta - mode, root) - log_student(proposal - mode, root)
        log_ratio = log_ratio + np.where(jumps[:, 0], jumped, 0.0)
        moved = metropolis(state, proposal, log_ratio, draws)
        density = np.where(moved.accepted, after, before[:, 0])[:, None]
        return moved._replace(carried=np.concatenate([total, density, mode, flat], axis=1))


def log_student(deviation: np.ndarray, root: np.ndarray) -> np.ndarray:
    """Return the log density (chains,) of Student's t around 0 with scale matrix RRᵀ, up to a constant."""
    scaled = np.linalg.solve(root, deviation[:, :, None])[:, :, 0]
    square = (scaled**2).sum(axis=1)
    density: np.ndarray = -0.5 * (FREEDOM + deviation.shape[1]) * np.log1p(square / FREEDOM)
    return density


def laplace(target: Target, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mode (d,) of a log density, the higher found from `start` and from 0, and a root R (d, d).

    RRᵀ is the inverse of minus its second derivatives there; directions in which they have no maximum get the
    largest variance of the others. Derivatives are central differences. A search that fails finds its own
    start. Results are rounded, to a millionth of a standard deviation, so that rounding errors of the search
    do not reach the draws.
    """
    from scipy.optimize import minimize

    d = len(start)
    i, j = np.indices((d, d))
    signs = np.array([1.0, -1.0])

    def height(theta: np.ndarray) -> float:
        return -float(target(theta[None])[0])

    def slope(theta: np.ndarray) -> np.ndarray:
        steps = np.diag(DIFFERENCE_STEP * np.maximum(1.0, np.abs(theta)))
        values = target(np.concatenate([theta + steps, theta - steps]))
        with np.errstate(invalid="ignore"):  # −∞ where the law is degenerate
            return np.nan_to_num(-(values[:d] - values[d:]) / (2.0 * np.diag(steps)), posinf=0.0, neginf=0.0)

    def curvature(theta: np.ndarray) -> np.ndarray:
        steps = np.diag(DIFFERENCE_STEP * np.maximum(1.0, np.abs(theta)))
        ends = signs[:, None, None, None, None] * steps[i] + signs[:, None, None, None] * steps[j]
        values = target((theta + ends).reshape(-1, d)).reshape(2, 2, d, d)
        with np.errstate(invalid="ignore"):
            second = (values[0, 0] - values[0, 1]) - (values[1, 0] - values[1, 1])
            return np.nan_to_num(-second / (4.0 * steps[i, i] * steps[j, j]), posinf=0.0, neginf=0.0)

    options = {"initial_trust_radius": REACH, "gtol": 1e-5, "maxiter": 500}
    origins = [start, np.zeros(d)] if start.any() else [start]
    found = []
    for origin in origins:
        try:
            one = minimize(height, origin, jac=slope, hess=curvature, method="trust-exact", options=options)
            found.append((one.fun, one.x))
        except (ArithmeticError, ValueError):  # SciPy's, where a density is so steep that squares overflow
            found.append((height(origin), origin))
    mode = min(found, key=lambda one: one[0])[1]
    values, vectors = np.linalg.eigh(curvature(mode))
    least = values[values > 1e-9 * values[-1]].min(initial=np.inf)
    values = np.maximum(values, least if np.isfinite(least) else 1.0)
    covariance = (vectors / values) @ vectors.T
    sd = np.array([float(f"{np.sqrt(variance):.6g}") for variance in np.diag(covariance)])
    root = sd[:, None] * np.round(np.linalg.cholesky(covariance) / sd[:, None], 6)
    return sd * np.round(mode / sd, 6), root
