"""Log ratios of softplus models, over all rows and over chosen ones."""

from typing import Any

import numpy as np

from dpmc.common.compiling import njit

BLOCK, TILE = 512, 8  #: as in `blocks`

#: Sums may be reassociated, for vector instructions; NaN and infinity keep their meaning.
ROW_SUMS: dict[str, Any] = {
    "cache": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
}
#: If exactness depends on the order of operations, only fused multiply-add is allowed.
EXACT_ORDER: dict[str, Any] = {**ROW_SUMS, "fastmath": {"contract"}}

#: Adding 1.5 · 2⁵² rounds to an integer, which is also in the lowest bits of the sum.
ROUNDER = 1.5 * 2.0**52
PER_LN_2 = 1.4426950408889634  # 1 / ln 2
LN_2_HIGH, LN_2_LOW = 0.6931471805582987, 1.6465949582897082e-12  # the first times an exponent is exact
LEAST = -746.0  # e^x is 0 in double precision for x ≤ LEAST
#: Powers of 2 are written 2⁶⁴ too large, so that they are normal numbers even if results are subnormal.
BIAS, FRACTION_BITS, TOO_LARGE = 1023 + 64, 52, 2.0**-64
#: e^r = 1 + r + r² Σ_i EXP_i r^i for |r| ≤ ½ ln 2, relative error 2e-17 (Chebyshev interpolation).
EXP = (
    0.5000000000000001,
    0.16666666666666669,
    0.04166666666662404,
    0.008333333333330055,
    0.0013888888917258759,
    0.00019841269863088255,
    2.4801521225986432e-05,
    2.7557268406190795e-06,
    2.7620121717381933e-07,
    2.51004110820149e-08,
)
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
    chains, k = lines.shape[0], lines.shape[2]
    sums, counts = np.zeros(chains), np.zeros(chains, np.int64)
    tiles = (chains + TILE - 1) // TILE
    slopes, values = np.zeros((tiles, 3 * TILE, k)), np.empty((3 * TILE, BLOCK))
    ratios, old, new, power = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    bits = power.view(np.int64)
    for c in range(chains):
        for m in range(3):
            slopes[c // TILE, 3 * (c % TILE) + m] = lines[c, m]
    for b in range(blocks.shape[0]):
        rows = min(BLOCK, n - b * BLOCK)
        for tile in range(tiles):
            np.dot(slopes[tile], blocks[b], values)
            for c in range(tile * TILE, min(chains, (tile + 1) * TILE)):
                place = 3 * (c - tile * TILE)
                for j in range(BLOCK):
                    ratios[j] = values[place, j] + offsets[c, 0]
                    old[j] = values[place + 1, j] + offsets[c, 1]
                    new[j] = values[place + 2, j] + offsets[c, 2]
                add_softplus_change(old, new, sign, power, bits, ratios)
                total, clipped = 0.0, 0
                for j in range(rows):
                    kept = ratios[j] if ratios[j] > -bound[c] else -bound[c]  # NaN counts as −bound
                    kept = kept if kept < bound[c] else bound[c]
                    total += kept
                    clipped += kept != ratios[j]
                sums[c] += total
                counts[c] += clipped
    return sums, counts


@njit(**ROW_SUMS)
def softplus_row_ratios(table, chosen, lines, offsets, sign):
    """Return the changes (chains, b), not clipped, of rows `chosen` (chains, b) of a table (n, k).

    Arguments as for `softplus_ratio_sums`. A row that is not finite gives 0.
    """
    chains, b = chosen.shape
    ratios = np.empty((chains, b))
    change, old, new, power = np.empty(b), np.empty(b), np.empty(b), np.empty(b)
    bits = power.view(np.int64)
    for c in range(chains):
        for j in range(b):
            row = chosen[c, j]
            x, y, z = offsets[c, 0], offsets[c, 1], offsets[c, 2]
            for q in range(table.shape[1]):
                x += lines[c, 0, q] * table[row, q]
                y += lines[c, 1, q] * table[row, q]
                z += lines[c, 2, q] * table[row, q]
            if np.isnan(table[row, 0]):
                x, y, z = 0.0, 0.0, 0.0
            change[j], old[j], new[j] = x, y, z
        add_softplus_change(old, new, sign, power, bits, change)
        for j in range(b):
            ratios[c, j] = change[j]
    return ratios


@njit(**EXACT_ORDER)
def add_softplus_change(old, new, sign, power, bits, out):
    """Add sign · (softplus(new) − softplus(old)) to `out` (rows,); `old` and `new` are overwritten.

    softplus(z) = max(z, 0) + ln(1 + e), e = e^−|z|, and ln(1 + e') − ln(1 + e) = 2 artanh u with
    u = (e' − e)/(2 + e + e'), |u| ≤ 1/3: one series for both logarithms, accurate for short moves too.
    `power` (rows,) is scratch, `bits` the same memory as integers. NaN gives NaN.
    """
    for j in range(out.shape[0]):
        above = new[j] if new[j] > 0.0 else 0.0
        below_ = old[j] if old[j] > 0.0 else 0.0
        out[j] += sign * (above - below_)
    exponentials(old, power, bits)
    exponentials(new, power, bits)
    for j in range(out.shape[0]):
        twice = 2.0 * (new[j] - old[j]) / (2.0 + (new[j] + old[j]))
        v = 0.25 * twice * twice
        w = v * v
        tail = ARTANH[8] + v * ARTANH[9]
        tail = (ARTANH[6] + v * ARTANH[7]) + w * tail
        tail = (ARTANH[4] + v * ARTANH[5]) + w * tail
        tail = (ARTANH[2] + v * ARTANH[3]) + w * tail
        tail = (ARTANH[0] + v * ARTANH[1]) + w * tail
        out[j] += sign * (twice + twice * v * tail)


@njit(**EXACT_ORDER)
def exponentials(z, power, bits):
    """Replace z (rows,) by e^−|z| to a few units in the last place, subnormal results included.

    −|z| = k ln 2 + r: e^r is computed by a series, and 2^k from the bits of its exponent. NaN gives NaN.
    """
    for j in range(z.shape[0]):
        x = -abs(z[j])
        x = LEAST if x < LEAST else x
        rounded = x * PER_LN_2 + ROUNDER
        power[j] = rounded
        k = rounded - ROUNDER
        r = (x - k * LN_2_HIGH) - k * LN_2_LOW
        s = r * r
        tail = EXP[8] + r * EXP[9]
        tail = (EXP[6] + r * EXP[7]) + s * tail
        tail = (EXP[4] + r * EXP[5]) + s * tail
        tail = (EXP[2] + r * EXP[3]) + s * tail
        tail = (EXP[0] + r * EXP[1]) + s * tail
        z[j] = 1.0 + (r + s * tail)
    for j in range(bits.shape[0]):
        bits[j] = (bits[j] + BIAS) << FRACTION_BITS
    for j in range(z.shape[0]):
        z[j] = z[j] * power[j] * TOO_LARGE
