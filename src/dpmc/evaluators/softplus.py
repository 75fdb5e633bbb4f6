"""Log-ratio sums for softplus models: a two-component mixture, logistic regression.

Such a model is ln p(x|θ) = α(θ)·t(x) + γ(θ) + s softplus(β(θ)·t(x) + η(θ)) up to a term of x alone, with
softplus(z) = ln(1 + e^z) and s = ±1. It says so by `statistics(rows)` (n, k), `line(theta, alpha)`, which
writes α (k,) and returns γ, `link(theta, beta)`, likewise β and η, and `sign()`. Rows are read once for both
positions, block by block; exponentials and logarithms are computed here, in loops that the compiler turns
into vector instructions.
"""

from typing import NamedTuple

import numpy as np

from dpmc.compiler import ROW_SUMS, UNCOUNTED, compilable
from dpmc.evaluators.affine import BLOCK, compress, finite_rows
from dpmc.evaluators.batch import sum_batches, whole_rows
from dpmc.evaluators.dense import affine_block, aligned, clip_ratios

#: Exactness below rests on the order of operations: only contraction to fused multiply-add is allowed.
EXACT_ORDER = {"fastmath": {"contract"}, "error_model": "numpy", **UNCOUNTED}

#: Adding 1.5 · 2⁵² rounds to an integer, which the lowest bits of the sum hold as well.
ROUNDER = 1.5 * 2.0**52
PER_LN_2 = 1.4426950408889634  # 1 / ln 2
LN_2_HIGH, LN_2_LOW = 0.6931471805582987, 1.6465949582897082e-12  # the first times an exponent is exact
LEAST = -746.0  # e^LEAST is 0 in double precision, and so is what lies below
#: Powers of 2 are written 2⁶⁴ too large, so that those of subnormal results are normal.
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


@compilable(apart=True)
class SoftplusEvaluator(NamedTuple):
    """All rows, in blocks of columns of statistics; log ratios only, no gradients."""

    blocks: np.ndarray  # (blocks, k, rows per block), padded with zeros
    n: int  # rows

    @classmethod
    def build(cls, statistics: np.ndarray) -> "SoftplusEvaluator":
        """Lay out statistics (n, k); rows that are not finite are left out."""
        statistics = finite_rows(statistics)
        n, k = statistics.shape
        blocks = aligned((-(-n // BLOCK), k, BLOCK))
        blocks[:] = 0.0
        for b in range(len(blocks)):
            part = statistics[b * BLOCK : (b + 1) * BLOCK]
            blocks[b, :, : len(part)] = part.T
        return cls(blocks, n)

    def ratio_sums(self, model, theta, proposal, bound, sums, counts):
        """See `dpmc.evaluators`."""
        chains, k, size = theta.shape[0], self.blocks.shape[1], self.blocks.shape[2]
        offsets, lines = np.empty((chains, 3)), np.empty((chains, 3, k))
        slopes, columns = np.empty((chains, k)), np.empty((chains, k), np.int64)
        active = np.empty(chains, np.int64)
        for c in range(chains):
            describe_move(model, theta[c], proposal[c], offsets[c], lines[c])
            active[c] = compress(lines[c, 0], columns[c], slopes[c])
            sums[c], counts[c] = 0.0, 0
        work = aligned((4, size))
        ratios, old, new, power = work[0], work[1], work[2], work[3]
        for b in range(self.blocks.shape[0]):
            rows = min(self.n - b * size, size)
            block = self.blocks[b]
            for c in range(chains):
                affine_block(block, columns[c], slopes[c], active[c], offsets[c, 0], ratios)
                affine_pair(block, lines[c, 1], lines[c, 2], offsets[c, 1], offsets[c, 2], old, new)
                add_softplus_change(old, new, model.sign(), power, power.view(np.int64), ratios)
                part, clipped = clip_ratios(ratios, rows, bound[c])
                sums[c] += part
                counts[c] += clipped


@compilable(apart=True)
class SoftplusBatchEvaluator(NamedTuple):
    """Statistics row by row, as `BatchEvaluator`'s, for batches of rows of a softplus model."""

    table: np.ndarray  # (n, k) statistics
    taken: np.ndarray  # (n,) False between calls
    scratch: np.ndarray  # (3, rows per block)

    @classmethod
    def build(cls, statistics: np.ndarray) -> "SoftplusBatchEvaluator":
        """Lay out statistics (n, k)."""
        table = whole_rows(statistics)
        return cls(table, np.zeros(len(table), np.bool_), aligned((3, BLOCK)))

    def batch_sums(self, model, theta, proposal, bound, words, i, sums, squares, counts):
        """See `dpmc.evaluators.batch`."""
        sum_batches(self, model, theta, proposal, bound, words, i, sums, squares, counts)

    def rows_ratio(self, model, theta, proposal, chosen, ratios):
        """See `dpmc.evaluators.batch`."""
        b, size = chosen.shape[0], self.scratch.shape[1]
        offsets, lines = np.empty(3), np.empty((3, self.table.shape[1]))
        describe_move(model, theta, proposal, offsets, lines)
        for first in range(0, b, size):
            rows = min(size, b - first)
            old, new, power = self.scratch[0, :rows], self.scratch[1, :rows], self.scratch[2, :rows]
            part = ratios[first : first + rows]
            affine_rows(self.table, chosen[first : first + rows], lines, offsets, part, old, new)
            add_softplus_change(old, new, model.sign(), power, power.view(np.int64), part)


@compilable
def describe_move(model, theta, proposal, offsets, lines):
    """Write γ' − γ, η, η' into `offsets` (3,) and α' − α, β, β' into `lines` (3, k)."""
    old = model.line(theta, lines[1])
    offsets[0] = model.line(proposal, lines[0]) - old
    for i in range(lines.shape[1]):
        lines[0, i] -= lines[1, i]
    offsets[1] = model.link(theta, lines[1])
    offsets[2] = model.link(proposal, lines[2])


@compilable(**ROW_SUMS)
def affine_pair(block, a, b, at_a, at_b, old, new):
    """Write at_a + a·t into `old` and at_b + b·t into `new` (rows,), reading the block (k, rows) once."""
    size, k = old.shape[0], block.shape[0]
    for j in range(size):
        old[j] = at_a
        new[j] = at_b
    q = 0
    while q + 4 <= k:
        a0, a1, a2, a3 = a[q], a[q + 1], a[q + 2], a[q + 3]
        b0, b1, b2, b3 = b[q], b[q + 1], b[q + 2], b[q + 3]
        t, u, v, w = block[q], block[q + 1], block[q + 2], block[q + 3]
        for j in range(size):
            old[j] += (a0 * t[j] + a1 * u[j]) + (a2 * v[j] + a3 * w[j])
            new[j] += (b0 * t[j] + b1 * u[j]) + (b2 * v[j] + b3 * w[j])
        q += 4
    while q < k:
        a0, b0, t = a[q], b[q], block[q]
        for j in range(size):
            old[j] += a0 * t[j]
            new[j] += b0 * t[j]
        q += 1


@compilable(**ROW_SUMS)
def affine_rows(table, chosen, lines, offsets, ratios, old, new):
    """Write the three affine functions of rows `chosen` (b,) of a table (n, k): line's change, links.

    A row of NaN has 0 in all three: no change.
    """
    for j in range(chosen.shape[0]):
        t = table[chosen[j]]
        if np.isnan(t[0]):
            ratios[j], old[j], new[j] = 0.0, 0.0, 0.0
            continue
        change, a, b = offsets[0], offsets[1], offsets[2]
        for q in range(t.shape[0]):
            change += lines[0, q] * t[q]
            a += lines[1, q] * t[q]
            b += lines[2, q] * t[q]
        ratios[j], old[j], new[j] = change, a, b


@compilable(**EXACT_ORDER)
def add_softplus_change(old, new, sign, power, bits, out):
    """Add sign · (softplus(new) − softplus(old)) to `out` (rows,); `old` and `new` are overwritten.

    softplus(z) = max(z, 0) + ln(1 + e), e = e^−|z|, and ln(1 + e') − ln(1 + e) = 2 artanh u with
    u = (e' − e)/(2 + e + e'), |u| ≤ 1/3: one logarithm for both, with no loss for a short move.
    `power` (rows,) is scratch, `bits` the same memory as integers. NaN gives NaN.
    """
    for j in range(out.shape[0]):
        above = new[j] if new[j] > 0.0 else 0.0
        below = old[j] if old[j] > 0.0 else 0.0
        out[j] += sign * (above - below)
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


@compilable(**EXACT_ORDER)
def exponentials(z, power, bits):
    """Replace z (rows,) by e^−|z| to a few units in the last place, subnormal results included.

    −|z| = k ln 2 + r; a series gives e^r, and 2^k is written as the bits of its exponent. `power` (rows,) is
    scratch, `bits` the same memory as integers. NaN stays NaN.
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
