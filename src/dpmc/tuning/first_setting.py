"""The start of a search of hyperparameters: reference draws and a first setting.

Everything here uses rows without privacy. It is for simulated and public rows only.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from dpmc.algorithms import ALGORITHMS, algorithm_class
from dpmc.algorithms.hyperparameters import read, searched
from dpmc.common.errors import DpmcError
from dpmc.common.streams import stream
from dpmc.data.problem import Problem
from dpmc.evaluators.calls import gradient, log_likelihood
from dpmc.models.gaussian import GaussianPosterior
from dpmc.models.regression import Regression
from dpmc.sampling.cell import Cell
from dpmc.sampling.loop import sample

WALK_CHAINS, WALK_STEPS = 4, 5000  #: without privacy: chains, and their iterations
WALK_DRAWS = 1000  #: that are kept of them
CLIP_ROWS = 2000  #: at most, from which clip bounds are computed
RATIOS_KEPT = 0.98  #: share of the log ratios that the first clip bound does not clip
MOST_NOISE_SD = 1.5  #: largest sd of a log ratio's noise: above it almost no proposal is accepted


def scales(problem: Problem) -> np.ndarray:
    """Return the standard deviation (d,) of each parameter given the others, near the posterior mode."""
    from scipy.optimize import minimize

    def energy(theta: np.ndarray) -> float:
        with np.errstate(all="ignore"):
            total = problem.temperature * log_likelihood(problem.model, theta, problem.rows).sum()
            # Where the model is undefined, a large finite number: differences of infinities are NaN.
            value = -float(total + problem.model.log_prior(theta))
        return value if math.isfinite(value) else 1e300

    centre = np.asarray(getattr(problem.model, "start", problem.true_theta), dtype=float)
    mode = minimize(energy, centre, method="BFGS").x
    least, sd = energy(mode), np.full(problem.dimension, 1e-2)
    for i, axis in enumerate(np.eye(problem.dimension)):
        for _ in range(40):  # until the energy rises by about ½, as at one sd of a normal distribution
            rise = 0.5 * (energy(mode + sd[i] * axis) + energy(mode - sd[i] * axis)) - least
            factor = 10.0 if rise <= 0.0 else float(np.clip(math.sqrt(0.5 / rise), 0.1, 10.0))
            sd[i] *= factor
            if 0.8 < factor < 1.25:
                break
    return sd


def reference_draws(problem: Problem, sd: np.ndarray) -> np.ndarray:
    """Return draws (WALK_DRAWS, d) of a random walk without privacy, or the model's exact draws."""
    if len(problem.exact.reference):
        return problem.exact.reference
    # 2.4/√d: the best scale for normal targets of many dimensions (Roberts, Gelman and Gilks 1997).
    values = {"proposal_sd": 2.4 / math.sqrt(problem.dimension) * sd}
    walk = read(algorithm_class("rwmh"), values, "reference draws", problem.dimension)
    # δ has no effect without a budget.
    cell = Cell(problem, "rwmh", walk, "inf", 0.5, "tight", WALK_CHAINS, WALK_STEPS, streams="names")
    (chains,) = sample(cell, [0])
    late = chains.draws[:, WALK_STEPS // 2 :].reshape(-1, problem.dimension)
    return late[:: len(late) // WALK_DRAWS][:WALK_DRAWS]


def without_privacy(problem: Problem, generator: np.random.Generator, size: int) -> np.ndarray:
    """Return draws (m, d) of the posterior without privacy.

    Of a regression `size` normal ones, by the information at θ; else exact draws, or those of a random walk.
    """
    model = getattr(problem.model, "given", problem.model)
    if not isinstance(model, Regression):
        exact = problem.exact.reference
        return exact if len(exact) else reference_draws(problem, scales(problem))
    scores = gradient(model, problem.true_theta, problem.rows)
    # A row with weight w counts as w rows, whose scores are w times as large as one.
    scores = scores / np.reshape(np.sqrt(model.design.weight(problem.rows)), (-1, 1))
    precision = problem.temperature * scores.T @ scores + np.diag(model.prior_sd**-2.0)
    posterior = GaussianPosterior(problem.true_theta, np.linalg.inv(precision))
    return posterior.draws(generator, size)


def first_setting(
    algorithm: str,
    problem: Problem,
    given: dict[str, Any],
    make: Callable[[dict[str, Any]], Cell[Problem]],
    kept: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return hyperparameters to start from: `given`, else from public rows, their posterior and the budget.

    Those `kept` have these values. `make` returns the cell with some hyperparameters. Sets the reference
    draws of the problem if the model has no exact ones. Raises DpmcError for an algorithm without
    `first_iterations`, and none given.
    """
    sd = scales(problem)
    problem.exact = replace(problem.exact, reference=reference_draws(problem, sd))
    if given:
        return given
    cls = algorithm_class(algorithm)
    if not cls.first_iterations:
        known = ", ".join(name for name in ALGORITHMS if algorithm_class(name).first_iterations)
        needed = f"{algorithm} needs some to begin with; there are first ones for {known}"
        raise DpmcError(f"hyperparameters: {needed}")
    step = 2.4 / math.sqrt(problem.dimension) * sd
    ratio_clip, gradient_clip = _clip_bounds(problem, step, cls.uses_gradients)
    if cls.uses_gradients:
        fixed = {"clip_l": ratio_clip, "clip_g": gradient_clip, "mass": _rounded(1.0 / sd**2)}
        steps = {"steps": 5} if "steps" in searched(cls) else {}
        lengths: dict[str, Any] = {"step_size": 0.4 if steps else 1.0}
        distance = lengths["step_size"] * steps.get("steps", 1) * math.sqrt((sd**2).sum())
        taus = {"tau_l": 1.0, "tau_g": 3.0}
    else:
        fixed, steps, lengths, taus = {"clip": ratio_clip}, {}, {"proposal_sd": _rounded(step)}, {"tau": 1.0}
        distance = math.sqrt((step**2).sum())
    scale, kept = 1.0, kept or {}
    for _ in range(3):  # iterations are proportional to the squared noise multiplier
        taus = {key: float(f"{scale * tau:.3g}") for key, tau in taus.items()}
        cell = make({**fixed, **steps, **lengths, **taus, **kept})
        scale = math.sqrt(cls.first_iterations / (cell.chains * max(cell.budget_iterations or 0, 1)))
    decided = {**fixed, **taus, **kept}
    tau = decided.get("tau", decided.get("tau_l", 1.0))
    ratio_clip = decided.get("clip", decided.get("clip_l", ratio_clip))
    noise = 2.0 * problem.temperature * tau * math.sqrt(problem.n) * ratio_clip * distance
    # Above `MOST_NOISE_SD` a shorter step is better, since almost no proposal would be accepted.
    lengths = {
        key: _rounded(min(1.0, MOST_NOISE_SD / noise) * np.asarray(value)) for key, value in lengths.items()
    }
    return {**taus, **steps, **lengths, **fixed, **kept}


def _clip_bounds(problem: Problem, step: np.ndarray, gradients: bool) -> tuple[float, float]:
    """Return bounds of log ratios per unit distance, and of gradients, that clip few rows."""
    generator, rows, model = stream("clip bounds", problem.label), problem.rows[:CLIP_ROWS], problem.model
    slopes, norms = [], []
    for theta in generator.choice(problem.exact.reference, 5):
        move = step * generator.standard_normal(problem.dimension)
        ratio = log_likelihood(model, theta + move, rows) - log_likelihood(model, theta, rows)
        slopes.append(np.abs(ratio) / np.sqrt((move**2).sum()))
        if gradients:
            norms.append(np.sqrt((gradient(model, theta, rows) ** 2).sum(axis=1)))
    bounds = [np.nanquantile(np.stack(values), RATIOS_KEPT) if values else 0.0 for values in (slopes, norms)]
    return float(f"{bounds[0]:.3g}"), float(f"{bounds[1]:.3g}")


def _rounded(values: np.ndarray) -> Any:
    """Round to three significant digits; return Python numbers."""
    return np.vectorize(lambda value: float(f"{value:.3g}"))(values).tolist()
