"""Pinned hyperparameters of a cell: trial runs on tuning data, and their results."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpmc import studies
from dpmc.common.progress import Progress
from dpmc.data.problem import Problem
from dpmc.metrics.table import CLIP_LIMIT, RATIO_CLIPPED, Row

MEDIANS = ("iterations", "mmd", "acceptance_rate", RATIO_CLIPPED, "gradient_clip_fraction")


def pinned(
    study: studies.Study, model: str, method: str, problem: Problem | None, progress: Progress | None = None
) -> dict[str, Any]:
    """Return a cell's pinned setting, with results on tuning data if there is a `problem`; or DpmcError."""
    given = studies.pinned_hyperparameters(study, model, method)
    about: dict[str, Any] = {"study": study.name, "model": model, "method": method}
    about |= {"mode": study.tuning.mode, "hyperparameters": given.values}
    if problem is None:
        dimension = len(studies.definition_of(study, model).true_theta)
        n, epsilon = studies.number_of_rows(study, model), study.epsilons(model, method)[0]
        # For its errors only: wrong hyperparameters are reported although nothing runs.
        studies.build_algorithm(study, method, given, dimension, epsilon, n)
        why = "without a budget there is nothing to tune against"
        if study.tuning.mode == "none":
            why = "the study takes its settings as they are"
        return {**about, "tried": f"not tried: {why}"}

    from dpmc.metrics.cell import seed_metrics
    from dpmc.sampling.loop import sample  # numba is slow to import

    cell = studies.make_cell(study, problem, method, study.model(model).tuning_epsilon, given)
    runs = sample(cell, list(range(study.tuning.seeds)), progress=progress)
    rows = seed_metrics(runs, problem)
    medians = medians_of(rows)
    fraction, clipping = clip_fraction(medians), "not known: no iterations"
    if fraction is not None:
        what = "log ratios" if RATIO_CLIPPED in medians else "gradients"
        verdict = "passes" if fraction < CLIP_LIMIT else "fails"
        clipping = f"{verdict}: {fraction:.4f} of {what} clipped, the rule is fewer than {CLIP_LIMIT:g}"
    tried = {
        "data": problem.dataset,
        "epsilon": cell.epsilon,
        "seeds": study.tuning.seeds,
        "medians": medians,
        "clipping": clipping,
        "status": sorted({str(row["value"]) for row in rows if row["metric"] == "status"}),
    }
    return {**about, "tried": tried}


def medians_of(rows: list[Row]) -> dict[str, float]:
    """Return the medians over seeds of the metrics `MEDIANS`; `rows` as of `dpmc.metrics.cell`."""
    values = {name: [float(row["value"]) for row in rows if row["metric"] == name] for name in MEDIANS}
    return {name: float(np.median(numbers)) for name, numbers in values.items() if numbers}


def clip_fraction(medians: Mapping[str, float]) -> float | None:
    """Return the median fraction of clipped log ratios; without these, of gradients; None for neither."""
    return medians.get(RATIO_CLIPPED, medians.get("gradient_clip_fraction"))
