"""Which labels of the DP-Fast MH study its special figures show."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dpmc.errors import DpmcError
from dpmc.plots.series import AS_CODED, look

if TYPE_CHECKING:
    from dpmc.studies import Study

__all__ = ["INF", "SHOWN_EPSILON", "compared_labels", "epsilon_shown", "look", "models_like"]

INF = "inf"
SHOWN_EPSILON = "0.05"  # the paper's main value
#: options that make a variant, not another setting, of a method
VARIANT_OPTIONS = {"variant", "acceptance", "inverted_sensitivity"}


def compared_labels(study: Study, model: str) -> list[str]:
    """Return a model's methods with their main settings: no other step, no other K, none as implemented."""
    return [
        label
        for label, spec in study.methods.items()
        if model in spec.models
        and set(spec.options) <= VARIANT_OPTIONS
        and not label.endswith("-tuned")
        and spec.options.get("variant") != AS_CODED
    ]


def epsilon_shown(study: Study, model: str, method: str) -> str:
    """Return the ε at which single chains are shown: the paper's main one, inf for a non-private method.

    Where a method does not run at that ε, its nearest one.
    """
    epsilons = study.epsilons(model, method)
    if SHOWN_EPSILON in epsilons or epsilons == (INF,):
        return SHOWN_EPSILON if SHOWN_EPSILON in epsilons else INF
    return min(epsilons, key=lambda epsilon: abs(math.log(float(epsilon) / float(SHOWN_EPSILON))))


def models_like(study: Study, start: str) -> list[str]:
    """Return the study's labels of models whose id begins so.

    Raises DpmcError where there are none.
    """
    found = [label for label, spec in study.models.items() if spec.model.startswith(start)]
    if not found:
        raise DpmcError(f"study {study.name}: none of its models is a {start}, which this figure shows")
    return found
