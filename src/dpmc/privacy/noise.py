"""Noise sources: the randomness that protects the rows.

A mechanism hands over a sum, the unit in which it counts, and the sd of the noise; the source returns the
noisy sum. So a source on a lattice (`secure_noise`) adds integers before anything is a float. Noise and its
penalty correction are one call, `corrected`, because on a lattice the sd is rounded up.

`LabNoise` uses seeded standard normals: it is reproducible, and therefore no protection against anyone who
can guess what the seed was made of. It is for experiments on public or synthetic data.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np


class LabNoise:
    """Standard normals drawn beforehand from seeded streams, for a block of m iterations.

    `sds` (m, chains) records the sd of each log ratio's noise, 0 or NaN if none was drawn: a private
    diagnostic, since the sd of `centred` noise is a function of the rows (DP Barker).

    `run_generators` has a generator for each run, of the noise that its chains share.
    """

    def __init__(
        self,
        ratio_normals: np.ndarray,
        gradient_normals: np.ndarray,
        run_generators: Sequence[np.random.Generator] = (),
    ) -> None:
        self._ratio_normals = ratio_normals  # (m, chains)
        self._gradient_normals = gradient_normals  # (m, chains, gradients per iteration, d)
        self.sds = np.full(ratio_normals.shape, np.nan)
        self._run_generators = run_generators
        self._i = 0

    def begin(self, i: int) -> None:
        """Go to iteration i of the block."""
        self._i = i

    def corrected(self, total: np.ndarray, unit: Any, sd: np.ndarray) -> np.ndarray:
        """Return unit · total + N(−sd²/2, sd²) (chains,), sd (chains,): exp of the noise has mean 1."""
        self.sds[self._i] = sd
        noisy: np.ndarray = unit * total + (sd * self._ratio_normals[self._i] - 0.5 * sd * sd)
        return noisy

    def centred(self, total: np.ndarray, unit: Any, sd: np.ndarray) -> np.ndarray:
        """Return unit · (total + N(0, sd²)) (chains,), for a test that needs no correction."""
        self.sds[self._i] = unit * sd
        noisy: np.ndarray = unit * (total + sd * self._ratio_normals[self._i])
        return noisy

    def vectors(self, total: np.ndarray, unit: float, sd: float, stage: int) -> np.ndarray:
        """Return unit · total + N(0, sd²) (chains, d), of the `stage`-th gradient of the iteration."""
        noisy: np.ndarray = unit * total + sd * self._gradient_normals[self._i, :, stage]
        return noisy

    @property
    def runs(self) -> int:
        """Return the number of runs."""
        return len(self._run_generators)

    def shared(self, total: np.ndarray, unit: float, sd: float) -> np.ndarray:
        """Return unit · total (runs, k) + N(0, sd²), which the chains of a run share."""
        size = total.shape[1]
        normals = np.array([generator.standard_normal(size) for generator in self._run_generators])
        noisy: np.ndarray = unit * total + sd * normals
        return noisy
