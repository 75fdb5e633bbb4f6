"""The summary at the end of `dpmc sample`: a small table of the chains, and warnings with remedies.

R-hat and ESS are computed from the second halves, as in the table of metrics. The fraction of clipped rows is
a function of the rows: it is marked private, is for the owner of the data only, and must not be released.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpmc.common.draws import warning_of_unmoved
from dpmc.common.values import rounded_up
from dpmc.data.chain_files import Chains
from dpmc.data.datasets import is_public
from dpmc.metrics.cell import convergence, fractions, second_half_of
from dpmc.metrics.table import CLIP_LIMIT, RATIO_CLIPPED

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
#: A larger share is clipped only if the log-likelihood is NaN or the bound is wrong by orders of magnitude.
ALL_CLIPPED = 0.99
#: Share of the proposals that are not finite.
DIVERGING_MOST = 0.5

#: Kind of clipping -> the metric with its fraction, and the hyperparameters that bound it in some algorithms.
CLIP_METRICS = {
    "log ratios": (RATIO_CLIPPED, ("clip", "clip_l")),
    "gradients": ("gradient_clip_fraction", ("clip", "clip_g")),
}


class _Result(NamedTuple):
    """Summary of the finished chains of one cell."""

    about: dict[str, Any]  # attributes of a chain file
    chains: int  # of all seeds together
    spent: str  # the largest ε that a seed has spent, rounded up; "inf" without a budget
    values: dict[str, float]  # means over the seeds by metric; diverged: a share; none for no iterations
    unmoved: str  # names parameters that a chain never moved; "" if there are none


def summary_lines(cells: Sequence[tuple[Sequence[Chains], Sequence[Path]]]) -> list[str]:
    """Return a table of the finished cells of a method on a model, a row for each ε, then warnings.

    A cell is its runs (seeds) and their files, none if they are in memory.
    """
    results = [_result(runs) for runs, _ in cells]
    about = results[0].about
    each = ", budget of each seed" if len(cells[0][0]) > 1 else ""
    rows = [_row(result, files) for result, (_, files) in zip(results, cells, strict=True)]
    columns = [key for key in rows[0] if any(row.get(key, "-") != "-" for row in rows)]
    table = [columns, *([row.get(key, "-") for key in columns] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    most = about.get("rows_per_person", 1)
    whose = f", of a person with at most {most} rows" if int(most) > 1 else ""
    said = [f"{about['model']} {about['method']}: delta {float(about['delta']):.3g}{each}{whose}"]
    said += ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in table]
    if any("*" in column for column in columns):
        said.append("  * private, not to be released")
    warnings = [
        f"dpmc: warning: {cell_name(result.about)}: {text}"
        for result in results
        # A status names the problem; a release has none.
        if result.values and result.about.get("status", "ok") == "ok"
        for text in _warnings(result)
    ]
    # No number of clipped rows may decide whether the last line appears.
    public = [text for text in warnings if "(private)" not in text]
    if (
        public
        and any(result.spent != "inf" for result in results)
        and not is_public(about.get("dataset", ""))
    ):
        warnings.append(
            "dpmc: another run on these rows spends as much again: try remedies on simulated rows"
        )
    return said + warnings


def cell_name(about: Mapping[Any, Any]) -> str:
    """Return the name of a cell, from the attributes of a chain file."""
    return f"{about['model']} {about['method']} epsilon {about['epsilon']}"


def epsilon_text(epsilon: float) -> str:
    """Format ε with four significant digits, rounded up."""
    # Formatting a float rounds to nearest, which may be below what was spent.
    return f"{rounded_up(epsilon, 4):.4g}"


def _result(runs: Sequence[Chains]) -> _Result:
    """Summarise the runs (seeds) of one cell."""
    about = runs[0].attrs
    ledgers = [json.loads(str(run.attrs["ledger"])) for run in runs]
    spent = [float(ledger["epsilon_spent"]) for ledger in ledgers if ledger["epsilon_spent"] is not None]
    if about.get("mode") == "release":  # takes all of its ε, also the part that its iterations leave
        spent = [float(run.attrs["epsilon"]) for run in runs]
    iterations, each = int(about["iterations"]), int(about["chains"])
    values: dict[str, float] = {}
    unmoved = ""
    if iterations:
        by_run = [fractions(run, iterations) for run in runs]
        values = {key: float(np.mean([run[key] for run in by_run])) for key in by_run[0]}
        values["diverged"] /= iterations * each
        halves = [second_half_of(run) for run in runs]
        shortest = min(half.shape[1] for half in halves)  # releases may have lost iterations
        late = np.concatenate([half[:, half.shape[1] - shortest :] for half in halves])
        unmoved = warning_of_unmoved(
            late, runs[0].parameters or [f"theta[{i}]" for i in range(late.shape[2])]
        )
        with contextlib.suppress(ValueError):  # too few draws, or chains that never moved
            values |= convergence(late)
    return _Result(about, len(runs) * each, epsilon_text(max(spent)) if spent else "inf", values, unmoved)


def _row(result: _Result, files: Sequence[Path]) -> dict[str, str]:
    """Return the texts of a cell's row, by column; "-": not defined."""
    values = result.values

    def text(key: str, form: str) -> str:
        return format(values[key], form) if key in values else "-"

    row = {
        "epsilon": str(result.about["epsilon"]),
        "spent": result.spent,
        "chains": str(result.chains),
        "iterations": str(result.about["iterations"]),
        "accepted": text("acceptance_rate", ".1%"),
        "ESS": text("ess_bulk_min", ".0f"),
        "R-hat": "-" if result.chains == 1 else text("rhat_max", ".2f"),
    }
    row |= {f"{what} clipped*": text(key, ".1%") for what, (key, *_) in CLIP_METRICS.items()}
    if files:
        row["file"] = str(files[0]) + (f" and {len(files) - 1} more" if len(files) > 1 else "")
    return row


def _warnings(result: _Result) -> Iterator[str]:
    """Yield warnings about the chains, with remedies.

    Only those marked "(private)" depend on numbers of clipped rows; none of the others is left out for them.
    """
    values, about = result.values, result.about
    settings = json.loads(str(about.get("calibrated", about["hyperparameters"])))

    def own(*names: str) -> str:
        return " or ".join(name for name in names if name in settings)

    step, noise = own("proposal_sd", "step_size") or "the step", own("tau", "tau_l", "tau_g")
    accepted, ess, rhat = map(values.get, ("acceptance_rate", "ess_bulk_min", "rhat_max"))
    if values["diverged"] > DIVERGING_MOST:
        yield f"most proposals are not finite: make {step} smaller"
    for what, (key, bounds) in CLIP_METRICS.items():
        share, clip = values.get(key, 0.0), own(*bounds)
        if share > ALL_CLIPPED:
            cause = "the log-likelihood may be NaN or infinite"
            yield f"all {what} are clipped (private): {cause}; see what the model gives on simulated rows"
        elif share > CLIP_LIMIT:
            remedy = f"raise {clip}" if clip else f"make {step} smaller"
            yield (
                f"{share:.0%} of {what} are clipped (private), which biases the chain: {remedy}; "
                "let simulated rows decide, not these"
            )
    if result.unmoved:
        yield result.unmoved
    if accepted is not None and accepted < ACCEPTED_LEAST:
        also = f", or the noise ({noise})" if noise else ""
        yield f"{accepted:.1%} of the proposals were accepted: make {step} smaller{also}"
    elif ess is not None and ess < ESS_LEAST:
        remedy = f"more iterations, or another {step}"
        if accepted is not None and accepted > ACCEPTED_MOST:
            remedy = f"nearly all proposals are accepted, make {step} larger"
        elif noise:
            remedy = f"more noise in each iteration (larger {noise}) buys more iterations; or change {step}"
        who = "the chain is" if result.chains == 1 else "the chains together are"
        yield f"{who} worth {ess:.0f} independent draws: {remedy}"
    if rhat is not None and result.chains > 1 and rhat > RHAT_MOST:
        yield (
            f"R-hat is {rhat:.2f}, the chains have not come together: fewer and longer ones, "
            "or a start that is nearer"
        )
    elif rhat is not None and result.chains == 1 and rhat > DRIFT_MOST:
        yield "the chain still drifts in its second half: start nearer, or let it run longer"
