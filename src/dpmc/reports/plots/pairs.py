"""The key `pairs` of a figure: which models and methods are drawn beside which, as slim bars."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dpmc.common.errors import DpmcError
from dpmc.reports.plots import style
from dpmc.reports.plots.frame import Cell
from dpmc.reports.plots.style import MethodStyle
from dpmc.studies import Study
from dpmc.studies.figures import FigureKeys
from dpmc.studies.pairs import partners


@dataclass(frozen=True)
class Pairs:
    """Labels of the models and methods drawn as boxes -> labels of those beside them; empty for no pairs."""

    models: Mapping[str, str]
    methods: Mapping[str, str]

    @classmethod
    def of(cls, study: Study, how: FigureKeys) -> "Pairs":
        """Return the pairs of a study; DpmcError if the figure is of pairs and the study has none of them."""
        found = cls(partners(how.pairs, study.models), partners(how.pairs, study.methods))
        if how.pairs and not found.models and not found.methods:
            wanted = ", ".join(f"{one} beside {other}" for one, other in how.pairs.items())
            raise DpmcError(f"study {study.name}: it has no pair that this figure shows: {wanted}")
        return found

    def beside(self, cell: Cell) -> Cell:
        """Return the cell drawn beside this one."""
        model, method, epsilon = cell
        return self.models.get(model, model), self.methods.get(method, method), epsilon

    def label_shown(self, label: str) -> str:
        """Return the label whose look and name a pair has: the shorter one."""
        partner = self.models.get(label) or self.methods.get(label) or label
        return min(label, partner, key=len)

    def shown(self, study: Study, models: Sequence[str], methods: Sequence[str]) -> dict[str, list[str]]:
        """Return, of these, the models drawn and the methods on each: those that run, as do those beside.

        Raises DpmcError where there is none.
        """
        found: dict[str, list[str]] = {}
        for model, method in itertools.product(models, methods):
            other_model, other, _ = self.beside((model, method, ""))
            run = model in study.methods[method].models and other_model in study.methods[other].models
            if run and model in (self.models or models) and method in (self.methods or methods):
                found.setdefault(model, []).append(method)
        if not found:
            raise DpmcError(f"study {study.name}: no method runs with its partner on {', '.join(models)}")
        return found

    def styles(
        self, study: Study, titles: Mapping[str, str], methods: Sequence[str]
    ) -> dict[str, MethodStyle]:
        """Return the styles of these methods; a figure's own titles overrule the names."""
        looks = style.method_styles(study.methods)
        its = {label: looks[self.label_shown(label)] for label in methods}
        return {label: replace(look, title=titles.get(label) or look.title) for label, look in its.items()}
