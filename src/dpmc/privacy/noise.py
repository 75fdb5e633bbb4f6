"""Noise sources: where the randomness that protects privacy comes from.

A mechanism asks its source for three things and nothing else:

- `corrected(c, i, sd)`: one draw from N(−sd²/2, sd²) for chain c at iteration i of the block: the noise of a
  log ratio together with the correction that keeps the penalty method exact (Section 3.1). Noise and
  correction are one call because a source on a lattice must be centred at −sd²/2 itself.
- `centred(c, i, sd)`: one draw from N(0, sd²), in place of `corrected`, for a test that needs no correction;
- `vector(c, i, stage, sd, out)`: fill `out` (d,) with N(0, sd²) for gradient evaluation `stage`.

`LabNoise` reads seeded standard normals: reproducible, and therefore no protection against anyone who
knows the seed. It is for experiments on public or synthetic data.
"""

from typing import NamedTuple, Protocol

import numpy as np

from dpmc.compiler import compilable


class NoiseSource(Protocol):
    """What a mechanism needs of a noise source; see the module's text."""

    def corrected(self, c: int, i: int, sd: float) -> float:
        """A draw from N(−sd²/2, sd²)."""

    def centred(self, c: int, i: int, sd: float) -> float:
        """A draw from N(0, sd²)."""

    def vector(self, c: int, i: int, stage: int, sd: float, out: np.ndarray) -> None:
        """Fill `out` (d,) with independent draws from N(0, sd²)."""


@compilable
class LabNoise(NamedTuple):
    """Standard normals drawn beforehand from seeded streams, for a block of m iterations."""

    ratio_normals: np.ndarray  # (chains, m)
    gradient_normals: np.ndarray  # (chains, m, gradient evaluations per iteration, d)

    def corrected(self, c, i, sd):
        """A draw from N(−sd²/2, sd²)."""
        return sd * self.ratio_normals[c, i] - 0.5 * sd * sd

    def centred(self, c, i, sd):
        """A draw from N(0, sd²)."""
        return sd * self.ratio_normals[c, i]

    def vector(self, c, i, stage, sd, out):
        """Fill `out` (d,) with independent draws from N(0, sd²)."""
        for k in range(out.shape[0]):
            out[k] = sd * self.gradient_normals[c, i, stage, k]


@compilable
class ListeningNoise(NamedTuple):
    """The draws of `LabNoise`; the sd of each log ratio's noise is recorded, a private diagnostic.

    That of `centred` is a function of the rows (DP Barker); that of `corrected` is public.
    """

    ratio_normals: np.ndarray  # (chains, m)
    gradient_normals: np.ndarray  # (chains, m, gradient evaluations per iteration, d)
    heard: np.ndarray  # (chains, m), NaN where no log ratio was asked for

    def corrected(self, c, i, sd):
        """A draw from N(−sd²/2, sd²)."""
        self.heard[c, i] = sd
        return sd * self.ratio_normals[c, i] - 0.5 * sd * sd

    def centred(self, c, i, sd):
        """A draw from N(0, sd²)."""
        self.heard[c, i] = sd
        return sd * self.ratio_normals[c, i]

    def vector(self, c, i, stage, sd, out):
        """Fill `out` (d,) with independent draws from N(0, sd²)."""
        for k in range(out.shape[0]):
            out[k] = sd * self.gradient_normals[c, i, stage, k]
