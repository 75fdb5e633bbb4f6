"""Convergence of several chains of one cell: R-hat, effective sample size, Monte Carlo error.

Rank-normalised split R-hat, bulk ESS and the MCSE of the mean of Vehtari et al. (2021), equal to
arviz-stats' to rounding (the tests compare) in a third of its time: ranks serve two of the three, and
autocovariances are averaged over the chains before they are transformed back. Draws that differ by less than
1e-15 are draws that differ here; there they are constant, and worth their number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri

Floats = npt.NDArray[np.float64]

MINIMUM_DRAWS = 4  # a split R-hat halves each chain and needs a variance in each half
MINIMUM_CHAINS = 2


class Convergence(NamedTuple):
    """The worst parameter's value of each diagnostic."""

    rhat_max: float
    ess_bulk_min: float
    mcse_mean_max: float


def convergence(draws: Floats, least_chains: int = MINIMUM_CHAINS) -> Convergence:
    """Return the worst R-hat, bulk ESS and MCSE of the mean over the parameters.

    `draws` is (chains, draws, parameters). MCSE is in units of the parameter. R-hat of one chain, where
    `least_chains` is 1, compares its halves.

    Raises
    ------
    ValueError
        For fewer than `least_chains` chains or 4 draws, or when a diagnostic is not finite (chains that
        never moved).
    """
    chains, count, _ = draws.shape
    if chains < least_chains:
        raise ValueError(f"{chains} chain, needs at least {least_chains}")
    if count < MINIMUM_DRAWS:
        noun = "draw" if count == 1 else "draws"
        raise ValueError(f"{count} kept {noun} per chain, needs at least {MINIMUM_DRAWS}")
    if not np.all(np.isfinite(draws)):
        raise ValueError("not defined for these chains (some draws are not finite)")
    with np.errstate(all="ignore"):
        each = [_of_parameter(np.ascontiguousarray(values)) for values in np.moveaxis(draws, 2, 0)]
        rhat, ess, mcse = np.array(each).T
        result = Convergence(float(np.max(rhat)), float(np.min(ess)), float(np.max(mcse)))
    if not np.all(np.isfinite(result)):
        raise ValueError("not defined for these chains (some never moved)")
    return result


def _of_parameter(values: Floats) -> tuple[float, float, float]:
    """Return R-hat, bulk ESS and MCSE of the mean of one parameter (chains, draws); NaN where undefined."""
    half = values.shape[1] // 2
    halves = np.concatenate([values[:, :half], values[:, -half:]])
    order = np.argsort(halves, axis=None)
    ranked = halves.ravel()[order]
    scores = _normal_scores(ranked, order).reshape(halves.shape)
    # Distances from the median fall and then rise along the ranked values, which a stable sort merges.
    middle = 0.5 * (ranked[(ranked.size - 1) // 2] + ranked[ranked.size // 2])
    distances = np.abs(ranked - middle)
    outwards = np.argsort(distances, kind="stable")
    folded = _normal_scores(distances[outwards], order[outwards]).reshape(halves.shape)
    rhat = max(_rhat(scores), _rhat(folded))
    mcse = np.std(values, ddof=1) / np.sqrt(_effective_size(halves))
    return rhat, _effective_size(scores), float(mcse)


def _normal_scores(ranked: Floats, places: npt.NDArray[np.intp]) -> Floats:
    """Return the normal quantiles of ranks (Blom's offset), given sorted values and the place of each.

    Equal values have the mean of their ranks.
    """
    count = ranked.size
    first = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
    equals = np.diff(first, append=count)
    mean_rank = first + 0.5 * (equals + 1)
    scores = np.empty(count)
    scores[places] = np.repeat(ndtri((mean_rank - 0.375) / (count + 0.25)), equals)
    return scores


def _rhat(values: Floats) -> float:
    """Return the R-hat of (chains, draws): the root of pooled over within-chain variance."""
    draws = values.shape[1]
    between = draws * np.var(values.mean(axis=1), ddof=1)
    within = np.mean(np.var(values, axis=1, ddof=1))
    return float(np.sqrt((between / within + draws - 1) / draws))


def _effective_size(values: Floats) -> float:
    """Return the effective sample size of (chains, draws), by Geyer's initial monotone sequence."""
    chains, draws = values.shape
    means = values.mean(axis=1)
    covariance = _mean_autocovariance(values - means[:, None])
    within = covariance[0] * draws / (draws - 1.0)
    pooled = covariance[0] + np.var(means, ddof=1)
    correlation = 1.0 - (within - covariance) / pooled
    correlation[0] = 1.0
    # Sums of neighbouring lags' correlations are positive (Geyer 1992) as long as noise does not prevail.
    pairs = max(1, (draws - 1) // 2)
    evens = correlation[: 2 * pairs : 2]
    sums = evens + correlation[1 : 2 * pairs : 2]
    ended = ~(sums > 0.0)
    last = int(np.argmax(ended)) if ended.any() else pairs - 1
    if not np.isfinite(sums[last]):
        return float("nan")
    time = -1.0 + 2.0 * float(np.sum(np.minimum.accumulate(sums[:last])))
    if evens[last] > 0.0 or sums[last] >= 0.0:
        time += float(evens[last])
    size = chains * draws
    return float(size / max(time, 1.0 / np.log10(size)))


def _mean_autocovariance(centred: Floats) -> Floats:
    """Return the chains' mean autocovariance at each lag, (draws,), of values (chains, draws) of mean 0."""
    chains, draws = centred.shape
    length = next_fast_len(2 * draws, real=True)
    spectrum = rfft(centred, n=length, axis=1)
    power = (spectrum.real**2 + spectrum.imag**2).sum(axis=0)
    covariance: Floats = irfft(power, n=length)[:draws] / (chains * draws)
    return covariance
