"""DP-SGLD and DP-SGNHT: their steps and releases, and faults in each of them (laws: `test_sgld_laws`).

There is no acceptance test, so nothing keeps the posterior exactly. Checked instead: every step, number by
number, against formulas written independently, and that noise and sensitivity are the declared ones.
"""

from dataclasses import replace

import numpy as np
import pytest

from dpmc.algorithms.dp_sgld import DPSGLD
from dpmc.algorithms.dp_sgnht import DPSGNHT
from dpmc.evaluators import kernels
from kernels import ladder, releases
from kernels.ladder import Kernel, Numbers
from kernels.problems import SLANT, simulated

SGLD, SGNHT, BOTH = (f"dpmc.algorithms.{name}" for name in ("dp_sgld", "dp_sgnht", "langevin"))
MECHANISMS, NOISE = "dpmc.privacy.mechanisms", "dpmc.privacy.noise"

#: A slanted Gaussian with a prior that is felt, tempered.
SMALL = simulated(replace(SLANT, prior_variance=0.5, exact_prior_variance=0.5), 30, 0.4, 9)
#: Clip bounds such that some rows are clipped and some are not.
BATCH = {"batch_size": 12, "clip": 0.5}
KERNELS = {
    "dp-sgld": Kernel(DPSGLD(**BATCH, step_size=0.9), SMALL),
    "dp-sgld published": Kernel(DPSGLD(**BATCH, step_size=0.9, drift="published"), SMALL),
    "dp-sgnht": Kernel(DPSGNHT(**BATCH, step_size=6.0, diffusion=1.7), SMALL),
    "dp-sgnht published": Kernel(DPSGNHT(**BATCH, step_size=6.0, diffusion=1.7, order="published"), SMALL),
}
each_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


# --- one step, number by number ------------------------------------------------------------------


def wanted_path(kernel: Kernel, start: np.ndarray, given: Numbers) -> np.ndarray:
    """θ_1 … θ_m (m, chains, 2) by the formulas of the spec, 3.7, from rows."""
    algorithm, model, rows = kernel.algorithm, SMALL.model, SMALL.rows
    n, b = SMALL.n, algorithm.batch_size
    h = algorithm.step_size / n
    path = np.empty((len(given.words), *start.shape))
    for c, theta in enumerate(start):
        p, xi = (given.carried[c, :2], given.carried[c, 2]) if given.carried.shape[1] else (0.0, 0.0)
        for i in range(len(path)):
            chosen = kernels.draw_batches(given.words[i, c : c + 1], n)[0]
            gradients = SMALL.temperature * (rows[chosen] - theta) @ model.precision
            norms = np.sqrt((gradients**2).sum(axis=1))
            assert 0 < (norms > algorithm.clip).sum() < b
            clipped = gradients * np.minimum(1.0, algorithm.clip / norms)[:, None]
            gradient = n / b * clipped.sum(axis=0) - theta / model.prior_variance
            z = given.gradient_normals[i, c, 0]
            if hasattr(algorithm, "drift"):
                drift = {"correct": 0.5, "published": 1.0}[algorithm.drift]
                theta = theta + drift * h * gradient + np.sqrt(h) * z
            else:
                new = p - xi * h * p + h * gradient + np.sqrt(2.0 * h * algorithm.diffusion) * z
                moving = p if algorithm.order == "published" else new
                theta, p = theta + h * moving, new
                xi = xi + h * ((moving**2).sum() / 2.0 - 1.0)
            path[i, c] = theta
    return path


def started(kernel: Kernel, seed: int, chains: int, m: int) -> tuple[np.ndarray, Numbers]:
    generator = np.random.default_rng(seed)
    start = SMALL.posterior.draws(generator, chains)
    return start, ladder.numbers(kernel, generator, chains, m)


def step_error(kernel: Kernel) -> float:
    """Return the largest distance of the kernel's path from that of the formulas."""
    start, given = started(kernel, 30, 3, 5)
    wanted = wanted_path(kernel, start, given)
    with np.errstate(all="ignore"):
        found = ladder.run(kernel, start, given).theta
    return float(np.nan_to_num(np.abs(found - wanted), nan=9.0).max())


@each_kernel
def test_every_step_is_the_formula(kernel: Kernel) -> None:
    assert step_error(kernel) < 1e-12


# --- releases ------------------------------------------------------------------------------------


def attained(kernel: Kernel) -> float:
    """Return the measured noise multiplier over the declared one, for the worst neighbours.

    One row of the batch goes from far on one side to far on the other; the first step shows by how much it
    moves, and how much a unit of noise does.
    """
    start, given = started(kernel, 24, 1, 2)
    given.words[:] = 0  # row 0 is the batch's first

    def path(side: float, z: float) -> np.ndarray:
        rows = SMALL.rows.copy()
        rows[0] = side * 1e7
        normals = np.zeros_like(given.gradient_normals)
        normals[0, 0, 0, 0] = z
        now = replace(given, gradient_normals=normals)
        return ladder.run(kernel, start, now, replace(SMALL, rows=rows)).theta[:, 0]

    # by the old momentum a step is seen one iteration later
    at = 1 if getattr(kernel.algorithm, "order", "") == "published" else 0
    change = path(1.0, 0.0)[at] - path(-1.0, 0.0)[at]
    sd = (path(1.0, 1.0)[at] - path(1.0, -1.0)[at]) / 2.0
    found = np.sqrt((sd**2).sum() / (change**2).sum())
    return float(found / kernel.algorithm.releases(SMALL.n)[1][0].noise_multiplier)


@each_kernel
def test_releases_are_the_declared_ones_and_their_noise_is_attained_by_the_worst_neighbour(
    kernel: Kernel,
) -> None:
    assert releases.release_faults(kernel) == []
    assert attained(kernel) == pytest.approx(1.0, rel=1e-6)
