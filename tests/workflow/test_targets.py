"""What plain `snakemake <target>` plans: a figure costs its models, a study all it promises."""

import os
import re
import shutil
from pathlib import Path

import pytest
import yaml

from dpmc.common.errors import DpmcError
from dpmc.reports import plots
from dpmc.studies import load_study
from dpmc.studies.targets import check_target
from pipeline_copy import ROOT, SMALL, copy_pipeline, run, snakemake

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


def test_a_figure_of_repeated_runs_costs_a_job_for_each_label_and_method(folder):
    rules = {"repeated": 5, "repeated_table": 1, "figure": 1, "total": 7}  # also those of exact draws
    assert jobs(folder, "figures/peers-smoke/coverage.pdf") == rules


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


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("results/thesis/metrics/crcle.csv", "model: 'crcle' is unknown; did you mean circle? known: "),
        ("data/thesis/crcle/published.nc", "model: 'crcle' is unknown; did you mean circle? known: "),
        ("results/thesis/metrcs.csv", "no rule makes it; did you mean results/thesis/metrics.csv?"),
        ("figures/thesis/mmd.pgn", "no rule makes it; did you mean figures/thesis/{figure}.png?"),
        ("thesiss", "study: 'thesiss' is unknown; did you mean thesis? known: "),
        ("results/thesi/metrics.csv", "study: 'thesi' is unknown; did you mean thesis? known: "),
        (CHAIN.replace("dp-hmc", "dp-hcm"), "method: 'dp-hcm' is unknown; did you mean dp-hmc? known: "),
        (CHAIN.replace("dp-hmc", "dp-barker"), "model: 'circle' is unknown; known of dp-barker: "),
        (CHAIN.replace("eps-1", "eps-7"), "epsilon: '7' is unknown; known of dp-hmc on circle: 0.5, 0.75, 1"),
        (CHAIN.replace("seed-0", "seed-20"), "seed: '20' must be 0 to 19, by seeds of thesis"),
        (
            CHAIN.replace("thesis", "thesis-tuned"),
            f"thesis-tuned takes dp-hmc from another study; it is {CHAIN}",
        ),
    ],
)
def test_a_target_that_no_study_has_is_refused_in_one_line(folder, target, words):
    *_, last = snakemake(folder, "-n", target, status=1).splitlines()
    assert last.startswith(f"dpmc: error: {target}: {words}")


def test_a_report_may_be_written_beside_the_figures_of_a_study(folder):
    *_, last = snakemake(folder, "--report", "figures/thesis/report.html", "thesis", status=1).splitlines()
    assert "no rule makes it" not in last


@pytest.mark.parametrize("target", ["results/peers/claims.yaml", "figures/peers/claims.csv"])
def test_claims_of_a_study_without_are_refused_in_one_line(folder, target):
    *_, last = snakemake(folder, "-n", target, status=1).splitlines()
    assert last.startswith("dpmc: error: study peers: it has no claims; studies that have: ")


def test_files_of_ones_own_are_not_taken_for_those_of_studies():
    check_target("results/mine/metrics/crcle.csv", {"thesis": load_study("thesis")})


@pytest.mark.parametrize("name", ["studies/smoke", "hyperparameters/thesis", "figures/thesis"])
def test_an_empty_file_is_named(tmp_path, name):
    for room in ("studies", "hyperparameters", "figures"):
        shutil.copytree(ROOT / "config" / room, tmp_path / room)
    (tmp_path / f"{name}.yaml").write_text("# nothing yet\n")
    with pytest.raises(DpmcError, match=rf"{name}.yaml: is empty; must be keys with values"):
        load_study(tmp_path / f"studies/{'smoke' if 'smoke' in name else 'thesis'}.yaml")


HIDES_NUMPY = """import sys
class Finder:
    def find_spec(self, name, *_):
        if name == "numpy":
            raise ModuleNotFoundError(name=name)
sys.meta_path.insert(0, Finder())
"""


@pytest.mark.parametrize("command", [("-m", "snakemake", "--cores=1"), ("workflow/run.py",)])
def test_settings_without_keys_and_missing_packages_are_named_in_one_line(tmp_path, command):
    folder = copy_pipeline(tmp_path / "project", {"small": SMALL})
    (tmp_path / "sitecustomize.py").write_text(HIDES_NUMPY)
    paths = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    output = run(folder, *command, "-n", "small", status=1, PYTHONPATH=paths)
    assert re.search(r"^dpmc: error: .+ lacks the package numpy: make install, then .*$", output, re.M)
    assert "Traceback" not in output
    for text in ("# nothing", "- study"):
        (folder / "config/config.yaml").write_text(text)
        output = run(folder, *command, "-n", "small", status=1 + ("workflow/run.py" in command))
        rule = "dpmc: error: config/config.yaml: must be keys with values, such as study: thesis"
        assert output.splitlines()[-1].startswith(rule) and "Traceback" not in output


def test_a_list_is_asked_for_by_that_name(tmp_path):
    (tmp_path / "small.yaml").write_text(yaml.safe_dump({**SMALL, "figures": "circle"}))
    with pytest.raises(DpmcError, match=r"figures: 'circle': must be a list, such as \[a, b\]$"):
        load_study(tmp_path / "small.yaml")


def test_the_rules_drawn_in_the_docs_are_those_of_snakemake(folder):
    drawn = re.search(
        r"^data +->.*?(?=^```)", (ROOT / "docs/explanation/architecture.md").read_text(), re.M | re.S
    )
    edges = {(a, b) for line in drawn[0].splitlines() for a in [line.split()[0]] for b in line.split()[2:]}
    printed = snakemake(folder, "--rulegraph", "mermaid-js", "--", "smoke")
    named = {
        key: re.sub("^(sample|tuning)_.*", r"\1", name)
        for key, name in re.findall(r"(id\d+)\[(.*)\]", printed)
    }
    named = {key: "table" if name == "readable_table" else name for key, name in named.items()}
    assert edges == {(named[a], named[b]) for a, b in re.findall(r"(id\d+) --> (id\d+)", printed)}
