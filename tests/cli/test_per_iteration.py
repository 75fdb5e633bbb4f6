"""ε per iteration sets the noise and limits no chain; the ledger has the ε of all iterations together."""

import json
from dataclasses import replace

import numpy as np
import pytest
import yaml

from dpmc.cli.main import main
from dpmc.data import datasets, histogram
from dpmc.data.chain_files import read_chain
from dpmc.data.problem import read_problem
from dpmc.metrics import traces
from dpmc.privacy import accountants
from dpmc.privacy.events import GaussianQuery

N = 300
STUDY = {
    "title": "per iteration",
    "epsilon_kind": "per-iteration",
    "delta": 1e-5,
    "seeds": 2,
    "tuning": {"mode": "none"},
    "settings_of": "own",
    "models": {"circle": {"epsilons": [0.1, 0.5], "tuning_epsilon": 0.1, "data": "fresh-0", "n": N,
                          "iterations": 1200}},
    "methods": {"dp-penalty": {}, "mh": {"algorithm": "rwmh", "epsilons": ["inf"], "thin": 7}},
    "figures": [],
}  # fmt: skip
SETTINGS = {
    "dp-penalty": {"circle": {"clip": 5.0, "proposal_sd": 0.1}},
    "rwmh": {"circle": {"proposal_sd": 0.1}},
}


DATA = ("--data", "circle/fresh-0.nc")
CELL = ("--model", "circle", "--method", "dp-penalty")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with such a study, and its data with a histogram of exact draws and test rows."""
    for name, content in (("studies/own", STUDY), ("hyperparameters/own", SETTINGS)):
        path = tmp_path / "config" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(content))
    monkeypatch.chdir(tmp_path)
    problem = datasets.build("circle", "circle", "fresh-0", N)
    edges = histogram.equal_edges(problem.exact.reference, 20)
    counts, _ = histogram.bin_counts(problem.exact.reference, edges)
    problem.exact = replace(problem.exact, histogram_edges=edges, histogram_counts=counts)
    problem.write(tmp_path / "circle" / "fresh-0.nc")
    return tmp_path


def run(*arguments: str) -> None:
    assert main((arguments[0], "--study", "own", *arguments[1:])) == 0


def sample(method: str = "dp-penalty", epsilon: str = "0.5", output: str = "seed-0.nc") -> None:
    cell = ("--model", "circle", "--method", method, "--epsilon", epsilon)
    run("sample", *cell, *DATA, "--seed", "0", "--quiet", "--output", output)


def test_the_noise_is_that_of_one_iteration_and_the_ledger_has_the_total(folder):
    sample()
    chain = read_chain("seed-0.nc")
    multiplier = np.sqrt(2.0 * np.log(1.25 / 1e-5)) / 0.5
    assert chain.attrs["epsilon_kind"] == "per-iteration"
    assert chain.attrs["iterations"] == 1200 and chain.attrs["budget_iterations"] == "inf"
    assert json.loads(chain.attrs["calibrated"])["tau"] == pytest.approx(multiplier / np.sqrt(N))
    ledger = json.loads(chain.attrs["ledger"])
    (event,) = ledger["performed"]
    assert event["noise_multiplier"] == pytest.approx(multiplier) and event["count"] == 1200
    total = accountants.get("tight").epsilon([GaussianQuery("x", multiplier, 1200)], 1e-5)
    assert ledger["budget"] is None and ledger["delta"] == 1e-5
    assert ledger["epsilon_spent"] == pytest.approx(total) and total > 1.0


def test_the_total_epsilon_is_a_metric_and_infinite_without_a_guarantee(folder, table):
    sample()
    sample("mh", "inf", "mh/seed-0.nc")
    run("evaluate", *DATA, "--chains", "seed-0.nc", "mh/seed-0.nc", "--output", "m.csv")
    rows = {(row["method"], row["metric"]): row["value"] for row in table("m.csv")}
    assert float(rows["dp-penalty", "epsilon_total"]) > 1.0
    assert rows["mh", "epsilon_total"] == "inf"
    assert float(rows["mh", "rows_per_iteration"]) == N
    assert float(rows["dp-penalty", "symmetric_kl"]) > 0.0
    assert ("dp-penalty", "epsilon_spent") not in rows


def test_budget_prints_the_total(folder, capsys, refused):
    totals = []
    for question in ((), ("--iterations", "1")):
        run("budget", *CELL, "--epsilon", "0.5", "--json", *question)
        totals.append(json.loads(capsys.readouterr().out)["tight"])
    assert totals[1] < 0.5 < totals[0]
    assert "--epsilon: needed" in refused("budget", "--study", "own", *CELL, "--iterations", "3")


@pytest.mark.parametrize("method", ["dp-penalty", "mh"])
def test_traces_are_the_metrics_of_the_draws_so_far(folder, table, method):
    epsilon, thin = ("0.5", 1) if method == "dp-penalty" else ("inf", 7)
    sample(method, epsilon)
    run("trace", *DATA, "--chains", "seed-0.nc", "--output", "t.csv")
    rows = table("t.csv")
    values = {(row["metric"], int(row["iteration"])): float(row["value"]) for row in rows}
    chain, problem = read_chain("seed-0.nc"), read_problem("circle/fresh-0.nc")
    for iteration in (1, 501, 1001):
        draws = chain.draws[0, : iteration // thin]
        assert values["rows_used", iteration] == N * iteration
        if len(draws):
            kl, _ = histogram.symmetric_kl(
                draws, problem.exact.histogram_edges, problem.exact.histogram_counts
            )
            assert values["symmetric_kl", iteration] == pytest.approx(kl, rel=1e-12)
        else:
            assert ("symmetric_kl", iteration) not in values
    spent = [values["epsilon_total", iteration] for iteration in (1, 501, 1001)]
    if method == "mh":
        assert spent == [np.inf] * 3
    else:
        multiplier = np.sqrt(2.0 * np.log(1.25 / 1e-5)) / 0.5
        event = GaussianQuery("x", multiplier, 501)
        assert spent[1] == pytest.approx(accountants.get("tight").epsilon([event], 1e-5))
        assert spent[0] < spent[1] < spent[2]
    assert {row["seed"] for row in rows if row["metric"] == "epsilon_total"} == {""}


def test_accuracy_of_the_running_mean(folder):
    sample()
    chain, problem = read_chain("seed-0.nc"), read_problem("circle/fresh-0.nc")
    generator = np.random.default_rng(3)
    x = generator.standard_normal((500, 2))
    problem.test_rows = np.column_stack([x @ [1.0, -1.0] > 0.0, x])
    values = traces.accuracies(chain, problem)
    assert list(values) == list(range(100, 1201, 100))
    for iteration, value in values.items():
        mean = chain.draws[0, :iteration].mean(axis=0)
        assert value == pytest.approx(np.mean((x @ mean > 0.0) == (problem.test_rows[:, 0] > 0.5)))
    assert len(set(values.values())) > 1
