"""All functions that numba compiles for sums over rows: they take plain arrays and do not depend on models.

Chains are a leading axis; the arithmetic of a chain does not depend on the other chains.

Three rules ensure that one row changes a sum by its bound plus rounding, for any rows. Clipped rows are
clipped and summed one by one. Sums of statistics replace sums over rows only if the terms that cancel in them
are at most `WELL_CONDITIONED` times the bound. Values are not centred: a row's term depends on that row only.

No file uses anything of another one, constants included: numba's disk cache does not notice a change in
another file (`tests/project/test_compiling.py`). So clipping, a few lines, and the options of the compiler
are in each. `python -m dpmc.sampling` fills the cache, so that many processes do not compile at once.
"""

from dpmc.evaluators.kernels.batches import (
    affine_row_ratios,
    batch_gradient_sums,
    clipped_moments,
    draw_batches,
)
from dpmc.evaluators.kernels.blocks import BLOCK, block_gradient_sums, block_ratio_sums
from dpmc.evaluators.kernels.poisson import (
    NOISE,
    draw_with_replacement,
    poisson_counts,
    thinned_log_ratio,
    uniforms,
)
from dpmc.evaluators.kernels.softplus import softplus_ratio_sums, softplus_row_ratios
from dpmc.evaluators.kernels.sorting import (
    WELL_CONDITIONED,
    sorted_gradient_sums,
    sorted_prefix,
    sorted_ratio_sums,
)
from dpmc.evaluators.kernels.strips import STRIP, strip_gradient_sums, strip_prefix, strip_ratio_sums

__all__ = [
    "BLOCK",
    "NOISE",
    "STRIP",
    "WELL_CONDITIONED",
    "affine_row_ratios",
    "batch_gradient_sums",
    "block_gradient_sums",
    "block_ratio_sums",
    "clipped_moments",
    "draw_batches",
    "draw_with_replacement",
    "poisson_counts",
    "softplus_ratio_sums",
    "softplus_row_ratios",
    "sorted_gradient_sums",
    "sorted_prefix",
    "sorted_ratio_sums",
    "strip_gradient_sums",
    "strip_prefix",
    "strip_ratio_sums",
    "thinned_log_ratio",
    "uniforms",
]
