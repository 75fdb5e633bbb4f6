"""The only door to the data: every answer about the rows that an algorithm can get is a method here.

A mechanism computes a clipped sum over the rows, adds its noise and returns only what the privacy proof
covers. Algorithms hold a `Door` and never the rows. What a mechanism records on the side (how many rows
were clipped) goes to private diagnostics, which no algorithm reads and no release contains.

All methods work on several chains at once: θ is (chains, d), answers are (chains,) or (chains, d).
"""

from typing import Any, NamedTuple

import numpy as np

from dpmc.compiler import compilable
from dpmc.privacy.fast_mechanism import accept_bits
from dpmc.vectors import copy, distance, fill, sum_of_differences

#: A parameter beyond this has diverged. The rule looks at θ alone, so rejecting it tells nothing of the
#: rows, and below it the squares and products of the models stay finite.
DIVERGED = 1e30


@compilable
class Door(NamedTuple):
    """The private rows behind their mechanisms, and the public facts beside them."""

    model: Any  # formulas and public constants
    evaluator: Any  # the private rows; used in this file only
    temperature: float  # T, multiplies the log-likelihood
    n: int  # number of rows, public

    def log_prior(self, theta):
        """ln p(θ), public."""
        return self.model.log_prior(theta)

    def noisy_log_ratio(self, theta, proposal, clip, tau, noise, i, answer, clipped):
        """Penalty mechanism: answer_c = T(R + σz) − ½T²σ², R the clipped log-likelihood ratio.

        Rows are clipped to ±clip‖θ − θ'‖ and σ = 2τ√n clip‖θ − θ'‖, so that sensitivity 2 clip‖θ − θ'‖ is
        covered with noise multiplier τ√n whatever the move (Section 3.1). A diverged proposal is answered
        by −∞, a rejection; its release is paid for all the same.
        """
        bound = self.log_ratio_bound(theta, proposal, clip)
        self.ratio_sums_within(theta, proposal, bound, answer, clipped, i)
        for c in range(theta.shape[0]):
            if np.isfinite(answer[c]):
                sd = self.temperature * 2.0 * tau * np.sqrt(float(self.n)) * bound[c]
                answer[c] = self.temperature * answer[c] + noise.corrected(c, i, sd)

    def exact_log_ratio(self, theta, proposal, clip, as_coded, answer, clipped, i):
        """Without privacy: answer_c = T R, rows clipped to ±clip‖θ − θ'‖ (clip = ∞: not at all).

        `as_coded`: clip |Σ_i (θ_i − θ'_i)| in its place, the distance in the code behind Figure 6.2. It
        bounds no sensitivity, so no private mechanism offers it.
        """
        bound = self.log_ratio_bound(theta, proposal, clip)
        if as_coded and clip != np.inf:
            for c in range(theta.shape[0]):
                if not np.isnan(bound[c]):
                    bound[c] = clip * abs(sum_of_differences(theta[c], proposal[c]))
        self.ratio_sums_within(theta, proposal, bound, answer, clipped, i)
        for c in range(theta.shape[0]):
            answer[c] *= self.temperature

    def noisy_batch_log_ratio(
        self, theta, proposal, clip, multiplier, variance_factor, noise, words, i, answer, clipped
    ):
        """Minibatch penalty mechanism (Section 3.4): answer_c = λ − ½σ_b² + √τ C z − ½τ C².

        On a batch of b rows without replacement, rows clipped to ±c, c = clip‖θ − θ'‖: λ = (nT/b) Σ r_j, and
        σ_b² = (nT/b)² Σ (r_j − mean)² estimates the variance that drawing a batch brings. √τ = `multiplier`,
        times the sensitivity of λ − ½σ_b²: C = 2nTc/b + `variance_factor` (1 − 1/b)(nTc/b)², the factor 3 by
        Lemma 3.4 of the thesis, 2 exactly. −∞ for a diverged proposal.
        """
        bound = self.log_ratio_bound(theta, proposal, clip)
        squares = np.empty(theta.shape[0])
        self.batch_sums_within(theta, proposal, bound, words, i, answer, squares, clipped)
        size = float(words.shape[2])
        scale = self.temperature * float(self.n) / size
        for c in range(theta.shape[0]):
            if np.isfinite(answer[c]):
                reach = scale * bound[c]
                sensitivity = 2.0 * reach + variance_factor * (1.0 - 1.0 / size) * reach * reach
                answer[c] = scale * answer[c] - 0.5 * scale * scale * squares[c]
                answer[c] += noise.corrected(c, i, multiplier * sensitivity)

    def barker_log_ratio(self, theta, proposal, clip_factor, noise, words, i, answer, clipped):
        """DP Barker's mechanism (Section 3.3, Algorithm 3): answer_c = λ + N(0, 2 − s²).

        Rows of a batch of b are clipped to ±c, c = clip_factor √b/(nT) with clip_factor ≤ 1;
        λ = (nT/b) Σ r_j, s² = (nT/b)² Σ (r_j − mean)². No batch can have s² > 1:
        Σ (r_j − mean)² ≤ Σ r_j² ≤ bc² ≤ (b/(nT))². So nothing that the rows say stops a chain. −∞ for a
        diverged proposal.
        """
        size = float(words.shape[2])
        scale = self.temperature * float(self.n) / size
        bound = self.log_ratio_bound(theta, proposal, clip_factor)
        for c in range(theta.shape[0]):
            if not np.isnan(bound[c]):
                bound[c] = clip_factor / (scale * np.sqrt(size))
        squares = np.empty(theta.shape[0])
        self.batch_sums_within(theta, proposal, bound, words, i, answer, squares, clipped)
        for c in range(theta.shape[0]):
            if np.isfinite(answer[c]):
                variance = scale * scale * squares[c]
                assert variance <= 1.0 + 1e-14 * size  # proved above; the rest is rounding
                answer[c] = scale * answer[c] + noise.centred(c, i, np.sqrt(2.0 - variance))

    def noisy_gradient(self, theta, clip, tau, noise, i, stage, answer, clipped):
        """Gradient mechanism: answer = T[Σ clip(∇ ln p(x_j|θ)) + 2τ√n clip z] + ∇ ln p(θ).

        Sensitivity 2 clip, noise multiplier τ√n, a vector z of standard normals (Algorithm 4).
        """
        self.exact_gradient(theta, clip, i, answer, clipped)
        sd = self.temperature * 2.0 * tau * np.sqrt(float(self.n)) * clip
        z = np.empty(theta.shape[1])
        for c in range(theta.shape[0]):
            noise.vector(c, i, stage, sd, z)
            for k in range(z.shape[0]):
                answer[c, k] += z[k]

    def noisy_batch_gradient(self, theta, clip, multiplier, noise, words, i, answer, clipped):
        """Gradient mechanism on a batch: answer = (n/b) Σ clip(T ∇ ln p(x_j|θ)) + σz + ∇ ln p(θ), once.

        A batch of b rows without replacement, tempered gradients clipped to norm `clip`. Replacing a row of
        the batch moves the sum by at most 2 clip n/b; σ is `multiplier` times that, whatever T; z a vector
        of standard normals. NaN where θ has diverged.
        """
        safe = without_diverged(theta)
        counts = np.zeros(theta.shape[0], np.int64)
        bound = clip / self.temperature
        self.evaluator.batch_gradient_sums(self.model, safe, bound, words, i, answer, counts)
        scale = float(self.n) / float(words.shape[2])
        sd = multiplier * 2.0 * clip * scale
        prior, z = np.empty(theta.shape[1]), np.empty(theta.shape[1])
        for c in range(theta.shape[0]):
            self.model.log_prior_gradient(safe[c], prior)
            noise.vector(c, i, 0, sd, z)
            for k in range(prior.shape[0]):
                answer[c, k] = scale * self.temperature * answer[c, k] + z[k] + prior[k]
            clipped[c, i] += counts[c]
            if has_diverged(theta[c]):
                fill(answer[c], np.nan)

    def exact_gradient(self, theta, clip, i, answer, clipped):
        """Without privacy: answer = T Σ clip(∇ ln p(x_j|θ)) + ∇ ln p(θ); NaN where θ has diverged."""
        safe = without_diverged(theta)
        counts = np.zeros(theta.shape[0], np.int64)
        self.evaluator.gradient_sums(self.model, safe, clip, answer, counts)
        prior = np.empty(theta.shape[1])
        for c in range(theta.shape[0]):
            self.model.log_prior_gradient(safe[c], prior)
            for k in range(prior.shape[0]):
                answer[c, k] = self.temperature * answer[c, k] + prior[k]
            clipped[c, i] += counts[c]
            if has_diverged(theta[c]):
                fill(answer[c], np.nan)

    def fast_test(
        self,
        theta,
        proposal,
        rule,
        log_u,
        noise,
        words,
        i,
        accepted,
        rows_used,
        noisy,
        all_rows,
        clipped,
    ):
        """The test of TunaMH or DP-Fast MH: accept bits (chains,), the only answer here about the rows.

        `rule`, a `dpmc.privacy.fast_mechanism.FastRule`, says which; log_u (chains, m) are ln u of the test.
        Of iteration i are noted the rows looked at and, as 0 or 1, whether noise was drawn and whether it
        took all rows: functions of θ, θ' and the number of rows drawn, hence public if the rule's constants
        are (`rule.clip` < ∞). A proposal that has diverged, or of prior density 0, is rejected unseen.
        """
        distance = self.log_ratio_bound(theta, proposal, 1.0)
        prior = np.full(theta.shape[0], -np.inf)
        for c in range(theta.shape[0]):
            if not np.isnan(distance[c]):
                prior[c] = self.log_prior(proposal[c]) - self.log_prior(theta[c])
        accept_bits(
            self.evaluator,
            self.model,
            self.temperature,
            theta,
            proposal,
            distance,
            prior,
            rule,
            log_u,
            noise,
            words,
            i,
            accepted,
            rows_used,
            noisy,
            all_rows,
            clipped,
        )

    def log_ratio_bound(self, theta, proposal, clip):
        """The public bound clip‖θ − θ'‖ of one row's log ratio, per chain; NaN for a diverged proposal."""
        bound = np.empty(theta.shape[0])
        for c in range(theta.shape[0]):
            if has_diverged(proposal[c]):
                bound[c] = np.nan
            elif clip == np.inf:
                bound[c] = np.inf
            else:
                bound[c] = clip * distance(theta[c], proposal[c])
        return bound

    def ratio_sums_within(self, theta, proposal, bound, answer, clipped, i):
        """Clipped sums R into `answer`, −∞ where the bound is NaN; counts into `clipped`. Not a release."""
        safe, within = without_diverged_moves(theta, proposal, bound)
        counts = np.zeros(theta.shape[0], np.int64)
        self.evaluator.ratio_sums(self.model, theta, safe, within, answer, counts)
        reject_diverged(bound, counts, i, answer, clipped)

    def batch_sums_within(self, theta, proposal, bound, words, i, answer, squares, clipped):
        """As `ratio_sums_within`, over a batch; Σ (r_j − mean)² into `squares` (chains,)."""
        safe, within = without_diverged_moves(theta, proposal, bound)
        counts = np.zeros(theta.shape[0], np.int64)
        self.evaluator.batch_sums(self.model, theta, safe, within, words, i, answer, squares, counts)
        reject_diverged(bound, counts, i, answer, clipped)


@compilable
def without_diverged(theta):
    """θ (chains, d) with 0 in place of diverged positions, for which models need not be defined."""
    safe = theta.copy()
    for c in range(theta.shape[0]):
        if has_diverged(theta[c]):
            fill(safe[c], 0.0)
    return safe


@compilable
def without_diverged_moves(theta, proposal, bound):
    """Proposals (chains, d) and bounds (chains,): no move and 0 where the bound is NaN."""
    safe, within = proposal.copy(), bound.copy()
    for c in range(theta.shape[0]):
        if np.isnan(bound[c]):
            copy(theta[c], safe[c])
            within[c] = 0.0
    return safe, within


@compilable
def reject_diverged(bound, counts, i, answer, clipped):
    """Answer −∞ where the bound is NaN; elsewhere add the rows clipped, `counts`, to iteration i."""
    for c in range(bound.shape[0]):
        if np.isnan(bound[c]):
            answer[c] = -np.inf
        else:
            clipped[c, i] += counts[c]


@compilable
def has_diverged(theta):
    """Whether a position (d,) is not finite or beyond any use; a public property of θ."""
    for k in range(theta.shape[0]):
        if not abs(theta[k]) < DIVERGED:
            return True
    return False
