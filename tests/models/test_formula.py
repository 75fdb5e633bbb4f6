"""Formulas: formulaic's own matrices, rows that depend on no other, and texts that are refused."""

import pickle
import time
import warnings
from typing import Any

import numpy as np
import pandas
import pytest
from formulaic import model_matrix
from hypothesis import given, settings
from hypothesis import strategies as st

import dpmc
from dpmc.models.formula import FormulaDesign
from dpmc.models.score_tables import ScoreTable
from dpmc.privacy.questions import ScoreQuestion

BOOK: dict[str, Any] = {
    "fields": [
        {"name": "visits", "type": "integer", "constraints": {"minimum": 0}},
        {"name": "age", "type": "number", "constraints": {"minimum": 18, "maximum": 100}},
        {"name": "female", "type": "boolean", "share": 0.4},
        {"name": "plan", "type": "string", "constraints": {"enum": ["none", "public", "private"]}},
        {"name": "days", "type": "integer", "constraints": {"minimum": 0, "maximum": 365}},
        {"name": "total cost", "type": "number", "centre": 100, "scale": 50},
        {"name": "income", "type": "number", "centre": 40000, "scale": 20000},
        {"name": "region", "type": "string", "constraints": {"enum": ["a:b", "c"]}},
    ]
}
PARTS = (
    *("age", "female", "plan", "days", "`total cost`", "region", "C(plan, 'private')", "I(age**2)"),
    *(
        "sqrt(days)",
        "log(age - 5)",
        "log1p(days)",
        "abs(`total cost` - 100)",
        "I(-age / (1 + days))",
        "exp(age / 50)",
    ),
    *(
        "bs(age, knots=[30, 50])",
        "bs(days, knots=[100], degree=2)",
        "bs(age, knots=[40], upper_bound=60, extrapolation='clip')",
    ),
)


def design_of(right: str, **options: Any) -> FormulaDesign:
    return FormulaDesign(f"visits ~ {right}", codebook=BOOK, **options)


def rows_of(design: FormulaDesign, n: int = 50) -> np.ndarray:
    return design.simulate(np.random.default_rng(1), n)


def frame_of(design: FormulaDesign, x: np.ndarray) -> pandas.DataFrame:
    """Return rows as a table with the codebook's levels."""
    levels = {
        field["name"]: field["constraints"]["enum"] for field in BOOK["fields"] if field["type"] == "string"
    }
    columns = zip(design.columns, x.T, strict=True)
    return pandas.DataFrame(
        {
            name: pandas.Categorical.from_codes(column.astype(int), levels[name])
            if name in levels
            else column
            for name, column in columns
        }
    )


@pytest.mark.parametrize(
    ("right", "oracle"),
    [
        ("age", None),
        ("age + female * plan", None),
        ("0 + plan * region", None),
        ("plan:region - 1", None),
        ("age / plan + days:region:female", None),
        ("(age + female + plan)**2 - age:female", None),
        ("C(plan, 'public') * age", 'C(plan, Treatment("public")) * age'),
        ('C(plan, "private")', 'C(plan, Treatment("private"))'),
        ("log(days + 1) + I(age**2 / 7 - 3) + exp(-age / 20)", None),
        ("(age + female + plan)^2 + I(-age^2)", "(age + female + plan)**2 + I(-age**2)"),
        ("sqrt(`total cost`**2) + log10(age):plan", "np.sqrt(`total cost`**2) + log10(age):plan"),
        (
            "bs(age, knots=[30, 50]) * female",
            "bs(age, knots=[30, 50], lower_bound=18, upper_bound=100) * female",
        ),
        ("bs(days, knots=[9.5], degree=2, lower_bound=-1, upper_bound=400):plan", None),
        (
            "bs(age, knots=[40], upper_bound=60, extrapolation='extend')",
            "bs(age, knots=[40], lower_bound=18, upper_bound=60, extrapolation='extend')",
        ),
    ],
)
def test_terms_are_those_of_formulaic(right: str, oracle: str | None) -> None:
    design = design_of(right)
    x = rows_of(design)
    expected = model_matrix(oracle or right, frame_of(design, x))
    assert design.intercept == ("Intercept" in expected)
    found = design.own_terms(x)
    np.testing.assert_allclose(found, expected.drop(columns="Intercept", errors="ignore"), rtol=1e-12)
    centre, scale = design.standard
    np.testing.assert_array_equal(design(x)[:, design.intercept :], (found - centre) / scale)


def test_a_plain_formula_is_the_design_made_by_hand() -> None:
    model = dpmc.PoissonRegression("visits ~ female + age + plan", codebook=BOOK)
    levels = {"plan": ["none", "public", "private"]}
    by_hand = dpmc.PoissonRegression("visits", {"age": (59, 20.5), "female": (0, 1)}, levels=levels)
    assert set(model.parameters) == set(by_hand.parameters)
    order = [by_hand.parameters.index(name) for name in model.parameters]
    rows = model.simulate(np.random.default_rng(0), model.true_theta, 30)
    np.testing.assert_array_equal(model.design(rows), by_hand.design(rows)[:, order])
    table = {"plan": ["public", "none"], "age": [20, 30.5], "female": [True, "0"], "other": [1, 2]}
    np.testing.assert_array_equal(model.design(table), by_hand.design(table)[:, order])


def test_names_of_coefficients() -> None:
    model = dpmc.PoissonRegression(
        "visits ~ age + female * plan + log(days) + bs(age, knots=[50], degree=1)", codebook=BOOK
    )
    assert model.parameters == (
        *("intercept", "age", "female", "plan=public", "plan=private", "log(days)"),
        *("bs(age, knots=[50], degree=1)[1]", "bs(age, knots=[50], degree=1)[2]"),
        *("female:plan=public", "female:plan=private"),
    )
    assert model.columns == ("visits", "age", "female", "days", "plan")


def test_centres_and_scales() -> None:
    design = design_of("age + female * plan + age:female + I(age**2)")
    standard = dict(zip(design.coefficients[1:], design.standard.T.tolist(), strict=True))
    assert standard["age"] == [59.0, 20.5]  # of the codebook
    for name in ("female", "plan=public", "female:plan=private"):
        assert standard[name] == [0.0, 1.0]
    t = design.own_terms(rows_of(design, 100_000))
    for name in ("age:female", "I(age ** 2)"):
        column = t[:, design.coefficients.index(name) - 1]
        np.testing.assert_allclose(standard[name], [column.mean(), column.std()], rtol=0.1)
        assert standard[name] == [float(f"{number:.2e}") for number in standard[name]]
    bare = design_of("0 + age + I(age**2)")
    assert not bare.standard[0].any()
    assert bare.standard[1, 0] == 20.5


@settings(max_examples=60, deadline=None)
@given(
    parts=st.lists(st.sampled_from(PARTS), min_size=1, max_size=4, unique=True),
    signs=st.lists(st.sampled_from([" + ", " * ", ":"]), min_size=4, max_size=4),
    seed=st.integers(0, 99),
    block=st.integers(1, 40),
    outlier=st.sampled_from([np.nan, np.inf, 1e300, -1e300, 0.0]),
)
def test_a_row_depends_on_no_other(
    parts: list[str], signs: list[str], seed: int, block: int, outlier: float
) -> None:
    right = parts[0] + "".join(sign + part for sign, part in zip(signs, parts[1:], strict=False))
    try:
        design = design_of(right)
    except dpmc.DpmcError as error:  # of two references, or splines' products that are 0
        assert "references" in str(error) or "the same in all rows" in str(error)
        return
    x = design.simulate(np.random.default_rng(seed), 75)
    z = design(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        blocks = [design(x[i : i + block]) for i in range(0, len(x), block)]
        beside = design(np.vstack([x, np.full((1, x.shape[1]), outlier)]))[:-1]
    for other in (np.concatenate(blocks), beside, design(x[::-1])[::-1], design(np.asfortranarray(x))):
        np.testing.assert_array_equal(other.view(np.int64), z.view(np.int64))


@pytest.mark.parametrize(
    ("right", "says"),
    [
        ("poly(age, 2)", "powers"),
        ("scale(age)", "standardises"),
        ("center(age)", "standardises"),
        ("standardize(age)", "standardises"),
        ("cr(age, df=3)", "bs"),
        ("cs(age, knots=[30], lower_bound=18, upper_bound=100)", "bs"),
        ("cc(age, df=3)", "bs"),
        ("te(age, days)", "bs"),
        ("hashed(plan, levels=3)", "declare the levels"),
        ("lag(age)", "its own"),
        ("bs(age)", "knots="),
        ("bs(age, df=5)", "knots="),
        ("bs(age, 5)", "knots="),
        ("bs(age, knots=[30], df=5)", "knots="),
        ("bs(age, knots=[30], extrapolation='na')", "knots="),
        ("bs(age, knots=[30], include_intercept=True)", "knots="),
        ("bs(age, knots=[30, days])", "public numbers"),
        ("bs(age, knots=[30], degree=2.0)", "knots="),
        ("bs(age, knots=[30], degree=60)", "knots="),
        ("bs(3, knots=[3], lower_bound=1, upper_bound=5)", "names no field"),
        ("bs(age, knots=[50, 30])", "increase"),
        ("bs(age, knots=[10])", "increase"),
        ("bs(`total cost`, knots=[10])", "lower_bound"),
        ("bs(log(age), knots=[3.5])", "lower_bound"),
        ("age.mean()", "there are I"),
        ("I(age - age.mean())", "there are I"),
        ("I(age.values)", "backticks"),
        ("np.log(age)", "write log"),
        ("np.mean(age)", "there are I"),
        ("quantile(age)", "there are I"),
        ("C(age)", "enum"),
        ("C(female)", "enum"),
        ("C(plan, Sum)", "reference"),
        ("C(plan, levels=['none'])", "reference"),
        ("C(plan, 'gold')", "level of plan"),
        ("C(plan, 'public') + plan", "two references"),
        ("log(plan)", "category"),
        ("log(agee)", "is it age"),
        ("total_cost", "is it total cost"),
        ("3:age", r"multiply within I\(\)"),
        ("age * 2", r"multiply within I\(\)"),
        ("age + age**2", r"'age \*\* 2'.*I\(age\*\*2\)"),
        ("days + age^2", r"I\(age\*\*2\)"),
        ("log(age)**3", r"I\(log\(age\)\*\*2\)"),
        ("age:age", r"'age:age'.*I\(age\*\*2\)"),
        ("age * plan * age", r"I\(age\*\*2\)"),
        ("`total cost`:plan:`total cost`", r"I\(total cost\*\*2\)"),
        ("(age:plan)**2", r"I\(age\*\*2\)"),
        ("factor(plan)", "write the field, or C"),
        ("total.cost", "backticks"),
        ("I(2)", "names no field"),
        ("I(age - age)", "the same in all rows"),
        ("log(0 - days)", "finite"),
        ("visits", "is outcome or offset"),
        ("age | plan", "not allowed"),
        ("age %in% plan", "no formula"),
        ("[age ~ plan]", "one"),
        (".", "no formula"),
        ("", "no formula"),
        ("(age", "no formula"),
        ("age, days", "not allowed"),
        ("'age'", "no formula"),
        ("I(True)", "not allowed"),
        ("offset(days + 1)", r"offset\(field\)"),
        ("offset(days) + offset(log(age))", "one offset"),
        ("days + offset(log(days))", "is outcome or offset"),
        ("offset(visits)", "column of its own"),
        ("offset(log(plan))", "category"),
        ("age:offset(days)", "not allowed"),
        # of strangers
        ("__import__('os').system('touch hacked')", "not allowed"),
        ("I(__import__('os'))", "not allowed"),
        ("eval('1')", "not allowed"),
        ("open('hacked', 'w')", "not allowed"),
        ("I(().__class__.__mro__)", "not allowed"),
        ("I((lambda: age)())", "no formula"),
        ("I([a for a in age])", "not allowed"),
        ("I({age})", "not allowed"),
        ("{age + 1}", "not allowed"),
        ("I(f'{age}')", "not allowed"),
        ("I(age if age else 1)", "not allowed"),
        ("I(age[0])", "not allowed"),
        ("I(age == 3)", "not allowed"),
        ("I(age @ days)", "not allowed"),
        ("I(age := 3)", "no formula"),
        ("log(*age)", "not allowed"),
        ("log(age, out=days)", "not allowed"),
        ("log(_xff)", "is no field"),
        ("bs(age, knots=__import__('os').listdir())", "public numbers"),
        ("C(plan, Treatment(__import__('os')))", "reference"),
        ("*".join(["(age + days)"] * 40), "terms"),
        ("(age + female + days + plan)**9", "terms"),
        ("(((age + days)**9)**9)**9", "terms"),
        (" + ".join(["age"] * 3000), "no formula|too long"),
        (f"I({'+'.join(['age'] * 900)})", "too long"),
        ("(" * 400 + "age" + ")" * 400, "no formula"),
        ("log(" * 150 + "age" + ")" * 150, "finite|no formula"),
        ("\x00", "no formula"),
    ],
)
def test_what_is_refused(right: str, says: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(dpmc.DpmcError, match=says) as error:
        dpmc.PoissonRegression(f"visits ~ {right}", codebook=BOOK)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300
    assert not list(tmp_path.iterdir())


def test_products_of_many_levels_are_refused_before_they_are_made() -> None:
    many = {"type": "string", "constraints": {"enum": list(map(str, range(1500)))}}
    fields = [*BOOK["fields"], {"name": "a", **many}, {"name": "b", **many}]
    with pytest.raises(dpmc.DpmcError, match="coefficients"):
        dpmc.PoissonRegression("visits ~ a:b", codebook={"fields": fields})


@pytest.mark.parametrize(
    "formula", ["log(visits) ~ age", "~ age", "visits + age ~ days", "3 ~ age", "y ~ age"]
)
def test_the_outcome_is_a_field_as_it_is(formula: str) -> None:
    with pytest.raises(dpmc.DpmcError, match="field"):
        dpmc.PoissonRegression(formula, codebook=BOOK)


@pytest.mark.parametrize(
    "options", [{}, {"codebook": BOOK, "predictors": ["age"]}, {"codebook": BOOK, "intercept": False}]
)
def test_arguments_beside_a_formula(options: Any) -> None:
    with pytest.raises(dpmc.DpmcError, match="formula"):
        dpmc.PoissonRegression("visits ~ age", **options)


@pytest.mark.parametrize(
    "model",
    [
        dpmc.PoissonRegression("visits ~ age + female * plan", codebook=BOOK, prior_sd=1, norm=3),
        dpmc.LinearRegression("income ~ bs(age, knots=[40]) + log(`total cost`**2)", codebook=BOOK, sd=None),
        dpmc.LogisticRegression("female ~ 0 + C(plan, 'private')", codebook=BOOK),
        dpmc.NegativeBinomialRegression("visits ~ 1", codebook=BOOK),
    ],
)
def test_a_model_is_made_again_from_its_text(model: Any) -> None:
    again = eval(repr(model), {type(model).__name__: type(model)})
    assert repr(again) == repr(model)
    assert "title" not in repr(model)
    rows = model.simulate(np.random.default_rng(0), model.true_theta, 40)
    model.check_rows(rows)
    for other in (again, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.design(rows), model.design(rows))
        assert other.parameters == model.parameters


@pytest.mark.parametrize("sd", [None, 0.7])
@pytest.mark.parametrize(
    "right", ["age + I(age**2) + female * plan + age:plan", "0 + plan + bs(age, knots=[50])"]
)
def test_own_units(right: str, sd: float | None) -> None:
    model = dpmc.LinearRegression(f"income ~ {right}", codebook=BOOK, sd=sd)
    rows = model.simulate(np.random.default_rng(0), model.true_theta, 40)
    theta = np.random.default_rng(1).standard_normal(model.dimension)
    a, b = model.own_units()
    own = a @ theta + b
    t = model.design.own_terms(rows[:, 1:])
    t = np.column_stack([np.ones(len(t)), t]) if model.design.intercept else t
    k = t.shape[1]
    np.testing.assert_allclose(t @ own[:k], model.mean(model.design(rows) @ theta[:k]), rtol=1e-9)
    if sd is None:
        np.testing.assert_allclose(own[-1], theta[-1] + np.log(20000))


def test_predictors_are_needed_without_a_formula() -> None:
    with pytest.raises(dpmc.DpmcError, match="predictors: None"):
        dpmc.PoissonRegression("visits")


def test_own_units_that_do_not_exist_are_refused() -> None:
    for model in (
        dpmc.LinearRegression({"y": (1.0, 2.0)}, ["x"], intercept=False),
        dpmc.PoissonRegression("y", {"x": (3.0, 1.0)}, intercept=False),
    ):
        with pytest.raises(dpmc.DpmcError, match="own_units"):
            model.own_units()


def test_a_term_that_is_not_finite() -> None:
    model = dpmc.PoissonRegression("visits ~ age + log(days)", codebook=BOOK)
    rows = model.simulate(np.random.default_rng(0), model.true_theta, 5)
    assert (rows[:, 2] > 0).all()  # simulated rows have finite terms
    rows[3, 2] = 0.0
    with pytest.raises(dpmc.DpmcError, match=r"log\(days\): -inf in row 4 must be a finite number"):
        model.check_rows(rows)
    with pytest.raises(dpmc.DpmcError, match=r"log\(days\): -inf in row 2 must be a finite number"):
        model.design.new_rows({"age": [20, 30], "days": [3, 0]}, "here")
    design = design_of("bs(age, knots=[40], upper_bound=60)")
    assert np.isnan(design.own_terms(np.array([[61.0], [17.0]]))).all()
    assert np.isfinite(design.own_terms(np.array([[60.0], [18.0]]))).all()
    missing = design_of("plan + female").own_terms(np.array([[1.0, np.nan], [np.nan, 0.0]]))
    assert np.isnan(missing).all()


def test_offsets() -> None:
    model = dpmc.PoissonRegression("visits ~ age + offset(log(days))", codebook=BOOK, true_theta=[-1, 0.5])
    by_hand = dpmc.PoissonRegression("visits", {"age": (59, 20.5)}, exposure={"days": (182.5, 91.25)})
    assert model.columns == by_hand.columns
    rows = model.simulate(np.random.default_rng(0), model.true_theta, 400)
    theta = np.array([0.3, -0.2])
    np.testing.assert_array_equal(model.log_likelihood(theta, rows), by_hand.log_likelihood(theta, rows))
    a, b = model.own_units()
    own = a @ theta + b
    np.testing.assert_allclose(own[0] + own[1] * rows[:, 1] + np.log(rows[:, 2]), model.eta(theta, rows))
    bare = dpmc.PoissonRegression("visits ~ 0 + plan + offset(log(days))", codebook=BOOK)
    rows = bare.simulate(np.random.default_rng(0), bare.true_theta, 50)
    np.testing.assert_allclose(bare.eta(np.zeros(3), rows), np.log(rows[:, 2]))
    plain = dpmc.PoissonRegression("visits ~ 1 + offset(days)", codebook=BOOK)
    np.testing.assert_allclose(plain.design.offset(np.array([[3.0], [200.0]])), [3 - 182.5, 200 - 182.5])
    for each in (model, bare, plain):
        assert repr(eval(repr(each), {"PoissonRegression": dpmc.PoissonRegression})) == repr(each)
    with pytest.raises(dpmc.DpmcError, match="offset"):
        dpmc.LinearRegression("income ~ age + offset(days)", codebook=BOOK)
    with pytest.raises(dpmc.DpmcError, match="exposure: must not be given beside a formula"):
        dpmc.PoissonRegression("visits ~ age", codebook=BOOK, exposure="days")


def test_weights_beside_a_formula() -> None:
    model = dpmc.PoissonRegression("visits ~ age", codebook=BOOK, weights={"days": 365})
    rows = model.simulate(np.random.default_rng(0), model.true_theta, 20)
    assert model.columns == ("visits", "age", "days")
    assert model.design.weight(rows).shape == (20,)
    assert repr(eval(repr(model), {"PoissonRegression": dpmc.PoissonRegression})) == repr(model)
    assert model.design({"age": [20, 30]}).shape == (2, 2)


@pytest.mark.parametrize("maker", [dpmc.PoissonRegression, dpmc.LogisticRegression])
def test_a_row_without_finite_terms_counts_as_nothing(maker: Any) -> None:
    outcome = "visits" if maker is dpmc.PoissonRegression else "female"
    model = maker(f"{outcome} ~ age + log(days) + plan", codebook=BOOK)
    rows = model.simulate(np.random.default_rng(0), model.true_theta, 30)
    theta = np.array([0.2, 0.1, 0.0, 0.3, 0.0])
    odd = [3, 4, 20]
    rows[odd] = [[1.0, 40.0, 0.0, 1.0], [0.0, 40.0, 0.0, 0.0], [1.0, np.nan, 5.0, 1.0]]
    table = ScoreTable(model.family, 1.5)
    question = ScoreQuestion(model, table, theta, np.eye(5), 1.0, 1.0, 2.0, 0.2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        numbers, total = question.of_rows(rows), question.total(rows)
    assert not numbers[odd].any()
    assert numbers.any(axis=1).sum() == 27
    np.testing.assert_allclose(total, question.total(np.delete(rows, odd, axis=0)))
    assert np.isnan(model.design(rows)[odd, 1:]).all()


def test_a_design_of_many_rows_is_fast() -> None:
    design = design_of("age + female * plan + I(age**2) + log1p(days) + bs(age, knots=[30, 50]) + age:plan")
    x = rows_of(design, 336_776)
    began = time.perf_counter()
    design(x)
    assert time.perf_counter() - began < 2.0


def test_columns_of_two_values_are_known() -> None:
    """What may be asked of rows is bounded by it, so it must be said of no column with more values."""
    design = design_of("age + female * plan + age:plan")
    values = [len(np.unique(column)) for column in design(rows_of(design, 2000)).T]
    assert [count == 2 for count in values] == design.indicators.tolist()
    plain = dpmc.LogisticRegression("y", ["x", "f"], binary={"f": 0.3}, levels={"g": ["a", "b", "c"]}).design
    assert plain.indicators.tolist() == [False, False, True, True, True]
