"""What all samplers share: the arrays they work on, acceptance, and reading hyperparameters."""

from typing import Any, NamedTuple, NoReturn

import numpy as np

from dpmc.compiler import compilable
from dpmc.errors import DpmcError
from dpmc.privacy.events import SubsampledGaussianRelease
from dpmc.privacy.mechanisms import has_diverged
from dpmc.vectors import copy


class State(NamedTuple):
    """Where the chains stand; changed in place."""

    theta: np.ndarray  # (chains, d)
    extra: np.ndarray  # (chains, e) what else an algorithm carries from one iteration to the next


class Draws(NamedTuple):
    """Random numbers for m iterations that have nothing to do with privacy."""

    normal: np.ndarray  # (chains, m, normals per iteration)
    uniform: np.ndarray  # (chains, m, uniforms per iteration)
    log_u: np.ndarray  # (chains, m) ln u of the acceptance test
    words: np.ndarray  # (chains, m, words per iteration) 64-bit words that draw the batches


class Record(NamedTuple):
    """What happened in m iterations; what is said of clipped rows are private diagnostics.

    The last three are kept by algorithms with `random_rows`.
    """

    theta: np.ndarray  # (chains, m, d)
    accepted: np.ndarray  # (chains, m) 0 or 1
    diverging: np.ndarray  # (chains, m) 1 where the proposal was not finite
    ratio_clipped: np.ndarray  # (chains, m) rows clipped in log ratios
    gradient_clipped: np.ndarray  # (chains, m) rows clipped in gradients, summed over evaluations
    rows_used: np.ndarray  # (chains, m) rows looked at, with repeats
    noisy: np.ndarray  # (chains, m) 1 where the test drew noise
    all_rows: np.ndarray  # (chains, m) 1 where the test was made on all rows

    @classmethod
    def empty(cls, chains: int, m: int, dimension: int) -> "Record":
        """A record of m iterations with nothing in it yet."""
        return cls(
            np.empty((chains, m, dimension)),
            np.zeros((chains, m), np.int8),
            np.zeros((chains, m), np.int8),
            np.zeros((chains, m), np.int64),
            np.zeros((chains, m), np.int64),
            np.zeros((chains, m), np.int64),
            np.zeros((chains, m), np.int8),
            np.zeros((chains, m), np.int8),
        )


@compilable
def accept(state, proposal, log_ratio, draws, c, i, record):
    """Move chain c to its proposal if ln u < log_ratio (NaN: it stays); record iteration i."""
    accepted = draws.log_u[c, i] < log_ratio
    settle(state, proposal, accepted, c, i, record)
    return accepted


@compilable
def settle(state, proposal, accepted, c, i, record):
    """Move chain c to its proposal if accepted; record iteration i."""
    if accepted:
        copy(proposal[c], state.theta[c])
        record.accepted[c, i] = 1
    if has_diverged(proposal[c]):
        record.diverging[c, i] = 1
    copy(state.theta[c], record.theta[c, i])


@compilable
def walk(theta, proposal_sd, normal, i):
    """θ' ~ N(θ, diag(proposal_sd²)) of every chain (chains, d) at iteration i."""
    proposal = np.empty(theta.shape)
    for c in range(theta.shape[0]):
        for k in range(theta.shape[1]):
            proposal[c, k] = theta[c, k] + proposal_sd[k] * normal[c, i, k]
    return proposal


@compilable
def guided_walk(theta, direction, proposal_sd, draws, i, component):
    """θ' of every chain (chains, d): one random component moves by direction × |N(0, proposal_sd²)|.

    `direction` (chains, d) is ±1; which component moved goes into `component` (chains,).
    """
    chains, d = theta.shape
    proposal = theta.copy()
    for c in range(chains):
        k = int(d * draws.uniform[c, i, 0])
        proposal[c, k] += direction[c, k] * abs(proposal_sd[k] * draws.normal[c, i, 0])
        component[c] = k
    return proposal


def batch_gradient_release(
    noise_multiplier: float, clip: float, batch_size: int, n: int
) -> SubsampledGaussianRelease:
    """The event of one gradient on a batch, (n/b) Σ_B clip(∇) plus noise: sensitivity 2nC/b, C = `clip`."""
    return SubsampledGaussianRelease(
        "batch gradient", float(noise_multiplier), batch_size, n, sensitivity=2.0 * n * clip / batch_size
    )


class Settings:
    """Hyperparameters of one cell, read with errors that name the file, the key and the rule."""

    def __init__(self, values: dict[str, Any], dimension: int, source: str) -> None:
        if not isinstance(values, dict):
            raise DpmcError(f"{source}: {values!r} must be a mapping of hyperparameters")
        self._values = dict(values)
        self._dimension = dimension
        self._source = source

    @property
    def dimension(self) -> int:
        """Number of the model's parameters d."""
        return self._dimension

    def _take(self, key: str, default: Any = None) -> Any:
        if key not in self._values and default is None:
            raise DpmcError(f"{self._source}: {key}: missing, and this algorithm needs it")
        return self._values.pop(key, default)

    def _number(self, key: str, value: Any) -> float:
        try:
            if isinstance(value, bool):
                raise TypeError
            return float(value)
        except (TypeError, ValueError):
            raise DpmcError(f"{self._source}: {key}: {value!r} is not a number") from None

    def positive(self, key: str, default: float | None = None, infinite: bool = False) -> float:
        """A number > 0, finite unless `infinite`."""
        number = self._number(key, self._take(key, default))
        if not number > 0 or (np.isinf(number) and not infinite):
            rule = "must be greater than 0" + ("" if infinite else " and finite")
            raise DpmcError(f"{self._source}: {key}: {number:g} {rule}")
        if np.isfinite(number) and not 1e-100 < number < 1e100:
            # beyond this, squares overflow or vanish
            raise DpmcError(f"{self._source}: {key}: {number:g} must be between 1e-100 and 1e100")
        return number

    def fraction(self, key: str, default: float | None = None) -> float:
        """A number in (0, 1]."""
        number = self.positive(key, default)
        if number > 1.0:
            raise DpmcError(f"{self._source}: {key}: {number:g} must be at most 1")
        return number

    def count(self, key: str) -> int:
        """A whole number ≥ 1."""
        number = self._number(key, self._take(key))
        if not number >= 1 or not number.is_integer():
            raise DpmcError(f"{self._source}: {key}: {number:g} must be a whole number, at least 1")
        return int(number)

    def lengths(self, key: str) -> np.ndarray:
        """Positive numbers (d,); a scalar stands for the same in every component."""
        value = self._take(key)
        items = value if isinstance(value, list) else [value] * self._dimension
        if len(items) != self._dimension:
            raise DpmcError(
                f"{self._source}: {key}: has {len(items)} values, the model has {self._dimension} parameters"
            )
        numbers = np.array([self._number(key, item) for item in items])
        if not (np.isfinite(numbers) & (numbers > 0)).all():
            raise DpmcError(f"{self._source}: {key}: {value} must be greater than 0 and finite")
        return numbers

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self._take(key, default)
        if not isinstance(value, bool):
            raise DpmcError(f"{self._source}: {key}: {value!r} must be true or false")
        return value

    def choice(self, key: str, known: tuple[str, ...], default: str) -> str:
        """One of the known words."""
        value = self._take(key, default)
        if value not in known:
            raise DpmcError(f"{self._source}: {key}: {value!r} must be one of {', '.join(known)}")
        return str(value)

    def refuse(self, key: str, value: Any, rule: str) -> NoReturn:
        """Raise DpmcError: a value breaks an algorithm's own rule."""
        raise DpmcError(f"{self._source}: {key}: {value} {rule}")

    def finish(self) -> None:
        """Raise for keys that nobody asked for."""
        for key in self._values:
            raise DpmcError(f"{self._source}: {key}: unknown hyperparameter for this algorithm")
