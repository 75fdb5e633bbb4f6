"""Pairs and groups of a study's methods that are compared: accountants, tuned settings, clip bounds."""

import functools
import math
from collections.abc import Collection, Mapping

from dpmc.algorithms import ALGORITHMS, algorithm_class
from dpmc.studies.study import Study


@functools.cache
def clipped_at_will() -> tuple[str, ...]:
    """Return the algorithms of the clipping experiment: those that clip nothing unless they are told to."""
    return tuple(name for name in ALGORITHMS if getattr(algorithm_class(name), "clip", None) == math.inf)


def two_accountings(study: Study) -> dict[str, str]:
    """Map each method with the accountant `thesis` to the method of the same algorithm with `tight`."""
    tight = {spec.algorithm: label for label, spec in study.methods.items() if spec.accountant == "tight"}
    return {
        label: tight[spec.algorithm]
        for label, spec in study.methods.items()
        if spec.accountant == "thesis" and spec.algorithm in tight
    }


def partners(pairs: Mapping[str, str], labels: Collection[str]) -> dict[str, str]:
    """Map each label to its partner among them, as the key `pairs` of a figure says; `*`: any text."""
    partner_of = {}
    for pattern, other in pairs.items():
        before, star, after = pattern.partition("*")
        for label in labels:
            text = label.removeprefix(before).removesuffix(after) if star else ""
            if label == before + text + after and (partner := other.replace("*", text)) in labels:
                partner_of[label] = partner
    return partner_of


def tuned_pairs(study: Study) -> dict[str, str]:
    """Map each method to the one called `<its label>-tuned`, with hyperparameters that a search found."""
    pairs = partners({"*-tuned": "*"}, study.methods)
    return {
        before: tuned for tuned, before in pairs.items() if study.methods[tuned].hyperparameters == "tuned"
    }


def clipping_models(study: Study) -> list[str]:
    """Return the labels of the models of a study's clipping experiment: no budget, several clip bounds."""
    return [
        label
        for label, spec in study.models.items()
        if set(spec.epsilons) == {"inf"} and clip_bounds(study, label)
    ]


def clip_bounds(study: Study, model: str) -> dict[str, dict[float, str]]:
    """Return {algorithm without privacy: {clip bound, ascending: method label}} of a model."""
    table: dict[str, dict[float, str]] = {name: {} for name in clipped_at_will()}
    for label, spec in study.methods.items():
        if spec.algorithm in table and model in spec.models and "clip" in spec.options:
            table[spec.algorithm][float(spec.options["clip"])] = label
    return {name: dict(sorted(bounds.items())) for name, bounds in table.items() if bounds}
