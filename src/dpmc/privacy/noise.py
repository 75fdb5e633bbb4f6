"""Noise sources: where the randomness comes from that protects the rows.

A mechanism asks for noise of an sd that it computed. Noise and its penalty correction are one call,
`corrected`, because a source on a lattice must be centred at −sd²/2 itself.

`LabNoise` reads seeded standard normals: reproducible, and therefore no protection against anyone who
knows the seed. It is for experiments on public or synthetic data.
"""

import numpy as np


class LabNoise:
    """Standard normals drawn beforehand from seeded streams, for a block of m iterations."""

    def __init__(self, ratio_normals: np.ndarray, gradient_normals: np.ndarray) -> None:
        self._ratio_normals = ratio_normals  # (m, chains)
        self._gradient_normals = gradient_normals  # (m, chains, gradients per iteration, d)
        self._i = 0

    def begin(self, i: int) -> None:
        """Go to iteration i of the block."""
        self._i = i

    def corrected(self, sd: np.ndarray) -> np.ndarray:
        """A draw (chains,) from N(−sd²/2, sd²), sd (chains,): exp of it has mean 1 (Section 3.1)."""
        return sd * self._ratio_normals[self._i] - 0.5 * sd * sd

    def centred(self, sd: np.ndarray) -> np.ndarray:
        """A draw (chains,) from N(0, sd²), sd (chains,), for a test that needs no correction."""
        return sd * self._ratio_normals[self._i]

    def vectors(self, sd: float, stage: int) -> np.ndarray:
        """Draws (chains, d) from N(0, sd²) for the `stage`-th gradient of the iteration."""
        found: np.ndarray = sd * self._gradient_normals[self._i, :, stage]
        return found


class RecordedNoise(LabNoise):
    """The draws of `LabNoise`; the sd of each log ratio's noise is recorded, a private diagnostic.

    That of `centred` is a function of the rows (DP Barker); that of `corrected` is public.
    """

    def __init__(self, ratio_normals: np.ndarray, gradient_normals: np.ndarray) -> None:
        super().__init__(ratio_normals, gradient_normals)
        self.sds = np.full(ratio_normals.shape, np.nan)  # (m, chains), NaN where none was drawn

    def corrected(self, sd: np.ndarray) -> np.ndarray:
        """A draw (chains,) from N(−sd²/2, sd²)."""
        self.sds[self._i] = np.where(sd == 0.0, np.nan, sd)  # no noise, of a test that needs none
        return super().corrected(sd)

    def centred(self, sd: np.ndarray) -> np.ndarray:
        """A draw (chains,) from N(0, sd²)."""
        self.sds[self._i] = sd
        return super().centred(sd)
