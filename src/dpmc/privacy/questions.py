"""Questions: what one noisy answer asks of every row, and the proof of its sensitivity.

A question turns each row into a few numbers, in units of the standard deviation of their noise. Replacing a
row moves the sum of all rows by at most `sensitivity` in Euclidean norm, so that the sum with standard normal
noise is a Gaussian query of noise multiplier 1/`sensitivity`. Rows are clamped whatever is in them: no bound
rests on what a model says. A row whose numbers are not finite counts as 0.

**Scores.** Row i adds s_i of length S_i ≤ B along a unit vector ±e_i, M_i = m_i e_i e_iᵀ with 0 ≤ m_i ≤ H,
and q_i = S_i². With noise sds σ_s, σ_h (off the diagonal σ_h/√2, so that M's is isotropic in Frobenius norm)
and σ_q, two rows differ, in units of noise and squared, by

    F = (S₁² + S₂² + 2γS₁S₂)/σ_s² + (S₁² − S₂²)²/σ_q² + (m₁² + m₂² − 2m₁m₂γ²)/σ_h², γ = |cos(e₁, e₂)|.

*Lemma.* If σ_q ≥ √2 B σ_s and H²/σ_h² ≤ 1.7 B²/σ_s² then F ≤ 4B²/σ_s² + H²/σ_h². *Proof.* In units of B and
σ_s. The first two terms grow with the larger S; where it is 1 and the other t they are 2 − t² + t⁴ + 2γt at
most, so at most 2 + 2γ. The third is convex in each m, so largest at a corner: g max(1, 2 − 2γ²), g =
H²/σ_h². If γ² ≥ ½ it is g at most, and 2 + 2γ ≤ 4. Else 2 + 2γ + g(2 − 2γ²) ≤ 4 + g if and only if g ≤ 2(1 −
γ)/(1 − 2γ²), whose minimum over γ is 1.707. ∎ So q is free, and M costs H in place of √2 H.

The residual spread χ_i = min(h_i², c²) is free, too, with σ_χ = √2 c² σ_s/B, if S_i is clamped to B√χ_i/c as
well. Let x ≥ y be the two S², p_i = χ_i/c². As S_i² ≤ p_i ≤ 1, |p₁ − p₂| ≤ 1 − y, and x + y + 2γ√(xy) + ½(x −
y)² + ½(p₁ − p₂)² grows with x; at x = 1 it is at most 2 − y + y² + 2γ√y ≤ 2 + 2γ. ∎

With weights a row's numbers are multiplied by w/W in [0, 1], W the largest weight: the distance of two rows
is convex in each factor, so largest where it is 0 or 1, as for rows without weights. In sums a row counts w
times, and noise is W times as large.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpmc.base import GradientModel, SummaryModel
from dpmc.evaluators import calls
from dpmc.evaluators.lattice import MARGIN
from dpmc.models.regression import Regression
from dpmc.models.score_tables import ScoreTable, fresh

INSIDE = 1.0 - MARGIN  #: of bounds, so that rounding errors do not exceed them
#: Largest share f of the budget that goes to M: H²/σ_h² ≤ 1.7 B²/σ_s² is 4 f/(1 − f) ≤ 1.7.
LARGEST_SHARE = 0.298
SHORTEST = 1e-150  #: length of Tz from which its square is no subnormal number; a shorter one counts as 0
FARTHEST = 3.0  #: bound of the logarithm of a row's length


class RowQuestion:
    """A question whose answer is computed row by row."""

    @abstractmethod
    def of_rows(self, rows: np.ndarray) -> np.ndarray:
        """Return the numbers of each of n rows (n, N), in units of their noise."""

    def total(self, rows: np.ndarray) -> np.ndarray:
        """Return their sum (N,)."""
        return np.asarray(self.of_rows(rows).sum(axis=0))


def shortened(vectors: np.ndarray, clip: float) -> np.ndarray:
    """Return vectors (n, N) clipped to Euclidean norm `clip`, 0 for one whose norm is not finite."""
    with np.errstate(all="ignore"):
        norm, most = np.sqrt((vectors**2).sum(axis=1)), INSIDE * clip
    usable = np.isfinite(norm)
    return (np.where(usable, vectors.T, 0.0) * (most / np.maximum(np.where(usable, norm, 0.0), most))).T


class ClippedQuestion(RowQuestion):
    """Σ clip(v(x_j)), vectors v of a subclass clipped to Euclidean norm `clip`."""

    clip: float
    sensitivity: float

    @abstractmethod
    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """Return each row's vector (n, N), before it is clipped."""

    @property
    def noise_sd(self) -> float:
        """Return the sd of the noise of each component of the sum."""
        return 2.0 * self.clip / self.sensitivity

    def clipped(self, rows: np.ndarray) -> np.ndarray:
        """Return each row's clipped vector (n, N)."""
        return shortened(self.vectors(rows), self.clip)

    def of_rows(self, rows: np.ndarray) -> np.ndarray:
        return self.clipped(rows) / self.noise_sd


@dataclass(frozen=True, eq=False)
class SumQuestion(ClippedQuestion):
    """Σ clip(t(x_j) − centre), t the model's summaries."""

    model: SummaryModel
    centre: np.ndarray  # (k,)
    clip: float
    sensitivity: float

    @property
    def size(self) -> int:
        return len(self.centre)

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """Return each row's summaries, less the centre (n, k)."""
        return calls.summaries(self.model, rows) - self.centre


@dataclass(frozen=True, eq=False)
class GradientQuestion(ClippedQuestion):
    """Σ clip(T ∇ ln p(x_j|θ)), at one public θ."""

    model: GradientModel
    theta: np.ndarray  # (d,)
    whitening: np.ndarray  # T (d, d)
    clip: float  # B
    sensitivity: float

    @property
    def size(self) -> int:
        return len(self.theta)

    def vectors(self, rows: np.ndarray) -> np.ndarray:
        """Return each row's gradient (n, d), in units of T."""
        with np.errstate(all="ignore"):
            return calls.gradient(self.model, self.theta, rows) @ self.whitening


class ScoreAnswer(NamedTuple):
    """A noisy answer to a `ScoreQuestion`, in the question's own units."""

    scores: np.ndarray  # s (p,)
    information: np.ndarray  # M (p, p)
    squares: float  # q
    spread: float  # χ; 0 for families that are no location families


@dataclass(frozen=True, eq=False)
class ScoreQuestion:
    """s = Σ wa ψ Tz, M = Σ waκ (Tz)(Tz)ᵀ, q = Σ ‖wa ψ Tz‖², and χ, at one public θ.

    w = min(1, B/(a sup ‖Tz‖), H/(aκ‖Tz‖²)) is a function of the predictors alone, so that ψ stays unbiased.
    With weights of the model each term counts as often as they say.
    """

    model: Regression
    table: ScoreTable
    theta: np.ndarray  # (p,)
    whitening: np.ndarray  # T (p, p)
    bound: float  # B
    largest_information: float  # H
    sensitivity: float
    share: float  # f of the squared sensitivity that is M's
    asks_spread: bool = False  # χ, of a location family

    def __post_init__(self) -> None:
        assert 0.0 < self.share <= LARGEST_SHARE  # the lemma's condition

    #: σ_s, σ_h, σ_q and σ_χ.
    @property
    def noise_sd(self) -> float:
        most = self.model.design.largest_weight
        return most * 2.0 * self.bound / (self.sensitivity * np.sqrt(1.0 - self.share))

    @property
    def information_sd(self) -> float:
        most = self.model.design.largest_weight
        return most * self.largest_information / (self.sensitivity * np.sqrt(self.share))

    @property
    def squares_sd(self) -> float:
        return np.sqrt(2.0) * self.bound * self.noise_sd

    @property
    def spread_sd(self) -> float:
        return np.sqrt(2.0) * self.table.clip**2 * self.noise_sd / self.bound

    @property
    def size(self) -> int:
        p = len(self.theta)
        return p + p * (p + 1) // 2 + 1 + self.asks_spread

    def _parts(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return e (n, p), ±S, m, with s_j = ±S e, M_j = m e eᵀ, and χ of the lemma, and row weights (n,)."""
        model = fresh(self.model)
        z, copies = model.design(rows), np.broadcast_to(model.design.weight(rows), len(rows))
        row = self.table.at(z @ self.theta + model.design.offset(rows), model.response(rows))
        tz = z @ self.whitening
        with np.errstate(all="ignore"):
            square = (tz**2).sum(axis=1)
            length = np.sqrt(square)
            reach, most = row.root * row.bound * length, row.root * row.slope * square
            weight = np.minimum(1.0, np.minimum(self.bound / reach, self.largest_information / most))
            chi = np.minimum(row.clipped**2, self.table.clip**2)
            # The proof for χ has S² ≤ B² χ/c².
            limit = INSIDE * self.bound * (np.sqrt(chi) / self.table.clip if self.asks_spread else 1.0)
            # Clamped before they multiply a vector of length 1: no quotient of theirs can underflow.
            s = np.clip(weight * row.root * row.h * length, -limit, limit)
            m = np.clip(weight * most, 0.0, INSIDE * self.largest_information)
            unit = tz / length[:, None]
        usable = row.known & np.isfinite(s) & np.isfinite(m) & np.isfinite(square) & (length > SHORTEST)
        s, m, chi = (np.where(usable, part, 0.0) for part in (s, m, chi))
        return np.where(usable[:, None], unit, 0.0), s, m, chi, copies

    def of_rows(self, rows: np.ndarray) -> np.ndarray:
        unit, s, m, chi, copies = self._parts(rows)
        i, j = np.triu_indices(len(self.theta))
        twice = np.where(i == j, 1.0, np.sqrt(2.0))
        columns = [unit * (s / self.noise_sd)[:, None]]
        columns += [unit[:, i] * unit[:, j] * twice * (m / self.information_sd)[:, None]]
        columns += [(s**2 / self.squares_sd)[:, None], (chi / self.spread_sd)[:, None]]
        return np.concatenate(columns[: 3 + self.asks_spread], axis=1) * copies[:, None]

    def total(self, rows: np.ndarray) -> np.ndarray:
        unit, s, m, chi, copies = self._parts(rows)
        information = (unit * (copies * m)[:, None]).T @ unit
        squares, spread = (copies * s**2).sum(), (copies * chi).sum()
        return self.numbers(ScoreAnswer((copies * s) @ unit, information, float(squares), float(spread)))

    def numbers(self, answer: ScoreAnswer) -> np.ndarray:
        """Return an answer as numbers (N,) in units of their noise, the inverse of `answer`."""
        i, j = np.triu_indices(len(self.theta))
        entries = answer.information[i, j] * np.where(i == j, 1.0, np.sqrt(2.0)) / self.information_sd
        last = [answer.squares / self.squares_sd, answer.spread / self.spread_sd][: 1 + self.asks_spread]
        return np.concatenate([answer.scores / self.noise_sd, entries, last])

    def answer(self, numbers: np.ndarray) -> ScoreAnswer:
        """Return noisy numbers (N,) in the question's own units."""
        p = len(self.theta)
        i, j = np.triu_indices(p)
        information = np.empty((p, p))
        entries = numbers[p : p + len(i)] * np.where(i == j, 1.0, np.sqrt(0.5)) * self.information_sd
        information[i, j] = information[j, i] = entries
        q, *chi = numbers[p + len(i) :]
        spread = float(chi[0] * self.spread_sd) if chi else 0.0
        return ScoreAnswer(numbers[:p] * self.noise_sd, information, float(q * self.squares_sd), spread)


@dataclass(frozen=True, eq=False)
class LengthQuestion(RowQuestion):
    """Σ clip(ln(a ‖Tz‖/√p), ±3) at one public θ: how far T is from making rows white. Sensitivity 6."""

    model: Regression
    table: ScoreTable
    theta: np.ndarray
    whitening: np.ndarray
    sensitivity: float
    size = 1

    @property
    def noise_sd(self) -> float:
        """Return the noise sd of the sum of logarithms."""
        return 2.0 * FARTHEST / self.sensitivity

    def of_rows(self, rows: np.ndarray) -> np.ndarray:
        model = fresh(self.model)
        z = model.design(rows)
        tz = z @ self.whitening
        with np.errstate(all="ignore"):
            eta = z @ self.theta + model.design.offset(rows)
            length = np.sqrt((tz**2).sum(axis=1) / len(self.theta)) * self.table.root(eta)
            logs = np.clip(np.log(length), -FARTHEST, FARTHEST)
        return np.where(np.isnan(logs), 0.0, logs)[:, None] / self.noise_sd
