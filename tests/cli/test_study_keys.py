"""A study's keys: one-line refusals that name the line of the file."""

import re
from pathlib import Path

import pytest

from dpmc.common.errors import DpmcError
from dpmc.data import tables as files
from dpmc.data.datasets import DATASET_PATTERN
from dpmc.studies import load_study
from dpmc.studies.__main__ import tables
from dpmc.studies.documents import read_document
from dpmc.studies.keys import DATA_SETS, OWN_ROWS, MethodSpec, ModelSpec, StudyKeys, Tuning

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


def test_a_correct_study_is_accepted(tmp_path) -> None:
    study = load_study(write(tmp_path))
    assert study.model("twin").epsilons == ("0.5", "1") and study.model("twin").model == "circle"
    assert (study.chains, study.tuning.trials, study.epsilon_kind) == (1, 100, "total")
    assert study.method("dp-penalty").models == ("circle", "twin")
    assert study.method("dp-hmc").options == {"steps": 5} and study.settings_of == "lines"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seeds: 2", "seeds: two", "line 4: seeds: 'two' must be an integer"),
        ("seeds: 2", "seeds:", "line 4: seeds: None must be a value, or the key be left out"),
        ("seeds: 2", "", "key 'seeds' is missing"),
        ("seeds: 2", "sedes: 2", "line 4: sedes: unknown key; known: title, epsilon_kind, delta, seeds, "),
        ("title: lines", "title: ''", "line 2: title: '' must not be empty"),
        ("delta: 0.1/n", "delta: 2", "line 3: delta: 2 must be a number in (0, 1), or a text such as 0.1/n"),
        ("mode: none", "mode: later", "line 6: tuning: mode: 'later' must be 'pinned', 'search' or 'none'"),
        ("mode: none", "mod: none", "line 6: tuning: mod: unknown key; known: mode, seeds, trials, methods"),
        ("  mode: none", "  mode: none\n  models: [moon]", "line 7: tuning: models: 'moon' is unknown"),
        ("[0.5, 1]", "[0.5, -1]", "line 9: models: circle: epsilons: 1: -1 must be greater than 0"),
        ("[0.5, 1]", "[0.5, 0.50]", "line 9: models: circle: epsilons: 0.5 stands twice"),
        ("[0.5, 1]", "1", "line 9: models: circle: epsilons: 1 must be a list"),
        ("[0.5, 1]", "[]", "line 9: models: circle: epsilons: [] must have at least 1 entry"),
        ("epsilons: [0.5, 1]", "n: 5", "line 8: models: circle: key 'epsilons' is missing"),
        ("model: circle", "n: 1.5", "line 10: models: twin: n: 1.5 must be an integer"),
        ("model: circle", "label: x", "line 10: models: twin: label: unknown key; known: model, data, "),
        ("model: circle", "rows_file: x", "line 10: models: twin: rows_file: unknown key"),
        ("model: circle", "model: cirlce", "line 10: models: twin: model: 'cirlce' is unknown; known: flat"),
        ("  twin:", "  Twin:", "line 10: models: Twin: 'Twin' must match ^[a-z0-9]"),
        ("dp-penalty: {}", "dp-penalty: []", "line 12: methods: dp-penalty: [] must be a mapping"),
        ("dp-penalty: {}", "dp-penalty: {clip: 1}", "line 12: methods: dp-penalty: clip: unknown key"),
        ("dp-penalty: {}", "dp-penalty: {thin: 0}", "line 12: methods: dp-penalty: thin: 0 must be at least"),
        ("dp-penalty: {}", "dp-penalties: {}", "methods: dp-penalties: algorithm: 'dp-penalties' is unknown"),
        ("steps: 5", "steps: 2.5", "line 14: methods: dp-hmc: options: steps: 2.5 must be a whole number"),
        ("steps: 5", "stepz: 5", "line 14: methods: dp-hmc: options: stepz: unknown hyperparameter"),
        ("models: [circle]", "models: [moon]", "line 16: methods: dp-hmc: models: 'moon' is unknown"),
        ("figures: []", "figures: [mmd]", "line 17: figures: 'mmd' is unknown; known: "),
        ("figures: []", "figures: {a: b}", "line 17: figures: {'a': 'b'} must be a list"),
        ("seeds: 2", "seeds: 2\nname: x", "line 5: name: unknown key; known: title, epsilon_kind, delta"),
        ("seeds: 2", "title: again", "is not valid YAML: line 4: key 'title' stands twice"),
        ("[0.5, 1]", "[0.5, 1", "is not valid YAML: while parsing a flow sequence at line 9, column 15"),
    ],
)  # fmt: skip
def test_invalid_keys_are_refused_with_a_one_line_message(tmp_path, old, new, message) -> None:
    with pytest.raises(DpmcError) as caught:
        load_study(write(tmp_path, old, new))
    assert str(caught.value).startswith(f"{tmp_path}/lines.yaml: ") and "\n" not in str(caught.value)
    assert message in str(caught.value)


def test_hyperparameters_have_lines_too(tmp_path) -> None:
    (tmp_path / "hyperparameters").mkdir()
    path = tmp_path / "hyperparameters/lines.yaml"
    path.write_text("dp-hmc: {}\ndp-penalty:\n  circle:\n    tau: -1\n    clip: 1\n    proposal_sd: 1\n")
    with pytest.raises(DpmcError, match=r"lines.yaml: line 3: dp-penalty: circle: tau: -1 must be greater"):
        load_study(write(tmp_path))


def test_lines_of_keys(tmp_path) -> None:
    document = read_document(write(tmp_path))
    for keys, line in (
        (("models", "twin", "model"), 10),
        (("models", "twin", "epsilons"), 9),
        (("title",), 2),
    ):
        assert document.place(*keys) == ": ".join([str(document.path), f"line {line}", *keys])
    assert document.place("models", "moon").endswith(": line 7: models: moon"), "the last key that is there"
    assert document.place() == str(document.path)


@pytest.mark.parametrize(
    "name", ["published", "tuning", "fresh-12", "fashion-79", "mnist-79-own", "fresh-", "x"]
)
def test_the_data_sets_are_those_that_are_made(name) -> None:
    assert bool(re.fullmatch(DATA_SETS, name)) == bool(re.fullmatch(DATASET_PATTERN, name))


def test_the_files_of_rows_are_those_that_can_be_read() -> None:
    assert OWN_ROWS == files.SUFFIXES


def test_every_key_is_in_the_tables() -> None:
    text = tables()
    for declaration in (StudyKeys, Tuning, ModelSpec, MethodSpec):
        for key in declaration.model_fields:
            assert re.search(rf"^\| `{key}` \| .+ \| .+ \| .*\|$", text, re.M), key
    assert (
        "| `seeds` | independent runs per cell, each with the whole budget | whole, 1 to 100,000 | needed |"
        in text
    )
