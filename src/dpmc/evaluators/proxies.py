"""Weighted points in place of a node's rows: over them, what is smooth in a node's box has the same sum.

A function of two statistics that is a polynomial of degree 15 in either has the same sum over the rows of a
box as over 16 × 16 points of it, Chebyshev's, with weights Σ_j L_a(z_j1) L_b(z_j2), L_a Lagrange's
polynomials and z the row's place in the box. The weights depend on the rows alone. Where it is not a
polynomial, but analytic, the difference falls like (R + √(R² − 1))^−16, R the distance of its nearest
singularity in half widths of the box (Trefethen, *Approximation Theory and Approximation Practice*,
Theorem 8.2). A clipped gradient is singular where the gradient vanishes; at `REACH` half widths from there
its sum over rows at the worst places of a box was found to differ by 5e-15 of their number times the bound.
"""

from typing import NamedTuple

import numpy as np
from numpy.polynomial.chebyshev import chebpts1, chebvander

from dpmc.compiler import ROW_SUMS, compilable
from dpmc.evaluators.dense import aligned, inverse_root
from dpmc.evaluators.tree import BOXED, Tree, halving

POINTS = 16  #: in either direction
REACH = 4.5  #: half widths to a singularity, at least
LEAST_BLOCKS = 3  #: that a node must have: from then on its points are fewer than its rows


class Proxies(NamedTuple):
    """Points and their weights for the nodes of a tree, as far down as they pay."""

    points: np.ndarray  # (2, POINTS²) places in the square [−1, 1]²
    weights: np.ndarray  # (nodes, POINTS²); 0 nodes unless there are two statistics

    @classmethod
    def build(cls, blocks: np.ndarray, tree: Tree, gradients: bool) -> "Proxies":
        """Build for blocks of rows (blocks, k, rows per block) and their tree; none without `gradients`."""
        number, k, _ = blocks.shape
        levels = (number // LEAST_BLOCKS).bit_length() if gradients and k == BOXED else 0
        nodes, ranges = 2**levels - 1, halving(number)[0]
        places = chebpts1(POINTS)
        coefficients = _coefficients()
        moments = np.zeros((nodes, POINTS, POINTS))  # Σ_j T_a(z_j1) T_b(z_j2), T Chebyshev's polynomials
        for v in range(nodes // 2, nodes):
            columns = blocks[slice(*ranges[v])].transpose(1, 0, 2).reshape(2, -1)[:, : tree.size[v]]
            one, other = chebvander(_inside(columns, tree.middle[v], tree.half[v]), POINTS - 1)
            # Not by BLAS, here and below: its order of a sum depends on the number of threads.
            moments[v] = np.einsum("ra,rb->ab", one, other)
        for level in reversed(range(levels - 1)):
            parents = np.arange(2**level - 1, 2 ** (level + 1) - 1)
            for children in (2 * parents + 1, 2 * parents + 2):
                corners = tree.middle[children, :, None] + tree.half[children, :, None] * places
                values = chebvander(_inside(corners, tree.middle[parents], tree.half[parents]), POINTS - 1)
                one, other = np.einsum("vipa,pb->ivab", values, coefficients)
                half_way = np.einsum("vij,vbj->vib", moments[children], other)
                moments[parents] += np.einsum("vai,vib->vab", one, half_way)
        half_way = np.einsum("vij,qj->viq", moments, coefficients)
        weights = aligned((nodes, POINTS**2))
        weights[:] = np.einsum("pi,viq->vpq", coefficients, half_way).reshape(weights.shape)
        return cls(np.stack([np.repeat(places, POINTS), np.tile(places, POINTS)]), weights)


def _coefficients() -> np.ndarray:
    """Chebyshev coefficients by values (places, degrees): 2/m T_k(z_p), half of it for k = 0.

    T_k(z_p) = cos(k (2p + 1) π / 2m), the angle reduced while it is a whole number: recurrences are not exact
    enough for Σ_p T_k(z_p) = 0.
    """
    turns = np.outer(2 * np.arange(POINTS)[::-1] + 1, np.arange(POINTS)) % (4 * POINTS)
    coefficients: np.ndarray = 2.0 / POINTS * np.cos(np.pi / (2 * POINTS) * turns)
    coefficients[:, 0] /= 2.0
    return coefficients


def _inside(values: np.ndarray, middle: np.ndarray, half: np.ndarray) -> np.ndarray:
    """Places in [−1, 1] of values (…, 2, m) in boxes of given middles and half widths (…, 2)."""
    width = half[..., None]
    away = values - middle[..., None]
    return np.clip(np.divide(away, width, out=np.zeros(away.shape), where=width > 0.0), -1.0, 1.0)


@compilable(**ROW_SUMS)
def gradient_at(plane, x, y):
    """g_1, g_2 and ‖g‖² at one point; `plane`: of g, see `dpmc.evaluators.plane.triangular`."""
    a, b, c, p, q, rest = plane
    first, second = p + (a * x + b * y), q + c * y
    return first, second, (first * first + second * second) + rest * rest


@compilable(**ROW_SUMS)
def proxy_sums(points, weights, plane, bound):
    """Σ w f, Σ w f g_1 and Σ w f g_2 over points z (2, m) with weights w (m,), f = bound / ‖g(z)‖.

    `plane`: of g(z), see `dpmc.evaluators.plane.triangular`. Squared norms must be within the range of single
    precision, see `dpmc.evaluators.dense.inverse_root`.
    """
    x, y = points[0], points[1]
    total = one = other = 0.0
    for j in range(weights.shape[0]):
        first, second, square = gradient_at(plane, x[j], y[j])
        root = weights[j] * inverse_root(square)
        total += root
        one += root * first
        other += root * second
    return bound * total, bound * one, bound * other
