"""Noise that may be released: discrete Gaussian noise of OpenDP, from the operating system's entropy.

It is added to an integer sum before anything is converted to a float. The scale S is a whole number of units,
at least sd/unit; DP Barker's is a float, whose rounding has a price (`lattice`). A log ratio's correction
−½(unit · S)² belongs to that S, so that detailed balance holds for the noise that is drawn.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, TypeAlias

import numpy as np

from dpmc.common.errors import DpmcError
from dpmc.evaluators.lattice import LARGEST_SCALE, SMALLEST_UNIT
from dpmc.privacy.noise import LabNoise

SLACK = 1.0 + 1e-12  #: more than the rounding errors of sd/unit

Measurement = Callable[[list[int]], list[int]]


#: Versions of OpenDP that are used. 0.14.1 draws biased noise: its issue 2638, and probabilities off by up to
#: 16 % at S = 2, 4 and 8, where those of 0.16.0 agree within the error of 300,000 draws.
EXACT = "0.16."
VERSIONS = re.escape(EXACT) + "(0|[1-9][0-9]?)"


def require() -> None:
    """Raise DpmcError, saying what to install, unless OpenDP has a version whose noise is exact."""
    _opendp()
    if not re.fullmatch(VERSIONS, installed := version("opendp")):
        raise DpmcError(f"release: OpenDP {installed} must be {EXACT}*: pip install 'opendp=={EXACT}*'")


def _opendp() -> Any:
    try:
        import opendp.prelude
    except ImportError:
        how = f"pip install 'opendp=={EXACT}*'"
        raise DpmcError(f"release: noise that may be released needs OpenDP: {how}") from None
    return opendp.prelude


@functools.lru_cache(maxsize=1024)
def discrete_gaussian(scale: float) -> Measurement:
    """Return what adds discrete Gaussian noise of this scale to 64-bit integers, cut off at their ends."""
    opendp = _opendp()
    opendp.enable_features("contrib")
    space = opendp.vector_domain(opendp.atom_domain(T="i64")), opendp.l2_distance(T="i64")
    measurement: Measurement = opendp.m.make_gaussian(*space, scale=scale)
    return measurement


class SecureNoise:
    """A noise source for integer sums (`evaluators/lattice.py`); each call draws new noise.

    Where the unit is 0 no rows were read, and a log ratio's answer is 0. Where it is not finite or, tempered,
    below `SMALLEST_UNIT`, or the scale is beyond 2^52 units, the answer is NaN, a rejection. All of these are
    functions of θ and θ' alone.
    """

    def begin(self, i: int) -> None:
        """Go to iteration i of the block; nothing is drawn beforehand."""

    def corrected(self, total: np.ndarray, unit: Any, sd: np.ndarray) -> np.ndarray:
        """Return unit · (total + Z) − ½(unit · S)² (chains,), Z discrete Gaussian of scale S."""
        scale = whole_scale(sd, unit)
        noisy: np.ndarray = unit * noisy_sum(total, scale) - 0.5 * (unit * scale) ** 2
        return np.where(unit == 0.0, 0.0, noisy)

    def centred(self, total: np.ndarray, unit: Any, sd: np.ndarray) -> np.ndarray:
        """Return unit · (total + Z) (chains,), Z discrete Gaussian of scale sd, a function of rows."""
        noisy: np.ndarray = unit * noisy_sum(total, sd)
        return np.where(unit == 0.0, 0.0, noisy)

    runs = 1  # a release is of one run

    def shared(self, total: np.ndarray, unit: float, sd: float) -> np.ndarray:
        """Return unit · (total + Z) (1, k), Z independent discrete Gaussian of one scale S, for one run."""
        return self.vectors(total, unit, sd, 0)

    def vectors(self, total: np.ndarray, unit: float, sd: float, stage: int) -> np.ndarray:
        """Return unit · (total + Z) (chains, d), Z independent discrete Gaussian of one scale S."""
        scale = whole_scale(np.full(total.size, sd), np.full(total.size, unit))
        noisy: np.ndarray = unit * noisy_sum(total.ravel(), scale).reshape(total.shape)
        return noisy


NoiseSource: TypeAlias = LabNoise | SecureNoise  #: of mechanisms


def whole_scale(sd: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Return S (k,), a whole number greater than sd/unit; NaN if there is none up to `LARGEST_SCALE`.

    NaN, too, below `SMALLEST_UNIT`: a subnormal sd or unit may be rounded by more than `SLACK`.
    """
    with np.errstate(all="ignore"):
        scale = np.ceil(sd / unit * SLACK) + 1.0
        return np.where((unit >= SMALLEST_UNIT) & (scale < LARGEST_SCALE), scale, np.nan)


def noisy_sum(total: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return total + Z (k,) as floats, of integers and scales (k,); NaN where the scale is."""
    noisy = np.full(total.shape, np.nan)
    for size in np.unique(scale[~np.isnan(scale)]):
        its = np.flatnonzero(scale == size)
        noisy[its] = discrete_gaussian(float(size))([int(k) for k in total[its]])
    return noisy
