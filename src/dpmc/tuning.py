"""Hyperparameters of a cell: the pinned ones, tried on tuning data and written down with their verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpmc.models import definition
from dpmc.studies import Study

if TYPE_CHECKING:
    from dpmc.problem import Problem
    from dpmc.sampling import Progress

CLIP_LIMIT = 0.10  #: "fewer than 10 % clipped" (Section 6.3)


def untried(study: Study, model: str, method: str) -> dict[str, Any]:
    """The pinned setting of a model that runs without a budget: nothing to tune against.

    Raises DpmcError for missing or wrong hyperparameters.
    """
    values, source = study.published_hyperparameters(model, method)
    study.algorithm(method, values, len(definition(study.model(model).model).true_theta), source)
    why = "not tried: without a budget there is nothing to tune against"
    return {**_about(study, model, method, values), "tried": why}


def pinned(
    study: Study, model: str, method: str, problem: Problem, progress: Progress | None = None
) -> dict[str, Any]:
    """Run the pinned setting on tuning data at the model's tuning ε; return it with what came out.

    The verdict on clipping is recorded, not enforced: some published settings fail it.

    Raises DpmcError for missing or wrong hyperparameters.
    """
    from dpmc.metrics.cell import cell_metrics
    from dpmc.sampling import Cell, sample
    from dpmc.storage import ChainFile

    values, source = study.published_hyperparameters(model, method)
    algorithm = study.algorithm(method, values, problem.dimension, source)
    spec, how = study.model(model), study.method(method)
    cell = Cell(
        problem=problem,
        method=method,
        algorithm=algorithm,
        epsilon=spec.tuning_epsilon,
        delta=study.delta_for(problem.n),
        accountant=how.accountant,
        chains=study.chains,
        iterations=how.iterations,
        most_iterations=how.most_iterations,
        most_draws=how.most_draws,
    )
    finished = sample(cell, list(range(study.tuning_seeds)), progress=progress)
    rows = cell_metrics([ChainFile.of(chains, {"study": study.name}) for chains in finished], problem)
    medians = {
        name: float(np.median([row["value"] for row in rows if row["metric"] == name]))
        for name in ("iterations", "mmd", "acceptance_rate", "ratio_clip_fraction", "gradient_clip_fraction")
        if any(row["metric"] == name for row in rows)
    }
    return {
        **_about(study, model, method, values),
        "tried": {
            "data": problem.dataset,
            "epsilon": spec.tuning_epsilon,
            "seeds": study.tuning_seeds,
            "medians": medians,
            "clipping": _verdict(medians),
            "status": sorted({str(row["value"]) for row in rows if row["metric"] == "status"}),
        },
    }


def _about(study: Study, model: str, method: str, values: dict[str, Any]) -> dict[str, Any]:
    return {
        "study": study.name,
        "model": model,
        "method": method,
        "mode": "pinned",
        "hyperparameters": values,
    }


def _verdict(medians: dict[str, float]) -> str:
    """Whether fewer than 10 % of the log ratios were clipped; of the gradients, if no ratio is asked for."""
    kinds = {"ratio_clip_fraction": "log ratios", "gradient_clip_fraction": "gradients"}
    found = [(medians[key], what) for key, what in kinds.items() if key in medians]
    if not found:
        return "not known: no iterations"
    fraction, what = found[0]
    holds = "passes" if fraction < CLIP_LIMIT else "fails"
    return f"{holds}: {fraction:.4f} of {what} clipped, the rule is fewer than {CLIP_LIMIT:g}"
