"""Which of a study's methods a figure compares: one for each algorithm, and those that repeat a mistake."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpmc.plots.frame import private_models

if TYPE_CHECKING:
    from dpmc.studies import Study

AS_PUBLISHED = "published"  # the value of an option that keeps a mistake of the source


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
