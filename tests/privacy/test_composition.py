"""The sum of several budgets, and the joint ε of several runs on the same rows."""

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmc
from dpmc.privacy import accountants
from dpmc.privacy.accountants.basic import total
from dpmc.privacy.events import ApproximateQuery, GaussianQuery, to_json
from dpmc.results import as_tree

ROWS = np.random.default_rng(1).normal(size=(400, 2))
SETTINGS = {
    "dp-penalty": {"tau": 0.5, "clip": 5, "proposal_sd": 0.05},
    "dp-sgld": {"batch_size": 40, "clip": 5, "step_size": 0.01},
}


def run(seed: int = 0, algorithm: str = "dp-penalty", epsilon: float | str = 1, **more: Any) -> Any:
    options = {"epsilon": epsilon, "seed": seed, "progress": False, "hyperparameters": SETTINGS[algorithm]}
    return dpmc.sample(dpmc.LinearRegression("y", ["x"]), ROWS, algorithm, **options, **more)


@pytest.mark.parametrize(
    "numbers", [[], [0.1], [0.1, 0.2], [0.1] * 10, [1e-300, 1.0, 1e16], [0.3, 4.0, 1e-9]]
)
def test_a_sum_is_the_least_double_that_is_not_below_it(numbers: list[float]) -> None:
    exact = sum(map(Fraction, numbers), Fraction())
    for found in total(numbers, numbers):
        assert Fraction(found) >= exact
        assert found == 0.0 or Fraction(math.nextafter(found, 0.0)) < exact


def test_an_infinite_part_makes_the_sum_infinite() -> None:
    assert total([1.0, math.inf], [0.1, 0.2])[0] == math.inf


def test_runs_add_up_from_files_and_from_memory(tmp_path: Path) -> None:
    runs = [run(), run(1, epsilon=2, delta=1e-5), run(algorithm="dp-sgld")]
    spent = [json.loads(tree.attrs["ledger"])["epsilon_spent"] for tree in runs]
    runs[1].to_netcdf(tmp_path / "chain.nc")
    assert dpmc.joint_epsilon(runs[0]) == (spent[0], 0.1 / 400, 1)
    together = dpmc.joint_epsilon(runs[0], tmp_path / "chain.nc", runs[2])
    assert together == pytest.approx((sum(spent), 0.2 / 400 + 1e-5, 1))
    endless = dpmc.joint_epsilon(runs[0], run(epsilon="inf", iterations=5))
    assert endless.epsilon == math.inf


def test_gaussian_queries_together_cost_less_than_the_sum() -> None:
    runs, delta = [run(0), run(1), run(2)], 0.1 / 400
    together = dpmc.joint_epsilon(*runs, delta=delta)
    assert together.epsilon < 0.8 * dpmc.joint_epsilon(*runs).epsilon
    k = sum(tree.attrs["iterations"] for tree in runs)
    event = GaussianQuery("log-likelihood ratio", 0.5 * math.sqrt(400), k)
    assert together == (pytest.approx(accountants.get("tight").epsilon([event], delta)), delta, 1)


def test_epsilon_of_rows_and_of_persons_is_not_added() -> None:
    row, person = run(), run(1, rows_per_person=3, epsilon=6)
    assert dpmc.joint_epsilon(person, person).rows_per_person == 3
    for runs in ([row, person], []):
        with pytest.raises(dpmc.DpmcError, match="rows_per_person: must be the same in all runs"):
            dpmc.joint_epsilon(*runs)


def test_of_persons_only_gaussian_queries_compose() -> None:
    tree = run()
    ledger = json.loads(tree.attrs["ledger"])
    ledger |= {"rows_per_person": 3, "performed": to_json([ApproximateQuery("optimum", 1.0, 1e-6)])}
    tree.attrs["ledger"] = json.dumps(ledger)
    with pytest.raises(dpmc.DpmcError, match="of persons with several rows only Gaussian queries"):
        dpmc.joint_epsilon(tree, delta=1e-4)


def test_queries_on_batches_are_added_and_not_composed(tmp_path: Path) -> None:
    with pytest.raises(dpmc.DpmcError, match="'wor-pld' does not cover runs chosen by earlier results"):
        dpmc.joint_epsilon(run(algorithm="dp-sgld"), delta=1e-4)
    with pytest.raises(dpmc.DpmcError, match="no such file"):
        dpmc.joint_epsilon(tmp_path / "none.nc")
    with pytest.raises(dpmc.DpmcError, match="'int' must be a chain file, a release, or a result"):
        as_tree(3)  # type: ignore[arg-type]
