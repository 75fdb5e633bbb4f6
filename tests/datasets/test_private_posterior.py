"""Sampling computes no exact posterior from private rows; evaluation does, and gets the same numbers."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import dpmc
from dpmc.cli.main import main
from dpmc.data import datasets
from dpmc.data.problem import read_problem

MODEL = """
import numpy as np


class Normal:
    dimension = 1
    n = 300
    true_theta = np.zeros(1)

    def log_likelihood(self, theta, rows):
        return -0.5 * ((rows - theta) ** 2).sum(axis=1)

    def simulate(self, generator, theta, n):
        return generator.normal(theta, 1.0, (n, 1))

    def posterior(self, rows, temperature):
        if PRIVATE in rows:
            raise ValueError("asked for the posterior of private rows")
        return Law(rows.mean(axis=0), 1.0 / (temperature * len(rows)))


class Law:
    def __init__(self, centre, variance):
        self.centre, self.variance = centre, variance
        self.mean, self.covariance = lambda: centre, lambda: np.array([[variance]])

    def draws(self, generator, size):
        return generator.normal(self.centre, np.sqrt(self.variance), (size, 1))


PRIVATE = 0.123456
"""
STUDY = """
title: own rows
delta: 0.1/n
seeds: 1
tuning: {mode: none}
models: {mine: {model: "normal_of_mine:Normal", data: rows.csv, epsilons: [4]}}
methods: {dp-penalty: {}}
figures: []
"""
SETTING = {"tau": 1.0, "clip": 2.0, "proposal_sd": 0.05}
SAMPLE = (
    "sample --study own.yaml --model mine --method dp-penalty --epsilon 4 --seed 0 --iterations 20 --quiet"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("normal_of_mine.py").write_text(MODEL)
    Path("own.yaml").write_text(STUDY)
    Path("hyperparameters").mkdir()
    Path("hyperparameters/own.yaml").write_text(f"dp-penalty: {{mine: {SETTING}}}\n".replace("'", ""))
    rows = np.append(np.random.default_rng(1).normal(0.5, 1.0, 299), 0.123456)
    pandas.DataFrame({"x": rows}).to_csv("rows.csv", index=False)
    yield tmp_path
    sys.modules.pop("normal_of_mine", None)


def in_python() -> None:
    options: dict[str, Any] = {"epsilon": 4, "hyperparameters": SETTING, "iterations": 20, "progress": False}
    dpmc.sample("normal_of_mine:Normal", "rows.csv", **options)


def by_the_command() -> None:
    assert main([*SAMPLE.split(), "--data", "rows.csv", "--output", "chain.nc"]) == 0


def by_the_pipeline() -> None:
    assert main("data --study own.yaml --model mine --output data.nc".split()) == 0
    assert main([*SAMPLE.split(), "--data", "data.nc", "--output", "chain.nc"]) == 0
    assert len(read_problem("data.nc").exact.reference) == 0


@pytest.mark.parametrize("run", [in_python, by_the_command, by_the_pipeline])
def test_sampling_never_asks_for_the_posterior_of_private_rows(run: Callable[[], None], folder: Path) -> None:
    run()


def test_evaluation_asks_for_it(folder: Path, capsys: Any) -> None:
    by_the_pipeline()
    evaluate = "evaluate --study own.yaml --data data.nc --chains chain.nc --output metrics.csv".split()
    assert main(evaluate) == 2
    assert "asked for the posterior of private rows" in capsys.readouterr().err
    __import__("normal_of_mine").PRIVATE = None
    assert main(evaluate) == 0
    table = pandas.read_csv("metrics.csv").set_index("metric")["value"]
    assert {"mmd", "mean_error", "covariance_error"} <= set(table.index)
    assert (
        main("evaluate --study own.yaml --model mine --data data.nc --baselines --output b.csv".split()) == 0
    )
    assert (pandas.read_csv("b.csv").metric == "mmd").sum() == datasets.BASELINES


def test_exact_draws_of_own_rows_are_those_of_public_rows_with_the_same_names() -> None:
    """What evaluation computes later equals what a data file holds from the beginning."""
    made = datasets.build("flat-banana-2d", "flat-banana-2d", "fresh-0", 200, 4)
    own = datasets.from_rows("flat-banana-2d", "flat-banana-2d", "own", made.rows, 4)
    assert len(own.exact.reference) == 0 and np.isnan(own.exact.posterior_mean).all()
    exact = datasets.exact_posterior(own)
    np.testing.assert_array_equal(exact.posterior_mean, made.exact.posterior_mean)
    np.testing.assert_array_equal(exact.posterior_covariance, made.exact.posterior_covariance)
    assert (
        exact.reference.shape == made.exact.reference.shape
        and exact.baselines.shape == made.exact.baselines.shape
    )
