"""A study's keys: one-line refusals that name the line of the file."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpmc.common.errors import DpmcError
from dpmc.data import tables as files
from dpmc.data.datasets import DATASET_PATTERN
from dpmc.studies import load_study
from dpmc.studies.__main__ import tables
from dpmc.studies.documents import read_document
from dpmc.studies.keys import DATA_SETS, OWN_ROWS, MethodSpec, ModelSpec, StudyKeys, Tuning, described

INT23 = 10**23
STUDY = """\
# a comment
title: lines
delta: 0.1/n
seeds: 2
tuning:
  mode: none
models:
  circle: &circle
    epsilons: [0.5, 1]
  twin: {<<: *circle, model: circle}
methods:
  dp-penalty: {}
  dp-hmc:
    options:
      steps: 5
    models: [circle]
figures: []
"""


def write(folder: Path, old: str = "", new: str = "") -> Path:
    assert old in STUDY
    path = folder / "lines.yaml"
    path.write_text(STUDY.replace(old, new, 1))
    return path


def refusal(path: Path) -> str:
    with pytest.raises(DpmcError) as caught:
        load_study(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_correct_study_is_accepted(tmp_path: Path) -> None:
    study = load_study(write(tmp_path))
    assert study.model("twin").epsilons == ("0.5", "1") and study.model("twin").model == "circle"
    assert (study.chains, study.tuning.trials, study.epsilon_kind) == (1, 100, "total")
    assert study.method("dp-penalty").models == ("circle", "twin")
    assert study.method("dp-hmc").options == {"steps": 5} and study.settings_of == "lines"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seeds: 2", "seeds: two", "line 4: seeds: 'two' must be an integer"),
        ("seeds: 2", "seeds: 0", "line 4: seeds: 0 must be at least 1"),
        ("seeds: 2", "seeds:", "line 4: seeds: None must be a value, or the key be left out"),
        ("seeds: 2", "", "key 'seeds' is missing"),
        ("seeds: 2", "sedes: 2", "line 4: sedes: unknown key; known: title, epsilon_kind, delta, seeds, "),
        ("title: lines", "title: ''", "line 2: title: '' must not be empty"),
        ("delta: 0.1/n", "delta: 2", "line 3: delta: 2 must be a number in (0, 1), or a text such as 0.1/n"),
        ("mode: none", "mode: later", "line 6: tuning: mode: 'later' must be 'pinned', 'search' or 'none'"),
        ("  mode: none", "  mode: none\n  models: [moon]", "line 7: tuning: models: 'moon' is unknown"),
        ("[0.5, 1]", "[0.5, -1]", "line 9: models: circle: epsilons: 1: -1 must be greater than 0"),
        ("[0.5, 1]", "[0.5, 0.50]", "line 9: models: circle: epsilons: 0.5 stands twice"),
        ("[0.5, 1]", "1", "line 9: models: circle: epsilons: 1 must be a list"),
        ("[0.5, 1]", "[]", "line 9: models: circle: epsilons: [] must have at least 1 entry"),
        ("epsilons: [0.5, 1]", "n: 5", "line 8: models: circle: key 'epsilons' is missing"),
        ("model: circle", "n: 1.5", "line 10: models: twin: n: 1.5 must be an integer"),
        ("model: circle", "label: x", "line 10: models: twin: label: unknown key; known: model, data, "),
        ("model: circle", "model: cirlce", "line 10: models: twin: model: 'cirlce' is unknown; known: flat"),
        ("  twin:", "  Twin:", "line 10: models: Twin: 'Twin' must match ^[a-z0-9]"),
        ("dp-penalty: {}", "dp-penalty: []", "line 12: methods: dp-penalty: [] must be a mapping"),
        ("dp-penalty: {}", "dp-penalty: {thin: 0}", "line 12: methods: dp-penalty: thin: 0 must be at least"),
        ("dp-penalty: {}", "dp-penalties: {}", "methods: dp-penalties: algorithm: 'dp-penalties' is unknown"),
        ("steps: 5", "stepz: 5", "line 14: methods: dp-hmc: options: stepz: unknown hyperparameter"),
        ("models: [circle]", "models: [moon]", "line 16: methods: dp-hmc: models: 'moon' is unknown"),
        ("figures: []", "figures: [mmd]", "line 17: figures: 'mmd' is unknown; known: "),
        ("figures: []", "figures: {a: b}", "line 17: figures: {'a': 'b'} must be a list"),
        ("seeds: 2", "title: again", "is not valid YAML: line 4: key 'title' stands twice"),
        ("[0.5, 1]", "[0.5, 1", "is not valid YAML: while parsing a flow sequence at line 9, column 15"),
    ],
)  # fmt: skip
def test_invalid_keys_are_refused_with_a_one_line_message(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    error = refusal(write(tmp_path, old, new))
    assert error.startswith(f"{tmp_path}/lines.yaml: ") and message in error


def study(**values: Any) -> Callable[[Any], None]:
    return lambda content: content.update(values)


def model(**values: Any) -> Callable[[Any], None]:
    return lambda content: content["models"]["circle"].update(values)


def method(**values: Any) -> Callable[[Any], None]:
    return lambda content: content["methods"]["dp-hmc"].update(values)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (method(options={"steps": "many"}), ("options: steps", "'many'")),
        (method(options={"steps": 2.5}), ("options: steps", "2.5", "whole number")),
        (method(options={"mass": [1, 2, 3]}), ("options: mass", "3 values", "2 parameters")),
        (method(options={"tau_l": -1}), ("options: tau_l", "-1", "greater than 0")),
        (method(options={"reuse_gradients": "yes please"}), ("reuse_gradients", "true or false")),
        (method(options={"jitter": "sobol"}), ("jitter", "'sobol'", "halton")),
        (method(options=[1]), ("options", "mapping")),
        (method(accountant="rpd"), ("accountant", "'rpd'", "tight")),
        (method(settings_of="nope"), ("methods: dp-hmc: settings_of: 'nope'", "known")),
        (model(settings_of="nope"), ("models: circle: settings_of: 'nope'", "known")),
        (study(settings_of="nope"), ("settings_of: 'nope'", "no file", "nope.yaml")),
        (model(epsilons=["inf"]), ("circle: iterations: missing", "epsilon = inf")),
        (method(epsilons=["inf"]), ("iterations: missing", "dp-hmc")),
        (study(chains=10**9), ("chains", "1000000000", "at most 100000")),
        (study(seeds=10**5, chains=10**5), ("seeds, chains", "10000000000 start points")),
        (study(seeds=2.0), ("seeds", "2.0", "integer")),
        (study(seeds=True), ("seeds", "True", "integer")),
        (model(n=INT23), ("circle: n", "at most 1000000000")),
        (model(iterations=INT23), ("circle: iterations", "at most 1000000000")),
        (method(thin=INT23), ("dp-hmc: thin", "at most 1000000000")),
        (study(delta=float("nan")), ("delta", "nan", "(0, 1)")),
        (study(delta="1.2.3/n"), ("delta", "'1.2.3'")),
        (study(delta="0/n"), ("delta: 0/n", "greater than 0 and less than 1/n")),
        (study(delta="1/n"), ("delta: 1/n", "greater than 0 and less than 1/n")),
        (lambda content: (study(delta=1e-5)(content), model(n=100_000)(content)),
         ("line ", "delta: 1e-05 for n = 100000", "less than 1/n = 1e-05")),
        (model(epsilons=["٣"]), ("circle: epsilons", "'٣'")),
        (model(epsilons=[float("nan")]), ("circle: epsilons", "nan")),
        (model(tuning_epsilon=10**400), ("circle: tuning_epsilon", "too large")),
        (lambda content: content["models"].update({1: {}}), ("key 1", "text")),
    ],
)  # fmt: skip
def test_values_of_a_study_are_checked_when_it_is_read(
    folder: Path, change: Callable[[Any], None], words: tuple[str, ...]
) -> None:
    path = Path("config/studies/thesis.yaml")
    content = yaml.safe_load(path.read_text())
    change(content)
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    error = refusal(path)
    assert all(word in error for word in ("thesis.yaml", *words)), error


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"steps": 2.5}, ("circle: steps", "2.5", "whole number")),
        ({"steps": INT23}, ("circle: steps", "at most 1000000000")),
        ({"unknown": 1}, ("circle: unknown", "unknown hyperparameter")),
        ([1], ("dp-hmc: circle", "mapping")),
    ],
)
def test_hyperparameters_are_checked_with_the_study(folder: Path, values: Any, words: tuple[str]) -> None:
    """Those of all methods: a run would find them hours later."""
    path = Path("config/hyperparameters/thesis.yaml")
    known = yaml.safe_load(path.read_text())
    before = known["dp-hmc"]["circle"]
    known["dp-hmc"]["circle"] = {**before, **values} if isinstance(values, dict) else values
    path.write_text(yaml.safe_dump(known))
    error = refusal(Path("config/studies/thesis.yaml"))
    assert all(word in error for word in ("hyperparameters/thesis.yaml: line", *words)), error


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"calibration": "none"}, ("options: calibration", "'none'", "classical, exact")),
        ({"clip": "wide"}, ("options: clip", "'wide'")),
    ],
)
def test_options_where_epsilon_is_per_iteration(folder: Path, options: Any, words: tuple[str]) -> None:
    path = Path("config/studies/dp-fast-mh.yaml")
    content = yaml.safe_load(path.read_text())
    content["methods"]["dp-penalty"] = {"options": options}
    path.write_text(yaml.safe_dump(content))
    error = refusal(path)
    assert all(word in error for word in ("dp-fast-mh.yaml", *words)), error


def test_lines_of_keys(tmp_path: Path) -> None:
    document = read_document(write(tmp_path))
    for *keys, line in (("models", "twin", "model", 10), ("models", "twin", "epsilons", 9), ("title", 2)):
        assert document.place(*keys) == ": ".join([str(document.path), f"line {line}", *keys])
    assert document.place("models", "moon").endswith(": line 7: models: moon"), "the last key that is there"
    assert document.place() == str(document.path)


@pytest.mark.parametrize(
    "name", ["published", "tuning", "fresh-12", "fashion-79", "mnist-79-own", "fresh-", "x"]
)
def test_the_data_sets_are_those_that_are_made(name: str) -> None:
    assert bool(re.fullmatch(DATA_SETS, name)) == bool(re.fullmatch(DATASET_PATTERN, name))


def test_the_files_of_rows_are_those_that_can_be_read() -> None:
    assert OWN_ROWS == files.SUFFIXES


def test_every_key_is_in_the_tables() -> None:
    text = tables()
    for declaration in (StudyKeys, Tuning, ModelSpec, MethodSpec):
        for key in described(declaration):
            assert re.search(rf"^\| `{key}` \| .+ \| .+ \| .*\|$", text, re.M), key
    assert "label" not in described(ModelSpec)
