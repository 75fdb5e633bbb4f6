"""What is made of noisy scores: public computation on noisy answers, which costs no privacy.

At θ = θ_k + Td the noisy scores have mean M d to first order, so that their likelihood, in which sampling and
noise are both counted and the prior is not, is N(s; M d, S(d)) with S(d) = φM + σ_s² I + ½σ_h²(‖d‖² I + ddᵀ), φ
= q/tr M.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2, norm

#: Of tr M, over its value for white rows, at least; and of φ over its value under the model.
LEAST_TRACE = 0.02
LEAST_DISPERSION, LARGEST_DISPERSION = 0.03, 10.0
TURNS = 8  #: of the fixed point for d and its covariance, which converges linearly
LOG_SDS = np.linspace(-6.0, 6.0, 1201)  #: of the true residual sd over the current one


class Mean(NamedTuple):
    """The mean of noisy answers with one T, B and H; of one round, or of the main rounds."""

    theta: np.ndarray  # θ_k (p,)
    whitening: np.ndarray  # T (p, p)
    scores: np.ndarray  # s (p,)
    information: np.ndarray  # M (p, p)
    squares: float  # q
    spread: float  # χ
    noise_sd: float  # of s
    information_sd: float  # of M
    n: int
    most: float  # H: tr M ≤ nH
    white: float  # κ/a: tr M is about n p κ/a for white rows
    weight: float  # of it, if rows are white and normal
    dispersion: float  # v/κ: q/tr M under the model


class Normal(NamedTuple):
    """A normal distribution of θ."""

    mean: np.ndarray  # (p,)
    covariance: np.ndarray  # (p, p)


def symmetric_power(matrix: np.ndarray, exponent: float) -> np.ndarray:
    """Return a power of a symmetric matrix with positive eigenvalues."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * values**exponent) @ vectors.T)


def trace_of(answer: Mean) -> float:
    """Return tr M/p, at least `LEAST_TRACE` of its value for white rows."""
    p = len(answer.theta)
    return max(float(np.trace(answer.information)) / p, LEAST_TRACE * answer.n * answer.white)


class Information(NamedTuple):
    """What is known of M: a matrix, and the variances of its error."""

    matrix: np.ndarray  # (p, p), positive
    shape: float  # of each entry, isotropic
    size: float  # of a multiple of I, besides


SHAPE = 0.3
SIZE = 1.0


def information_of(answer: Mean) -> Information:
    """Return M shrunk towards a multiple of I as far as its noise says, M > 0 and tr M ≤ nH."""
    p, noise = len(answer.theta), answer.information_sd**2
    expected = answer.n * answer.white * answer.weight
    size = 1.0 / (p / noise + 1.0 / (SIZE * expected) ** 2)
    mean = size * (np.trace(answer.information) / noise + 1.0 / (SIZE**2 * expected))
    mean = max(mean, LEAST_TRACE * expected)
    deviation = answer.information - np.trace(answer.information) / p * np.eye(p)
    freedom = max(1, p * (p + 1) // 2 - 1)
    shape = max(float((deviation**2).sum()) / freedom - noise, (SHAPE * mean) ** 2)
    kept = shape / (shape + noise)
    values, vectors = np.linalg.eigh(mean * np.eye(p) + kept * deviation)
    values = np.maximum(values, 1e-6 * mean)
    values = values * min(1.0, answer.n * answer.most / values.sum())
    return Information((vectors * values) @ vectors.T, kept * noise, max(0.0, size - kept * noise / p))


def dispersion_of(answer: Mean) -> float:
    """Return φ = q/tr M, within limits of its value under the model."""
    value = answer.squares / (trace_of(answer) * len(answer.theta))
    limits = LEAST_DISPERSION * answer.dispersion, LARGEST_DISPERSION * answer.dispersion
    return float(np.clip(value, *limits))


def posterior_of(answer: Mean, prior: Normal, before: np.ndarray) -> tuple[Normal, np.ndarray]:
    """Return the normal approximation of the posterior, and d, the step to its mean in units of T.

    `before` (p, p) is the covariance with which the noise of M is computed first.
    """
    p, back = len(answer.theta), np.linalg.inv(answer.whitening)
    (information, shape, size), phi, one = information_of(answer), dispersion_of(answer), np.eye(p)
    precision = answer.whitening @ np.linalg.inv(prior.covariance) @ answer.whitening
    pull = precision @ back @ (prior.mean - answer.theta)
    covariance, d = back @ before @ back, np.zeros(p)
    for _ in range(TURNS):
        square = np.outer(d, d) + covariance
        noise = 0.5 * shape * (np.trace(square) * one + square) + size * square
        spread = phi * information + answer.noise_sd**2 * one + noise
        gain = np.linalg.solve(spread, information).T
        covariance = np.linalg.inv(gain @ information + precision)
        d = covariance @ (gain @ answer.scores + pull)
    covariance = 0.5 * (covariance + covariance.T)
    mean = answer.theta + answer.whitening @ d
    return Normal(mean, answer.whitening @ covariance @ answer.whitening), d


def whitened(answer: Mean) -> np.ndarray:
    """Return T for which rows are about white, by M with eigenvalues that are hardly noise."""
    p, (information, shape, _) = len(answer.theta), information_of(answer)
    trace = float(np.trace(information)) / p
    least = min(max(np.sqrt(2.0 * p * shape), LEAST_TRACE * trace), trace)
    values, vectors = np.linalg.eigh(information)
    matrix = (vectors * np.maximum(values, least)) @ vectors.T
    back = np.linalg.inv(answer.whitening)
    return symmetric_power(back @ matrix @ back / (answer.n * answer.white), -0.5)


class LogSd(NamedTuple):
    """What is known of ln sd of the residuals."""

    mean: float
    variance: float


@functools.lru_cache(maxsize=32)
def _spreads(clip: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Return E min(ρ²x², c²) at ln ρ = `LOG_SDS`, its derivative, and the variance of min(x², c²)."""
    rho = np.exp(LOG_SDS)
    t = clip / rho
    value = rho**2 * ((2.0 * norm.cdf(t) - 1.0) - 2.0 * t * norm.pdf(t)) + 2.0 * clip**2 * norm.sf(t)
    mean = float(np.interp(0.0, LOG_SDS, value))
    fourth = 3.0 * (2.0 * norm.cdf(clip) - 1.0) - 2.0 * (clip**3 + 3.0 * clip) * norm.pdf(clip)
    variance = float(fourth + 2.0 * clip**4 * norm.sf(clip) - mean**2)
    return value, np.gradient(value, LOG_SDS), variance


def log_sd_of(spread: float, noise_sd: float, n: int, clip: float, current: float, prior: LogSd) -> LogSd:
    """Return ln sd from noisy χ, in whose units the current sd is `current`, by the delta method."""
    values, slopes, variance = _spreads(clip)
    target = float(np.clip(spread / n, values[0], 0.995 * values[-1]))
    ratio = float(np.interp(target, values, LOG_SDS))
    slope = max(float(np.interp(ratio, LOG_SDS, slopes)), 1e-6)
    found = np.log(current) + float(np.clip(ratio, -1.5, 1.5))
    own = ((noise_sd / n) ** 2 + variance / n) / slope**2
    weight = 1.0 / own + 1.0 / prior.variance
    return LogSd((found / own + prior.mean / prior.variance) / weight, 1.0 / weight)


@dataclass(frozen=True)
class Bounds:
    """Multiples of a bounded score: B = b sup √p with h clipped at ±c."""

    b: float
    c: float


@functools.lru_cache(maxsize=256)
def lengths(p: int) -> np.ndarray:
    """Return lengths of white normal rows of p numbers, at equal steps of probability."""
    return np.sqrt(chi2.ppf((np.arange(2000) + 0.5) / 2000, p))


def mean_weight(b: float, p: int) -> float:
    """Return E w‖x‖²/p of white normal rows x."""
    length = lengths(p)
    return float((np.minimum(1.0, b * np.sqrt(p) / length) * length**2).mean()) / p


def predicted_variance(b: float, slope: float, variance: float, bound: float, p: int, strength: float) -> float:
    """Return n times the variance of a coefficient, white normal rows, at B = b sup √p; up to a factor.

    `slope` is κ/a, `strength` μ√n of the round's scores.
    """
    length = lengths(p)
    weight = np.minimum(1.0, b * np.sqrt(p) / length)
    information = slope * float((weight * length**2).mean()) / p
    squares = variance * float((weight**2 * length**2).mean()) / p
    return (squares + (2.0 * b * bound * np.sqrt(p) / strength) ** 2) / information**2
