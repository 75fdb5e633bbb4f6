"""Hyperparameters of a study by model and method, with noise multipliers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from dpmc.common.errors import DpmcError
from dpmc.common.values import shown
from dpmc.models import definition
from dpmc.reports.plots.style import STYLES, method_styles, model_title
from dpmc.reports.tables.formats import Part, Table
from dpmc.studies import (
    Hyperparameters,
    Study,
    build_algorithm,
    calibrated_values,
    number_of_rows,
    pinned_hyperparameters,
    read_yaml,
)

TITLE = "Hyperparameters"
COLUMNS = ("model", "method", "epsilon", "hyperparameter", "value")
NOTE = (
    "Keys as in the files of hyperparameters (docs/reference/hyperparameters.md says what each is); a\n"
    "number of several components is written once with how many have it. Noise multipliers are standard\n"
    "deviations of the noise over the sensitivity, of one release. A row holds for every ε, or for the one\n"
    "that it names."
)


class _Setting(NamedTuple):
    """The hyperparameters of a method on a model; `epsilon` "": at every ε."""

    model: str
    method: str
    epsilon: str
    values: dict[str, str]


def inputs(study: Study, results: Path) -> list[Path]:
    """Return the tuning files of all methods and models whose hyperparameters are tried."""
    return [path for pair in _pairs(study) if (path := _tuned(study, results, *pair))]


def table(study: Study, results: Path) -> Table:
    """Return the table: tidy as CSV, for readers a part for each algorithm.

    Hyperparameters are those of the tuning file if there is one, else the pinned ones. Raises DpmcError if
    there are none.
    """
    settings = [one for pair in _pairs(study) for one in _settings(study, results, *pair)]
    rows = [
        dict(zip(COLUMNS, (*one[:3], name, value), strict=True))
        for one in settings
        for name, value in one.values.items()
    ]
    return Table(TITLE, NOTE, COLUMNS, rows, list(_parts(study, settings)))


def _pairs(study: Study) -> list[tuple[str, str]]:
    """Return all (model, method) that the study runs itself."""
    return list(dict.fromkeys(cell[:2] for cell in study.cells()))


def _tuned(study: Study, results: Path, model: str, method: str) -> Path | None:
    path = results / study.name / "tuning" / model / f"{method}.yaml"
    return path if study.is_tried(model, method) else None


def _values(study: Study, results: Path, model: str, method: str) -> Hyperparameters:
    """Return hyperparameters of the tuning file, else the pinned ones, and their source."""
    path = _tuned(study, results, model, method)
    if path is None or not path.is_file():
        return pinned_hyperparameters(study, model, method)
    try:
        return Hyperparameters(dict(read_yaml(path)["hyperparameters"]), str(path))
    except (KeyError, TypeError, ValueError):
        raise DpmcError(f"{path}: key 'hyperparameters' is missing") from None


def _settings(study: Study, results: Path, model: str, method: str) -> Iterator[_Setting]:
    """Yield the hyperparameters of a method on a model: one entry if they are equal at all ε."""
    pinned = _values(study, results, model, method)
    dimension, n = int(definition(study.models[model].model).model.dimension), number_of_rows(study, model)
    if not n:
        raise DpmcError(f"n: needed, since {study.models[model].model} names no number of rows")
    found = {}
    for epsilon in study.epsilons(model, method):
        algorithm = build_algorithm(study, method, pinned, dimension, epsilon, n)
        given = calibrated_values(study, method, pinned.values, epsilon, n)
        found[epsilon] = {name: _text(value) for name, value in given.items()}
        found[epsilon] |= dict(_noise(itertools.chain(*algorithm.releases(n))))
    first, *others = found.values()
    # If ε sets the noise, values at a single ε hold only there.
    decided_by_epsilon = study.epsilon_kind != "total" and not others and "inf" not in found
    if all(one == first for one in others) and not decided_by_epsilon:
        found = {"": first}
    yield from (_Setting(model, method, epsilon, one) for epsilon, one in found.items())


def _noise(releases: Iterator[Any]) -> Iterator[tuple[str, str]]:
    """Yield the noise multipliers of releases that have one, by name of the release."""
    for release in releases:
        for key, words in (("noise_multiplier", ""), ("batch_noise_multiplier", ", batch")):
            if multiplier := getattr(release, key, None):
                yield f"noise multiplier of {release.name}{words}", f"{multiplier:.4g}"


def _text(value: Any) -> str:
    """Format a hyperparameter's value; equal neighbours in a vector once, with their number."""
    if isinstance(value, list):
        runs = [(_text(one), len(list(group))) for one, group in itertools.groupby(value)]
        return ", ".join(one if count == 1 else f"{count} × {one}" for one, count in runs)
    if isinstance(value, float | int) and not isinstance(value, bool):
        return f"{value:.6g}"
    return value if isinstance(value, str) else shown(value)


def _parts(study: Study, settings: list[_Setting]) -> Iterator[Part]:
    """Yield a part for each algorithm, with a row for each model, method and ε if needed."""
    styles = method_styles(dict(study.methods))
    for algorithm in dict.fromkeys(study.methods[one.method].algorithm for one in settings):
        part = [one for one in settings if study.methods[one.method].algorithm == algorithm]
        names = list(dict.fromkeys(name for one in part for name in one.values))
        several, at = len({one.method for one in part}) > 1, any(one.epsilon for one in part)
        heads = ["Model", *["Method"] * several, *["ε"] * at, *names]
        rows = [
            [
                model_title(one.model, study.models[one.model].model),
                *[styles[one.method].title] * several,
                *[one.epsilon] * at,
                *(one.values.get(name, "") for name in names),
            ]
            for one in part
        ]
        yield Part(STYLES[algorithm].title if algorithm in STYLES else algorithm, heads, rows)
