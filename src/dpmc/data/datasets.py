"""Data sets: the thesis's data regenerated, fresh data from our seeds, pictures, and users' files.

A data set is named `published`, `fresh-<r>` (replicate r = 0, 1, …), `tuning` (that of searches, which
refuse to use the data of an evaluation), by two classes of pictures (`fashion-79`, …: `images.py`), or by
the stem of a user's file.
"""

import math
import re
from dataclasses import replace
from typing import Any, cast

import numpy as np

from dpmc import models
from dpmc.base import SimulatingModel
from dpmc.common.errors import DpmcError
from dpmc.common.streams import stream
from dpmc.common.threads import one_blas_thread
from dpmc.common.values import MOST_STARTS, array
from dpmc.data import histogram, images
from dpmc.data.problem import Exact, Problem, Setting
from dpmc.evaluators import calls
from dpmc.models import Definition, published
from dpmc.models.trial import LEAST_DUMMIES

REFERENCE_DRAWS = 1000
BASELINES = 10
HISTOGRAM_DRAWS = 200_000  # exact draws of the histogram with which the symmetric KL divergence compares
DATA_VERSION = 1  # raised whenever a change alters generated data
DATASET_PATTERN = rf"published|tuning|fresh-[0-9]+|{images.PATTERN}"  # what a study may name


@one_blas_thread()
def build(
    label: str,
    model_id: str,
    dataset: str,
    n: int | None = None,
    starts: int = 20,
    start: str | float = "perturbed",
    definition: Definition | None = None,
) -> Problem:
    """Return the problem of a model and a generated data set; DpmcError for one that it cannot have.

    `label`, the model's name in the study, keys the random streams together with `dataset`. `n` is the number
    of rows, None for the catalogue's; of pictures the first n, None for all. `start` is "perturbed" (Section
    5.2), or as in `move_starts`. `definition`: of a model given in Python.
    """
    definition = definition or models.definition(model_id)
    pictures = images.image_set(dataset)
    if pictures is None:
        if not re.fullmatch(DATASET_PATTERN, dataset):
            known = ", ".join(images.NAMES)
            raise DpmcError(f"data: {dataset!r} must be published, tuning, fresh-<number>, or one of {known}")
        rows = _generated_rows(model_id, definition, n or definition.n, label, dataset)
        problem = _problem(label, model_id, dataset, definition, rows, starts)
    else:
        norm = getattr(definition.model, "norm", pictures.norm)
        if pictures.norm > norm:
            raise DpmcError(
                f"data: {dataset}: rows of norms up to {pictures.norm:g}, {model_id} takes {norm:g}"
            )
        train, test = images.build_rows(pictures)
        if n is not None and n > len(train):
            raise DpmcError(f"n: {n} is more than the {len(train)} rows of {dataset}")
        problem = _problem(label, model_id, dataset, definition, train[:n], starts)
        problem.test_rows = test
    move_starts(problem, start)
    problem.check(f"data {dataset} of {label}")
    return problem


def tuning_set(dataset: str) -> str:
    """Return the name of the tuning data of a data set, which never has its rows."""
    return f"{dataset}{images.TUNING}" if images.image_set(dataset) else "tuning"


def is_public(name: str) -> bool:
    """Return whether a data set of this name is generated or made of published pictures, hence public."""
    return re.fullmatch(rf"(?:{DATASET_PATTERN})(?:{images.TUNING})?", name) is not None


@one_blas_thread()
def from_rows(
    label: str,
    model_id: str,
    name: str,
    rows: np.ndarray,
    starts: int = 20,
    source: str = "",
    definition: Definition | None = None,
) -> Problem:
    """Return the problem of a model and a user's own rows (n, d_x), which may be private: without posterior.

    `source` is the name of the rows in messages. Raises DpmcError if `name` is that of a data set of dpmc,
    since private rows would then be treated as public.
    """
    if is_public(name):
        raise DpmcError(f"data: {name!r} is the name of a data set that dpmc makes; call your own another")
    problem = _problem(label, model_id, name, definition or models.definition(model_id), rows, starts)
    problem.check(source or f"data {name} of {label}")
    return problem


@one_blas_thread()
def public_setting(
    label: str,
    model_id: str,
    shape: tuple[int, int],
    starts: int = 20,
    definition: Definition | None = None,
    source: tuple[str, ...] = (),
) -> Setting:
    """Return the setting of private rows (n, columns) read from `source`; DpmcError for other columns."""
    definition = definition or models.definition(model_id)
    public = _public_draws(model_id, definition, shape[0])
    points = _starts(definition, ("own rows",), public, starts)
    setting = Setting(**_public(label, model_id, "release", definition, shape), starts=points, source=source)
    setting.check("release")
    return setting


def _generated_rows(model_id: str, definition: Definition, n: int, label: str, dataset: str) -> np.ndarray:
    """Return published rows, or rows that are simulated for this data set."""
    model = definition.model
    if dataset == "published" and definition.published_rows:
        return definition.published_rows(n)
    if dataset == "published":
        raise DpmcError(f"data: published data exist for the catalogue's models only, not for {model_id}")
    if not hasattr(model, "simulate"):
        other = "give public rows, or say tuning: {mode: none}"
        hint = other if dataset == "tuning" else "give its rows as a file"
        raise DpmcError(f"model: {model_id} has no simulate(generator, theta, n): {hint}")
    if n <= 0:
        raise DpmcError(f"n: {n} must be at least 1; {model_id} names no number of rows of its own")
    return _simulated_rows(definition, model_id, stream("data", dataset, label), n)


def _simulated_rows(
    definition: Definition, model_id: str, generator: np.random.Generator, n: int
) -> np.ndarray:
    """Return rows (n, d_x) simulated by a model at its true θ; raise DpmcError if they are not valid."""
    theta = np.array(definition.true_theta)
    simulated = cast(SimulatingModel, definition.model).simulate(generator, theta, n)
    rows: np.ndarray = array(simulated, (n, None), f"model: {model_id}: simulate: rows")
    if ":" in model_id:  # a user's model: check that its likelihood accepts its simulated rows
        calls.log_likelihood(definition.model, theta, rows[:LEAST_DUMMIES])
    return rows


def _public(
    label: str, model_id: str, dataset: str, definition: Definition, shape: tuple[int, ...]
) -> dict[str, Any]:
    """Return what a setting has besides its start points, by the names of its fields."""
    return {
        "label": label,
        "model_id": model_id,
        "dataset": dataset,
        "model": definition.model,
        "n": shape[0],
        "columns": shape[1],
        "temperature": definition.temperature(shape[0]),
        "true_theta": np.array(definition.true_theta),
    }


def _problem(
    label: str, model_id: str, dataset: str, definition: Definition, rows: np.ndarray, starts: int
) -> Problem:
    """Return the problem of rows, not checked yet, with start points; of public rows also the posterior."""
    rows = np.ascontiguousarray(rows, dtype=float)
    if rows.ndim != 2:
        raise DpmcError(f"data {dataset} of {label}: rows: shape {rows.shape} must be (n, columns)")
    d = len(definition.true_theta)
    public = _public(label, model_id, dataset, definition, rows.shape)
    problem = Problem(**public, rows=rows, starts=np.empty((0, d)), exact=Exact.unknown(d))
    if is_public(dataset):
        problem.exact = exact_posterior(problem)
    add_starts(problem, definition, starts)
    return problem


@one_blas_thread()
def add_starts(problem: Problem, definition: Definition, number: int) -> None:
    """Give a problem `number` start points, if it has fewer; the first ones do not depend on the number.

    A single one, of a problem made with `start="true"`, stays the start of all chains.
    """
    if len(problem.starts) == 1 or len(problem.starts) >= number:
        return
    names: tuple[str, ...] = (problem.dataset, problem.label)
    draws = problem.exact.reference
    if not is_public(problem.dataset):
        # No ε covers start points, so they must not depend on private rows, nor on the name of these.
        names, draws = ("own rows",), _public_draws(problem.model_id, definition, problem.n)
    problem.starts = _starts(definition, names, draws, number)


def move_starts(problem: Problem, start: str | float) -> None:
    """Put all start points at the true θ ("true"), or so many times as far from it as they are."""
    truth = problem.true_theta
    if start == "true":
        problem.starts = truth[None]
    elif start != "perturbed":
        problem.starts = truth + float(start) * (problem.starts - truth)


def _public_draws(model_id: str, definition: Definition, n: int) -> np.ndarray:
    """Return posterior draws (draws, d) of n simulated rows, which set the spread of starts; or (0, d)."""
    model, d = definition.model, len(definition.true_theta)
    if not (hasattr(model, "simulate") and hasattr(model, "posterior")):
        return np.empty((0, d))
    others = _simulated_rows(definition, model_id, stream("rows for start points"), n)
    posterior = model.posterior(others, definition.temperature(n))
    draws = posterior.draws(stream("posterior for start points"), REFERENCE_DRAWS)
    return array(draws, (REFERENCE_DRAWS, d), f"model: {model_id}: posterior: draws")


@one_blas_thread()
@calls.without_warnings()
def exact_posterior(problem: Problem) -> Exact:
    """Return the exact posterior of public rows, and draws, where known; of private ones it might fail."""
    model, d = problem.model, problem.dimension
    if not hasattr(model, "posterior") or len(problem.exact.reference):
        return problem.exact
    posterior = model.posterior(problem.rows, problem.temperature)
    where = f"model: {problem.model_id}: posterior"
    # Reference draws and baselines, by the thesis's keys if it has them.
    if problem.dataset == "published" and (known := models.definition(problem.model_id).published_draws):
        own = known(posterior, REFERENCE_DRAWS)
    else:
        names = ("posterior", problem.dataset, problem.label)
        own = [posterior.draws(stream(*names, i), REFERENCE_DRAWS) for i in range(1 + BASELINES)]
    draws = array(own, (1 + BASELINES, REFERENCE_DRAWS, d), f"{where}: draws")
    mean = array(posterior.mean(), (d,), f"{where}: mean")
    exact = Exact(draws[0], draws[1:], mean, array(posterior.covariance(), (d, d), f"{where}: covariance"))
    if getattr(model, "histogram_truth", False):
        many = posterior.draws(stream("histogram", problem.dataset, problem.label), HISTOGRAM_DRAWS)
        edges = histogram.equal_edges(many)
        counts, _ = histogram.bin_counts(many, edges)
        exact = replace(exact, histogram_edges=edges, histogram_counts=counts)
    return exact


def with_exact(problem: Problem) -> Problem:
    """Return a problem with its exact posterior, where the model has one (`exact_posterior`)."""
    return replace(problem, exact=exact_posterior(problem))


def _starts(definition: Definition, names: tuple[str, ...], public: np.ndarray, number: int) -> np.ndarray:
    """Return start points (number, d), by Section 5.2 of the thesis or the DP-Fast MH paper's scripts.

    `names` key their random stream, but for published data. Unless the definition says where they are, their
    sd is the mean one of `public`, posterior draws (draws, d), or 0.1 without any.
    """
    if number > MOST_STARTS:
        raise DpmcError(f"seed: {number} start points, one for each chain, must be at most {MOST_STARTS}")
    generator, d = stream("start", *names), len(definition.true_theta)
    if definition.uniform_starts:
        return generator.uniform(-1.0, 1.0, (number, d)) / math.sqrt(d)
    scale = float(public.std(axis=0).mean()) if len(public) else 0.1
    start, scale = definition.around or (getattr(definition.model, "start", definition.true_theta), scale)
    centre = np.asarray(start, dtype=float)
    if names[0] == "published":
        return published.starts(centre, scale, number)
    return centre + scale * generator.standard_normal((number, d))
