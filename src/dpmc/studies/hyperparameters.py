"""Hyperparameters of a study's cells: from config/hyperparameters to an algorithm."""

from typing import Any, NamedTuple

from pydantic import RootModel

from dpmc.algorithms import algorithm_class
from dpmc.algorithms.hyperparameters import calibrated, checked, is_calibrated, not_given, read, searched
from dpmc.base import Algorithm
from dpmc.common.errors import DpmcError
from dpmc.studies.documents import beside, read_document
from dpmc.studies.keys import validated
from dpmc.studies.study import Study


class MissingSettings(DpmcError):
    """The hyperparameters of a cell are missing."""


class SourcedValues(NamedTuple):
    """Hyperparameters of a method on a model, and their place for error messages."""

    values: dict[str, Any]
    source: str


def pinned_hyperparameters(study: Study, model: str, method: str) -> SourcedValues:
    """Return the hyperparameters of a cell from config/hyperparameters.

    They are looked up under the method's label, else its `settings_of`; there under the model's label,
    else its `settings_of`. Raises MissingSettings if there are none, unless all have a default or follow
    from ε, and DpmcError if the file is wrong.
    """
    spec = study.method(method)
    cls = algorithm_class(spec.algorithm)
    tuned = spec.hyperparameters == "tuned" and bool(searched(cls))
    name = f"{spec.settings_study or study.settings_of}{'.tuned' if tuned else ''}.yaml"
    file = beside(study.path, "hyperparameters", name)
    if file.is_file():
        document = read_document(file)
        of_methods = RootModel[dict[str, dict[str, dict[str, Any]]]]  # -> model -> name -> value
        validated(of_methods, document)
        for key in (method, spec.settings_of):
            for label in (model, study.model(model).settings_of):
                if label in document.content.get(key, {}):
                    return SourcedValues(document.content[key][label], document.place(key, label))
    if cls.calibrates_run and not not_given(cls, {"noise_multiplier": None, **spec.options}):
        return SourcedValues({}, method)
    if not file.is_file():
        raise MissingSettings(f"{file}: no such file")
    if ":" in model and not tuned:
        by = "dpmc.plan" if cls.asks else "dpmc tune --search"
        how = f"give them by --hyperparameters, or let {by} find some"
        raise MissingSettings(f"{model}, {method}: hyperparameters are missing; {how}")
    hint = "no search found any" if tuned else "give them here, or to dpmc sample by --hyperparameters"
    raise MissingSettings(f"{file}: {spec.settings_of}: {model}: hyperparameters are missing; {hint}")


def build_algorithm(
    study: Study, method: str, given: SourcedValues, dimension: int | None, epsilon: str = "inf", n: int = 0
) -> Algorithm:
    """Return the algorithm of a method, d = `dimension` if known; ε and n set the noise if per iteration."""
    check_hyperparameters(study, method, given, dimension, epsilon)  # before `calibrate` computes with them
    values = calibrated_values(study, method, given.values, epsilon, n)
    return read(algorithm_class(study.method(method).algorithm), values, given.source, dimension)


def check_hyperparameters(
    study: Study, method: str, given: SourcedValues | None, dimension: int | None, epsilon: str = "inf"
) -> None:
    """Raise DpmcError for wrong hyperparameters and options of a method, before calibration.

    `given` and `dimension` are None if not known yet. Errors in options name their line in the study.
    """
    spec, by_epsilon = study.method(method), _is_calibrated(study, method, epsilon)
    values, source = given or ({}, "")
    elsewhere = dict.fromkeys(spec.options, study.document.place("methods", method, "options"))
    partial = by_epsilon or given is None  # others follow from calibration, or on the command line
    asked = {**values, **spec.options}
    checked(algorithm_class(spec.algorithm), asked, source, dimension, elsewhere, partial, by_epsilon)


def calibrated_values(
    study: Study, method: str, values: dict[str, Any], epsilon: str, n: int
) -> dict[str, Any]:
    """Return all hyperparameters of a cell: `values`, the method's options, and calibrated ones."""
    spec = study.method(method)
    values = {**values, **spec.options}
    if not _is_calibrated(study, method, epsilon):
        return values
    cls, person, kind = algorithm_class(spec.algorithm), study.rows_per_person, study.epsilon_kind
    with study.document.blamed("methods", method):
        return calibrated(cls, values, float(epsilon), study.delta_for(n), n, person, kind)


def _is_calibrated(study: Study, method: str, epsilon: str) -> bool:
    """Return whether ε decides hyperparameters of a method; raise DpmcError where it must and cannot."""
    name = study.method(method).algorithm
    cls = algorithm_class(name)
    if epsilon != "inf" and study.epsilon_kind != "total" and not cls.calibrates_iteration:
        rule = f"{epsilon}: {name} cannot be calibrated to an epsilon per iteration, must be [inf]"
        study.document.refuse("methods", method, "epsilons", rule=rule)
    return is_calibrated(cls, float(epsilon), study.epsilon_kind)
