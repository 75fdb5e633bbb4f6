"""Noisy scores: a few rounds of noisy bounded scores of a regression, then a posterior that knows its noise."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpmc.algorithms.score_answers import (
    LogSd,
    Mean,
    Normal,
    log_sd_of,
    mean_weight,
    posterior_of,
    predicted_variance,
    symmetric_power,
    whitened,
)
from dpmc.models.score_tables import ScoreTable
from dpmc.privacy.questions import LengthQuestion, Question, ScoreAnswer, ScoreQuestion

#: Shares of the budget of the rounds that find θ and T; the main rounds divide the rest.
WARM_UP = (0.05, 0.05, 0.1)
WARM_UP_UNKNOWN_SD = (0.03, 0.03, 0.03, 0.05, 0.06)
LENGTH_SHARE = 0.01  #: of a row's length, in the warm-up and the first main round
TRUST = 2.0  #: longest step, in units of T
AT = 0.5  #: η at which B, H and c are chosen
CLIPS = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5)
BOUNDS = (0.6, 0.7, 0.8, 0.9, 1.0, 1.15, 1.3, 1.5, 1.75, 2.0, 2.5)


@functools.lru_cache(maxsize=64)
def _chosen(table_of: Any, p: int, strength: float, clips: tuple[float, ...]) -> tuple[float, float]:
    best = (np.inf, 0.0, 0.0)
    for c in clips:
        r = table_of(c)
        for b in BOUNDS:
            value = predicted_variance(b, r.slope / r.root, r.variance, r.bound, p, strength)
            best = min(best, (value, b, c))
    return best[1], best[2]


@dataclass
class Progress:
    """Where the rounds of one run are: all of it is public."""

    theta: np.ndarray
    whitening: np.ndarray
    covariance: np.ndarray
    log_sd: LogSd | None


class Rounds:
    """The rounds of one run as a generator of questions; it is sent the noisy answers."""

    def __init__(
        self,
        family: Any,
        n: int,
        prior: Normal,
        mu: float,
        *,
        log_sd: LogSd | None = None,
        main: int = 5,
        share: float = 0.2,
        clip: float | None = None,
        tables: Any = None,
        warm: tuple[float, ...] | None = None,
        at: float | None = AT,
        work: float | None = None,
        far: float | None = None,
    ) -> None:
        self.family, self.n, self.prior, self.mu, self.share, self.clip = family, n, prior, mu, share, clip
        self.log_sd_prior = log_sd
        self.p = len(prior.mean)
        long = log_sd is not None or n * mu > 30.0 * self.p**1.5
        self.warm = warm or (WARM_UP_UNKNOWN_SD if long else WARM_UP)
        self.shares = (*self.warm, *[(1.0 - sum(self.warm)) / main] * main)
        self.main = main
        self.tables = {} if tables is None else tables
        self.reach = float(np.clip(n * mu / (20.0 * self.p**1.5), 1.3, 5.0))
        self.at = at
        self.work = work
        self.far = far
        self.centre = AT if at is None else at
        self.record: list[Mean] = []

    def table(self, clip: float, sd: float | None) -> ScoreTable:
        family = self.family if sd is None else replace(self.family, sd=sd)
        key = (clip, sd)
        if key not in self.tables:
            if sd is not None:
                return ScoreTable(family, clip)
            self.tables[key] = ScoreTable(family, clip)
        return self.tables[key]

    def bounds(self, strength: float, warm: bool, sd: float | None) -> tuple[float, float]:
        clips = (3.0,) if self.family.support == "binary" else (self.clip,) if self.clip else CLIPS
        strength = float(np.exp(round(np.log(strength), 2)))
        best = (np.inf, 0.0, 0.0)
        for c in clips:
            r = self.table(c, sd).reference(self.centre)
            for b in BOUNDS:
                best = min(best, (predicted_variance(b, r.slope / r.root, r.variance, r.bound, self.p, strength), b, c))
        _, b, c = best
        return b, (c if not warm or self.family.support == "binary" or self.clip else max(c, 1.5))

    def ask(self) -> Iterator[Question]:
        """Yield questions; each `send` gives the noisy numbers of the last one."""
        n, p, mu, warm = self.n, self.p, self.mu, len(self.warm)
        theta, covariance, log_sd = self.prior.mean, self.prior.covariance, self.log_sd_prior
        sd = None if log_sd is None else float(np.exp(log_sd.mean))
        whitening = np.eye(p)
        main: list[Mean] = []
        for k, total in enumerate(self.shares):
            length_share = min(LENGTH_SHARE, total / 3.0) if k <= warm else 0.0
            share = total - length_share
            sensitivity = mu * np.sqrt(share)
            strength = sensitivity * np.sqrt((1.0 - self.share) * n)
            if self.at is None and k <= warm:
                self.centre = float(np.clip(theta[0] + 0.5, -6.0, 8.0))
            if k <= warm:
                b, c = self.bounds(strength * (np.sqrt(self.main) if k == warm else 1.0), k < warm, sd)
            table = self.table(c, sd)
            r = table.reference(self.centre)
            white = r.slope / r.root
            if k == 0:
                whitening = np.eye(p) / table.reference(self.prior.mean[0]).root
            if length_share:
                question = LengthQuestion(table, theta, whitening, mu * np.sqrt(length_share))
                numbers = yield question
                noise = question.noise_sd / n
                value = float(numbers[0]) * noise
                whitening = whitening * np.exp(-value / (1.0 + noise**2))
            bound = b * r.bound * np.sqrt(p)
            most = self.reach * b * p * white
            asked = ScoreQuestion(
                table, theta, whitening, bound, most, sensitivity, self.share, asks_spread=log_sd is not None
            )
            numbers = yield asked
            found: ScoreAnswer = asked.answer(numbers)
            mean = Mean(
                theta, whitening, *found, asked.noise_sd, asked.information_sd, n, most, white, mean_weight(b, p), r.root * r.variance / r.slope
            )
            self.record.append(mean)
            spread_sd = asked.spread_sd
            if k >= warm:
                main.append(mean)
                weights = np.ones(len(main))
                if self.far and not self.table(c, sd).is_location:
                    last = theta
                    back = np.linalg.inv(whitening)
                    away = [np.linalg.norm(back @ (one.theta - last)) for one in main]
                    weights = np.array([1.0 / (1.0 + (x / self.far) ** 4) for x in away])
                mean = mean_of(main, weights)
                spread_sd /= np.sqrt(len(main))
            start = covariance
            prior = self.prior
            if self.work and not self.table(c, sd).is_location and k < len(self.shares) - 1:
                most = (self.work / self.table(c, sd).reference(prior.mean[0]).root) ** 2
                prior = Normal(prior.mean, np.diag(np.minimum(np.diag(prior.covariance), most)))
            posterior, d = posterior_of(mean, prior, start)
            covariance = posterior.covariance
            if log_sd is not None:
                log_sd = log_sd_of(mean.spread, spread_sd, n, c, sd, self.log_sd_prior)
            step = posterior.mean - mean.theta
            theta = mean.theta + step * min(1.0, TRUST / max(float(np.sqrt(d @ d)), 1e-300))
            if k < warm:
                whitening = whitened(mean)
                if sd is not None:
                    new = float(np.exp(log_sd.mean))
                    whitening, sd = whitening * new / sd, new
        self.result = posterior, log_sd, mean, d


def mean_of(answers: list[Mean], weights: np.ndarray) -> Mean:
    """Return the mean of answers with one T, B and H."""
    first, weights = answers[0], weights / weights.sum()
    k = 1.0 / (weights**2).sum()
    theta, scores, information, squares, spread = (
        sum(w * getattr(one, name) for w, one in zip(weights, answers, strict=True))
        for name in ("theta", "scores", "information", "squares", "spread")
    )
    return first._replace(
        theta=theta, scores=scores, information=information, squares=squares, spread=spread,
        noise_sd=first.noise_sd / np.sqrt(k), information_sd=first.information_sd / np.sqrt(k),
    )
