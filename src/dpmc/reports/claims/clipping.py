"""Numbers of a clipping experiment: samplers without privacy under growing clip bounds.

A case is an algorithm on a model of the experiment; `model` limits them to models with this id.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dpmc.reports.claims.kinds import Cases, fraction, reduced
from dpmc.reports.claims.table import Cells, Floats, Table
from dpmc.studies import pinned_hyperparameters

CLIPPED, DISTANCE, CONVERGENCE = "ratio_clip_fraction", "mmd", "rhat_max"


def increase(table: Table, cells: Cells) -> Floats:
    """Return the median MMD at each clip bound less that at the largest."""
    distance = table.column("median", cells, DISTANCE)
    return distance - distance[-1]


def at_largest_bound(table: Table, metric: str, model: str = "") -> Cases:
    """Yield a metric's median at the largest clip bound."""
    for name, _, cells in table.experiments(model):
        yield name, table.column("median", cells, metric)[-1]


def most_increase(
    table: Table, model: str = "", least: float = 0.0, last: int = 0, clipped: float = 2.0
) -> Cases:
    """Yield the largest increase of the median MMD over that at the largest bound, among some bounds.

    These are the `last` bounds below the largest (0: all) of at least `least` with a median fraction clipped
    below `clipped`.
    """
    for name, bounds, cells in table.experiments(model):
        chosen = (bounds >= least) & (table.column("median", cells, CLIPPED) < clipped)
        yield name, reduced("largest", np.where(chosen, increase(table, cells), np.nan)[:-1][-last:])


def late_bounds(table: Table, limit: float, model: str = "") -> Cases:
    """Yield the share of bounds without convergence in the lower half, minus that in the upper half.

    Chains that never moved have no R-hat and count as not converged.
    """
    for name, _, cells in table.experiments(model):
        ran = ~np.isnan(table.column("median", cells, "iterations"))
        rhat = table.column("median", cells, CONVERGENCE)[ran]
        late, half = ~(rhat < limit), len(rhat) // 2
        known = half > 0 and not np.isnan(rhat).all()
        yield name, fraction(late[:half]) - fraction(late[-half:]) if known else np.nan


def chosen_bound(table: Table, methods: Mapping[str, tuple[str, str]]) -> Cases:
    """Yield the increase of the MMD at the largest bound not above that of a method of the comparison.

    `methods`: algorithm -> method of the comparison and the name of its clip bound. NaN if the study does not
    have the comparison.
    """
    study = table.study
    for name, bounds, cells in table.experiments():
        model = study.models[cells.models[0]].model
        method, key = methods[name.partition(",")[0]]
        if method not in study.methods or model not in study.models:
            yield f"{method}, {model}", np.nan
            continue
        chosen = float(pinned_hyperparameters(study, model, method).values[key])
        below = increase(table, cells)[bounds <= chosen]
        yield f"{method}, {model}, bound {chosen:g}", below[-1] if len(below) else np.nan


def in_gap(table: Table, model: str, low: float, high: float) -> Cases:
    """Yield the share of the model's runs whose fraction clipped lies between two limits."""
    cells = [runs for _, _, part in table.experiments(model) for runs in table.runs(part, CLIPPED)]
    yield model, fraction([low < value < high for runs in cells for value in runs])


def stray_bounds(table: Table, far: float, model: str = "", last: int = 0) -> Cases:
    """Yield the share of the `last` bounds (0: all) with a run `far` above the largest bound's median."""
    for name, _, cells in table.experiments(model):
        largest = table.column("median", cells, DISTANCE)[-1]
        runs = table.runs(cells, DISTANCE)[-last:]
        known = all(map(len, runs)) and not np.isnan(largest)
        yield name, fraction([max(values) > largest + far for values in runs]) if known else np.nan


def over_free(table: Table, cells: Cells, free: str = "", less: bool = False) -> Cases:
    """Yield the ratio of the least median MMD of private methods to that without privacy or clipping.

    `less`: the difference instead of the ratio. `free`: the model id of the samplers without privacy;
    default: the same model.
    """
    for model, part in cells.each("models"):
        experiments = table.experiments(free or model)
        public = reduced("smallest", [table.column("median", c, DISTANCE)[-1] for _, _, c in experiments])
        private = reduced("smallest", table.column("median", part, DISTANCE))
        yield model, np.nan if not public > 0.0 else private - public if less else private / public
