"""Finding, reading and checking a study: its file, defaults, and cells of other studies."""

import functools
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

from dpmc.common.errors import DpmcError
from dpmc.common.shipped import shipped
from dpmc.common.values import MOST, MOST_STARTS, shown
from dpmc.studies.documents import parse, read_bytes
from dpmc.studies.figures import check_own, known_figures, own_figures
from dpmc.studies.keys import OWN_ROWS, MethodSpec, ModelSpec, validated
from dpmc.studies.study import MissingSettings, Study, hyperparameter_table, search_folder
from dpmc.studies.table_names import NAMES

PLACES = "DPMC_STUDIES"  #: environment variable: files and folders of studies, before the usual places


def study_files(places: str | list[str]) -> dict[str, Path]:
    """Return name -> file of the studies in these places (one or several): files, or folders of files.

    Raises DpmcError for a place that does not exist, and for two studies of one name.
    """
    found: dict[str, Path] = {}
    asked = places if isinstance(places, list) else [places]
    if not all(isinstance(place, str) for place in asked):
        raise DpmcError(f"studies: {shown(places)} must be a file, a folder, or a list of them")
    for place in map(Path, asked):
        if not place.exists():
            raise DpmcError(f"studies: {place}: no such file or folder")
        for file in sorted(place.glob("*.yaml")) if place.is_dir() else [place]:
            if found.setdefault(file.stem, file) != file:
                raise DpmcError(f"studies: {file.stem}: is both {found[file.stem]} and {file}")
    return found


def find_study(name: str | Path) -> Path:
    """Return the file of a study: `name` if it ends in .yaml, else <name>.yaml in the first place with it.

    The places are those of the environment variable DPMC_STUDIES, config/studies in the current folder, and
    the studies that come with dpmc.
    """
    if Path(name).suffix == ".yaml":
        return Path(name)
    if asked := os.environ.get(PLACES):
        known = study_files(asked.split(os.pathsep))
        if str(name) in known:
            return known[str(name)]
    usual = Path("config/studies") / f"{name}.yaml"
    coming = shipped("config", "studies") / f"{name}.yaml"
    return coming if coming.is_file() and not usual.is_file() else usual


def _known() -> list[str]:
    """Return the names of the studies in all places of `find_study`."""
    asked = filter(None, os.environ.get(PLACES, "").split(os.pathsep))
    places = [*asked, "config/studies", str(shipped("config", "studies"))]
    return sorted({name for place in places if Path(place).exists() for name in study_files(place)})


def load_study(name: str | Path, asking: tuple[str, ...] = ()) -> Study:
    """Read and check a study by name or path, see `find_study`.

    `asking`: the chain of studies that reuse its cells, if it is read for them.

    Raises DpmcError naming file, line, key, value and rule.
    """
    path = find_study(name)
    if Path(name).suffix != ".yaml" and not path.is_file():
        known = ", ".join(_known())
        raise DpmcError(f"--study: {str(name)!r} is unknown; known: {known}, or a path that ends in .yaml")
    study = _declared(read_bytes(path), path)
    study = study.model_copy(update={"figures": _figures(study)})
    if any(":" in spec.model for spec in study.models.values()):
        search_folder(path.parent)
    others: dict[str, Study] = {}
    methods = {
        label: _of_another(label, spec, study, others, asking) if spec.from_study else spec
        for label, spec in study.methods.items()
    }
    study = study.model_copy(update={"methods": methods})
    check_own(path, study.figures, list(study.models), list(study.methods))
    _check_numbers(study)
    _check_settings(study)
    return study


@functools.lru_cache(maxsize=32)
def _declared(text: bytes, path: Path) -> Study:
    """Parse a study's file, fill in its defaults, and check its names. Cached; treat as read-only."""
    document = parse(text, path)
    study = validated(Study, document)
    about = {"name": path.stem, "path": path, "document": document}
    study = study.model_copy(update={**about, "settings_of": study.settings_of or path.stem})
    models = {label: _model(label, spec, study) for label, spec in study.models.items()}
    methods = {label: _method(label, spec, study) for label, spec in study.methods.items()}
    for key, known in (("methods", methods), ("models", models)):
        for name in getattr(study.tuning, key):
            _check_known(study, name, known, "tuning", key)
    return study.model_copy(update={"models": models, "methods": methods})


def _figures(study: Study) -> tuple[str, ...]:
    """Return the names of a study's figures: those that it lists, else all of its own file."""
    if "figures" not in study.model_fields_set:
        return tuple(own_figures(study.path))
    known = [*known_figures(study.path), *NAMES]
    for name in study.figures:
        _check_known(study, name, known, "figures")
    return study.figures


def _check_known(study: Study, name: str, known: Iterable[str], *keys: str) -> None:
    if name not in known:
        study.document.refuse(*keys, rule=f"{name!r} is unknown; known: {', '.join(known)}")


def _model(label: str, spec: ModelSpec, study: Study) -> ModelSpec:
    """Return a model with its defaults; raise DpmcError if it does not exist or its keys conflict."""
    from dpmc.models import MODELS

    keys = ("models", label)
    name = spec.model or label
    if ":" not in name:
        _check_known(study, name, MODELS, *keys, "model")
    if not spec.tuning_epsilon and (study.tuning.mode != "none" or study.tuning.methods):
        study.document.refuse(*keys, rule="key 'tuning_epsilon' is missing")
    update: dict[str, Any] = {
        "label": label,
        "model": name,
        "settings_of": spec.settings_of or label,
        "tuning_epsilon": spec.tuning_epsilon or "inf",
    }
    if Path(spec.data).suffix in OWN_ROWS:
        if spec.n is not None:
            study.document.refuse(*keys, "n", rule=f"{spec.n} must be left out with a file of rows")
        update |= {"data": Path(spec.data).stem, "rows_file": study.path.parent / spec.data}
    elif spec.columns:
        study.document.refuse(*keys, "columns", rule="only with a file of rows")
    return spec.model_copy(update=update)


def _method(label: str, spec: MethodSpec, study: Study) -> MethodSpec:
    """Return a method with its defaults; raise DpmcError for an unknown algorithm, accountant or model.

    A method of another study is returned unchanged.
    """
    from dpmc.algorithms import ALGORITHMS
    from dpmc.privacy import accountants

    keys = ("methods", label)
    for model in spec.models:
        _check_known(study, model, study.models, *keys, "models")
    if spec.from_study:
        for key in study.document.content["methods"][label]:
            if key not in ("from_study", "models"):
                rule = f"not allowed with from_study, except models: {spec.from_study} has the other keys"
                study.document.refuse(*keys, key, rule=rule)
        return spec
    algorithm = spec.algorithm or label
    _check_known(study, algorithm, ALGORITHMS, *keys, "algorithm")
    _check_known(study, spec.accountant, sorted(accountants.names()), *keys, "accountant")
    return spec.model_copy(
        update={
            "label": label,
            "algorithm": algorithm,
            "settings_of": spec.settings_of or algorithm,
            "models": spec.models or tuple(study.models),
        }
    )


def _of_another(
    label: str, spec: MethodSpec, study: Study, others: dict[str, Study], asking: tuple[str, ...]
) -> MethodSpec:
    """Return a method whose cells are another study's; `others` caches the studies read.

    Raises DpmcError unless that study runs this method on the same models, with the same δ.
    """
    keys, name = ("methods", label, "from_study"), spec.from_study

    def refuse(rule: str) -> NoReturn:
        study.document.refuse(*keys, rule=rule)

    if name not in others:
        if name in (*asking, study.name):
            refuse(f"{name!r} takes cells from this study, or is this study")
        file = study.path.parent / f"{name}.yaml"
        if Path(name).name != name or not file.is_file():
            _check_known(study, name, sorted(one.stem for one in study.path.parent.glob("*.yaml")), *keys)
        others[name] = load_study(file, (*asking, study.name))
    other = others[name]
    found = other.methods.get(label)
    if found is None or found.from_study:
        runs = ", ".join(known.label for known in other.methods.values() if not known.from_study)
        refuse(f"{name!r} does not run this method; it runs {runs}")
    chosen = spec.models or tuple(model for model in study.models if model in found.models)
    for model in chosen:
        if model not in found.models:
            study.document.refuse(*keys[:2], "models", rule=f"{name!r} does not run it on {model!r}")
        _check_same_cells(study.document.place(*keys), model, study, other, bool(found.epsilons))
    if not chosen:
        refuse(f"{name!r} runs it on none of this study's models")
    return found.model_copy(update={"models": chosen, "from_study": name})


def _check_same_cells(where: str, model: str, study: Study, other: Study, own_epsilons: bool) -> None:
    """Raise DpmcError if a model, its data or its privacy differ between two studies.

    `own_epsilons`: the method has its own list of ε, so that the models' lists do not matter.
    """
    ours, theirs = study.models[model], other.models[model]
    kinds = dict.fromkeys(("model", "data", "rows_file", "columns", "n", "start"), (ours, theirs))
    for what, (one, two) in {
        **kinds,
        **dict.fromkeys(("delta", "epsilon_kind", "chains"), (study, other)),
    }.items():
        here, there = getattr(one, what), getattr(two, what)
        if here != there:
            raise DpmcError(
                f"{where}: {other.name!r}: {what} of {model} is {there!r} there and {here!r} here"
            )
    missing = [epsilon for epsilon in ours.epsilons if epsilon not in theirs.epsilons]
    if missing and not own_epsilons:
        raise DpmcError(
            f"{where}: {other.name!r}: epsilons of {model}: {missing[0]} is not among those there"
        )


def _check_numbers(study: Study) -> None:
    """Raise DpmcError for a cell without a limit of iterations, an invalid δ, and too many start points.

    Neither ε = inf nor ε per iteration is a budget that ends a chain.
    """
    for model, method, epsilon in study.cells():
        if study.iterations(model, method) is None and (epsilon == "inf" or study.epsilon_kind != "total"):
            which = "epsilon = inf" if epsilon == "inf" else "an epsilon per iteration"
            rule = f"missing, and {method} has none of its own; {which} is not a budget that ends a chain"
            study.document.refuse("models", model, "iterations", rule=rule)
    for spec in study.models.values():  # without `n` here, and with δ as a number, it is checked later
        if spec.n or isinstance(study.delta, str):
            study.delta_for(spec.n or MOST)
    if study.start_points > MOST_STARTS:
        rule = f"{study.start_points} start points, one per chain and seed, must be at most {MOST_STARTS}"
        raise DpmcError(f"{study.path}: seeds, chains: {rule}")


def _check_settings(study: Study) -> None:
    """Raise DpmcError for an unknown `settings_of`, and for wrong hyperparameters and options.

    Missing hyperparameters are allowed: they may be given on the command line.
    """
    files = [study.settings_file(tuned) for tuned in (False, True)]
    tables = {file: hyperparameter_table(file).content for file in files if file.is_file()}
    content = study.document.content
    if "settings_of" in content and not tables:
        study.document.refuse("settings_of", rule=f"{study.settings_of!r}: there is no file {files[0]}")
    methods = {label for table in tables.values() for label in table}
    models = {label for table in tables.values() for entries in table.values() for label in entries}
    for kind, known in (("methods", methods), ("models", models)):
        for label, entry in content[kind].items():
            name = entry.get("settings_of")
            if name is not None and name not in known:
                where = " and ".join(map(str, tables)) or files[0]
                rule = f"{name!r} is not in {where}; known: {', '.join(sorted(known))}"
                study.document.refuse(kind, label, "settings_of", rule=rule)
    for model, method in dict.fromkeys((model, method) for model, method, _ in study.cells()):
        _check_pair(study, model, method)


def _check_pair(study: Study, model: str, method: str) -> None:
    """Raise DpmcError for wrong hyperparameters and options of a method on a model."""
    from dpmc.models import definition

    values: dict[str, Any] | None
    try:
        values, source = study.pinned_hyperparameters(model, method)
    except MissingSettings:
        values, source = None, ""
    name = study.model(model).model
    # A user's model is a program: reading a study does not run it.
    dimension = None if ":" in name else len(definition(name).true_theta)
    first = {epsilon == "inf": epsilon for epsilon in reversed(study.epsilons(model, method))}
    for epsilon in first.values():
        study.check_algorithm(method, values, dimension, source, epsilon)
