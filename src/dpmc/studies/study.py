"""A study: what it runs, as declared in its file, with every default filled in.

`loading.load_study` makes a `Study` from the keys of its file. Its methods only look up and combine what it
holds. Hyperparameters are in `hyperparameters`; data, cells and what determines their chains in `cells`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NamedTuple

from dpmc.common.values import STARTS, checked, delta_below, real
from dpmc.studies.documents import Document
from dpmc.studies.keys import NOTHING, ROWS, MethodSpec, ModelSpec, Tuning, key


class StudyModel(ModelSpec):
    """A model of a study, its data and its budgets; `data` of a file of rows is its name without suffix."""

    label: str = key("", changes=NOTHING)
    rows_file: Path | None = key("file of the user's rows", None, ROWS)


class StudyMethod(MethodSpec):
    """A method of a study: an algorithm with an accountant, options, and the models on which it runs."""

    label: str = key("", changes=NOTHING)
    settings_study: str = key("whose files of hyperparameters it has; default: the study's", "", NOTHING)
    reused: dict[str, tuple[str, ...]] = key("model → ε of another study's cells", {}, NOTHING)


class Repeated(NamedTuple):
    """Repeated runs of a study."""

    study: "Study"  # as the study, with this label as its only model, and a run on each data set
    sets: int


@dataclass(frozen=True)
class Study:
    """One study."""

    name: str
    path: Path
    title: str
    epsilon_kind: Literal["total", "per-iteration"]
    delta: float | str  # a number, or text such as "0.1/n"
    seeds: int
    chains: int
    settings_of: str  # study whose files of hyperparameters it has
    tuning: Tuning
    models: dict[str, StudyModel]
    methods: dict[str, StudyMethod]
    figures: tuple[str, ...]
    document: Document = field(repr=False, compare=False)  # the file, for the lines of errors
    repeated: dict[str, Repeated] = field(default_factory=dict)  # by label
    # As asked for on the command line:
    rows_per_person: int = 1  # the budget is that of a person with up to this number of rows
    person: str | None = None  # column that says whose a row is

    @property
    def start_points(self) -> int:
        """Return the number of start points: one for each chain of a run or trial, at least `STARTS`."""
        return max(STARTS, max(self.seeds, self.tuning.seeds) * self.chains)

    def delta_for(self, n: int) -> float:
        """Return δ for n rows; raise DpmcError unless it is between 0 and 1/n."""
        where, delta = f"delta: {self.delta} for n = {n}", self.delta
        if isinstance(delta, str):  # such as "0.1/n"
            delta = checked(where, real, delta.split("/")[0].strip()) / n
        return checked(where, delta_below, delta, n)

    def cells(self) -> Iterator[tuple[str, str, str]]:
        """Yield all (model, method, epsilon) that the study runs itself, in the order of the file."""
        for model in self.models:
            for method in self.methods.values():
                if model in method.models and not method.from_study:
                    for epsilon in self.epsilons(model, method.label):
                        yield model, method.label, epsilon

    def pairs(self) -> list[tuple[str, str]]:
        """Return all (model, method) that the study runs itself, in the order of the file."""
        return list(dict.fromkeys((model, method) for model, method, _ in self.cells()))

    def reused(self) -> list[tuple[str, str]]:
        """Return the (study, model) whose metrics this study's table has besides those of its own cells."""
        taken = [method for method in self.methods.values() if method.from_study]
        return list(dict.fromkeys((method.from_study, model) for method in taken for model in method.models))

    def epsilons(self, model: str, method: str) -> tuple[str, ...]:
        """Return the ε at which a method runs on a model: the reused, the method's own, else the model's."""
        spec = self.method(method)
        return spec.reused.get(model) or spec.epsilons or self.model(model).epsilons

    def iterations(self, model: str, method: str) -> int | None:
        """Return the iterations of each chain: the method's, else the model's; None: all that ε allows."""
        return self.method(method).iterations or self.model(model).iterations

    def thin(self, model: str, method: str) -> int:
        """Return k if every k-th draw is kept: the method's number, else the model's."""
        own = self.method(method).thin
        return own if own > 1 else self.model(model).thin

    def is_tried(self, model: str, method: str) -> bool:
        """Return whether settings are tried on tuning data: there is a budget, and the mode is not `none`."""
        without_budget = self.model(model).tuning_epsilon == "inf" or self.method(method).epsilons == ("inf",)
        return self.tuning.mode != "none" and not without_budget

    def model(self, label: str) -> StudyModel:
        """Return the model of a label; a `module:Class` is one itself, with the ε of the study's first."""
        if ":" not in label:
            self.document.require(label, self.models, "models")
        if label in self.models:
            return self.models[label]
        first = next(iter(self.models.values()))
        return StudyModel(
            label=label,
            model=label,
            settings_of=label,
            data="fresh-0",
            epsilons=first.epsilons,
            tuning_epsilon=first.tuning_epsilon,
        )

    def method(self, label: str) -> StudyMethod:
        """Return the method of a label; raise DpmcError for a label that the study does not have."""
        self.document.require(label, self.methods, "methods")
        return self.methods[label]

    def own_method(self, label: str) -> StudyMethod:
        """Return the method of a label; raise DpmcError also if its cells come from another study."""
        method = self.method(label)
        if method.from_study:
            rule = f"its cells come from the study {method.from_study}, which runs them"
            self.document.refuse("methods", label, rule=rule)
        return method

    def running(self, algorithm: str) -> "Study":
        """Return this study with an algorithm as a further method, whose hyperparameters the caller gives."""
        method = StudyMethod(
            label=algorithm, algorithm=algorithm, settings_of=algorithm, models=(*self.models,)
        )
        return replace(self, methods={**self.methods, algorithm: method})

    def tuned_at(self, model: str, epsilon: str) -> "Study":
        """Return this study with another ε of trials for a model of it or a user's `module:Class`."""
        tuned = self.model(model).model_copy(update={"tuning_epsilon": epsilon})
        return replace(self, models={**self.models, model: tuned})
