"""A study: what it runs, and the hyperparameters of each cell."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import RootModel

from dpmc.common import sources
from dpmc.common.errors import DpmcError
from dpmc.common.values import delta_below, real
from dpmc.studies.documents import Document, read_document
from dpmc.studies.keys import MethodSpec, ModelSpec, StudyKeys, added, validated

if TYPE_CHECKING:
    from dpmc.data.problem import Problem
    from dpmc.models import Definition
    from dpmc.sampling.cell import Cell

Spec = TypeVar("Spec")

MANY = 10**6  #: rows, for a question whose answer does not depend on their number


class MissingSettings(DpmcError):
    """The hyperparameters of a cell are missing."""


class HyperparameterTable(RootModel[dict[str, dict[str, dict[str, Any]]]]):
    """A file of hyperparameters: {method: {model: {name: value}}}."""


def hyperparameter_table(path: Path) -> Document:
    """Read and check a file of hyperparameters; raise DpmcError if it has another form."""
    document = read_document(path)
    validated(HyperparameterTable, document)
    return document


class Study(StudyKeys):
    """One study: the keys of its file, with every default filled in."""

    name: str = added("")
    path: Path = added(Path())
    document: Document = added(None)  # the file, for the lines of errors

    @property
    def start_points(self) -> int:
        """Return the number of start points: one for each chain of evaluation or tuning, at least 20."""
        return max(20, max(self.seeds, self.tuning.seeds) * self.chains)

    @property
    def tuning_methods(self) -> tuple[str, ...]:
        """Return the methods that `make tune` searches; none in mode `none`, unless the study lists some."""
        return self.tuning.methods or (() if self.tuning.mode == "none" else tuple(self.methods))

    @property
    def tuning_models(self) -> tuple[str, ...]:
        """Return the models on which `make tune` searches."""
        return self.tuning.models or tuple(self.models)

    def delta_for(self, n: int) -> float:
        """Return δ for n rows; raise DpmcError unless it is between 0 and 1/n."""
        try:
            each = real(self.delta.split("/")[0].strip()) if isinstance(self.delta, str) else None
            return delta_below(self.delta if each is None else each / n, n)
        except ValueError as error:
            rule = f"{self.delta} for n = {n}: {error}"
            if self.delta != self.document.content.get("delta"):  # an option's
                raise DpmcError(f"--delta: {rule}") from None
            self.document.refuse("delta", rule=rule)

    def definition(self, model: str) -> "Definition":
        """Return the definition of a model of the catalogue, or of a user's class.

        Raises DpmcError for an invalid class, with the study's line if the study names it.
        """
        from dpmc.models import definition

        try:
            return definition(self.model(model).model)
        except DpmcError as error:
            if model not in self.models:
                raise
            self.document.refuse("models", model, "model", rule=str(error).removeprefix("model: "))

    def read_rows(self, model: str, file: Path) -> Any:
        """Return rows (n, d_x) of a file: the columns that the study names, else the model's, else all.

        Raises DpmcError for a file that cannot be read, with the study's line if the study names it.
        """
        from dpmc.data import datasets

        spec = self.model(model)
        by_model = getattr(self.definition(model).model, "column_names", None)
        try:
            return datasets.read_rows(file, spec.columns or by_model)
        except DpmcError as error:
            if file != spec.rows_file:
                raise
            self.document.refuse("models", model, "data", rule=str(error))

    def number_of_rows(self, model: str) -> int:
        """Return the number of rows n of a model: that of its file, else the study's, else the definition's.

        0 for a user's model without `n`. Raises DpmcError for a file that cannot be read.
        """
        spec = self.model(model)
        if spec.rows_file is not None:
            return len(self.read_rows(model, spec.rows_file))
        return spec.n or self.definition(model).n

    def cells(self) -> Iterator[tuple[str, str, str]]:
        """Yield all (model, method, epsilon) that the study runs itself, in the order of the file."""
        for model in self.models.values():
            for method in self.methods.values():
                if model.label in method.models and not method.from_study:
                    for epsilon in self.epsilons(model.label, method.label):
                        yield model.label, method.label, epsilon

    def epsilons(self, model: str, method: str) -> tuple[str, ...]:
        """Return the ε at which a method runs on a model: the method's own, else the model's."""
        return self.method(method).epsilons or self.model(model).epsilons

    def iterations(self, model: str, method: str) -> int | None:
        """Return the iterations of each chain: the method's, else the model's; None: all that ε allows."""
        return self.method(method).iterations or self.model(model).iterations

    def thin(self, model: str, method: str) -> int:
        """Return k if every k-th draw is kept: the method's number, else the model's."""
        own = self.method(method).thin
        return own if own > 1 else self.model(model).thin

    def reused(self) -> list[tuple[str, str]]:
        """Return the (study, model) whose metrics this study's table has besides those of its own cells."""
        taken = [method for method in self.methods.values() if method.from_study]
        return list(dict.fromkeys((method.from_study, model) for method in taken for model in method.models))

    def model(self, label: str) -> ModelSpec:
        """Return the model of a label; `module:Class` is a model itself, with the study's first list of ε.

        Raises DpmcError for a label that the study does not have.
        """
        if ":" not in label or label in self.models:
            return self._known(self.models, "models", label)
        search_folder(self.path.parent)
        first = next(iter(self.models.values()))
        return ModelSpec.model_construct(
            label=label,
            model=label,
            data="fresh-0",
            settings_of=label,
            epsilons=first.epsilons,
            tuning_epsilon=first.tuning_epsilon,
        )

    def tuned_at(self, model: str, epsilon: str) -> "Study":
        """Return this study with another ε of trials for a model of it or a user's `module:Class`."""
        spec = self.model(model).model_copy(update={"tuning_epsilon": epsilon})
        return self.model_copy(update={"models": {**self.models, model: spec}})

    def method(self, label: str) -> MethodSpec:
        """Return the method of a label.

        Raises DpmcError for a label that the study does not have.
        """
        return self._known(self.methods, "methods", label)

    def _known(self, table: dict[str, Spec], what: str, label: str) -> Spec:
        if label not in table:
            raise DpmcError(f"{self.path}: {what}: {label!r} is not in this study; it has {', '.join(table)}")
        return table[label]

    def own_method(self, label: str) -> MethodSpec:
        """Return the method of a label that this study runs itself.

        Raises DpmcError for a label that the study does not have or takes from another study.
        """
        spec = self.method(label)
        if spec.from_study:
            rule = f"its cells come from the study {spec.from_study}, which runs them"
            self.document.refuse("methods", label, rule=rule)
        return spec

    def settings_are_tuned(self, method: str) -> bool:
        """Return whether a method's hyperparameters are those found by a search."""
        return (self.method(method).hyperparameters or self.hyperparameters) == "tuned"

    def settings_file(self, tuned: bool) -> Path:
        """Return the file of hyperparameters: those found by a search, or the published ones.

        It is in a folder `hyperparameters` in the study's folder, or beside that folder.
        """
        name = f"hyperparameters/{self.settings_of}{'.tuned' if tuned else ''}.yaml"
        within = self.path.parent / name
        return within if within.is_file() else self.path.parent.parent / name

    def is_tried(self, model: str, method: str) -> bool:
        """Return whether settings are tried on tuning data: there is a budget, and the mode is not `none`."""
        without_budget = self.model(model).tuning_epsilon == "inf" or self.method(method).epsilons == ("inf",)
        return self.tuning.mode != "none" and not without_budget

    def pinned_hyperparameters(self, model: str, method: str) -> tuple[dict[str, Any], str]:
        """Return the hyperparameters of a cell from config/hyperparameters, and their place.

        They are looked up under the method's label, else its `settings_of`; there under the model's label,
        else its `settings_of`. With `hyperparameters: tuned` they are those found by a search, except for
        algorithms that are never searched.

        Raises MissingSettings if there are none, DpmcError if the file is wrong.
        """
        from dpmc.algorithms import FREE

        spec = self.method(method)
        tuned = self.settings_are_tuned(method) and spec.algorithm in FREE
        path = self.settings_file(tuned)
        if not path.is_file():
            raise MissingSettings(f"{path}: no such file")
        document = hyperparameter_table(path)
        table = document.content
        for key in (method, spec.settings_of):
            for label in (model, self.model(model).settings_of):
                if label in table.get(key, {}):
                    return table[key][label], document.place(key, label)
        if ":" in model and not tuned:
            how = "give them by --hyperparameters, or let dpmc tune --search find some"
            raise MissingSettings(f"{model}, {method}: hyperparameters are missing; {how}")
        hint = "no search found any" if tuned else "give them here, or to dpmc sample by --hyperparameters"
        raise MissingSettings(f"{path}: {spec.settings_of}: {model}: hyperparameters are missing; {hint}")

    def _calibrate(self, method: str, epsilon: str) -> Any:
        """Return the algorithm's `calibrate`; None if ε is not per iteration.

        Raises DpmcError for an algorithm without `calibrate`.
        """
        from dpmc.algorithms import algorithm_class

        if self.epsilon_kind == "total" or epsilon == "inf":
            return None
        name = self.method(method).algorithm
        calibrate = getattr(algorithm_class(name), "calibrate", None)
        if calibrate is None:
            rule = f"{epsilon}: {name} cannot be calibrated to an epsilon per iteration, must be [inf]"
            self.document.refuse("methods", method, "epsilons", rule=rule)
        return calibrate

    def settings(self, method: str, values: dict[str, Any], epsilon: str, n: int) -> dict[str, Any]:
        """Return all hyperparameters of a cell: `values`, the method's options, and calibrated ones.

        Raises DpmcError for an ε per iteration to which the algorithm cannot be calibrated.
        """
        values = {**values, **self.method(method).options}
        calibrate = self._calibrate(method, epsilon)
        try:
            return calibrate(values, float(epsilon), self.delta_for(n), n) if calibrate else values
        except DpmcError as error:
            self.document.refuse("methods", method, rule=str(error))

    def algorithm(
        self,
        method: str,
        values: dict[str, Any],
        dimension: int | None,
        source: str,
        epsilon: str = "inf",
        n: int = 0,
    ) -> Any:
        """Return the algorithm of a method label with its hyperparameters (d = `dimension`, None if unknown).

        `epsilon` and the number of rows `n` are used only if ε is per iteration: they set the noise.

        Raises DpmcError for wrong hyperparameters and options.
        """
        from dpmc.algorithms import algorithm_class
        from dpmc.algorithms.hyperparameters import read

        self.check_algorithm(method, values, dimension, source, epsilon)
        cls = algorithm_class(self.method(method).algorithm)
        values = self.settings(method, values, epsilon, n)
        return read(cls, values, source, dimension, self._places_of_options(method))

    def check_algorithm(
        self,
        method: str,
        values: dict[str, Any] | None,
        dimension: int | None,
        source: str,
        epsilon: str = "inf",
    ) -> None:
        """Raise DpmcError for wrong hyperparameters and options, before calibration.

        `values` and `dimension` are None if not known yet.
        """
        from dpmc.algorithms import algorithm_class
        from dpmc.algorithms.hyperparameters import checked

        spec, calibrated = self.method(method), self._calibrate(method, epsilon) is not None
        given, partial = {**(values or {}), **spec.options}, calibrated or values is None
        elsewhere = self._places_of_options(method)
        checked(algorithm_class(spec.algorithm), given, source, dimension, elsewhere, partial, calibrated)

    def _places_of_options(self, method: str) -> dict[str, str]:
        """Return the line of the study's file for each of a method's options, for errors."""
        return dict.fromkeys(self.method(method).options, self.document.place("methods", method, "options"))

    def cell(
        self, problem: "Problem", method: str, epsilon: str, values: dict[str, Any], source: str
    ) -> "Cell":
        """Return the cell of (problem, method, ε) with these hyperparameters, which come from `source`.

        Raises DpmcError for a method that another study runs, and for wrong hyperparameters.
        """
        from dpmc.sampling.cell import Cell

        how = self.own_method(method)
        return Cell(
            problem=problem,
            method=method,
            algorithm=self.algorithm(method, values, problem.dimension, source, epsilon, problem.n),
            epsilon=epsilon,
            epsilon_kind=self.epsilon_kind,
            delta=self.delta_for(problem.n),
            accountant=how.accountant,
            chains=self.chains,
            iterations=self.iterations(problem.label, method),
            thin=self.thin(problem.label, method),
            most_iterations=how.most_iterations,
            most_draws=how.most_draws,
        )

    def source_version(self, model: str) -> str:
        """Return a hash of the source of a user's model; "" for models of dpmc, whose data have a version.

        It covers the modules beside the model that it imports. "" too for an installed model: its package
        should have a version of its own.
        """
        name = self.model(model).model
        file = sources.beside(name, self.path.parent, Path()) if ":" in name else None
        return sources.version(file, without=("dpmc",)) if file else ""

    def accountants(self, model: str, method: str, epsilon: str = "") -> dict[str, str]:
        """Return name -> version of the accountants that decide a cell's iterations, noise or recorded ε.

        `epsilon` is that of the cell, or "" for all of the method's. Empty if the cell has neither a budget
        nor an ε per iteration. While hyperparameters are missing, so that the releases are not known: all
        accountants that the study's preset may select.
        """
        from dpmc.privacy import accountants

        how = self.method(method)
        epsilon = epsilon or next((one for one in self.epsilons(model, method) if one != "inf"), "inf")
        if epsilon == "inf" and self.epsilon_kind == "total":
            return {}
        # A user's model is a program, which is not run to ask for n: no kind of release depends on it.
        spec = self.model(model)
        n = spec.n or (MANY if ":" in spec.model else self.definition(model).n)
        try:
            values, source = self.pinned_hyperparameters(model, method)
            once, each = self.algorithm(method, values, None, source, epsilon, n).releases(n)
            found = accountants.versions(how.accountant, once + each)
            if self._calibrate(method, epsilon):  # which asks the tightest accountant for the noise
                found |= accountants.versions("tight", once + each)
            return found
        except DpmcError:
            return accountants.versions(how.accountant)

    def sampling_settings(self, model: str, method: str, epsilon: str) -> str:
        """Return everything in the study and the code that determines a cell's chains, as JSON.

        `epsilon` is "" for what all ε of a method have in common. The code counts by versions that are
        raised with its results: a refactoring does not change them (`dpmc.common.sources`).
        """
        from dpmc.algorithms import algorithm_class

        spec, how, source = self.model(model), self.method(method), self.source_version(model)
        return json.dumps(
            {
                "model": [spec.model, spec.data, spec.n, spec.start],
                "method": [
                    *(how.algorithm, how.accountant, how.options),
                    *(self.iterations(model, method), how.most_iterations, self.thin(model, method)),
                ],
                "draws_version": algorithm_class(how.algorithm).draws_version,
                "accountants": self.accountants(model, method, epsilon),
                "epsilon": epsilon,
                "delta": self.delta,
                "chains": self.chains,
                **({"most_draws": how.most_draws} if how.most_draws else {}),
                **({} if self.epsilon_kind == "total" else {"epsilon_kind": self.epsilon_kind}),
                **({"source": source} if source else {}),
            },
            sort_keys=True,
        )


def search_folder(folder: Path) -> None:
    """Add a study's folder to the places where modules of models are found."""
    name = str(folder.resolve())
    if name not in sys.path:
        sys.path.insert(0, name)
