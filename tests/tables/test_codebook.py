"""A codebook: what it may say, and what follows from it for tables, models, simulated rows and releases."""

import csv
import json
import random
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import yaml

import dpmc
from both_readers import both
from dpmc.cli.main import main
from dpmc.common.sources import sources_version
from dpmc.models.own import given_model
from dpmc.privacy.data_ledger import DataLedger
from dpmc.releases import files as release_files
from dpmc.releases import loop as releases

PAGE = Path(__file__).parents[2] / "docs/reference/codebook.md"
BOOK: dict[str, Any] = yaml.safe_load(PAGE.read_text().split("```yaml\n")[1].split("```")[0])
FIELDS = {field["name"]: field for field in BOOK["fields"]}


def with_field(name: str, **keys: Any) -> dict[str, Any]:
    """Return the codebook with other keys of one field; of `constraints` only those that are given."""
    field = {**FIELDS[name], **keys}
    if "constraints" in keys:
        field["constraints"] = {**FIELDS[name].get("constraints", {}), **keys["constraints"]}
    return {**BOOK, "fields": [field if name == other else FIELDS[other] for other in FIELDS]}


#: A wrong codebook, and the whole message.
WRONG: list[tuple[Any, str]] = [
    (3, "3 must be a mapping with fields"),
    ({}, "fields: Field required"),
    ({"fields": []}, "fields: []: Tuple should have at least 1 item after validation, not 0"),
    ({**BOOK, "rows": 5}, "rows: is no key of a codebook"),
    ({**BOOK, "dialect": {"sep": ";"}}, "dialect: sep: is no key of a codebook"),
    ({**BOOK, "dialect": {"delimiter": ""}}, "dialect: delimiter: '': String should match pattern '^["),
    ({**BOOK, "dialect": {"delimiter": "::"}}, "dialect: delimiter: '::': String should match pattern '^["),
    ({**BOOK, "dialect": {"quoteChar": "''"}}, "dialect: quoteChar: \"''\": String should match pattern '^["),
    ({**BOOK, "dialect": {"quoteChar": ","}}, "dialect: delimiter: ',' must not be quoteChar, too"),
    ({"fields": [{"name": 10**5000, "type": "number"}]}, "fields: 0: name: a number of more than 60 digits"),
    ({"fields": [{"name": "a\nb", "type": "x"}]}, "fields: a b: type: 'x': Input should be"),
    ({**BOOK, "person": "nobody"}, "person: 'nobody' must be one of the fields"),
    ({**BOOK, "person": "plan"}, "person: 'plan' must be no category"),
    ({"fields": [FIELDS["age"]] * 2}, "fields: 'age' must be a name of its own, and not intercept"),
    ({"fields": [{"name": "intercept", "type": "number"}]}, "fields: 'intercept' must be a name of its own,"),
    ({"fields": [{"name": " ", "type": "number"}]}, "fields: '' must be a name of its own, and not intercep"),
    ({"fields": [{"name": "a"}]}, "fields: a: type: Field required"),
    (with_field("age", type="real"), "fields: age: type: 'real': Input should be 'number', 'integer', 'bool"),
    (with_field("age", level=["a"]), "fields: age: level: is no key of a codebook"),
    (with_field("age", constraints={"minimum": 100}), "fields: age: constraints: minimum: 100 must be less"),
    (with_field("age", type="date"), "'integer', 'boolean' or 'string'; write days since a public date"),
    (with_field("age", constraints={"minimum": float("nan")}), "constraints: minimum: nan: Input should be"),
    (with_field("age", constraints={"minimum": "x"}), "constraints: minimum: 'x': Input should be a valid n"),
    (with_field("age", constraints={"enum": [1, 2]}), "age: constraints: enum: ('1', '2') must be two or mo"),
    (with_field("age", centre=10), "fields: age: centre: 10 must be between minimum and maximum"),
    (with_field("age", scale=0), "fields: age: scale: 0: Input should be greater than 0"),
    (with_field("age", fill=17), "fields: age: fill: 17 must be between minimum and maximum"),
    (with_field("age", fill="old"), "fields: age: fill: 'old' must be a number"),
    (with_field("age", fill=20, constraints={"required": True}), "age: fill: is of no use where a missing e"),
    (with_field("age", share=0.5), "fields: age: share: 0.5 must be in (0, 1), of the ones of a boolean"),
    (with_field("age", shape="bell"), "fields: age: shape: 'bell': Input should be 'normal', 'skewed' or 'c"),
    (with_field("age", shape="skewed", centre=18), "age: centre: 18 must be above the least, of a skewed fi"),
    (with_field("visits", fill=1.5), "fields: visits: fill: 1.5 must be a whole number, of an integer"),
    (with_field("visits", constraints={"minimum": 0.5}), "visits: minimum: 0.5 must be a whole number, of a"),
    (with_field("female", share=1), "fields: female: share: 1.0 must be in (0, 1), of the ones of a boolean"),
    (with_field("female", constraints={"maximum": 1}), "fields: female: maximum: is no word for a boolean"),
    (with_field("female", shape="count"), "fields: female: shape: is no word for a boolean"),
    (with_field("female", trueValues=[True]), "female: trueValues: 0: true: put words such as \"yes\", \"no"),
    (with_field("female", trueValues=["F"], falseValues=["f"]), "female: 'f' must not be both true and fals"),
    (with_field("plan", constraints={"enum": ["none"]}), "enum: ('none',) must be two or more levels of a s"),
    (with_field("plan", constraints={"enum": [1, 1.0]}), "enum: ('1', '1') must be two or more levels of a"),
    (with_field("plan", constraints={"enum": []}), "constraints: enum: () must be two or more levels of a s"),
    (with_field("plan", constraints={"enum": ["a", False]}), "enum: 1: false: put words such as"),
    (with_field("plan", fill="both"), "fields: plan: fill: 'both' must be one of the levels none, public, p"),
    (with_field("plan", share={"none": 1}), "plan: share: must have the levels none, public, private, each"),
    (with_field("plan", share={"none": 0, "public": 1, "private": 1}), "share: must have the levels none, p"),
    (with_field("plan", centre=1), "fields: plan: centre: is no word for a string"),
    (with_field("plan", scale=1), "fields: plan: scale: is no word for a string"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "words"), WRONG, ids=range(len(WRONG)))
def test_what_a_codebook_must_not_say_is_refused_with_its_place(wrong: Any, words: str) -> None:
    with pytest.raises(dpmc.DpmcError) as error:
        dpmc.Codebook.of(wrong, "people.yaml")
    text = str(error.value)
    assert text.startswith("people.yaml: ") and words in text and "\n" not in text


def test_files_that_are_no_codebook_are_refused(tmp_path: Path) -> None:
    with pytest.raises(dpmc.DpmcError, match=r"none\.yaml: no such file"):
        dpmc.Codebook.read(tmp_path / "none.yaml")
    for content in (b"fields: [", b"\xff\xfe", b"a: b: c"):
        (tmp_path / "book.yaml").write_bytes(content)
        with pytest.raises(dpmc.DpmcError, match=r"book\.yaml: cannot be read \(") as error:
            dpmc.PoissonRegression("visits", ["age"], codebook=tmp_path / "book.yaml")
        assert "\n" not in str(error.value)


def poisson(book: Any = BOOK, **options: Any) -> Any:
    return dpmc.PoissonRegression("visits", ["age", "plan", "female"], codebook=book, **options)


BEFORE = {"fields": [{"name": "g", "type": "string"}, {"name": "x", "type": "number"}, FIELDS["age"]]}
#: Arguments beside a codebook that are refused, and words of the message.
BESIDE: list[tuple[Callable[[], Any], str]] = [
    (lambda: poisson(binary={"female": 0.5}), "PoissonRegression: binary: beside a codebook: it says so of"),
    (lambda: poisson(levels={"plan": ["a", "b"]}), "PoissonRegression: levels: beside a codebook"),
    (lambda: poisson(fills={"age": 40}), "PoissonRegression: fills: beside a codebook"),
    (lambda: poisson("no.yaml"), "no.yaml: no such file"),
    (lambda: dpmc.PoissonRegression("visits", ["ages"], codebook=BOOK), "is it age?"),
    (lambda: dpmc.PoissonRegression("visit", ["age"], codebook=BOOK), "is it visits?"),
    (lambda: dpmc.PoissonRegression("visits", "age", codebook=BOOK), "predictors: 'age' must be a list of n"),
    (lambda: dpmc.PoissonRegression("plan", ["age"], codebook=BOOK), "outcome: plan: is a category in the c"),
    (lambda: dpmc.LogisticRegression("id", ["age"], codebook=BOOK), "outcome: id: is a string without words"),
    (lambda: dpmc.PoissonRegression("visits", {"plan": (0, 1)}, codebook=BOOK), "plan: is a category in the"),
    (lambda: dpmc.PoissonRegression("visits", {"age": None}), "predictors: age: None must be (centre, scale"),
    (lambda: dpmc.PoissonRegression("age", ["g"], codebook=BEFORE), "codebook: g: a string needs constraint"),
    (lambda: dpmc.PoissonRegression("age", ["x"], codebook=BEFORE), "codebook: x: needs centre and scale, o"),
    (lambda: given_model(dpmc.Model(1, len, codebook=BOOK)), "codebook: needs columns: the names of the fie"),
    (lambda: given_model(dpmc.Model(1, len, columns=["w"], codebook=BOOK)), "codebook: 'w': is no field; th"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "words"), BESIDE, ids=range(len(BESIDE)))
def test_what_does_not_fit_a_codebook_is_refused(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(dpmc.DpmcError) as error:
        make()
    assert words in str(error.value) and "\n" not in str(error.value)


def test_a_regression_is_that_of_the_arguments_that_a_codebook_says() -> None:
    scaled = {"age": (59.0, 20.5), "female": (0.0, 1.0)}
    plain = dpmc.PoissonRegression(
        "visits",
        scaled,
        levels={"plan": ["none", "public", "private"]},
        binary={"female": 0.5},
        fills={"plan": "none"},
    )
    model = poisson()
    assert model.columns == plain.columns and model.parameters == plain.parameters
    rows = plain.simulate(np.random.default_rng(0), np.zeros(5), 50)
    np.testing.assert_array_equal(model.design(rows), plain.design(rows))
    assert model.coding.levels == plain.coding.levels and model.coding.fills == plain.coding.fills


def test_centre_and_scale_beside_a_codebook_win() -> None:
    model = dpmc.PoissonRegression("visits", {"age": (40, 10), "plan": None, "female": None}, codebook=BOOK)
    assert model.design.centre.tolist() == [40, 0] and model.design.scale.tolist() == [10, 1]
    assert repr(model).startswith("PoissonRegression('visits', {'age': (40.0, 10.0), 'female': None, 'plan'")
    linear = dpmc.LinearRegression("income", ["age"], codebook=BOOK)
    own = dpmc.LinearRegression({"income": (0, 1)}, ["age"], codebook=BOOK)
    row = np.array([[5000.0, 59.0]])
    assert linear.response(row).tolist() == [1.5] and own.response(row).tolist() == [5000.0]
    assert repr(linear).startswith("LinearRegression('income', ") and "(0.0, 1.0)" in repr(own)


@pytest.mark.parametrize(
    "model",
    [
        poisson(),
        poisson(dpmc.Codebook.of(BOOK), prior_sd=1, true_theta=[1, 2, 3, 4, 5]),
        dpmc.LinearRegression("income", {"age": (1, 2), "plan": None}, codebook=BOOK, sd=None),
        dpmc.LinearRegression({"income": (0, 1)}, ["age"], codebook=BOOK),
        dpmc.LogisticRegression("again", ["female"], codebook=BOOK, norm=2),
        dpmc.NegativeBinomialRegression("visits", ["plan"], codebook=BOOK, intercept=False),
    ],
)
def test_a_release_makes_the_model_again_and_every_public_fact_is_in_it(model: Any) -> None:
    known = release_files.known_model(model.description, f"dpmc.models.regression:{type(model).__name__}")
    assert known is not None and repr(known.model) == repr(model)
    assert known.model.coding == model.coding and known.model.parameters == model.parameters
    draws = [each.simulate(np.random.default_rng(1), model.true_theta, 9) for each in (known.model, model)]
    np.testing.assert_array_equal(*draws)


CHANGES: dict[str, dict[str, Any]] = {
    "bound": with_field("visits", constraints={"maximum": 60}),
    "centre": with_field("age", centre=40),
    "scale": with_field("age", scale=40),
    "shape": with_field("age", shape="skewed"),
    "share": with_field("female", share=0.4),
    "words": with_field("female", trueValues=["w"]),
    "fill": with_field("plan", fill="public"),
    "levels": with_field("plan", constraints={"enum": ["none", "public", "private", "x"]}),
    "unit": with_field("age", unit="months"),
    "field's missing": with_field("age", missingValues=["-9"]),
    "missing": {**BOOK, "missingValues": ["."]},
    "dialect": {**BOOK, "dialect": {"delimiter": ";"}},
    "person": {**BOOK, "person": None},
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_public_fact_that_changes_makes_another_model(change: str) -> None:
    assert poisson(CHANGES[change]).description != poisson().description
    assert poisson(with_field("income", scale=1)).description == poisson().description, "it is not read"


def test_no_file_that_a_description_names_is_opened(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(yaml.safe_dump(BOOK))
    model = poisson(str(tmp_path / "b.yaml"))
    assert repr(model) == repr(poisson())
    text = f"PoissonRegression('visits', ['age'], codebook={str(tmp_path / 'b.yaml')!r})"
    with pytest.raises(dpmc.DpmcError, match="must be a mapping: no file that it names is opened"):
        release_files.known_model(text, "dpmc.models.regression:PoissonRegression")


def simulated(field: dict[str, Any], n: int = 100_000) -> np.ndarray:
    """Return a predictor that is simulated for this field."""
    book = {"fields": [{"name": "y", "type": "number"}, {"name": "x", **field}]}
    model = dpmc.PoissonRegression("y", ["x"], codebook=book)
    column: np.ndarray = model.simulate(np.random.default_rng(2), np.zeros(2), n)[:, 1]
    return column


@pytest.mark.parametrize("bounds", [{}, {"minimum": -3}, {"minimum": -3, "maximum": 20}, {"maximum": 20}])
@pytest.mark.parametrize("kind", ["number", "integer"])
@pytest.mark.parametrize("shape", ["normal", "skewed", "count"])
def test_simulated_predictors_have_mean_sd_shape_and_bounds(
    shape: str, kind: str, bounds: dict[str, float]
) -> None:
    x = simulated({"type": kind, "shape": shape, "constraints": bounds, "centre": 4, "scale": 3})
    assert x.min() >= bounds.get("minimum", -np.inf) and x.max() <= bounds.get("maximum", np.inf)
    assert x.mean() == pytest.approx(4, abs=0.1) and x.std() == pytest.approx(3, abs=0.35)
    assert ((x - x.mean()) ** 3).mean() > 15 if shape != "normal" else abs(x.mean() - np.median(x)) < 0.1
    assert (x == np.round(x)).all() == (kind == "integer" or shape == "count")
    if shape != "normal":
        assert x.min() >= bounds.get("minimum", 0 if shape == "count" else 1)


def test_without_centre_and_scale_bounds_say_them() -> None:
    bounds = {"minimum": 0, "maximum": 40}
    for shape, centre, scale in (("normal", 20, 10), ("skewed", 4, 4), ("count", 4, 4)):
        x = simulated({"type": "number", "shape": shape, "constraints": bounds})
        assert x.mean() == pytest.approx(centre, rel=0.03) and x.std() == pytest.approx(scale, rel=0.1)


def test_simulated_booleans_and_categories_have_their_shares() -> None:
    assert simulated({"type": "boolean", "share": 0.2}).mean() == pytest.approx(0.2, abs=0.01)
    assert simulated({"type": "boolean"}).mean() == pytest.approx(0.5, abs=0.01)
    share = {"b": 3, "a": 1}
    plan = simulated({"type": "string", "constraints": {"enum": ["b", "a"]}, "share": share})
    assert np.bincount(plan.astype(int)) / len(plan) == pytest.approx([0.75, 0.25], abs=0.01)


def cases() -> list[list[str]]:
    """Return the rows of the page's table of entries: column, entry, as number, in the lab, in a release."""
    lines = PAGE.read_text().split("| column | entry |")[1].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip().strip("`") for cell in line.strip("| ").split(" | ")] for line in lines]


@pytest.mark.parametrize("way", ["csv", "frame", "mapping"])
def test_entries_are_read_as_the_page_says(way: str, tmp_path: Path) -> None:
    found = cases()
    assert {case[0] for case in found} == {"visits", "age", "female", "plan", "again"}
    for column, entry, lab, release in found:
        model = dpmc.LogisticRegression("again", ["age", "female", "plan"], codebook=BOOK)
        other = dpmc.PoissonRegression("visits", ["age"], codebook=BOOK)
        coding = (other if column == "visits" else model).coding
        table = {column: [entry.replace("(nothing)", ""), entry.replace("(nothing)", "")]}
        source: Any = table
        if way == "csv":
            source = tmp_path / "t.csv"
            with source.open("w", newline="") as file:
                csv.writer(file).writerows([["z", column], *(["", entry] for entry in table[column])])
        elif way == "frame":
            source = pandas.DataFrame(table, dtype=object)
        rows, message = both(source, [column], coding)
        if release == "counts as nothing":
            assert np.isnan(rows).all() and lab in message, (column, entry, message)
        else:
            assert rows.tolist() == [[float(release)]] * 2 and lab == release, (column, entry)


def people(n: int = 60) -> pandas.DataFrame:
    """Return a table that is as the codebook says."""
    g = np.random.default_rng(3)
    return pandas.DataFrame(
        {
            "id": [f"p{i}" for i in range(n)],
            "visits": g.poisson(2, n),
            "age": g.integers(18, 100, n),
            "female": g.choice(["f", "m"], n),
            "plan": g.choice(["none", "public", "private"], n),
            "income": g.gamma(2, 1000, n).round(2),
            "again": g.choice(["Yes", "no"], n),
        }
    )


GIVEN: dict[str, Any] = {
    "algorithm": "dp-penalty",
    "epsilon": 20,
    "delta": 1e-3,
    "iterations": 3,
    "hyperparameters": {"tau": 2.0, "clip": 1.0, "proposal_sd": 0.1},
    "progress": False,
}


def test_the_persons_column_is_that_of_the_codebook(caplog: pytest.LogCaptureFixture) -> None:
    table = people().assign(id=[f"p{i % 25}" for i in range(60)])
    model = poisson(prior_sd=1)
    assert dpmc.sample(model, table, **GIVEN).attrs["n"] == 25
    assert (
        "data: DataFrame: n = 25 rows are kept, at most 1 of each id, as the codebook says" in caplog.messages
    )
    assert dpmc.sample(model, table, **GIVEN, rows_per_person=2).attrs["n"] == 50
    assert dpmc.sample(model, table, **GIVEN, person="again").attrs["n"] == 2
    assert dpmc.sample(poisson(CHANGES["person"]), table, **GIVEN).attrs["n"] == 60
    assert (
        dpmc.sample(model, model.simulate(np.random.default_rng(0), np.zeros(5), 40), **GIVEN).attrs["n"]
        == 40
    )
    with pytest.raises(dpmc.DpmcError, match="has no column 'id'"):
        dpmc.sample(model, table.drop(columns="id"), **GIVEN)
    with pytest.raises(dpmc.DpmcError, match="row 4, column id: says not whose the row is"):
        dpmc.sample(model, table.assign(id=[*"abc", "", *"d" * 56]), **GIVEN)


def test_a_model_of_functions_reads_tables_by_a_codebook() -> None:
    def log_likelihood(theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return -0.5 * (rows[:, 0] - theta[0] * rows[:, 1]) ** 2

    def at(book: Any) -> Any:
        model = dpmc.Model(1, log_likelihood, columns=["again", "female"], codebook=book)
        return given_model(model)[1].model

    rows, message = both(people(4), ["again", "female"], at(BOOK).coding)
    assert message == "" and set(np.unique(rows)) <= {0.0, 1.0}
    assert dpmc.sample(at(dpmc.Codebook.of(BOOK)).given, people(), **GIVEN).attrs["n"] == 60


def test_a_release_by_a_codebook_passes_its_check_and_says_all_that_is_public(tmp_path: Path) -> None:
    table = people()
    table.loc[4, "visits"], table.loc[5, "age"], table["again"] = None, 300, "unread"
    table.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "book.json").write_text(json.dumps(BOOK))
    ledger = DataLedger.create(tmp_path / "people.ledger", 40.0, 1e-2, "people")
    model = poisson(str(tmp_path / "book.json"), prior_sd=1)
    output = tmp_path / "release.nc"
    tree = dpmc.release(model, tmp_path / "people.csv", ledger=ledger.path, output=output, **GIVEN)
    assert tree.attrs["n"] == 60 and tree.attrs["description"] == poisson(prior_sd=1).description
    assert release_files.check(release_files.read(output)) == []
    assert main(("check-release", str(output), "--quiet")) == 0
    dpmc.release(poisson(prior_sd=1), table.astype(object), ledger=ledger.path, **GIVEN)
    with pytest.raises(
        dpmc.DpmcError, match="line 6: column visits is missing, must be a number; no fill may"
    ):
        dpmc.sample(model, tmp_path / "people.csv", **GIVEN)


def test_a_template_follows_from_the_line_of_names_alone(tmp_path: Path, capsys: Any) -> None:
    texts = set()
    for rows in (b"1,2\n3,4\n", b"", b"x\n\xff,,,\n", b'"a\nb",7'):
        (tmp_path / "people.csv").write_bytes(b'id,"a:ge, \xc3\xa9",_x\r\n' + rows)
        assert main(("codebook", str(tmp_path / "people.csv"))) == 0
        texts.add(capsys.readouterr().out)
    (text,) = texts
    book = dpmc.Codebook.of(yaml.safe_load(text))
    assert [field.name for field in book.fields] == ["id", "a:ge, é", "_x"] and book.name == "people"
    (tmp_path / "t.csv").write_bytes(b"id;age\n1;2\n")
    out = str(tmp_path / "t.yaml")
    assert main(("codebook", str(tmp_path / "t.csv"), "--output", out)) == 0
    book = dpmc.Codebook.read(out)
    assert book.dialect.delimiter == ";" and [field.name for field in book.fields] == ["id", "age"]
    assert main(("codebook", str(tmp_path / "t.csv"), "--output", out)) == 2
    assert "--force overwrites it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"1,2\n3,4\n", "line 1: must be the names of the columns"),
        (b"anna,45\n", "'45' is neither a number nor a column's name"),
        (b"id,\n1,2\n", "column 2 has no name"),
        (b"", "line 1: is blank"),
        (b"\xff\xfei\x00d\x00\n", "is not text in UTF-8"),
        (b"# id\nid\n", "'# id': is a comment"),
        (None, "No such file"),
    ],
)
def test_a_table_without_names_has_no_template(
    content: bytes | None, words: str, tmp_path: Path, capsys: Any
) -> None:
    path = tmp_path / "t.csv"
    if content is not None:
        path.write_bytes(content)
    assert main(("codebook", str(path))) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1


def test_a_template_is_made_of_other_files_too(tmp_path: Path, capsys: Any) -> None:
    import gzip

    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"id,age\n1,2\n"))
    assert main(("codebook", str(tmp_path / "t.csv.gz"))) == 0
    assert '{name: "age", type: number}' in capsys.readouterr().out
    (tmp_path / "t.csv.gz").write_bytes(b"id,age\n")
    for wrong in (("t.csv.gz",), ("t.xlsx",), (), ("t.csv.gz", "--schema")):
        assert main(("codebook", *(str(tmp_path / text) if "." in text else text for text in wrong))) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_the_schema_has_the_keys_that_the_page_explains(capsys: Any) -> None:
    assert main(("codebook", "--schema")) == 0
    schema = json.loads(capsys.readouterr().out)
    parts = [schema, *schema["$defs"].values()]
    keys = {key for part in parts for key in part["properties"]}
    page = PAGE.read_text().split("## Keys")[1].split("\n## ")[0]
    named = {
        word
        for line in page.splitlines()
        if line.startswith("| `")
        for word in line.split("|")[1].split("`")[1::2]
    }
    assert named == keys


def test_check_rows_says_what_is_odd_and_that_this_is_private(tmp_path: Path, capsys: Any) -> None:
    table = people(30).astype(object)
    table.loc[2:9, "visits"], table.loc[4, "plan"], table.loc[1, "female"] = 51, "Public", "x"
    lines = table.to_csv(index=False).splitlines()
    (tmp_path / "t.csv").write_text("\n".join([*lines[:20], "too,few", *lines[21:]]))
    (tmp_path / "book.yaml").write_text(yaml.safe_dump(BOOK))
    run = ("check-rows", str(tmp_path / "t.csv"), "--codebook", str(tmp_path / "book.yaml"))
    assert main(run) == 0
    said, error = capsys.readouterr()
    assert error == "" and "id:" not in said, "any text may be a person's"
    assert "visits: 9 odd entries\n" in said and said.count("must be at most 50") == 5
    assert "line 6: column plan: 'Public' is not a level (write 'public')" in said
    assert "line 21: column visits is missing; every line must be a row" not in said, "it is the ninth"
    assert "line 3: column female: 'x' is not a number" in said and "line 21: column age is missing" in said
    assert "This output is private" in said.splitlines()[-1]
    assert main((*run, "--columns", "income", "again")) == 0
    assert capsys.readouterr().out.splitlines()[0] == "income: 1 odd entry"
    assert main((*run, "--columns", "incomes")) == 2
    assert "'incomes': is no field" in capsys.readouterr().err


def test_a_users_codebook_counts_in_the_version_of_the_model(tmp_path: Path) -> None:
    versions = set()
    (tmp_path / "mine.py").write_text(
        "import dpmc\nm = dpmc.Model(1, len, columns=['a'], codebook='my-book.yaml')"
    )
    for text in ("fields: []", "fields: [a]", "fields: []"):
        (tmp_path / "my-book.yaml").write_text(text)
        sources_version.cache_clear()
        versions.add(sources_version(tmp_path / "mine.py"))
    assert len(versions) == 2


ODD = [
    10**400,
    Decimal("sNaN"),
    None,
    "",
    "NA",
    "x",
    -1,
    51,
    1e300,
    "1,5",
    "f",
    "F",
    "Yes",
    "YES",
    "none",
    "None",
    True,
    2.5,
    "\ufffd",
    '"',
    [1],
]


def mutated(number: int, folder: Path) -> Any:
    """Return a table of which some entries are replaced: a CSV file, a frame or a mapping."""
    g = random.Random(number)
    table = people(12).astype(object)
    for _ in range(g.randrange(1, 4)):
        table.iat[g.randrange(12), g.randrange(table.shape[1])] = g.choice(ODD)
    if number % 3 == 0:
        return {name: list(table[name]) for name in table}
    if number % 3 == 1:
        return table
    lines = table.map(str).to_csv(index=False).encode().splitlines()
    row = g.randrange(1, 13)
    at, byte = g.randrange(len(lines[row]) + 1), bytes([g.randrange(256)])
    lines[row] = lines[row][:at] + (b"" if byte in b"\r\n" else byte) + lines[row][at:]
    (folder / "t.csv").write_bytes(b"\n".join(lines))
    return folder / "t.csv"


@pytest.mark.slow
def test_no_entry_of_a_row_changes_how_a_release_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2,000 mutated tables: no error, the same n; lab and release read the same; 20 releases to their end."""
    from dpmc.data import datasets, problem

    ledger = DataLedger.create(tmp_path / "people.ledger", 1e6, 0.5, "people")
    model, whole, seen = poisson(prior_sd=1), releases.release, []
    public = datasets.public_setting
    settings: dict[Any, Any] = {}

    def once(label: str, name: str, shape: tuple[int, int], *others: Any) -> Any:
        """Return the public setting, made once: it takes most of the time, and no row."""
        if shape not in settings:
            settings[shape] = public(label, name, shape, *others)
        return settings[shape]

    def captured(cell: Any, rows: np.ndarray, *others: Any) -> Any:
        seen.append((cell.problem.n, rows.shape))
        return whole(cell, rows, *others) if len(seen) % 100 == 0 else None

    monkeypatch.setattr(datasets, "public_setting", once)
    monkeypatch.setattr(problem, "try_out", lambda *_: None)  # of public rows
    monkeypatch.setattr(releases, "release", captured)
    odd = 0
    for number in range(2000):
        source = mutated(number, tmp_path)
        rows, message = both(source, model.columns, model.coding)
        assert not isinstance(rows, str), (number, rows)
        odd += message != ""
        tree = dpmc.release(model, source, ledger=ledger.path, **GIVEN)
        assert tree is None or (tree.attrs["n"], tree.attrs["iterations"]) == (12, 3), number
    assert seen == [(12, (12, 4))] * 2000 and 500 < odd < 1900


def test_the_help_of_a_codebook_begins_with_what_it_is_for() -> None:
    text = str(dpmc.Codebook.__doc__)
    for word in (*dpmc.Codebook.model_fields, "docs/reference/codebook.md"):
        assert re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text), word
    for method in re.findall(r"[Cc]odebook\.(\w+)\(", text):
        assert callable(getattr(dpmc.Codebook, method))
    assert dpmc.Codebook.of({"fields": [{"name": "x", "type": "number"}]}).field("x").type == "number"
