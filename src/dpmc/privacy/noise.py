"""Noise sources: the randomness that protects the rows.

A mechanism computes the sd and draws noise from a source. Noise and its penalty correction are one call,
`corrected`, because a source on a lattice must be centred at −sd²/2 itself.

`LabNoise` uses seeded standard normals: it is reproducible, and therefore no protection against anyone who
can guess what the seed was made of. It is for experiments on public or synthetic data.
"""

from collections.abc import Sequence

import numpy as np


class LabNoise:
    """Standard normals drawn beforehand from seeded streams, for a block of m iterations.

    `sds` (m, chains) records the sd of each log ratio's noise, 0 or NaN if none was drawn: a private
    diagnostic, since the sd of `centred` noise is a function of the rows (DP Barker).

    `run_generators` has a generator for each run, of the noise that its chains share; runs have equally many
    chains.
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

    def corrected(self, sd: np.ndarray) -> np.ndarray:
        """Draw (chains,) from N(−sd²/2, sd²), sd (chains,): exp of a draw has mean 1 (Section 3.1)."""
        self.sds[self._i] = sd
        return sd * self._ratio_normals[self._i] - 0.5 * sd * sd

    def centred(self, sd: np.ndarray) -> np.ndarray:
        """Draw (chains,) from N(0, sd²), sd (chains,), for a test that needs no correction."""
        self.sds[self._i] = sd
        return sd * self._ratio_normals[self._i]

    def vectors(self, sd: float, stage: int) -> np.ndarray:
        """Draw (chains, d) from N(0, sd²) for the `stage`-th gradient of the iteration."""
        noise: np.ndarray = sd * self._gradient_normals[self._i, :, stage]
        return noise

    def shared(self, sd: float, size: int) -> np.ndarray:
        """Draw (chains, size) from N(0, sd²), the same for all chains of a run."""
        normals = np.array([generator.standard_normal(size) for generator in self._run_generators])
        return sd * normals.repeat(self._ratio_normals.shape[1] // len(normals), axis=0)
