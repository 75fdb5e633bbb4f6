"""Which of a study's labels a figure compares: main ones, variants as published, second priors."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from dpmc.plots.frame import private_models

if TYPE_CHECKING:
    from dpmc.studies import Study

AS_PUBLISHED = "published"  # the value of an option that keeps a mistake of the source
WITHOUT_PRIVACY = ("rwmh", "hmc")


def main_methods(study: Study) -> list[str]:
    """Return one method label for each algorithm that runs with a budget, in the study's order.

    It is the label that is the algorithm's own id, else the algorithm's first.
    """
    private = set(private_models(study))
    chosen: dict[str, str] = {}
    for label, spec in study.methods.items():
        if private.intersection(spec.models) and (label == spec.algorithm or spec.algorithm not in chosen):
            chosen[spec.algorithm] = label
    return [label for label in study.methods if label in chosen.values()]


def published_variant(study: Study, method: str) -> str | None:
    """Return the label of the same algorithm with an option set to `published`, where there is one."""
    algorithm = study.methods[method].algorithm
    for label, spec in study.methods.items():
        if label != method and spec.algorithm == algorithm and AS_PUBLISHED in spec.options.values():
            return label
    return None


def prior_pairs(study: Study) -> list[tuple[str, str]]:
    """Return the pairs of model labels with a budget that differ in nothing but the prior's variance.

    In the study's order; the first of a pair is the one that other figures show.
    """
    labels = private_models(study)
    keys = {label: _without_prior(study, label) for label in labels}
    pairs = []
    for index, first in enumerate(labels):
        for second in labels[index + 1 :]:
            if keys[first] is not None and keys[first] == keys[second]:
                if prior_variance(study, first) != prior_variance(study, second):
                    pairs.append((first, second))
    return pairs


def compared_models(study: Study) -> list[str]:
    """Return the model labels with a budget, without those that repeat another with a second prior."""
    repeated = {second for _, second in prior_pairs(study)}
    return [label for label in private_models(study) if label not in repeated]


def prior_variance(study: Study, label: str) -> float:
    """Return σ₀² of a model that has one."""
    return float(_definition(study, label).model.prior_variance)


def clipping_models(study: Study) -> list[str]:
    """Return the model labels of the clipping experiment: without a budget, with clip bounds."""
    private = private_models(study)
    return [label for label in study.models if label not in private and clip_bounds(study, label)]


def clip_bounds(study: Study, model: str) -> dict[str, dict[float, str]]:
    """Return algorithm -> clip bound -> method label, of the methods without privacy that run on a model."""
    table: dict[str, dict[float, str]] = {}
    for label, spec in study.methods.items():
        if spec.algorithm in WITHOUT_PRIVACY and model in spec.models and "clip" in spec.options:
            table.setdefault(spec.algorithm, {})[float(spec.options["clip"])] = label
    return {name: dict(sorted(table[name].items())) for name in WITHOUT_PRIVACY if name in table}


def _without_prior(study: Study, label: str) -> str | None:
    """A text that is the same for models that differ in the prior's variance only; None for others."""
    spec = study.models[label]
    definition = _definition(study, label)
    model = definition.model
    if not hasattr(model, "prior_variance") or not dataclasses.is_dataclass(model):
        return None
    rest = [spec.n or definition.n, definition.tempering, definition.true_theta, spec.data]
    return f"{type(model).__name__} {dataclasses.replace(definition.model, prior_variance=0.0)!r} {rest}"


def _definition(study: Study, label: str) -> Any:
    from dpmc import models

    return models.definition(study.models[label].model)
