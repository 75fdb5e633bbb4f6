"""The Python interface: `sample`, `budget` and `tune` (docs/how-to/python.md)."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Number
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dpmc import models
from dpmc.algorithms import algorithm_class
from dpmc.algorithms import hyperparameters as declared
from dpmc.algorithms.hyperparameters import calibrated, hyperparameters_in, not_given, read, searched
from dpmc.base import DIVERGED, Algorithm, has_diverged
from dpmc.common import logs
from dpmc.common.errors import DpmcError
from dpmc.common.files import given_path
from dpmc.common.progress import live_line
from dpmc.common.streams import canonical_epsilon
from dpmc.common.values import (
    MOST_CHAINS,
    MOST_ROWS_PER_PERSON,
    MOST_STARTS,
    STARTS,
    array,
    count,
    delta_below,
)
from dpmc.common.values import checked as checked
from dpmc.models import Definition
from dpmc.models.own import given_model
from dpmc.tuning import LEAK

if TYPE_CHECKING:
    import xarray
    from numpy.typing import ArrayLike

    from dpmc.data.problem import Problem

FINAL_SEEDS = 6  #: of a search: runs of a finalist

Hyperparameters: TypeAlias = "Mapping[str, Any] | str | Path | None"


def sample(
    model: object,
    data: object,
    algorithm: str = "dp-penalty",
    *,
    epsilon: float | str,
    delta: float | None = None,
    hyperparameters: Hyperparameters = None,
    chains: int = 1,
    iterations: int | None = None,
    thin: int = 1,
    seed: int = 0,
    accountant: str = "tight",
    start: ArrayLike | None = None,
    rows_per_person: int = 1,
    person: str | None = None,
    progress: bool = True,
) -> xarray.DataTree:
    """Run private chains on data; return them in ArviZ's groups, with the ledger in the attributes.

    All chains of a call share one budget: at most `epsilon` is spent. Another call on the same data has
    independent noise and spends its ε again; one that differs in `thin` and `progress` alone returns the same
    chains. They are reproducible, so a guess of the rows can be checked: for research, not for release.

    Parameters
    ----------
    model
        An instance (`dpmc.LinearRegression(...)`, `dpmc.Model(...)`, one of your own), a class with
        `dimension` and `log_likelihood(theta, rows)`, or a name: "module:Class" or one of the catalogue.
    data
        Private rows: an array (n, columns), a table of pandas, polars, pyarrow or xarray, or the path of a
        .csv, .csv.gz, .parquet or .xlsx file. Columns that the model names are selected by name. Or "tuning",
        "fresh-0", …: simulated rows, as many as the model's `n`.
    algorithm
        The algorithm's name; see `dpmc.algorithms()`.
    epsilon
        Budget ε of all chains together; "inf" for algorithms without privacy, with `iterations`.
    delta
        Budget δ, below 1/n, which would allow publishing one row. Default 0.1/n, as in the thesis.
    hyperparameters
        A mapping, the result of `dpmc.tune`, or a YAML file with one of these. They must not depend on the
        private rows. There are no defaults: good values depend on the model and on n.
    chains, iterations
        Number of chains, and iterations of each; None: an equal part of all that the budget allows.
    thin
        Keep every `thin`-th draw; at most the iterations.
    seed
        Of all random numbers, which also depend on rows, model, hyperparameters and all arguments but `thin`
        and `progress`. `dpmc sample` with the same model, settings and rows makes the same chains.
    accountant
        "tight", or another one of docs/reference/accountants.md.
    start
        Start points (d,) or (chains, d), chosen without the data; None: around the model's `start` or
        `true_theta`, with the spread of the posterior of simulated rows.
    rows_per_person
        Most rows of a person, whose ε and δ these are: m times the sensitivity where noise is Gaussian and on
        all rows, else group privacy (docs/explanation/accounting.md). Yours to promise without a `person`.
    person
        Column that says whose a row is. The first `rows_per_person` rows of each person are kept, in the
        table's order; how many of these each has counts as public. Default: that of the model's codebook.
    progress
        Report progress and a final summary of the chains: on standard error, or to your handlers of Python's
        `logging` ("dpmc").

    Returns
    -------
    xarray.DataTree
        Groups posterior (`theta`: chain, draw, parameter), sample_stats, constant_data, and
        private_diagnostics, functions of the rows that no ε covers.

    Raises
    ------
    DpmcError
        If an argument is wrong or missing, before any budget is spent.
    """
    from dpmc.data import chain_files
    from dpmc.sampling import loop
    from dpmc.sampling.cell import Cell, Given

    chains, thin = checked("chains", count, chains, 1, MOST_CHAINS), checked("thin", count, thin)
    seed = checked("seed", count, seed, 0, MOST_STARTS // chains - 1)
    values = plain_hyperparameters(hyperparameters)
    most = checked("rows_per_person", count, rows_per_person, 1, MOST_ROWS_PER_PERSON)
    problem = _problem(model, data, (seed + 1) * chains, person, most)
    if progress and person is not None:
        logs.LOGGER.info("n = %d rows are kept, at most %d of each %s", problem.n, most, person)
    if start is not None:
        problem.starts, problem.same_starts = given_start(start, chains, problem.dimension), True
        problem.check("start")
    cls, total = algorithm_class(algorithm), float(canonical_epsilon(epsilon))
    values = calibrated(cls, values, total, delta_for(delta, problem.n), problem.n, most)
    cell = Cell(
        problem=problem,
        method=algorithm,
        algorithm=made_algorithm(algorithm, values, problem.dimension),
        epsilon=canonical_epsilon(epsilon),
        delta=delta_for(delta, problem.n),
        accountant=accountant,
        chains=chains,
        iterations=None if iterations is None else checked("iterations", count, iterations),
        thin=thin,
        rows_per_person=most,
        streams="content",
        given=Given(hyperparameters=values, algorithm_id=algorithm),
    )
    cell.require_enough()
    name = f"{problem.label} {algorithm} epsilon {cell.epsilon}"
    (finished,) = loop.sample(cell, [seed], progress=live_line(name) if progress else None)
    for remark in finished.remarks:
        logs.LOGGER.warning("%s: %s", name, remark)
    if progress:
        from dpmc.metrics import summary

        logs.say(summary.summary_lines([([finished], [])]))
    return chain_files.tree(finished)


def budget(
    n: object,
    algorithm: str = "dp-penalty",
    hyperparameters: Hyperparameters = None,
    *,
    epsilon: float | str | None = None,
    iterations: int | None = None,
    delta: float | None = None,
    chains: int = 1,
    rows_per_person: int = 1,
) -> dict[str, int | float]:
    """Return, by accountant, the iterations of each chain that ε allows, or the ε that iterations cost.

    No rows are read. The default accountant of `dpmc.sample` is "tight".

    Parameters
    ----------
    n
        Number of rows, or a model with an `n`.
    algorithm, hyperparameters, delta, chains, rows_per_person
        As in `dpmc.sample`.
    epsilon, iterations
        Budget ε of all chains together, or the iterations of each: one of the two, else DpmcError.

    Returns
    -------
    dict
        Iterations or ε by accountant, for those that are meant for the algorithm's queries. Of a method that
        asks once, at ε: `noise_multiplier`, the noise of all that it asks over one row's sensitivity, and by
        `tight`, which sets it, ∞ iterations, or 0 if a multiplier that you gave is too small.
    """
    from dpmc.privacy.runs import RunQueries, with_multiplier

    if (epsilon is None) == (iterations is None):
        raise DpmcError("epsilon, iterations: give one of them")
    d = None
    if not isinstance(n, Number):
        _, name, definition = named_model(n)
        n, d = definition.n, len(definition.true_theta)
        if not n:
            raise DpmcError(f"n: needed, since the model {name} names no number of rows")
    n, chains = checked("n", count, n), checked("chains", count, chains, 1, MOST_CHAINS)
    k = None if iterations is None else checked("iterations", count, iterations)
    total = None if epsilon is None else float(canonical_epsilon(epsilon))
    most = checked("rows_per_person", count, rows_per_person, 1, MOST_ROWS_PER_PERSON)
    values = plain_hyperparameters(hyperparameters)
    if total is not None:
        values = calibrated(algorithm_class(algorithm), values, total, delta_for(delta, n), n, most)
    made = made_algorithm(algorithm, values, d)
    queries = RunQueries.of(made, n, chains)
    found = queries.by_accountant(delta_for(delta, n), epsilon=total, iterations=k, rows_per_person=most)
    return found if total is None else with_multiplier(made, found)


def tune(
    model: object,
    data: object = None,
    algorithm: str = "dp-penalty",
    *,
    epsilon: float | str,
    delta: float | None = None,
    hyperparameters: Hyperparameters = None,
    chains: int = 1,
    trials: int = 30,
    seeds: int = 3,
    rows_per_person: int = 1,
    fixed: Mapping[str, Any] | None = None,
    data_are_public: bool = False,
    table: str | Path | None = None,
    progress: bool = True,
) -> dict[str, Any]:
    """Search hyperparameters on simulated or public rows; pass the result to `dpmc.sample`.

    Among the settings that clip fewer than a tenth of the log ratios, the best one has the least distance
    (MMD) from the posterior of these rows, which is known or sampled without privacy. It suits private rows
    that resemble these: as many, on the same scale, with parameters near the model's `true_theta`, which is
    your guess. `["search"]["chosen"]` has `ess` and `rhat` of a run, `mmd`, `bias` (largest error of a mean,
    in posterior standard deviations of all rows) and `verdict`: "ok", or "biased: …" if some mean is off by
    more than half of one, more than chance explains. A warning is printed for a bias and for a small ess.

    Parameters
    ----------
    model
        As in `dpmc.sample`. To simulate rows it needs `simulate(generator, theta, n)` and `true_theta`.
    data
        Number of rows to simulate, equal to that of the private rows; None: the model's `n`. Or public rows,
        as in `dpmc.sample`, with `data_are_public=True`, which confirms that they are.
    algorithm, epsilon, delta, chains, rows_per_person
        As they will be in `dpmc.sample`.
    hyperparameters
        Start of the search, which covers a tenth to ten times each value. None: chosen from the scale of the
        posterior, for dp-penalty, dp-penalty-guided, dp-hmc and dp-mala.
    fixed
        Hyperparameters that keep these values, for example {"clip": 1.2}; the others are searched.
    trials, seeds
        Number of settings to try, and of runs of each; the best are run again with other seeds.
    table
        CSV file of the trials, from which an interrupted search is resumed.
    progress
        Show the trials made so far, and warnings, on standard error.

    Returns
    -------
    dict
        The hyperparameters found, with the results of the search under "search".

    Raises
    ------
    DpmcError
        If the rows may be private, since hyperparameters chosen on private rows reveal information about them
        that no epsilon covers; if nothing can be searched, no setting is feasible, or an argument is wrong.
    """
    from tempfile import TemporaryDirectory

    from dpmc.sampling.cell import Cell
    from dpmc.tuning import search

    cls, hint = algorithm_class(algorithm), ""
    if not searched(cls) or canonical_epsilon(epsilon) == "inf":
        if cls.asks:
            hint = "; dpmc.plan(model, n=n, epsilon=...) says what it gives on simulated rows"
        raise DpmcError(f"algorithm: {algorithm} at epsilon {epsilon} has nothing to search{hint}")
    chains = checked("chains", count, chains, 1, MOST_CHAINS)
    trials, seeds = checked("trials", count, trials), checked("seeds", count, seeds)
    problem = _public_problem(model, data, data_are_public, (seeds + FINAL_SEEDS) * chains)
    cell = Cell(
        problem=problem,
        method=algorithm,
        algorithm=None,  # type: ignore[arg-type]  # each trial has its own
        epsilon=canonical_epsilon(epsilon),
        delta=delta_for(delta, problem.n),
        accountant="tight",
        chains=chains,
        rows_per_person=checked("rows_per_person", count, rows_per_person, 1, MOST_ROWS_PER_PERSON),
    )
    given, kept = plain_hyperparameters(hyperparameters), plain_hyperparameters(fixed)
    declared.checked(cls, kept, "fixed", problem.dimension, partial=True)
    if given:
        given |= kept
        about = (cell.delta, problem.n, cell.rows_per_person)
        whole = calibrated(cls, given, float(cell.epsilon), *about)
        made_algorithm(algorithm, whole, problem.dimension)
    task = search.task_of_cell(cell, given, kept)
    report = live_line(f"tune {problem.label} {algorithm}", "trials") if progress else None
    with TemporaryDirectory() as folder:
        file = Path(folder) / "trials.csv" if table is None else given_path(table, "table")
        result = search.search(task, file, trials, seeds, seeds + FINAL_SEEDS, report)
    for text in search.warnings(result) if progress else ():
        logs.LOGGER.warning("%s", text)
    return result


def given_start(start: ArrayLike, chains: int, dimension: int) -> np.ndarray:
    """Return start points (chains, d), or (1, d) of one (d,) for all; raise DpmcError for wrong ones."""
    single = np.ndim(start) <= 1
    points = array(start, (dimension,) if single else (chains, dimension), "start").reshape(-1, dimension)
    if has_diverged(points).any():
        raise DpmcError(f"start: a parameter is beyond {DIVERGED:g}, where no chain can move")
    return points


def named_model(model: object) -> tuple[str, str, Definition]:
    """Return label (of an instance that of its class), name and definition of a model."""
    if isinstance(model, str):
        return model, model, models.definition(model)
    name, definition = given_model(model)
    return name.partition(":")[2], name, definition


def _problem(model: object, data: object, starts: int, person: str | None = None, most: int = 1) -> Problem:
    """Return the problem of a model and its rows, `most` of a person; raise DpmcError if they do not fit."""
    from dpmc.common import files
    from dpmc.data import datasets, tables

    label, name, definition = named_model(model)
    starts = max(starts, STARTS)
    persons = tables.Persons(person, most)
    if person is None and isinstance(data, str) and datasets.is_public(data):
        return datasets.build(label, name, data, None, starts, definition=definition)
    columns, coding = (getattr(definition.model, key, None) for key in ("column_names", "coding"))
    rows = tables.read_rows(data, columns, coding, persons)
    source = str(data) if isinstance(data, str | Path) else "data"
    return datasets.from_rows(label, name, files.stem(Path(source)), rows, starts, source, definition)


def _public_problem(model: object, data: object, data_are_public: bool, starts: int) -> Problem:
    """Return a problem with simulated rows, or with given rows that the caller declares public."""
    from dpmc.data import datasets

    if data is not None and not isinstance(data, Number):
        if not data_are_public:
            raise DpmcError(f"data: {LEAK}: give the number of rows to simulate, or set data_are_public=True")
        return datasets.with_exact(_problem(model, data, starts))
    label, name, definition = named_model(model)
    n = definition.n if data is None else checked("data", count, data)
    return datasets.build(label, name, "tuning", n, max(starts, STARTS), definition=definition)


def plain_hyperparameters(given: Hyperparameters) -> dict[str, Any]:
    """Return plain values from a mapping, a file, or the result of a search."""
    from dpmc.studies import read_yaml

    content = {} if given is None else given
    if isinstance(given, str | Path):
        content = read_yaml(given_path(given, "hyperparameters"))
    values = {}
    for key, value in hyperparameters_in(content, "hyperparameters").items():
        plain = value.tolist() if hasattr(value, "tolist") else value  # a number or an array of NumPy
        values[str(key)] = list(plain) if isinstance(plain, tuple) else plain
    return values


def made_algorithm(name: str, values: dict[str, Any], dimension: int | None) -> Algorithm:
    """Return the algorithm with its hyperparameters; raise DpmcError that explains missing ones."""
    cls = algorithm_class(name)
    # First, so that a misspelt one is not reported as a missing one.
    declared.checked(cls, values, "hyperparameters", dimension, partial=True)
    if needed := not_given(cls, values):
        how = f"tune(model, n, {name!r}, epsilon=...)"
        if cls.calibrates_run:  # nothing to search, since ε sets the noise
            how = "plan(model, n=n, epsilon=...)"
        hint = "" if cls.is_for_comparison else f". dpmc.{how} finds some on simulated rows"
        raise DpmcError(f"hyperparameters: {name} needs {'; '.join(needed)}{hint}")
    return read(cls, values, "hyperparameters", dimension)


def delta_for(delta: float | None, n: int) -> float:
    """Return δ as given, else 0.1/n."""
    return checked("delta", delta_below, 0.1 / n if delta is None else delta, n)
