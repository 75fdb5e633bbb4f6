"""The summary of parameters: moments and intervals of the posterior of all rows, and how it is shown."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmc
from dpmc.cli.main import main
from dpmc.common.draws import second_half_draws
from dpmc.metrics.cell import convergence
from dpmc.models.gaussian import Gaussian
from dpmc.results.parameters import parameter_lines

N, TEMPERING = 2000, 100
SETTING = {"tau": 1.0, "clip": 3.0, "proposal_sd": 0.1}
MODEL = dpmc.LinearRegression("y", ["x"], sd=0.5, prior_sd=1e5, tempering=TEMPERING, true_theta=[0.5, 1.0])
ROWS = MODEL.simulate(np.random.default_rng(3), MODEL.true_theta, N)


def sampled(**more: Any) -> Any:
    options = {"epsilon": 4, "hyperparameters": SETTING, "progress": False, **more}
    return dpmc.sample(MODEL, ROWS, **options)


def with_draws(draws: np.ndarray, **attributes: Any) -> Any:
    """Return a tree whose draws (chains, draws, 2) are these."""
    tree = sampled(epsilon="inf", iterations=draws.shape[1], chains=len(draws))
    tree.posterior["theta"] = tree.posterior.theta.copy(data=draws)
    tree.attrs |= attributes
    return tree


@pytest.fixture(scope="module")
def exact() -> Any:
    """Independent draws of the tempered posterior."""
    posterior = MODEL.posterior(ROWS, TEMPERING / N)
    draws = np.stack([posterior.draws(np.random.default_rng(i), 20_000) for i in range(2)])
    return with_draws(draws)


def test_tempering_is_taken_out_of_a_normal_posterior(exact: Any) -> None:
    """Within the error of 20,000 draws, standard deviation and interval are those of all rows."""
    table, posterior = dpmc.summary(exact, level=0.95), MODEL.posterior(ROWS, 1.0)
    sd = np.sqrt(np.diag(posterior.covariance()))
    np.testing.assert_allclose(table["sd"], sd, rtol=0.03)
    np.testing.assert_allclose(table["sd_draws"], sd * np.sqrt(N / TEMPERING), rtol=0.03)
    assert (np.abs(table["mean"] - posterior.mean()) < 5.0 * table["mcse"]).all()
    for side, z in (("lower", -1.96), ("upper", 1.96)):
        np.testing.assert_allclose((table[side] - table["mean"]) / np.hypot(sd, table["mcse"]), z, rtol=0.03)
    assert list(table.index) == ["intercept", "x"]
    assert table.attrs["temperature"] == TEMPERING / N and "0.2236 (√T)" in table.attrs["interval"]


def test_the_error_of_a_mean_does_not_shrink(exact: Any) -> None:
    """A short chain has a wider interval than its sd alone."""
    table = dpmc.summary(sampled())
    width = (table["upper"] - table["lower"]) / (2 * 1.6449)
    np.testing.assert_allclose(width, np.hypot(table["sd"], table["mcse"]), rtol=1e-3)
    assert (table["mcse"] > 0.3 * table["sd"]).all()


def test_a_curved_posterior_has_no_interval_of_all_rows() -> None:
    draws = np.random.default_rng(1).exponential(size=(2, 4000, 2))
    draws[..., 1] = np.random.default_rng(2).normal(size=(2, 4000))
    table = dpmc.summary(with_draws(draws))
    assert table.loc["intercept", ["sd", "lower", "upper"]].isna().all() and table.loc["x"].notna().all()
    assert "NaN where the draws are not nearly normal" in table.attrs["interval"]
    assert dpmc.summary(with_draws(draws, model_id="tempered-banana-2d"))["sd"].isna().all()
    untempered = dpmc.summary(with_draws(draws, temperature=1.0))
    np.testing.assert_allclose(untempered.loc["intercept", ["lower", "upper"]], [0.051, 2.996], rtol=0.05)
    assert (untempered["sd"] == untempered["sd_draws"]).all()


def test_the_noise_of_a_sum_is_not_taken_for_tempering() -> None:
    class Tempered(Gaussian):
        tempering = 100

    rows = np.random.default_rng(1).normal(0.5, 1.0, (1000, 2))
    setting: Any = {"hyperparameters": {"clip": 5.0}, "iterations": 500, "progress": False, "epsilon": 1}
    models = [kind(np.eye(2), 100.0, 100.0) for kind in (Tempered, Gaussian)]
    trees = [dpmc.sample(model, rows, "noisy-statistics", **setting) for model in models]
    table, whole = map(dpmc.summary, trees)
    assert table[["sd", "lower", "upper"]].isna().all(axis=None) and table["mean"].notna().all()
    assert "whose noise is not tempered" in table.attrs["interval"]
    assert whole.notna().all(axis=None)


def test_diagnostics_are_those_of_each_parameter_in_the_second_half() -> None:
    tree = sampled(chains=2)
    late = second_half_draws(tree)
    assert late.shape[1] == tree.attrs["iterations"] - (tree.attrs["iterations"] + 1) // 2 + 1
    table, worst = dpmc.summary(tree), convergence(late.values)
    assert (table["r_hat"].max(), table["ess"].min(), table["mcse"].max()) == tuple(worst.values())
    np.testing.assert_allclose(table["mean"], late.mean(("chain", "draw")))


def test_files_and_trees_are_joined_and_shown_by_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trees = [sampled(), sampled(seed=1)]
    names = [str(tmp_path / f"{seed}.nc") for seed in range(2)]
    for tree, name in zip(trees, names, strict=True):
        tree.to_netcdf(name)
    table = dpmc.summary(*trees, level=0.8)
    assert table.equals(dpmc.summary(names[0], trees[1], level=0.8))
    assert main(["summary", *names, "--level", "0.8"]) == 0
    said = capsys.readouterr().out.splitlines()
    shown = parameter_lines(table)
    assert [line for line in said if not line.startswith("dpmc: ")][-4:] == shown and "x  " in shown[2]
    assert "0.8 interval" in shown[-1] and said[1].split()[:2] == ["epsilon", "spent"]


def test_what_cannot_be_summarised_is_refused() -> None:
    other = dpmc.sample(MODEL, ROWS[:1000], epsilon=4, hyperparameters=SETTING, progress=False)
    for runs, level, words in (
        ([sampled(), other], 0.9, "summary: n must be the same in all runs, is 2000, 1000"),
        ([], 0.9, "summary: needs runs"),
        ([other], 1.0, "level: 1.* must be between 0 and 1"),
        ([other], None, "level: None is not a number"),
        ([other], True, "level: True is not a number"),
        ([sampled(iterations=5)], 0.9, "summary: 3 kept draws per chain, needs at least 4"),
    ):
        with pytest.raises(dpmc.DpmcError, match=words):
            dpmc.summary(*runs, level=level)


def test_runs_of_other_parameters_are_not_joined() -> None:
    """Models of one class, rows of one size: only the names of the parameters differ."""
    options: Any = {"epsilon": 4, "hyperparameters": SETTING, "progress": False}
    others = [dpmc.LinearRegression("y", names, tempering=TEMPERING) for names in (["x"], ["z"], ["x", "z"])]
    trees = [
        dpmc.sample(model, model.simulate(np.random.default_rng(1), model.true_theta, N), **options)
        for model in others
    ]
    for pair in (trees[:2], trees[1:]):
        with pytest.raises(dpmc.DpmcError, match="parameters must be the same in all runs, is .*intercept"):
            dpmc.summary(*pair)


def test_a_level_may_be_text(exact: Any) -> None:
    assert dpmc.summary(exact, level="0.9").equals(dpmc.summary(exact, level=0.9))  # type: ignore[arg-type]


@pytest.mark.parametrize("temperature", [1.0, 0.05])
@pytest.mark.parametrize(
    ("still", "words"),
    [
        (([0, 1], [0, 1]), "intercept, x: never moved in the second half of 2 of 2 chains"),
        (([0, 1], [1]), "x: never moved in the second half of 2 of 2 chains"),
        (([1], [0, 1]), "intercept, x: never moved in the second half of 1 of 2 chains"),
    ],
)
def test_a_parameter_that_a_chain_never_moved_has_no_interval(
    temperature: float, still: Any, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Still chains stand at different places, as chains from different starts do."""
    draws = np.random.default_rng(1).normal(size=(2, 200, 2))
    chains, parameters = still
    for chain in chains:
        draws[chain, :, parameters] = 0.1 * chain
    tree = with_draws(draws, temperature=temperature)
    caplog.clear()
    table = dpmc.summary(tree)
    assert [record.getMessage() for record in caplog.records] == [f"summary: {words}"]
    known = table.drop(columns=["mean", "sd_draws"]).notna().all(axis=1).to_numpy()
    unknown = table.drop(columns=["mean", "sd_draws"]).isna().all(axis=1).to_numpy()
    assert (unknown == np.isin([0, 1], parameters)).all() and (known == ~unknown).all()
    assert table[["mean", "sd_draws"]].notna().all(axis=None)
    assert "NaN where a chain never moved" in table.attrs["interval"]


def test_a_tempered_chain_says_so_where_arviz_shows_it() -> None:
    shown = sampled().posterior.attrs
    assert shown["temperature"] == TEMPERING / N and "likelihood to the power 0.05" in shown["tempered"]
    model = dpmc.LinearRegression("y", ["x"], sd=0.5)
    plain = dpmc.sample(model, ROWS, epsilon=4, hyperparameters=SETTING, progress=False).posterior.attrs
    assert plain["temperature"] == 1.0 and "tempered" not in plain
