"""`dpmc.fit`: what a fit says, in the table's own units."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

import dpmc
from analysis.conftest import BETA, BOOK, FORMULA
from dpmc.privacy.data_ledger import DataLedger


def test_coefficients_are_those_of_the_table_with_intervals(counted: dpmc.Fit) -> None:
    table = counted.to_frame(0.99)
    assert list(table.index) == [
        *("intercept", "age", "female", "plan=public", "plan=private"),
        *("female:plan=public", "female:plan=private"),
    ]
    assert (np.abs(table["estimate"] - BETA) < 4.0 * table["sd"]).all()
    assert np.allclose(table["ratio"], np.exp(table["estimate"]))
    assert np.allclose(table["upper"] - table["estimate"], 2.5758 * table["sd"], rtol=1e-4)
    narrow = counted.to_frame(0.5)
    assert (narrow["upper"] < table["upper"]).all() and table["sd"].equals(narrow["sd"])


def test_the_width_without_noise_is_that_of_the_likelihood(counted: dpmc.Fit, people: pd.DataFrame) -> None:
    """The answer's own estimate, beside the Fisher information of the rows, which no answer has."""
    model = counted.model
    rows = people.assign(
        female=(people["female"] == "f").astype(float),
        plan=people["plan"].map({"none": 0, "public": 1, "private": 2}),
    )[list(model.columns)].to_numpy(float)
    z = model.design(rows)
    theta = np.linalg.solve(counted.units, BETA)
    fisher = np.linalg.inv((z * np.exp(z @ theta)[:, None]).T @ z)
    exact = np.sqrt(np.diag(counted.units @ fisher @ counted.units.T))
    table = counted.to_frame()
    assert np.allclose(table["without_noise"], exact, rtol=0.15)
    assert ((table["noise"] > 0.0) & (table["noise"] < 0.9)).all()
    assert np.allclose(table["noise"], 1.0 - (table["without_noise"] / table["sd"]) ** 2)


def test_contrasts_are_linear_in_the_coefficients(counted: dpmc.Fit) -> None:
    found = counted.contrast(
        "plan[private] - plan[public]",
        "plan=private - plan=public",
        "plan[private] - plan[none]",
        "-2 * (age + female) / 4 + female:plan[private]",
    )
    at = dict(zip(counted.names, np.eye(7), strict=True))
    vectors = [
        at["plan=private"] - at["plan=public"],
        at["plan=private"] - at["plan=public"],
        at["plan=private"],
        -0.5 * at["age"] - 0.5 * at["female"] + at["female:plan=private"],
    ]
    for (_, row), vector in zip(found.iterrows(), vectors, strict=True):
        assert row["estimate"] == pytest.approx(vector @ counted.mean)
        assert row["sd"] == pytest.approx(np.sqrt(vector @ counted.covariance @ vector))


@pytest.mark.parametrize(
    "text",
    ["", "1", "plan", "age * female", "1 / age", "age + 1", "age.real", "__import__('os')", "age if 1"],
)
def test_what_is_no_contrast_is_refused_with_the_names(counted: dpmc.Fit, text: str) -> None:
    with pytest.raises(dpmc.DpmcError, match="contrast: .* must combine coefficients .*intercept, age"):
        counted.contrast(text)


def test_predictions_are_expected_outcomes_with_intervals(counted: dpmc.Fit) -> None:
    new = pd.DataFrame({"age": [30.0, 60.0], "female": ["f", "m"], "plan": ["none", "private"]})
    found = counted.predict(new, 0.99)
    z = np.array([[1, 30, 1, 0, 0, 0, 0], [1, 60, 0, 0, 1, 0, 0]])
    assert np.allclose(found["estimate"], np.exp(z @ counted.mean))
    sd = np.sqrt(((z @ counted.covariance) * z).sum(axis=1))
    assert np.allclose(found["upper"], np.exp(z @ counted.mean + 2.5758 * sd), rtol=1e-4)
    assert (found["outcome_lower"] <= found["estimate"]).all()
    assert (found["outcome_upper"] >= found["upper"]).all()
    assert counted.predict(new).equals(counted.predict(new))
    with pytest.raises(dpmc.DpmcError, match="has no column 'plan'"):
        counted.predict(new.drop(columns="plan"))


def test_predict_warns_of_rows_that_the_norm_shortens(caplog: pytest.LogCaptureFixture) -> None:
    model = dpmc.LogisticRegression("y", ["a"], norm=1.0, prior_sd=1.0)
    rows = model.simulate(np.random.default_rng(1), np.zeros(2), 2000)
    fit = dpmc.Fit(dpmc.sample(model, rows, "noisy-scores", epsilon=4, progress=False), model=model)
    caplog.clear()
    found = fit.predict({"a": [0.5, 1.0, 3.0, -2.0]})["estimate"]
    assert found[1] == found[2] and "predict: 2 rows are longer than norm" in caplog.text


def test_group_means_and_curves(counted: dpmc.Fit) -> None:
    means = counted.group_means("plan")
    assert list(means.index) == ["none", "public", "private"]
    new = pd.DataFrame({"age": 59.0, "female": "m", "plan": list(means.index)})
    assert np.allclose(means["estimate"], counted.predict(new)["estimate"])
    curve, places = counted.along("age")
    assert (places[0], places[-1], len(curve)) == (18.0, 100.0, 50)
    with pytest.raises(dpmc.DpmcError, match="group_means: 'age' is no category"):
        counted.group_means("age")
    with pytest.raises(dpmc.DpmcError, match="along: 'height' must be a predictor: age, female, plan"):
        counted.along("height")


def test_a_linear_fit_has_the_outcomes_unit_and_the_residual_sd(people: pd.DataFrame) -> None:
    found = dpmc.fit("income ~ age + female", people, BOOK, epsilon=2)
    table = found.to_frame(0.999)
    truth = {"intercept": 0.0, "age": 1000.0, "female": -5000.0, "residual sd": 8000.0}
    assert list(table.index) == list(truth) and "ratio" not in table
    assert (table["lower"] < pd.Series(truth)).all() and (pd.Series(truth) < table["upper"]).all()
    assert np.isnan(table.loc["residual sd", "noise"])


def test_a_proportion_and_an_exposure(people: pd.DataFrame, tmp_path: Path) -> None:
    """y ~ 1 of a 0/1 column is a proportion; with an exposure the intercept is a rate for one unit of it."""
    share = dpmc.fit("female ~ 1", people, BOOK, family="logistic", epsilon=1)
    odds = share.to_frame(0.999)[["ratio_lower", "ratio_upper"]].to_numpy()[0]
    low, high = odds / (1.0 + odds)
    assert low < (people["female"] == "f").mean() < high and high - low < 0.04
    with pytest.raises(dpmc.DpmcError, match="there is no coefficient besides"):
        share.plot()
    assert "<img" not in share.report(tmp_path / "share.html").read_text(encoding="utf-8")
    plain = dpmc.fit(FORMULA, people, BOOK, family="poisson", epsilon=2)
    rate = dpmc.fit(f"{FORMULA} + offset(log(days))", people, BOOK, family="poisson", epsilon=2)
    change = rate.mean - plain.mean
    assert abs(change[0] + np.log(300)) < 5 * plain.to_frame()["sd"].iloc[0]
    assert (np.abs(change[1:]) < 5 * plain.to_frame()["sd"].to_numpy()[1:]).all()


def test_a_larger_clip_bound_is_nearer_to_least_squares_if_residuals_are_skewed() -> None:
    """Bounded scores are unbiased for normal residuals; here they are exponential."""
    generator = np.random.default_rng(1)
    age = generator.uniform(18, 100, 20_000)
    income = 1_000.0 * age + 40_000.0 * (generator.exponential(1.0, 20_000) - 1.0)
    table = pd.DataFrame({"age": age, "income": income})
    exact = np.polynomial.polynomial.polyfit(age, income, 1)
    usual, large = (dpmc.fit("income ~ age", table, BOOK, epsilon=5, clip=clip) for clip in (1.0, 5.0))
    assert abs(usual.mean[0] - exact[0]) > 3_000 > 3 * abs(large.mean[0] - exact[0])


def test_a_release_is_read_again_from_its_file_alone(released: Path) -> None:
    found = dpmc.Fit(released)
    assert found.is_release and "may be published" in repr(found)
    assert found.heading[0] == FORMULA
    table = found.to_frame(0.999)
    assert ((table["lower"] < BETA) & (table["upper"] > BETA)).all()
    # A narrower prior draws the coefficients towards 0, at no further ε.
    shrunk = dpmc.Fit(released, prior_sd=0.01)
    assert np.abs(shrunk.mean[2:]).sum() < np.abs(found.mean[2:]).sum()
    spent = DataLedger.open(released.parent / "people.ledger").spent
    assert spent[0] == 2.0


def test_two_releases_make_one_answer(released: Path, people: pd.DataFrame) -> None:
    other = dpmc.fit(
        FORMULA,
        people,
        BOOK,
        family="poisson",
        epsilon=2,
        ledger=released.parent / "people.ledger",
        output=released.with_name("second.nc"),
    )
    both = dpmc.Fit([released, released.with_name("second.nc")])
    assert (both.to_frame()["sd"] < other.to_frame()["sd"]).all()
    assert "epsilon 2, delta 5e-06 and epsilon 2" in both.heading[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"family": "gamma"}, "family: 'gamma' must be one of linear, logistic, poisson"),
        ({"output": "x.nc"}, "output: 'x.nc': only a release has it; give its ledger"),
        ({"n": 7}, "n: 7: only a release has it"),
        ({"epsilon": "inf"}, "epsilon: 'inf' must be a budget"),
        ({"ledger": "x.ledger", "seed": 3}, "seed: 3: the noise of a release is secret"),
        ({"clip": -1.0}, "clip: -1.0"),
        ({"formula": "visits ~ scale(age)"}, "scale.*the codebook standardises it"),
        ({"formula": "visits ~ hight"}, "hight"),
        ({"epsilon": 0.001}, "noisy-scores: n mu is .* intervals hold from"),
        ({"codebook": {"fields": []}}, "fields"),
        ({"dispersion": 1.0}, "dispersion"),
        ({"ledger": "x.ledger", "rows_per_person": 2}, "rows_per_person: a release protects one row"),
    ],
)
def test_mistakes_are_errors_that_name_them(
    people: pd.DataFrame, arguments: dict[str, object], message: str
) -> None:
    given = {"formula": FORMULA, "data": people, "codebook": BOOK, "family": "poisson", "epsilon": 1}
    with pytest.raises(dpmc.DpmcError, match=message):
        dpmc.fit(**{**given, **arguments})  # type: ignore[arg-type]


def test_a_fit_needs_an_answer_of_a_regression(counted: dpmc.Fit) -> None:
    with pytest.raises(dpmc.DpmcError, match="level: 1 must be between 0 and 1"):
        counted.to_frame(1)
    model = dpmc.LinearRegression("y", ["x"])
    rows = np.random.default_rng(0).normal(size=(2000, 2))
    chain = dpmc.sample(
        model,
        rows,
        "dp-penalty",
        epsilon=1,
        progress=False,
        iterations=10,
        hyperparameters={"tau": 100.0, "proposal_sd": 0.1, "clip": 1.0},
    )
    with pytest.raises(dpmc.DpmcError, match="no answer to draw from"):
        dpmc.Fit(chain)


def test_the_width_without_noise_is_left_blank_where_noise_and_bounds_hide_it() -> None:
    """Of a group of 1 % of rows it would be too large by far; of groups that are not rare it holds."""
    generator, n = np.random.default_rng(1), 20_000
    levels = ["a", "b", "c"]
    groups = generator.choice(3, n, p=[0.6, 0.39, 0.01])
    x = generator.normal(size=n)
    table = pd.DataFrame(
        {"income": 0.3 * x + generator.normal(size=n), "x": x, "group": np.array(levels)[groups]}
    )
    fields = [{"name": name, "type": "number", "centre": 0, "scale": 1} for name in ("income", "x")]
    book = {"fields": [*fields, {"name": "group", "type": "string", "constraints": {"enum": levels}}]}
    fit = dpmc.fit("income ~ x + group", table, book, epsilon=1)
    found = fit.to_frame().loc[fit.names]
    z = np.column_stack([np.ones(n), x, groups == 1, groups == 2])
    exact = np.sqrt(np.diag(np.linalg.inv(z.T @ z)))
    assert found["without_noise"].to_numpy()[:3] == pytest.approx(exact[:3], rel=0.25)
    assert found.isna().to_numpy().sum() == found.loc["group=c", ["without_noise", "noise"]].isna().sum() == 2
    assert fit._without_noise[3, 3] > 4.0 * exact[3] ** 2, "what would be shown"
    hidden = fit.contrast("group[c] - group[b]", "group[b] - x")["noise"].isna()
    assert hidden.tolist() == [True, False]
    assert re.search(r"group=c .* – +–\n", repr(fit)) and "– where rows are too few" in repr(fit)
    labels = [text.get_text() for text in fit.plot().axes[0].get_yticklabels()]
    assert labels[2] == "group=c  (– noise)" and labels[1].endswith("% noise)")


@pytest.mark.parametrize(
    ("kind", "is_said"),
    [("normal", False), ("of two sds", True), ("log-normal", True), ("little epsilon", False)],
)
def test_residuals_that_are_not_normal_are_said_if_two_clip_bounds_were_used(
    kind: str, is_said: bool
) -> None:
    said = []
    for seed in range(3):
        generator, n = np.random.default_rng(seed), 10_000
        x, noise = generator.normal(size=n), generator.normal(size=n)
        if kind == "of two sds":
            noise *= np.exp(0.5 * x)
        elif kind != "normal":
            noise = np.exp(0.7 * noise)
        fields = [{"name": name, "type": "number", "centre": 0, "scale": 1} for name in "xy"]
        table = pd.DataFrame({"y": 0.4 * x + noise, "x": x})
        epsilon = 0.5 if kind == "little epsilon" else 4
        fit = dpmc.fit("y ~ x", table, {"fields": fields}, epsilon=epsilon, seed=seed)
        said.append(any("residuals are not normal" in remark for remark in fit.remarks))
        assert said[-1] == ("residuals are not normal" in repr(fit))
    assert said == [is_said] * 3


def of_numbers(y: np.ndarray, x: np.ndarray, **of_outcome: object) -> tuple[pd.DataFrame, dict[str, object]]:
    """Return a table of y and x, and its codebook; `of_outcome` are keys of y's field."""
    outcome = {"name": "y", "type": "number", "centre": 0.0, "scale": 1.0, **of_outcome}
    return pd.DataFrame({"y": y, "x": x}), {
        "fields": [outcome, {"name": "x", "type": "number", "centre": 0, "scale": 1}]
    }


@pytest.mark.parametrize(
    ("of_outcome", "is_said"),
    [
        ({"type": "integer", "constraints": {"minimum": 0}, "centre": 2, "scale": 3}, True),
        ({"shape": "skewed", "centre": 2}, True),
        ({"constraints": {"minimum": 0, "maximum": 20}, "centre": None, "scale": None}, False),
        ({"constraints": {"minimum": 0}, "centre": 4}, False),
        ({}, False),
    ],
)
def test_a_linear_family_is_warned_against_if_the_codebook_says_that_the_outcome_is_skewed(
    of_outcome: dict[str, object], is_said: bool
) -> None:
    generator = np.random.default_rng(1)
    table, book = of_numbers(generator.poisson(2.0, 3000), generator.normal(size=3000), **of_outcome)
    fit = dpmc.fit("y ~ x", table, book, epsilon=1)
    plan = dpmc.plan("y ~ x", book, n=3000, epsilon=1)
    for said in (repr(fit), repr(plan)):
        assert ("the family poisson or negative-binomial" in said) == is_said
    counts = dpmc.fit("y ~ x", table, book, family="poisson", epsilon=1)
    assert "says that y is skewed" not in repr(counts)


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_a_release_says_from_its_answers_that_many_rows_count_as_nothing(
    share: float, tmp_path: Path
) -> None:
    for seed in range(2):
        generator, n = np.random.default_rng(seed), 5000
        x = np.exp(generator.normal(size=n)) - 1.6
        table, book = of_numbers(0.5 * x + generator.normal(size=n), x)
        table.loc[generator.uniform(size=n) < share, "y"] = np.nan
        DataLedger.create(tmp_path / f"{seed}.ledger", epsilon=1, delta=1e-4)
        paid = {"ledger": tmp_path / f"{seed}.ledger", "output": tmp_path / f"{seed}.nc"}
        fit = dpmc.fit("y ~ x", table, book, epsilon=1, delta=2e-5, **paid)
        said = [remark for remark in fit.remarks if "of the rows count" in remark]
        assert len(said) == (share > 0.0) and dpmc.Fit(paid["output"]).remarks == fit.remarks
        assert all(45 < int(re.search("about (.*)%", remark)[1]) < 75 for remark in said)


@pytest.mark.parametrize(
    ("family", "cure"),
    [("poisson", "the family negative-binomial"), ("negative-binomial", "a larger dispersion")],
)
def test_overdispersed_counts_are_said_with_what_to_write(family: str, cure: str) -> None:
    generator, n = np.random.default_rng(2), 10_000
    x = generator.normal(size=n)
    y = generator.poisson(2.0 * np.exp(0.2 * x) * generator.gamma(1 / 3, 3.0, n))
    table, book = of_numbers(y, x)
    fit = dpmc.fit("y ~ x", table, book, family=family, epsilon=2)
    assert any(remark.endswith(f"{cure} allows for it") for remark in fit.remarks)


def test_a_summary_of_draws_says_that_they_are_of_standardised_columns(counted: dpmc.Fit) -> None:
    assert dpmc.summary(counted.tree).attrs["interval"].endswith("; of columns standardised by the codebook")


def test_the_axis_beside_long_names_is_labelled_within_the_picture() -> None:
    generator = np.random.default_rng(1)
    table, book = of_numbers(generator.normal(size=3000), generator.normal(size=3000))
    formula = "y ~ bs(x, knots=[-1.0, -0.5, 0.0, 0.5, 1.0], degree=3, lower_bound=-6, upper_bound=6)"
    figure = dpmc.fit(formula, table, book, epsilon=4).plot()
    figure.draw_without_rendering()
    texts = [text for text in figure.findobj(Text) if re.match("coefficient|bs", text.get_text())]
    assert len(texts) > 8
    for box in (text.get_window_extent() for text in texts):
        assert box.x0 >= 0.0 and box.x1 <= figure.bbox.x1
