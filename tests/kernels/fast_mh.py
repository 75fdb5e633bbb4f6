"""DP-Fast MH from its paper, for comparison: exact acceptance probabilities on few rows (Algorithms 1 and 2).

`acceptance` is written from the paper's text (energies, artanh, one rate for each row) and shares nothing
with the library's kernels: the minibatch is enumerated (rows kept are independent Poisson variables, those
not kept another), noise is summed over a grid. `Case` runs the library's kernel on the very same move.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from scipy.special import expit

from kernels import ladder
from kernels.ladder import Kernel
from kernels.problems import Setting, normal_uniforms

MOST_KEPT = 24  # of each row; rates are below 4, the rest is 1e-12
NODES = 2001
_z = np.linspace(-9.0, 9.0, NODES)
NORMAL = _z, stats.norm.pdf(_z) * (_z[1] - _z[0])
UNIFORM = (np.arange(NODES) + 0.5) / NODES, np.full(NODES, 1.0 / NODES)


class Normal(NamedTuple):
    """A normal law with independent components."""

    centre: np.ndarray
    variance: float

    def draws(self, generator: np.random.Generator, size: int) -> np.ndarray:
        return self.centre + np.sqrt(self.variance) * generator.standard_normal((size, len(self.centre)))


@dataclass(frozen=True)
class Line:
    """ln p(x|θ) = θ·x but for a term of x, so that ‖x‖ bounds a row; θ ~ N(0, prior_variance I), d = 2."""

    prior_variance: float
    dimension: int = 2

    def log_prior(self, theta: np.ndarray) -> Any:
        return -0.5 * (theta**2).sum(axis=-1) / self.prior_variance

    def statistics(self, rows: np.ndarray) -> np.ndarray:
        return rows

    def ratio_form(self, theta: np.ndarray, proposal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return proposal - theta, np.zeros(len(theta))

    def gradient_form(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.tile(np.eye(2), (len(theta), 1, 1)), np.zeros(theta.shape)

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return np.asarray(rows @ theta)

    def row_bounds(self, rows: np.ndarray) -> np.ndarray:
        return np.sqrt((rows**2).sum(axis=1))

    def posterior(self, rows: np.ndarray, temperature: float) -> Normal:
        return Normal(self.prior_variance * temperature * rows.sum(axis=0), self.prior_variance)


@dataclass(frozen=True)
class LineSetting(Setting):
    """Rows of a `Line`."""

    def uniforms(self, theta: np.ndarray) -> np.ndarray:
        law = self.posterior
        return normal_uniforms((theta - law.centre) / np.sqrt(law.variance))


ROWS = np.array([[1.0, 0.3], [-0.6, 0.5], [0.4, -0.9]])
FEW = LineSetting(Line(2.0), ROWS, 0.9)


def energies(setting: Setting, theta: np.ndarray) -> np.ndarray:
    """U_i(θ) = −T ln p(x_i|θ) (n,)."""
    return -setting.temperature * np.asarray(setting.model.log_likelihood(theta, setting.rows))


def chance_to_pass(log_ratio: np.ndarray, sd: float, variant: str) -> np.ndarray:
    """Probability that log ratios (any shape) pass, over u and noise of this sd (0: no noise)."""
    log_ratio = np.asarray(log_ratio, dtype=float)
    if sd == 0.0:
        return expit(log_ratio) if variant == "corrected" else np.exp(np.minimum(log_ratio, 0.0))
    z, weight = UNIFORM if variant == "as_coded" else NORMAL
    noise = sd * z - 0.5 * sd**2
    flat = np.array([weight @ np.exp(np.minimum(x + noise, 0.0)) for x in log_ratio.ravel()])
    return flat.reshape(log_ratio.shape)


def noise_sd(values: dict[str, Any], sensitivity: float, epsilon: float, scale: float) -> float:
    """Return the noise sd: 0 if the sensitivity is at most ε (as coded: below ε)."""
    free = sensitivity < epsilon if values["variant"] == "as_coded" else sensitivity <= epsilon
    return 0.0 if free else scale * sensitivity


def acceptance(
    method: str, values: dict[str, Any], setting: Setting, theta: np.ndarray, proposal: np.ndarray
) -> float:
    """P(θ' is accepted | θ, θ') by Algorithms 1 and 2, `values` being the hyperparameters in the file."""
    variant = values["variant"]
    old, new, move = energies(setting, theta), energies(setting, proposal), np.linalg.norm(theta - proposal)
    c = setting.temperature * setting.model.row_bounds(setting.rows)
    if variant == "corrected":
        c = np.full(len(old), setting.temperature * values["clip"])
        new = old + np.clip(new - old, -c * move, c * move)
    prior = setting.model.log_prior(proposal) - setting.model.log_prior(theta)
    total, largest = c.sum(), c.max()
    if method != "tuna-mh":
        epsilon, delta = values["epsilon"], values["delta"]
        scale = np.sqrt(2.0 * np.log(1.25 / delta)) / epsilon
        sd = noise_sd(values, 2.0 * largest * move, epsilon, scale)
        on_all = float(chance_to_pass((old - new).sum() + prior, sd, variant))
        if method == "dp-fast-mh-full":
            return on_all
    mean = values["batch_mean"] + total * move
    if variant in ("as_coded", "corrected") and mean >= values["most_rows"]:
        return on_all
    sd = 0.0
    if method != "tuna-mh":
        share = values["most_rows"] * largest / total
        sensitivity = 2.0 * np.log(1.0 + total * move / values["batch_mean"])
        if values.get("inverted_sensitivity"):
            sensitivity = 2.0 * np.log(1.0 + 1.0 / (values["batch_mean"] * total * move))
        scale = 6.0 * share * np.sqrt(2.0 * np.log(2.5 * share / delta)) / epsilon
        sd = noise_sd(values, sensitivity, epsilon / (6.0 * share), scale)
    kept, log_ratio = kept_rows(values["batch_mean"], old, new, c, float(move))
    counts = np.indices([MOST_KEPT] * len(c)).reshape(len(c), -1)
    weight = np.prod([stats.poisson.pmf(s, rate) for s, rate in zip(counts, kept, strict=True)], axis=0)
    beyond = 0.0
    if variant == "published":  # B < K: so many may be drawn and not kept
        room = values["most_rows"] - 1 - counts.sum(axis=0)
        weight = weight * stats.poisson.cdf(room, mean - kept.sum())
        beyond = on_all * stats.poisson.sf(values["most_rows"] - 1, mean)
    many = weight > 1e-13
    passed = chance_to_pass(log_ratio @ counts[:, many] + prior, sd, variant)
    return float(weight[many] @ passed + beyond)


def kept_rows(
    batch_mean: float, old: np.ndarray, new: np.ndarray, c: np.ndarray, move: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return for each row (n,) the mean number of times it is kept, and its term in ℓ_1 (Algorithm 1)."""
    total = c.sum()
    chance = (batch_mean * c + 0.5 * total * (new - old + c * move)) / (batch_mean * c + c * total * move)
    term = 2.0 * np.arctanh(total * (old - new) / (c * (2.0 * batch_mean + total * move)))
    return (batch_mean + total * move) * c / total * chance, term


@dataclass(frozen=True)
class Case:
    """A move by a kernel, at which the library's kernel and the paper's formulas can be compared."""

    method: str
    values: dict[str, Any]
    setting: Setting = FEW
    ends: np.ndarray = field(default_factory=lambda: np.array([[0.1, -0.4], [0.9, 0.2]]))

    @property
    def kernel(self) -> Kernel:
        """The library's kernel, whose every proposal is one step of `ends` along each axis."""
        step = np.abs(self.ends[1] - self.ends[0])
        values = {**self.values, "proposal_sd": np.where(step > 0.0, step, 1.0).tolist()}
        if self.method == "tuna-mh":
            del values["variant"]
        return ladder.kernel_of(self.method, self.setting, **values)

    def anew(self) -> "Case":
        return self

    def one_test(self, kernel: Kernel, back: bool, count: int) -> tuple[np.ndarray, Any]:
        """Accept bits of `count` tests of the move, or of the move back, and the private data after it."""
        start, end = self.ends[::-1] if back else self.ends
        given = ladder.numbers(kernel, np.random.default_rng(3 + back), count, 1)
        given.normal[:] = np.sign(end - start)
        private = ladder.private_data(kernel, given)
        path = ladder.run(kernel, np.repeat(start[None], count, axis=0), given, private=private)
        return path.accepted[0], private

    def frequency_p(self, count: int = 200_000) -> float:
        """Return the p-value that both directions are accepted as often as by the paper's formulas."""
        square, kernel = 0.0, self.kernel
        for back in (False, True):
            ends = self.ends[::-1] if back else self.ends
            wanted = acceptance(self.method, self.values, self.setting, *ends)
            found = self.one_test(kernel, back, count)[0].mean()
            square += (found - wanted) ** 2 / max(wanted * (1.0 - wanted) / count, 1e-20)
        return float(stats.chi2.sf(square, 2))


def imbalance(case: Case) -> float:
    """ln a(θ, θ') − ln a(θ', θ) − ln(π(θ')/π(θ)) of a case's move."""
    there, back = (
        acceptance(case.method, case.values, case.setting, *e) for e in (case.ends, case.ends[::-1])
    )
    here, end = map(case.setting.log_posterior, case.ends)
    return float(np.log(there) - np.log(back) - (end - here))
