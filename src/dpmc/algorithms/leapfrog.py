"""The steps of Hamiltonian dynamics (Section 4.1), each for all chains at once; M is diagonal.

A trajectory may take its steps at a *pace* u of its own, with uη for η. It carries p/u then: kicks of
p/u are those of p at pace 1, and η M⁻¹p = u η M⁻¹(p/u) is taken u times, so that u enters in `drift` alone.

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
def draw_pace(jitter, uniform, i):
    """The pace of every chain (chains,): the uniform number of iteration i with `jitter`, otherwise 1."""
    pace = np.ones(uniform.shape[0])
    if jitter:
        for c in range(pace.shape[0]):
            pace[c] = uniform[c, i, 0]
    return pace


@compilable
def scale(momentum, pace, power):
    """p ← pace^power p, in place; p (chains, d), pace (chains,), power 1 or −1."""
    for c in range(momentum.shape[0]):
        for k in range(momentum.shape[1]):
            if power > 0:
                momentum[c, k] *= pace[c]
            else:
                momentum[c, k] /= pace[c]


@compilable
def drift(theta, step_size, momentum, mass, pace):
    """θ ← θ + u² η M⁻¹(p/u), in place; θ, p/u (chains, d), u (chains,), η and the diagonal of M (d,)."""
    for c in range(theta.shape[0]):
        for k in range(theta.shape[1]):
            theta[c, k] += pace[c] ** 2 * (step_size[k] * momentum[c, k] / mass[k])


@compilable
def kinetic_energy(momentum, mass):
    """½ pᵀM⁻¹p of one chain's momentum (d,)."""
    energy = 0.0
    for k in range(mass.shape[0]):
        energy += 0.5 * momentum[k] ** 2 / mass[k]
    return energy
