"""Threefry-2x32 random numbers in the layout used to draw the published data sets.

Counter-based Threefry-2x32 with 20 rounds (J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, "Parallel
random numbers: as easy as 1, 2, 3", SC '11 (2011), Section 4), in JAX's original layout
(``jax_threefry_partitionable = False``, 64-bit mode). For data sets and a covariance of published
experiments; no chain draws from it. A longer draw does not begin with the numbers of a shorter one. Keys and
uniforms on [0, 1) equal JAX's bit for bit; normals agree within 1e-13 up to four standard deviations and
within 2e-11 beyond, where XLA's inverse error function loses digits.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import linalg, special

Key = npt.NDArray[np.uint32]  # shape (2,)
Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint32]

# Rotation distances, alternating every four rounds, and the key schedule's constant (Section 4).
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_WORD_MASK = 0xFFFFFFFF


def key_of_seed(seed: int) -> Key:
    """Return the key (2,) of a seed below 2**64: its upper and its lower 32 bits."""
    return np.array([seed >> 32, seed & _WORD_MASK], dtype=np.uint32)


def split(key: Key, count: int = 2) -> Words:
    """Return ``count`` new keys (count, 2), a function of ``key`` and of ``count`` together."""
    return np.concatenate(_hash_counters(key, count)).reshape(count, 2)


def uniform(key: Key, shape: int | Sequence[int], low: float = 0.0, high: float = 1.0) -> Floats:
    """Draw independent uniforms in a shape, on [low, high), of 52 bits each; ValueError for 2**31 or more."""
    high_words, low_words = _hash_counters(key, int(np.prod(shape)))
    # The 52-bit integer high * 2**20 + (low >> 12) is exact in float64.
    draws: Floats = (high_words * 2.0**20 + (low_words >> np.uint32(12))) * 2.0**-52
    draws = draws.reshape(shape) * (np.float64(high) - np.float64(low)) + low
    # Rounding in the scaling may fall below the lower end.
    return np.maximum(draws, low, out=draws)


def normal(key: Key, shape: int | Sequence[int]) -> Floats:
    """Draw independent standard normals of the given shape by inversion, sqrt(2) erfinv(u), u on (-1, 1)."""
    # The open lower end excludes erfinv(-1) = -inf.
    draws = uniform(key, shape, low=np.nextafter(-1.0, 0.0), high=1.0)
    special.erfinv(draws, out=draws)
    draws *= math.sqrt(2.0)
    return draws


def multivariate_normal(key: Key, mean: npt.ArrayLike, covariance: npt.ArrayLike, size: int) -> Floats:
    """Draw rows (size, d) of N(mean, covariance): mean + z L^T, L the lower Cholesky factor.

    Raises scipy.linalg.LinAlgError if the covariance (d, d) is not positive definite.
    """
    mean = np.asarray(mean, dtype=np.float64)
    factor = linalg.cholesky(np.asarray(covariance, dtype=np.float64), lower=True)
    standard = normal(key, (size, mean.size))
    # Summed one after another: bits of a threaded matrix product depend on the number of threads.
    return mean + np.stack([np.cumsum(standard * row, axis=1)[:, -1] for row in factor], axis=1)


def threefry_2x32(key: Key, first: Words, second: Words) -> tuple[Words, Words]:
    """Return both words, (n,), of each hash of counter pairs, 20 rounds (Salmon et al. 2011, Section 4)."""
    words = [int(word) for word in key]
    schedule = [*words, words[0] ^ words[1] ^ _PARITY]
    first = first + np.uint32(schedule[0])
    second = second + np.uint32(schedule[1])
    shifted = np.empty_like(second)
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            first += second
            np.left_shift(second, distance, out=shifted)
            np.right_shift(second, 32 - distance, out=second)
            second |= shifted
            second ^= first
        first += np.uint32(schedule[(group + 1) % 3])
        second += np.uint32((schedule[(group + 2) % 3] + group + 1) & _WORD_MASK)
    return first, second


def _hash_counters(key: Key, total: int) -> tuple[Words, Words]:
    """Hash (i, total + i), i < total: first words, then second, as the original layout pairs its halves."""
    if total >= 1 << 31:
        raise ValueError(f"one key gives fewer than 2**31 numbers, asked for {total}")
    first = np.arange(total, dtype=np.uint32)
    return threefry_2x32(key, first, first + np.uint32(total))
