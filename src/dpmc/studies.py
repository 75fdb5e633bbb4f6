"""A study's definition, read from config/studies/<study>.yaml and checked before anything runs."""

import functools
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from dpmc.errors import DpmcError
from dpmc.randomness import canonical_epsilon
from dpmc.values import MOST, MOST_STARTS, decimal, real, shown, whole

if TYPE_CHECKING:
    from dpmc.cell import Cell
    from dpmc.problem import Problem


class MissingSettings(DpmcError):
    """Hyperparameters of a cell stand nowhere."""


TUNING_TRIALS = 100  #: settings that a search tries unless the study says otherwise


@dataclass(frozen=True)
class ModelSpec:
    """What a model label stands for."""

    label: str
    model: str  # catalogue id or module:Class
    data: str  # published | tuning | fresh-r
    n: int | None  # rows; None: the catalogue's number
    start: str  # perturbed | true
    settings_of: str  # whose hyperparameters
    epsilons: tuple[str, ...]  # canonical
    tuning_epsilon: str
    iterations: int | None = None  # of methods that say nothing else
    thin: int = 1  # likewise


@dataclass(frozen=True)
class MethodSpec:
    """What a method label stands for."""

    label: str
    algorithm: str
    accountant: str
    settings_of: str  # whose hyperparameters
    options: dict[str, Any]  # overrule hyperparameters, e.g. reuse_gradients: true
    iterations: int | None
    most_iterations: int | None
    thin: int
    most_draws: int | None
    models: tuple[str, ...]
    from_study: str = ""  # the study whose cells these are; "": this one, which runs them
    epsilons: tuple[str, ...] = ()  # canonical; (): the models' own
    hyperparameters: str = ""  # published | tuned; "": as the study says


@dataclass(frozen=True)
class Study:
    """One study; see config/README.md for the meaning of each key."""

    name: str
    path: Path
    title: str
    epsilon_kind: str
    delta: float | str
    seeds: int
    chains: int
    tuning_mode: str
    tuning_seeds: int
    tuning_trials: int
    tuning_methods: tuple[str, ...]  # that `make tune` searches; mode none: (), unless the study names some
    tuning_models: tuple[str, ...]
    hyperparameters: str  # published | tuned
    settings_of: str  # the study whose hyperparameters
    models: dict[str, ModelSpec]
    methods: dict[str, MethodSpec]
    figures: tuple[str, ...]

    @property
    def start_points(self) -> int:
        """How many start points a data set has: one for each chain of evaluation or tuning, at least 20."""
        return max(20, max(self.seeds, self.tuning_seeds) * self.chains)

    def delta_for(self, n: int) -> float:
        """δ for n rows; DpmcError where it is none."""
        delta = real(self.delta.split("/")[0].strip()) / n if isinstance(self.delta, str) else self.delta
        if not 0.0 < delta < 1.0:
            raise DpmcError(f"{self.path}: delta: {self.delta} is {delta:g} for n = {n}, must be in (0, 1)")
        return delta

    def cells(self) -> Iterator[tuple[str, str, str]]:
        """All (model, method, epsilon) that the study runs itself, in the order of the file."""
        for model in self.models.values():
            for method in self.methods.values():
                if model.label in method.models and not method.from_study:
                    for epsilon in self.epsilons(model.label, method.label):
                        yield model.label, method.label, epsilon

    def epsilons(self, model: str, method: str) -> tuple[str, ...]:
        """The ε at which a method runs on a model: the method's own, else the model's."""
        return self.method(method).epsilons or self.model(model).epsilons

    def iterations(self, model: str, method: str) -> int | None:
        """Iterations of each chain: the method's, else the model's; None: all that the budget allows."""
        return self.method(method).iterations or self.model(model).iterations

    def thin(self, model: str, method: str) -> int:
        """Every so-many-th draw is kept: the method's number, else the model's."""
        own = self.method(method).thin
        return own if own > 1 else self.model(model).thin

    def reused(self) -> list[tuple[str, str]]:
        """(study, model) whose metrics belong to this study's table beside those of its own cells."""
        return list(
            dict.fromkeys(
                (method.from_study, model)
                for method in self.methods.values()
                if method.from_study
                for model in method.models
            )
        )

    def model(self, label: str) -> ModelSpec:
        """The model of a label; `module:Class` stands for itself, with the study's first ε grid.

        Raises DpmcError for a label that the study does not have.
        """
        if ":" in label:
            first = next(iter(self.models.values()))
            return ModelSpec(
                label, label, "fresh-0", None, "perturbed", label, first.epsilons, first.tuning_epsilon
            )
        spec: ModelSpec = _known(self.models, "models", label, self.path)
        return spec

    def method(self, label: str) -> MethodSpec:
        """The method of a label.

        Raises DpmcError for a label that the study does not have.
        """
        spec: MethodSpec = _known(self.methods, "methods", label, self.path)
        return spec

    def own_method(self, label: str) -> MethodSpec:
        """The method of a label that this study runs itself.

        Raises DpmcError for a label that the study does not have or takes from another study.
        """
        spec = self.method(label)
        if spec.from_study:
            raise DpmcError(
                f"{self.path}: methods: {label}: its cells come from the study {spec.from_study}, "
                "which runs them"
            )
        return spec

    def settings_are_tuned(self, method: str) -> bool:
        """Whether a method's hyperparameters are those that a search found."""
        return (self.method(method).hyperparameters or self.hyperparameters) == "tuned"

    def settings_file(self, tuned: bool) -> Path:
        """The file of hyperparameters: of those that a search found, or of the published ones."""
        return self.path.parent.parent / f"hyperparameters/{self.settings_of}{'.tuned' if tuned else ''}.yaml"

    def is_tried(self, model: str, method: str) -> bool:
        """Whether settings are tried on tuning data: there is a budget, and the study tries its settings."""
        without_budget = self.model(model).tuning_epsilon == "inf" or self.method(method).epsilons == ("inf",)
        return self.tuning_mode != "none" and not without_budget

    def pinned_hyperparameters(self, model: str, method: str) -> tuple[dict[str, Any], str]:
        """The hyperparameters of a cell that stand in config/hyperparameters, and where.

        They are looked up under the method's label, else that of its settings; and there under the model's,
        else that of its settings. `hyperparameters: tuned` asks for those that a search found; an algorithm
        that is never searched has the published ones.

        Raises MissingSettings where none stand, DpmcError where the file is wrong.
        """
        from dpmc.algorithms import FREE

        spec = self.method(method)
        tuned = self.settings_are_tuned(method) and spec.algorithm in FREE
        path = self.settings_file(tuned)
        if not path.is_file():
            raise MissingSettings(f"{path}: no such file")
        table = _settings(_read(path), path)
        for key in (method, spec.settings_of):
            for label in (model, self.model(model).settings_of):
                if label in table.get(key, {}):
                    return table[key][label], f"{path}: {key}: {label}"
        hint = "no search found any" if tuned else "give them here, or to dpmc sample by --hyperparameters"
        raise MissingSettings(f"{path}: {spec.settings_of}: {model}: hyperparameters are missing; {hint}")

    def settings(self, method: str, values: dict[str, Any], epsilon: str, n: int) -> dict[str, Any]:
        """All hyperparameters of a cell: `values`, the method's options, and what ε per iteration decides.

        Raises DpmcError for an ε per iteration that the algorithm cannot keep, or cannot be set to.
        """
        from dpmc.algorithms import algorithm_class

        spec = self.method(method)
        values = {**values, **spec.options}
        if self.epsilon_kind == "total" or epsilon == "inf":
            return values
        self._check_calibrates(method, epsilon)
        calibrate = algorithm_class(spec.algorithm).calibrate
        try:
            calibrated: dict[str, Any] = calibrate(values, float(epsilon), self.delta_for(n), n)
        except DpmcError as error:
            raise DpmcError(f"{self.path}: methods: {method}: {error}") from None
        return calibrated

    def algorithm(
        self,
        method: str,
        values: dict[str, Any],
        dimension: int,
        source: str,
        epsilon: str = "inf",
        n: int = 0,
    ) -> Any:
        """The algorithm of a method label with its hyperparameters (d = `dimension`).

        `epsilon` and the number of rows `n` matter where ε is per iteration: they set the noise.

        Raises DpmcError for wrong hyperparameters and options.
        """
        self.check_algorithm(method, values, dimension, source, epsilon)
        return self._read(method, self.settings(method, values, epsilon, n), dimension, source)

    def check_algorithm(
        self,
        method: str,
        values: dict[str, Any] | None,
        dimension: int | None,
        source: str,
        epsilon: str = "inf",
    ) -> None:
        """Raise DpmcError for wrong hyperparameters and options, before noise is set by them.

        `values` None, or `dimension` None: not known yet.
        """
        calibrated = self.epsilon_kind != "total" and epsilon != "inf"
        if calibrated:
            self._check_calibrates(method, epsilon)
        given = {**(values or {}), **self.method(method).options}
        self._read(method, given, dimension, source, calibrated, partial=calibrated or values is None)

    def _check_calibrates(self, method: str, epsilon: str) -> None:
        """Raise DpmcError for an algorithm that no ε per iteration sets."""
        from dpmc.algorithms import algorithm_class

        name = self.method(method).algorithm
        if not hasattr(algorithm_class(name), "calibrate"):
            raise DpmcError(
                f"{self.path}: methods: {method}: epsilons: {epsilon}: {name} is not set by an "
                "epsilon per iteration, must be [inf]"
            )

    def _read(
        self,
        method: str,
        values: dict[str, Any],
        dimension: int | None,
        source: str,
        calibrated: bool = False,
        partial: bool = False,
    ) -> Any:
        """The algorithm with these values, among them the method's options, which stand in the study."""
        from dpmc.algorithms import algorithm_class
        from dpmc.algorithms.hyperparameters import Values, read

        spec = self.method(method)
        options = {key: values[key] for key in spec.options if key in values}
        where = f"{self.path}: methods: {method}: options"
        given = Values(values, source, options, where, partial)
        return read(algorithm_class(spec.algorithm), given, dimension, calibrated)

    def cell(
        self, problem: "Problem", method: str, epsilon: str, values: dict[str, Any], source: str
    ) -> "Cell":
        """What runs at (problem, method, ε) with these hyperparameters, which come from `source`.

        Raises DpmcError for a method that another study runs, and for wrong hyperparameters.
        """
        from dpmc.cell import Cell

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

    def sampling_settings(self, model: str, method: str, epsilon: str) -> str:
        """Everything in the study and the code that decides a cell's draws, as JSON."""
        from dpmc.algorithms import algorithm_class

        spec, how = self.model(model), self.method(method)
        return json.dumps(
            {
                "model": [spec.model, spec.data, spec.n, spec.start],
                "method": [
                    *(how.algorithm, how.accountant, how.options),
                    *(self.iterations(model, method), how.most_iterations, self.thin(model, method)),
                ],
                "draws_version": algorithm_class(how.algorithm).draws_version,
                "epsilon": epsilon,
                "delta": self.delta,
                "chains": self.chains,
                **({"most_draws": how.most_draws} if how.most_draws else {}),
                **({} if self.epsilon_kind == "total" else {"epsilon_kind": self.epsilon_kind}),
            },
            sort_keys=True,
        )


@functools.lru_cache(maxsize=32)
def _settings(text: bytes, path: Path) -> Any:
    """Parse and validate a file of hyperparameters: method, model, name. Cached; treat as read-only.

    Raises DpmcError if it is of another form.
    """
    content = _parse(text, path)
    _check_mappings(content, str(path), ("methods", "models", "hyperparameters"))
    return content


def _check_mappings(content: Any, where: str, of: tuple[str, ...]) -> None:
    """Raises DpmcError unless `content` is a mapping of mappings, as deep as `of` has names."""
    if not isinstance(content, dict):
        raise DpmcError(f"{where}: is {shown(content)}, must be a mapping of {of[0]}")
    if len(of) > 1:
        for key, value in content.items():
            _check_mappings(value, f"{where}: {key}", of[1:])


def load_study(name: str | Path, asking: tuple[str, ...] = ()) -> Study:
    """Read and check a study by name (config/studies/<name>.yaml under the current folder) or path.

    `asking`: the studies that take cells from it, one from the other, if it is read for their sake.

    Raises DpmcError naming file, key, value and rule.
    """
    path = Path(name)
    if path.suffix != ".yaml":
        path = Path("config") / "studies" / f"{name}.yaml"
    text = _read(path)
    content = _checked(text, path)
    models = {label: _model(label, entry, path) for label, entry in content["models"].items()}
    _check_models(models, path)
    _check_figures(content["figures"], path)
    tuning = content.get("tuning", {})
    study = Study(
        name=path.stem,
        path=path,
        title=content["title"],
        epsilon_kind=content.get("epsilon_kind", "total"),
        delta=content["delta"],
        seeds=content["seeds"],
        chains=content.get("chains", 1),
        tuning_mode=tuning.get("mode", "pinned"),
        tuning_seeds=tuning.get("seeds", 4),
        tuning_trials=tuning.get("trials", TUNING_TRIALS),
        tuning_methods=tuple(
            tuning.get("methods", () if tuning.get("mode") == "none" else content["methods"])
        ),
        tuning_models=tuple(tuning.get("models", models)),
        hyperparameters=content.get("hyperparameters", "published"),
        settings_of=content.get("settings_of", path.stem),
        models=models,
        methods={},
        figures=tuple(content["figures"]),
    )
    others: dict[str, Study] = {}
    for label, entry in content["methods"].items():
        if entry and "from_study" in entry:
            study.methods[label] = _method_of_another(label, entry, study, others, asking)
        else:
            study.methods[label] = _method(label, entry or {}, models, path)
    _check_lengths(study)
    _check_numbers(study)
    _check_settings(study, content, text)
    for key, wanted, known in (
        ("methods", study.tuning_methods, study.methods),
        ("models", study.tuning_models, study.models),
    ):
        for name in wanted:
            _known(known, f"tuning: {key}", name, path)
    return study


def _model(label: str, entry: dict[str, Any], path: Path) -> ModelSpec:
    where = f"{path}: models: {label}"
    return ModelSpec(
        label=label,
        model=entry.get("model", label),
        data=entry.get("data", "published"),
        n=entry.get("n"),
        start=entry.get("start", "perturbed"),
        settings_of=entry.get("settings_of", label),
        epsilons=_epsilons(entry["epsilons"], f"{where}: epsilons"),
        tuning_epsilon=_epsilons([entry["tuning_epsilon"]], f"{where}: tuning_epsilon")[0],
        iterations=entry.get("iterations"),
        thin=entry.get("thin", 1),
    )


def _epsilons(values: Sequence[Any], where: str) -> tuple[str, ...]:
    """Canonical ε, none of them twice."""
    try:
        found = tuple(canonical_epsilon(value) for value in values)
    except DpmcError as error:
        raise DpmcError(f"{where}: {str(error).removeprefix('epsilon: ')}") from None
    for value in found:
        if found.count(value) > 1:
            raise DpmcError(f"{where}: {value} stands twice")
    return found


def _method(label: str, entry: dict[str, Any], models: dict[str, ModelSpec], path: Path) -> MethodSpec:
    from dpmc.algorithms import ALGORITHMS
    from dpmc.privacy import accountants

    algorithm = entry.get("algorithm", label)
    if algorithm not in ALGORITHMS:
        raise DpmcError(
            f"{path}: methods: {label}: algorithm: {algorithm!r} is unknown; known: {', '.join(ALGORITHMS)}"
        )
    accountant = entry.get("accountant", "tight")
    if accountant not in accountants.names():
        known = ", ".join(sorted(accountants.names()))
        raise DpmcError(f"{path}: methods: {label}: accountant: {accountant!r} is unknown; known: {known}")
    for model in entry.get("models", ()):
        if model not in models:
            raise DpmcError(f"{path}: methods: {label}: models: {model!r} is not a model of this study")
    return MethodSpec(
        label=label,
        algorithm=algorithm,
        accountant=accountant,
        settings_of=entry.get("settings_of", algorithm),
        options=entry.get("options", {}),
        iterations=entry.get("iterations"),
        most_iterations=entry.get("most_iterations"),
        thin=entry.get("thin", 1),
        most_draws=entry.get("most_draws"),
        models=tuple(entry.get("models", models)),
        epsilons=_epsilons(entry.get("epsilons", ()), f"{path}: methods: {label}: epsilons"),
        hyperparameters=entry.get("hyperparameters", ""),
    )


def _method_of_another(
    label: str, entry: dict[str, Any], study: Study, others: dict[str, Study], asking: tuple[str, ...]
) -> MethodSpec:
    """A method whose cells are another study's; `others` holds those that have been read.

    Raises DpmcError unless that study runs this method on the same models, with the same δ.
    """
    where, name = f"{study.path}: methods: {label}", entry["from_study"]
    extra = [key for key in entry if key not in ("from_study", "models")]
    if extra:
        raise DpmcError(f"{where}: {extra[0]}: not beside from_study, but for models: {name} says the rest")
    if name not in others:
        if name in (*asking, study.name):
            raise DpmcError(f"{where}: from_study: {name!r} takes cells from this study, or is this study")
        file = study.path.parent / f"{name}.yaml"
        if Path(name).name != name or not file.is_file():
            known = ", ".join(sorted(one.stem for one in study.path.parent.glob("*.yaml")))
            raise DpmcError(f"{where}: from_study: {name!r} is unknown; known: {known}")
        others[name] = load_study(file, (*asking, study.name))
    other = others[name]
    found = other.methods.get(label)
    if found is None or found.from_study:
        runs = ", ".join(known.label for known in other.methods.values() if not known.from_study)
        raise DpmcError(f"{where}: from_study: {name!r} does not run this method; it runs {runs}")
    chosen = tuple(entry.get("models", (model for model in study.models if model in found.models)))
    for model in chosen:
        _known(study.models, f"methods: {label}: models", model, study.path)
        if model not in found.models:
            raise DpmcError(f"{where}: models: {name!r} does not run it on {model!r}")
        _check_same_cells(f"{where}: from_study: {name!r}", model, study, other, bool(found.epsilons))
    if not chosen:
        raise DpmcError(f"{where}: from_study: {name!r} runs it on none of this study's models")
    return replace(found, models=chosen, from_study=name)


def _check_same_cells(where: str, model: str, study: Study, other: Study, own_epsilons: bool) -> None:
    """Raise DpmcError where a model, its data or its privacy differ between two studies.

    `own_epsilons`: the method has its own, whatever the models' are.
    """
    ours, theirs = study.models[model], other.models[model]
    for what, one, two in (
        ("model", ours.model, theirs.model),
        ("data", ours.data, theirs.data),
        ("n", ours.n, theirs.n),
        ("start", ours.start, theirs.start),
        ("delta", study.delta, other.delta),
        ("epsilon_kind", study.epsilon_kind, other.epsilon_kind),
        ("chains", study.chains, other.chains),
    ):
        if one != two:
            raise DpmcError(f"{where}: {what} of {model} is {two!r} there and {one!r} here")
    missing = [epsilon for epsilon in ours.epsilons if epsilon not in theirs.epsilons]
    if missing and not own_epsilons:
        raise DpmcError(f"{where}: epsilons of {model}: {missing[0]} is not among those there")


def _check_lengths(study: Study) -> None:
    """Raise DpmcError for a cell that nothing ends: neither ε = inf nor ε per iteration is a budget."""
    for model, method, epsilon in study.cells():
        if study.iterations(model, method) is None and (epsilon == "inf" or study.epsilon_kind != "total"):
            which = "epsilon = inf" if epsilon == "inf" else "an epsilon per iteration"
            raise DpmcError(
                f"{study.path}: models: {model}: iterations: missing, and {method} has none of its own; "
                f"{which} is no budget that would end a chain"
            )


def _check_numbers(study: Study) -> None:
    """Raise DpmcError for a δ that is none, and for more start points than can be made."""
    try:
        for spec in study.models.values():
            study.delta_for(spec.n or MOST)
    except ValueError as error:
        raise DpmcError(f"{study.path}: delta: {error}") from None
    if study.start_points > MOST_STARTS:
        raise DpmcError(
            f"{study.path}: seeds, chains: {study.start_points} start points, one a chain of each seed, "
            f"must be at most {MOST_STARTS}"
        )


#: Contents of studies and of their files of hyperparameters that fit each other; kept, as `_checked` does.
_fitting: set[tuple[Path, bytes, tuple[bytes | None, ...]]] = set()


def _check_settings(study: Study, content: Any, text: bytes) -> None:
    """Raise DpmcError for `settings_of` that names nothing, and for wrong hyperparameters and options.

    Hyperparameters that stand nowhere are not missed: they may be given on the command line.
    """
    files = [study.settings_file(tuned) for tuned in (False, True)]
    texts = {path: _read(path) for path in files if path.is_file()}
    key = (study.path, text, tuple(texts.get(path) for path in files))
    if key in _fitting:
        return
    if "settings_of" in content and not texts:
        raise DpmcError(f"{study.path}: settings_of: {study.settings_of!r}: there is no file {files[0]}")
    tables = [_settings(of, path) for path, of in texts.items()]
    models = {label for table in tables for method in table.values() for label in method}
    for kind, known in (("methods", {label for table in tables for label in table}), ("models", models)):
        for label, entry in content[kind].items():
            name = (entry or {}).get("settings_of")
            if name is not None and name not in known:
                where = " and ".join(map(str, texts)) or files[0]
                raise DpmcError(
                    f"{study.path}: {kind}: {label}: settings_of: {name!r} is not in {where}; "
                    f"known: {', '.join(sorted(known))}"
                )
    for model, method in dict.fromkeys((model, method) for model, method, _ in study.cells()):
        _check_pair(study, model, method)
    _fitting.add(key)


def _check_pair(study: Study, model: str, method: str) -> None:
    """Raise DpmcError for wrong hyperparameters and options of a method on a model."""
    from dpmc.models import definition

    values: dict[str, Any] | None
    try:
        values, source = study.pinned_hyperparameters(model, method)
    except MissingSettings:
        values, source = None, ""
    name = study.model(model).model
    # A model of one's own is a program: reading a study does not run it.
    dimension = None if ":" in name else len(definition(name).true_theta)
    first = {epsilon == "inf": epsilon for epsilon in reversed(study.epsilons(model, method))}
    for epsilon in first.values():
        study.check_algorithm(method, values, dimension, source, epsilon)


def _check_models(models: dict[str, ModelSpec], path: Path) -> None:
    from dpmc.models import MODELS

    for label, spec in models.items():
        if ":" not in spec.model and spec.model not in MODELS:
            raise DpmcError(
                f"{path}: models: {label}: model: {spec.model!r} is unknown; known: {', '.join(MODELS)}"
            )


def _check_figures(figures: list[str], path: Path) -> None:
    from dpmc.figures import FIGURES

    for name in figures:
        if name not in FIGURES:
            raise DpmcError(f"{path}: figures: {name!r} is unknown; known: {', '.join(FIGURES)}")


def _known(table: dict[str, Any], what: str, label: str, path: Path) -> Any:
    if label not in table:
        raise DpmcError(f"{path}: {what}: {label!r} is not in this study; it has {', '.join(table)}")
    return table[label]


#: The loader in C, eight times as fast, where PyYAML was built with it.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

MOST_NESTED = 20  #: a value within a value, so many times
MOST_VALUES = 100_000  #: of a file; a name (&x) that is used again counts each time


class _StrictLoader(_Loader):  # type: ignore[misc]
    """YAML whose keys are texts that stand once, and whose numbers are plain: 1_0, 0x10 and 1:30 are words.

    YAML 1.1 takes 7e-05 for a word; everyone else, YAML 1.2 among them, for a number.
    """

    yaml_implicit_resolvers = {
        first: [
            (tag, pattern)
            for tag, pattern in resolvers
            if tag.split(":")[-1] not in ("int", "float", "timestamp")
        ]
        for first, resolvers in _Loader.yaml_implicit_resolvers.items()
    }


def _mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[str, Any]:
    loader.flatten_mapping(node)
    result: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str):
            raise yaml.YAMLError(f"line {key_node.start_mark.line + 1}: key {shown(key)} must be a text")
        if key in result:
            raise yaml.YAMLError(f"line {node.start_mark.line + 1}: key {key!r} stands twice")
        result[key] = loader.construct_object(value_node, deep=True)
    return result


def _number(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int | float:
    text = str(loader.construct_scalar(node))
    if text.lstrip("+-").lower() in (".inf", ".nan"):
        return float(text.replace(".", ""))
    return whole(text) if node.tag.endswith(":int") else decimal(text)


for _tag, _pattern, _first in (
    ("int", r"[-+]?(0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("float", r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", "-+."),
):
    _StrictLoader.add_constructor(f"tag:yaml.org,2002:{_tag}", _number)
    _StrictLoader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(f"^({_pattern})$", re.ASCII), list(_first)
    )
_StrictLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def read_yaml(path: Path) -> Any:
    """Read a YAML file.

    Raises DpmcError if it is missing, is not YAML, holds a key twice or one that is no text, or is nested
    deeply.
    """
    return _parse(_read(path), path)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise DpmcError(f"{path}: no such file") from None
    except OSError as error:
        raise DpmcError(f"{path}: cannot be read ({error.strerror})") from None


def _parse(text: bytes, path: Path) -> Any:
    try:
        content = yaml.load(text.decode(), _StrictLoader)
    except RecursionError:
        raise DpmcError(f"{path}: is nested more than {MOST_NESTED} deep") from None
    except (yaml.YAMLError, ValueError, TypeError) as error:
        raise DpmcError(f"{path}: is not valid YAML: {' '.join(str(error).split())}") from None
    level, count = [content], 0
    for _ in range(MOST_NESTED):
        inner = [value for value in level if isinstance(value, dict | list)]
        count += sum(map(len, inner))
        if count > MOST_VALUES:
            raise DpmcError(f"{path}: holds more than {MOST_VALUES} values")
        level = [part for value in inner for part in (value.values() if isinstance(value, dict) else value)]
        if not level:
            return content
    raise DpmcError(f"{path}: is nested more than {MOST_NESTED} deep")


@functools.lru_cache(maxsize=32)
def _checked(text: bytes, path: Path) -> Any:
    """Parse a study's file and validate it against the schema. Cached; treat as read-only."""
    content = _parse(text, path)
    _check_schema(content, path)
    return content


@functools.cache
def _validator() -> Any:
    import jsonschema

    schema = read_yaml(Path(__file__).parent / "schemas" / "study.schema.yaml")
    usual = jsonschema.Draft202012Validator
    # JSON has one kind of numbers, where 1e5 is an integer: a count has to be a count.
    types = usual.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    ).redefine("number", lambda _, value: type(value) in (int, float) and value == value)
    return jsonschema.validators.extend(usual, type_checker=types)(schema)


def _check_schema(content: Any, path: Path) -> None:
    errors = sorted(_validator().iter_errors(content), key=lambda error: str(error.absolute_path))
    if errors:
        raise DpmcError(f"{path}: {_explain(errors[0])}")


def _explain(error: Any) -> str:
    """One line for a schema error: key, value and rule."""
    where = ": ".join(str(part) for part in error.absolute_path) or "top level"
    rule = error.validator
    if rule == "additionalProperties":
        known = error.schema.get("properties", {})
        unknown = [key for key in error.instance if key not in known]
        return f"{where}: unknown key {shown(unknown[0])}; known: {', '.join(known)}"
    if rule == "required":
        missing = [key for key in error.validator_value if key not in error.instance]
        return f"{where}: key {missing[0]!r} is missing"
    rules = {
        "enum": f"must be one of {error.validator_value}",
        "type": f"must be of type {error.validator_value}",
        "minimum": f"must be at least {error.validator_value}",
        "maximum": f"must be at most {error.validator_value}",
        "exclusiveMinimum": f"must be greater than {error.validator_value}",
        "exclusiveMaximum": f"must be less than {error.validator_value}",
        "pattern": f"must match {error.validator_value}",
        "const": f"must be {error.validator_value}",
        "minItems": f"must have at least {error.validator_value} entries",
        "minProperties": f"must have at least {error.validator_value} entries",
    }
    text = rules.get(rule, f"breaks the rule {rule}")
    if rule == "anyOf":
        text = error.schema.get("description", text)
    return f"{where}: {shown(error.instance)} {text}"


def sources_version(*rooms: str) -> str:
    """A hash of the sources of some rooms of the package; makes Snakemake redo cheap steps."""
    digest = hashlib.sha256()
    for room in rooms:
        place = Path(__file__).parent / room
        for source in sorted(place.rglob("*.py") if place.is_dir() else [place]):
            digest.update(source.read_bytes())
    return digest.hexdigest()[:12]
