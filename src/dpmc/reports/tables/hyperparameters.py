"""Hyperparameters of a study by model and method, with noise multipliers."""

import itertools
from pathlib import Path
from typing import Any

import pandas as pd

from dpmc.common.errors import DpmcError
from dpmc.common.values import shown
from dpmc.models import definition
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
    "deviations of the noise over the sensitivity, of one release. A row without ε holds for every ε."
)


def table(study: Study, results: Path) -> pd.DataFrame:
    """Return a row of texts for each hyperparameter, of the tuning file if there is one, else pinned."""
    rows = [
        (model, method, epsilon, name, value)
        for model, method in study.pairs()
        for epsilon, values in _by_epsilon(study, results, model, method).items()
        for name, value in values.items()
    ]
    return pd.DataFrame(rows, columns=[*COLUMNS])


def _by_epsilon(study: Study, results: Path, model: str, method: str) -> dict[str, dict[str, str]]:
    """Return the hyperparameters of a method on a model, by ε; by "" if they are equal at all ε."""
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
    return by_epsilon


def _text(value: Any) -> str:
    """Format a hyperparameter's value; equal neighbours in a vector once, with their number."""
    if isinstance(value, list):
        counts = [(_text(number), len(list(group))) for number, group in itertools.groupby(value)]
        return ", ".join(text if count == 1 else f"{count} × {text}" for text, count in counts)
    if isinstance(value, float | int) and not isinstance(value, bool):
        return f"{value:.6g}"
    return value if isinstance(value, str) else shown(value)
