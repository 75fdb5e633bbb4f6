"""A study that grows: what is there stays, and what Snakemake remembers grows with the outputs."""

import json
import re
import shutil
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpmc.cli.main import main
from dpmc.data import datasets
from dpmc.data.problem import read_problem
from dpmc.studies import load_study, problem_of
from dpmc.studies.sizes import FEW_SEEDS, MOST_SEEDS, Part, job_parts
from pipeline_copy import REDUCED, ROOT, SMALL, copy_pipeline, snakemake

STUDY: dict[str, Any] = {
    **SMALL,
    "models": {"circle": {"epsilons": [0.5, 1], "tuning_epsilon": 0.5, "n": 2_000}},
    "methods": {"dp-penalty": {"most_iterations": 20}, "dp-penalty-guided": {"most_iterations": 20}},
    "figures": [],
}
METRICS = "results/small/metrics/circle.csv"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the pipeline with the chains of two seeds."""
    folder = copy_pipeline(tmp_path_factory.mktemp("growing"), {"small": STUDY})
    snakemake(folder, METRICS)
    return folder


def change(folder: Path, **changes: Any) -> None:
    (folder / "config/studies/small.yaml").write_text(yaml.safe_dump({**STUDY, **changes}))


def sampled(folder: Path, *words: str) -> set[str]:
    """Return <method>/<ε>/<seed> of the chains that a run would make."""
    planned = snakemake(folder, "--summary", *words, METRICS)
    chain = r"^results/small/chains/circle/([\w-]+/eps-[\d.]+/seed-\d+)\.nc\t.*\tupdate pending$"
    return set(re.findall(chain, planned, re.M))


@pytest.mark.parametrize("job", ["method", "cell", "chain"])
def test_more_seeds_make_further_chains_alone(made, job) -> None:
    change(made, seeds=3)
    epsilons, methods = ("0.5", "1"), STUDY["methods"]
    further = {f"{method}/eps-{epsilon}/seed-2" for method in methods for epsilon in epsilons}
    assert sampled(made, "--config", f"job={job}", "--") == further


def test_another_epsilon_makes_its_own_chains_alone(made) -> None:
    about = STUDY["models"]["circle"]
    change(made, models={"circle": {**about, "epsilons": [0.5, 0.75, 1]}})
    assert {name.split("/")[1] for name in sampled(made)} == {"eps-0.75"}


def test_pinned_settings_are_not_tried_before_their_chains(made) -> None:
    """Trials are for readers: neither their seeds, nor that they were repeated, makes a chain anew."""
    assert not list(made.glob("results/small/tuning/**/*"))
    change(made, tuning={"seeds": 30})  # more than the start points in a file
    assert sampled(made) == set()


def test_a_study_that_grew_has_the_chains_of_one_that_was_made_at_once(made, tmp_path) -> None:
    about = {**STUDY["models"]["circle"], "epsilons": [0.5, 0.75, 1]}
    grown = {"seeds": 3, "models": {"circle": about}}
    change(made, **grown)
    before = {file: file.stat().st_mtime_ns for file in made.glob("results/**/*.nc")}
    snakemake(made, METRICS)
    assert all(file.stat().st_mtime_ns == moment for file, moment in before.items())
    assert sampled(made) == set()
    whole = copy_pipeline(tmp_path / "whole", {"small": {**STUDY, **grown}})
    snakemake(whole, METRICS)
    chains = sorted(file.relative_to(whole) for file in whole.glob("results/**/*.nc"))
    assert len(chains) == 18
    for chain in chains:
        assert (made / chain).read_bytes() == (whole / chain).read_bytes(), chain
    change(made)


def test_start_points_beyond_those_of_a_file_follow_from_their_number(tmp_path) -> None:
    study = load_study("thesis")
    for model, dataset in (("circle", "published"), ("gauss-30d", "fresh-3")):
        of = study.model(model).model_copy(update={"n": 100, "data": dataset})
        few = datasets.build(model, model, dataset, 100, 5)
        few.write(tmp_path / f"{model}.nc")
        assert len(read_problem(tmp_path / f"{model}.nc").starts) == 5
        study.models[model] = of
        read = problem_of(study, model, tmp_path / f"{model}.nc", starts=33)
        assert (read.starts == datasets.build(model, model, dataset, 100, 33).starts).all()


def test_what_is_remembered_of_a_chain_does_not_grow_with_their_number(made) -> None:
    """Snakemake keeps each job's command with each of its outputs: names in it would be kept squared."""
    for record in (made / ".snakemake/metadata").iterdir():
        name = b64decode(record.name).decode()
        if "/chains/" in name:
            command = json.loads(record.read_text())["shellcmd"]
            assert command.count("/chains/") == 1 and len(record.read_bytes()) < 6_000


def test_a_job_has_few_seeds_of_the_longest_cells() -> None:
    thesis = load_study(ROOT / "config/studies/thesis.yaml")
    object.__setattr__(thesis, "seeds", 50)
    for size, gradients in (("method", MOST_SEEDS), ("mixed", FEW_SEEDS), ("cell", FEW_SEEDS)):
        found = job_parts(thesis, size, lambda *cell: 0)
        for part, methods in found.items():
            most = gradients if {"dp-hmc"} & {thesis.method(m).algorithm for m in methods} else MOST_SEEDS
            assert len(part.seeds) <= most
            assert size != "mixed" or part.size == ("cell" if most == FEW_SEEDS else "method")
        of_hmc = [
            part.seeds for part, methods in found.items() if "dp-hmc" in methods and part.model == "circle"
        ]
        assert sorted(seed for seeds in of_hmc for seed in seeds) == [*range(50)]


def test_what_is_there_is_a_part_of_its_own(tmp_path) -> None:
    (tmp_path / "small.yaml").write_text(yaml.safe_dump({**REDUCED, "seeds": 5, "settings_of": "thesis"}))
    (tmp_path / "hyperparameters").symlink_to(ROOT / "config/hyperparameters")
    study = load_study(tmp_path / "small.yaml")
    there = {
        ("circle", "dp-penalty", "0.3"): 3,
        ("circle", "dp-penalty", "0.5"): 3,
        ("circle", "dp-hmc", "0.3"): 5,
    }
    found = job_parts(study, "method", lambda *cell: there.get(cell, 0))
    both = ("0.3", "0.5")
    assert found == {
        Part("circle", both, "", range(3), "method"): ["dp-penalty"],
        Part("circle", both, "", range(3, 5), "method"): ["dp-penalty"],
        Part("circle", both, "", range(5), "method"): ["dp-penalty-guided"],
        Part("circle", ("0.3",), "", range(5), "method"): ["dp-hmc"],
        Part("circle", ("0.5",), "", range(5), "method"): ["dp-hmc"],
    }


def test_a_chain_in_the_folder_of_another_is_named(made, tmp_path, capsys) -> None:
    folder = tmp_path / "dp-penalty/eps-1"
    shutil.copytree(made / "results/small/chains/circle/dp-penalty/eps-0.5", folder)
    data = ("--data", str(made / "data/small/circle/published.nc"))
    study = ("--study", str(made / "config/studies/small.yaml"), "--model", "circle")
    assert (
        main(("evaluate", *study, *data, "--chains", str(folder), "--output", str(tmp_path / "m.csv"))) == 2
    )
    words = f"{folder}/seed-0.nc: holds the chains of dp-penalty at epsilon 0.5, seed 0, whose file is "
    assert words + "dp-penalty/eps-0.5/seed-0.nc" in capsys.readouterr().err
