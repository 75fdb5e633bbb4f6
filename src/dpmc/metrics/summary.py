"""The summary at the end of `dpmc sample`: a small table of the chains, and warnings with remedies.

R-hat and ESS are computed from the second halves, as in the table of metrics. The fraction of clipped rows is
a function of the rows: it is marked private, is for the owner of the data only, and must not be released.
"""

import decimal
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpmc.data.chain_files import ChainFile
from dpmc.data.datasets import is_public
from dpmc.metrics.cell import convergence, fractions, second_half

#: Chains with acceptance rates outside of these rarely mix. The best rate of a random walk is about 0.23 to
#: 0.45, less if the test is noisy, and that of HMC about 0.65 to 0.8.
ACCEPTED_LEAST, ACCEPTED_MOST = 0.02, 0.9
#: With fewer independent draws the error of a chain's mean exceeds a fifth of a posterior sd.
ESS_LEAST = 25.0
#: Several chains: 1.01 is recommended for long chains (Vehtari et al. 2021). A private budget allows only
#: short ones, whose R-hat differs from 1 by about the number of chains over the ESS.
RHAT_MOST = 1.05
#: One chain: only the two parts of its second half are compared.
DRIFT_MOST = 1.2
#: "Fewer than 10 % clipped" (Section 6.3 of the thesis): with more the chain samples another distribution.
CLIPPED_MOST = 0.10
#: A larger share is clipped only if the log-likelihood is NaN or the bound is wrong by orders of magnitude.
ALL_CLIPPED = 0.99
#: Share of the proposals that are not finite.
DIVERGING_MOST = 0.5

#: Kind of clipping -> the metric with its fraction.
CLIPPED = {"log ratios": "ratio_clip_fraction", "gradients": "gradient_clip_fraction"}

#: Names of hyperparameters by purpose; an algorithm has some of them.
STEPS, NOISE, CLIPS = ("proposal_sd", "step_size"), ("tau", "tau_l", "tau_g"), ("clip", "clip_l", "clip_g")


class _Result(NamedTuple):
    """Summary of the finished chains of one cell."""

    about: dict[str, Any]  # attributes of a chain file
    iterations: int
    values: dict[str, float]  # means over the seeds, by the names of `dpmc.metrics`; diverged: a share
    ess: float | None  # the smallest of any parameter; None if undefined
    rhat: float | None  # the largest of any parameter; of one chain: of the two parts of its second half
    chains: int  # of all seeds together
    spent: str


def lines(cells: Sequence[tuple[Sequence[ChainFile], Sequence[Path]]]) -> list[str]:
    """Return a table of the finished cells of a method on a model, a row for each ε, then warnings.

    A cell is its runs (seeds) and their files, none if they are in memory.
    """
    results = [_result(runs) for runs, _ in cells]
    about = results[0].about
    each = ", budget of each seed" if len(cells[0][0]) > 1 else ""
    title = f"{about['model']} {about['method']}: delta {float(about['delta']):.3g}{each}"
    rows = [_row(result, files) for result, (_, files) in zip(results, cells, strict=True)]
    columns = [key for key in rows[0] if any(row.get(key, "-") != "-" for row in rows)]
    table = [columns, *([row.get(key, "-") for key in columns] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    said = [title]
    for row in table:
        said.append("  " + "  ".join(map(str.ljust, row, widths)).rstrip())
    if any("*" in column for column in columns):
        said.append("  * private, not to be released")
    found: list[str] = []
    for result in results:
        if result.iterations and result.about["status"] == "ok":  # otherwise the status names the problem
            found += [f"dpmc: warning: {name(result.about)}: {text}" for text in _warnings(result)]
    released = [
        text for text in found if "(private)" not in text
    ]  # no count of the rows decides the last line
    if released and any(result.spent != "inf" for result in results) and not is_public(about["dataset"]):
        found.append("dpmc: another run on these rows spends as much again: try remedies on simulated rows")
    return said + found


def name(about: dict[str, Any]) -> str:
    """Return the name of a cell, from the attributes of a chain file."""
    return f"{about['model']} {about['method']} epsilon {about['epsilon']}"


def _result(runs: Sequence[ChainFile]) -> _Result:
    """Summarise the runs (seeds) of one cell."""
    about = runs[0].attrs
    iterations, each = int(about["iterations"]), int(about["chains"])
    spent, chains = _spent(runs), len(runs) * each
    if iterations == 0:
        return _Result(about, 0, {}, None, None, chains, spent)
    found = [fractions(run, iterations) for run in runs]
    values = {key: float(np.mean([one[key] for one in found])) for key in found[0]}
    values["diverged"] /= iterations * each
    return _Result(about, iterations, values, *_convergence(runs), chains, spent)


def _row(result: _Result, files: Sequence[Path]) -> dict[str, str]:
    """Return the texts of a cell's row, by column; "-": not defined."""
    row = {
        "epsilon": str(result.about["epsilon"]),
        "spent": result.spent,
        "chains": str(result.chains),
        "iterations": str(result.iterations),
        "accepted": _percent(result.values.get("acceptance_rate")),
        "ESS": "-" if result.ess is None else f"{result.ess:.0f}",
        "R-hat": "-" if result.chains == 1 or result.rhat is None else f"{result.rhat:.2f}",
    }
    for what, key in CLIPPED.items():
        row[f"{what} clipped*"] = _percent(result.values.get(key))
    if files:
        row["file"] = str(files[0]) + (f" and {len(files) - 1} more" if len(files) > 1 else "")
    return row


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def rounded_up(epsilon: float) -> str:
    """Format ε with four significant digits, rounded up."""
    upwards = decimal.Context(prec=4, rounding=decimal.ROUND_CEILING)
    return f"{float(upwards.create_decimal_from_float(epsilon)):.4g}"


def _convergence(runs: Sequence[ChainFile]) -> tuple[float | None, float | None]:
    """Return the smallest bulk ESS and largest R-hat of any parameter, of the second halves of all chains."""
    halves = [second_half(run.draws, int(run.attrs["iterations"]), int(run.attrs["thin"])) for run in runs]
    try:
        found = convergence(np.concatenate(halves))
    except ValueError:
        return None, None
    return found.ess_bulk_min, found.rhat_max


def _spent(runs: Sequence[ChainFile]) -> str:
    """Return the largest ε that a seed has spent, rounded up; "inf" without a budget."""
    ledgers = [json.loads(str(run.attrs["ledger"])) for run in runs]
    spent = [float(ledger["epsilon_spent"]) for ledger in ledgers if ledger["epsilon_spent"] is not None]
    return rounded_up(max(spent)) if spent else "inf"


def _clipped(result: _Result) -> list[tuple[float, str, str]]:
    """Return the fraction of rows clipped, of what, and the hyperparameter that bounds it."""
    names = {"log ratios": CLIPS[:2], "gradients": CLIPS[::2]}
    return [
        (result.values[key], what, _own(result, names[what]))
        for what, key in CLIPPED.items()
        if key in result.values
    ]


def _own(result: _Result, names: Sequence[str]) -> str:
    """Return the hyperparameters among `names` that the algorithm has; "" for none."""
    settings = json.loads(str(result.about.get("calibrated", result.about["hyperparameters"])))
    return " or ".join(name for name in names if name in settings)


def _warnings(result: _Result) -> list[str]:
    """Return warnings about the chains, with remedies.

    Only those marked "(private)" depend on numbers of clipped rows; none of the others is left out for them.
    """
    step, noise = (_own(result, names) or "the step" for names in (STEPS, NOISE))
    accepted = result.values.get("acceptance_rate")
    warnings = []
    if result.values["diverged"] > DIVERGING_MOST:
        warnings.append(f"most proposals are not finite: make {step} smaller")
    for share, what, clip in _clipped(result):
        if share > ALL_CLIPPED:
            warnings.append(
                f"all {what} are clipped (private): the log-likelihood may be NaN or infinite; "
                "see what it gives on simulated rows"
            )
        elif share > CLIPPED_MOST:
            remedy = f"raise {clip}" if clip else f"make {step} smaller"
            warnings.append(
                f"{share:.0%} of {what} are clipped (private), which biases the chain: {remedy}; "
                "let simulated rows decide, not these"
            )
    if accepted is not None and accepted < ACCEPTED_LEAST:
        also = f", or the noise ({noise})" if noise != "the step" else ""
        warnings.append(f"{accepted:.1%} of the proposals were accepted: make {step} smaller{also}")
    elif result.ess is not None and result.ess < ESS_LEAST:
        if accepted is not None and accepted > ACCEPTED_MOST:
            remedy = f"nearly all proposals are accepted, make {step} larger"
        elif noise != "the step":
            remedy = f"more noise in each iteration (larger {noise}) buys more iterations; or change {step}"
        else:
            remedy = f"more iterations, or another {step}"
        who = "the chain is" if result.chains == 1 else "the chains together are"
        warnings.append(f"{who} worth {result.ess:.0f} independent draws: {remedy}")
    if result.rhat is not None and result.chains > 1 and result.rhat > RHAT_MOST:
        warnings.append(
            f"R-hat is {result.rhat:.2f}, the chains have not come together: fewer and longer ones, "
            "or a start that is nearer"
        )
    elif result.rhat is not None and result.chains == 1 and result.rhat > DRIFT_MOST:
        warnings.append("the chain still drifts in its second half: start nearer, or let it run longer")
    return warnings
