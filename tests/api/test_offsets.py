"""Offsets, exposures and frequency weights: a coefficient that is 1, and rows that count several times."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas
import pytest

import dpmc
from dpmc.algorithms.noisy_scores import NoisyScores, Search, answered_by
from dpmc.evaluators import evaluator_of
from dpmc.evaluators.generic import Evaluator
from dpmc.evaluators.lattice import Lattice, LatticeEvaluator
from dpmc.models import families
from dpmc.models.score_tables import score_table
from dpmc.privacy.data_ledger import DataLedger
from dpmc.privacy.questions import LengthQuestion, ScoreQuestion
from dpmc.releases import files
from dpmc.tuning.first_setting import without_privacy

THETA = np.array([0.2, 0.5, -0.3])
MAKERS: dict[str, Any] = {
    "linear": dpmc.LinearRegression,
    "linear, sd unknown": lambda *columns, **options: dpmc.LinearRegression(*columns, sd=None, **options),
    "linear, no intercept": lambda *columns, **options: dpmc.LinearRegression(
        *columns, intercept=False, **options
    ),
    "logistic": dpmc.LogisticRegression,
    "poisson": dpmc.PoissonRegression,
    "negative binomial": dpmc.NegativeBinomialRegression,
    "own family": lambda *columns, **options: dpmc.Regression(
        *columns, family=families.Normal(2.0), **options
    ),
}
EACH = pytest.mark.parametrize("kind", MAKERS)


def positions(model: Any) -> np.ndarray:
    """Return two positions of a model (2, d)."""
    return np.random.default_rng(2).normal(0.2, 0.3, (2, model.dimension))


def sums_of(evaluator: Any, theta: np.ndarray) -> list[np.ndarray]:
    """Return sums of ratios and gradients with and without clipping."""
    sums = [evaluator.ratio_sums(theta, theta + 0.05, np.full(2, bound)) for bound in (np.inf, 0.05)]
    return [*sums[0], *sums[1], *(evaluator.gradient_sums(theta, bound)[0] for bound in (np.inf, 1.0))]


@EACH
def test_an_offset_is_a_column_whose_coefficient_is_1(kind: str) -> None:
    model, plain = MAKERS[kind]("y", ["a", "b"], offset="o"), MAKERS[kind]("y", ["a", "b", "o"])
    theta = positions(model)
    rows = model.simulate(np.random.default_rng(1), theta[0], 300)
    assert model.columns == plain.columns == ("y", "a", "b", "o")
    place = len(model.design.coefficients)  # of the offset among the coefficients of the other model
    longer = np.insert(theta, place, 1.0, axis=1)
    for at, other in zip(theta, longer, strict=True):
        one, two = model.log_likelihood(at, rows), plain.log_likelihood(other, rows)
        np.testing.assert_allclose(one, two, rtol=1e-12)
        gradients = plain.log_likelihood_gradient(other, rows)
        one, two = model.log_likelihood_gradient(at, rows), np.delete(gradients, place, axis=1)
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-12)
    fast, generic = (sums_of(of(model, rows), theta) for of in (evaluator_of, Evaluator))
    for one, two in zip(fast, generic, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-9)
    integers = [LatticeEvaluator(each, rows, Lattice(2**20, 2**20)) for each in (model, plain)]
    moves = [
        each.ratio_integers(at[0], at[0] + 0.1 * step, 1e-6)
        for each, at, step in zip(integers, (theta, longer), (1.0, (longer[0] != 1.0)), strict=True)
    ]
    assert np.abs(moves[0] - moves[1]).max() <= 1


def test_an_exposure_is_the_offset_ln_of_value_over_centre() -> None:
    model = dpmc.PoissonRegression("y", ["a"], exposure={"days": (365.0, 100.0)})
    other = dpmc.PoissonRegression("y", ["a"], offset={"log_days": (np.log(365.0), 0.3)})
    rows = model.simulate(np.random.default_rng(1), THETA[:2], 2000)
    logs = np.column_stack([rows[:, :2], np.log(rows[:, 2])])
    np.testing.assert_allclose(
        model.log_likelihood(THETA[:2], rows), other.log_likelihood(THETA[:2], logs), rtol=1e-12
    )
    assert np.median(rows[:, 2]) == pytest.approx(365.0, rel=0.05)
    assert rows[:, 2].std() == pytest.approx(100.0, rel=0.15)
    plain = dpmc.PoissonRegression("y", ["a"], exposure="days")
    np.testing.assert_allclose(plain.design.offset(rows), np.log(rows[:, 2]), rtol=1e-12)


@EACH
def test_a_weight_is_as_many_copies_of_the_row(kind: str) -> None:
    model, plain = MAKERS[kind]("y", ["a", "b"], weights={"w": 9}), MAKERS[kind]("y", ["a", "b"])
    theta, generator = positions(model), np.random.default_rng(1)
    rows = np.column_stack([plain.simulate(generator, theta[0], 300), generator.integers(0, 10, 300)])
    copies = rows[:, :-1].repeat(rows[:, -1].astype(int), axis=0)
    for method in ("log_likelihood", "log_likelihood_gradient"):
        one, own = getattr(model, method)(theta[0], rows), getattr(plain, method)(theta[0], rows[:, :-1])
        np.testing.assert_allclose(one, (own.T * rows[:, -1]).T, rtol=1e-9, atol=1e-12)
        many = getattr(plain, method)(theta[0], copies)
        np.testing.assert_allclose(one.sum(axis=0), many.sum(axis=0), rtol=1e-9, atol=1e-9)
    fast, generic = (sums_of(of(model, rows), theta) for of in (evaluator_of, Evaluator))
    for one, two in zip(fast, generic, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-9)
    steps = theta[0], theta[0] + 0.05
    integers = LatticeEvaluator(model, rows, Lattice(2**20, 2**20)).ratio_integers(*steps, 1e-6)
    ratios = model.log_likelihood(steps[1], rows) - model.log_likelihood(steps[0], rows)
    np.testing.assert_allclose(integers, np.clip(ratios / 1e-6, -(2**20), 2**20), atol=1.0)
    if hasattr(model, "posterior"):
        law, other = model.posterior(rows, 0.5), plain.posterior(copies, 0.5)
        np.testing.assert_allclose(law.mean(), other.mean(), rtol=1e-9)
        np.testing.assert_allclose(law.covariance(), other.covariance(), rtol=1e-9)


def question_of(model: Any) -> ScoreQuestion:
    """Return a question about a model."""
    p = len(model.design.coefficients)
    table = score_table(model.family, 1.5)
    return ScoreQuestion(model, table, THETA[:p], np.eye(p), 1.2, 1.5, 0.4, 0.2)


@pytest.mark.parametrize("kind", ["own family", "logistic"])
def test_a_question_counts_a_row_w_times_with_noise_as_large_as_the_maximum(kind: str) -> None:
    model, plain = (
        MAKERS[kind]("y", ["a", "b"], offset="o", **options) for options in ({"weights": {"w": 9}}, {})
    )
    generator = np.random.default_rng(1)
    rows = np.column_stack([plain.simulate(generator, THETA, 300), generator.integers(0, 10, 300)])
    one, two = question_of(model), question_of(plain)
    np.testing.assert_allclose(one.of_rows(rows), two.of_rows(rows[:, :-1]) * rows[:, [-1]] / 9.0, rtol=1e-12)
    copies = two.answer(two.total(rows[:, :-1].repeat(rows[:, -1].astype(int), axis=0)))
    for got, wanted in zip(one.answer(one.total(rows)), copies, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)
    assert one.noise_sd == 9.0 * two.noise_sd and one.squares_sd == pytest.approx(9.0 * two.squares_sd)
    longer = MAKERS[kind]("y", ["a", "b", "o"])
    shifted = question_of(plain).of_rows(rows[:, :-1])
    eta = longer.design(rows[:, :-1]) @ np.append(THETA, 1.0)
    h = two.table.at(eta, rows[:, 0])
    assert np.allclose(np.sign(shifted[:, 0]), np.sign(h.h), atol=1e-12)
    z = plain.design(rows[:, :-1])
    lengths = LengthQuestion(plain, two.table, THETA, np.eye(3), 6.0).of_rows(rows[:, :-1])[:, 0]
    wanted = np.log(np.linalg.norm(z, axis=1) / np.sqrt(3.0) * two.table.root(eta))
    np.testing.assert_allclose(lengths, np.clip(wanted, -3.0, 3.0), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["logistic", "poisson", "linear"])
def test_an_odd_offset_or_weight_is_refused_in_the_lab_and_counts_as_nothing_in_a_release(kind: str) -> None:
    exposure = "exposure" if kind == "poisson" else "offset"
    model = MAKERS[kind]("y", ["a", "b"], **{exposure: "o"}, weights={"w": 9})
    rows = model.simulate(np.random.default_rng(1), THETA, 40)
    evaluator = LatticeEvaluator(model, rows, Lattice(2**20, 2**20))
    wrong = [(-2, np.nan), (-1, -1.0), (-1, 9.5), (-1, np.nan)] + [(-2, 0.0), (-2, -3.0)] * (
        kind == "poisson"
    )
    for place, value in wrong:
        odd = rows.copy()
        odd[7, place] = value
        if np.isfinite(value):
            words = (
                f"{exposure} o: .* greater than 0"
                if place == -2
                else "weights w: .* from 0 to 9, the maximum"
            )
            with pytest.raises(dpmc.DpmcError, match=words):
                dpmc.sample(model, odd, "rwmh", epsilon="inf", hyperparameters={"proposal_sd": 0.1})
        other = LatticeEvaluator(model, odd, Lattice(2**20, 2**20))
        asked = question_of(model)
        ratios = [each.ratio_integers(THETA, THETA + 0.1, 1e-6) for each in (evaluator, other)]
        for there, without in (ratios, [each.question_integers(asked) for each in (evaluator, other)]):
            assert there[7].any() and not without[7].any()
            assert np.array_equal(np.delete(there, 7, axis=0), np.delete(without, 7, axis=0))


TABLE = {"y": [1, 0, 2], "a": [0.1, -0.3, 0.4], "days": [30, 365, 200], "copies": [2, 1, 5]}


def test_tables_are_read_by_name_and_predictions_need_no_weight() -> None:
    model = dpmc.PoissonRegression(
        "y", ["a"], exposure={"days": (365, 100)}, weights={"copies": 5}, fills={"days": 365}
    )
    table = pandas.DataFrame({"copies": TABLE["copies"], **TABLE})
    setting: dict[str, Any] = {"hyperparameters": {"proposal_sd": 0.5}, "iterations": 200, "progress": False}
    tree = dpmc.sample(model, table, "rwmh", epsilon="inf", **setting)
    array = np.column_stack([table[name] for name in model.columns])
    other = dpmc.sample(model, array, "rwmh", epsilon="inf", **setting)
    np.testing.assert_array_equal(tree.posterior.theta, other.posterior.theta)
    new = pandas.DataFrame({"a": [0.2, 0.2, 0.2], "days": [365.0, 730.0, np.nan]})
    means = model.predict(new, tree).posterior_predictive["y_mean"].values
    np.testing.assert_allclose(means[..., 1], 2.0 * means[..., 0], rtol=1e-12)
    np.testing.assert_allclose(means[..., 2], means[..., 0], rtol=1e-12)
    with pytest.raises(dpmc.DpmcError, match="has no column 'days'"):
        model.predict(new[["a"]], tree)
    with pytest.raises(dpmc.DpmcError, match="exposure days: -1 in row 1 must be a number greater than 0"):
        model.predict(pandas.DataFrame({"a": [0.2], "days": [-1.0]}), tree)


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("poisson", {"offset": "o", "exposure": "days"}, "exposure: must be None beside an offset"),
        ("poisson", {"offset": ["o", "u"]}, "offset: .* must be one column"),
        ("poisson", {"exposure": {"days": (0, 1)}}, "exposure: days: centre: 0 must be greater than 0"),
        ("logistic", {"exposure": "days"}, "exposure: days: is for counts; give an offset"),
        ("linear", {"weights": "w"}, "weights: 'w' must be {name: largest weight}, which is public"),
        ("linear", {"weights": {3: 1}}, "weights: {3: 1} must be {name: largest weight}"),
        ("linear", {"weights": {"w": 0}}, "weights: w: 0 must be greater than 0"),
        ("linear", {"offset": "a"}, "two columns or parameters are called a"),
        ("linear", {"weights": {"a": 2}}, "two columns or parameters are called a"),
    ],
)  # fmt: skip
def test_mistakes_are_named_in_one_line(kind: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(dpmc.DpmcError, match=words) as caught:
        MAKERS[kind]("y", ["a", "b"], **options)
    assert "\n" not in str(caught.value)


BOOK: dict[str, Any] = {
    "fields": [
        {"name": "y", "type": "integer", "constraints": {"minimum": 0}},
        {"name": "a", "type": "number", "centre": 1, "scale": 2},
        {"name": "days", "type": "integer", "constraints": {"minimum": 1, "maximum": 365}, "fill": 365},
        {"name": "copies", "type": "integer", "constraints": {"minimum": 1, "maximum": 50}},
        {"name": "town", "type": "string", "constraints": {"enum": ["n", "s"]}},
    ]
}


def test_a_codebook_says_centre_scale_maximum_and_how_they_are_read() -> None:
    model = dpmc.PoissonRegression("y", ["a"], exposure="days", weights="copies", codebook=BOOK)
    assert (model.design.shift.centre, model.design.shift.scale) == (183.0, 91.0)
    assert model.design.weights == {"copies": 50.0}
    rows = model.simulate(np.random.default_rng(1), THETA[:2], 2000)
    model.check_rows(rows)
    days = rows[:, 2]
    assert days.min() >= 1.0 and days.max() <= 365.0 and np.array_equal(days, np.round(days))
    again = eval(f"dpmc.{model!r}", {"dpmc": dpmc})
    assert repr(again) == repr(model) and "exposure='days'" in repr(model)
    np.testing.assert_array_equal(
        again.log_likelihood(THETA[:2], rows), model.log_likelihood(THETA[:2], rows)
    )
    own = dpmc.PoissonRegression(
        "y", ["a"], exposure={"days": (1, 0.5)}, weights={"copies": 9}, codebook=BOOK
    )
    assert "exposure={'days': (1.0, 0.5)}, weights={'copies': 9.0}" in repr(own)
    np.testing.assert_allclose(own.design.offset(rows), np.log(days))
    setting: dict[str, Any] = {"hyperparameters": {"proposal_sd": 0.5}, "iterations": 200, "progress": False}
    table = pandas.DataFrame({**TABLE, "days": [30, None, 200]})
    tree = dpmc.sample(model, table, "rwmh", epsilon="inf", **setting)
    array = np.column_stack([table[name] for name in model.columns])
    array[1, 2] = 365.0
    other = dpmc.sample(model, array, "rwmh", epsilon="inf", **setting)
    np.testing.assert_array_equal(tree.posterior.theta, other.posterior.theta)
    for options, words in (
        ({"exposure": "town"}, "town: type string must be number or integer"),
        ({"weights": "town"}, "town: type string must be number or integer"),
        ({"weights": "a"}, "weights: 'a' must be {name: largest weight}"),
    ):
        with pytest.raises(dpmc.DpmcError, match=words):
            dpmc.PoissonRegression("y", [], codebook=BOOK, **options)


def test_noisy_scores_refuse_an_unknown_sd_beside_weights_and_too_little_for_the_maximum() -> None:
    method = NoisyScores(noise_multiplier=2.0)
    with pytest.raises(dpmc.DpmcError, match="sd: must be a number beside weights"):
        method.check(dpmc.LinearRegression("y", ["a"], sd=None, weights={"w": 9}), 10_000)
    method.check(dpmc.LinearRegression("y", ["a"]), 100)
    model = dpmc.LinearRegression("y", ["a"], weights={"w": 100})
    with pytest.raises(dpmc.DpmcError, match=r"n mu is 5 \(n = 100, mu = 0.05, by the largest weight\)"):
        method.check(model, 100)


def test_noisy_scores_say_that_weights_are_far_below_their_maximum() -> None:
    for most, expected in ((25, True), (1, False)):
        model = dpmc.LinearRegression("y", ["a"], weights={"w": most}, prior_sd=1.0)
        rows = model.simulate(np.random.default_rng(1), THETA[:2], 2000)  # weights are 1
        method = NoisyScores(noise_multiplier=8.0)
        search, generator = Search(method, model, 2000), np.random.default_rng(2)
        asking = search.questions()
        question: Any = next(asking)
        while question:
            noisy = question.total(rows) + generator.standard_normal(question.size)
            question = answered_by(asking, noisy)
        said = method.remarks(search.answered, model, 2000)
        assert any("weights are far below their maximum" in text for text in said) == expected


def test_simulated_rows_are_a_table_of_frequencies() -> None:
    """Persons with equal predictors and outcomes are one row, and intervals without privacy count persons."""
    model = dpmc.LogisticRegression("y", ["a"], weights={"w": 25})
    rows = model.simulate(np.random.default_rng(1), THETA[:2], 3000)
    assert rows.shape == (3000, 3) and rows[:, 2].sum() / 5 == pytest.approx(
        len(np.unique(rows[:, 1])), abs=1
    )
    model.check_rows(rows)
    at = 1.0 / (1.0 + np.exp(-model.design(rows) @ THETA[:2]))
    persons = rows[:, 2]
    z = (persons * (rows[:, 0] - at)).sum() / np.sqrt((persons * at * (1.0 - at)).sum())
    assert abs(z) < 4.0
    exact = SimpleNamespace(reference=np.empty((0, 2)))
    problem: Any = SimpleNamespace(model=model, rows=rows, true_theta=THETA[:2], temperature=1.0, exact=exact)
    sd = without_privacy(problem, np.random.default_rng(0), 10_000).std(axis=0)
    design = model.design(rows)
    wanted = np.linalg.inv((design.T * (persons * at * (1.0 - at))) @ design)
    np.testing.assert_allclose(sd, np.sqrt(np.diag(wanted)), rtol=0.05)


def test_releases_and_plans_take_offsets_and_weights(tmp_path: Path) -> None:
    model = dpmc.LogisticRegression("y", ["a"], offset={"o": (1.0, 0.5)}, weights={"w": 4}, prior_sd=1.0)
    rows = model.simulate(np.random.default_rng(1), THETA[:2], 600)
    ledger = DataLedger.create(tmp_path / "people.ledger", 10.0, 1e-2)
    output = tmp_path / "release.nc"
    given: dict[str, Any] = {"epsilon": 3, "delta": 1e-4, "ledger": ledger.path, "progress": False}
    tree = dpmc.release(model, rows, "noisy-scores", iterations=9, output=output, **given)
    assert "offset={'o': (1.0, 0.5)}, weights={'w': 4.0}" in tree.attrs["description"]
    assert files.hidden(output, files.read(output)) == []
    (found,) = dpmc.plan(model, n=2000, epsilon=3).predictions
    assert found.method == "noisy-scores" and list(found.half_widths) == ["intercept", "a"]
