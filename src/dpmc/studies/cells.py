"""From a study to its cells: models, rows, and everything that determines the chains of a cell."""

import json
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import TypeVar

import numpy as np

from dpmc.algorithms import algorithm_class
from dpmc.common import files, sources
from dpmc.common.errors import DpmcError
from dpmc.common.values import STARTS
from dpmc.data import images, tables
from dpmc.data.problem import Problem, Setting, read_problem
from dpmc.models import Definition, definition
from dpmc.privacy import accountants
from dpmc.privacy.events import Query
from dpmc.sampling.cell import Cell, Given
from dpmc.studies.hyperparameters import (
    SourcedValues,
    build_algorithm,
    calibrated_values,
    pinned_hyperparameters,
)
from dpmc.studies.keys import Changes, MethodSpec, ModelSpec, StudyKeys
from dpmc.studies.study import Study

S = TypeVar("S", bound=Setting)
MANY = 10**6  #: rows, for a question whose answer does not depend on their number


def definition_of(study: Study, model: str) -> Definition:
    """Return the definition of a model; an error in a user's class names the study's line."""
    named = model in study.models
    with study.document.blamed("models", model, "model") if named else nullcontext():
        return definition(study.model(model).model)


def read_model_rows(study: Study, model: str, file: Path) -> np.ndarray:
    """Return rows (n, d_x) of a file: the columns that the study names, else the model's, else all."""
    spec = study.model(model)
    known = definition_of(study, model).model
    columns = spec.columns or getattr(known, "column_names", None)
    named = file == spec.rows_file
    with study.document.blamed("models", model, "data") if named else nullcontext():
        persons = tables.Persons(study.person, study.rows_per_person)
        return tables.read_rows(file, columns, getattr(known, "coding", None), persons)


def number_of_rows(study: Study, model: str) -> int:
    """Return n of a model: of its file, else the study's, else the definition's; 0 if none says it."""
    spec = study.model(model)
    if spec.rows_file is not None:
        return len(read_model_rows(study, model, spec.rows_file))
    return spec.n or definition_of(study, model).n


def problem_of(
    study: Study,
    label: str,
    file: Path | None = None,
    dataset: str | None = None,
    rows: Path | None = None,
    starts: int = 0,
    exact: bool = False,
) -> Problem:
    """Return the problem of a model: from a file, from a user's rows, or generated as in the study.

    Rows are in the file `rows`, in a table `file`, or in that of the study. `exact`: with the exact
    posterior, as private as the rows. Raises DpmcError for a file of another model or number of rows.
    """
    from dpmc.data import datasets  # slow to import, and needed only here

    spec = study.model(label)
    if file is not None and not files.is_table(file):
        problem = read_problem(file)
        for kind, held, wanted in (("label", problem.label, label), ("model", problem.model_id, spec.model)):
            if held != wanted:
                raise DpmcError(f"{file}: {kind}: holds data for {held}, not for {wanted}")
        if spec.n not in (None, problem.n):
            raise DpmcError(f"{file}: rows: {problem.n}, the study wants n = {spec.n}")
        before = problem.starts
        datasets.add_starts(problem, definition_of(study, label), max(starts, study.start_points))
        if problem.starts is not before:
            datasets.move_starts(problem, spec.start)
        return datasets.with_exact(problem) if exact else problem
    definition, starts = definition_of(study, label), max(starts, study.start_points)
    file = rows or file or (spec.rows_file if dataset in (None, spec.data) else None)
    if file is None:
        name = datasets.tuning_set(spec.data) if dataset == "tuning" else dataset or spec.data
        n = number_of_rows(study, label) if spec.rows_file else spec.n
        problem = datasets.build(label, spec.model, name, n, starts, spec.start, definition)
    else:
        own, name = read_model_rows(study, label, file), files.stem(file)
        problem = datasets.from_rows(label, spec.model, name, own, starts, str(file), definition)
        datasets.move_starts(problem, spec.start)
    return datasets.with_exact(problem) if exact else problem


def make_cell(study: Study, problem: S, method: str, epsilon: str, given: SourcedValues) -> Cell[S]:
    """Return the cell of (problem, method, ε) with these hyperparameters; the study must run the method."""
    spec = study.own_method(method)
    algorithm = build_algorithm(study, method, given, problem.dimension, epsilon, problem.n)
    calibrated = None
    if study.epsilon_kind != "total" or algorithm.calibrates_run:
        calibrated = calibrated_values(study, method, given.values, epsilon, problem.n)
    # Keys of the method and of the study that a cell has by the same name, so that a new one arrives there.
    names = {field.name for field in fields(Cell)}
    asked = {field.name: getattr(study, field.name) for field in fields(study) if field.name in names}
    asked |= {name: getattr(spec, name) for name in MethodSpec.model_fields if name in names}
    asked |= {
        "iterations": study.iterations(problem.label, method),
        "thin": study.thin(problem.label, method),
    }
    asked |= {"problem": problem, "method": method, "algorithm": algorithm, "epsilon": epsilon}
    asked |= {"delta": study.delta_for(problem.n)}
    given_as = Given(given.values, spec.algorithm, spec.options, study.name, calibrated)
    return Cell(**asked, given=given_as)


def source_version(study: Study, model: str) -> str:
    """Return a hash of the source of a user's model and of the modules beside it; "" for installed ones."""
    name = study.model(model).model
    file = sources.file_beside(name, study.path.parent, Path()) if ":" in name else None
    return sources.sources_version(file, without=("dpmc",)) if file else ""


def accountant_versions(study: Study, model: str, method: str, epsilon: str = "") -> dict[str, str]:
    """Return name -> version of the accountants that decide a cell's iterations, noise or recorded ε.

    `epsilon`: of the cell, or "" for all of the method's. While hyperparameters are missing or wrong, so that
    the queries are not known: all accountants that the method's accountant or preset may select.
    """
    spec, about = study.method(method), study.model(model)
    private = [other for other in study.epsilons(model, method) if other != "inf"]
    epsilon = epsilon or (private[0] if private else "inf")
    total = study.epsilon_kind == "total"
    if epsilon == "inf" and total:
        return {}
    # A user's model is a program, which is not run to ask for n: no kind of query depends on it.
    n = about.n or (MANY if ":" in about.model else definition_of(study, model).n)
    events: tuple[Query, ...] | None
    try:
        given = pinned_hyperparameters(study, model, method)
        queries = build_algorithm(study, method, given, None, epsilon, n).queries(n)
        events = queries.run + queries.chain + queries.each
        versions = accountants.versions(spec.accountant, events)
    except DpmcError:
        events, versions = None, accountants.versions(spec.accountant)
    if not total and epsilon != "inf":  # calibration asks the tightest accountant for the noise
        versions |= accountants.versions("tight", events)
    return versions


def data_settings(study: Study, model: str) -> str:
    """Return everything in the study and the code that determines a model's data file, as JSON."""
    spec = study.model(model)
    # All that determine chains but the data set, which is in the file's name.
    own = [getattr(spec, name) for name in ModelSpec.that_change(Changes.CHAINS) if name != "data"]
    pictures = [spec.data] if images.image_set(spec.data) else []
    rows = [getattr(spec, name) for name in ModelSpec.that_change(Changes.ROWS) if getattr(spec, name)]
    from dpmc.data import datasets  # slow to import

    version = [STARTS, datasets.DATA_VERSION, *pictures, *rows]
    return json.dumps([*own, *version]) + source_version(study, model)


def chain_settings(study: Study, model: str, method: str, epsilon: str) -> str:
    """Return everything in the study and the code that determines a cell's chains, as JSON.

    `epsilon` is "" for what all ε of a method have in common. The code counts by versions that are
    raised with its results: a refactoring does not change them (`dpmc.common.sources`).
    """
    about, spec, source = study.model(model), study.method(method), source_version(study, model)
    # What the model decides where the method does not.
    lengths = {"iterations": study.iterations(model, method), "thin": study.thin(model, method)}
    of_model, of_method = (
        [lengths.get(name, getattr(keys, name)) for name in declared.that_change(Changes.CHAINS)]
        for keys, declared in ((about, ModelSpec), (spec, MethodSpec))
    )
    # The others only where they are set, so that a new one leaves the settings of all other cells.
    if_set = {
        name: getattr(keys, name)
        for keys, declared in ((about, ModelSpec), (spec, MethodSpec), (study, StudyKeys))
        for name in declared.that_change(Changes.CHAINS_IF_SET)
        if getattr(keys, name) != declared.model_fields[name].default
    }
    return json.dumps(
        {
            "model": of_model,
            "method": of_method,
            **{name: getattr(study, name) for name in StudyKeys.that_change(Changes.CHAINS)},
            **if_set,
            "draws_version": algorithm_class(spec.algorithm).draws_version,
            "accountants": accountant_versions(study, model, method, epsilon),
            "epsilon": epsilon,
            **({"source": source} if source else {}),
        },
        sort_keys=True,
    )
