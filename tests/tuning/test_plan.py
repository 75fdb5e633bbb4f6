"""`dpmc.plan`: half widths of intervals, from simulated tables, against those of real fits."""

import inspect
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import yaml

import dpmc
from dpmc.analysis import planning
from dpmc.analysis.planning import TWIN_DRAWS, drawing
from dpmc.cli.main import main
from dpmc.data import datasets
from dpmc.data.problem import Exact
from dpmc.models.gaussian import Gaussian
from dpmc.models.own import given_model
from dpmc.tuning.first_setting import reference_draws, scales, without_privacy

MODEL = dpmc.LogisticRegression("y", ["a", "b"], prior_sd=1.0, true_theta=[0.2, 0.5, -0.5])
GAUSSIAN = Gaussian(np.eye(2), 100.0, 100.0)  #: has summaries; simulated at 0
FORMULA = "visits ~ age + female * plan"
BOOK: dict[str, Any] = {
    "fields": [
        {"name": "visits", "type": "integer", "centre": 0.5, "constraints": {"minimum": 0}},
        {"name": "age", "type": "number", "constraints": {"minimum": 15, "maximum": 85}},
        {"name": "female", "type": "boolean", "share": 0.3},
        {
            "name": "plan",
            "type": "string",
            "constraints": {"enum": ["none", "public", "private"]},
            "share": {"none": 0.5, "public": 0.2, "private": 0.3},
        },
    ]
}


def people(n: int, seed: int) -> pandas.DataFrame:
    """Return rows as a real table has them: predictors are correlated, and age has effects."""
    g = np.random.default_rng(seed)
    age = np.clip(g.normal(50.0, 17.5, n), 15.0, 85.0)
    female = (g.random(n) < 0.3).astype(int)
    older = (age > 50.0).astype(float)
    place = (g.random(n)[:, None] > np.cumsum([0.6 - 0.2 * older, 0.15 + 0.1 * older], axis=0).T).sum(axis=1)
    visits = g.poisson(0.5 * np.exp(0.01 * (age - 50.0) - 0.1 * female))
    plan = np.array(["none", "public", "private"])[place]
    return pandas.DataFrame({"visits": visits, "age": age, "female": female, "plan": plan})


@pytest.mark.parametrize("epsilon", [0.5, 2])
def test_half_widths_of_a_formula_are_those_of_fits_within_a_fifth(epsilon: float) -> None:
    planned = dpmc.plan(FORMULA, BOOK, family="poisson", n=6000, epsilon=epsilon).predictions[0]
    frames = []
    for seed in range(3):
        fit = dpmc.fit(FORMULA, people(6000, seed), BOOK, family="poisson", epsilon=epsilon, seed=seed)
        frames.append(fit.to_frame()[["lower", "upper", "without_noise"]])
    table = sum(frames) / len(frames)
    assert list(planned.half_widths) == list(table.index)
    wide = 0.5 * (table["upper"] - table["lower"])
    np.testing.assert_allclose(list(planned.half_widths.values()), wide, rtol=0.2)
    known = table["without_noise"].notna()  # it is blank where noise hides it, at small ε
    assert known.sum() >= 5
    without = np.array(list(planned.without_privacy.values()))[known]
    np.testing.assert_allclose(without, 1.645 * table["without_noise"][known], rtol=0.25)


def test_a_residual_sd_and_its_width_are_in_the_units_of_the_outcome() -> None:
    model = dpmc.LinearRegression({"wage": (6.0, 2.0)}, {"a": (3.0, 4.0)}, sd=None, prior_sd=1.0)
    planned = dpmc.plan(model, n=3000, epsilon=1, guess={"log_sd": np.log(0.3)}).predictions[0]
    rows = model.simulate(np.random.default_rng(9), np.array([0.1, 0.2, np.log(0.3)]), 3000)
    fit = dpmc.Fit(
        dpmc.sample(model, rows, "noisy-scores", epsilon=1, progress=False), model=model
    ).to_frame()
    assert list(planned.half_widths) == ["intercept", "a", "residual sd"] == list(fit.index)
    np.testing.assert_allclose(
        list(planned.half_widths.values()), 0.5 * (fit["upper"] - fit["lower"]), rtol=0.2
    )


@pytest.mark.parametrize("rows", [2000, 20_000])
def test_some_rows_that_stand_for_all_give_the_widths_of_all(
    monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    found = []
    for most in (rows, 10**9):
        monkeypatch.setattr(planning, "MOST_TWIN_ROWS", most)
        plan = dpmc.plan(MODEL, n=40_000, epsilon=[0.1, 1])
        found.append(plan.to_frame()[["half_width", "without_privacy", "noise"]])
    np.testing.assert_allclose(found[0][["half_width", "without_privacy"]], found[1].iloc[:, :2], rtol=0.03)
    np.testing.assert_allclose(found[0]["noise"], found[1]["noise"], atol=0.05)


def test_each_n_and_epsilon_has_its_widths_and_more_of_either_narrows_them() -> None:
    plan = dpmc.plan(MODEL, n=[2000, 8000], epsilon=["0.5", 2])
    assert [(one.n, one.epsilon) for one in plan.predictions] == [
        (2000, 0.5),
        (2000, 2),
        (8000, 0.5),
        (8000, 2),
    ]
    few, spent, many, _ = (np.array(list(one.half_widths.values())) for one in plan.predictions)
    assert (spent < few).all() and (many < few).all()
    assert [one.method for one in plan.predictions] == ["noisy-scores"] * 4
    frame, text = plan.to_frame(), str(plan)
    assert list(frame["coefficient"]) == ["intercept", "a", "b"] * 4
    share = np.maximum(0.0, 1.0 - (frame["without_privacy"] / frame["half_width"]) ** 2)
    np.testing.assert_allclose(frame["noise"], share, atol=1e-12)
    assert f"{few[0]:.3g} ({share[0]:.0%})" in text and "n = 8,000" in text
    assert f"{few[0]:.3g} ({share[0]:.0%})" in plan._repr_html_()


def test_one_noisy_sum_is_planned_with_a_clip_bound_that_few_rows_exceed() -> None:
    (planned,) = dpmc.plan(GAUSSIAN, n=2000, epsilon=1).predictions
    assert planned.method == "noisy-statistics" and list(planned.half_widths) == ["theta[0]", "theta[1]"]
    rows = GAUSSIAN.simulate(np.random.default_rng(9), np.zeros(2), 20_000)
    norms = np.linalg.norm(GAUSSIAN.summaries(rows), axis=1)
    assert (norms > planned.hyperparameters["clip"]).mean() == pytest.approx(0.005, abs=0.003)
    given = {"hyperparameters": planned.hyperparameters, "epsilon": 1, "progress": False}
    tree = dpmc.sample(GAUSSIAN, rows[:2000], planned.method, **given)
    sides = tree.posterior.theta.quantile([0.05, 0.95], ("chain", "draw")).values
    np.testing.assert_allclose(list(planned.half_widths.values()), 0.5 * np.diff(sides, axis=0)[0], rtol=0.15)
    without = 1.645 * np.sqrt(np.diag(GAUSSIAN.posterior(rows[:2000], 1.0).covariance()))
    np.testing.assert_allclose(list(planned.without_privacy.values()), without, rtol=0.1)


def test_the_rows_of_a_person_cost_noise() -> None:
    one, three = (dpmc.plan(GAUSSIAN, n=2000, epsilon=0.5, rows_per_person=m).predictions[0] for m in (1, 3))
    assert three.half_widths["theta[0]"] > 1.1 * one.half_widths["theta[0]"]
    assert three.hyperparameters == one.hyperparameters
    with pytest.raises(dpmc.DpmcError, match="rows_per_person"):
        dpmc.plan(MODEL, n=2000, epsilon=1, rows_per_person=0)


def test_a_refusal_says_what_would_do_and_that_does() -> None:
    plan = dpmc.plan(MODEL, n=200, epsilon=[0.2, 4], delta=0.0005)
    refused, allowed = plan.predictions
    assert not refused.half_widths and allowed.half_widths and not allowed.obstacle
    ((rows, epsilon),) = re.findall(r"(\d+) rows, .*; epsilon ([\d.]+) would do$", refused.obstacle)
    for n, budget in ((int(rows), 0.2), (200, float(epsilon))):
        assert not dpmc.plan(MODEL, n=n, epsilon=budget, delta=0.0005).predictions[0].obstacle
    assert f"n = 200, epsilon 0.2, noisy-scores: refused: {refused.obstacle}" in str(plan)
    frame = plan.to_frame()
    assert list(frame["refusal"]) == [refused.obstacle, "", "", ""]
    alone = dpmc.plan(MODEL, n=200, epsilon=0.2)
    assert "refused" in str(alone) and "Empty" not in str(alone)
    with pytest.raises(dpmc.DpmcError, match="plot: every budget is refused"):
        alone.plot()


def test_where_the_prior_decides_it_is_said() -> None:
    model = dpmc.LogisticRegression("y", ["a", "b"], prior_sd=[5.0, 0.05, 5.0])
    plan = dpmc.plan(model, n=1000, epsilon=1)
    assert plan.predictions[0].by_prior == ("a",)
    assert "at least half as wide as the prior's: a" in str(plan)


def test_guesses_replace_parameters_and_a_codebook_says_the_mean_outcome() -> None:
    text = str(dpmc.plan(FORMULA, BOOK, family="poisson", n=5000, epsilon=1))
    assert f"assumes: intercept = {np.log(0.5):.3g}, parameters else 0" in text
    shares = {**BOOK, "fields": [{**BOOK["fields"][2], "name": "visits", "share": 0.2}, BOOK["fields"][1]]}
    text = str(dpmc.plan("visits ~ age", shares, family="logistic", n=5000, epsilon=1))
    assert f"assumes: intercept = {np.log(0.25):.3g}" in text
    model = dpmc.PoissonRegression("y", ["a"], prior_sd=1.0)
    rare, usual = (dpmc.plan(model, n=5000, epsilon=1, guess={"intercept": at}) for at in (-3.0, 0.0))
    ratio = rare.predictions[0].without_privacy["a"] / usual.predictions[0].without_privacy["a"]
    assert ratio == pytest.approx(np.exp(1.5), rel=0.15)
    for guess, rule in (({"b": 1.0}, "must be one of intercept, a"), ({"a": np.nan}, "guess: a")):
        with pytest.raises(dpmc.DpmcError, match=rule):
            dpmc.plan(model, n=500, epsilon=1, guess=guess)


def test_notes_name_the_share_beyond_the_norm() -> None:
    text = str(dpmc.plan(dpmc.LogisticRegression("y", ["a", "b"], norm=2.0, prior_sd=1.0), n=4000, epsilon=1))
    assert float(re.findall(r"norm: ([\d.]+)%", text)[0]) == pytest.approx(100 * np.exp(-2.0), abs=2.5)


def test_a_model_that_no_answer_serves_says_how_to_ask_for_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_chain(*_: Any) -> None:
        raise AssertionError("a chain was tried")

    monkeypatch.setattr(planning, "first_setting", no_chain)
    with pytest.raises(
        dpmc.DpmcError, match='mixture: none of noisy-scores, .* methods="dp-penalty" tries chains'
    ):
        dpmc.plan("mixture", n=2000, epsilon=1)


def test_chains_that_hardly_move_are_refused(caplog: pytest.LogCaptureFixture) -> None:
    model = dpmc.LogisticRegression("y", ["a"], prior_sd=1.0, true_theta=[0.2, 0.5])
    (chain,) = dpmc.plan(model, n=1000, epsilon=1, methods="dp-penalty").predictions
    assert chain.obstacle.startswith("chains have moved too little") and not chain.half_widths
    assert "plan dp-penalty, table 1 of 3" in caplog.text
    with pytest.raises(dpmc.DpmcError, match="methods: 'rwmh' must be one of .*noisy-scores"):
        dpmc.plan(model, n=1000, epsilon=1, methods=("rwmh",))


def test_chains_that_are_asked_for_have_widths() -> None:
    (chain,) = dpmc.plan(MODEL, n=20_000, epsilon=4, methods=["dp-penalty"], progress=False).predictions
    assert {"tau", "clip", "proposal_sd"} == {*chain.hyperparameters} and not chain.obstacle
    assert chain.half_widths["a"] >= 0.8 * chain.without_privacy["a"] and chain.seconds > 0.0


@pytest.mark.parametrize("tempering", [None, 300.0])
@pytest.mark.parametrize("sd", [None, 1.5])
def test_widths_without_privacy_are_those_of_a_long_walk(sd: float | None, tempering: float | None) -> None:
    model = dpmc.LinearRegression(
        "y", ["a"], sd=sd, prior_sd=0.1, tempering=tempering, true_theta=[0.1, 0.1, 0.4][: 3 - bool(sd)]
    )
    problem = datasets.build("m", "m", "fresh-0", 3000, definition=given_model(model)[1])
    unknown = replace(problem, exact=Exact.unknown(problem.dimension))
    found = without_privacy(unknown, drawing(0), TWIN_DRAWS).std(axis=0)
    np.testing.assert_allclose(found, reference_draws(unknown, scales(problem)).std(axis=0), rtol=0.15)
    if sd:
        np.testing.assert_allclose(found, problem.exact.reference.std(axis=0), rtol=0.1)


def test_where_hyperparameters_of_noisy_statistics_come_from() -> None:
    with pytest.raises(dpmc.DpmcError, match=r"clip .*dpmc.plan\(model, n=n, epsilon=...\) finds some"):
        dpmc.sample(GAUSSIAN, np.zeros((500, 2)), "noisy-statistics", epsilon=1, progress=False)
    for method in ("noisy-statistics", "noisy-scores"):
        with pytest.raises(dpmc.DpmcError, match=r"nothing to search; dpmc.plan\(model, n=n"):
            dpmc.tune(MODEL, 500, method, epsilon=1)


def test_it_takes_no_rows_and_needs_a_finite_budget(tmp_path: Path) -> None:
    arguments = [
        "model",
        "codebook",
        "family",
        "n",
        "epsilon",
        "delta",
        "guess",
        "methods",
        "rows_per_person",
    ]
    assert list(inspect.signature(dpmc.plan).parameters) == [*arguments, "progress", "options"]
    for wrong in (
        {"n": 100, "epsilon": "inf"},
        {"epsilon": 1},
        {"n": [], "epsilon": 1},
        {"n": 9, "epsilon": []},
    ):
        with pytest.raises(dpmc.DpmcError, match="n, epsilon: needed"):
            dpmc.plan(MODEL, **wrong)
    with pytest.raises(dpmc.DpmcError, match="codebook: needed by the formula 'y ~ a'"):
        dpmc.plan("y ~ a", n=500, epsilon=1)
    with pytest.raises(dpmc.DpmcError, match="prior_sd: only with a formula"):
        dpmc.plan(MODEL, n=500, epsilon=1, prior_sd=1.0)


def test_the_picture_has_a_panel_for_each_n_and_a_curve_for_each_coefficient(tmp_path: Path) -> None:
    plan = dpmc.plan(MODEL, n=[2000, 8000], epsilon=[1, 0.5])
    figure = plan.plot(tmp_path / "plan.png")
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG") and len(figure.axes) == 2
    axes = figure.axes[1]
    curves = [line for line in axes.lines if line.get_linestyle() == "-"]
    assert (axes.get_xscale(), axes.get_yscale(), len(curves)) == ("log", "log", 3)
    for line, name in zip(curves, ["intercept", "a", "b"], strict=True):
        assert line.get_xdata().tolist() == [0.5, 1.0]
        assert line.get_ydata()[0] == plan.predictions[3].half_widths[name]
    level = plan.predictions[2].without_privacy["a"]
    assert level in [line.get_ydata()[0] for line in axes.lines if line.get_linestyle() == "--"]


def test_the_command_prints_and_writes_the_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    book, csv, plot = tmp_path / "people.yaml", tmp_path / "plan.csv", tmp_path / "plan.png"
    book.write_text(yaml.safe_dump(BOOK, sort_keys=False))
    asked = [FORMULA, "--codebook", str(book), "--family", "poisson", "--n", "5000", "--epsilon", "0.5", "1"]
    assert main(["plan", *asked, "--csv", str(csv), "--plot", str(plot)]) == 0
    expected = dpmc.plan(FORMULA, BOOK, family="poisson", n=5000, epsilon=[0.5, 1]).to_frame()
    written = pandas.read_csv(csv, keep_default_na=False)
    np.testing.assert_allclose(written["half_width"], expected["half_width"])
    assert f"{expected['half_width'][0]:.3g} (" in capsys.readouterr().out and plot.stat().st_size > 1000
    linear = ["visits ~ age", "--codebook", str(book), "--n", "5000", "--epsilon", "1"]
    assert main(["plan", *linear, "--sd", "2"]) == 0
    assert "\nresidual sd" not in capsys.readouterr().out
    for wrong, rule in (
        ([*asked, "--csv", str(csv)], "exists; --force overwrites it"),
        ([*asked, "--model", "circle"], "FORMULA, --model: give one of them"),
        (["--epsilon", "1"], "FORMULA, --model: give one of them"),
        (["y ~ a", "--epsilon", "1"], "codebook: needed by the formula"),
        ([*asked, "--guess", "intercept"], "argument --guess: 'intercept' must be NAME=VALUE"),
        ([*asked, "--methods", "hmc"], "methods: 'hmc' must be one of"),
    ):
        assert main(["plan", *wrong]) == 2
        error = capsys.readouterr().err
        assert rule in error and error.count("\n") == 1


def test_the_command_plans_a_model_of_ones_own_or_the_catalogue(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--model", "circle", "--n", "1000", "--epsilon", "1", "--guess", "b=1"]) == 2
    assert "guess: 'b' must be one of theta[0], theta[1]" in capsys.readouterr().err
    assert main(["plan", "--model", "flat-banana-2d", "--epsilon", "1"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Banana: half widths of 90 % intervals, by noisy-statistics") and "theta[1]" in out
