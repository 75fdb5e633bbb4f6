"""Rows for a release: one row changes no other, and no error tells of it."""

import io
from collections import UserList
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import dpmc
from dpmc.data.tables import of_length, read_rows
from dpmc.models.columns import Coding, Declared, Dialect
from dpmc.privacy.data_ledger import DataLedger

read_release_rows = partial(read_rows, private=True)

FLAGS = [[True, 1.5], [False, 2.0], [True, 3.0], [False, 4.0]]
WHOLE = [[1, 1], [0, 2], [1, 3], [0, 4]]


class Odd:
    """An object without a text or a number."""

    def __str__(self) -> str:
        raise TypeError("secret")


ENTRIES = [
    "x",
    b"x",
    3 + 1j,
    np.timedelta64(1, "s"),
    np.datetime64("2020-01-01"),
    None,
    [1],
    10**400,
    -(10**5000),
    Odd(),
    {},
    np.zeros((2, 2)),
]
ROWS: list[Any] = [
    *([entry, 4.0] for entry in ENTRIES),
    [1.0],
    [],
    7.0,
    "ab",
    None,
    [[1.0], 2.0],
    [1.0, 2.0, 3.0],
]


@pytest.mark.parametrize("base", [FLAGS, WHOLE], ids=["flags", "whole"])
@pytest.mark.parametrize("place", [0, 3])
def test_one_row_of_a_list_changes_no_other_and_raises_nothing(base: list[Any], place: int) -> None:
    wanted = np.array(base, float)
    np.testing.assert_array_equal(read_release_rows(base, ["a", "b"]), wanted)
    np.testing.assert_array_equal(read_release_rows([np.array(row) for row in base], ["a", "b"]), wanted)
    for row in ROWS:
        found = read_release_rows(UserList([*base[:place], row, *base[place + 1 :]]), ["a", "b"])
        others = np.arange(4) != place
        np.testing.assert_array_equal(found[others], wanted[others])
        assert found.shape == (4, 2) and not np.isfinite(found[place]).all()


def test_the_width_of_a_list_is_that_of_the_model_and_of_no_row() -> None:
    np.testing.assert_array_equal(read_release_rows([1.0, "x", [3]], ["a"]), [[1], [np.nan], [3]])
    for wrong in ([[[1.0, 2.0]]] * 3, [np.zeros((2, 3))] * 3, [[1.0]] * 3, [[1.0, 2.0, 3.0]] * 3):
        assert np.isnan(read_release_rows(wrong, ["a", "b"])).all()
        some = read_release_rows([*wrong, [1.0, 2.0]], ["a", "b"])
        np.testing.assert_array_equal(some[3], [1.0, 2.0])
        assert np.isnan(some[:3]).all()
    with pytest.raises(dpmc.DpmcError, match="holds no rows"):
        read_release_rows([], ["a", "b"])
    with pytest.raises(dpmc.DpmcError, match="a list needs a model with `column_names`"):
        read_release_rows([[1.0, 2.0]])


class Closed(list[float]):
    """A row whose entries cannot be had."""

    def __iter__(self) -> Iterator[float]:
        raise ValueError("patient 1234, income 72350")

    __getitem__ = __len__ = __iter__  # type: ignore[assignment]


class OddNdim:
    ndim = "x"


class NoNdim:
    @property
    def ndim(self) -> int:
        raise ValueError("patient 1234, income 72350")


class Lazy(UserList[Any]):
    """Rows that are read when they are asked for; one cannot be read."""

    def __getitem__(self, row: Any) -> Any:
        if row == 1:
            raise ValueError("patient 1234, income 72350")
        return super().__getitem__(row)


ODD_ROWS = [Closed([1, 2]), OddNdim(), NoNdim()]


@pytest.mark.parametrize("odd", ODD_ROWS, ids=lambda odd: type(odd).__name__)
def test_a_row_that_cannot_be_read_is_missing_and_says_nothing(odd: Any) -> None:
    wanted = [[1, 2], [np.nan, np.nan], [3, 4]]
    np.testing.assert_array_equal(read_release_rows([[1, 2], odd, [3, 4]], ["a", "b"]), wanted)
    np.testing.assert_array_equal(read_release_rows([[1], odd, [3]], ["a"]), [[1], [np.nan], [3]])
    lazy = read_release_rows(Lazy([[1, 2], [7, 7], [3, 4]]), ["a", "b"])
    np.testing.assert_array_equal(lazy, wanted)
    for place in range(2):
        rows = [[1.0, 2.0], [3.0, 4.0]]
        rows[place] = odd
        with pytest.raises(dpmc.DpmcError, match=f"row {place + 1}: cannot be read") as error:
            read_rows(rows, ["a", "b"])
        assert "1234" not in str(error.value)


def test_masks_of_columns_are_read_as_those_of_arrays() -> None:
    column = np.ma.masked_array([1.0, 999999.0, 3.0], [False, True, False])
    wanted = [[1, 4], [np.nan, 5], [3, 6]]
    np.testing.assert_array_equal(read_release_rows({"x": column, "y": [4, 5, 6]}, ["x", "y"]), wanted)
    np.testing.assert_array_equal(
        read_release_rows({"x": column}, ["x"], Coding.of({}, {"x": 7})), [[1], [7], [3]]
    )
    words = np.ma.masked_array(["low", "high", "low"], [True, False, False])
    found = read_release_rows({"x": words}, ["x"], Coding.of({"x": ("low", "high")}))
    np.testing.assert_array_equal(found, [[np.nan], [1], [0]])
    rows = [np.ma.masked_array([1.0, 999999.0], [False, True]), [3.0, 4.0]]
    np.testing.assert_array_equal(read_release_rows(rows, ["x", "y"]), [[1, np.nan], [3, 4]])
    with pytest.raises(dpmc.DpmcError, match="row 2, column x: is NaN or infinite"):
        read_rows({"x": column}, ["x"])


def test_masked_arrays_are_read_by_entry() -> None:
    rows = np.array([[1.0, 2.0], ["secret", 3.0], [4.0, 5.0]], object)
    mask = [[False, False], [False, False], [True, False]]
    found = read_release_rows(np.ma.masked_array(rows, mask))
    np.testing.assert_array_equal(found, [[1, 2], [np.nan, 3], [np.nan, 5]])


@pytest.mark.parametrize("last", ["True", "x", "n/a", ""])
@pytest.mark.parametrize("levels", [None, (False, True), ("False", "True"), (0, 1), ("0", "1.0")])
def test_truth_values_are_the_same_as_text(last: str, levels: tuple[Any, ...] | None) -> None:
    text = "y,flag\n1,True\n2,False\n3,True\n"
    columns, known = [], {}
    if levels:
        model = dpmc.LinearRegression("y", ["z"], levels={"flag": levels})
        columns, known = ["y", "flag"], model.coding.levels
    found = read_release_rows(
        pandas.read_csv(io.StringIO(f"{text}4,{last}\n")), columns or None, Coding.of(known)
    )
    np.testing.assert_array_equal(found[:3], [[1, 1], [2, 0], [3, 1]])
    np.testing.assert_equal(found[3], [4, 1 if last == "True" else np.nan])


def test_n_is_kept_if_it_is_given(tmp_path: Path, make: Any, ledger: Any) -> None:
    rows = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert of_length(rows, None) is rows
    np.testing.assert_array_equal(of_length(rows, 1), rows[:1])
    np.testing.assert_array_equal(of_length(rows, 3), [*rows, [np.nan, np.nan]])
    lines = [f"{i / 60},{i % 7},ok" for i in range(60)]
    for name, line in (("plain", "1,2,ok"), ("broken", '1,2,"a line\nbreak"'), ("none", None)):
        path = tmp_path / f"{name}.csv"
        path.write_text("\n".join(["y,x,note", *lines[:59], *([] if line is None else [line])]) + "\n")
        assert make(str(path), n=60).attrs["n"] == 60
    with pytest.raises(dpmc.DpmcError, match="n: "):
        make(n=0)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (pandas.DataFrame({"y": [0.0] * 60, "x": pandas.date_range("2020", periods=60)}), "holds no numbers"),
        (pandas.DataFrame(np.zeros((60, 2)), columns=[["a", "a"], ["y", "x"]]), "has names of 2 levels"),
        (np.zeros(60, [("x", float), ("y", float)]), "has columns with names"),
    ],
    ids=["dates", "levels", "records"],
)
def test_a_table_that_is_refused_spends_nothing(make: Any, ledger: Any, table: Any, words: str) -> None:
    with pytest.raises(dpmc.DpmcError, match=words):
        make(table)
    assert len(DataLedger.open(ledger.path).entries) == 0


def test_what_is_declared_is_refused_or_read_before_anything_is_spent(
    make: Any, ledger: Any, tmp_path: Path
) -> None:
    """A stored type that is not what is declared is refused; an odd entry changes neither n nor a message."""

    class Declaring(dpmc.LinearRegression):
        coding = Coding(  # type: ignore[assignment]
            {"y": Declared("string", true=("yes",), false=("no",)), "x": Declared("number", decimal=",")},
            Dialect(delimiter=";"),
        )

    model = Declaring("y", ["x"], true_theta=[0.5, 1.0], tempering=20)
    table = pandas.DataFrame({"x": [f"0,{i}" for i in range(60)], "y": ["Yes", "no", "?"] * 20})
    with pytest.raises(dpmc.DpmcError, match="column x: type string is declared number: cast it"):
        make(table.astype({"x": "string"}), model)
    assert len(DataLedger.open(ledger.path).entries) == 0
    for path, odd in ((tmp_path / "a.csv", "0,5"), (tmp_path / "b.csv", "1.2.3")):
        table.assign(x=[odd, *table["x"][1:]]).to_csv(path, index=False, sep=";")
        assert make(path, model).attrs["n"] == 60
        rows = read_release_rows(path, model.columns, model.coding)
        np.testing.assert_array_equal(rows[1:4], [[0, 0.1], [np.nan, 0.2], [1, 0.3]])
    assert len(DataLedger.open(ledger.path).entries) == 2


def test_a_subclass_of_a_frame_is_released_by_name(make: Any) -> None:
    """Positions would swap outcome and predictor, of which one is a decimal and one has no number at all."""

    class Frame(pandas.DataFrame):
        pass

    table = Frame({"x": [Decimal(i) / 60 for i in range(60)], "y": ["x"] + [1.0] * 59})
    assert make(table).attrs["n"] == 60
    rows = read_release_rows(table, ["y", "x"])
    assert rows[59].tolist() == [1.0, 59 / 60] and np.isnan(rows[0, 0]) and rows[0, 1] == 0.0
