"""Regressions: predictions, categories, fills, tables without the outcome, and how a model shows itself."""

import inspect
import pydoc
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import xarray

import dpmc
from dpmc.data.tables import read_rows
from dpmc.models.fingerprint import fingerprint
from dpmc.models.own import given_model
from dpmc.models.regression import OPTIONS

SCALES = {"age": (45.0, 15.0), "bmi": (28.0, 5.0)}
REGION = {"region": ["north", "south", "east"]}
MAKERS = {
    "linear": dpmc.LinearRegression,
    "logistic": dpmc.LogisticRegression,
    "poisson": dpmc.PoissonRegression,
}


def simulated(model: Any, n: int, theta: Any = None) -> np.ndarray:
    rows: np.ndarray = model.simulate(
        np.random.default_rng(5), model.true_theta if theta is None else theta, n
    )
    return rows


def with_draws(model: Any, rows: np.ndarray, draws: np.ndarray) -> Any:
    """Return a tree of `dpmc.sample` whose draws (draws, d) are these."""
    options = {"epsilon": "inf", "iterations": len(draws), "progress": False}
    tree = dpmc.sample(model, rows, "rwmh", hyperparameters={"proposal_sd": 0.01}, **options)
    tree.posterior["theta"] = tree.posterior.theta.copy(data=draws[None])
    return tree


@pytest.mark.parametrize("kind", MAKERS)
def test_predictions_are_outcomes_of_the_model_at_the_posterior_of_all_rows(kind: str) -> None:
    """Exact draws of a tempered posterior; the expectation has its moments, the outcomes those of both."""
    theta, cov = np.array([0.3, 0.4, -0.2]), np.diag([0.02, 0.01, 0.03])
    model = MAKERS[kind]("y", SCALES, true_theta=theta, tempering=100)
    draws = np.random.default_rng(1).multivariate_normal(theta, cov * 4.0, 8000)  # n = 400: T = 1/4
    new = pandas.DataFrame({"bmi": [28.0, 33.0], "age": [45.0, 60.0], "name": "x"})
    tree = model.predict(new, with_draws(model, simulated(model, 400), draws))
    found = tree.posterior_predictive
    assert found.y.dims == ("chain", "draw", "row") and found.y.shape == found.y_mean.shape == (1, 4001, 2)
    assert set(tree.children) >= {"posterior", "sample_stats", "posterior_predictive"}
    z = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    eta, sd = z @ theta, np.sqrt(((z @ cov) * z).sum(axis=1))
    link = {"linear": lambda e: e, "logistic": lambda e: np.log(e / (1 - e)), "poisson": np.log}[kind]
    at = link(found.y_mean.values[0])
    assert np.allclose(at.mean(axis=0), eta, atol=0.02) and np.allclose(at.std(axis=0), sd, rtol=0.06)
    mean = found.y_mean.values[0].mean(axis=0)
    spread = {"linear": sd**2 + 1.0, "logistic": mean * (1 - mean), "poisson": mean + mean**2 * sd**2}[kind]
    assert np.allclose(found.y.values[0].mean(axis=0), mean, atol=0.06)
    assert np.allclose(found.y.values[0].var(axis=0), spread, rtol=0.12)
    again = model.predict(new, tree)
    assert (again.posterior_predictive.y.values == found.y.values).all()
    assert (model.predict(new, tree, seed=1).posterior_predictive.y.values != found.y.values).any()


def test_a_scaled_outcome_is_predicted_in_its_own_unit() -> None:
    model = dpmc.LinearRegression(
        {"charges": (13000.0, 12000.0)}, SCALES, sd=0.5, true_theta=[0.0, 0.35, 0.2]
    )
    draws = np.tile(model.true_theta, (10, 1)) + 1e-9 * np.arange(10)[:, None]
    rows = simulated(model, 50)
    found = model.predict(rows[:, 1:], with_draws(model, rows, draws)).posterior_predictive
    expected = 13000.0 + 12000.0 * (model.design(rows) @ model.true_theta)
    np.testing.assert_allclose(found.charges_mean.values[0, 0], expected, rtol=1e-6)
    assert abs((found.charges.values - expected).std() / 6000.0 - 1.0) < 0.15


def test_predictions_need_chains_of_the_model_and_every_predictor() -> None:
    model = dpmc.LinearRegression("y", SCALES)
    rows = simulated(model, 50)
    tree = with_draws(model, rows, np.zeros((10, 3)) + np.arange(10)[:, None])
    with pytest.raises(
        dpmc.DpmcError, match=r"predict: the chains have parameters \['intercept', 'age', 'bmi'"
    ):
        dpmc.LinearRegression("y", ["age"]).predict(rows[:, :2], tree)
    with pytest.raises(dpmc.DpmcError, match="has no column 'bmi'; it has age"):
        model.predict(pandas.DataFrame({"age": [1.0]}), tree)
    with pytest.raises(dpmc.DpmcError, match="row 2, column age: is NaN or infinite"):
        model.predict({"age": [1.0, None], "bmi": [1.0, 2.0]}, tree)
    with pytest.raises(dpmc.DpmcError, match=r"rows: shape \(2, 5\) must be \(n, 2\)"):
        model.design(np.zeros((2, 5)))


def test_the_design_needs_no_outcome() -> None:
    model = dpmc.LogisticRegression("y", SCALES, norm=1.0)
    rows = simulated(model, 20)
    table = pandas.DataFrame(rows[:, 1:], columns=["age", "bmi"])
    for given in (rows[:, 1:], table, table.assign(y=rows[:, 0]), table.to_xarray(), table.to_dict("list")):
        np.testing.assert_array_equal(model.design(given), model.design(rows))


TEXTS = pandas.DataFrame(
    {"y": [1.0, 0.0, 1.0, 0.0], "age": [45, None, 60, 30], "region": ["south", "north", None, "east"]}
)
CATEGORIES = dpmc.LogisticRegression(
    "y", {"age": (45, 15)}, levels=REGION, fills={"age": 45, "region": "east"}
)


@pytest.mark.parametrize("kind", ["table", "csv", "gz"])
def test_levels_and_fills_are_those_given(kind: str, tmp_path: Path) -> None:
    path = tmp_path / ("t.csv.gz" if kind == "gz" else "t.csv")
    TEXTS.to_csv(path, index=False, na_rep="" if kind == "csv" else "NA")
    rows = read_rows(TEXTS if kind == "table" else path, CATEGORIES.columns, CATEGORIES.coding)
    assert rows.tolist() == [[1, 45, 1], [0, 45, 0], [1, 60, 2], [0, 30, 2]]
    assert CATEGORIES.parameters == ("intercept", "age", "region=south", "region=east")
    design = [[1, 0, 1, 0], [1, 0, 0, 0], [1, 1, 0, 1], [1, -1, 0, 1]]
    assert CATEGORIES.design(rows).tolist() == CATEGORIES.design(TEXTS.drop(columns="y")).tolist() == design


@pytest.mark.parametrize("source", ["table", "csv"])
def test_other_levels_and_missing_values_without_a_fill_are_refused(source: str, tmp_path: Path) -> None:
    model = dpmc.LogisticRegression("y", {"age": (45, 15)}, levels=REGION)

    def read(table: pandas.DataFrame) -> Any:
        path = tmp_path / "t.csv"
        table.to_csv(path, index=False)
        return read_rows(table if source == "table" else path, model.columns, model.coding)

    good = TEXTS.fillna({"age": 1, "region": "north"})
    assert read(good).shape == (4, 3)
    place = {"table": "row 3, column region", "csv": "t.csv: line 4: column region"}[source]
    with pytest.raises(dpmc.DpmcError, match=rf"{place}: 'west' is not a level \(north, south"):
        read(good.assign(region=["north", "north", "west", "north"]))
    with pytest.raises(dpmc.DpmcError, match="column region"):
        read(good.assign(region=["north", "north", None, "north"]))
    with pytest.raises(dpmc.DpmcError, match="column age"):
        read(good.assign(age=[1, 2, None, 4]))
    with pytest.raises(dpmc.DpmcError, match="predictor region: 3 in row 1 must be the place of a level"):
        model.check_rows(np.array([[1.0, 45.0, 3.0]]))


def test_a_model_with_categories_is_simulated_tuned_for_and_sampled() -> None:
    shares = {"region": {"north": 0.5, "south": 0.3, "east": 0.2}}
    model = dpmc.LinearRegression(
        "y", {"age": (45, 15)}, sd=0.5, levels=shares, true_theta=[0.1, 0.3, 0.5, -0.4], tempering=500
    )
    rows = simulated(model, 5000)
    found = np.bincount(rows[:, 2].astype(int)) / 5000
    np.testing.assert_allclose(found, [0.5, 0.3, 0.2], atol=0.03)
    names = np.array(["north", "south", "east"])[rows[:, 2].astype(int)]
    table = pandas.DataFrame({"y": rows[:, 0], "age": rows[:, 1], "region": names})
    options = {"epsilon": 8, "hyperparameters": {"tau": 0.7, "clip": 6, "proposal_sd": 0.03}}
    tree = dpmc.sample(model, table, progress=False, **options)
    draws = dpmc.sample(model, rows, progress=False, **options).posterior.theta.values
    assert (tree.posterior.theta.values == draws).all()
    assert np.abs(dpmc.summary(tree)["mean"] - model.true_theta).max() < 0.15


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"levels": {"region": ["north"]}}, "levels: region: .* two or more different levels"),
        ({"levels": {"region": "north"}}, "levels: region: 'north' must be two or more"),
        ({"levels": {"age": ["a", "b"]}}, "levels: age: is also among the predictors; name"),
        ({"levels": {"r": {"a": 1.0, "b": -1.0}}}, "levels: r: -1 must be greater than 0"),
        ({"fills": {"size": 1.0}}, "fills: size: must be one of the predictors"),
        ({"fills": {"y": 1.0}}, "fills: y: must be one of the predictors"),
        ({"fills": {"age": np.nan}}, "fills: age"),
        ({"levels": REGION, "fills": {"region": "west"}}, "fills: region: 'west' must be one of the levels"),
    ],
)
def test_wrong_levels_and_fills_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(dpmc.DpmcError, match=words):
        dpmc.LinearRegression("y", {"age": (45, 15)}, **options)


@pytest.mark.parametrize(
    "model",
    [
        dpmc.LinearRegression("y", ["x"]),
        dpmc.LinearRegression({"y": (3.0, 2.0)}, SCALES, sd=None, prior_sd=[1, 2, 3, 4], tempering=250),
        dpmc.LogisticRegression("y", SCALES, norm=2, binary={"bmi": 0.2}, intercept=False, true_theta=[1, 2]),
        dpmc.PoissonRegression("y", SCALES, levels=REGION, fills={"age": 40.0, "region": "east"}),
        dpmc.PoissonRegression("y", [], levels={"r": {"a": 0.25, "b": 0.75}}, prior_sd=2),
        dpmc.NegativeBinomialRegression("y", ["x"]),
        dpmc.NegativeBinomialRegression("y", SCALES, dispersion=0.5, tempering=20),
        dpmc.LinearRegression("y", SCALES, offset="o", weights={"copies": 50}),
        dpmc.LogisticRegression("y", SCALES, offset={"o": (1, 2)}, weights={"copies": 0.5}),
        dpmc.PoissonRegression("y", ["x"], exposure="days", fills={"days": 365}),
        dpmc.PoissonRegression("y", ["x"], exposure={"days": (365, 100)}, levels=REGION),
    ],
)
def test_what_a_regression_prints_makes_it_again(model: Any) -> None:
    text = repr(model)
    again = eval(f"dpmc.{text}", {"dpmc": dpmc})
    rows = simulated(model, 30)
    assert repr(again) == text
    of = [fingerprint(given_model(each)[1].model, rows) for each in (model, again)]
    assert of[0] == of[1] and again.design.predictors == model.design.predictors


def test_a_fingerprint_has_the_values_of_a_part_of_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Statistics of all rows take many times the memory of the rows."""
    model = dpmc.LinearRegression("y", ["x"], sd=1)
    rows, of = simulated(model, 30), []
    for most in (10, 30):
        monkeypatch.setattr("dpmc.models.fingerprint.SEEN_ROWS", most)
        of += [fingerprint(model, rows), fingerprint(model, rows[:10])]
    assert of[0] == of[1] == of[3] != of[2]


@pytest.mark.parametrize("make", [*MAKERS.values(), dpmc.NegativeBinomialRegression])
def test_help_says_where_the_arguments_are_documented(make: Any) -> None:
    assert "`dpmc.Regression` says what the " in pydoc.plain(pydoc.render_doc(make))
    text = inspect.getdoc(dpmc.Regression) or ""
    for name in ("outcome", "predictors", "family", *OPTIONS):
        assert f"\n{name}\n    " in text


def test_xarray_tables_have_levels_too() -> None:
    table = xarray.Dataset({"age": ("row", [45.0]), "region": ("row", ["south"])})
    assert CATEGORIES.design(table).tolist() == [[1.0, 0.0, 1.0, 0.0]]


def test_predict_warns_of_rows_that_the_norm_shortens(caplog: pytest.LogCaptureFixture) -> None:
    model = dpmc.LogisticRegression("y", ["a"], norm=1.0)
    draws = np.array([[0.0, 1.0]] * 40) + 1e-3 * np.arange(40)[:, None]
    tree = with_draws(model, simulated(model, 100), draws)
    new = pandas.DataFrame({"a": [0.5, 1.0, 3.0, -2.0]})
    found = model.predict(new, tree).posterior_predictive.y_mean.values[0, 0]
    assert found[1] == found[2], "shortened to the norm"
    assert [record.getMessage() for record in caplog.records] == [
        "predict: 2 rows are longer than norm 1 and are shortened"
    ]
    caplog.clear()
    model.predict(new[:2], tree)
    assert not caplog.records


def test_predict_warns_of_a_chain_that_never_moved(caplog: pytest.LogCaptureFixture) -> None:
    for tempering in (None, 20):
        model = dpmc.LinearRegression("y", ["a"], tempering=tempering)
        draws = np.random.default_rng(1).normal(size=(40, 2)) * [1.0, 0.0]
        caplog.clear()
        model.predict(np.zeros((1, 1)), with_draws(model, simulated(model, 100), draws))
        assert [record.getMessage() for record in caplog.records] == [
            "predict: a: never moved in the second half of the chain"
        ]


def test_predict_takes_a_file_one_chain_and_joined_runs(tmp_path: Path) -> None:
    model = dpmc.LinearRegression("y", ["a"], tempering=20)
    rows, new = simulated(model, 100), np.array([[0.5]])
    options: Any = {"epsilon": "inf", "iterations": 40, "progress": False}
    setting = {"hyperparameters": {"proposal_sd": 0.3}}
    runs = [dpmc.sample(model, rows, "rwmh", seed=seed, **options, **setting) for seed in range(2)]
    runs[0].to_netcdf(tmp_path / "chain.nc")
    wanted = model.predict(new, runs[0]).posterior_predictive
    for same in (str(tmp_path / "chain.nc"), tmp_path / "chain.nc", runs[0].isel(chain=0)):
        found = model.predict(new, same).posterior_predictive
        assert (found.y.values == wanted.y.values).all() and found.y.dims == ("chain", "draw", "row")
        assert dpmc.summary(same).equals(dpmc.summary(runs[0]))
    together = xarray.concat(runs, dim="chain", combine_attrs="drop_conflicts")
    assert model.predict(new, together).posterior_predictive.sizes["chain"] == 2
    pandas.testing.assert_frame_equal(dpmc.summary(together), dpmc.summary(*runs))


def test_what_predict_cannot_use_is_refused_in_one_line(tmp_path: Path) -> None:
    model = dpmc.LinearRegression("y", ["a"], tempering=20)
    rows, new = simulated(model, 100), np.array([[0.5]])
    tree = with_draws(model, rows, np.random.default_rng(1).normal(size=(40, 2)))
    posterior = tree.posterior.to_dataset()
    bare = xarray.DataTree.from_dict({"/posterior": xarray.concat([posterior, posterior], "chain")})
    for run, words in {
        "nowhere.nc": "nowhere.nc: no such file",
        None: "'NoneType' must be a chain file, a release, or a result",
    }.items():
        with pytest.raises(dpmc.DpmcError, match=words):
            model.predict(new, run)  # type: ignore[arg-type]
    for made, words in (
        (bare, "no attribute 'ledger', .*; runs that were joined need the `attrs` of one of them"),
        (tree.isel(draw=0), "no posterior/theta of chains, draws and parameters"),
        (tree.isel(draw=slice(37, None)), "3 kept draws per chain, needs at least 4"),
    ):
        for function in (lambda run: model.predict(new, run), dpmc.summary):
            with pytest.raises(dpmc.DpmcError, match=words):
                function(made)
    with pytest.raises(dpmc.DpmcError, match="predict: seed: -1 must be a whole number"):
        model.predict(new, tree, seed=-1)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (np.array([[45.0, 0.0], [np.nan, 1.0]]), "rows: ndarray: row 2, column age: is NaN or infinite"),
        (np.array([[-np.inf, 0.0]]), "rows: ndarray: row 1, column age: is NaN or infinite"),
        (np.array([[1.0, np.inf, 0.0]]), "rows: ndarray: row 1, column age: is NaN or infinite"),
        (
            np.array([[45.0, 3.0]]),
            "predictor region: 3 in row 1 must be the place of a level of region, 0 to 2",
        ),
        (np.array([["45", "0"]]), "rows: ndarray: <U2 must be numbers"),
        (pandas.DataFrame({"age": [np.inf], "region": "north"}), "row 1, column age: is NaN or infinite"),
        ("age region", "rows: str: must be an array, or a table in memory with columns age, region"),
        (45.0, "rows: float: must be an array, or a table"),
    ],
)
def test_new_rows_are_refused_alike_in_arrays_and_tables(rows: Any, words: str) -> None:
    model = dpmc.LinearRegression("y", {"age": (45.0, 15.0)}, levels=REGION)
    draws = np.random.default_rng(1).normal(size=(40, 4))
    with pytest.raises(dpmc.DpmcError, match=words):
        model.predict(rows, with_draws(model, simulated(model, 100), draws))


@pytest.mark.parametrize("kind", MAKERS)
def test_an_argument_that_no_regression_has_is_refused_with_those_there_are(kind: str) -> None:
    who = MAKERS[kind].__name__
    with pytest.raises(
        dpmc.DpmcError, match=f"{who}: clusters: is not an argument .* predictors, .*, weights$"
    ):
        MAKERS[kind]("y", ["x"], clusters="town")
