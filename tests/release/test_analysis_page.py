"""docs/how-to/an-analysis.md: its blocks run in order, and what it says of means holds."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpmc
from dpmc.cli.main import main
from dpmc.privacy.data_ledger import DataLedger

PAGE = (Path(__file__).resolve().parents[2] / "docs/how-to/an-analysis.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_page_runs_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    for language, body in re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        if language == "python":
            exec(body, names)
        elif language == "yaml":
            Path("people.yaml").write_text(body)
        elif language == "shell":
            for line in body.splitlines():
                assert main(shlex.split(line)[1:]) == 0, line
    assert "All of it is allowed in a release." in capsys.readouterr().out
    assert DataLedger.open("people.ledger").spent[0] == 2.0
    assert all(Path(name).is_file() for name in ("both.csv", "both.html", "visits.html", "age.png"))
    report = Path("visits.html").read_text()
    assert "(ε = 2, δ = 4e-06)" in report and "enum:" in report and "decimalChar" not in report
    table = names["fit"].to_frame(0.9999)  # type: ignore[attr-defined]
    truth = {"age": 0.01, "female": 0.3, "plan=public": 0.0, "plan=private": 0.5}
    assert all(table.loc[name, "lower"] < value < table.loc[name, "upper"] for name, value in truth.items())


def has_ncdf4() -> bool:
    """Return whether there is R with the package that the page uses."""
    asked = ["Rscript", "-e", "quit(status = !requireNamespace('ncdf4', quietly = TRUE))"]
    return shutil.which("Rscript") is not None and subprocess.run(asked, check=False).returncode == 0


def test_the_lines_of_r_read_a_release(tmp_path: Path) -> None:
    if not has_ncdf4():
        pytest.skip("needs R with ncdf4")
    generator = np.random.default_rng(0)
    table = pd.DataFrame({"y": generator.normal(size=3000), "some age": generator.uniform(0, 100, 3000)})
    bounds = {"constraints": {"minimum": 0, "maximum": 100}}
    fields = [{"name": "y", "type": "number", "centre": 0, "scale": 1}]
    book = {"fields": [*fields, {"name": "some age", "type": "number", **bounds}]}
    DataLedger.create(tmp_path / "people.ledger", 1.0, 1e-4)
    paid = {"ledger": tmp_path / "people.ledger", "output": tmp_path / "first.nc"}
    draws = dpmc.fit("y ~ `some age`", table, book, epsilon=1, **paid).tree.posterior.theta
    (tmp_path / "read.R").write_text(re.findall(r"^```r\n(.*?)^```$", PAGE, re.M | re.S)[0])
    run = subprocess.run(
        ["Rscript", "--vanilla", "read.R"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    heading, *lines = run.stdout.splitlines()
    assert heading.split() == ["mean", "sd", "5%", "95%"]
    names = draws.parameter.values.tolist()
    assert names == ["intercept", "some age", "log_sd"] and len(lines) == len(names)
    for name, line in zip(names, lines, strict=True):
        x = draws.sel(parameter=name).values.ravel()
        assert line.startswith(name)
        numbers = list(map(float, line.removeprefix(name).split()))
        assert numbers == pytest.approx([x.mean(), x.std(ddof=1), *np.quantile(x, [0.05, 0.95])], rel=1e-4)


def test_refused_terms_are_refused_and_what_to_write_is_not(tmp_path: Path) -> None:
    (tmp_path / "people.yaml").write_text(re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.M | re.S)[0])
    model = dpmc.PoissonRegression
    for term in (
        "scale(age)",
        "poly(age, 2)",
        "bs(age, df=4)",
        "cr(age)",
        "age > 50",
        "(1 | plan)",
        "age + age**2",
    ):
        assert f"`{term}`".replace("|", r"\|") in PAGE
        with pytest.raises(dpmc.DpmcError, match="is not allowed|must be bs|no power"):
            model(f"visits ~ {term}", codebook=tmp_path / "people.yaml")
    with pytest.raises(dpmc.DpmcError, match="outcome must be a field"):
        model("log(visits) ~ age", codebook=tmp_path / "people.yaml")
    for term in ("age", "age + I(age**2)", "bs(age, knots=[40, 60])", "plan", 'C(plan, "public")'):
        assert term in PAGE
        assert model(f"visits ~ {term}", codebook=tmp_path / "people.yaml").dimension > 1


def test_a_mean_of_skewed_numbers_is_not_the_intercept() -> None:
    """The intervals that the page quotes."""
    generator, n = np.random.default_rng(3), 5000
    generator.normal(size=n), generator.binomial(1, 0.3, n)
    rows = pd.DataFrame({"visits": generator.negative_binomial(1, 0.5, n)})
    rows["income"] = generator.lognormal(7, 1, n)
    book = {
        "fields": [
            {"name": "visits", "type": "integer", "constraints": {"minimum": 0, "maximum": 50}, "centre": 1},
            {"name": "income", "type": "number", "centre": 2000, "scale": 2000},
        ]
    }
    shown = []
    for name, family in (("income", "linear"), ("visits", "poisson"), ("visits", "negative-binomial")):
        ends = dpmc.fit(f"{name} ~ 1", rows, book, family=family, epsilon=1).to_frame().loc["intercept"]
        low, high = ends[["lower", "upper"]] if family == "linear" else ends[["ratio_lower", "ratio_upper"]]
        mean = rows[name].mean()
        shown.append((low < mean < high, high / mean))
    assert [inside for inside, _ in shown] == [False, False, True]
    assert shown[0][1] < 0.8 and shown[1][1] < 0.9
