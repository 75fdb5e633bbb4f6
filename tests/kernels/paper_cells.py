"""Cells of the DP-HMC paper's samplers for tests of the whole loop; see `kernels.cells` for the others."""

from typing import Any

from dpmc.algorithms import algorithm_class
from dpmc.algorithms.common import Settings
from dpmc.problem import Problem
from dpmc.sampling import Cell
from kernels import cells

LEAP = {"tau_l": 0.2, "tau_g": 0.3, "clip_l": 2.0, "clip_g": 2.0, "mass": [1.3, 0.7]}
HYPERPARAMETERS: dict[str, dict[str, Any]] = {
    "dp-sgld": {"batch_size": 20, "clip": 0.3, "step_size": 1.5},
    "dp-sgld published": {"batch_size": 20, "clip": 0.3, "step_size": 1.5, "drift": "published"},
    "dp-sgnht": {"batch_size": 20, "clip": 0.3, "step_size": 6.0, "diffusion": 1.0},
    "dp-sgnht published": {
        "batch_size": 20,
        "clip": 0.3,
        "step_size": 6.0,
        "diffusion": 1.0,
        "order": "published",
    },
    "dp-mala": {**LEAP, "step_size": [0.3, 0.15]},
    "dp-hmc jittered": {**LEAP, "steps": 3, "step_size": [0.4, 0.2], "jitter": "halton"},
}


def cell(method: str, on: Problem | None = None, **changes: Any) -> Cell:
    """A cell of 40 iterations without a budget; `changes` are fields of Cell or hyperparameters."""
    fields = {key: changes.pop(key) for key in list(changes) if key in Cell.__dataclass_fields__}
    settings = Settings({**HYPERPARAMETERS[method], **changes}, 2, "tests")
    algorithm = algorithm_class(method.split()[0]).read(settings)
    settings.finish()
    usual = {
        "epsilon": "inf",
        "delta": 1e-3,
        "accountant": "replace-pld" if algorithm.batch_size else "tight",
        "iterations": 40,
    }
    return Cell(problem=on or cells.problem(), method=method, algorithm=algorithm, **{**usual, **fields})
