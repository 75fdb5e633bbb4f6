"""Hyperparameters of a study by model and method, with noise multipliers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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

Cell = tuple[str, str, str]  # model, method, epsilon

TITLE = "Hyperparameters"
COLUMNS = ("model", "method", "epsilon", "hyperparameter", "value")
NOTE = (
    "Keys as in the files of hyperparameters (docs/reference/hyperparameters.md says what each is); a\n"
    "number of several components is written once with how many have it. Noise multipliers are standard\n"
    "deviations of the noise over the sensitivity, of one release. A row holds for every ε, or for the one\n"
    "that it names."
)


def inputs(study: Study, results: Path) -> list[Path]:
    """Return the tuning files of all methods and models whose hyperparameters are tried."""
    folder = results / study.name / "tuning"
    return [
        folder / model / f"{method}.yaml" for model, method in study.pairs() if study.is_tried(model, method)
    ]


def table(study: Study, results: Path) -> Table:
    """Return the table: tidy as CSV, for readers a part for each algorithm.

    Hyperparameters are those of the tuning file if there is one, else the pinned ones.
    """
    settings = {cell: values for pair in study.pairs() for cell, values in _settings(study, results, *pair)}
    rows = [
        dict(zip(COLUMNS, (*cell, name, value), strict=True))
        for cell, values in settings.items()
        for name, value in values.items()
    ]
    styles, parts = method_styles(study.methods), []
    algorithm_of = {cell: study.methods[cell[1]].algorithm for cell in settings}
    for algorithm in dict.fromkeys(algorithm_of.values()):
        part = {cell: values for cell, values in settings.items() if algorithm_of[cell] == algorithm}
        names = list(dict.fromkeys(name for values in part.values() for name in values))
        # Methods and ε are shown if they differ between rows.
        several, at = len({method for _, method, _ in part}) > 1, any(epsilon for *_, epsilon in part)
        lines = [
            [
                model_title(model, study.models[model].model),
                *[styles[method].title] * several,
                *[epsilon] * at,
                *(values.get(name, "") for name in names),
            ]
            for (model, method, epsilon), values in part.items()
        ]
        title = STYLES[algorithm].title if algorithm in STYLES else algorithm
        parts.append(Part(title, ["Model", *["Method"] * several, *["ε"] * at, *names], lines))
    return Table(TITLE, NOTE, COLUMNS, rows, parts)


def _settings(study: Study, results: Path, model: str, method: str) -> Iterator[tuple[Cell, dict[str, str]]]:
    """Yield the hyperparameters of a method on a model; epsilon is "" if they are equal at all ε."""
    path = results / study.name / "tuning" / model / f"{method}.yaml"
    if study.is_tried(model, method) and path.is_file():
        given = Hyperparameters(read_yaml(path).get("hyperparameters"), str(path))
        if not given.values:
            raise DpmcError(f"{path}: key 'hyperparameters' is missing")
    else:
        given = pinned_hyperparameters(study, model, method)
    dimension, n = int(definition(study.models[model].model).model.dimension), number_of_rows(study, model)
    if not n:
        raise DpmcError(f"n: needed, since {study.models[model].model} names no number of rows")
    by_epsilon = {}
    for epsilon in study.epsilons(model, method):
        texts = calibrated_values(study, method, given.values, epsilon, n)
        by_epsilon[epsilon] = {name: _text(value) for name, value in texts.items()}
        algorithm = build_algorithm(study, method, given, dimension, epsilon, n)
        for release in itertools.chain(*algorithm.releases(n)):
            for key, words in (("noise_multiplier", ""), ("batch_noise_multiplier", ", batch")):
                if multiplier := getattr(release, key, None):
                    name = f"noise multiplier of {release.name}{words}"
                    by_epsilon[epsilon][name] = f"{multiplier:.4g}"
    first, *others = by_epsilon.values()
    # If ε sets the noise, values at a single ε hold only there.
    decided_by_epsilon = study.epsilon_kind != "total" and not others and "inf" not in by_epsilon
    if all(other == first for other in others) and not decided_by_epsilon:
        by_epsilon = {"": first}
    yield from (((model, method, epsilon), texts) for epsilon, texts in by_epsilon.items())


def _text(value: Any) -> str:
    """Format a hyperparameter's value; equal neighbours in a vector once, with their number."""
    if isinstance(value, list):
        counts = [(_text(number), len(list(group))) for number, group in itertools.groupby(value)]
        return ", ".join(text if count == 1 else f"{count} × {text}" for text, count in counts)
    if isinstance(value, float | int) and not isinstance(value, bool):
        return f"{value:.6g}"
    return value if isinstance(value, str) else shown(value)
