"""What plain `snakemake <target>` plans: a figure costs its models, a chain its data and tuning."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from dpmc.reports import plots
from dpmc.studies import load_study
from pipeline_copy import copy_pipeline

ROOT = Path(__file__).parents[2]
CHAIN = "results/thesis/chains/circle/dp-hmc/eps-1/seed-0.nc"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the pipeline without results, with the studies of the project."""
    names = ["thesis", *(file.stem for file in (ROOT / "config/studies").glob("*.yaml"))]
    files = {name: ROOT / f"config/studies/{name}.yaml" for name in names}
    studies = {name: yaml.safe_load(file.read_text()) for name, file in files.items()}
    return copy_pipeline(tmp_path_factory.mktemp("targets"), studies)


def snakemake(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "snakemake", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def jobs(folder: Path, *arguments: str) -> dict[str, int]:
    """Number of jobs by rule that a run with two cores would have."""
    lines = snakemake(folder, "--cores", "2", "-n", "--quiet=rules", *arguments).splitlines()
    table = lines[lines.index("Job stats:") + 3 :]
    return {name: int(count) for name, count in map(str.split, table[: table.index("")])}


@pytest.mark.parametrize("figure", ["trajectory", "accounting", "posteriors"])
def test_a_figure_without_chains_is_one_job(folder, figure):
    assert jobs(folder, f"figures/thesis/{figure}.pdf") == {"figure": 1, "total": 1}


def test_a_figure_of_one_model_needs_that_model_only(folder):
    rules = {"data": 2, "tuning": 3, "sample_thesis_circle": 3, "evaluate": 1, "baselines": 1}
    assert jobs(folder, "figures/thesis/circle.pdf") == {**rules, "figure": 1, "total": 11}


def test_a_model_is_a_target(folder):
    rules = {"data": 2, "tuning": 3, "sample_thesis_circle": 3, "evaluate": 1}
    assert jobs(folder, "results/thesis/metrics/circle/chains.csv") == {**rules, "total": 9}


def test_one_chain_alone_is_data_tuning_and_that_chain(folder):
    rules = {"data": 2, "tuning": 1, "sample_thesis_circle": 1, "total": 4}
    assert jobs(folder, "--config", "job=chain", "--", CHAIN) == rules
    told = snakemake(folder, "--cores", "2", "-n", "--config", "job=chain", "--", CHAIN)
    [line] = [line for line in told.splitlines() if "Sample thesis circle, 1 of its chains: " in line]
    assert all(words in line for words in ("method=dp-hmc", "epsilon=1", "seed=0"))


def test_a_dry_run_lists_no_hundreds_of_files(folder):
    told = snakemake(folder, "--cores", "2", "-n", "thesis")
    assert max(line.count(", ") for line in told.splitlines()) < 50
    assert len(told) < 60_000


def test_every_rule_says_what_it_makes(folder):
    for option in ("--list", "--list-target-rules"):
        lines = snakemake(folder, option).splitlines()
        assert len(lines) > 20 and [line for line in lines if not line.endswith(")")] == []


def test_the_rules_pass_the_lint(folder):
    command = [sys.executable, "-m", "snakemake", "--lint"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("study", "figure", "models"),
    [
        ("thesis", "circle", ["circle"]),
        (
            "thesis",
            "clipping-effect",
            [f"clipping-{d}d{coded}" for d in (2, 10) for coded in ("", "-as-coded")],
        ),
        ("thesis", "gradient-clipping", None),
        ("thesis", "posteriors", []),
        ("dp-hmc", "paper-posteriors", ["paper-banana"]),
        ("dp-hmc", "paper-directions", []),
        ("dp-fast-mh", "density", []),
        ("dp-fast-mh", "equal-budget", ["mixture"]),
    ],
)
def test_the_models_whose_metrics_a_figure_reads(study, figure, models):
    of = load_study(ROOT / f"config/studies/{study}.yaml")
    read = plots.reads(figure, of)[0]
    assert set(read) == set(models) if models is not None else set(read) < set(of.models)


def test_models_beside_those_drawn_are_read_too():
    of = load_study(ROOT / "config/studies/dp-hmc.yaml")
    assert set(plots.reads("paper-prior", of)[0]) == {"paper-banana-wide", "paper-banana"}
