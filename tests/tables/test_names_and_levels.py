"""Names of columns and levels: what has names is read by name or refused, and each level is one."""

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import xarray

import dpmc
from both_readers import both
from dpmc.common.errors import DpmcError
from dpmc.models.columns import Coding, text_of

FRAME = pandas.DataFrame({"x": [1.0, 2.0], "y": [10.0, 20.0]})
BY_NAME = [[10.0, 1.0], [20.0, 2.0]]


class Frame(pandas.DataFrame):
    """A subclass as those of other libraries."""

    @property
    def _constructor(self) -> Any:
        return Frame


class Series(pandas.Series):
    """A subclass of a column."""


class Dataset(xarray.Dataset):
    """A subclass of a data set."""

    __slots__ = ()


class Foreign:
    """A table of another library: its array has no names."""

    def __init__(self, **names: Any) -> None:
        vars(self).update(names)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return FRAME.to_numpy()


@pytest.mark.parametrize(
    "source",
    [
        Frame(FRAME),
        Dataset({"x": ("row", [1.0, 2.0]), "y": ("row", [10.0, 20.0])}),
        xarray.DataArray(FRAME.to_numpy(), dims=("row", "column"), coords={"column": ["x", "y"]}),
        {"x": [1.0, 2.0], "y": np.array([10.0, 20.0])},
        {"x": pandas.Series([1.0, 2.0]), "y": (10, 20)},
        FRAME.astype("category"),
        FRAME.astype(complex),
        FRAME.astype(str),
        FRAME.astype(object),
        FRAME.astype("Float64"),
        FRAME.astype({"x": bool}).astype({"x": "boolean"}).assign(x=pandas.array([1, 2], "Int8")),
        FRAME.map(lambda value: Decimal(str(value))),
        FRAME.map(Fraction),
    ],
    ids=lambda source: type(source).__name__,
)
def test_a_table_with_names_is_read_by_name(source: Any) -> None:
    assert both(source, ["y", "x"])[0].tolist() == BY_NAME
    if not isinstance(source, xarray.DataArray):
        model = dpmc.LinearRegression("x", ["y"])
        assert model.design(source).tolist() == [[1.0, 10.0], [1.0, 20.0]]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (
            Foreign(columns=["x", "y"]),
            "has columns with names, and they cannot be read by name",
        ),
        (Foreign(column_names=["x", "y"]), "convert it, for example with .to_pandas()"),
        (Foreign(__dataframe__=None), "convert it"),
        (Foreign(__arrow_c_stream__=None), "convert it"),
        (Foreign(dims=("a", "b"), data_vars={}), "convert it"),
        (FRAME.to_records(), "convert it"),
        (np.array([(1.0, 10.0)], [("x", float), ("y", float)]), "convert it"),
        (pandas.concat({"a": FRAME}, axis=1), "has names of 2 levels; make them one"),
        (FRAME.set_axis([1990, 1991], axis=1), "has no column 'y'; it has 1990, 1991"),
        (FRAME.set_axis([1, 0], axis=1), "has no column 'y'; it has 1, 0"),
        (FRAME.set_axis(["y", "y"], axis=1), "two columns have the same name, y"),
        (FRAME.set_axis(["\u00e2", "a\u0302"], axis=1), "has no column 'y'"),
        (FRAME["x"], "has no column 'y'; it has x"),
        (FRAME["x"].to_xarray(), "has no column 'y'; it has x"),
        ({"y": [1.0], "x": [1.0, 2.0]}, "must have columns of the same length"),
        ({"y": 1.0, "x": 2.0}, "must be columns by their names"),
        ({"y": np.zeros((2, 2)), "x": [1.0, 2.0]}, "must be columns by their names"),
        ({}, "must have columns of the same length"),
        (FRAME.astype("datetime64[ns]"), "column y: type datetime64[ns] holds no numbers"),
        (FRAME.astype("timedelta64[ns]").to_xarray(), "column y: type timedelta64[ns] holds no numbers"),
        (FRAME.astype("datetime64[ns]").astype("category"), "column y: type datetime64[ns] holds no numbers"),
        (FRAME.assign(y=pandas.period_range("2020", periods=2)), "column y: type period[D] holds no numbers"),
        (
            FRAME.assign(y=pandas.interval_range(0, 2)),
            "column y: type interval[int64, right] holds no",
        ),
        (FRAME.to_numpy().astype("datetime64[s]"), "column y: type datetime64[s] holds no numbers"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_would_be_read_by_position_or_as_nothing_is_refused(source: Any, words: str) -> None:
    assert words in both(source, ["y", "x"])[0]


def test_a_column_is_not_asked_for_twice() -> None:
    for names in (["y", "y"], ["\u00e2", "a\u0302"]):
        assert "is asked for twice" in both(FRAME.rename(columns={"x": "\u00e2"}), names)[0]


@pytest.mark.parametrize("names", [("\u00e2ge", "a\u0302ge"), ("a\u0302ge", "\u00e2ge")])
def test_names_and_levels_that_look_the_same_are_the_same(names: Any, tmp_path: Path) -> None:
    of_model, of_table = names
    model = dpmc.LinearRegression("y", [of_model], levels={"g": [of_model, "b"]})
    table = pandas.DataFrame({"y": [1.0, 2.0], of_table: [2.0, 3.0], "g": [of_table, "b"]})
    table.to_csv(tmp_path / "t.csv", index=False)
    for source in (table, table.to_xarray(), tmp_path / "t.csv", table.to_dict("list")):
        rows, _ = both(source, model.columns, model.coding)
        assert rows.tolist() == [[1.0, 2.0, 0.0], [2.0, 3.0, 1.0]]
    assert model.design(table).tolist() == [[1.0, 2.0, 0.0], [1.0, 3.0, 1.0]]


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (("y", ["intercept"]), {}),
        (("y", ["log_sd"]), {"sd": None}),
        (("y", ["g=b"]), {"levels": {"g": ["a", "b"]}}),
        (("y", ["\u00e2", "a\u0302"]), {}),
        (("\u00e2", ["a\u0302"]), {}),
    ],
)
def test_two_parameters_or_columns_of_one_name_are_refused(arguments: Any, options: Any) -> None:
    with pytest.raises(DpmcError, match="LinearRegression: two columns or parameters are called .*: "):
        dpmc.LinearRegression(*arguments, **options)


def test_a_predictor_may_be_called_intercept_if_the_model_has_none() -> None:
    model = dpmc.LinearRegression("y", ["intercept"], intercept=False)
    assert model.parameters == ("intercept",)


@pytest.mark.parametrize(
    ("level", "text"),
    [
        (1, "1"),
        (1.0, "1"),
        ("1", "1"),
        (-0.0, "0"),
        (True, "1"),
        (np.False_, "0"),
        (np.int8(-3), "-3"),
        (np.float32(0.1), "0.1"),
        (0.1, "0.1"),
        (1e-05, "1e-05"),
        (0.1 + 0.2, "0.30000000000000004"),
        (1234568, "1234568"),
        (1234568.0, "1234568"),
        (1234567.5, "1234567.5"),
        (20240115, "20240115"),
        (10**7, "10000000"),
        (2**53 + 1, "9007199254740993"),
        (2.0**53, "9007199254740992"),
        (1e300, "1e+300"),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
        (Decimal("NaN"), "NaN"),
        (Decimal("7.00"), "7"),
        (Decimal("1.50"), "1.50"),
        (Fraction(4, 2), "2"),
        (Fraction(1, 2), "0.5"),
        (" a ", "a"),
        (pandas.Timestamp("2020-01-01").date(), "2020-01-01"),
    ],
)
def test_a_level_is_an_exact_text(level: Any, text: str) -> None:
    assert text_of(level) == text


#: Levels of which no two are the same, though their first six digits or their floats are.
CODES = [1234567, 1234568, 12345678, 2**53, 2**53 + 1, 10**22, 0.1, 1000001.5, 1000001.25]


def test_levels_do_not_collide(tmp_path: Path) -> None:
    model = dpmc.LinearRegression("y", [], levels={"code": CODES})
    assert model.parameters[1:] == tuple(f"code={code}" for code in CODES[1:])
    wanted = [[0.0, float(i)] for i in range(len(CODES))]
    forms = [CODES, list(map(str, CODES)), [Decimal(str(code)) for code in CODES]]
    for form in forms:
        table = pandas.DataFrame({"y": 0.0, "code": pandas.Series(form, dtype=object)})
        table.to_csv(tmp_path / "t.csv", index=False)
        for source in (table, tmp_path / "t.csv", table.astype({"code": "category"})):
            assert both(source, model.columns, model.coding)[0].tolist() == wanted
    for code in (1234569, "1234567.1", 2**53 + 2, "9007199254740994", 10**22 + 1, 1.0, "0.10000000000000001"):
        table = pandas.DataFrame({"y": [0.0], "code": pandas.Series([code], dtype=object)})
        rows, message = both(table, model.columns, model.coding)
        assert np.isnan(rows[0, 1]) and "is not a level" in message


def test_a_level_has_one_place_in_all_its_forms() -> None:
    coding = Coding.of({"g": ("01", "2.50", "1e23", "True")})
    forms = [["01", "1.00", Decimal(1)], ["2.5", 2.5, np.float32(2.5)], [1e23, "1e23", "1.0e+23"]]
    for place, entries in enumerate(forms):
        if place == 0:  # "True" is 1, too, so that numbers say not which of both they are
            entries = entries[:1]
        table = pandas.DataFrame({"g": pandas.Series(entries, dtype=object)})
        assert set(both(table, ["g"], coding)[0][:, 0]) == {place}
    assert both(pandas.DataFrame({"g": ["True"]}), ["g"], coding)[0].tolist() == [[3.0]]
    assert np.isnan(both(pandas.DataFrame({"g": [1.0, 1.0]}), ["g"], coding)[0]).all()


@pytest.mark.parametrize(
    "level", [10**5000, Decimal("sNaN"), type("Odd", (), {"__str__": None})()], ids=["long", "NaN", "odd"]
)
def test_a_level_without_a_text_is_refused(level: Any) -> None:
    with pytest.raises(DpmcError, match="levels: g: "):
        dpmc.LinearRegression("y", [], levels={"g": [1, level]})
