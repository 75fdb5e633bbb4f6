"""What an analysis writes: pictures, the report, and what the commands print and refuse."""

import re
from pathlib import Path

import pandas as pd
import pytest
import yaml

import dpmc
from analysis.conftest import BOOK, FORMULA
from browser import needs_browser, told
from dpmc.analysis.forest import side_by_side
from dpmc.cli.main import main


def test_pictures_have_what_a_fit_says(counted: dpmc.Fit, released: Path, tmp_path: Path) -> None:
    axes = counted.plot(tmp_path / "forest.png").axes[0]
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert labels[0].startswith("age  (") and len(labels) == 6
    scale = counted.to_frame()["estimate"].iloc[1] * 82 / 4  # a quarter of age's bounds
    assert sorted(axes.lines[0].get_xdata())[-1] == pytest.approx(
        max(scale, *counted.to_frame()["estimate"].iloc[2:])
    )
    band = counted.plot(along="age").axes[0]
    assert band.get_xlabel() == "age" and band.lines[0].get_xdata()[-1] == 100.0
    assert [t.get_text() for t in counted.plot(along="plan").axes[0].get_xticklabels()] == [
        *("none", "public", "private")
    ]
    both = side_by_side({"lab": counted, "release": dpmc.Fit(released)})
    assert [text.get_text() for text in both.legends[0].get_texts()] == ["lab", "release"]
    other = dpmc.Fit(released)
    other.names = [*other.names[:-1], "other"]
    with pytest.raises(dpmc.DpmcError, match="must have the same coefficients"):
        side_by_side({"lab": counted, "release": other})


def test_a_report_of_a_release_follows_from_the_release_alone(released: Path, tmp_path: Path) -> None:
    first, again = (
        dpmc.Fit(released).report(tmp_path / name).read_text(encoding="utf-8")
        for name in ("a.html", "b.html")
    )
    assert first == again and "$" not in re.sub(r"base64,[^\"]*", "", first)
    for text in (
        FORMULA,
        "(ε = 2, δ = 5e-06)-differentially private",
        "trueValues",
        "entry 1 of the ledger",
        "dpmc.Fit([&#x27;visits.nc&#x27;]",
    ):
        assert text in first
    assert "<script" not in first and "http" not in re.sub(r"base64,[^\"]*", "", first)  # nothing is loaded


@needs_browser
def test_a_report_is_read_at_390_pixels(released: Path, tmp_path: Path) -> None:
    page = dpmc.Fit(released).report(tmp_path / "a.html")
    script = """(() => {
        const table = document.querySelector('.wide');
        const cells = [...document.querySelectorAll('tbody tr:first-child td')];
        const label = cell => getComputedStyle(cell, '::before').content.replaceAll('"', '');
        const widths = [document.documentElement.scrollWidth, document.querySelector('img').naturalWidth];
        const inside = Math.max(...cells.map(cell => cell.getBoundingClientRect().right));
        return [...widths, table.scrollWidth - table.clientWidth, inside, ...cells.map(label)].join(';');
    })()"""
    width, picture, hidden, inside, *labels = told(page, script).split(";")
    assert int(width) <= 390 and int(picture) > 800
    assert int(hidden) == 0 and float(inside) <= 390.0, "nothing of the table must be scrolled to"
    assert labels == [name.replace("_", " ") for name in dpmc.Fit(released).to_frame()]


def test_a_report_of_the_lab_says_that_it_must_not_be_published(counted: dpmc.Fit, tmp_path: Path) -> None:
    text = counted.report(tmp_path / "x.html").read_text(encoding="utf-8")
    assert "not for publication" in text and "of the ledger" not in text
    counted.model.design.formula, kept = "y ~ <b>", counted.model.design.formula
    try:
        assert "y ~ &lt;b&gt;" in counted.report(tmp_path / "y.html").read_text(encoding="utf-8")
    finally:
        counted.model.design.formula = kept


def test_offset_and_weights_on_the_command_line(
    people: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are those of `dpmc.fit`; the offset is a term of the formula."""
    monkeypatch.chdir(tmp_path)
    fields = [
        *BOOK["fields"],
        {"name": "copies", "type": "integer", "constraints": {"minimum": 0, "maximum": 2}},
    ]
    book = {**BOOK, "fields": fields}
    Path("book.yaml").write_text(yaml.safe_dump(book), encoding="utf-8")
    table = people.assign(copies=1 + people.index % 2)
    table.to_csv("people.csv", index=False)
    asked = ("visits ~ age", "--codebook", "book.yaml", "--family", "poisson", "--epsilon", "2")
    fit = ("fit", asked[0], "people.csv", *asked[1:], "--offset", "log(days)")
    given = {"codebook": book, "family": "poisson", "epsilon": 2}
    plain = dpmc.fit("visits ~ age + offset(log(days))", table, **given)
    weighted = dpmc.fit("visits ~ age", table, **given, offset="log(days)", weights={"copies": 2})
    for more, same in ((), plain), (("--weights", "copies=2"), weighted), (("--weights", "copies"), weighted):
        assert main((*fit, *more, "--output", "a.nc", "--quiet", "--force")) == 0
        assert dpmc.Fit("a.nc").mean == pytest.approx(same.mean)
        assert dpmc.Fit("a.nc").heading[0] == plain.heading[0]
    assert abs(weighted.mean[0] - plain.mean[0]) > 0.0
    for more, message in (
        (("--weights", "copies=x"), "argument --weights: 'x'"),
        (("--weights", "=2"), "argument --weights: '=2' must be NAME=VALUE"),
        (("--weights", "hight"), "'hight': is no field"),
        (("--offset", "days + 1"), "must be offset(field) or offset(log(field))"),
    ):
        assert main((*fit, *more)) == 2
        error = capsys.readouterr().err
        assert message in error and error.count("\n") == 1, error


def test_the_commands_fit_and_read(
    released: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    book = tmp_path / "book.yaml"
    book.write_text(yaml.safe_dump(BOOK), encoding="utf-8")
    table = str(released.with_name("people.csv"))
    fit = ("fit", FORMULA, table, "--codebook", "book.yaml", "--family", "poisson", "--epsilon", "2")
    written = ("--output", "a.nc", "--report", "a.html", "--csv", "a.csv", "--plot", "a.png")
    assert main((*fit, *written, "--contrast", "plan[private] - plan[public]")) == 0
    out = capsys.readouterr().out
    assert "female:plan=private" in out and "plan[private] - plan[public]" in out
    assert "must not be published" in out
    found = pd.read_csv("a.csv", index_col="coefficient")
    assert found["estimate"].to_numpy() == pytest.approx(dpmc.Fit("a.nc").mean)
    assert all((tmp_path / name).stat().st_size > 1000 for name in ("a.html", "a.png"))
    assert main(("read", "a.nc", str(released), "--apart", "--plot", "both.png")) == 0
    assert capsys.readouterr().out.count(FORMULA) == 2 and (tmp_path / "both.png").exists()
    for arguments, message in (
        ((*fit, *written), "--output: a.nc: exists; --force overwrites it"),
        ((*fit, "--ledger", "no.ledger"), "--output: needed: a release"),
        ((*fit, "--report", "book.yaml"), "--report: book.yaml: is a file of another option too"),
        ((*fit, "--contrast", "height"), "contrast: 'height': must combine coefficients"),
        (("read", "a.nc", "--apart", "--csv", "b.csv"), "--apart: is for the text and --plot"),
        (("read", "a.csv"), "a.csv"),
    ):
        assert main(arguments) == 2
        error = capsys.readouterr().err
        assert message in error and error.count("\n") <= 3, error
