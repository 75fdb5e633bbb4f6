"""The thesis's data sets, reference draws and start points, regenerated exactly.

Räisä, "Differentially Private MCMC" (the thesis), draws them from fixed integer seeds with the
Threefry-2x32 generator (Salmon et al. 2011; `common/threefry.py`). The DP-HMC paper uses the same rules
with other constants. On these data, chains with other random numbers agree with the published figures
within sampling error. The seeds are constants of the published experiments; rows from other seeds are
fresh data sets.

All arrays are float64. Quantities that depend on the rows (an exact posterior's parameters, the spread
of its draws) are computed by the models and passed in.
"""

import numpy as np
import numpy.typing as npt

from dpmc.common import threefry
from dpmc.common.threefry import Floats, Key

BANANA_SEED = 43247  # the bananas and the 30-dimensional Gaussian, which is a banana with a = 0
GAUSSIAN_SEED = 46283648  # the thesis's correlated Gaussian
CIRCLE_SEED = 742983
START_SEED = 4236482  # chain i uses START_SEED + i

REFERENCE_KEYS = {"banana": 56437, "gaussian": 434927}
"""Integer seed of the reference draws of each family, an argument of ``threefry.key``."""

BASELINE_SEED = 4623878
CLIPPING_BASELINE_SEED = 46237  # baselines of the clipping experiment (thesis, Figure 6.2)

DP_HMC_GAUSSIAN_SEED = 4627290  # rows of the DP-HMC paper's 10-dimensional Gaussian

GAUSSIAN_SEEDS = {"correlated-gauss": GAUSSIAN_SEED, "paper-gauss": DP_HMC_GAUSSIAN_SEED}
"""Seed of the rows of each Gaussian model of the catalogue."""


def banana_rows(n: int, sigma2: npt.ArrayLike, true_theta: npt.ArrayLike, a: float) -> Floats:
    """Return the thesis's banana rows (Section 5.1), or with a = 0 its uncorrelated Gaussian's.

    x_1 ~ N(theta_1, sigma2_1), x_2 ~ N(theta_2 + a theta_1^2, sigma2_2) and x_i ~ N(theta_i,
    sigma2_i) for the rest (Theorem 5.2 with b = m = 0). Rows for another n or d are different numbers,
    not a subset.

    Parameters
    ----------
    n : number of rows.
    sigma2 : (d,) likelihood variances, d >= 2.
    true_theta : (d,) true parameters.
    a : curvature of the banana.

    Returns
    -------
    (n, d) rows.

    Raises
    ------
    ValueError : fewer than two components, or lengths that differ.
    """
    variance, theta = _vectors("sigma2", sigma2, "true_theta", true_theta)
    location = theta.copy()  # theta is the caller's
    location[1] += a * location[0] ** 2
    return _by_blocks(threefry.key(BANANA_SEED), n, location, np.sqrt(variance))


def circle_rows(n: int) -> Floats:
    """Return the thesis's circle rows r ~ N(3, 1) (Section 5.1).

    Parameters
    ----------
    n : number of rows; the thesis has 100,000.

    Returns
    -------
    (n, 1) rows.
    """
    # The first key of the split is not used.
    return threefry.normal(threefry.split(threefry.key(CIRCLE_SEED))[1], (n, 1)) + 3.0


def gaussian_rows(
    n: int,
    covariance: npt.ArrayLike,
    true_theta: npt.ArrayLike,
    seed: int = GAUSSIAN_SEED,
) -> Floats:
    """Return the rows of a published correlated Gaussian, x ~ N(true_theta, covariance).

    Parameters
    ----------
    n : number of rows.
    covariance : (d, d) known covariance of the likelihood.
    true_theta : (d,) true mean.
    seed : `GAUSSIAN_SEED` (the thesis, Section 5.1) or `DP_HMC_GAUSSIAN_SEED` (the DP-HMC paper).

    Returns
    -------
    (n, d) rows.

    Raises
    ------
    ValueError : the shapes of covariance and true_theta do not match.
    """
    return threefry.multivariate_normal(threefry.key(seed), true_theta, covariance, n)


def banana_posterior_draws(
    key: Key,
    size: int,
    mu: npt.ArrayLike,
    variance: npt.ArrayLike,
    a: float,
    b: float = 0.0,
    m: float = 0.0,
) -> Floats:
    """Draw from Ban(mu, diag(variance), a, b, m), the exact banana posterior (Theorem 5.2).

    With z ~ N(mu, diag(variance)): theta_1 = z_1, theta_2 = z_2 - a (z_1 - m)^2 - b and theta_i =
    z_i for the rest.

    Parameters
    ----------
    key : (2,) uint32 key: that of `REFERENCE_KEYS`, or one of `baseline_keys`.
    size : number of draws; the thesis uses 1,000.
    mu, variance : (d,) means and variances of z, d >= 2.
    a, b, m : shape of the banana.

    Returns
    -------
    (size, d) draws.

    Raises
    ------
    ValueError : fewer than two components, or lengths that differ.
    """
    variance, mu = _vectors("variance", variance, "mu", mu)
    draws = _by_blocks(key, size, mu, np.sqrt(variance))
    draws[:, 1] -= a * (draws[:, 0] - m) ** 2 + b
    return draws


def gaussian_posterior_draws(key: Key, size: int, mean: npt.ArrayLike, covariance: npt.ArrayLike) -> Floats:
    """Draw from N(mean, covariance), the exact posterior of a Gaussian with known covariance.

    Parameters
    ----------
    key : (2,) uint32 key: that of `REFERENCE_KEYS`, or one of `baseline_keys`.
    size : number of draws; the thesis uses 1,000.
    mean, covariance : (d,) and (d, d) posterior parameters. The published draws take 100 for the
        prior *variance*, although the published samplers' prior has it as a standard deviation.

    Returns
    -------
    (size, d) draws.

    Raises
    ------
    ValueError : the shapes of mean and covariance do not match.
    """
    return threefry.multivariate_normal(key, mean, covariance, size)


def baseline_keys(seed: int = BASELINE_SEED) -> list[Key]:
    """Return the ten keys of the baselines: further exact samples, the figures' black lines.

    Each is used like the reference key.

    Parameters
    ----------
    seed : `BASELINE_SEED`, or `CLIPPING_BASELINE_SEED` for Figure 6.2 (of which the thesis's
        10-dimensional panel uses only the keys with indices 1 to 9).
    """
    return list(threefry.split(threefry.key(seed), 10))


def starts(true_theta: npt.ArrayLike, scale: float, chains: int = 20) -> Floats:
    """Return the start point of each chain: true_theta + scale z, z ~ N(0, I) (Section 5.2).

    Chain i has its own key, so that adding chains does not change the first ones; models of the same
    dimension share z.

    Parameters
    ----------
    true_theta : (d,) true parameters; (0, 1) for the circle.
    scale : mean over components of the standard deviation (divisor n) of the model's own 1,000
        reference draws; 1 for the circle. It depends on the rows: in a private analysis it would
        cost privacy.
    chains : number of chains; the thesis has 20, the DP-HMC paper 40 (four for each of ten runs).

    Returns
    -------
    (chains, d) starting points.
    """
    center = np.asarray(true_theta, dtype=np.float64)
    steps = [threefry.normal(threefry.key(START_SEED + i), center.size) for i in range(chains)]
    return center + scale * np.array(steps).reshape(chains, center.size)


def _by_blocks(key: Key, n: int, location: Floats, deviation: Floats) -> Floats:
    """Draw (n, d) independent normals: one key for each of columns 1 and 2, one for the rest."""
    widths = (1, 1, location.size - 2)
    blocks = [
        threefry.normal(block_key, (n, width))
        for block_key, width in zip(threefry.split(key, 3), widths, strict=True)
    ]
    rows = np.concatenate(blocks, axis=1)
    rows *= deviation
    rows += location
    return rows


def _vectors(
    name: str, values: npt.ArrayLike, other_name: str, other_values: npt.ArrayLike
) -> tuple[Floats, Floats]:
    """Return both as float64 vectors of one length d >= 2, or raise ValueError."""
    vector = np.asarray(values, dtype=np.float64)
    other = np.asarray(other_values, dtype=np.float64)
    if vector.ndim != 1 or vector.shape != other.shape or vector.size < 2:
        raise ValueError(
            f"{name} and {other_name} must be vectors of one length, at least 2, "
            f"got shapes {vector.shape} and {other.shape}"
        )
    return vector, other
