"""Bounded scores of an outcome given η that are unbiased, in tables by quadrature over the outcome.

At a node η_i: a = √I, I the Fisher information, h(y) = clip(score(η_i, y)/a, ±c). A row whose η is nearest to
η_i uses this h, a function of y alone. Its expectation at η is E h = e + κ(η − η_i) + ½ b(η − η_i)², with κ =
E h r and b = E h (r² + ∂r/∂η), r the score: so h − E h has mean 0 at η, too, not at nodes alone. Nodes are so
dense that the next term is below 10⁻⁶. A family whose density depends on y − η alone has one node.

Künsch, Stefanski and Carroll (1989) have scores that are unbiased given the predictors.
"""

import copy
import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from dpmc.common.errors import DpmcError
from dpmc.models import families

ENDS = -12.0, 12.0  #: of η in a table; rows beyond it have weight 0, which biases nothing
STEP = 0.03  #: largest distance of nodes in η
STEP_IN_SDS = 0.02  #: and in units of 1/a, in which the score changes
LARGEST_MEAN = 3e3  #: of counts
MOST_COUNTS = 2**16  #: of the support of counts
LEFT_OUT = 1e-18  #: part of the largest probability below which an outcome is left out
NEARLY = 1e-4  #: how far a density's integral may be from 1, and the mean of its score from 0
DIFFERENCE = 1e-5  #: of η, for the derivative of the score
MOST_AT_ONCE = 2**21  #: nodes times outcomes that are computed together


_Made = TypeVar("_Made")


class Scores(NamedTuple):
    """What is known of the bounded score of rows at their η, each (n,)."""

    h: np.ndarray  # the clipped score over `root`, less its mean: ψ
    root: np.ndarray  # a: the root of the information
    slope: np.ndarray  # κ: the derivative of E h in η
    bound: np.ndarray  # largest |ψ| of any outcome
    clipped: np.ndarray  # h itself
    known: np.ndarray  # whether η is within the table, and the outcome within the support


class Reference(NamedTuple):
    """The same at one η, with the variance of ψ: for public choices."""

    root: float
    slope: float
    variance: float
    bound: float


class ScoreTable:
    """Bounded scores of a family at clip bound c."""

    def __init__(self, family: Any, clip: float) -> None:
        self.family, self.clip = family, clip
        self.is_location = bool(getattr(family, "is_location", False))
        check_family(family)
        nodes = np.zeros(1) if self.is_location else _nodes(family)
        self._nodes = nodes
        self._edges = 0.5 * (nodes[1:] + nodes[:-1])
        columns = [_moments(family, part, clip) for part in _parts(family, nodes)]
        self._root, self._mean, self._slope, self._bend, self._variance, self._low, self._high = (
            np.concatenate([column[i] for column in columns]) for i in range(7)
        )

    def at(self, eta: np.ndarray, y: np.ndarray) -> Scores:
        """Return the bounded scores of outcomes y at η, both (n,)."""
        i, known = self._nearest(eta)
        has, _ = families.SUPPORTS[self.family.support]
        known = known & np.isfinite(y) & has(y)  # before a family of one's own may change y
        node = eta if self.is_location else self._nodes[i]
        root, slope = self._root[i], self._slope[i]
        h = np.clip(fresh(self.family).score(node, y) / root, -self.clip, self.clip)
        distance = eta - node
        mean = self._mean[i] + (slope + 0.5 * self._bend[i] * distance) * distance
        bound = np.maximum(self._high[i] - mean, mean - self._low[i])
        slope = np.maximum(slope + self._bend[i] * distance, 0.0)
        return Scores(h - mean, root, slope, bound, h, known)

    def root(self, eta: np.ndarray) -> np.ndarray:
        """Return a at η (n,); 0 outside the table."""
        i, known = self._nearest(eta)
        return np.where(known, self._root[i], 0.0)

    def _nearest(self, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.is_location:
            return np.zeros(eta.shape, np.intp), np.isfinite(eta)
        known = (eta >= self._nodes[0] - STEP) & (eta <= self._nodes[-1] + STEP)
        return np.searchsorted(self._edges, np.where(known, eta, 0.0)), known


def _reference(family: Any, clip: float, eta: float) -> Reference:
    """Return root, slope, variance and bound of ψ at one η."""
    (part,) = _parts(family, np.array([eta]))
    root, mean, slope, _, variance, low, high = (float(moment[0]) for moment in _moments(family, part, clip))
    return Reference(root, slope, variance, max(high - mean, mean - low))


def _kept(make: Callable[..., _Made], most: int) -> Callable[..., _Made]:
    """Return `make` with a cache for dpmc's families. Those of users are not cached: they may change."""
    kept = functools.lru_cache(maxsize=most)(make)
    return lambda family, *at: (kept if type(family).__module__ == families.__name__ else make)(family, *at)


score_table = _kept(ScoreTable, 16)  #: of a family and a clip bound
reference = _kept(_reference, 256)  #: of a family, a clip bound and one η


def fresh(thing: Any) -> Any:
    """Return an object of dpmc's, or a copy of another: what it keeps of some rows must not reach others."""
    return thing if type(thing).__module__.startswith("dpmc.") else copy.deepcopy(thing)


_Outcomes = tuple[np.ndarray, np.ndarray, np.ndarray]  #: y, weights, and the density's term of y alone, (m,)


def _outcomes(family: Any, eta: float) -> _Outcomes:
    """Return outcomes with weights of a sum or quadrature over the support, around the mean at η."""
    if family.support == "binary":
        y, weight = np.array([0.0, 1.0]), np.ones(2)
    elif family.support == "counts":
        y, weight = np.arange(float(MOST_COUNTS)), np.ones(MOST_COUNTS)
    else:
        mean = float(family.mean(np.array([eta]))[0])
        if family.support == "positive":
            t = np.linspace(-60.0, 8.0, 20_001)
            y, weight = mean * np.exp(t), mean * np.exp(t) * (t[1] - t[0])
        else:
            t = np.linspace(-25.0, 25.0, 20_001)
            y, weight = mean + 1e-3 * np.sinh(t), 1e-3 * np.cosh(t) * (t[1] - t[0])
    with np.errstate(all="ignore"):
        return y, weight, families.log_base(family, y)


def _probabilities(family: Any, eta: np.ndarray, outcomes: _Outcomes) -> np.ndarray:
    """Return probabilities (k, m) of outcomes at η (k,)."""
    y, weight, base = outcomes
    with np.errstate(all="ignore"):
        density = np.exp(np.asarray(family.log_density(eta[:, None], y)) + base) * weight
    return np.where(np.isfinite(density), density, 0.0)


_Part = tuple[np.ndarray, _Outcomes]  #: nodes (k,) with their outcomes


def _parts(family: Any, nodes: np.ndarray) -> list[_Part]:
    """Return nodes in parts, each with outcomes."""
    parts = []
    if family.support in ("real", "positive"):
        for eta in nodes:
            parts.append((np.array([eta]), _outcomes(family, float(eta))))
        return parts
    outcomes, first = _outcomes(family, 0.0), 0
    while first < len(nodes):
        some = nodes[first : first + 64]
        ends = _probabilities(family, some[[0, -1]], outcomes)
        kept = np.flatnonzero((ends > LEFT_OUT * ends.max(axis=1, keepdims=True)).any(axis=0))
        inside = slice(kept[0], kept[-1] + 1)
        y, weight, base = (each[inside] for each in outcomes)
        some = some[: max(1, MOST_AT_ONCE // len(y))]
        parts.append((some, (y, weight, base)))
        first += len(some)
    return parts


def _moments(family: Any, part: _Part, clip: float) -> tuple[np.ndarray, ...]:
    """Return a, E h, κ, b, Var h, and the least and largest h of outcomes, at the nodes of a part (k,)."""
    (eta, outcomes), y = part, part[1][0]
    p = _probabilities(family, eta, outcomes)
    p = p / p.sum(axis=1, keepdims=True)

    def mean(values: np.ndarray) -> np.ndarray:
        return np.asarray((p * np.where(p > 0.0, values, 0.0)).sum(axis=1))

    with np.errstate(all="ignore"):
        at = eta[:, None]
        score = np.asarray(family.score(at, y))
        ends = np.asarray(family.score(at + DIFFERENCE, y)), np.asarray(family.score(at - DIFFERENCE, y))
        change = (ends[0] - ends[1]) / (2.0 * DIFFERENCE)
        root = np.sqrt(mean(score**2))
        h = np.clip(score / root[:, None], -clip, clip)
    level = mean(h)
    reached = np.where(p > 0.0, h, level[:, None])
    # Outcomes that are left out may reach the bound.
    beyond = y[0] > 0.0 and family.support == "counts"
    low = np.minimum(reached.min(axis=1), -clip if beyond else np.inf)
    high = np.full(len(eta), clip) if family.support == "counts" else reached.max(axis=1)
    moments = root, level, mean(h * score), mean(h * (score**2 + change)), mean(h**2) - level**2, low, high
    return tuple(np.asarray(moment) for moment in moments)


def _nodes(family: Any) -> np.ndarray:
    """Return nodes of η, from the smallest to the largest at which the outcomes are known."""
    coarse = np.linspace(*ENDS, 241)
    usable, root = np.zeros(len(coarse), bool), np.zeros(len(coarse))
    outcomes, are_same = _outcomes(family, 0.0), family.support in ("binary", "counts")
    for i, eta in enumerate(coarse):
        outcomes = outcomes if are_same else _outcomes(family, float(eta))
        with np.errstate(all="ignore"):
            mean = float(family.mean(np.array([eta]))[0])
            p = _probabilities(family, np.array([eta]), outcomes)[0]
            score = np.where(p > 0.0, np.asarray(family.score(np.array([eta]), outcomes[0])), 0.0)
        root[i] = np.sqrt((p * score**2).sum())
        close = abs(p.sum() - 1.0) < NEARLY and abs((p * score).sum()) < NEARLY * max(1.0, root[i])
        usable[i] = close and 0.0 < root[i] < np.inf and (family.support != "counts" or mean <= LARGEST_MEAN)
    middle = len(coarse) // 2
    if not usable[middle]:
        raise DpmcError(f"{_name(family)}: no information on eta = 0")
    low = middle - int(np.argmin(np.append(usable[middle::-1], False))) + 1
    high = middle + int(np.argmin(np.append(usable[middle:], False))) - 1
    eta, density = coarse[low : high + 1], np.maximum(1.0 / STEP, root[low : high + 1] / STEP_IN_SDS)
    total = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(eta))])
    return np.interp(np.linspace(0.0, total[-1], int(total[-1]) + 2), total, eta)


def check_family(family: Any) -> None:
    """Raise DpmcError unless density, score and support of a family fit together at η = 0."""
    eta = np.zeros(1)
    outcomes = _outcomes(family, 0.0)
    y, given = outcomes[0], outcomes[0].copy()
    p = _probabilities(family, eta, outcomes)[0]
    who = _name(family)
    if not abs(p.sum() - 1.0) < NEARLY:
        raise DpmcError(
            f"{who}: log_density: integrates to {p.sum():.6g} over support {family.support!r} at eta = 0; "
            "must be 1, with log_base if there is one"
        )
    kept = p > 1e-9
    with np.errstate(all="ignore"):
        up, down = (np.asarray(family.log_density(eta + step, given[kept])) for step in (1e-4, -1e-4))
        slope, score = (up - down) / 2e-4, np.asarray(family.score(eta, some := given[kept]))
    if eta.any() or not (np.array_equal(y, given) and np.array_equal(some, given[kept])):
        raise DpmcError(f"{who}: log_density, score: must not change the arrays eta and y that they get")
    if not np.allclose(slope, score, rtol=1e-3, atol=1e-4):
        worst = int(np.argmax(np.abs(slope - score)))
        raise DpmcError(
            f"{who}: score: {score[worst]:.6g} at eta = 0, y = {some[worst]:g} must be the derivative of "
            f"log_density in eta, {slope[worst]:.6g}"
        )
    if not score.any():
        raise DpmcError(f"{who}: no information on eta = 0")
    if getattr(family, "is_location", False):
        with np.errstate(all="ignore"):
            moved = np.asarray(family.score(eta + 1.0, y[kept] + 1.0))
        if not np.allclose(moved, score, rtol=1e-6, atol=1e-9):
            raise DpmcError(f"{who}: is_location: score must depend on y - eta alone")


def _name(family: Any) -> str:
    return f"family {type(family).__name__}"
