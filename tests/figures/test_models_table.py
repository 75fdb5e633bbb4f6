"""The table of models: the catalogue's numbers, in both formats."""

import csv
from pathlib import Path

import pytest

from dpmc.errors import DpmcError
from dpmc.plots import endings, plot
from figures.synthetic import EASY, Method, Model, Study

PUBLISHED = Path(__file__).parents[2] / "data" / "published"
ALL = (*EASY, "gauss-30d", "narrow-banana", "correlated-gauss", "circle")
TABLE = {  # Table 5.1 of the thesis
    "flat-banana-2d": ("2", "100000", "", "20", "1000"),
    "flat-banana-10d": ("10", "200000", "", "20", "1000"),
    "tempered-banana-2d": ("2", "100000", "1000", "20", "1000"),
    "tempered-banana-10d": ("10", "200000", "1000", "20", "1000"),
    "gauss-30d": ("30", "200000", "", "0", "1000"),
    "narrow-banana": ("2", "150000", "", "350", "1000"),
    "correlated-gauss": ("2", "200000", "", "0", "100"),
    "circle": ("2", "100000", "", "1e-05", ""),
}


def study() -> Study:
    models = {m: Model(m) for m in ALL} | {"clipping-2d": Model("flat-banana-2d", ("inf",))}
    return Study(models, {"dp-hmc": Method("dp-hmc", ALL)})


def test_csv_holds_table_5_1(tmp_path: Path) -> None:
    path = tmp_path / "models.csv"
    plot("models", study(), tmp_path / "no-metrics.csv", PUBLISHED, [path])
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    columns = ("d", "n", "n0", "a", "sigma2_0")
    assert {row["model"]: tuple(row[c] for c in columns) for row in rows} == TABLE
    assert [row["sampler_sigma2_0"] for row in rows] == [""] * 6 + ["10000", ""]
    with open(PUBLISHED / "models.csv", newline="") as file:
        published = {r["model"]: (r["dimension"], r["n"]) for r in csv.DictReader(file)}
    assert {row["model"]: (row["d"], row["n"]) for row in rows} == published


def test_latex_is_a_plain_tabular(tmp_path: Path) -> None:
    path = tmp_path / "models.tex"
    plot("models", study(), tmp_path / "no-metrics.csv", PUBLISHED, [path])
    text = path.read_text()
    assert text.startswith(r"\begin{tabular}{lrrrrr}") and "rule" not in text
    body = [line for line in text.splitlines() if "&" in line]
    assert len(body) == 9 and all(line.count("&") == 5 for line in body)
    assert r"tempered banana & 2 & 100\,000 & 1\,000 & 20 & 1\,000 \\" in body
    assert r"circle & 2 & 100\,000 & -- & $10^{-5}$ & -- \\" in body


def test_the_number_of_rows_is_the_studys(tmp_path: Path) -> None:
    of = study()
    of.models["circle"].n = 77
    plot("models", of, tmp_path / "none", PUBLISHED, [tmp_path / "models.csv"])
    assert "circle,circle,2,77," in (tmp_path / "models.csv").read_text()


def test_another_format_is_refused(tmp_path: Path) -> None:
    good, bad = tmp_path / "models.csv", tmp_path / "models.pdf"
    with pytest.raises(DpmcError, match="must end in one of .csv, .tex"):
        plot("models", study(), tmp_path / "none", PUBLISHED, [good, bad])
    assert not good.exists() and not bad.exists()
    assert endings("models", study()) == ("csv", "tex") and endings("circle", study()) == ("pdf", "png")
