"""Hyperparameters of a cell: the pinned ones, tried on tuning data and written down with their verdict."""

from typing import Any

import numpy as np

from dpmc.metrics.cell import cell_metrics
from dpmc.problem import Problem
from dpmc.sampling import Cell, Progress, sample
from dpmc.storage import ChainFile
from dpmc.studies import Study

CLIP_LIMIT = 0.10  #: "fewer than 10 % clipped" (Section 6.3)


def pinned(
    study: Study, model: str, method: str, problem: Problem, progress: Progress | None = None
) -> dict[str, Any]:
    """Run the pinned setting on tuning data at the model's tuning ε; return it with what came out.

    The verdict on clipping is recorded, not enforced: some published settings fail it.

    Raises DpmcError for missing or wrong hyperparameters.
    """
    values, source = study.published_hyperparameters(model, method)
    algorithm = study.algorithm(method, values, problem.dimension, source)
    spec, how = study.model(model), study.method(method)
    result = {
        "study": study.name,
        "model": model,
        "method": method,
        "mode": "pinned",
        "hyperparameters": values,
    }
    if spec.tuning_epsilon == "inf":
        return {**result, "tried": "not tried: without a budget there is nothing to tune against"}
    cell = Cell(
        problem=problem,
        method=method,
        algorithm=algorithm,
        epsilon=spec.tuning_epsilon,
        delta=study.delta_for(problem.n),
        accountant=how.accountant,
        chains=study.chains,
        iterations=how.iterations,
    )
    finished = sample(cell, list(range(study.tuning_seeds)), progress=progress)
    rows = cell_metrics([ChainFile.of(chains, {"study": study.name}) for chains in finished], problem)
    medians = {
        name: float(np.median([row["value"] for row in rows if row["metric"] == name]))
        for name in ("iterations", "mmd", "acceptance_rate", "ratio_clip_fraction")
        if any(row["metric"] == name for row in rows)
    }
    return {
        **result,
        "tried": {
            "data": problem.dataset,
            "epsilon": spec.tuning_epsilon,
            "seeds": study.tuning_seeds,
            "medians": medians,
            "clipping": _verdict(medians),
            "status": sorted({str(row["value"]) for row in rows if row["metric"] == "status"}),
        },
    }


def _verdict(medians: dict[str, float]) -> str:
    """Whether fewer than 10 % of the log ratios were clipped."""
    if "ratio_clip_fraction" not in medians:
        return "not known: no iterations"
    fraction = medians["ratio_clip_fraction"]
    holds = "passes" if fraction < CLIP_LIMIT else "fails"
    return f"{holds}: {fraction:.4f} of log ratios clipped, the rule is fewer than {CLIP_LIMIT:g}"
