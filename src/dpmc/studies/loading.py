"""Finding, reading and checking a study: its file, defaults, and cells of other studies."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from dpmc.algorithms import ALGORITHMS
from dpmc.common.errors import DpmcError
from dpmc.common.files import is_table, stem
from dpmc.common.shipped import shipped
from dpmc.common.values import MOST, MOST_STARTS, shown
from dpmc.models import MODELS, definition
from dpmc.privacy import accountants
from dpmc.studies.documents import Document, read_document
from dpmc.studies.figures import TABLE_NAMES, check_own, known_figures, own_figures
from dpmc.studies.hyperparameters import MissingSettings, check_hyperparameters, pinned_hyperparameters
from dpmc.studies.keys import Changes, MethodSpec, ModelSpec, RepeatedSpec, StudyKeys, validated
from dpmc.studies.study import Repeated, Study, StudyMethod, StudyModel

PLACES = "DPMC_STUDIES"  #: environment variable: files and folders of studies, before the usual places


def study_files(places: str | list[str]) -> dict[str, Path]:
    """Return name -> file of studies in one or several places: files, or folders of files."""
    files: dict[str, Path] = {}
    asked = places if isinstance(places, list) else [places]
    if not all(isinstance(place, str) for place in asked):
        raise DpmcError(f"studies: {shown(places)} must be a file, a folder, or a list of them")
    for place in map(Path, asked):
        if not place.exists():
            raise DpmcError(f"studies: {place}: no such file or folder")
        for file in sorted(place.glob("*.yaml")) if place.is_dir() else [place]:
            if files.setdefault(file.stem, file) != file:
                raise DpmcError(f"studies: {file.stem}: is both {files[file.stem]} and {file}")
    return files


def _known_studies() -> dict[str, Path]:
    """Return name -> file of all studies that are found by name: in DPMC_STUDIES, here, else of dpmc."""
    places = [*os.environ.get(PLACES, "").split(os.pathsep), "config/studies", shipped("config", "studies")]
    known: dict[str, Path] = {}
    for place in map(str, filter(None, places)):
        if Path(place).exists():
            # `known` on the right: earlier places win.
            known = study_files(place) | known
    return known


def find_study(name: str | Path) -> Path:
    """Return the file of a study, a path or the name of a known study, else config/studies/<name>.yaml."""
    if Path(name).suffix == ".yaml":
        return Path(name)
    return _known_studies().get(str(name), Path("config/studies") / f"{name}.yaml")


def load_study(name: str | Path, asking: tuple[str, ...] = ()) -> Study:
    """Read and check a study by name or path, see `find_study`; add its folder to `sys.path`.

    `asking`: studies that reuse its cells, each the next one's. Raises DpmcError naming file, line and rule.
    """
    if not isinstance(name, str | Path):
        raise DpmcError(f"study: {shown(name)} must be the name or the path of one study")
    path = find_study(name)
    if Path(name).suffix != ".yaml" and not path.is_file():
        known = ", ".join(sorted(_known_studies()))
        raise DpmcError(f"--study: {str(name)!r} is unknown; known: {known}, or a path that ends in .yaml")
    return _study(read_document(path), asking)


def study_of(content: dict[str, Any], path: Path = Path("study.yaml")) -> Study:
    """Return the study that a file `path` with these keys would be, checked alike; it need not exist."""
    return _study(Document(path, content, {}), ())


def _study(document: Document, asking: tuple[str, ...]) -> Study:
    """Return the study of a document; raise DpmcError for the first broken rule."""
    keys, path = validated(StudyKeys, document), document.path
    # Modules of users' models and figures may lie beside the study; those of dpmc's studies are found last.
    if (folder := str(path.parent.resolve())) not in sys.path:
        sys.path.insert(0, folder)
    if (folder := str(shipped("config", "studies"))) not in sys.path:
        sys.path.append(folder)
    study = _with_defaults(keys, document)
    others: dict[str, Study] = {}
    for label, spec in keys.methods.items():
        for model in spec.models:
            document.require(model, keys.models, "methods", label, "models")
        if not spec.from_study:
            study.methods[label] = _method(label, spec, keys, document)
            continue
        where, other = ("methods", label, "from_study"), spec.from_study
        # Keys that are ignored would look as if they had an effect.
        for key in spec.model_fields_set - {"from_study", "models"}:
            rule = f"not allowed with from_study, except models: {other} has the other keys"
            document.refuse("methods", label, key, rule=rule)
        if other in (*asking, study.name):
            document.refuse(*where, rule=f"{other!r} takes cells from this study, or is this study")
        if other not in others:
            with document.blamed(*where):
                others[other] = load_study(path.parent / f"{other}.yaml", (*asking, study.name))
        study.methods[label] = _reused_method(label, spec, study, others[other])
    _check_cells(study)
    for label, repeated in keys.repeated.items():
        study.repeated[label] = _repeated(label, repeated, study)
        _check_cells(study.repeated[label].study)
    check_own(study)
    return study


def _with_defaults(keys: StudyKeys, document: Document) -> Study:
    """Return a study with its models and defaults, without methods; raise DpmcError for unknown names."""
    path, tuning, models, methods = document.path, keys.tuning, tuple(keys.models), tuple(keys.methods)
    for figure in keys.figures:
        document.require(figure, [*known_figures(path), *TABLE_NAMES], "figures")
    for kind, named, known in (("methods", tuning.methods, methods), ("models", tuning.models, models)):
        for label in named:
            document.require(label, known, "tuning", kind)
    searched = tuning.methods or (() if tuning.mode == "none" else methods)
    return Study(
        **{key: getattr(keys, key) for key in ("title", "epsilon_kind", "delta", "seeds", "chains")},
        name=path.stem,
        path=path,
        settings_of=keys.settings_of or path.stem,
        tuning=tuning.model_copy(update={"methods": searched, "models": tuning.models or models}),
        models={label: _model(label, spec, keys, document) for label, spec in keys.models.items()},
        methods={},
        # `figures: []` means none.
        figures=keys.figures if "figures" in keys.model_fields_set else tuple(own_figures(path)),
        document=document,
    )


def _model(label: str, spec: ModelSpec, keys: StudyKeys, document: Document) -> StudyModel:
    """Return a model with its defaults; raise DpmcError if it does not exist or its keys conflict."""
    where, name, file = ("models", label), spec.model or label, Path(spec.data)
    if ":" not in name:
        document.require(name, MODELS, *where, "model")
    if not spec.tuning_epsilon and (keys.tuning.mode != "none" or keys.tuning.methods):
        document.refuse(*where, rule="key 'tuning_epsilon' is missing")
    own_rows = is_table(file)
    if own_rows and spec.n is not None:
        document.refuse(*where, "n", rule=f"{spec.n} must be left out with a file of rows")
    if spec.columns and not own_rows:
        document.refuse(*where, "columns", rule="only with a file of rows")
    defaults = {
        "model": name,
        "settings_of": spec.settings_of or label,
        "tuning_epsilon": spec.tuning_epsilon or "inf",
        "data": stem(file) if own_rows else spec.data,
        "rows_file": document.path.parent / file if own_rows else None,
    }
    # Not validated again: `spec` has been, and defaults need not satisfy the rules of the file.
    return StudyModel.model_construct(label=label, **{**dict(spec), **defaults})


def _repeated(label: str, spec: RepeatedSpec, study: Study) -> Repeated:
    """Return repeated runs with their defaults; raise DpmcError for an unknown model or method."""
    document, where, name = study.document, ("repeated", label), spec.model or label
    if study.tuning.mode == "search":
        document.refuse(*where, rule="not with tuning: {mode: search}, whose settings are not known before")
    if ":" not in name:
        document.require(name, [*study.models, *MODELS], *where, "model")
    own = [known.label for known in study.methods.values() if not known.from_study]
    for method in spec.methods:
        document.require(method, study.methods, *where, "methods")
    known = study.models.get(name) or StudyModel(
        label=label, model=name, settings_of=name, epsilons=spec.epsilons, tuning_epsilon="inf"
    )
    given = {key: value for key in ("n", "start", "settings_of") if (value := getattr(spec, key))}
    fresh = {"label": label, "epsilons": spec.epsilons, "data": "fresh-0", "rows_file": None, "columns": ()}
    model = known.model_copy(update=fresh | given)
    runs = {"models": (label,), "from_study": "", "reused": {}}
    methods = {method: study.methods[method].model_copy(update=runs) for method in spec.methods or own}
    alone = replace(study, models={label: model}, methods=methods, seeds=1, repeated={}, figures=())
    return Repeated(alone, spec.sets)


def _method(label: str, spec: MethodSpec, keys: StudyKeys, document: Document) -> StudyMethod:
    """Return a method with its defaults; raise DpmcError for an unknown algorithm or accountant."""
    algorithm = spec.algorithm or label
    document.require(algorithm, ALGORITHMS, "methods", label, "algorithm")
    document.require(spec.accountant, sorted(accountants.names()), "methods", label, "accountant")
    defaults = {
        "algorithm": algorithm,
        "settings_of": spec.settings_of or algorithm,
        "hyperparameters": spec.hyperparameters or keys.hyperparameters,
        "models": spec.models or tuple(keys.models),
    }
    return StudyMethod.model_construct(label=label, **{**dict(spec), **defaults})


def _reused_method(label: str, spec: MethodSpec, study: Study, other: Study) -> StudyMethod:
    """Return a method of another study; raise DpmcError unless models, data and budgets are the same."""

    def refuse(rule: str) -> NoReturn:
        study.document.refuse("methods", label, "from_study", rule=f"{other.name!r} {rule}")

    method = other.methods.get(label)
    if method is None or method.from_study:
        runs = ", ".join(known.label for known in other.methods.values() if not known.from_study)
        refuse(f"does not run this method; it runs {runs}")
    chosen = spec.models or tuple(model for model in study.models if model in method.models)
    if not chosen:
        refuse("runs it on none of this study's models")
    of_rows = [*StudyModel.that_change(Changes.CHAINS), *StudyModel.that_change(Changes.ROWS)]
    of_run = [*StudyKeys.that_change(Changes.CHAINS), *StudyKeys.that_change(Changes.CHAINS_IF_SET)]
    epsilons: dict[str, tuple[str, ...]] = {}
    for model in chosen:
        if model not in method.models:
            refuse(f"does not run it on {model!r}")
        ours, theirs = study.models[model], other.models[model]
        # A comparison with chains of other data or another budget would be wrong.
        for this, that, keys in ((ours, theirs, of_rows), (study, other, of_run)):
            for key in keys:
                here, there = getattr(this, key), getattr(that, key)
                if here != there:
                    refuse(f"has {key} {there!r} for {model}, this study has {here!r}")
        epsilons[model] = method.epsilons or tuple(e for e in ours.epsilons if e in theirs.epsilons)
        if not epsilons[model]:
            refuse(f"has no epsilon {ours.epsilons[0]} for {model}, nor another of this study")
    taken = {"from_study": other.name, "settings_study": other.settings_of, "reused": epsilons}
    return method.model_copy(update={"models": chosen, **taken})


def _check_cells(study: Study) -> None:
    """Raise DpmcError for too many chains, cells without an end, an invalid δ, or wrong hyperparameters.

    Missing hyperparameters are allowed: they may be given on the command line.
    """
    if study.seeds * study.chains > MOST_STARTS:
        rule = f"must be at most {MOST_STARTS // study.chains} with {study.chains} chains a run"
        study.document.refuse("seeds", rule=f"{study.seeds} {rule}")
    for model, method, epsilon in study.cells():
        # Neither ε = inf nor ε per iteration is a budget that ends a chain.
        if study.iterations(model, method) is None and (epsilon == "inf" or study.epsilon_kind != "total"):
            which = "epsilon = inf" if epsilon == "inf" else "an epsilon per iteration"
            rule = f"missing, and {method} has none of its own; {which} is not a budget that ends a chain"
            study.document.refuse("models", model, "iterations", rule=rule)
    for spec in study.models.values():  # without `n` here, and with δ as a number, it is checked later
        if spec.n or isinstance(study.delta, str):
            with study.document.blamed("delta"):
                study.delta_for(spec.n or MOST)
    for model, method in study.pairs():
        try:
            given = pinned_hyperparameters(study, model, method)
        except MissingSettings:
            given = None
        name = study.model(model).model
        # A user's model is a program: reading a study does not run it.
        dimension = None if ":" in name else len(definition(name).true_theta)
        # The first ε of each kind: all budgets are checked alike.
        first = {epsilon == "inf": epsilon for epsilon in reversed(study.epsilons(model, method))}
        for epsilon in first.values():
            check_hyperparameters(study, method, given, dimension, epsilon)
