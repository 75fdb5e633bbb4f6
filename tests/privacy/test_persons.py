"""The guarantee of a person with several rows: Gaussian queries exactly, others by group privacy."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from scipy.stats import norm

import dpmc
from dpmc.cli.main import main
from dpmc.data.chain_files import read_chain
from dpmc.privacy import accountants
from dpmc.privacy.accountants.persons import for_persons
from dpmc.privacy.events import BarkerQuery, GaussianQuery, SubsampledGaussianQuery
from dpmc.privacy.ledger import Ledger
from privacy.builders import queries_in

SETTING = {"tau": 2.0, "clip": 5, "proposal_sd": 0.05}
DELTA = 1e-5
BATCH = SubsampledGaussianQuery("gradient", 1.5, batch_size=20, n=1000, count=40)


def sample(data: Any, **more: Any) -> Any:
    model = dpmc.LinearRegression("y", ["x"])
    return dpmc.sample(model, data, **{"epsilon": 2, "hyperparameters": SETTING, "progress": False, **more})


@pytest.mark.parametrize("rows", [2, 3, 7])
@pytest.mark.parametrize("name", ["tight", "zcdp"])
def test_a_gaussian_query_has_as_many_times_the_sensitivity(name: str, rows: int) -> None:
    known = accountants.get(name)
    events = [GaussianQuery("a", 20.0, 30), GaussianQuery("b", 9.0)]
    scaled = [GaussianQuery("a", 20.0 / rows, 30), GaussianQuery("b", 9.0 / rows)]
    found = for_persons(known, rows).epsilon(events, DELTA)
    assert found == pytest.approx(known.epsilon(scaled, DELTA), rel=1e-9) and found > known.epsilon(
        events, DELTA
    )
    assert for_persons(known, rows).is_filter and for_persons(known, 1) is known


def test_no_bound_is_below_that_of_a_pair_that_moves_all_rows_of_a_person() -> None:
    """Normal noise of sd s and a sum in which each of m rows moves by 1: by quadrature's closed form."""
    for rows, s, epsilon in ((2, 4.0, 1.0), (5, 10.0, 0.5), (3, 2.0, 3.0)):
        shift = rows / s
        exact = norm.sf(epsilon / shift - shift / 2) - math.exp(epsilon) * norm.sf(
            epsilon / shift + shift / 2
        )
        found = for_persons(accountants.get("tight"), rows).delta([GaussianQuery("a", s)], epsilon)
        assert exact <= found < exact * (1.0 + 1e-8)


def worst_of_two_rows(n: int, b: int, s: float, a: float) -> float:
    """Return the hockey-stick divergence of a sum over b of n rows, two of which move by 1 each."""
    chance = np.array([math.comb(2, k) * math.comb(n - 2, b - k) / math.comb(n, b) for k in range(3)])
    x = np.linspace(-12.0 * s, 2.0 + 12.0 * s, 200_001)
    p = sum(c * norm.pdf(x, k, s) for k, c in enumerate(chance))
    return float(np.maximum(p - a * norm.pdf(x, 0.0, s), 0.0).sum() * (x[1] - x[0]))


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0, 2.0])
def test_group_privacy_covers_two_rows_in_one_batch(epsilon: float) -> None:
    n, b, s = 50, 10, 1.0
    event = SubsampledGaussianQuery("sum", s, batch_size=b, n=n)
    bound = for_persons(accountants.get("wor-pld"), 2).delta([event], epsilon)
    exact = worst_of_two_rows(n, b, s, math.exp(epsilon))
    assert exact <= bound
    assert accountants.get("wor-pld").delta([event], epsilon) < exact, "one row's bound would not do"


@pytest.mark.parametrize("name", ["wor-pld", "replace-pld", "rdp", "barker-pld"])
def test_group_privacy_is_the_bound_of_one_row_at_a_part_of_epsilon(name: str) -> None:
    event = BarkerQuery("test", 200, 10_000, count=50) if name == "barker-pld" else BATCH
    known, rows = accountants.get(name), 3
    for epsilon in (0.5, 2.0, 6.0):
        one = known.delta([event], epsilon / rows)
        factor = (math.exp(epsilon) - 1.0) / (math.exp(epsilon / rows) - 1.0)
        found = for_persons(known, rows).delta([event], epsilon)
        assert found == pytest.approx(min(1.0, factor * one), rel=1e-9)
    group = for_persons(known, rows)
    found = group.epsilon([event], 1e-4)
    assert group.delta([event], found) <= 1e-4 and found > rows * known.epsilon([event], 1e-4)
    k = group.iterations((), (event,), 2.0, 1e-4)
    assert group.delta([event] * k, 2.0) <= 1e-4 if k else group.delta([event], 2.0) > 1e-4
    assert group.delta([event] * (k + 1), 2.0) > 1e-4


def test_a_ledger_keeps_the_rows_of_a_person() -> None:
    tree = sample(np.random.default_rng(1).normal(size=(400, 2)), rows_per_person=4)
    text = tree.attrs["ledger"]
    ledger = json.loads(text)
    assert ledger["rows_per_person"] == tree.attrs["rows_per_person"] == 4
    assert 1.9 < ledger["epsilon_spent"] <= 2.0
    again = Ledger.from_json(ledger)
    assert json.dumps(again.to_json(), sort_keys=True) == text
    performed = queries_in(again, "performed")
    assert again.accountant.epsilon(performed, ledger["budget"]["delta"]) == again.epsilon()
    assert dpmc.joint_epsilon(tree, delta=0.1 / 400).epsilon == pytest.approx(ledger["epsilon_spent"])


def test_persons_cost_iterations_and_one_row_changes_nothing() -> None:
    data = np.random.default_rng(1).normal(size=(400, 2))
    plain, one, four = sample(data), sample(data, rows_per_person=1), sample(data, rows_per_person=4)
    assert plain.attrs == one.attrs and (plain.posterior.theta.values == one.posterior.theta.values).all()
    k = plain.attrs["iterations"]
    assert four.attrs["iterations"] == pytest.approx(k / 16, abs=1)
    found = dpmc.budget(400, "dp-penalty", SETTING, epsilon=2, rows_per_person=4)
    assert found["tight"] == four.attrs["iterations"]
    assert dpmc.budget(400, "dp-penalty", SETTING, iterations=k, rows_per_person=4)["tight"] > 8.0
    step = {**SETTING, "proposal_sd": 0.005}  # of which some are accepted
    same = {"iterations": four.attrs["iterations"], "hyperparameters": step}
    draws = [sample(data, **same, **more).posterior.theta.values for more in ({}, {"rows_per_person": 4})]
    assert (draws[0] != draws[1]).any(), "two runs that differ have noise of their own"


def test_rows_beyond_those_of_a_person_are_dropped_in_python_and_in_the_shell(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("persons_here.py").write_text("import dpmc\nline = dpmc.LinearRegression('y', ['x'])\n")
    Path("set.yaml").write_text(json.dumps(SETTING))
    rows = np.random.default_rng(1).normal(size=(600, 2))
    table = pandas.DataFrame({"who": np.arange(600) % 150, "y": rows[:, 0], "x": rows[:, 1]})
    table.to_csv("people.csv", index=False)
    tree = sample("people.csv", rows_per_person=2, person="who")
    assert tree.attrs["n"] == 300 and not caplog.messages
    sample("people.csv", rows_per_person=2, person="who", progress=True)
    assert "n = 300 rows are kept, at most 2 of each who" in caplog.messages
    kept = sample(table.iloc[:300], rows_per_person=2)
    assert (tree.posterior.theta.values == kept.posterior.theta.values).all()
    cell = ["--model", "persons_here:line", "--method", "dp-penalty", "--epsilon", "2"]
    cell += ["--hyperparameters", "set.yaml", "--rows-per-person", "2"]
    run = ["sample", *cell, "--seed", "0", "--person", "who", "--output", "c.nc"]
    assert main([*run, "--data", "people.csv"]) == 0
    said = capfd.readouterr().err
    assert "of a person with at most 2 rows" in said
    assert "n = 300 rows are kept, at most 2 of each who\n" in said
    assert (read_chain("c.nc").draws == tree.posterior.theta.values).all()
    assert main(["budget", *cell, "--n", "300", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["tight"] == tree.attrs["iterations"]
    assert main([*run, "--force"]) == 2
    assert "--person: needs --rows-per-person, and a table of rows" in capfd.readouterr().err
