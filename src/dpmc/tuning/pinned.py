"""Pinned hyperparameters of a cell: trial runs on tuning data, and their results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc.studies import (
    Study,
    build_algorithm,
    definition_of,
    make_cell,
    number_of_rows,
    pinned_hyperparameters,
)

if TYPE_CHECKING:
    from dpmc.data.problem import Problem
    from dpmc.metrics.cell import Row
    from dpmc.sampling.loop import Progress

MEDIANS = ("iterations", "mmd", "acceptance_rate", "ratio_clip_fraction", "gradient_clip_fraction")
CLIP_LIMIT = 0.10  #: "fewer than 10 % clipped" (Section 6.3)


def untried(study: Study, model: str, method: str) -> dict[str, Any]:
    """Return the pinned setting of a cell that is not tried, for lack of a budget or by the study's choice.

    Raises DpmcError for missing or wrong hyperparameters.
    """
    given = pinned_hyperparameters(study, model, method)
    about = definition_of(study, model)
    epsilon = study.epsilons(model, method)[0]
    n = number_of_rows(study, model)
    build_algorithm(study, method, given, len(about.true_theta), epsilon, n)
    why = (
        "the study takes its settings as they are"
        if study.tuning.mode == "none"
        else "without a budget there is nothing to tune against"
    )
    return {**_about(study, model, method, given.values), "tried": f"not tried: {why}"}


def pinned(
    study: Study, model: str, method: str, problem: Problem, progress: Progress | None = None
) -> dict[str, Any]:
    """Run the pinned setting on tuning data at the model's tuning ε; return it with the results.

    The verdict on clipping is recorded but not enforced: some published settings fail it.

    Raises DpmcError for missing or wrong hyperparameters.
    """
    from dpmc.data.chain_files import ChainFile
    from dpmc.metrics.cell import seed_metrics
    from dpmc.sampling.loop import sample

    given = pinned_hyperparameters(study, model, method)
    cell = make_cell(study, problem, method, study.model(model).tuning_epsilon, given)
    finished = sample(cell, list(range(study.tuning.seeds)), progress=progress)
    rows = seed_metrics([ChainFile.of(chains, {"study": study.name}) for chains in finished], problem)
    medians = medians_of(rows)
    return {
        **_about(study, model, method, given.values),
        "tried": {
            "data": problem.dataset,
            "epsilon": study.model(model).tuning_epsilon,
            "seeds": study.tuning.seeds,
            "medians": medians,
            "clipping": _verdict(medians),
            "status": sorted({str(row["value"]) for row in rows if row["metric"] == "status"}),
        },
    }


def medians_of(rows: list[Row]) -> dict[str, float]:
    """Return the medians over seeds of the metrics `MEDIANS`; `rows` as of `dpmc.metrics.cell`."""
    return {
        name: float(np.median([row["value"] for row in rows if row["metric"] == name]))
        for name in MEDIANS
        if any(row["metric"] == name for row in rows)
    }


def clip_fraction(medians: Mapping[str, float]) -> float | None:
    """Return the median fraction of clipped log ratios; without these, of gradients; None for neither."""
    return medians.get("ratio_clip_fraction", medians.get("gradient_clip_fraction"))


def _about(study: Study, model: str, method: str, values: dict[str, Any]) -> dict[str, Any]:
    return {
        "study": study.name,
        "model": model,
        "method": method,
        "mode": study.tuning.mode,
        "hyperparameters": values,
    }


def _verdict(medians: dict[str, float]) -> str:
    """Return whether fewer than 10 % of the log ratios were clipped; without log ratios, of the gradients."""
    kinds = {"ratio_clip_fraction": "log ratios", "gradient_clip_fraction": "gradients"}
    found = [(medians[key], what) for key, what in kinds.items() if key in medians]
    if not found:
        return "not known: no iterations"
    fraction, what = found[0]
    holds = "passes" if fraction < CLIP_LIMIT else "fails"
    return f"{holds}: {fraction:.4f} of {what} clipped, the rule is fewer than {CLIP_LIMIT:g}"
