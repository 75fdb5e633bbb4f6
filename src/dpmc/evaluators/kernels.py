"""All functions that numba compiles for sums over rows: they take plain arrays and do not depend on models.

They are in one file because numba's disk cache does not notice a change in a called function of another file.
Chains are a leading axis; the arithmetic of a chain does not depend on the other chains.

Three rules ensure that one row changes a sum by its bound plus rounding, for any rows. Clipped rows are
clipped and summed one by one. Sums of statistics replace sums over rows only if the terms that cancel in them
are at most `WELL_CONDITIONED` times the bound. Values are not centred: a row's term depends on that row only.

`python -m dpmc.sampling` fills numba's cache, so that many processes do not compile at once.
"""

import math
from typing import Any

import numpy as np

from dpmc.common.compiling import njit

WELL_CONDITIONED = 4096.0  #: rounding of a sum of n such terms is below n · 1e-12 of the bound
LARGEST_TERM = 1e150  #: its square is finite
BLOCK = 512  #: rows per block: loops of one length, intermediate results in the first-level cache
TILE = 4  #: chains and statistics that `combine` takes at a time

#: Sums may be reassociated, for vector instructions; NaN and infinity keep their meaning.
ROW_SUMS: dict[str, Any] = {
    "cache": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
}
#: If exactness depends on the order of operations, only fused multiply-add is allowed.
EXACT_ORDER: dict[str, Any] = {**ROW_SUMS, "fastmath": {"contract"}}


# --- clipping ------------------------------------------------------------------------------------


@njit(**ROW_SUMS)
def clip(ratio, bound):
    """Return a log ratio clipped to ±bound; NaN counts as −bound, against the proposal."""
    kept = ratio if ratio > -bound else -bound
    return kept if kept < bound else bound


@njit(**ROW_SUMS)
def clip_factor(square, bound):
    """Return min(1, bound/‖g‖) for ‖g‖² = `square`; the bound may be infinite."""
    factor = bound / math.sqrt(square)
    return factor if square > bound * bound else 1.0


@njit(**EXACT_ORDER)
def clipped_vector_sum(vectors, bound):
    """Sum vectors (m, d), each clipped to norm `bound`, in order; also count the clipped.

    A vector whose square is not finite counts as 0, and as clipped.
    """
    total, clipped = np.zeros(vectors.shape[1]), 0
    for vector in vectors:
        square = 0.0
        for value in vector:
            square += value * value
        clipped += not square <= bound * bound
        if square < np.inf:
            factor = clip_factor(square, bound)
            for i in range(len(vector)):
                total[i] += factor * vector[i]
    return total, clipped


# --- all rows, log ratios of one statistic with a coefficient: sorted columns ----------------------


@njit(**ROW_SUMS)
def sorted_ratio_sums(ordered, prefix, median, alpha, gamma, bound):
    """Sum clip(α·t + γ, ±bound) for chains whose α (chains, k) has at most one nonzero coefficient.

    `ordered` (k, n): each statistic ascending; `prefix` (k, n + 1): `sorted_prefix`; `median` (k,). Returns
    sums and numbers clipped (chains,); −1 clipped if another kernel must compute the sum.
    """
    sums, counts = np.zeros(len(alpha)), np.full(len(alpha), -1)
    for c in range(len(alpha)):
        active = np.flatnonzero(alpha[c])
        if len(active) > 1:
            continue
        q = active[0] if len(active) == 1 else 0
        slope, offset, farthest = alpha[c, q], gamma[c], max(abs(ordered[q, 0]), abs(ordered[q, -1]))
        # As accurate as reading rows if little cancels, and no term overflows.
        little = abs(slope * median[q]) + abs(offset) <= WELL_CONDITIONED * bound[c]
        if little and abs(slope) * farthest + abs(offset) <= LARGEST_TERM:
            sums[c], counts[c] = sorted_sum(ordered, prefix, median, q, slope, offset, bound[c])
    return sums, counts


@njit(**EXACT_ORDER)
def sorted_sum(ordered, prefix, median, q, alpha, gamma, bound):
    """Sum clip(α t + γ, ±bound) of the q-th statistic t and count the clipped, by two binary searches.

    The unclipped rows are those from the first with α t + γ ≥ −bound to the last with α t + γ ≤ bound
    (mirrored for α < 0). Rounding is monotone in t, so the searches agree with a pass over all rows.
    """
    n, sign = ordered.shape[1], 1.0
    if alpha < 0.0:
        sign, alpha, gamma = -1.0, -alpha, -gamma
    low, high, left = 0, 0, n
    # Both searches take the same number of steps, so one loop makes them.
    while left > 0:
        half = (left + 1) // 2
        if alpha * ordered[q, low + half - 1] + gamma < -bound:
            low += half
        if alpha * ordered[q, high + half - 1] + gamma <= bound:
            high += half
        left -= half
    total = alpha * (prefix[q, high] - prefix[q, low]) + (alpha * median[q] + gamma) * (high - low)
    clipped = n - (high - low)
    if clipped > 0:
        total += bound * ((n - high) - low)
    return sign * total, clipped


def sorted_prefix(ordered: np.ndarray, median: np.ndarray) -> np.ndarray:
    """Return sums (k, n + 1) of ordered (k, n) − median from the middle outwards, negative below it.

    The sum of a range then has no rounding errors of rows farther out, such as one huge row that is always
    clipped. Extended precision keeps errors from growing with n.
    """
    k, n = ordered.shape
    middle = n // 2
    prefix = np.zeros((k, n + 1))
    for q in range(k):
        centred = (ordered[q] - median[q]).astype(np.longdouble)
        prefix[q, middle + 1 :] = np.cumsum(centred[middle:])
        prefix[q, :middle] = -np.cumsum(centred[:middle][::-1])[::-1]
    return prefix


# --- all rows, any number of statistics: blocks ordered by distance ---------------------------------


@njit(**EXACT_ORDER)
def combine(slopes, block, values):
    """Put Σ_q slopes_iq block_qj in `values` (m, BLOCK), for slopes (m, k) with m up to TILE.

    Each number is summed in the order of q, whatever m is, so that its rounding does not depend on m.
    """
    m, k = slopes.shape
    first = k % TILE if m == TILE else k
    for i in range(m):
        for j in range(BLOCK):
            values[i, j] = slopes[i, 0] * block[0, j] if first > 0 else 0.0
        for q in range(1, first):
            slope = slopes[i, q]
            for j in range(BLOCK):
                values[i, j] += slope * block[q, j]
    if m < TILE:
        return
    # Each row is read once for TILE chains, each sum once for TILE statistics. Scalars stay in registers.
    s, v = slopes, values
    for q in range(first, k, TILE):
        a0, a1, a2, a3 = s[0, q], s[0, q + 1], s[0, q + 2], s[0, q + 3]
        b0, b1, b2, b3 = s[1, q], s[1, q + 1], s[1, q + 2], s[1, q + 3]
        c0, c1, c2, c3 = s[2, q], s[2, q + 1], s[2, q + 2], s[2, q + 3]
        d0, d1, d2, d3 = s[3, q], s[3, q + 1], s[3, q + 2], s[3, q + 3]
        for j in range(BLOCK):
            w, x, y, z = block[q, j], block[q + 1, j], block[q + 2, j], block[q + 3, j]
            v[0, j] = v[0, j] + a0 * w + a1 * x + a2 * y + a3 * z
            v[1, j] = v[1, j] + b0 * w + b1 * x + b2 * y + b3 * z
            v[2, j] = v[2, j] + c0 * w + c1 * x + c2 * y + c3 * z
            v[3, j] = v[3, j] + d0 * w + d1 * x + d2 * y + d3 * z


@njit(**ROW_SUMS)
def block_ratio_sums(blocks, n, first, alpha, gamma, bound):
    """Sum clip(α·t + γ, ±bound) over the rows from block `first` (chains,) on; also count the clipped.

    `blocks` (blocks, k, BLOCK), padded with zeros; α (chains, k).
    """
    chains = len(alpha)
    sums, counts = np.zeros(chains), np.zeros(chains, np.int64)
    ratios = np.empty((TILE, BLOCK))
    for b in range(first.min(), blocks.shape[0]):
        rows = min(BLOCK, n - b * BLOCK)
        for start in range(0, chains, TILE):
            end = min(chains, start + TILE)
            if b < first[start:end].min():
                continue
            combine(alpha[start:end], blocks[b], ratios)
            for c in range(start, end):
                if b < first[c]:
                    continue
                total, clipped = 0.0, 0
                for j in range(rows):
                    ratio = ratios[c - start, j] + gamma[c]
                    kept = clip(ratio, bound[c])
                    total += kept
                    clipped += kept != ratio
                sums[c] += total
                counts[c] += clipped
    return sums, counts


@njit(**ROW_SUMS)
def block_gradient_sums(blocks, n, first, linear, constant, bound, link=None):
    """Sum clipped G t + h over the rows from block `first` (chains,) on; also count the clipped.

    G (chains, d, k), h (chains, d); zeros of G are skipped. Returns sums (chains, d) and counts (chains,).
    Components with one coefficient are computed in pairs and twice, for the norms and for the sums; values of
    the others are stored. A block is read for all chains while it is in the cache.

    With a `link`, (β (chains, k), η (chains,), s) of a softplus model, t is replaced by `softplus_terms`.
    """
    chains, d, k = linear.shape
    sums, counts = np.zeros((chains, d)), np.zeros(chains, np.int64)
    factors, values = np.empty(BLOCK), np.empty((d, BLOCK))
    columns, active = nonzero_columns(linear)
    terms, weights = np.empty((k, BLOCK)), np.empty((1, BLOCK))
    for b in range(first.min(), blocks.shape[0]):
        block = blocks[b]
        for c in range(chains):
            if b < first[c]:
                continue
            if link is not None:
                block = terms
                softplus_terms(blocks[b], link[0][c : c + 1], link[1][c], link[2], weights, terms)
            for j in range(BLOCK):
                factors[j] = 0.0
            i = 0
            while i < d:
                if are_paired(active, c, i):
                    q, r = columns[c, i, 0], columns[c, i + 1, 0]
                    u, g, v, h = linear[c, i, q], constant[c, i], linear[c, i + 1, r], constant[c, i + 1]
                    for j in range(BLOCK):
                        one, two = u * block[q, j] + g, v * block[r, j] + h
                        factors[j] += one * one + two * two
                    i += 2
                    continue
                for j in range(BLOCK):
                    values[i, j] = constant[c, i]
                for m in range(active[c, i]):
                    q = columns[c, i, m]
                    u = linear[c, i, q]
                    for j in range(BLOCK):
                        values[i, j] += u * block[q, j]
                for j in range(BLOCK):
                    factors[j] += values[i, j] * values[i, j]
                i += 1
            counts[c] += turn_into_factors(factors, min(BLOCK, n - b * BLOCK), bound)
            i = 0
            while i < d:
                one, two = 0.0, 0.0
                if are_paired(active, c, i):
                    q, r = columns[c, i, 0], columns[c, i + 1, 0]
                    u, g, v, h = linear[c, i, q], constant[c, i], linear[c, i + 1, r], constant[c, i + 1]
                    for j in range(BLOCK):
                        # Chosen, not multiplied: 0 times a value that is not finite would be NaN.
                        usable = factors[j] > 0.0
                        one += factors[j] * (u * block[q, j] + g) if usable else 0.0
                        two += factors[j] * (v * block[r, j] + h) if usable else 0.0
                    sums[c, i] += one
                    sums[c, i + 1] += two
                    i += 2
                    continue
                for j in range(BLOCK):
                    one += factors[j] * values[i, j] if factors[j] > 0.0 else 0.0
                sums[c, i] += one
                i += 1
    return sums, counts


@njit(**ROW_SUMS)
def are_paired(active, c, i):
    """Return whether components i and i + 1 of chain c's gradients have one coefficient each."""
    return i + 1 < active.shape[1] and active[c, i] == 1 and active[c, i + 1] == 1


@njit(**ROW_SUMS)
def nonzero_columns(linear):
    """Return nonzero columns (chains, d, k) of each row of G (chains, d, k), and their number (chains, d)."""
    columns, active = np.zeros(linear.shape, np.int64), np.zeros(linear.shape[:2], np.int64)
    for c in range(linear.shape[0]):
        for i in range(linear.shape[1]):
            for q in range(linear.shape[2]):
                if linear[c, i, q] != 0.0:
                    columns[c, i, active[c, i]] = q
                    active[c, i] += 1
    return columns, active


@njit(**ROW_SUMS)
def turn_into_factors(squares, rows, bound):
    """Replace squared norms (BLOCK,) by clip factors; return how many of the first `rows` are clipped.

    Factors of the padding, and of gradients whose square is not finite, become 0.
    """
    clipped = 0
    for j in range(rows):
        clipped += not squares[j] <= bound * bound
        squares[j] = clip_factor(squares[j], bound) if squares[j] < np.inf else 0.0
    for j in range(rows, squares.shape[0]):
        squares[j] = 0.0
    return clipped


# --- batches of rows -------------------------------------------------------------------------------


@njit(**ROW_SUMS)
def below(word, m):
    """Return ⌊word · m / 2⁶⁴⌋ for a 64-bit word and m < 2³², by two products of 32 bits."""
    half = np.uint64(32)
    factor = np.uint64(m)
    high = (word >> half) * factor
    low = ((word & np.uint64(0xFFFFFFFF)) * factor) >> half
    return np.int64((high + low) >> half)


@njit(**ROW_SUMS)
def draw_batches(words, n):
    """Draw a batch of b different rows for each chain, (chains, b), all equally likely (Floyd's method).

    `words` (chains, b) are uniform 64-bit numbers. The bias is n / 2⁶⁴ per row, below 1e-13 for n < 10⁶.
    Needs n < 2³².
    """
    chosen, taken = np.empty(words.shape, np.int64), np.zeros(n, np.bool_)
    chains, b = words.shape
    for c in range(chains):
        for q in range(b):
            last = n - b + q
            pick = below(words[c, q], last + 1)
            if taken[pick]:
                pick = last  # no earlier step could take it
            taken[pick] = True
            chosen[c, q] = pick
        # Only what was taken: clearing all n for each chain would cost more than the batch.
        for q in range(b):
            taken[chosen[c, q]] = False
    return chosen


@njit(**ROW_SUMS)
def affine_row_ratios(table, chosen, alpha, gamma):
    """Return α·t + γ (chains, b) of rows `chosen` (chains, b) of a table (n, k); 0 if a row is not finite."""
    ratios = np.empty(chosen.shape)
    for c in range(chosen.shape[0]):
        for j in range(chosen.shape[1]):
            row, ratio = chosen[c, j], gamma[c]
            for q in range(alpha.shape[1]):
                ratio += alpha[c, q] * table[row, q]
            ratios[c, j] = 0.0 if np.isnan(table[row, 0]) else ratio
    return ratios


@njit(**ROW_SUMS)
def batch_gradient_sums(table, chosen, linear, constant, bound):
    """Sum clipped G t + h over rows `chosen` (chains, b) of a table (n, k); also count the clipped.

    A gradient whose square is not finite counts as 0, and as clipped.
    """
    chains, d, k = linear.shape
    sums, counts = np.zeros((chains, d)), np.zeros(chains, np.int64)
    gradient = np.empty(d)
    for c in range(chains):
        for j in range(chosen.shape[1]):
            row, square = chosen[c, j], 0.0
            for i in range(d):
                value = constant[c, i]
                for q in range(k):
                    value += linear[c, i, q] * table[row, q]
                gradient[i] = value
                square += value * value
            counts[c] += not square <= bound * bound
            if square < np.inf:
                factor = clip_factor(square, bound)
                for i in range(d):
                    sums[c, i] += factor * gradient[i]
    return sums, counts


@njit(**ROW_SUMS)
def clipped_moments(ratios, bound):
    """Return Σ clip(r), Σ (clip(r) − mean)² and the number clipped (chains,) of r (chains, b)."""
    chains, b = ratios.shape
    sums, squares, counts = np.zeros(chains), np.zeros(chains), np.zeros(chains, np.int64)
    for c in range(chains):
        total, square = 0.0, 0.0
        for j in range(b):
            kept = clip(ratios[c, j], bound[c])
            total += kept
            counts[c] += kept != ratios[c, j]
        mean = total / b
        # A second pass: Σ r² − b mean² would cancel, and could become negative.
        for j in range(b):
            square += (clip(ratios[c, j], bound[c]) - mean) ** 2
        sums[c], squares[c] = total, square
    return sums, squares, counts


# --- the exponential function, for softplus models and the kernel sum ----------------------------------

LOWEST = -746.0  #: its exp rounds to 0
TO_BINARY = 1.0 / math.log(2.0)
#: log 2 in two pieces; the first has 21 zero bits at its end, so that a multiple up to 1077 is exact.
LOG_2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
LOG_2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
WHOLE = 1.5 * 2.0**52  #: adding it rounds to a whole number, which is in the last bits of the sum
# Taylor series of exp at 0: the terms after r^13 / 13! are below 5e-18 for |r| <= log(2) / 2.
(C2, C3, C4, C5, C6, C7, C8, C9, C10, C11, C12, C13) = (1.0 / math.factorial(k) for k in range(2, 14))


@njit(**EXACT_ORDER)
def exponential(argument):
    """Return e^argument for an argument of at most 0, −∞ included, to within one unit in the last place.

    It has no branch or call, so that a loop over it is vectorised (a loop over `math.exp` needs Intel's
    vector library for that). e^a = 2ⁿ e^r, with n the whole number nearest a / ln 2 and |r| ≤ ½ ln 2. NaN
    gives NaN.
    """
    bounded = LOWEST if argument < LOWEST else argument
    shifted = bounded * TO_BINARY + WHOLE
    n = shifted - WHOLE
    r = (bounded - n * LOG_2_HIGH) - n * LOG_2_LOW
    series = C11 + r * (C12 + r * C13)
    series = C8 + r * (C9 + r * (C10 + r * series))
    series = C5 + r * (C6 + r * (C7 + r * series))
    series = 1.0 + r * (1.0 + r * (C2 + r * (C3 + r * (C4 + r * series))))
    # The power of 2 is written into the exponent's bits, 2^128 too large, so that it is a normal number even
    # if the result is subnormal; the last product removes this factor and rounds.
    power = np.int64((np.float64(shifted).view(np.int64) + (1023 + 128)) << 52).view(np.float64)
    return series * power * 2.0**-128


# --- softplus models ---------------------------------------------------------------------------------

#: artanh u = u + u³ Σ_i ARTANH_i u^{2i} for |u| ≤ 1/3, relative error 1e-17 (Chebyshev interpolation).
ARTANH = (
    0.3333333333333333,
    0.20000000000007298,
    0.142857142835529,
    0.11111111358863489,
    0.09090894710544288,
    0.07692785243650975,
    0.06657068641443889,
    0.06000569353232963,
    0.04400200911722595,
    0.08082379826691899,
)


@njit(**ROW_SUMS)
def softplus_ratio_sums(blocks, n, lines, offsets, sign, bound):
    """Sum clipped changes of α·t + γ + s softplus(β·t + η) over all rows; also count the clipped.

    `lines` (chains, 3, k) and `offsets` (chains, 3): the change of (α, γ), then (β, η) before and after.
    """
    chains, _, k = lines.shape
    sums, counts, values = np.zeros(chains), np.zeros(chains, np.int64), np.empty((TILE, BLOCK))
    slopes = np.zeros((chains, TILE, k))  # a fourth line of zeros is less work than three lines alone
    slopes[:, :3] = lines
    for b in range(blocks.shape[0]):
        rows = min(BLOCK, n - b * BLOCK)
        for c in range(chains):
            combine(slopes[c], blocks[b], values)
            for i in range(3):
                for j in range(BLOCK):
                    values[i, j] += offsets[c, i]
            ratios = values[0]
            add_softplus_change(values[1], values[2], sign, ratios)
            total, clipped = 0.0, 0
            for j in range(rows):
                kept = clip(ratios[j], bound[c])
                total += kept
                clipped += kept != ratios[j]
            sums[c] += total
            counts[c] += clipped
    return sums, counts


@njit(**EXACT_ORDER)
def softplus_terms(block, slopes, offset, sign, weights, terms):
    """Fill `terms` (m, BLOCK) with the first m of w t, w and t, w = s/(1 + e^−(β·t + η)).

    The gradient of a softplus model is affine in them. t is a block (k, BLOCK), `slopes` are β as (1, k),
    `offset` is η, `weights` are space (1, BLOCK).
    """
    k, m = len(block), len(terms)
    combine(slopes, block, weights)
    w = weights[0]
    for j in range(BLOCK):
        z = w[j] + offset
        e = exponential(-abs(z))
        w[j] = sign * ((1.0 if z > 0.0 else e) / (1.0 + e))
    for q in range(min(k, m)):
        for j in range(BLOCK):
            terms[q, j] = w[j] * block[q, j]
    terms[k : k + 1] = weights[: max(0, m - k)]
    terms[k + 1 :] = block[: max(0, m - k - 1)]


@njit(**EXACT_ORDER)
def add_softplus_change(old, new, sign, out):
    """Add sign · (softplus(new) − softplus(old)) to `out`, all (rows,).

    softplus(z) = max(z, 0) + ln(1 + e), e = e^−|z|, and ln(1 + e') − ln(1 + e) = 2 artanh u with
    u = (e' − e)/(2 + e + e'), |u| ≤ 1/3: one series for both logarithms, accurate for short moves too.
    NaN gives NaN.
    """
    for j in range(out.shape[0]):
        above = new[j] if new[j] > 0.0 else 0.0
        below_ = old[j] if old[j] > 0.0 else 0.0
        before, after = exponential(-abs(old[j])), exponential(-abs(new[j]))
        twice = 2.0 * (after - before) / (2.0 + (after + before))
        v = 0.25 * twice * twice
        w = v * v
        # Two terms at a time (Estrin): fewer products wait for the one before than by Horner's rule.
        tail = ARTANH[8] + v * ARTANH[9]
        tail = (ARTANH[6] + v * ARTANH[7]) + w * tail
        tail = (ARTANH[4] + v * ARTANH[5]) + w * tail
        tail = (ARTANH[2] + v * ARTANH[3]) + w * tail
        tail = (ARTANH[0] + v * ARTANH[1]) + w * tail
        out[j] += sign * (above - below_)
        out[j] += sign * (twice + twice * v * tail)


# --- Poisson minibatches of TunaMH and DP-Fast MH ------------------------------------------------------

#: The odd number nearest to 2⁶⁴ over the golden ratio, and the constants of SplitMix64's mixing function.
WEYL = np.uint64(0x9E3779B97F4A7C15)
MIX_1, MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
#: First index of an iteration's uniform numbers, by purpose; each purpose uses far fewer than 2⁴⁰ numbers.
ARRIVALS, ROW_PLACES, THINNING, NOISE = 0, 1 << 40, 2 << 40, 3 << 40
#: A row's ratio beyond its bound by less than this, relatively, is rounding and does not count as clipped.
RATIO_ROUNDING = 1e-9


@njit(**EXACT_ORDER)
def uniform_number(word, k):
    """Return the k-th uniform number of a 64-bit word, strictly between 0 and 1.

    Counter-based (SplitMix64; Steele, Lea and Flood 2014): all numbers of a chain's iteration follow from one
    word, so that the number of values used does not shift other draws.
    """
    z = word + np.uint64(k + 1) * WEYL
    z = (z ^ (z >> np.uint64(30))) * MIX_1
    z = (z ^ (z >> np.uint64(27))) * MIX_2
    z = z ^ (z >> np.uint64(31))
    return (float(z >> np.uint64(12)) + 0.5) * 2.0**-52


@njit(**EXACT_ORDER)
def uniforms(words, k):
    """Return the k-th uniform number of each word (chains,)."""
    numbers = np.empty(words.shape[0])
    for c in range(words.shape[0]):
        numbers[c] = uniform_number(words[c], k)
    return numbers


@njit(**EXACT_ORDER)
def poisson_counts(words, mean, most):
    """Draw Poisson(mean) numbers (chains,), truncated at `most`: arrivals of a process until time `mean`."""
    counts = np.zeros(words.shape[0], np.int64)
    for c in range(words.shape[0]):
        time = 0.0
        while counts[c] < most:
            time -= math.log(uniform_number(words[c], ARRIVALS + counts[c]))
            # Ends for NaN, too.
            if not time <= mean[c]:
                break
            counts[c] += 1
    return counts


@njit(**EXACT_ORDER)
def draw_with_replacement(word, count, threshold, alias):
    """Draw rows (count,) by Walker's alias method: column i gives i up to threshold_i, alias_i beyond."""
    n, chosen = threshold.shape[0], np.empty(count, np.int64)
    for j in range(count):
        place = uniform_number(word, ROW_PLACES + j) * n
        column = int(place)
        chosen[j] = column if place - column < threshold[column] else alias[column]
    return chosen


@njit(**EXACT_ORDER)
def thinned_log_ratio(word, ratios, reach, h):
    """Return Σ 2 artanh(hv) over the rows kept, and the number clipped; v = r/reach clipped to [−1, 1].

    `ratios` r (m,), tempered, and `reach` (m,) are those of the rows drawn. A row is kept with probability
    (1 − hv)/(1 + h). NaN counts as −1, against the proposal.
    """
    total, clipped = 0.0, 0
    for j in range(ratios.shape[0]):
        v = ratios[j] / reach[j] if reach[j] > 0.0 else 0.0
        clipped += not abs(v) <= 1.0 + RATIO_ROUNDING
        v = v if v > -1.0 else -1.0
        v = v if v < 1.0 else 1.0
        if uniform_number(word, THINNING + j) * (1.0 + h) < 1.0 - h * v:
            total += math.log((1.0 + h * v) / (1.0 - h * v))
    return total, clipped


# --- pairs of draws, for the maximum mean discrepancy (`metrics/mmd.py`) ---------------------------------


@njit(**EXACT_ORDER)
def pair_sum(rows, row_weights, columns, column_weights, scale, later):
    """Return the sum of v_i w_j exp(scale ||x_i - y_j||^2) over all pairs, or those with j > i if `later`.

    `rows` is (n, d) and holds the x_i, `row_weights` (n,) the v_i, `columns` is (d, m) and holds the y_j,
    `column_weights` (m,) the w_j, scale < 0. Each column has a sum of its own, over i, and the columns' sums
    are added in order. Vector instructions work on neighbouring columns, so the order of a sum does not
    depend on their width.
    """
    # Direct differences: ||x||^2 + ||y||^2 - 2xy loses all digits for narrow posteriors far from the origin.
    squares, sums = np.empty(BLOCK), np.empty(BLOCK)
    total = 0.0
    for begin in range(0, columns.shape[1], BLOCK):
        end = min(begin + BLOCK, columns.shape[1])
        sums[:] = 0.0
        for i in range(rows.shape[0]):
            first = max(begin, i + 1) if later else begin
            if first >= end:
                break
            weight, here, its_sums = row_weights[i], squares[: end - first], sums[first - begin : end - begin]
            here[:] = 0.0
            for k in range(rows.shape[1]):
                value, column = rows[i, k], columns[k, first:end]
                for j in range(end - first):
                    difference = value - column[j]
                    here[j] += difference * difference
            for j in range(end - first):
                its_sums[j] += weight * exponential(scale * here[j])
        for j in range(end - begin):
            total += column_weights[begin + j] * sums[j]
    return total
