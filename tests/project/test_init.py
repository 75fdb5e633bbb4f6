"""The project that `dpmc init` writes: complete, planned and run by Snakemake, and as its README says."""

import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpmc.cli.main import main
from dpmc.data.chain_files import read_chain
from dpmc.metrics.cell import second_half_of
from dpmc.reports import plots
from dpmc.studies import load_study
from dpmc.studies.figures import declared_figure
from pipeline_copy import ROOT, snakemake


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new project as the current folder; its model is imported from there alone."""
    assert main(("init", str(tmp_path / "project"), "--seed", "5", "--quiet")) == 0
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.delitem(sys.modules, "regression", raising=False)
    yield Path.cwd()
    sys.modules.pop("regression", None)


def refused_by_snakemake() -> list[str]:
    """Return the lines of a run that is refused, the last one ours."""
    lines = snakemake(Path(), status=1).splitlines()
    assert lines[-1].startswith("dpmc: error: ") and not any("Traceback" in line for line in lines), lines
    return lines


def test_existing_files_are_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "regression.yaml").write_text("mine")
    assert main(("init", str(tmp_path))) == 2
    assert f"{tmp_path}/regression.yaml: exists; " in capsys.readouterr().err
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


def test_the_rows_are_simulated_from_the_seed(tmp_path: Path) -> None:
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        assert main(("init", str(tmp_path / name), "--seed", seed)) == 0
    first, again, other = ((tmp_path / name / "measurements.csv").read_text() for name in "abc")
    assert first == again != other
    rows = np.loadtxt(tmp_path / "a/measurements.csv", delimiter=",", skiprows=1)
    assert rows.shape == (2000, 2)
    slope, intercept = np.polyfit(*rows.T, 1)  # as the README says, within four standard errors
    assert abs(slope - 0.8) < 4 / np.sqrt(2000) and abs(intercept - 0.3) < 4 / np.sqrt(2000)


def test_snakemake_plans_the_project_with_the_settings_of_its_command_line(project: Path) -> None:
    planned = snakemake(Path(), "--dry-run", "--quiet", "rules", "--config", "job=chain")
    assert re.search(r"^sample_regression_regression +24$", planned, re.M)  # 2 methods, 3 epsilons, 4 seeds


def test_a_project_has_the_profiles_of_clusters_and_runs_from_elsewhere(
    project: Path, tmp_path: Path
) -> None:
    for name in ("slurm", "generic"):
        assert (project / f"profiles/{name}/profile.yaml").read_bytes() == (
            ROOT / f"profiles/{name}/profile.yaml"
        ).read_bytes()
    where = ("--snakefile", str(project / "Snakefile"), "--directory", str(project))
    assert "Draw figure coefficients of regression" in snakemake(tmp_path, "--dry-run", *where)


def test_the_figure_of_a_project_needs_no_exact_posterior(project: Path) -> None:
    """On own rows there is none: a bar for each run and parameter, from the chains alone."""
    text = (project / "regression.py").read_text()
    (project / "regression.py").write_text(text[: text.index("    # Optional, if the posterior")])
    study = load_study("regression.yaml")
    cells = [cell for cell in study.cells() if cell[2] == "4"]
    study.models["regression"] = study.models["regression"].model_copy(update={"epsilons": ("4",)})
    for model, method, epsilon in cells:
        cell = ("--model", model, "--method", method, "--epsilon", epsilon, "--iterations", "40", "--quiet")
        output = f"results/regression/chains/{model}/{method}/eps-{epsilon}/seed-{{seed}}.nc"
        seeds = ("--seed", *map(str, range(study.seeds)))
        assert main(("sample", "--study", "regression.yaml", *cell, *seeds, "--output", output)) == 0
    models, files = plots.reads("coefficients", study)
    assert models == [] and len(files) == 8 and all(file.is_file() for file in files)
    figure = plots.draw(
        plots.ToDraw(declared_figure(study.path, "coefficients"), None, study, Path("results"))
    )
    assert len(figure.axes) == 2  # intercept and slope
    dots = [line for line in figure.axes[1].lines if line.get_marker() == "o" and len(line.get_xdata()) == 1]
    means = [float(line.get_ydata()[0]) for line in dots]
    kept = [np.concatenate([*second_half_of(read_chain(file))])[:, 1].mean() for file in files]
    assert sorted(means) == pytest.approx(sorted(kept))


def test_a_project_may_have_keys_of_its_own_but_no_misspelt_ones(project: Path) -> None:
    """Its own rules may read them."""
    assert "total" in snakemake(Path(), "--dry-run", "--quiet", "rules", "--config", "mine=1")
    told = snakemake(Path(), "--dry-run", "--config", "stduy=regression", status=1).splitlines()
    assert told[-1].startswith("dpmc: error: config: stduy: is unknown; did you mean study? ")


MODEL = "line 8: models: regression: "


@pytest.mark.parametrize(
    ("file", "right", "wrong", "words"),
    [
        ("regression.yaml", ":Regression", ":Other", f"{MODEL}model: 'regression:Other' "),
        ("regression.yaml", "data: measurements", "data: mine", f"{MODEL}data: mine.csv: No such"),
        ("measurements.csv", "x,y", "x", f"{MODEL}data: measurements.csv: line 2: has 2 entries"),
        ("hyperparameters/regression.yaml", "tau: 1, ", "", "line 3: dp-penalty: regression: tau: missing"),
    ],
)
def test_a_mistake_ends_a_run_with_one_line(
    project: Path, file: str, right: str, wrong: str, words: str
) -> None:
    (project / file).write_text((project / file).read_text().replace(right, wrong, 1))
    assert words in refused_by_snakemake()[-1]
    assert not list((project / ".snakemake").glob("locks/*"))


def test_rows_may_be_made_by_a_rule_of_ones_own(project: Path) -> None:
    """A run without the rows is refused, but not one that makes them."""
    (project / "measurements.csv").rename("raw.csv")
    with open("Snakefile", "a") as file:
        file.write("rule rows:\n    output: 'measurements.csv'\n    shell: 'cp raw.csv {output}'\n")
    assert "measurements.csv: No such file" in refused_by_snakemake()[-1]
    told = snakemake(Path(), "--no-hooks", "measurements.csv").splitlines()
    assert told[-1].startswith("1 of 1 jobs (100%)") and len(told) <= 3, told  # by the profile of the project


def test_the_commands_of_the_readme_work(project: Path) -> None:
    blocks = re.findall(r"^```\n(.*?)^```$", (project / "README.md").read_text(), re.M | re.S)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    commands = [line.split()[1:] for line in lines if line.startswith("dpmc ")]
    assert [command[0] for command in commands] == ["budget", "sample", "data", "sample"]
    for command in commands:
        assert main(command) == 0
    chain, trial = read_chain(Path("chain.nc")), read_chain(Path("trial.nc"))
    assert (chain.attrs["dataset"], trial.attrs["dataset"]) == ("measurements", "fresh-0")


@pytest.mark.slow
def test_snakemake_runs_the_project_to_its_figure(project: Path) -> None:
    snakemake(Path())
    for name in ("coefficients.png", "coefficients.pdf"):
        assert (project / "figures/regression" / name).stat().st_size > 10_000
    metrics = pd.read_csv(project / "results/regression/metrics.csv", dtype={"epsilon": str})
    errors = metrics.value[(metrics.metric == "mean_error") & (metrics.epsilon == "4")]
    assert len(errors) == 8 and errors.median() < 0.1  # posterior standard deviations are 0.1
    assert "Nothing to be done" in snakemake(Path())


def test_a_project_answers_a_formula_at_each_epsilon(project: Path) -> None:
    """Its rules of `dpmc fit` and `dpmc read` run, also with another table."""
    table = pd.DataFrame({"visits": [0, 1, 2, 3] * 500, "female": ["f", "m"] * 1000})
    table.to_csv("people.csv", index=False)
    Path("people.yaml").write_text(
        "fields:\n- {name: visits, type: integer, constraints: {minimum: 0, maximum: 50}}\n"
        "- {name: female, type: boolean, trueValues: [f], falseValues: [m]}\n"
    )
    text = Path("Snakefile").read_text()
    line = '"measurements.csv", "measurements.yaml", "y ~ x", "linear"'
    assert text.count(line) == 1
    Path("Snakefile").write_text(
        text.replace(line, '"people.csv", "people.yaml", "visits ~ female", "poisson"')
    )
    snakemake(Path(), "answers/coefficients.png")
    assert [f"eps-{epsilon}.html" for epsilon in (1, 2, 4)] == sorted(
        path.name for path in Path("answers").glob("*.html")
    )
    assert list(pd.read_csv("answers/eps-4.csv", index_col="coefficient").index) == ["intercept", "female"]
