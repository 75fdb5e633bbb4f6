"""Cells for tests of the whole loop: small problems, hyperparameters with which chains move."""

from typing import Any

import numpy as np

from dpmc.algorithms import algorithm_class
from dpmc.algorithms.common import Settings
from dpmc.models.banana import Banana
from dpmc.models.circle import Circle
from dpmc.models.mixture import Mixture
from dpmc.problem import Problem
from dpmc.sampling import Cell

MASS = {"mass": [1.3, 0.7], "steps": 3, "step_size": [0.25, 0.12]}
HYPERPARAMETERS: dict[str, dict[str, Any]] = {
    "rwmh": {"proposal_sd": [0.6, 0.3]},
    "hmc": dict(MASS),
    "dp-penalty": {"tau": 0.2, "clip": 2.0, "proposal_sd": [0.6, 0.3]},
    "dp-penalty-guided": {"tau": 0.2, "clip": 2.0, "proposal_sd": [0.8, 0.4]},
    "minibatch-penalty": {"tau": 0.5, "batch_size": 20, "clip": 2.0, "proposal_sd": [0.6, 0.3]},
    "minibatch-penalty-guided": {
        "tau": 0.5,
        "batch_size": 20,
        "clip": 2.0,
        "sensitivity": "tight",
        "proposal_sd": [0.8, 0.4],
    },
    "dp-barker": {"batch_size": 20, "clip_factor": 0.99, "proposal_sd": [0.6, 0.3]},
    "dp-hmc": {"tau_l": 0.2, "tau_g": 0.3, "clip_l": 2.0, "clip_g": 2.0, **MASS},
    "dp-hmc reusing gradients": {
        "tau_l": 0.2,
        "tau_g": 0.3,
        "clip_l": 2.0,
        "clip_g": 2.0,
        "reuse_gradients": True,
        **MASS,
    },
    "tuna-mh": {"batch_mean": 20.0, "proposal_sd": [0.6, 0.4]},
    "dp-fast-mh": {
        "variant": "corrected",
        "epsilon": 3.0,
        "delta": 0.01,
        "batch_mean": 20.0,
        "most_rows": 48,
        "clip": 2.0,
        "proposal_sd": [0.6, 0.3],
    },
    "dp-fast-mh as coded": {
        "variant": "as_coded",
        "epsilon": 20.0,
        "delta": 0.01,
        "batch_mean": 20.0,
        "most_rows": 75,
        "proposal_sd": [0.6, 0.4],
    },
    "dp-fast-mh published": {
        "epsilon": 20.0,
        "delta": 0.01,
        "batch_mean": 20.0,
        "most_rows": 75,
        "proposal_sd": [0.6, 0.4],
    },
    "dp-fast-mh-full": {
        "variant": "corrected",
        "epsilon": 1.0,
        "delta": 0.01,
        "clip": 2.0,
        "proposal_sd": [0.6, 0.3],
    },
}
#: Rows have bounds of their own.
MIXTURE = ("tuna-mh", "dp-fast-mh as coded", "dp-fast-mh published")


def problem(name: str = "banana", n: int = 60, starts: int = 12, temperature: float = 0.2) -> Problem:
    """A problem whose start points are exact posterior draws."""
    model: Any = Banana(0.4, 0.3, -0.2, np.array([2.0, 0.5]), 4.0)
    if name != "banana":
        model = Circle(0.02) if name == "circle" else Mixture(2.0, 3.0)
    generator = np.random.default_rng(7)
    rows = model.simulate(generator, np.array([0.5, -0.3]), n)
    posterior = model.posterior(rows, temperature)
    return Problem(
        label=name,
        model_id=name,
        dataset="tests",
        model=model,
        rows=rows,
        temperature=temperature,
        starts=posterior.draws(generator, starts),
        true_theta=np.zeros(2),
        reference=np.empty((0, 2)),
        baselines=np.empty((0, 0, 2)),
        posterior_mean=posterior.mean(),
        posterior_covariance=posterior.covariance(),
    )


def cell(method: str, on: Problem | None = None, **changes: Any) -> Cell:
    """A cell of 40 iterations without a budget; `changes` are fields of Cell or hyperparameters."""
    on = on or problem("mixture" if method in MIXTURE else "banana")
    fields = {key: changes.pop(key) for key in list(changes) if key in Cell.__dataclass_fields__}
    values = {**HYPERPARAMETERS[method], **changes}
    algorithm = algorithm_class(method.split()[0]).read(Settings(values, 2, "tests"))
    settings = {
        "epsilon": "inf",
        "delta": 1e-3,
        "accountant": "rdp" if algorithm.batch_size else "tight",
        "iterations": 40,
        **fields,
    }
    return Cell(problem=on, method=method, algorithm=algorithm, **settings)
