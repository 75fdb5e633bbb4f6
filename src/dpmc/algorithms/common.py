"""What all samplers share: the arrays they work on, acceptance, and reading hyperparameters."""

from typing import Any, NamedTuple, NoReturn

import numpy as np

from dpmc.compiler import compilable
from dpmc.errors import DpmcError
from dpmc.privacy.events import SubsampledGaussianRelease
from dpmc.privacy.mechanisms import has_diverged
from dpmc.values import MOST, real, shown
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
    """Hyperparameters of one cell, read with errors that name the file, the key and the rule.

    `options` overrule `values`, and have a source of their own. `partial`: what is missing will be given
    later, so that only what is there is checked. `dimension` None: not known yet.
    """

    def __init__(
        self,
        values: dict[str, Any],
        dimension: int | None,
        source: str,
        options: dict[str, Any] | None = None,
        options_source: str = "",
        partial: bool = False,
    ) -> None:
        if not isinstance(values, dict):
            raise DpmcError(f"{source}: {shown(values)} must be a mapping of hyperparameters")
        self._values = {**values, **(options or {})}
        self._sources = {key: options_source for key in options or ()}
        self._dimension = dimension
        self._source = source
        self._partial = partial

    @property
    def dimension(self) -> int:
        """Number of the model's parameters d; 1 if it is not known yet."""
        return self._dimension or 1

    def _take(self, key: str, default: Any = None, stand_in: Any = 1) -> Any:
        if key not in self._values and default is None:
            if self._partial:
                return stand_in
            self._refuse(key, "missing, and this algorithm needs it")
        return self._values.pop(key, default)

    def _refuse(self, key: str, rule: str) -> NoReturn:
        raise DpmcError(f"{self._sources.get(key, self._source)}: {key}: {rule}")

    def _number(self, key: str, value: Any) -> float:
        try:
            return real(value)
        except ValueError as error:
            self._refuse(key, str(error))

    def _in_range(self, key: str, number: float) -> None:
        """Refuse what is not > 0, and finite numbers whose squares overflow or vanish."""
        if not number > 0:
            self._refuse(key, f"{number:g} must be greater than 0")
        if np.isfinite(number) and not 1e-100 < number < 1e100:
            self._refuse(key, f"{number:g} must be between 1e-100 and 1e100")

    def positive(self, key: str, default: float | None = None, infinite: bool = False) -> float:
        """A number > 0, finite unless `infinite`."""
        number = self._number(key, self._take(key, default))
        self._in_range(key, number)
        if np.isinf(number) and not infinite:
            self._refuse(key, "inf must be finite")
        return number

    def fraction(self, key: str, default: float | None = None) -> float:
        """A number in (0, 1]."""
        number = self._number(key, self._take(key, default, 0.5))
        self._in_range(key, number)
        if number > 1.0:
            self._refuse(key, f"{number:g} must be at most 1")
        return number

    def count(self, key: str) -> int:
        """A whole number ≥ 1."""
        number = self._number(key, self._take(key))
        if not 1 <= number <= MOST or not number.is_integer():
            self._refuse(key, f"{number:g} must be a whole number, at least 1 and at most {MOST}")
        return int(number)

    def lengths(self, key: str) -> np.ndarray:
        """Positive numbers (d,); a scalar stands for the same in every component."""
        value = self._take(key)
        items = value if isinstance(value, list) else [value] * self.dimension
        if self._dimension is not None and len(items) != self._dimension:
            self._refuse(key, f"has {len(items)} values, the model has {self._dimension} parameters")
        numbers = np.array([self._number(key, item) for item in items])
        if not (np.isfinite(numbers) & (numbers > 0)).all():
            self._refuse(key, f"{shown(value)} must be greater than 0 and finite")
        if not ((numbers > 1e-100) & (numbers < 1e100)).all():
            self._refuse(key, f"{shown(value)} must be between 1e-100 and 1e100")
        return numbers

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self._take(key, default)
        if not isinstance(value, bool):
            self._refuse(key, f"{shown(value)} must be true or false")
        return value

    def choice(self, key: str, known: tuple[str, ...], default: str) -> str:
        """One of the known words."""
        value = self._take(key, default)
        if value not in known:
            self._refuse(key, f"{shown(value)} must be one of {', '.join(known)}")
        return str(value)

    def refuse(self, key: str, value: Any, rule: str) -> NoReturn:
        """Raise DpmcError: a value breaks an algorithm's own rule."""
        self._refuse(key, f"{value} {rule}")

    def finish(self) -> None:
        """Raise for keys that nobody asked for."""
        for key in self._values:
            self._refuse(key, "unknown hyperparameter for this algorithm")
