"""The steps of Hamiltonian dynamics (Section 4.1), each for all chains at once; M is diagonal.

Loops over components rather than array expressions: numba compiles them ten times faster.
"""

import numpy as np

from dpmc.compiler import compilable


@compilable
def draw_momentum(mass, normal, i):
    """p = M^½ z (chains, d), z the standard normals of iteration i in (chains, m, d)."""
    momentum = np.empty((normal.shape[0], normal.shape[2]))
    for c in range(momentum.shape[0]):
        for k in range(momentum.shape[1]):
            momentum[c, k] = np.sqrt(mass[k]) * normal[c, i, k]
    return momentum


@compilable
def kick(momentum, fraction, step_size, gradient):
    """p ← p + fraction · η ∇, in place; p, ∇ (chains, d), η (d,)."""
    for c in range(momentum.shape[0]):
        for k in range(momentum.shape[1]):
            momentum[c, k] += fraction * step_size[k] * gradient[c, k]


@compilable
def drift(theta, step_size, momentum, mass):
    """θ ← θ + η M⁻¹p, in place; θ, p (chains, d), η and the diagonal of M (d,)."""
    for c in range(theta.shape[0]):
        for k in range(theta.shape[1]):
            theta[c, k] += step_size[k] * momentum[c, k] / mass[k]


@compilable
def kinetic_energy(momentum, mass):
    """½ pᵀM⁻¹p of one chain's momentum (d,)."""
    energy = 0.0
    for k in range(mass.shape[0]):
        energy += 0.5 * momentum[k] ** 2 / mass[k]
    return energy
