"""What is made of noisy scores: public computation on noisy answers, which costs no privacy.

At θ = θ_k + Td the noisy scores have mean M d to first order, so that their likelihood, in which sampling
and noise are both counted and the prior is not, is N(s; M d, S(d)) with S(d) = φM + σ_s² I + ½σ_h²(‖d‖² I +
ddᵀ), φ = q/tr M.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import gammaincinv, ndtr

from dpmc.algorithms.answers import stacked
from dpmc.models.score_tables import Reference
from dpmc.privacy.questions import ScoreAnswer, ScoreQuestion

LEAST_EXPECTED = 0.02  #: of tr M, over its value for white rows
LEAST_DISPERSION, LARGEST_DISPERSION = 0.03, 10.0  #: of φ, over its value under the model
#: Of M's mean. From n μ = 20 p^1.5 on, of five predictors, M was at least 0.65 of it in each direction; of a
#: group of 400 of 20,000 rows it was 0.4, and the sd without noise 7 to 17 times too large.
HIDDEN = 0.5
SHAPE = 0.3  #: least sd of M's deviation from a multiple of I, over that multiple
TURNS, CONVERGED = 200, 1e-6  #: of the fixed point for d and its covariance: most, and the last change of d
LOG_SDS = np.linspace(-6.0, 6.0, 1201)  #: of the true residual sd over the current one


class Belief(NamedTuple):
    """A normal distribution of θ."""

    mean: np.ndarray  # (p,)
    covariance: np.ndarray  # (p, p)


class Round(NamedTuple):
    """What a round asked and what was answered; or the mean of rounds with one T and one B and H.

    Fields are arrays of an answer's group of a file; this is all that a posterior needs, besides the prior.
    """

    at: np.ndarray  # θ_k (p,)
    whitening: np.ndarray  # T (p, p)
    bound: float  # B
    largest_information: float  # H
    clip: float  # c
    residual_sd: float  # of the table; 1 if the sd is no parameter
    noise_sd: float  # σ_s, of each score
    information_sd: float  # σ_h, of M's diagonal
    expected_information: float  # of white normal rows, over p; n H bounds tr M
    expected_dispersion: float  # q/tr M under the model
    n: float  # rows, times the largest weight
    scores: np.ndarray  # s (p,)
    information: np.ndarray  # M (p, p)
    squares: float  # q
    spread: float  # χ; 0 if it was not asked
    length: float = 0.0  # of the question about lengths before it, in units of its noise; 0 if none was asked

    @property
    def answer(self) -> ScoreAnswer:
        """Return what was answered."""
        return ScoreAnswer(self.scores, self.information, float(self.squares), float(self.spread))

    @classmethod
    def of(
        cls, asked: ScoreQuestion, numbers: np.ndarray, n: int, weights: Weights, at: Reference, sd: float
    ) -> Round:
        """Return a round of noisy numbers (N,); `weights` and `at` say what the model makes likely."""
        design = asked.model.design
        expected = n * design.usual_weight * at.slope / at.root * weights.information
        dispersion = at.root * at.variance / at.slope * weights.squares / weights.information
        return cls(
            *(asked.theta, asked.whitening, asked.bound, asked.largest_information, asked.table.clip, sd),
            *(asked.noise_sd, asked.information_sd, expected, dispersion, n * design.largest_weight),
            *asked.answer(numbers),
        )

    @classmethod
    def unstacked(cls, arrays: Mapping[str, np.ndarray]) -> list[Round]:
        """Return rounds from arrays, the inverse of `stacked`."""
        return [cls(*values) for values in zip(*(arrays[name] for name in cls._fields), strict=True)]


def mean_of(rounds: Sequence[Round]) -> Round:
    """Return the mean of rounds with one T, B and H: one answer at the mean θ, with less noise.

    It is exact as far as E s is linear between the rounds' θ.
    """
    arrays = stacked(rounds)
    means = {name: arrays[name].mean(axis=0) for name in ("at", "scores", "information", "squares", "spread")}
    # The first of the main rounds has the least budget.
    sds = {name: np.sqrt((arrays[name] ** 2).mean() / len(rounds)) for name in ("noise_sd", "information_sd")}
    return rounds[0]._replace(**means, **sds)


def symmetric_power(matrix: np.ndarray, exponent: float) -> np.ndarray:
    """Return a power of a symmetric matrix (p, p) with positive eigenvalues."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * values**exponent) @ vectors.T)


class Information(NamedTuple):
    """What is known of M: a matrix, and the variances of its error."""

    matrix: np.ndarray  # (p, p), positive
    shape: float  # of each entry, isotropic
    size: float  # of a multiple of I, besides


def information_of(answer: Round) -> Information:
    """Return M, shrunk towards a multiple of I as far as its noise says, with M > 0 and tr M ≤ nH.

    T makes M about that multiple. The multiple is known beforehand up to itself, the deviation up to `SHAPE`
    of it, or to what is seen of it in the noisy M.
    """
    p, noise, expected = len(answer.at), answer.information_sd**2, answer.expected_information
    trace = float(np.trace(answer.information))
    size = 1.0 / (p / noise + 1.0 / expected**2)
    mean = max(size * (trace / noise + 1.0 / expected), LEAST_EXPECTED * expected)
    deviation = answer.information - trace / p * np.eye(p)
    seen = float((deviation**2).sum()) / max(1, p * (p + 1) // 2 - 1) - noise
    shape = max(seen, (SHAPE * mean) ** 2)
    kept = shape / (shape + noise)
    values, vectors = np.linalg.eigh(mean * np.eye(p) + kept * deviation)
    values = np.maximum(values, 1e-6 * mean)
    values = values * min(1.0, answer.n * answer.largest_information / values.sum())
    return Information((vectors * values) @ vectors.T, kept * noise, max(0.0, size - kept * noise / p))


def dispersion_of(answer: Round, information: np.ndarray) -> float:
    """Return φ = q/tr M of M (p, p), within limits of its value under the model."""
    limits = LEAST_DISPERSION * answer.expected_dispersion, LARGEST_DISPERSION * answer.expected_dispersion
    return float(np.clip(answer.squares / np.trace(information), *limits))


def posterior_of(answers: Sequence[Round], prior: Belief) -> tuple[Belief, np.ndarray]:
    """Return the normal approximation of the posterior given answers about the same rows.

    Also returns d (p,), the step to its mean from the first answer's θ in its T's units. Answer i estimates θ
    with two errors. That of its noise is its own, with precision J_i = A_iᵀN_i⁻¹A_i, A_i = M_iT_i⁻¹, N_i =
    S(d_i) − φM. That of sampling is common to all, with precision G, the mean of T_i⁻¹M_iT_i⁻¹/φ_i weighted
    by tr J_i. So the likelihood's precision is (J⁻¹ + G⁻¹)⁻¹, J = Σ J_i: of one answer M S⁻¹ M in units of T.
    The noise of M_i acts on steps that are not known: their second moments and the posterior are found
    together.
    """
    first = answers[0]
    unit, one = first.whitening, np.eye(len(first.at))  # all that follows is in units of the first T
    back = np.linalg.inv(unit)
    known = [information_of(answer) for answer in answers]
    changes = [np.linalg.solve(answer.whitening, unit) for answer in answers]
    offsets = [np.linalg.solve(answer.whitening, first.at - answer.at) for answer in answers]
    sampling = [
        change.T @ found.matrix @ change / dispersion_of(answer, found.matrix)
        for answer, found, change in zip(answers, known, changes, strict=True)
    ]
    precision = unit @ np.linalg.inv(prior.covariance) @ unit
    pull = precision @ back @ (prior.mean - first.at)
    covariance, d = back @ prior.covariance @ back, np.zeros(len(one))
    for _ in range(TURNS):
        last, own, seen = d, [], np.zeros(len(one))
        for answer, found, change, offset in zip(answers, known, changes, offsets, strict=True):
            step = offset + change @ d
            square = np.outer(step, step) + change @ covariance @ change.T
            noise = answer.noise_sd**2 * one + found.size * square
            noise += 0.5 * found.shape * (np.trace(square) * one + square)
            gain = np.linalg.solve(noise, found.matrix @ change).T
            own.append(gain @ found.matrix @ change)
            seen += gain @ (answer.scores - found.matrix @ offset)
        common = np.average(sampling, axis=0, weights=[np.trace(part) for part in own])
        kept = np.linalg.solve(sum(own) + common, common).T  # G (J + G)⁻¹
        covariance = np.linalg.inv(kept @ sum(own) + precision)
        covariance = 0.5 * (covariance + covariance.T)
        d = covariance @ (kept @ seen + pull)
        if np.abs(d - last).max() < CONVERGED:
            break
    return Belief(first.at + unit @ d, unit @ covariance @ unit), d


def without_noise(answers: Sequence[Round], prior: Belief) -> tuple[np.ndarray, np.ndarray]:
    """Return the posterior's covariance (p, p) that the same rows would have given if they were not noisy.

    Their precision is G of `posterior_of`, the mean over answers with equal weights. Also returns H (p, p):
    of a combination v of coefficients with v·Hv > 0 the variance is not known, as M there is below `HIDDEN`
    of its mean. T makes M about equal in all directions unless their rows are so few, and in units of T so
    long, that noise hides them or bounds clamp them.
    """
    found, white = [], []
    for answer in answers:
        matrix = information_of(answer).matrix
        back, dispersion = np.linalg.inv(answer.whitening), dispersion_of(answer, matrix)
        found.append(back @ matrix @ back / dispersion)
        white.append(back @ back * (np.trace(matrix) / len(back) / dispersion))
    own, usual = np.mean(found, axis=0), np.mean(white, axis=0)
    hidden = np.linalg.inv(own) - np.linalg.inv(usual) / HIDDEN
    return np.asarray(np.linalg.inv(own + np.linalg.inv(prior.covariance))), np.asarray(hidden)


def whitened(answer: Round, longest: np.ndarray) -> np.ndarray:
    """Return T (p, p) for which rows are about white, by M with eigenvalues that are hardly noise.

    `longest` (p,) bounds T of each coefficient.
    """
    p, (information, shape, _) = len(answer.at), information_of(answer)
    trace = float(np.trace(information)) / p
    least = min(max(np.sqrt(2.0 * p * shape), LEAST_EXPECTED * trace), trace)
    values, vectors = np.linalg.eigh(information)
    matrix = (vectors * np.maximum(values, least)) @ vectors.T
    back = np.linalg.inv(answer.whitening)
    white = back @ matrix @ back / answer.expected_information
    return symmetric_power(white + np.diag(longest**-2.0), -0.5)


class LogSd(NamedTuple):
    """What is known of ln sd of the residuals."""

    mean: float
    variance: float


def _density(x: np.ndarray | float) -> np.ndarray:
    """Return the standard normal density; `scipy.stats`, which has it, takes a second to import."""
    return np.exp(-np.square(x) / 2.0) / np.sqrt(2.0 * np.pi)


@functools.lru_cache(maxsize=32)
def _spreads(clip: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Return E min(ρ²x², c²) at ln ρ = `LOG_SDS`, its derivative, and the variance of min(x², c²)."""
    rho = np.exp(LOG_SDS)
    t = clip / rho
    value = rho**2 * ((2.0 * ndtr(t) - 1.0) - 2.0 * t * _density(t)) + 2.0 * clip**2 * ndtr(-t)
    mean = float(np.interp(0.0, LOG_SDS, value))
    fourth = 3.0 * (2.0 * ndtr(clip) - 1.0) - 2.0 * (clip**3 + 3.0 * clip) * _density(clip)
    variance = float(fourth + 2.0 * clip**4 * ndtr(-clip) - mean**2)
    return value, np.gradient(value, LOG_SDS), variance


def log_sd_of(answers: Sequence[Round], n: int, prior: LogSd) -> LogSd:
    """Return ln sd from noisy χ of answers about the same n rows, by the delta method.

    Residuals are taken as normal. As in `posterior_of` noise is each answer's own, sampling common.
    """
    found = np.array([_log_sd(answer, n) for answer in answers])
    weights = 1.0 / found[:, 1]
    own = 1.0 / weights.sum() + float(np.average(found[:, 2], weights=weights))
    weight = 1.0 / own + 1.0 / prior.variance
    mean = float(np.average(found[:, 0], weights=weights))
    return LogSd((mean / own + prior.mean / prior.variance) / weight, 1.0 / weight)


def _log_sd(answer: Round, n: int) -> tuple[float, float, float]:
    """Return ln sd from noisy χ, and its variances by noise and by sampling."""
    values, slopes, variance = _spreads(answer.clip)
    target = float(np.clip(answer.spread / n, values[0], 0.995 * values[-1]))
    ratio = float(np.interp(target, values, LOG_SDS))
    slope = max(float(np.interp(ratio, LOG_SDS, slopes)), 1e-6)
    noise = np.sqrt(2.0) * answer.clip**2 * answer.noise_sd / answer.bound
    mean = float(np.log(answer.residual_sd)) + float(np.clip(ratio, -1.5, 1.5))
    return mean, float(noise / n / slope) ** 2, variance / n / slope**2


def tails_of(small: Round, large: Round, n: int) -> tuple[float, float]:
    """Return by how much ln sd of the residuals is larger at a larger clip bound, and its error.

    It is 0 for normal residuals. The error counts sampling as if it were not of the same rows.
    """
    (first, *own), (second, *other) = _log_sd(small, n), _log_sd(large, n)
    return second - first, float(np.sqrt(sum(own) + sum(other)))


@functools.lru_cache(maxsize=256)
def white_lengths(p: int) -> np.ndarray:
    """Return lengths (2000,) of white normal rows of p numbers, at equal steps of probability."""
    return np.sqrt(2.0 * gammaincinv(p / 2.0, (np.arange(2000) + 0.5) / 2000))


class Weights(NamedTuple):
    """Moments of the weights w of white normal rows x at B = b sup √p: E w‖x‖²/p and E w²‖x‖²/p."""

    information: float
    squares: float

    @classmethod
    def at(cls, b: float, p: int) -> Weights:
        """Return the moments at b."""
        length = white_lengths(p)
        weight = np.minimum(1.0, b * np.sqrt(p) / length)
        return cls(*(float((weight**k * length**2).mean()) / p for k in (1, 2)))


@functools.lru_cache(maxsize=4096)  # asked in each round of each run
def predicted_variance(b: float, at: Reference, p: int, strength: float) -> float:
    """Return n times the variance of a coefficient, white normal rows, at B = b sup √p; up to a factor.

    `strength` is μ√n of the round's scores.
    """
    weights = Weights.at(b, p)
    noise = (2.0 * b * at.bound * np.sqrt(p) / strength) ** 2
    return (at.variance * weights.squares + noise) / (at.slope / at.root * weights.information) ** 2
