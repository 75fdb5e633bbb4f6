"""The mechanisms: the only access of algorithms to the rows. Each method of `PrivateData` is a mechanism.

A mechanism computes a clipped sum over the rows, adds its noise and returns only what the privacy proof
covers. Numbers of clipped rows go to private diagnostics, which no algorithm may read (a test searches the
algorithms for their names).

All methods work on several chains at once: θ is (chains, d), results are (chains,) or (chains, d). For a
diverged proposal the result is −∞, a rejection, or NaN; its query is spent nevertheless.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from dpmc.base import Array, FastRule, Question, has_diverged
from dpmc.evaluators.generic import Evaluator
from dpmc.evaluators.lattice import LatticeEvaluator
from dpmc.evaluators.poisson import BoundedRows
from dpmc.privacy.fast_mechanism import FastTest, Verdict
from dpmc.privacy.moments import MomentsQuestion
from dpmc.privacy.perturbed_objective import PerturbedLogit
from dpmc.privacy.secure_noise import NoiseSource

MOST_NEWTON, NEWTON_HALVINGS = 100, 60
NEWTON_ENDS = 1e-12  #: step over 1 + ‖θ‖∞


class PrivateData:
    """The mechanisms on the private rows, and the diagnostics of the current iteration.

    `words` (m, chains, b) are random 64-bit words with which batches of rows are drawn in m iterations.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        temperature: float,
        noise: NoiseSource,
        words: Array,
        bounded_rows: BoundedRows | None = None,
    ) -> None:
        self.n, self.temperature = evaluator.n, temperature  # public
        self.tests: Verdict | None = None  # results of `fast_test` in the current iteration
        self._evaluator, self._temperature, self._noise = evaluator, temperature, noise
        self._all_words, self._bounded_rows = words, bounded_rows
        self.begin(0)

    def begin(self, i: int) -> None:
        """Go to iteration i: use its words and noise, and reset the counts."""
        self._noise.begin(i)
        self._words = self._all_words[i]
        zeros = np.zeros(len(self._words), np.int64)
        # Two arrays, because counts are added in place.
        self.ratio_clipped, self.gradient_clipped = zeros, zeros.copy()

    def diagnostics(self) -> dict[str, Array]:
        """Return the diagnostics of the current iteration by name, (chains,)."""
        clipped = {"ratio_clipped": self.ratio_clipped, "gradient_clipped": self.gradient_clipped}
        return clipped if self.tests is None else {**self.tests._asdict(), **clipped}

    @property
    def runs(self) -> int:
        """Return the number of runs, each with its own answers."""
        return self._noise.runs

    def answers(self, questions: Sequence[Question]) -> Array:
        """Gaussian mechanism: Σ_j t(x_j) + N(0, I) (runs, N), t the numbers of a question, one for each run.

        A question has each row's numbers in units of their noise, and the proof of their sensitivity
        (`privacy/questions.py`). The noise multiplier is 1/`sensitivity`. Integer sums are in units of 1/S, S
        the scale of their noise; rounding moves each of N numbers by less than two units more, and the noise
        is larger in proportion.
        """
        sensitivity = questions[0].sensitivity
        totals, unit, rounding = self._evaluator.answer_sums(questions)
        return self._noise.shared(totals, unit, 1.0 + rounding / sensitivity)

    def noisy_sums(self, question: Question, sd: float) -> Array:
        """Gaussian mechanism: as `answers`, one for each chain, anew in each iteration (chains, N).

        The noise has `sd` ≥ 1 in units of the question's, for a model with N = d.
        """
        totals, unit, _ = self._evaluator.answer_sums([question])
        return self._noise.vectors(np.repeat(totals, len(self._words), axis=0), unit, max(1.0, sd), 0)

    def least_eigenvalues(self, question: MomentsQuestion) -> Array:
        """Gaussian mechanism: least eigenvalue of Σ zzᵀ of clipped rows + N(0, σ²) (runs,).

        The sensitivity is B² (`privacy/moments.py`), and σ the question's noise multiplier times that.
        """
        least = np.linalg.eigvalsh(self._evaluator.total(question.squares))[:1]
        return self._noise.shared(np.tile(least, (self.runs, 1)), 1.0, question.least_sd)[:, 0]

    def perturbed_optima(self, objective: PerturbedLogit) -> Array:
        """Objective perturbation: the θ (runs, p) that minimise an objective tilted by b·θ, b ~ N(0, σ² I).

        The proof is of the exact minimum (`privacy/perturbed_objective.py`); Newton's method ends where
        rounding errors are all that is left of the gradient, or with the best θ of `MOST_NEWTON` steps.
        """
        ridge = objective.ridge
        tilts = self._noise.shared(np.zeros((self.runs, len(ridge))), 1.0, objective.noise_sd)

        def derivatives(tilt: Array, theta: Array) -> tuple[Array, Array]:
            found = self._evaluator.total(lambda rows: objective.derivatives(rows, theta))
            return found[0] + ridge * theta + tilt, found[1:] + np.diag(ridge)

        return np.array([newton(partial(derivatives, tilt), len(ridge)) for tilt in tilts])

    def penalty_log_ratio(self, theta: Array, proposal: Array, clip: float, tau: float) -> Array:
        """Penalty mechanism: T(R + σz) − ½T²σ² (chains,), R the clipped log-likelihood ratio (Section 3.1).

        Rows are clipped to ±clip‖θ − θ'‖, so the sensitivity is 2 clip‖θ − θ'‖. With σ = 2τ√n clip‖θ − θ'‖
        the noise multiplier is τ√n for every move.
        """
        bound = clip * distance(theta, proposal)
        total, unit, diverged = self._ratio_sums(theta, proposal, bound)
        sd = self._temperature * 2.0 * tau * np.sqrt(self.n) * bound
        return replaced(self._noise.corrected(total, unit, sd), diverged, -np.inf)

    def exact_log_ratio(self, theta: Array, proposal: Array, clip: float, as_coded: bool = False) -> Array:
        """Log ratio without privacy: T R (chains,), rows clipped to ±clip‖θ − θ'‖ (clip = ∞: no clipping).

        `as_coded`: rows are clipped to ±clip|Σ_i (θ_i − θ'_i)|, as in the code behind Figure 6.2. This bounds
        no sensitivity, so no private mechanism has it.
        """
        length = np.abs((theta - proposal).sum(axis=1)) if as_coded else distance(theta, proposal)
        bound = clip * length if clip < np.inf else np.full(len(theta), np.inf)
        total, unit, diverged = self._ratio_sums(theta, proposal, bound)
        return replaced(unit * total, diverged, -np.inf)

    def batch_penalty_log_ratio(
        self, theta: Array, proposal: Array, clip: float, multiplier: float, variance_factor: float
    ) -> Array:
        """Minibatch penalty mechanism: λ − ½σ_b² + √τ C z − ½τ C² (chains,) (Section 3.4).

        The batch has b rows without replacement, clipped to ±c, c = clip‖θ − θ'‖. λ = (nT/b) Σ r_j, and σ_b²
        = (nT/b)² Σ (r_j − mean)² estimates the variance due to drawing a batch. The noise sd is √τ, which is
        `multiplier`, times the sensitivity of λ − ½σ_b²: C = 2nTc/b + `variance_factor` (1 − 1/b)(nTc/b)².
        The factor is 3 by Lemma 3.4 of the thesis; the exact one is 2. Of integer sums λ − ½σ_b² is computed
        exactly and rounded once, which adds to its sensitivity.
        """
        size = self._words.shape[1]
        scale = self._temperature * self.n / size
        bound = clip * distance(theta, proposal)
        total, squares, within, diverged = self._batch_ratio_sums(theta, proposal, bound)
        reach = scale * bound
        sensitivity = 2.0 * reach + variance_factor * (1.0 - 1.0 / size) * reach * reach
        if isinstance(self._evaluator, LatticeEvaluator):
            exact = self._evaluator.exact_estimate(total, squares, scale, size, within)
            estimate, unit, rounding = exact
        else:
            estimate = scale * total - 0.5 * scale * scale * squares
            unit, rounding = np.ones(1), np.zeros(1)
        noisy = self._noise.corrected(estimate, unit, multiplier * (sensitivity + rounding))
        return replaced(noisy, diverged, -np.inf)

    def barker_log_ratio(self, theta: Array, proposal: Array, clip_factor: float) -> Array:
        """DP Barker's mechanism: λ + N(0, 2 − s²) (chains,) (Section 3.3, Algorithm 3).

        Rows of a batch of b are clipped to ±c, c = clip_factor √b/(nT) with clip_factor ≤ 1.
        λ = (nT/b) Σ r_j, s² = (nT/b)² Σ (r_j − mean)². No batch has s² > 1, since
        Σ (r_j − mean)² ≤ Σ r_j² ≤ bc² ≤ (b/(nT))². So 2 − s² is positive for all rows. Of integer sums it is
        computed exactly and rounded once.
        """
        size = self._words.shape[1]
        scale = self._temperature * self.n / size
        bound = np.full(len(theta), clip_factor / (scale * np.sqrt(size)))
        total, squares, within, diverged = self._batch_ratio_sums(theta, proposal, bound)
        if isinstance(self._evaluator, LatticeEvaluator):
            unit = scale * self._evaluator.unit_of_ratios(within)
            noisy = self._noise.centred(total, unit, self._evaluator.barker_sd(squares, size, clip_factor))
        else:
            variance = scale * scale * squares
            assert (variance <= 1.0 + 1e-14 * size).all()  # proved above, up to rounding
            noisy = self._noise.centred(scale * total, 1.0, np.sqrt(2.0 - variance))
        return replaced(noisy, diverged, -np.inf)

    def gradient(self, theta: Array, clip: float, tau: float, stage: int) -> Array:
        """Gradient mechanism: T[Σ clip(∇ ln p(x_j|θ)) + 2τ√n clip z] (chains, d) (Algorithm 4).

        The sensitivity is 2 clip and the noise multiplier τ√n; z are standard normals of the iteration's
        `stage`-th gradient.
        """
        sd = self._temperature * 2.0 * tau * np.sqrt(self.n) * clip
        total, unit, diverged = self._gradient_sums(theta, clip)
        return replaced(self._noise.vectors(total, unit, sd, stage), diverged, np.nan)

    def exact_gradient(self, theta: Array, clip: float) -> Array:
        """Gradient without privacy: T Σ clip(∇ ln p(x_j|θ)) (chains, d); NaN where θ has diverged."""
        total, unit, diverged = self._gradient_sums(theta, clip)
        return replaced(unit * total, diverged, np.nan)

    def batch_gradient(self, theta: Array, clip: float, multiplier: float) -> Array:
        """Gradient mechanism on a batch: (n/b) Σ clip(T ∇ ln p(x_j|θ)) + σz (chains, d).

        The batch has b rows without replacement; tempered gradients are clipped to norm `clip`. Replacing a
        row of the batch changes the sum by at most 2 clip n/b, and σ is `multiplier` times that, for any T.
        NaN where θ has diverged.
        """
        diverged = has_diverged(theta)
        # ‖T g‖ ≤ C if and only if ‖g‖ ≤ C/T: evaluators clip untempered gradients.
        bound = clip / self._temperature
        total, counts = self._evaluator.batch_gradient_sums(
            replaced(theta, diverged, 0.0), bound, self._words
        )
        self.gradient_clipped += counts
        scale = self.n / self._words.shape[1]
        unit = scale * self._temperature * self._evaluator.unit_of_gradients(bound)
        noisy = self._noise.vectors(total, unit, multiplier * 2.0 * clip * scale, 0)
        return replaced(noisy, diverged, np.nan)

    def fast_test(
        self, theta: Array, proposal: Array, prior_ratio: Array, rule: FastRule, log_uniform: Array
    ) -> Array:
        """Return accept bits (chains,) of the tests of TunaMH or DP-Fast MH.

        `prior_ratio` = ln p(θ') − ln p(θ), `log_uniform` = ln u, both (chains,). `tests` records the number
        of rows used, whether noise was drawn and whether all rows were used. These are functions of θ, θ' and
        the number of rows drawn, hence public if the rule's constants are (`rule.clip` < ∞); otherwise these
        depend on the rows. Numbers of rows clipped, which are private, are added up. A proposal that has
        diverged or has prior density 0 is rejected without reading rows.
        """
        assert self._bounded_rows is not None
        test = FastTest(self._evaluator, self._bounded_rows, self._temperature, rule, self._noise)
        # Not `<=`, so that NaN is rejected unseen, too.
        unseen = has_diverged(proposal) | ~(prior_ratio > -np.inf)
        words = self._words[:, 0] if self._words.shape[1] else np.zeros(len(theta), np.uint64)
        self.tests, clipped = test.verdict(
            theta,
            replaced(proposal, unseen, theta),
            replaced(prior_ratio, unseen, -np.inf),
            log_uniform,
            words,
        )
        self.ratio_clipped += clipped
        return self.tests.accepted

    def _ratio_sums(self, theta: Array, proposal: Array, bound: Array) -> tuple[Array, Any, Array]:
        """Return clipped sums, the unit in which they count, tempered, and whether proposals have diverged.

        All are (chains,). Without noise: not for a release. At a diverged proposal no rows are read.
        """
        safe, within, diverged = without_diverged(theta, proposal, bound)
        total, counts = self._evaluator.ratio_sums(theta, safe, within)
        self.ratio_clipped += counts
        return total, self._temperature * self._evaluator.unit_of_ratios(within), diverged

    def _batch_ratio_sums(
        self, theta: Array, proposal: Array, bound: Array
    ) -> tuple[Array, Array, Array, Array]:
        """Return sums over a batch, Σ (r_j − mean)², bounds (0 if diverged), and whether it has (chains,)."""
        safe, within, diverged = without_diverged(theta, proposal, bound)
        total, squares, counts = self._evaluator.batch_ratio_sums(theta, safe, within, self._words)
        self.ratio_clipped += counts
        return total, squares, within, diverged

    def _gradient_sums(self, theta: Array, clip: float) -> tuple[Array, Any, Array]:
        """Return sums of clipped gradients (chains, d), their tempered unit, and where θ has diverged."""
        diverged = has_diverged(theta)
        total, counts = self._evaluator.gradient_sums(replaced(theta, diverged, 0.0), clip)
        self.gradient_clipped += counts
        return total, self._temperature * self._evaluator.unit_of_gradients(clip), diverged


def newton(derivatives: Callable[[Array], tuple[Array, Array]], p: int) -> Array:
    """Return the minimum (p,) of a strictly convex function, by its gradient and matrix of curvature.

    A step is halved until the gradient is shorter in the metric of the inverse curvature where it began.
    """
    theta = np.zeros(p)
    gradient, curvature = derivatives(theta)
    for _ in range(MOST_NEWTON):
        step = -np.linalg.solve(curvature, gradient)
        if np.abs(step).max() <= NEWTON_ENDS * (1.0 + np.abs(theta).max()):
            break
        for _ in range(NEWTON_HALVINGS):
            tried = derivatives(theta + step)
            if tried[0] @ np.linalg.solve(curvature, tried[0]) < gradient @ np.linalg.solve(
                curvature, gradient
            ):
                break
            step = 0.5 * step
        else:
            break
        theta, (gradient, curvature) = theta + step, tried
    return theta


def without_diverged(theta: Array, proposal: Array, bound: Array) -> tuple[Array, Array, Array]:
    """Return proposals (chains, d), bounds (chains,), θ and 0 for diverged ones, and which these are."""
    diverged = has_diverged(proposal)
    return replaced(proposal, diverged, theta), replaced(bound, diverged, 0.0), diverged


def distance(theta: Array, proposal: Array) -> Array:
    """Return ‖θ − θ'‖ (chains,)."""
    lengths: Array = np.sqrt(((theta - proposal) ** 2).sum(axis=1))
    return lengths


def replaced(values: Array, diverged: Array, instead: Array | float) -> Array:
    """Return values (chains, …) with `instead` where chains diverged: no model is evaluated there."""
    if not diverged.any():
        return values
    return np.where(diverged.reshape(-1, *[1] * (values.ndim - 1)), instead, values)
