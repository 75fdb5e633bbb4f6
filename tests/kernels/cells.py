"""Cells for tests of the whole loop: small problems, hyperparameters with which chains move."""

from dataclasses import MISSING, fields, replace
from typing import Any

import numpy as np

from dpmc.algorithms import algorithm_class, hyperparameters
from dpmc.data.problem import Exact, Problem
from dpmc.models.circle import Circle
from dpmc.models.gaussian import Gaussian
from dpmc.models.mixture import Mixture
from dpmc.models.regression import LinearRegression, LogisticRegression
from dpmc.sampling import loop
from dpmc.sampling.loop import Cell
from kernels.problems import BANANA

WALK = {"proposal_sd": [0.6, 0.3]}
WIDE = {"proposal_sd": [0.6, 0.4]}
GUIDED = {"proposal_sd": [0.8, 0.4]}
PENALTY = {"tau": 0.2, "clip": 2.0}
BATCH = {"tau": 0.5, "batch_size": 20, "clip": 2.0}
MASS = {"mass": [1.3, 0.7], "steps": 3, "step_size": [0.25, 0.12]}
SHORT = {"mass": [1.3, 0.7], "step_size": [0.3, 0.15]}
NOISY = {"tau_l": 0.2, "tau_g": 0.3, "clip_l": 2.0, "clip_g": 2.0}
STEPS = {"batch_size": 20, "clip": 0.3}
FAST = {"epsilon": 20.0, "delta": 0.01, "batch_mean": 20.0, "most_rows": 75}
CORRECTED = {"variant": "corrected", "delta": 0.01, "clip": 2.0, **WALK}
HYPERPARAMETERS: dict[str, dict[str, Any]] = {
    "rwmh": WALK,
    "hmc": MASS,
    "dp-penalty": {**PENALTY, **WALK},
    "dp-penalty-guided": {**PENALTY, **GUIDED},
    "minibatch-penalty": {**BATCH, **WALK},
    "minibatch-penalty-guided": {**BATCH, **GUIDED, "sensitivity": "tight"},
    "dp-barker": {"batch_size": 20, "clip_factor": 0.99, **WALK},
    "dp-hmc": {**NOISY, **MASS},
    "dp-hmc reusing gradients": {**NOISY, **MASS, "reuse_gradients": True},
    "dp-hmc jittered": {**NOISY, **MASS, "step_size": [0.4, 0.2], "jitter": "halton"},
    "dp-mala": {**NOISY, **SHORT},
    "dp-mala reusing gradients": {**NOISY, **SHORT, "reuse_gradients": True},
    "dp-sgld": {**STEPS, "step_size": 1.5},
    "dp-sgld published": {**STEPS, "step_size": 1.5, "drift": "published"},
    "dp-sgnht": {**STEPS, "step_size": 6.0, "diffusion": 1.0},
    "dp-sgnht published": {**STEPS, "step_size": 6.0, "diffusion": 1.0, "order": "published"},
    "tuna-mh": {"batch_mean": 20.0, **WIDE},
    "dp-fast-mh": {**CORRECTED, "epsilon": 3.0, "batch_mean": 20.0, "most_rows": 48},
    "dp-fast-mh as coded": {**FAST, **WIDE, "variant": "as_coded"},
    "dp-fast-mh published": {**FAST, **WIDE},
    "dp-fast-mh-full": {**CORRECTED, "epsilon": 1.0},
    "noisy-statistics": {"clip": 5.0, "noise_multiplier": 0.5},
    "noisy-scores": {"noise_multiplier": 0.5},
}
#: What a person would pick instead, for comparison only.
PEERS: dict[str, dict[str, Any]] = {
    "adassp": {"clip_z": 2.0, "clip_y": 3.0},
    "objective-perturbation": {"clip_z": 2.5},
    "dp-gradient-descent": {"steps": 50, "step_size": 0.5, "clip": 3.0},
    "posterior-draws": {"clip": 3.0, "draws": 10},
    "public-rows": {"total": [20.0, -10.0], "public": 40},
}
#: Rows have bounds of their own.
MIXTURE = ("tuna-mh", "dp-fast-mh as coded", "dp-fast-mh published")
PROBLEMS = {
    **dict.fromkeys(MIXTURE, "mixture"),
    **dict.fromkeys(("noisy-scores", "adassp", "dp-gradient-descent"), "line"),
    "objective-perturbation": "logit",
    "posterior-draws": "Gaussian",
}
#: There is no acceptance test.
LANGEVIN = tuple(method for method in HYPERPARAMETERS if "sg" in method)


#: Of whole runs without clipping, so that nothing but chance separates a chain's means from the truth.
QUIET = {"tau": 0.005, "clip": 100.0, "tau_l": 0.005, "tau_g": 0.005, "clip_l": 100.0, "clip_g": 100.0}


def unclipped(method: str) -> dict[str, Any]:
    """The hyperparameters of a method with clip bounds out of reach, and noise to match."""
    values = HYPERPARAMETERS[method]
    return {**values, **{name: value for name, value in QUIET.items() if name in values}}


def read(algorithm: str, values: dict[str, Any], dimension: int = 2) -> Any:
    """An algorithm with these hyperparameters, checked as those of a file are."""
    return hyperparameters.read(algorithm_class(algorithm), values, "tests", dimension)


def some(algorithm: str) -> Any:
    """An algorithm with some hyperparameters, for a model of two parameters."""
    known = (HYPERPARAMETERS | PEERS).get(algorithm, {})
    of_budget = {"noise_multiplier": 0.5, "epsilon": 1.0, "delta": 1e-3}
    missing = {field.name for field in fields(algorithm_class(algorithm)) if field.default is MISSING}
    return read(algorithm, {**{key: of_budget[key] for key in missing & of_budget.keys()}, **known})


def problem_of(
    model: Any, rows: np.ndarray, temperature: float, generator: np.random.Generator, starts: int
) -> Problem:
    """A problem whose start points are exact posterior draws; of another model's, where it knows none."""
    known = model if hasattr(model, "posterior") else LinearRegression("y", ["x"], prior_sd=2.0)
    posterior = known.posterior(rows, temperature)
    return Problem(
        label="tests",
        model_id="tests",
        dataset="tests",
        model=model,
        rows=rows,
        n=len(rows),
        columns=rows.shape[1],
        temperature=temperature,
        starts=posterior.draws(generator, starts),
        true_theta=np.zeros(model.dimension),
        exact=replace(
            Exact.unknown(model.dimension),
            posterior_mean=posterior.mean(),
            posterior_covariance=posterior.covariance(),
        ),
    )


def problem(name: str = "banana", n: int = 60, starts: int = 12, temperature: float = 0.2) -> Problem:
    """A small problem of this model."""
    model: Any = {
        "banana": BANANA,
        "circle": Circle(0.02),
        "mixture": Mixture(2.0, 3.0),
        "line": LinearRegression("y", ["x"], prior_sd=2.0),
        "logit": LogisticRegression("y", ["x"], prior_sd=2.0),
        "Gaussian": Gaussian(np.array([[2.0, 0.7], [0.7, 1.0]]), 4.0, 4.0),
    }[name]
    generator = np.random.default_rng(7)
    rows = model.simulate(generator, np.array([0.5, -0.3]), n)
    made = problem_of(model, rows, temperature, generator, starts)
    return replace(made, label=name, model_id=name)


def problem_name(method: str) -> str:
    """The name of the problem of a method's cell."""
    return PROBLEMS.get(method, "banana")


def cell(method: str, on: Problem | None = None, **changes: Any) -> Cell[Problem]:
    """A cell of 40 iterations without a budget; `changes` are fields of Cell or hyperparameters."""
    # A posterior given noisy scores is that of all rows.
    whole = problem_name(method) in ("line", "logit")
    on = on or problem(problem_name(method), temperature=1.0 if whole else 0.2)
    chosen = {key: changes.pop(key) for key in list(changes) if key in Cell.__dataclass_fields__}
    algorithm = (
        some(method) if method in PEERS else read(method.split()[0], {**HYPERPARAMETERS[method], **changes})
    )
    accountant = "tight"
    if algorithm.batch_size:
        accountant = "replace-pld" if method in LANGEVIN else "rdp"
    # The golden draws are keyed by names, as those of studies on public rows.
    usual = {"epsilon": "inf", "delta": 1e-3, "accountant": accountant, "iterations": 40, "streams": "names"}
    return loop.Cell(problem=on, method=method, algorithm=algorithm, **{**usual, **chosen})
