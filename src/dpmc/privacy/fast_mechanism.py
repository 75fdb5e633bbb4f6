"""Accept bits: the tests of TunaMH and of DP-Fast MH (Zhang and Zhang 2023, Algorithms 1 and 2).

U_i = −T ln p(x_i|θ), r_i = U_i(θ) − U_i(θ'), |r_i| ≤ c_i M with M = ‖θ − θ'‖, and C = Σ c_i.

On a minibatch, Poisson(λ + CM) rows are drawn with replacement, row i with probability c_i/C. With
v = r_i/(c_i M) and h = CM/(2λ + CM), a row is kept with probability (1 − hv)/(1 + h). The log ratio of the
rows kept is ℓ_1 = Σ 2 artanh(hv) (Algorithm 1, simplified). On all rows it is ℓ_2 = Σ r_i.

Averaged over the random numbers of a minibatch, the test is reversible if no row is clipped (Zhang, Cooper
and De Sa 2020). It stays reversible if the choice between the two tests depends only on λ + CM. It does not
if the choice depends on the number drawn, as in Algorithm 2: given that number, the rows not kept carry
information too (Theorem 3 is wrong there; docs/results/dp-fast-mh.md has the size of the error).
"""

from typing import NamedTuple

import numpy as np

from dpmc.base import Array, FastRule
from dpmc.evaluators import kernels
from dpmc.evaluators.generic import Evaluator
from dpmc.evaluators.poisson import BoundedRows
from dpmc.privacy.fast_mh import barker_threshold, batch_epsilon, batch_multiplier, multiplier
from dpmc.privacy.secure_noise import NoiseSource

ANY_NUMBER = 1 << 62


class Verdict(NamedTuple):
    """Results of the tests of one iteration, (chains,)."""

    accepted: Array
    rows_used: Array  # rows used, with repeats
    noise_drawn: Array  # whether noise was drawn
    all_rows: Array  # whether the test used all rows


class FastTest(NamedTuple):
    """The test of one iteration: its rows, its rule and its noise."""

    evaluator: Evaluator
    bounded: BoundedRows
    temperature: float
    rule: FastRule
    noise: NoiseSource

    def verdict(
        self, theta: Array, proposal: Array, prior_ratio: Array, log_uniform: Array, words: Array
    ) -> tuple[Verdict, Array]:
        """Return the results of the tests, and numbers of rows clipped (chains,).

        A proposal with `prior_ratio` −∞ is rejected without reading rows. `words` (chains,) are 64 random
        bits with which rows are drawn.
        """
        length = np.sqrt(((theta - proposal) ** 2).sum(axis=1))  # M
        reach = self.bounded.total * length  # CM
        seen = prior_ratio > -np.inf
        drawn = self.rows_to_draw(reach, words)  # −1: all rows
        every, some = seen & (drawn < 0), seen & (drawn >= 0)
        log_ratio, sd = np.zeros(len(theta)), np.zeros(len(theta))
        clipped = np.zeros(len(theta), np.int64)
        # One chain at a time, because minibatches differ in length.
        for c in np.flatnonzero(some):  # ℓ_1
            chosen = self.bounded.draw(words[c], int(drawn[c]))
            ratios = self.temperature * self.evaluator.row_ratios(theta[c], proposal[c], chosen)
            h = reach[c] / (2.0 * self.rule.batch_mean + reach[c])
            bounds = self.bounded.bounds[chosen] * length[c]
            log_ratio[c], clipped[c] = kernels.thinned_log_ratio(words[c], ratios, bounds, h)
        sd[some] = self.batch_noise_sd(reach[some])
        if every.any():
            # Not ∞ times the distance: that is NaN for a proposal equal to θ.
            bound = self.rule.clip * length if self.rule.clip < np.inf else np.full(len(theta), np.inf)
            sums, clipped[every] = self.evaluator.ratio_sums(theta[every], proposal[every], bound[every])
            log_ratio[every] = self.temperature * sums
            sd[every] = self.noise_sd(
                2.0 * self.bounded.largest * length[every],
                self.rule.epsilon,
                multiplier(self.rule.epsilon, self.rule.delta),
            )
        accepted = seen & self.passes(log_ratio + prior_ratio, sd, log_uniform, words)
        rows_used = np.where(every, self.evaluator.n, np.where(some, drawn, 0))
        return Verdict(accepted, rows_used, seen & (sd > 0.0), every), clipped

    def rows_to_draw(self, reach: Array, words: Array) -> Array:
        """Return the size of each minibatch (chains,); −1: the test is on all rows. `reach` = CM."""
        mean, most = self.rule.batch_mean + reach, self.rule.most_rows
        if not self.rule.branch_on_mean:
            counts = kernels.poisson_counts(words, mean, most)
            return np.where(counts < most, counts, -1)
        small = mean < most
        counts = np.full(len(reach), -1)
        counts[small] = kernels.poisson_counts(words[small], mean[small], ANY_NUMBER)
        return counts

    def batch_noise_sd(self, reach: Array) -> Array:
        """Return the noise sd of tests on minibatches (chains,); `reach` = CM."""
        rule, share = self.rule, self.bounded.largest / self.bounded.total
        if not rule.most_rows:
            return np.zeros(len(reach))  # there are no minibatches
        sensitivity = 2.0 * np.log(1.0 + reach / rule.batch_mean)
        if rule.inverted:
            with np.errstate(divide="ignore"):
                sensitivity = 2.0 * np.log(1.0 + 1.0 / (rule.batch_mean * reach))
        limit = batch_epsilon(rule.epsilon, rule.most_rows, share)
        return self.noise_sd(
            sensitivity, limit, batch_multiplier(rule.epsilon, rule.delta, rule.most_rows, share)
        )

    def noise_sd(self, sensitivity: Array, limit: float, scale: float) -> Array:
        """Return noise sds (chains,) of tests: 0 for a sensitivity within `limit`, else `scale` times it."""
        # A function of θ, θ' and the bounds: if these are public, drawing noise or not reveals nothing.
        within = sensitivity < limit if self.rule.as_coded else sensitivity <= limit
        with np.errstate(invalid="ignore"):
            return np.where(within, 0.0, scale * sensitivity)

    def passes(self, log_ratio: Array, sd: Array, log_uniform: Array, words: Array) -> Array:
        """Return whether chains accept, (chains,), with noise of these sds; NaN rejects."""
        # Without noise Barker's uniform number alone hides a row: Metropolis' test never rejects a rise, so a
        # rejection would rule out data sets.
        free = barker_threshold(log_uniform) if self.rule.barker else log_uniform
        if self.rule.as_coded:
            noisy = log_ratio + (sd * kernels.uniforms(words, kernels.NOISE) - 0.5 * sd * sd)
        else:
            noisy = self.noise.corrected(log_ratio, 1.0, sd)
        return np.where(sd == 0.0, free < log_ratio, log_uniform < noisy)
