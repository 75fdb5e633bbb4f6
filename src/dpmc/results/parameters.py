"""The parameters of a posterior: mean, standard deviation, interval, and how well the chains know them."""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from dpmc.common.draws import (
    diagnostics,
    for_all_rows,
    second_half_draws,
    unmoved,
    warning_of_unmoved,
)
from dpmc.common.errors import DpmcError
from dpmc.common.logs import LOGGER
from dpmc.common.values import checked, real, shown
from dpmc.data.chain_files import ResultOrFile
from dpmc.results import as_tree, require_alike

if TYPE_CHECKING:
    import pandas
    import xarray

#: Models of the catalogue whose tempered posterior is not nearly normal, by a word of their name.
CURVED = ("banana", "mixture", "circle")
#: Skewness of draws from which on they are not nearly normal; that of an exponential distribution is 2.
SKEWED = 1.0


def summary(*runs: ResultOrFile, level: float = 0.9) -> pandas.DataFrame:
    """Summarise the posterior of each parameter, from the second half of each chain.

    If the model is tempered (T = n₀/n < 1), draws are those of a posterior that is wider than that of all
    rows. Its `sd` is then √T times that of the draws, and the interval is mean ± z √(sd² + mcse²), z a
    quantile of the normal distribution: right for a posterior which is nearly normal and in which the prior
    has little weight beside n₀ rows, exact for a linear regression with known sd and a flat prior. `sd`,
    `lower` and `upper` are NaN where it is wrong: for the catalogue's banana, mixture and circle, for
    `noisy-statistics`, and for draws of a skewness beyond 1. Without tempering, `lower` and `upper` are
    quantiles of the draws. Of a parameter that some chain never moved only `mean` and `sd_draws` are numbers,
    and a warning names it. No interval contains the bias of clipped rows. The table is a function of draws
    alone, so that it may be released with them.

    Parameters
    ----------
    runs
        Results of `dpmc.sample` or `dpmc.release`, or files of them, of the same model and rows; their chains
        are joined.
    level
        Posterior probability of the interval.

    Returns
    -------
    pandas.DataFrame
        A row for each parameter; columns mean, sd, lower, upper, sd_draws (tempered), mcse (Monte Carlo
        standard error of the mean), ess (bulk), r_hat (of one chain: between its halves), by arviz-stats.
        `attrs` has temperature, level and a sentence on the interval, "interval".

    Raises
    ------
    DpmcError
        For a file that cannot be read, runs of different models, parameters or rows, and too few draws.
    """
    import pandas

    interval_sds(level)  # raises for a wrong level
    level = float(level)
    if not runs:
        raise DpmcError("summary: needs runs")
    trees = [as_tree(run) for run in runs]
    require_alike(trees, "summary")
    halves = [second_half_draws(tree) for tree in trees]
    length = min(half.shape[1] for half in halves)
    draws = np.concatenate([half.values[:, half.shape[1] - length :] for half in halves])
    found = checked("summary", diagnostics, draws)
    temperature = float(trees[0].attrs.get("temperature", 1.0))
    lower, upper, how = _interval(trees, draws, found.mcse, level)
    if "codebook=" in str(trees[0].attrs.get("description")):
        how += "; of columns standardised by the codebook"
    sd = draws.std(axis=(0, 1))
    scale = np.where(np.isnan(lower), np.nan, temperature**0.5)
    columns = {"mean": draws.mean(axis=(0, 1)), "sd": scale * sd, "lower": lower, "upper": upper}
    columns |= {"sd_draws": sd, "mcse": found.mcse, "ess": found.ess, "r_hat": found.rhat}
    names = halves[0]["parameter"].values
    table = pandas.DataFrame(columns, index=pandas.Index(names, name="parameter"))
    if warning := warning_of_unmoved(draws, names):
        LOGGER.warning("summary: %s", warning)
        how += "; NaN where a chain never moved"
        table.loc[unmoved(draws).any(axis=0), table.columns.difference(["mean", "sd_draws"])] = np.nan
    table.attrs = {"temperature": temperature, "level": level, "interval": how}
    return table


def interval_sds(level: float) -> float:
    """Return how many sds an interval reaches on each side; raise DpmcError for a wrong level."""
    number = checked("level", real, level)
    if not 0.0 < number < 1.0:
        raise DpmcError(f"level: {shown(level)} must be between 0 and 1")
    return NormalDist().inv_cdf(0.5 + 0.5 * number)


def _interval(
    trees: list[xarray.DataTree], draws: np.ndarray, mcse: np.ndarray, level: float
) -> tuple[np.ndarray, np.ndarray, str]:
    """Return the ends (d,) of the interval of each parameter, from draws (chains, draws, d), and how.

    `mcse` (d,) is the error of the means. NaN where tempering cannot be taken out.
    """
    about = trees[0].attrs
    temperature, model = float(about.get("temperature", 1.0)), str(about.get("model_id", about["model"]))
    sides = 0.5 - 0.5 * level, 0.5 + 0.5 * level
    if temperature == 1.0:
        lower, upper = np.quantile(draws, sides, axis=(0, 1))
        return lower, upper, "quantiles of the draws"
    # The noise of a sum is as large at any temperature.
    noisy_sum = any('"name": "sum"' in str(tree.attrs["ledger"]) for tree in trees)
    narrow, mean = for_all_rows(draws, temperature, mcse).std(axis=(0, 1)), draws.mean(axis=(0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        skewness = ((draws - mean) ** 3).mean(axis=(0, 1)) / draws.std(axis=(0, 1)) ** 3
    skewed = np.abs(np.nan_to_num(skewness)) > SKEWED
    normal = ~skewed & (not noisy_sum) & (not any(word in model for word in CURVED))
    lower, upper = (np.where(normal, mean + NormalDist().inv_cdf(side) * narrow, np.nan) for side in sides)
    how = f"of all rows, by a normal approximation: sd is {temperature**0.5:.4g} (√T) times sd_draws"
    if not normal.all():
        why = "given a noisy sum, whose noise is not tempered" if noisy_sum else "not nearly normal"
        how += f"; NaN where the draws are {why}, so that tempering cannot be taken out"
    return lower, upper, how


def parameter_lines(table: pandas.DataFrame) -> list[str]:
    """Return a summary as text: the rows, with four significant digits, and how the interval was made."""
    form = {"ess": "{:.0f}", "r_hat": "{:.2f}"}
    texts = [[form.get(key, "{:.4g}").format(x) for x in table[key]] for key in table.columns]
    columns = [["parameter", *map(str, table.index)]]
    columns += [[name, *text] for name, text in zip(table.columns, texts, strict=True)]
    widths = [max(map(len, column)) for column in columns]
    rows = ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in zip(*columns, strict=True)]
    return [*rows, f"  lower, upper: {table.attrs['level']:.4g} interval, {table.attrs['interval']}"]
