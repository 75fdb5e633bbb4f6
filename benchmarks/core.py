"""What one core can do at most: fused multiply-adds, inverse roots, and loads from each level of memory."""

from functools import cache
from typing import NamedTuple

import numpy as np
from measuring import cpu_seconds, table
from numba import njit

from dpmc.linking import entries_only

KIB = 1024
SIZES = {"L1": 16 * KIB, "L2": 256 * KIB, "L3": 8 * KIB**2, "memory": 512 * KIB**2}
LEVELS = {"L1": 32 * KIB, "L2": 1024 * KIB, "L3": 32 * KIB**2, "memory": 1 << 62}  # largest that fits
DEPTH = 32

#: Operations of a row beside those with coefficients, each counted as one multiply-add.
CLIP_RATIO = 4  # two comparisons that clip, the sum, the count
CLIP_GRADIENT = 10  # maximum, conversion, two of Newton's steps, sum, count; the inverse root is extra


class Core(NamedTuple):
    """Rates of one core, measured."""

    multiply_adds: float  # per second, double precision, from registers
    inverse_roots: float  # per second, single precision
    loads: dict[str, float]  # bytes per second, by level

    def level(self, size: float) -> str:
        """The level of memory that holds so many bytes."""
        return next(name for name, most in LEVELS.items() if size <= most)

    def ratio_limit(self, n: int, k: int, active: float, chains: int) -> tuple[float, str]:
        """Least seconds of one dense log ratio of one chain, and what sets the limit."""
        arithmetic = n * (active + CLIP_RATIO) / self.multiply_adds
        return self._slower(arithmetic, n, k, active, chains)

    def gradient_limit(self, n: int, k: int, entries: int, d: int, chains: int) -> tuple[float, str]:
        """Least seconds of one dense gradient of one chain: G t + h, norm, factor, weighted sum."""
        arithmetic = n * (entries + d + k + CLIP_GRADIENT) / self.multiply_adds + n / self.inverse_roots
        return self._slower(arithmetic, n, k, k, chains)

    def _slower(self, arithmetic: float, n: int, k: int, active: float, chains: int) -> tuple[float, str]:
        """The chains share one pass over the rows."""
        level = self.level(8.0 * n * k)
        memory = 8.0 * n * active / chains / self.loads[level]
        return (arithmetic, "arithmetic") if arithmetic > memory else (memory, level)


@njit(fastmath={"contract"})
def _multiply_adds(x, a, b, times):  # type: ignore[no-untyped-def]
    for _ in range(times):
        for j in range(x.shape[0]):
            value = x[j]
            for _ in range(DEPTH):
                value = value * a + b
            x[j] = value


@njit(fastmath={"contract", "arcp"}, error_model="numpy")
def _inverse_roots(x, times):  # type: ignore[no-untyped-def]
    for _ in range(times):
        for j in range(x.shape[0]):
            x[j] = np.float32(1.0) / np.sqrt(x[j])


@njit(fastmath=True)
def _sum(x, times):  # type: ignore[no-untyped-def]
    total = 0.0
    half = x.shape[0] // 2
    first, second = x[:half], x[half:]
    for i in range(times):
        first[i % half] += 1.0  # no two passes are the same
        a = b = 0.0
        for j in range(half):  # two sums: one would wait for its own additions
            a += first[j]
            b += second[j]
        total += a + b
    return total


@cache
def measure() -> Core:
    """Rates of this core."""
    with entries_only():  # compiled as kernels are, for the longest vectors
        return _measure()


def _measure() -> Core:
    x = np.linspace(0.1, 1.0, 1024)
    _multiply_adds(x, 0.5, 0.25, 1)
    operations = x.size * DEPTH / cpu_seconds(lambda times: _multiply_adds(x, 0.5, 0.25, times), rounds=9)
    y = np.linspace(0.1, 1.0, 1024).astype(np.float32)
    _inverse_roots(y, 1)
    roots = y.size / cpu_seconds(lambda times: _inverse_roots(y, times), rounds=9)
    loads = {}
    for level, size in SIZES.items():
        z = np.ones(size // 8)
        _sum(z, 1)
        loads[level] = size / cpu_seconds(lambda times, z=z: _sum(z, times), rounds=7)  # type: ignore[misc]
    return Core(operations, roots, loads)


def main() -> None:
    """Print the rates."""
    core = measure()
    rows = [
        ["multiply-adds, double precision, registers", core.multiply_adds / 1e9, "10⁹/s"],
        ["inverse roots, single precision", core.inverse_roots / 1e9, "10⁹/s"],
        *(
            [f"loads, {level} ({SIZES[level] // KIB} KiB)", rate / 1e9, "GB/s"]
            for level, rate in core.loads.items()
        ),
    ]
    table("core", ("rate of one core", "value", "unit"), rows, "## Limits of the core")
