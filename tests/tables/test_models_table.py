"""The table of models: the catalogue's numbers, in every format."""

import csv
from pathlib import Path

import pytest

from dpmc.common.errors import DpmcError
from dpmc.reports.tables import write
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


def test_every_format_holds_table_5_1(tmp_path: Path) -> None:
    paths = [tmp_path / f"models{suffix}" for suffix in (".csv", ".md", ".tex")]
    write("models", study(), paths)
    with open(paths[0], newline="") as file:
        rows = list(csv.DictReader(file))
    columns = ("d", "n", "n0", "a", "sigma2_0")
    assert {row["model"]: tuple(row[c] for c in columns) for row in rows} == TABLE
    assert [row["sampler_sigma2_0"] for row in rows] == [""] * 6 + ["10000", ""]
    with open(PUBLISHED / "models.csv", newline="") as file:
        published = {r["model"]: (r["dimension"], r["n"]) for r in csv.DictReader(file)}
    assert {row["model"]: (row["d"], row["n"]) for row in rows} == published

    lines = paths[1].read_text().splitlines()
    assert lines[0] == "# Models" and "| Model | d | n | n₀ | a | σ₀² |" in lines
    assert "| circle | 2 | 100000 | – | 1e-05 | – |" in lines

    lines = paths[2].read_text().splitlines()
    assert lines[0] == "% Models" and r"\begin{tabular}{lrrrrr}" in lines
    body = [line for line in lines if "&" in line]
    assert body[0] == r"Model & $d$ & $n$ & $n_0$ & $a$ & $\sigma_0^2$ \\"
    assert len(body) == 9 and all(line.count("&") == 5 for line in body)
    assert r"tempered banana & 2 & 100\,000 & 1\,000 & 20 & 1\,000 \\" in body
    assert r"circle & 2 & 100\,000 & -- & $10^{-5}$ & -- \\" in body


def test_the_number_of_rows_is_the_studys(tmp_path: Path) -> None:
    of = study()
    of.models["circle"].n = 77
    write("models", of, [tmp_path / "models.csv"])
    assert "circle,circle,2,77," in (tmp_path / "models.csv").read_text()


def test_another_format_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(DpmcError, match="must end in one of .csv, .md, .tex"):
        write("models", study(), [tmp_path / "models.csv", tmp_path / "models.pdf"])
    assert not list(tmp_path.iterdir())
