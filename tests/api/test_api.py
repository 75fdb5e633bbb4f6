"""`dpmc.sample`, `budget`, `tune`, `algorithms`: the same results as the commands, and refusals."""

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import dpmc
from dpmc.__main__ import main
from dpmc.algorithms import ALGORITHMS, algorithm_class
from dpmc.algorithms.hyperparameters import searched
from dpmc.data.chain_files import read_chain
from dpmc.data.datasets import build
from dpmc.metrics import summary
from dpmc.models.own import given_model
from dpmc.tuning import first_setting

SETTING = {"tau": 0.5, "clip": 5, "proposal_sd": 0.05}
MODEL = """
import numpy as np

class Normal:
    dimension = 1
    def log_likelihood(self, theta, rows): return -0.5 * (rows[:, 0] - theta[0]) ** 2
    def simulate(self, generator, theta, n): return theta + generator.standard_normal((n, 1))
"""


def linear(**more: Any) -> dpmc.LinearRegression:
    return dpmc.LinearRegression("y", ["x"], true_theta=[0.5, 1.0], **more)


def rows_of(model: Any, n: int = 300) -> np.ndarray:
    rows: np.ndarray = model.simulate(np.random.default_rng(3), model.true_theta, n)
    return rows


def sample(model: Any = None, data: Any = None, algorithm: str = "dp-penalty", **more: Any) -> Any:
    model = linear() if model is None else model
    data = rows_of(model) if data is None else data
    return dpmc.sample(
        model, data, algorithm, **{"epsilon": 2, "hyperparameters": SETTING, "progress": False, **more}
    )


def test_importing_the_package_imports_nothing_slow() -> None:
    code = "import sys, dpmc; print([m for m in ('numpy', 'numba', 'xarray', 'pandas') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, where modules are found, with hyperparameters."""
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(SETTING))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return tmp_path


def by_command(model: str, data: str, *options: str) -> Any:
    """Return the chain that `dpmc sample` makes."""
    cell = ["--model", model, "--method", "dp-penalty", "--epsilon", "2", "--hyperparameters", "mine.yaml"]
    files = ["--data", data, "--output", "chain.nc", "--quiet"]
    assert main(["sample", *cell, *files, *options]) == 0
    return read_chain("chain.nc")


def test_the_draws_are_those_of_the_command(here: Path) -> None:
    (here / "given_here.py").write_text(MODEL)
    np.savetxt(here / "rows.csv", np.random.default_rng(0).normal(1.0, 1.0, 300))
    chain = by_command("given_here:Normal", "rows.csv", "--chains", "2", "--seed", "3")
    tree = sample("given_here:Normal", "rows.csv", hyperparameters="mine.yaml", chains=2, seed=3)
    assert (tree.posterior.theta.values == chain.draws).all()
    same = {key: value for key, value in chain.attrs.items() if key != "study"}
    assert {key: tree.attrs[key] for key in same} == same
    assert sorted(tree.children) == ["constant_data", "posterior", "private_diagnostics", "sample_stats"]


def test_the_command_takes_an_instance_and_the_columns_that_it_names(here: Path) -> None:
    (here / "regressions_here.py").write_text("import dpmc\nline = dpmc.LinearRegression('y', ['x'])\n")
    lines = ["who,x,y", *(f'"me, myself",{x!r},{y!r}' for y, x in rows_of(linear()).tolist())]
    (here / "people.csv").write_text("\n".join(lines))
    chain = by_command("regressions_here:line", "people.csv", "--seed", "0")
    tree = sample("regressions_here:line", "people.csv")
    assert (tree.posterior.theta.values == chain.draws).all() and chain.attrs["evaluator"] == "affine"


def test_all_chains_of_a_call_share_one_budget() -> None:
    one, four = sample(), sample(chains=4)
    for tree in (one, four):
        ledger = json.loads(tree.attrs["ledger"])
        assert 1.9 < ledger["epsilon_spent"] <= 2.0
        assert ledger["budget"] == {"epsilon": 2.0, "delta": 0.1 / 300}
    assert four.posterior.sizes["chain"] == 4
    assert four.attrs["iterations"] == one.attrs["iterations"] // 4
    assert dpmc.budget(300, "dp-penalty", SETTING, epsilon=2, chains=4)["tight"] == four.attrs["iterations"]
    assert len(np.unique(four.posterior.theta.values[:, -1, 0])) == 4


def test_seed_start_iterations_and_thin() -> None:
    first, again, other = sample(iterations=20), sample(iterations=20), sample(iterations=20, seed=1)
    assert (first.posterior.theta.values == again.posterior.theta.values).all()
    assert (first.posterior.theta.values != other.posterior.theta.values).any()
    for seed in (0, 2):
        begun = sample(epsilon=20, iterations=20, thin=5, chains=2, seed=seed, start=[[0.1, 0.2], [0.3, 0.4]])
        assert begun.constant_data.theta_0.values.tolist() == [[0.1, 0.2], [0.3, 0.4]]
    assert begun.posterior.draw.values.tolist() == [5, 10, 15, 20]
    same = sample(iterations=4, chains=2, start=[0.1, 0.2])
    assert same.constant_data.theta_0.values.tolist() == [[0.1, 0.2]] * 2


def test_a_draw_for_all_iterations_and_all_rows_untempered_are_the_limits() -> None:
    tree = sample(linear(tempering=300), iterations=5, thin=5)
    assert tree.posterior.sizes["draw"] == 1 and tree.attrs["temperature"] == 1.0


def test_tables_are_taken_by_the_names_of_the_model(tmp_path: Path) -> None:
    import pandas

    rows = rows_of(linear())
    table = pandas.DataFrame({"who": "me", "x": rows[:, 1], "y": rows[:, 0]})
    table.to_csv(tmp_path / "data.csv", index=False)  # its stem is what a table in memory is called
    draws = [sample(data=data).posterior.theta.values for data in (rows, table, tmp_path / "data.csv")]
    assert (draws[0] == draws[1]).all() and (draws[0] == draws[2]).all()


@pytest.mark.usefixtures("shown")
def test_a_published_experiment_can_be_run(capfd: pytest.CaptureFixture[str]) -> None:
    setting = {"tau": 0.1, "clip": 2, "proposal_sd": 0.008}
    tree = sample("flat-banana-2d", "fresh-0", hyperparameters=setting, iterations=5, progress=True)
    assert tree.attrs["n"] == 100_000 and tree.attrs["evaluator"] == "affine"
    said = capfd.readouterr().err.splitlines()
    assert said[0].startswith("flat-banana-2d dp-penalty epsilon 2: 5/5 iterations")
    assert said[2].split()[:2] == ["epsilon", "spent"] and "file" not in said[2]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"epsilon": -1}, "epsilon: -1 must be greater than 0"),
        ({"epsilon": 0.01}, "budget too small: epsilon 0.01 allows 0 iterations; more noise in each"),
        ({"delta": 2}, "delta: 2 must be greater than 0 and less than 1/n"),
        ({"model": linear(tempering=301)}, "tempering: 301 must be at most the number of rows, 300"),
        ({"chains": 0}, "chains: 0 must be a whole number, at least 1 and at most 1000"),
        ({"thin": 10**6}, r"thin: 1000000 must be at most \d+, the iterations of a chain; no draw would be"),
        ({"iterations": 10**6}, "iterations: 1000000 exceeds the budget"),
        ({"accountant": "x"}, "accountant = 'x': must be one of"),
        ({"algorithm": "x"}, "algorithm: 'x' is unknown; known: rwmh"),
        ({"start": [1.0]}, r"start: shape \(1,\) must be \(2,\)"),
        ({"start": [np.nan, 1.0]}, "start: has a value that is NaN"),
        ({"hyperparameters": "none.yaml"}, "none.yaml: no such file"),
        ({"hyperparameters": {**SETTING, "tau": 0}}, "hyperparameters: tau: 0 must be greater than 0"),
        ({"hyperparameters": {**SETTING, "proposal_sd": (1, 2, 3)}}, "proposal_sd: has 3 values, the model"),
        ({"data": "none.csv"}, "none.csv: No such file"),
        ({"data": np.zeros((5, 3))}, "data: ndarray: has 3 columns without names, must be y, x"),
        ({"model": "circle7", "data": [1.0]}, "model: 'circle7' is unknown"),
    ],
)
def test_mistakes_name_argument_value_and_rule_in_one_line(more: dict[str, Any], words: str) -> None:
    with pytest.raises(dpmc.DpmcError, match=words) as caught:
        sample(**more)
    assert "\n" not in str(caught.value) and caught.value.__cause__ is None


def test_budget_is_what_the_command_prints(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cell = ["--model", "flat-banana-2d", "--method", "dp-penalty", "--hyperparameters", "mine.yaml"]
    for question in ({"epsilon": 4}, {"iterations": 30}):
        [(name, value)] = question.items()
        options = ["--n", "5000", "--chains", "2", "--json", f"--{name}", str(value)]
        assert main(["budget", *cell, *options]) == 0
        printed = json.loads(capsys.readouterr().out)
        assert dpmc.budget(5000, "dp-penalty", SETTING, chains=2, **question) == printed
    with pytest.raises(dpmc.DpmcError, match="epsilon, iterations: give one of them"):
        dpmc.budget(100, "dp-penalty", SETTING)


def test_algorithms_lists_all_with_their_hyperparameters() -> None:
    listing = dpmc.algorithms()
    assert tuple(listing) == ALGORITHMS
    tau = listing["dp-penalty"].hyperparameters["tau"]
    assert tau == ("tau", "noise multiplier of a log ratio over √n", "> 0", "")
    assert listing["dp-hmc"].hyperparameters["jitter"].default == "none"
    for name in ALGORITHMS:
        assert f"{name}: " in repr(listing)


@pytest.mark.parametrize("first", ["", "import dpmc.algorithms.hmc", "from dpmc.api import sample"])
def test_algorithms_is_a_plain_function_beside_its_package(first: str) -> None:
    """Whatever is imported first, and the package's class is that of any module."""
    program = f"""
{first}
import sys, types, dpmc
from dpmc.algorithms.hmc import HMC
assert type(dpmc.algorithms) is types.FunctionType and "hmc" in dpmc.algorithms()
assert type(sys.modules["dpmc.algorithms"]) is types.ModuleType
"""
    subprocess.run([sys.executable, "-c", program], check=True)


class Positive:
    """A model that refuses rows."""

    dimension = 1

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return -theta[0] * rows[:, 0]

    def check_rows(self, rows: np.ndarray) -> None:
        if (rows < 0.0).any():
            raise ValueError("must be at least 0")


def test_a_model_may_refuse_rows() -> None:
    with pytest.raises(dpmc.DpmcError, match=r"check_rows failed \(ValueError: must be at least 0"):
        sample(Positive(), np.array([[1.0], [-1.0]]))


# -- tune -------------------------------------------------------------------------------------------------


def test_tune_refuses_rows_that_may_be_private() -> None:
    with pytest.raises(dpmc.DpmcError, match="data: hyperparameters chosen on private rows reveal"):
        dpmc.tune(linear(), rows_of(linear()), epsilon=4)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"data": None}, "n: 0 must be at least 1; .*LinearRegression names no number of rows"),
        ({"algorithm": "rwmh"}, "algorithm: rwmh at epsilon 4 has nothing to search"),
        ({"epsilon": "inf"}, "algorithm: dp-penalty at epsilon inf has nothing to search"),
        ({"algorithm": "dp-sgld"}, "dp-sgld needs some to begin with; there are first ones for dp-penalty"),
        ({"hyperparameters": {"tau": 1}}, "dp-penalty needs clip"),
        ({"model": dpmc.Model(1, lambda t, x: x[:, 0] * t[0])}, "has no simulate"),
        *(
            ({"table": odd}, "^table: .* must be the path of a file$")
            for odd in ("", ".", "/", "a\0b", 5, b"a")
        ),
    ],
)
def test_mistakes_in_a_search(arguments: dict[str, Any], words: str) -> None:
    given = {"model": linear(), "data": 300, "epsilon": 4, "progress": False, **arguments}
    with pytest.raises(dpmc.DpmcError, match=words):
        dpmc.tune(**given)


def test_a_folder_is_no_table_of_a_search(tmp_path: Path) -> None:
    values = {"tau": 1, "clip": 3, "proposal_sd": 0.1}
    with pytest.raises(dpmc.DpmcError, match="is a folder or a device, must be a file"):
        dpmc.tune(linear(), 50, epsilon=2, hyperparameters=values, trials=1, seeds=1, table=tmp_path)


def test_the_result_of_tune_is_feasible_repeatable_and_usable(tmp_path: Path) -> None:
    model = linear(tempering=50)
    given = {"epsilon": 8, "trials": 5, "seeds": 2, "progress": False}
    found = dpmc.tune(model, 500, table=tmp_path / "trials.csv", **given)
    assert found["search"]["chosen"]["verdict"] == "ok" and found["search"]["data"] == "tuning"
    assert found["search"]["chosen"]["mmd"] <= found["search"]["pinned"]["mmd"]
    again = dpmc.tune(model, 500, table=tmp_path / "trials.csv", **given)  # from the table
    assert again["hyperparameters"] == found["hyperparameters"]
    tree = sample(model, rows_of(model, 500), epsilon=8, hyperparameters=found)
    assert tree.attrs["iterations"] == found["search"]["chosen"]["iterations"]
    posterior = model.posterior(rows_of(model, 500), 0.1)
    half = tree.posterior.theta.values[0, tree.attrs["iterations"] // 2 :]
    sd = np.sqrt(np.diag(posterior.covariance()))
    assert (np.abs(half.mean(axis=0) - posterior.mean()) < sd).all()


@pytest.mark.usefixtures("shown")
def test_a_setting_whose_chains_are_worth_few_draws_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    model = linear(tempering=50)
    given = {"trials": 1, "seeds": 1, "chains": 2}
    chosen = dpmc.tune(model, 500, epsilon=50, **given)["search"]["chosen"]
    assert chosen["ess"] > summary.ESS_LEAST and 0.99 < chosen["rhat"] < 1.3
    assert "independent draws" not in capfd.readouterr().err
    found = dpmc.tune(model, 500, epsilon=0.5, **given)
    assert found["search"]["chosen"]["ess"] < summary.ESS_LEAST
    assert "warning: a run with what was found is worth" in capfd.readouterr().err


@pytest.mark.parametrize("algorithm", [a for a in ALGORITHMS if algorithm_class(a).first_iterations])
def test_a_first_setting_is_a_good_place_to_begin(algorithm: str) -> None:
    """It clips little, moves, and has the iterations it aims at; hence a search around it finds something."""
    model = linear(tempering=50)
    found = dpmc.tune(model, 2000, algorithm, epsilon=4, trials=1, seeds=2, progress=False)
    tried = found["search"]["pinned"]
    assert tried["verdict"] == "ok" and 0.05 < tried["acceptance_rate"] < 0.95
    assert tried["iterations"] == pytest.approx(algorithm_class(algorithm).first_iterations, rel=0.1)
    assert set(searched(algorithm_class(algorithm))) <= set(found["hyperparameters"])


def test_reference_draws_of_a_model_without_posterior_are_those_of_its_posterior() -> None:
    exact = linear()
    functions = dpmc.Model(
        2, exact.log_likelihood, exact.log_prior, simulate=exact.simulate, true_theta=exact.true_theta
    )
    name, definition = given_model(functions)
    problem = build("one", name, "tuning", 400, definition=definition)
    assert len(problem.exact.reference) == 0
    posterior = exact.posterior(problem.rows, 1.0)
    precision = np.linalg.inv(posterior.covariance())
    scales = first_setting.scales(problem)
    assert np.allclose(scales, 1.0 / np.sqrt(np.diag(precision)), rtol=0.3)
    draws = first_setting.reference_draws(problem, scales)
    sd = np.sqrt(np.diag(posterior.covariance()))
    assert draws.shape == (1000, 2)
    assert (np.abs(draws.mean(axis=0) - posterior.mean()) < 0.2 * sd).all()
    assert np.allclose(draws.std(axis=0), sd, rtol=0.15)


@pytest.mark.parametrize("name", ["sample", "release", "budget", "plan", "tune", "summary", "joint_epsilon"])
def test_docstrings_name_every_argument(name: str) -> None:
    function = getattr(dpmc, name)
    _, _, listed = function.__doc__.partition("Parameters\n")
    missing = [key for key in inspect.signature(function).parameters if not re.search(rf"\b{key}\b", listed)]
    assert listed and not missing
