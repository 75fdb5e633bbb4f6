"""Accept bits: the tests of TunaMH and of DP-Fast MH (Zhang and Zhang 2023, Algorithms 1 and 2).

U_i = −T ln p(x_i|θ), r_i = U_i(θ) − U_i(θ'), |r_i| ≤ c_i M with M = ‖θ − θ'‖, and C = Σ c_i. On a minibatch,
Poisson(λ + CM) rows are drawn with replacement, row i with probability c_i/C; with v = r_i/(c_i M) and
h = CM/(2λ + CM) it is kept with probability (1 − hv)/(1 + h), and the rows kept make the log ratio
ℓ_1 = Σ 2 artanh(hv) (Algorithm 1 in shorter words). On all rows ℓ_2 = Σ r_i. Over the random numbers of a
minibatch the test is reversible (Zhang, Cooper and De Sa 2020) where no row is clipped, and remains so if
*which* of the two tests is made depends on λ + CM only. It does not if it depends on the number drawn, as
Algorithm 2 has it: given that number, the rows not kept count as well (Theorem 3 is wrong there;
docs/dp-fast-mh.md has the error's size).
"""

from typing import NamedTuple

import numpy as np

from dpmc.compiler import compilable
from dpmc.evaluators.poisson import CHUNK, NOISE, THINNING, poisson_count, uniform

#: A row's ratio beyond its bound by less than this, relatively, is rounding and does not count as clipped.
ROUNDING = 1e-9
ANY_NUMBER = 1 << 62


@compilable
class FastRule(NamedTuple):
    """What decides which test is made, and with how much noise; all of it public."""

    epsilon: float  # ε of one iteration; ∞: no noise
    delta: float  # δ of one iteration
    batch_mean: float  # λ
    most_rows: int  # K: from here on all rows; 0: always
    clip: float  # nats per unit distance, untempered, of every row; ∞: rows have bounds of their own
    branch_on_mean: bool  # minibatch where λ + CM < K; else where the number drawn is less than K
    barker: bool  # Barker's acceptance where no noise is drawn
    as_coded: bool  # noise uniform on [0, sd), and drawn already where sensitivity equals its limit
    inverted: bool  # sensitivity 2 ln(1 + 1/(λCM)) on a minibatch, as one script has it


@compilable
def batch_epsilon(epsilon, most_rows, share):
    """ε_0 = ε/(6Kp), p = `share` = max c_i / C: what a row drawn once may cost (Theorem 2)."""
    return epsilon / (6.0 * most_rows * share)


@compilable
def batch_multiplier(epsilon, delta, most_rows, share):
    """σ_1 = √(2 ln(2.5 Kp/δ)) / ε_0: noise sd over sensitivity on a minibatch; 0 if 2.5 Kp ≤ δ."""
    logarithm = np.log(2.5 * most_rows * share / delta)
    return np.sqrt(2.0 * max(logarithm, 0.0)) / batch_epsilon(epsilon, most_rows, share)


@compilable
def multiplier(epsilon, delta):
    """σ_2 = √(2 ln(1.25/δ)) / ε: noise sd over sensitivity of the Gaussian mechanism (Theorem 1)."""
    return np.sqrt(2.0 * np.log(1.25 / delta)) / epsilon


@compilable
def noise_sd(rule, sensitivity, limit, scale):
    """Noise sd of a test: 0 where its sensitivity is within `limit`, else `scale` times it."""
    if sensitivity < limit or (sensitivity == limit and not rule.as_coded):
        return 0.0
    return scale * sensitivity


@compilable
def batch_noise_sd(rule, share, reach):
    """Noise sd of a test on a minibatch; `share` = max c_i / C, `reach` = CM."""
    sensitivity = 2.0 * np.log(1.0 + reach / rule.batch_mean)
    if rule.inverted:
        sensitivity = 2.0 * np.log(1.0 + 1.0 / (rule.batch_mean * reach)) if reach > 0.0 else np.inf
    limit = batch_epsilon(rule.epsilon, rule.most_rows, share)
    scale = batch_multiplier(rule.epsilon, rule.delta, rule.most_rows, share)
    return noise_sd(rule, sensitivity, limit, scale)


@compilable
def rows_to_draw(rule, reach, word):
    """How many rows the minibatch has; −1: the test is made on all rows. `reach` = CM."""
    mean = rule.batch_mean + reach
    if not rule.branch_on_mean:
        count = poisson_count(word, mean, rule.most_rows)
        return count if count < rule.most_rows else -1
    if not mean < rule.most_rows:
        return -1
    return poisson_count(word, mean, ANY_NUMBER)


@compilable
def batch_log_ratio(evaluator, model, temperature, theta, proposal, distance, h, count, word, chosen, ratios):
    """ℓ_1 of one chain, θ (d,), over `count` rows drawn, and how many of them had to be clipped.

    `chosen` and `ratios` (CHUNK,) are scratch.
    """
    log_ratio, clipped = 0.0, 0
    for first in range(0, count, chosen.shape[0]):
        size = min(chosen.shape[0], count - first)
        for j in range(size):
            chosen[j] = evaluator.draw_row(word, first + j)
        evaluator.table.rows_ratio(model, theta, proposal, chosen[:size], ratios[:size])
        for j in range(size):
            reach = evaluator.bounds[chosen[j]] * distance
            v = temperature * ratios[j] / reach if reach > 0.0 else 0.0
            clipped += not abs(v) <= 1.0 + ROUNDING
            v = v if v > -1.0 else -1.0  # NaN, too, speaks against the proposal
            v = v if v < 1.0 else 1.0
            if uniform(word, THINNING + first + j) * (1.0 + h) < 1.0 - h * v:
                log_ratio += np.log((1.0 + h * v) / (1.0 - h * v))
    return log_ratio, clipped


@compilable
def log_ratios_of_all_rows(evaluator, model, theta, proposal, bound, asked, sums, counts):
    """Σ clip(r_j, ±bound_c) into `sums` (chains,) of the chains asked for; rows clipped into `counts`."""
    some, d = 0, theta.shape[1]
    for c in range(theta.shape[0]):
        some += asked[c]
    if some == 0:
        return
    here, there, within = np.empty((some, d)), np.empty((some, d)), np.empty(some)
    part, clipped = np.empty(some), np.zeros(some, np.int64)
    k = 0
    for c in range(theta.shape[0]):
        if asked[c]:
            for q in range(d):
                here[k, q], there[k, q] = theta[c, q], proposal[c, q]
            within[k] = bound[c]
            k += 1
    evaluator.full.ratio_sums(model, here, there, within, part, clipped)
    k = 0
    for c in range(theta.shape[0]):
        if asked[c]:
            sums[c], counts[c] = part[k], clipped[k]
            k += 1


@compilable
def barker_threshold(log_u):
    """ln(u/(1 − u)): Barker's test accepts a log ratio ℓ that is greater, with probability 1/(1 + e^−ℓ)."""
    return log_u - np.log1p(-np.exp(log_u))


@compilable
def passes(rule, log_ratio, sd, log_u, noise, word, c, i):
    """Whether chain c passes its test at iteration i, with noise of this sd; NaN does not."""
    if sd == 0.0:
        return (barker_threshold(log_u) if rule.barker else log_u) < log_ratio
    if rule.as_coded:
        return log_u < log_ratio + sd * uniform(word, NOISE) - 0.5 * sd * sd
    return log_u < log_ratio + noise.corrected(c, i, sd)


@compilable
def accept_bits(
    evaluator,
    model,
    temperature,
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
):
    """See `dpmc.privacy.mechanisms.Door.fast_test`; `prior` = ln p(θ') − ln p(θ) (chains,), `distance` = M.

    A chain whose `prior` is −∞ or NaN is rejected unseen.
    """
    chains = theta.shape[0]
    share = evaluator.largest / evaluator.total
    chosen, ratios = np.empty(CHUNK, np.int64), np.empty(CHUNK)
    asked, bound = np.zeros(chains, np.bool_), np.zeros(chains)
    for c in range(chains):
        accepted[c] = False
        if not prior[c] > -np.inf:
            continue
        word, reach = words[c, i, 0], evaluator.total * distance[c]
        count = rows_to_draw(rule, reach, word)
        if count < 0:
            asked[c] = True
            bound[c] = rule.clip * distance[c] if rule.clip < np.inf else np.inf
            continue
        h = reach / (2.0 * rule.batch_mean + reach)
        log_ratio, beyond = batch_log_ratio(
            evaluator, model, temperature, theta[c], proposal[c], distance[c], h, count, word, chosen, ratios
        )
        sd = batch_noise_sd(rule, share, reach)
        accepted[c] = passes(rule, log_ratio + prior[c], sd, log_u[c, i], noise, word, c, i)
        rows_used[c, i], noisy[c, i] = count, sd > 0.0
        clipped[c, i] += beyond
    sums, counts = np.zeros(chains), np.zeros(chains, np.int64)
    log_ratios_of_all_rows(evaluator, model, theta, proposal, bound, asked, sums, counts)
    for c in range(chains):
        if asked[c]:
            sensitivity = 2.0 * evaluator.largest * distance[c]
            sd = noise_sd(rule, sensitivity, rule.epsilon, multiplier(rule.epsilon, rule.delta))
            log_ratio = temperature * sums[c] + prior[c]
            accepted[c] = passes(rule, log_ratio, sd, log_u[c, i], noise, words[c, i, 0], c, i)
            rows_used[c, i], noisy[c, i], all_rows[c, i] = evaluator.bounds.shape[0], sd > 0.0, 1
            clipped[c, i] += counts[c]
