"""The thesis's data sets, start points and, but for the circle, reference draws, regenerated up to rounding.

Räisä, "Differentially Private MCMC" (the thesis), draws them from fixed integer seeds with the
Threefry-2x32 generator (Salmon et al. 2011; `common/threefry.py`). The DP-HMC paper uses the same rules
with other constants. On these data, chains with other random numbers agree with the published figures
within sampling error. The seeds are constants of the published experiments; rows from other seeds are
fresh data sets.

All arrays are float64; n rows, d parameters. Quantities that depend on the rows (an exact posterior's
parameters, the spread of its draws) are computed by the models and passed in.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmc.common import threefry
from dpmc.common.threefry import Floats, Key

BANANA_SEED = 43247  # the bananas and the 30-dimensional Gaussian, which is a banana with a = 0
CIRCLE_SEED = 742983
START_SEED = 4236482  # chain i uses START_SEED + i
BASELINE_SEED = 4623878

GAUSSIAN_SEED = 46283648  # the thesis's (Section 5.1)
PAPER_GAUSSIAN_SEED = 4627290  # the DP-HMC paper's

#: Seed of the reference draws of each family of models.
REFERENCE_SEEDS = {"banana": 56437, "gaussian": 434927}


RowMaker = Callable[[int], Floats]  #: n -> (n, columns)
ExactDraws = Callable[[Any, int], list[Floats]]  #: posterior, number -> reference draws, then ten baselines


def normals(key: Key) -> Any:
    """Return normal numbers in place of a random generator, for `simulate` and `draws` of a banana.

    It only has `standard_normal((n, d))`, d ≥ 2: one key for each of columns 1 and 2, one for the rest.
    Numbers for another n or d are different ones, not a subset.
    """

    def standard_normal(shape: tuple[int, int]) -> Floats:
        widths = zip(threefry.split(key, 3), (1, 1, shape[1] - 2), strict=True)
        return np.concatenate([threefry.normal(each, (shape[0], width)) for each, width in widths], axis=1)

    return SimpleNamespace(standard_normal=standard_normal)


def circle_rows(n: int) -> Floats:
    """Return the thesis's circle rows (n, 1), r ~ N(3, 1) (Section 5.1); the thesis has 100,000."""
    # The first key of the split is not used.
    return threefry.normal(threefry.split(threefry.key_of_seed(CIRCLE_SEED))[1], (n, 1)) + 3.0


def of_banana(model: Any, theta: tuple[float, ...]) -> tuple[RowMaker, ExactDraws]:
    """Return the rows and exact draws of a banana with these true parameters."""
    return (
        lambda n: model.simulate(normals(threefry.key_of_seed(BANANA_SEED)), np.array(theta), n),
        lambda its, size: [its.draws(normals(key), size) for key in posterior_keys("banana")],
    )


def of_gaussian(theta: tuple[float, ...], precision: Floats, seed: int) -> tuple[RowMaker, ExactDraws]:
    """Return rows, by seed, and exact draws of a Gaussian with this mean and inverse covariance (d, d)."""
    draws = threefry.multivariate_normal
    return (
        lambda n: draws(threefry.key_of_seed(seed), theta, np.linalg.inv(precision), n),
        lambda its, size: [draws(k, its.mean(), its.covariance(), size) for k in posterior_keys("gaussian")],
    )


def posterior_keys(family: str) -> list[Key]:
    """Return the keys (2,) of the reference draws and of the ten baselines, further exact samples.

    The baselines are the black lines of the figures.
    """
    reference = threefry.key_of_seed(REFERENCE_SEEDS[family])
    return [reference, *threefry.split(threefry.key_of_seed(BASELINE_SEED), 10)]


def starts(true_theta: npt.ArrayLike, scale: float, chains: int = 20) -> Floats:
    """Return the start point of each chain (chains, d): θ + scale z, z ~ N(0, I) (Section 5.2).

    Chain i has its own key, so that adding chains does not change the first ones; models of the same
    dimension share z. The thesis has 20 chains, the DP-HMC paper 40 (four for each of ten runs).

    `scale` is the mean over components of the standard deviation (divisor n) of the model's own 1,000
    reference draws; 1 for the circle, whose θ is (0, 1). It depends on the rows: in a private analysis it
    would cost privacy.
    """
    centre = np.asarray(true_theta, dtype=float)
    steps = [threefry.normal(threefry.key_of_seed(START_SEED + i), centre.size) for i in range(chains)]
    return centre + scale * np.array(steps).reshape(chains, centre.size)
