"""What plain `snakemake <target>` plans: a figure costs its models, a chain its data, a study all it promises."""

from pathlib import Path

import pytest
import yaml

from dpmc.reports import plots
from dpmc.studies import load_study
from pipeline_copy import ROOT, copy_pipeline, snakemake

CHAIN = "results/thesis/chains/circle/dp-hmc/eps-1/seed-0.nc"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the pipeline without results, with the studies of the project."""
    names = dict.fromkeys(["thesis", *(file.stem for file in (ROOT / "config/studies").glob("*.yaml"))])
    studies = {name: yaml.safe_load((ROOT / f"config/studies/{name}.yaml").read_text()) for name in names}
    return copy_pipeline(tmp_path_factory.mktemp("targets"), studies)


def jobs(folder: Path, *arguments: str) -> dict[str, int]:
    """Return the number of jobs by rule that a run with two cores would have."""
    lines = snakemake(folder, "--cores=2", "-n", "--quiet=rules", *arguments).splitlines()
    table = lines[lines.index("Job stats:") + 3 :]
    return {name: int(count) for name, count in map(str.split, table[: table.index("")])}


def test_a_target_costs_what_it_needs_and_no_more(folder):
    for figure in ("trajectory", "accounting", "posteriors"):
        assert jobs(folder, f"figures/thesis/{figure}.pdf") == {"figure": 1, "total": 1}
    metrics = {"data": 1, "sample_thesis_circle": 3, "evaluate": 1, "total": 5}
    assert jobs(folder, "results/thesis/metrics/circle.csv") == metrics
    assert jobs(folder, "figures/thesis/circle.pdf") == {**metrics, "figure": 1, "total": 6}


def test_one_chain_alone_is_data_and_that_chain(folder):
    rules = {"data": 1, "sample_thesis_circle": 1, "total": 2}
    assert jobs(folder, "--config", "job=chain", "--", CHAIN) == rules
    printed = snakemake(folder, "-n", "--config", "job=chain", "--", CHAIN)
    assert "Sample thesis circle, 1 of its chains: " in printed


@pytest.mark.parametrize(
    ("study", "figure", "models"),
    [
        ("thesis", "circle", ["circle"]),
        ("thesis", "posteriors", []),
        ("dp-hmc", "paper-posteriors", ["paper-banana"]),
        ("dp-hmc", "paper-prior", ["paper-banana-wide", "paper-banana"]),  # also those beside the ones drawn
        ("dp-fast-mh", "density", []),
        ("dp-fast-mh", "equal-budget", ["mixture"]),
    ],
)
def test_the_models_whose_metrics_a_figure_reads(study, figure, models):
    of = load_study(ROOT / f"config/studies/{study}.yaml")
    read = plots.reads(figure, of)[0]
    assert set(read) == set(models)
