"""A study's keys: one-line refusals that name the line of the file."""

import re
from pathlib import Path

import pytest

from dpmc.common.errors import DpmcError
from dpmc.data.datasets import DATASET_PATTERN
from dpmc.studies import find_study, load_study, read_yaml, study_of
from dpmc.studies.keys import DATA_SETS

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


def test_a_correct_study_is_accepted(tmp_path: Path) -> None:
    study = load_study(write(tmp_path))
    assert study.model("twin").epsilons == ("0.5", "1") and study.model("twin").model == "circle"
    assert (study.chains, study.tuning.trials, study.epsilon_kind) == (1, 100, "total")
    assert study.method("dp-penalty").models == ("circle", "twin")
    assert study.method("dp-hmc").options == {"steps": 5} and study.settings_of == "lines"


@pytest.mark.parametrize("name", [file.stem for file in find_study("thesis").parent.glob("*.yaml")])
def test_keys_in_memory_are_the_study_of_the_file(name: str) -> None:
    path = find_study(name)
    assert study_of(read_yaml(path), path) == load_study(name)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seeds: 2", "seeds: two", "line 4: seeds: 'two': must be a whole number"),
        ("seeds: 2", "seeds: 1001\nchains: 1000", "line 4: seeds: 1001 must be at most 1000 with 1000"),
        ("seeds: 2", "sedes: 2", "line 4: sedes: unknown key; known: title, epsilon_kind, delta, seeds, "),
        ("delta: 0.1/n", "delta: 2", "line 3: delta: 2 must be a number in (0, 1), or a text such as 0.1/n"),
        ("delta: 0.1/n\nseeds: 2\ntuning:\n  mode: none\nmodels:\n  circle: &circle\n",
         "delta: 1e-5\nseeds: 2\ntuning: {mode: none}\nmodels:\n  circle: &circle\n    n: 100000\n",
         "line 3: delta: 1e-05 for n = 100000: 1e-05 must be greater than 0 and less than 1/n"),
        ("  mode: none", "  mode: none\n  models: [moon]", "line 7: tuning: models: 'moon' is unknown"),
        ("[0.5, 1]", "[0.5, -1]", "line 9: models: circle: epsilons: 1: -1 must be greater than 0"),
        ("[0.5, 1]", "[0.5, 0.50]", "line 9: models: circle: epsilons: 0.5 stands twice"),
        ("[0.5, 1]", "[inf]", "models: circle: iterations: missing, and dp-penalty has none of its own"),
        ("epsilons: [0.5, 1]", "n: 5", "line 8: models: circle: key 'epsilons' is missing"),
        ("model: circle", "model: cirlce", "line 10: models: twin: model: 'cirlce' is unknown; known: "),
        ("dp-penalty: {}", "dp-penalty: {accountant: rpd}", "accountant: 'rpd' is unknown; known: "),
        ("steps: 5", "steps: 2.5", "line 14: methods: dp-hmc: options: steps: 2.5 must be a whole number"),
        ("steps: 5", "mass: [1, 2, 3]", "options: mass: has 3 values, the model has 2 parameters"),
        ("figures: []", "figures: [mmd]", "line 17: figures: 'mmd' is unknown; known: "),
        ("[0.5, 1]", "[0.5, 1", "is not valid YAML: while parsing a flow sequence at line 9, column 15"),
    ],
)  # fmt: skip
def test_a_mistake_is_refused_in_one_line(tmp_path, old, new, message) -> None:
    path = write(tmp_path, old, new)
    with pytest.raises(DpmcError) as caught:
        load_study(path)
    assert str(caught.value).startswith(f"{tmp_path}/lines.yaml: ") and "\n" not in str(caught.value)
    with pytest.raises(DpmcError) as without_lines:
        study_of(read_yaml(path), path)
    assert str(without_lines.value) == re.sub(r"line \d+: ", "", str(caught.value), count=1)
    assert message in str(caught.value)


def test_numbers_with_an_exponent_need_no_point(tmp_path) -> None:
    (tmp_path / "numbers.yaml").write_text("a: 7e-05\nb: -1E3\nc: 2.e+1\nd: e5\ne: 12\n")
    assert read_yaml(tmp_path / "numbers.yaml") == {"a": 7e-5, "b": -1000.0, "c": 20.0, "d": "e5", "e": 12}


def test_hyperparameters_are_checked_with_the_study(tmp_path) -> None:
    (tmp_path / "hyperparameters").mkdir()
    file = tmp_path / "hyperparameters/lines.yaml"
    file.write_text("dp-penalty:\n  circle:\n    tau: -1\n")
    with pytest.raises(DpmcError, match="lines.yaml: line 2: dp-penalty: circle: tau: -1 must be greater"):
        load_study(write(tmp_path))
    file.write_text("dp-penalty:\n  circle: {tau: 1}\n")
    with pytest.raises(DpmcError, match="lines.yaml: line 2: dp-penalty: circle: clip: missing, and this"):
        load_study(write(tmp_path))


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("{options: {calibration: none}}", "options: calibration: 'none' must be one of classical, exact"),
        ("{options: {clip: wide}}", "options: clip: 'wide' is not a number"),
        ("{algorithm: dp-hmc}", "cannot be calibrated to an epsilon per iteration, must be [inf]"),
    ],
)
def test_methods_where_epsilon_is_per_iteration(tmp_path, method, message) -> None:
    path = write(tmp_path, "dp-penalty: {}", f"dp-penalty: {method}")
    text = path.read_text().replace("[0.5, 1]", "[0.5, 1]\n    iterations: 5")
    path.write_text(f"epsilon_kind: per-iteration\n{text}")
    with pytest.raises(DpmcError) as caught:
        load_study(path)
    assert "methods: dp-penalty: " in str(caught.value) and message in str(caught.value)


def test_data_sets_are_those_that_can_be_made() -> None:
    for name in ("published", "tuning", "fresh-12", "fashion-79", "mnist-79", "fresh-", "x"):
        assert bool(re.fullmatch(DATA_SETS, name)) == bool(re.fullmatch(DATASET_PATTERN, name))


@pytest.mark.parametrize(
    ("text", "words"), [("- a\n- b\n", "is a list"), ("hello\n", "is a single value"), ("", "is empty")]
)
def test_a_file_without_keys_is_not_a_study(tmp_path, text, words) -> None:
    (tmp_path / "list.yaml").write_text(text)
    with pytest.raises(DpmcError, match=f"list.yaml: {words}; must be keys with values, such as title: "):
        load_study(tmp_path / "list.yaml")
    with pytest.raises(DpmcError, match=r"study: \['thesis'\] must be the name or the path of one study"):
        load_study(["thesis"])
