"""Which models and methods of a study a figure shows, and which stand beside each other."""

import itertools
from collections.abc import Iterable, Sequence

from dpmc.common.errors import DpmcError
from dpmc.studies import Study
from dpmc.studies.figures import FigureKeys
from dpmc.studies.pairs import partners

CellKey = tuple[str, str, str]  # model, method, epsilon
OnModel = tuple[str, str]  # model, and a method that runs on it


def private_models(study: Study) -> list[str]:
    """Return the study's model labels that have a finite budget."""
    return [label for label, spec in study.models.items() if set(spec.epsilons) != {"inf"}]


def selected(study: Study, ids: Sequence[str], labels: Iterable[str]) -> list[str]:
    """Return the `labels` of models that `ids` names by label or catalogue id, in its order; all for none."""
    labels = list(labels)
    named = [label for name in ids for label in labels if name in (label, study.models[label].model)]
    return list(dict.fromkeys(named)) if ids else labels


def models_of(study: Study, ids: Sequence[str]) -> list[str]:
    """Return the labels of models with a budget, by label or id in the order of `ids`; refuse none."""
    labels = selected(study, ids, private_models(study))
    if not labels:
        raise DpmcError(
            f"study {study.name}: none of its models belongs to this figure, which shows {', '.join(ids)}"
        )
    return labels


def matching(study: Study, ids: Iterable[str]) -> list[str]:
    """Return the methods of these labels, else algorithms, in the order of `ids`; all for no ids."""
    methods = study.methods
    return [
        label
        for name in list(ids) or methods
        for label, spec in methods.items()
        if name == (label if name in methods else spec.algorithm)
    ]


def methods_of(study: Study, ids: Sequence[str], models: Sequence[str]) -> list[str]:
    """Return those of `matching` that run on some of the models; raise DpmcError when there is none."""
    labels = [label for label in matching(study, ids) if set(models) & set(study.methods[label].models)]
    if not labels:
        names = ", ".join(ids or study.methods)
        raise DpmcError(f"study {study.name}: {names} runs on none of the models of this figure")
    return labels


def pairs_of(study: Study, how: FigureKeys) -> dict[OnModel, OnModel]:
    """Map what is shown as boxes to what stands beside it by `pairs`, else to itself; refuse none."""
    models = models_of(study, how.models)
    of_models, of_methods = partners(how.pairs, study.models), partners(how.pairs, study.methods)
    pairs: dict[OnModel, OnModel] = {}
    for method, model in itertools.product(methods_of(study, how.methods, models), models):
        other = of_models.get(model, model), of_methods.get(method, method)
        run = all(on in study.methods[label].models for on, label in ((model, method), other))
        if run and bool(how.pairs) == (other != (model, method)):
            pairs[model, method] = other
    if not pairs:
        wanted = ", ".join(f"{shown} beside {other}" for shown, other in how.pairs.items())
        raise DpmcError(f"study {study.name}: on {', '.join(models)} it has no pair of this figure: {wanted}")
    return pairs
