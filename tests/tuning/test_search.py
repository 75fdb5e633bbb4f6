"""A search of hyperparameters: one answer whatever happens to it, decided on fresh seeds."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml

import dpmc
from dpmc.cli.main import main
from dpmc.common.errors import DpmcError
from dpmc.data import datasets
from dpmc.studies import Study, load_study, pinned_hyperparameters
from dpmc.tuning import search
from dpmc.tuning.search import Task, task_of_study
from dpmc.tuning.trials import Trial, open_table, read_trials

STUDY = """
title: a search
delta: 0.1/n
seeds: 2
models:
  flat-banana-2d: {n: 2000, epsilons: [4], tuning_epsilon: 4}
methods:
  dp-penalty: {}
  fixed: {algorithm: dp-penalty, options: {tau: 0.7, clip: 2, proposal_sd: 0.05}}
  rwmh: {}
figures: []
"""
PINNED = {"tau": 0.7, "clip": 2, "proposal_sd": [0.05, 0.04]}
SETTINGS = {"dp-penalty": {"flat-banana-2d": PINNED}, "rwmh": {"flat-banana-2d": {"proposal_sd": 0.05}}}


def write_study(folder: Path) -> Path:
    (folder / "config" / "studies").mkdir(parents=True)
    (folder / "config" / "hyperparameters").mkdir()
    (folder / "config" / "studies" / "small.yaml").write_text(STUDY)
    (folder / "config" / "hyperparameters" / "small.yaml").write_text(yaml.safe_dump(SETTINGS))
    return folder / "config" / "studies" / "small.yaml"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return load_study(write_study(tmp_path_factory.mktemp("study")))


@pytest.fixture(scope="module")
def problem() -> Any:
    return datasets.build("flat-banana-2d", "flat-banana-2d", "tuning", 2000, 8)


def run(study: Study, problem: Any, table: Path, trials: int = 18, seeds: int = 3) -> dict[str, Any]:
    task = task_of_study(study, "flat-banana-2d", "dp-penalty", problem)
    return search.search(task, table, trials, seeds, len(problem.starts) // study.chains)


@pytest.fixture(scope="module")
def task(study: Study, problem: Any) -> Task:
    return task_of_study(study, "flat-banana-2d", "dp-penalty", problem)


@pytest.fixture(scope="module")
def whole(
    study: Study, problem: Any, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], Path]:
    table = tmp_path_factory.mktemp("whole") / "trials.csv"
    return run(study, problem, table), table


def searched(table: Path) -> list[Trial]:
    return [trial for trial in read_trials(table) if trial.stage == "search"]


def test_the_setting_is_the_best_of_the_finalists_on_seeds_no_trial_has_seen(whole: Any) -> None:
    result, table = whole
    trials, finals = searched(table), [t for t in read_trials(table) if t.stage == "final"]
    assert len(trials) == 18 and all(t.seeds <= 3 for t in trials)
    assert all(t.seeds == 8 - 3 for t in finals) and len(finals) <= 1 + search.MOST_FINALISTS
    # Others are tried until enough of them keep the rule on clipping; the last of them completes the number.
    kept = [t.feasible for t in finals[1:]]
    assert sum(kept) == search.FINALISTS and kept[-1]
    best = min((t for t in finals if t.feasible), key=lambda t: t.objective)
    assert {k: result["hyperparameters"][k] for k in best.setting} == best.setting
    assert result["search"]["chosen"]["mmd"] <= result["search"]["pinned"]["mmd"]
    assert trials[0].setting == PINNED == finals[0].setting  # the search goes out from the pinned setting
    first, second = result["hyperparameters"]["proposal_sd"]
    assert first / second == pytest.approx(0.05 / 0.04, rel=0.01)  # a list keeps its proportions
    for final in finals:  # none of the chains of a trial
        same = [t for t in trials if t.setting == final.setting]
        assert same and not {value for t in same for value in t.values} & set(final.values)


@pytest.mark.parametrize("share", [0.0005, 0.3, 0.8, 0.97])  # the first: in its head
def test_a_search_resumed_from_any_part_of_its_table_has_the_same_result(
    share: float, whole: Any, study: Study, problem: Any, tmp_path: Path
) -> None:
    result, table = whole
    text = table.read_bytes()
    left = tmp_path / "trials.csv"
    left.write_bytes(text[: int(share * len(text))])
    again = run(study, problem, left)
    assert again["hyperparameters"] == result["hyperparameters"]
    assert again["search"]["chosen"] == result["search"]["chosen"]
    ours, theirs = ([replace(t, seconds=0.0) for t in read_trials(path)] for path in (left, table))
    assert repr(ours) == repr(theirs)  # unlike ==, equal if both have NaN


def test_more_trials_continue_from_those_made(whole: Any, study: Study, problem: Any, tmp_path: Path) -> None:
    table = tmp_path / "trials.csv"
    table.write_bytes(whole[1].read_bytes())
    run(study, problem, table, trials=20)
    at_once = tmp_path / "at_once.csv"
    run(study, problem, at_once, trials=20)
    settings = [[t.setting for t in searched(path)] for path in (table, at_once)]
    assert settings[0] == settings[1] and len(settings[0]) == 20


def test_trials_of_another_search_stay_in_the_table(
    study: Study, problem: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    table = tmp_path / "trials.csv"
    first = run(study, problem, table, trials=2)
    before = table.read_text()
    run(study, problem, table, trials=2, seeds=4)
    added = table.read_text().removeprefix(before)
    old, new = (text.partition(",")[0] for text in (before.splitlines()[1], added))
    assert old != new
    for key, seeds in ((old, 3), (new, 4)):
        assert {t.seeds for t in read_trials(table, key) if t.stage == "search" and t.feasible} == {seeds}
    # Who goes back to the first search finds its trials.
    monkeypatch.setattr(Task, "try_out", lambda *_: pytest.fail("a trial of the table was run again"))
    assert run(study, problem, table, trials=2)["hyperparameters"] == first["hyperparameters"]
    assert table.read_text() == before + added


@pytest.mark.parametrize("content", ["1.0,2.0\n3.0,4.0\n", "\udcff"])
def test_a_file_that_is_no_table_is_left_alone(
    content: str, study: Study, problem: Any, tmp_path: Path
) -> None:
    table = tmp_path / "rows.csv"
    table.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(DpmcError, match="is no table of trials"):
        run(study, problem, table, trials=2)
    assert table.read_bytes() == content.encode(errors="surrogateescape")


def test_a_damaged_table_is_reported(whole: Any, study: Study, problem: Any, tmp_path: Path) -> None:
    table = tmp_path / "trials.csv"
    lines = whole[1].read_text().splitlines(keepends=True)
    key = lines[1].partition(",")[0]
    table.write_text("".join([*lines[:4], f"{key},3,search,{{}},many\n", *lines[5:]]))
    with pytest.raises(DpmcError, match="trials.csv: line 5 is damaged"):
        run(study, problem, table)
    table.write_text("".join([*lines[:4], *lines[5:]]))  # a row is missing
    with pytest.raises(DpmcError, match="trial 3 is not what the search proposes"):
        run(study, problem, table)


def test_a_second_process_waits_for_the_table(whole: Any, tmp_path: Path) -> None:
    code = "import sys, pathlib as p\nfrom dpmc.tuning import trials as t\n"
    code += "with t.open_table(p.Path(sys.argv[1]), 'k'): print('in')"
    table, pipes = tmp_path / "trials.csv", {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with open_table(table, "k"):
        other = subprocess.Popen([sys.executable, "-c", code, str(table)], text=True, **pipes)
        assert other.stderr is not None and "waiting for another process" in other.stderr.readline()
        assert other.poll() is None
    assert other.communicate(timeout=60)[0] == "in\n"


def test_evaluation_data_are_refused(study: Study, tmp_path: Path) -> None:
    published = datasets.build("flat-banana-2d", "flat-banana-2d", "fresh-0", 2000, 8)
    with pytest.raises(DpmcError, match="takes tuning, which no evaluation uses"):
        run(study, published, tmp_path / "trials.csv")
    spec = study.models["flat-banana-2d"].model_copy(update={"data": "tuning"})
    same = replace(study, models={"flat-banana-2d": spec})
    with pytest.raises(DpmcError, match="data: tuning: a search would use the data of its evaluation"):
        run(same, published, tmp_path / "trials.csv")


def test_finalists_need_seeds_of_their_own(study: Study, problem: Any, tmp_path: Path) -> None:
    with pytest.raises(DpmcError, match="seeds: 7 of 8 leaves finalists 1, must leave 2"):
        run(study, problem, tmp_path / "trials.csv", seeds=7)
    assert not (tmp_path / "trials.csv").exists()


def test_settings_with_too_few_iterations_or_too_costly_are_not_run(task: Task, monkeypatch: Any) -> None:
    monkeypatch.setattr("dpmc.sampling.loop.sample", lambda *_: pytest.fail("run in vain"))
    few = task.try_out(0, "search", {**task.start, "tau": 0.05}, range(3))
    assert few.verdict.startswith("too few iterations") and few.seeds == 0
    monkeypatch.setattr(task, "longest", search.cost(task.cell(task.start)))
    long = task.try_out(1, "search", {**task.start, "tau": 2.0}, range(3))
    assert long.verdict.startswith("refused") and "too long" in long.verdict
    assert search.IF_REFUSED == long.objective > few.objective > search.IF_CLIPPED > 2**0.5


def test_a_setting_that_clips_too_much_is_ranked_last_and_given_up(task: Task) -> None:
    clipped = task.try_out(0, "search", {**task.start, "clip": 0.02}, range(3))
    assert "clipped" in clipped.verdict and not clipped.feasible
    assert clipped.objective > search.IF_CLIPPED and clipped.seeds == search.PILOT_SEEDS


def skewed_rows(n: int) -> np.ndarray:
    """Rows whose errors have a long tail on one side only, so that clipping moves the intercept."""
    generator = np.random.default_rng(5)
    x, errors = generator.standard_normal(n), generator.lognormal(size=n)
    return np.column_stack([0.3 * x + (errors - np.exp(0.5)) / 2.16, x])


@pytest.mark.usefixtures("shown")
def test_a_setting_that_clips_few_rows_and_yet_moves_an_estimate_is_not_ok(capfd: Any) -> None:
    model = dpmc.LinearRegression("y", ["x"], sd=1.0, tempering=1000)
    given = {"epsilon": 4, "trials": 1, "seeds": 2, "data_are_public": True}
    found = dpmc.tune(model, skewed_rows(20_000), **given)
    about = found["search"]["chosen"]
    assert about["ratio_clip_fraction"] < 0.03
    assert about["bias"] < -5.0 and about["bias_error"] < 1.0
    assert about["verdict"] == f"biased: intercept by {about['bias']:.1f} posterior sd of all rows"
    assert f"dpmc: warning: {about['verdict']}: try a larger clip bound" in capfd.readouterr().err
    wider = {**found["hyperparameters"], "clip": 8 * found["hyperparameters"]["clip"]}
    wider["proposal_sd"] = list(np.divide(wider["proposal_sd"], 4))
    about = dpmc.tune(model, skewed_rows(20_000), hyperparameters=wider, **given)["search"]["chosen"]
    assert about["verdict"] == "ok" and abs(about["bias"]) < 4 * about["bias_error"]
    assert "biased" not in capfd.readouterr().err


def known_posterior(**changes: Any) -> Any:
    """A problem with posterior sd (2, 4) tempered by 1/4, hence (1, 2) of all rows."""
    about = {"posterior_mean": np.array([1.0, -1.0]), "posterior_covariance": np.diag([4.0, 16.0])}
    about |= {"reference": np.empty((0, 2))}
    exact = SimpleNamespace(**{name: changes.pop(name, value) for name, value in about.items()})
    rest = {"temperature": 0.25, "dimension": 2, "parameters": (), "exact": exact}
    return SimpleNamespace(**{**rest, **changes})


def test_a_bias_is_in_posterior_sds_of_all_rows() -> None:
    noise = 0.1 * np.array([[-1.0, 1.0], [1.0, -1.0], [0.0, 0.0]])
    for shift, verdict in (
        ((0.4, 0.0), "ok"),  # below half a standard deviation
        ((0.0, 1.6), "biased: theta[1] by 0.8 posterior sd of all rows"),
        ((-1.5, 1.6), "biased: theta[0] by -1.5 posterior sd of all rows"),
    ):
        found, error, said = search.bias(np.array([1.0, -1.0]) + shift + noise, known_posterior())
        assert said == verdict
        assert found == pytest.approx(max(shift[0], shift[1] / 2, key=abs))
        assert error == pytest.approx(0.1 / np.sqrt(3) / (1 if abs(shift[0]) >= shift[1] / 2 else 2))
    named = known_posterior(parameters=("a", "b"))
    assert search.bias(np.array([1.0, 5.0]) + noise, named)[2].startswith("biased: b by 3.0")
    # The same bias, hidden by the differences of the runs.
    assert search.bias(np.array([1.0, 5.0]) + 50 * noise, named)[2] == "ok"


def test_runs_without_a_bias_are_rarely_called_biased() -> None:
    problem, generator = known_posterior(), np.random.default_rng(2)
    sds = np.sqrt(np.diag(problem.exact.posterior_covariance))
    runs = problem.exact.posterior_mean + sds * generator.standard_normal((1000, 6, 2))
    wrong = sum(search.bias(estimates, problem)[2] != "ok" for estimates in runs)
    assert 20 < wrong < 70  # 5 %


def test_a_hopeless_pilot_is_given_up_and_a_promising_one_is_not() -> None:
    best = Trial(0, "search", {}, 0.1, "ok", 3, values=[0.1, 0.1, 0.1])
    worse = Trial(1, "search", {}, 0.2, "ok", 2, values=[0.2, 0.2])
    mixed = Trial(2, "search", {}, 0.15, "ok", 2, values=[0.2, 0.12])
    assert search.hopeless(worse, best) and not search.hopeless(mixed, best)
    assert not search.hopeless(worse, None)


def test_a_search_without_a_feasible_setting_fails(
    study: Study, problem: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(search, "CLIP_LIMIT", 0.0)
    with pytest.raises(DpmcError, match="none of 3 settings is feasible; the closest"):
        run(study, problem, tmp_path / "t.csv", trials=3)


def test_the_pinned_setting_is_tried_to_its_last_digit(task: Task) -> None:
    exact = replace(task, pinned={"tau": 0.71234, "clip": 2, "proposal_sd": [0.050001, 0.04]})
    assert exact.setting([0.0, 0.0, 0.0]) == exact.start == exact.pinned
    assert exact.setting([0.0, 0.1, 0.1])["clip"] == 2.21


COMMAND = ["--study", "small", "--model", "flat-banana-2d", "--method", "dp-penalty", "--search"]
SHORT = [*COMMAND, "--trials", "14", "--seeds", "3", "--output", "found.yaml", "--table", "trials.csv"]


def test_a_killed_search_has_the_same_result(tmp_path: Path) -> None:
    answers = []
    command = [sys.executable, "-m", "dpmc", "tune", *SHORT, "--quiet"]
    for name, kills in (("whole", 0), ("killed", 2)):
        folder = tmp_path / name
        write_study(folder)
        table, limit = folder / "trials.csv", time.monotonic() + 480
        for kill in range(kills + 1):
            process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
            if kill < kills:  # after four more trials
                while not table.exists() or table.read_text().count("\n") < 4 * (kill + 1) + 2:
                    assert process.poll() is None and time.monotonic() < limit
                    time.sleep(0.01)
                os.kill(process.pid, signal.SIGKILL)
            _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
        answers.append(yaml.safe_load((folder / "found.yaml").read_text())["hyperparameters"])
    assert answers[0] == answers[1]


OWN = """
import numpy as np

class Normal:
    dimension, n, tempering = 1, 300, 50
    def log_likelihood(self, theta, rows): return -0.5 * (rows[:, 0] - theta[0]) ** 2
    def simulate(self, generator, theta, n): return theta + generator.standard_normal((n, 1))
"""


def test_a_model_of_ones_own_needs_no_hyperparameters_to_begin_with(
    tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    write_study(tmp_path)
    (tmp_path / "own_normal.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    own = ["--study", "small", "--model", "own_normal:Normal", "--output", "found.yaml", "--quiet"]
    assert main(("tune", *own, "--method", "dp-penalty")) == 2
    said = capsys.readouterr().err
    assert (
        "give them by --hyperparameters, or let dpmc tune --search find some" in said and "yaml" not in said
    )
    few = ["--search", "--trials", "2", "--seeds", "2"]
    assert main(("tune", *own, *few, "--method", "dp-penalty")) == 2
    assert "--epsilon: needed to search for own_normal:Normal" in capsys.readouterr().err
    few += ["--epsilon", "3"]
    assert main(("tune", *own, *few, "--method", "dp-penalty")) == 0
    found = yaml.safe_load(Path("found.yaml").read_text())
    assert found["search"]["epsilon"] == "3"
    assert (found["study"], found["model"], found["method"]) == ("small", "own_normal:Normal", "dp-penalty")
    run = ["sample", *own[:4], "--method", "dp-penalty", "--hyperparameters", "found.yaml", "--seed", "0"]
    assert main((*run, "--epsilon", "4", "--output", "c.nc", "--quiet")) == 0
    assert main(("tune", *own, *few, "--method", "fixed", "--force")) == 2  # options fix its hyperparameters


def test_tuning_on_private_rows_needs_an_option(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    write_study(tmp_path)
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(1).normal(size=(2000, 2)) * [4.4, 1.6] + [0.0, 3.0]
    np.savetxt("patients.csv", rows, delimiter=",")
    np.savetxt("tuning.csv", rows, delimiter=",")
    few = [*COMMAND, "--trials", "2", "--seeds", "2", "--output", "found.yaml", "--quiet", "--data"]
    assert main(("tune", *few, "patients.csv")) == 2
    assert "patients.csv: hyperparameters chosen on private rows reveal" in capsys.readouterr().err
    assert main(("tune", *few, "tuning.csv")) == 2  # a name must not make private rows public
    assert "call your own another" in capsys.readouterr().err
    assert main(("tune", *few, "patients.csv", "--leak-private-rows-into-hyperparameters")) == 0
    assert "that no epsilon covers" in capsys.readouterr().err
    assert main(("tune", *few, "patients.csv", "--rows-are-public", "--force")) == 0
    assert "epsilon" not in capsys.readouterr().err


FOUND = {"tau": 1.0, "clip": 3, "proposal_sd": 0.1}


def tuned(path: Path, content: str) -> Study:
    """Let the whole study take tuned settings, with this content of their file."""
    path.write_text(path.read_text().replace("title: a search", "title: a search\nhyperparameters: tuned"))
    (path.parents[1] / "hyperparameters" / "small.tuned.yaml").write_text(content)
    return load_study(path)


def test_a_study_takes_tuned_settings_from_its_file(tmp_path: Path) -> None:
    path = write_study(tmp_path)
    study = tuned(path, yaml.safe_dump({"dp-penalty": {"flat-banana-2d": FOUND}}))
    values, source = pinned_hyperparameters(study, "flat-banana-2d", "fixed")  # by its settings_of
    assert values == FOUND and "small.tuned.yaml" in source
    values, source = pinned_hyperparameters(study, "flat-banana-2d", "rwmh")
    assert values == {"proposal_sd": 0.05} and "small.yaml" in source
    (tmp_path / "config" / "hyperparameters" / "small.yaml").unlink()  # needed by no method that is tuned
    assert pinned_hyperparameters(load_study(path), "flat-banana-2d", "dp-penalty")[0] == FOUND
    (tmp_path / "config" / "hyperparameters" / "small.tuned.yaml").unlink()
    with pytest.raises(DpmcError, match=r"small.tuned.yaml: no such file"):
        pinned_hyperparameters(load_study(path), "flat-banana-2d", "dp-penalty")


@pytest.mark.parametrize(
    ("tuning", "methods"),
    [
        ("{mode: pinned}", ("dp-penalty", "fixed", "rwmh")),
        ("{mode: none}", ()),
        ("{mode: none, methods: [fixed]}", ("fixed",)),
    ],
)
def test_a_study_selects_the_methods_to_search(tmp_path: Path, tuning: str, methods: tuple[str, ...]) -> None:
    path = write_study(tmp_path)
    path.write_text(STUDY.replace("seeds: 2", f"seeds: 2\ntuning: {tuning}"))
    assert load_study(path).tuning.methods == methods


def test_every_search_of_a_study_has_numbers_to_start_from() -> None:
    for path in (Path(__file__).parents[2] / "config/studies").glob("*.yaml"):
        study = load_study(path)
        for model, method in search.searched_pairs(study):
            values, _ = pinned_hyperparameters(study, model, method)
            for given in search.free_hyperparameters(study, model, method):
                assert np.issubdtype(np.asarray(values[given]).dtype, np.number), (model, method, given)


def test_a_budget_per_iteration_is_searched_too(tmp_path: Path, problem: Any) -> None:
    path = write_study(tmp_path)
    changed = STUDY.replace("seeds: 2", "seeds: 2\nepsilon_kind: per-iteration")
    changed = changed.replace("rwmh: {}", "rwmh: {epsilons: [inf]}")
    path.write_text(changed.replace("tuning_epsilon: 4", "tuning_epsilon: 0.1, iterations: 50"))
    study = load_study(path)
    task = task_of_study(study, "flat-banana-2d", "dp-penalty", problem)
    assert task.free == ("clip", "proposal_sd")  # ε decides tau
    trial = task.try_out(0, "search", {**task.start, "clip": 20.0}, range(3))
    assert trial.iterations == 50 and trial.feasible


def test_the_noise_of_the_settings_is_that_of_their_formula(whole: Any, study: Study, problem: Any) -> None:
    result, _ = whole
    for which, setting in (("chosen", result["hyperparameters"]), ("pinned", result["pinned"])):
        generator = np.random.default_rng(1)
        moves = np.linalg.norm(generator.standard_normal((20000, 2)) * setting["proposal_sd"], axis=1)
        sds = problem.temperature * 2.0 * setting["tau"] * np.sqrt(problem.n) * setting["clip"] * moves
        assert result["search"][which]["noise_sd"] == pytest.approx(float(np.median(sds)), rel=0.15)
        assert 1.0 < result["search"][which]["ess"] < result["search"][which]["iterations"]
        assert 0.99 < result["search"][which]["rhat"] < 3.0


def test_a_method_whose_hyperparameters_all_have_defaults_needs_none(tmp_path: Path) -> None:
    """Their noise follows from ε; of a study of models of one's own there may be no file at all."""
    path = write_study(tmp_path)
    for remaining in ("with a file", "without"):
        for method in ("noisy-scores", "simulated-scores"):
            for model in ("flat-banana-2d", "mine:Model"):
                study = load_study(path).running(method)
                assert pinned_hyperparameters(study, model, method).values == {}, remaining
        with pytest.raises(DpmcError, match="hyperparameters are missing|no such file"):
            pinned_hyperparameters(
                load_study(path).running("noisy-statistics"), "mine:Model", "noisy-statistics"
            )
        (tmp_path / "config/hyperparameters/small.yaml").unlink(missing_ok=True)
