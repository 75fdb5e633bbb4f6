"""A study that reuses cells of another: its own cells, its needs, and refusals."""

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpmc.cli.main import main
from dpmc.common.errors import DpmcError
from dpmc.studies import Study, load_study
from pipeline_copy import ROOT, SMALL, copy_pipeline, snakemake

CELL = r"results/(\w+)/chains/([\w-]+)/([\w-]+)/eps-([\d.]+)/"

BASE: dict[str, Any] = {
    **SMALL,
    "tuning": {},
    "models": {
        "circle": {"epsilons": [0.5, 1], "tuning_epsilon": 0.5, "n": 20_000},
        "flat-banana-2d": {"epsilons": [1], "tuning_epsilon": 1},
        "gauss-30d": {"epsilons": [1], "tuning_epsilon": 1},
    },
    "methods": {
        "dp-penalty": {},
        "dp-hmc": {"models": ["circle"]},
        "dp-barker": {"accountant": "thesis", "models": ["flat-banana-2d"]},
    },
    "figures": [],
}
OTHER: dict[str, Any] = {
    **BASE,
    "models": {
        "circle": {"epsilons": [1], "tuning_epsilon": 1, "n": 20_000},
        "flat-banana-2d": {"epsilons": [1], "tuning_epsilon": 1},
    },
    "methods": {
        "dp-penalty": {"from_study": "base"},
        "dp-hmc": {"from_study": "base"},
        "dp-penalty-mine": {"algorithm": "dp-penalty", "models": ["circle"]},
    },
}


def write(folder: Path, **studies: dict[str, Any]) -> Path:
    (folder / "config/studies").mkdir(parents=True, exist_ok=True)
    shutil.copytree(ROOT / "config/hyperparameters", folder / "config/hyperparameters", dirs_exist_ok=True)
    for name, content in studies.items():
        (folder / f"config/studies/{name}.yaml").write_text(yaml.safe_dump(content))
    return folder / "config/studies"


def other(folder: Path, base: dict[str, Any] | None = None, **changes: Any) -> Study:
    return load_study(write(folder, base=base or BASE, other={**OTHER, **changes}) / "other.yaml")


def test_a_study_runs_only_its_own_cells_and_reuses_methods_with_their_settings(tmp_path) -> None:
    study = other(tmp_path)
    assert list(study.cells()) == [("circle", "dp-penalty-mine", "1")]
    assert study.reused() == [("base", "circle"), ("base", "flat-banana-2d")]
    chosen = other(tmp_path, methods={"dp-penalty": {"from_study": "base", "models": ["circle"]}})
    assert chosen.reused() == [("base", "circle")]

    study = other(tmp_path, methods={"dp-barker": {"from_study": "base"}, "dp-hmc": {"from_study": "base"}})
    barker = study.method("dp-barker")
    assert (barker.algorithm, barker.accountant, barker.from_study) == ("dp-barker", "thesis", "base")
    assert barker.models == ("flat-banana-2d",) and study.method("dp-hmc").models == ("circle",)
    assert list(study.cells()) == []


CIRCLE = OTHER["models"]["circle"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"methods": {"dp-hmc": {"from_study": "bace"}}}, ["from_study", "bace.yaml: no such file"]),
        ({"methods": {"dp-hcm": {"from_study": "base"}}}, ["dp-hcm", "does not run this method", "dp-hmc"]),
        (
            {"methods": {"dp-hmc": {"from_study": "base", "models": ["flat-banana-2d"]}}},
            ["dp-hmc: from_study", "does not run it on 'flat-banana-2d'"],
        ),
        (
            {"methods": {"dp-hmc": {"from_study": "base", "accountant": "tight"}}},
            ["dp-hmc: accountant", "not allowed with from_study"],
        ),
        ({"delta": 1e-6}, ["delta '0.1/n' for circle, this study has 1e-06"]),
        ({"models": {"circle": {**CIRCLE, "n": 30_000}}}, ["n 20000 for circle, this study has 30000"]),
        ({"models": {"circle": {**CIRCLE, "epsilons": [2]}}}, ["no epsilon 2 for circle"]),
        (
            {
                "models": {"mine": {**CIRCLE, "model": "circle"}},
                "methods": {"dp-hmc": {"from_study": "base"}},
            },
            ["dp-hmc", "none of this study's models"],
        ),
    ],
)
def test_mistakes_name_file_key_and_rule(tmp_path, changes, words) -> None:
    if "models" in changes and "methods" not in changes:
        changes = {**changes, "methods": {"dp-penalty": {"from_study": "base"}}}
    with pytest.raises(DpmcError) as caught:
        other(tmp_path, **changes)
    for word in ["other.yaml: line ", ": methods: ", *words]:
        assert word in str(caught.value)


def test_circular_reuse_of_studies_is_refused(tmp_path) -> None:
    ring = {**BASE, "methods": {"dp-hmc": {"from_study": "other"}}}
    with pytest.raises(DpmcError, match=r"base.yaml: line 5: .*dp-hmc: from_study: 'other' takes cells from"):
        other(tmp_path, base=ring)


@pytest.mark.parametrize(
    "command",
    [
        "sample --model circle --method dp-hmc --epsilon 1 --seed 0 --output chain.nc",
        "tune --model circle --method dp-hmc --output tuned.yaml",
    ],
)
def test_the_commands_refuse_a_reused_method(tmp_path, capsys, command) -> None:
    other(tmp_path)
    study = str(tmp_path / "config/studies/other.yaml")
    assert main([*command.split(), "--study", study]) == 2
    assert "methods: dp-hmc: its cells come from the study base, which runs them" in capsys.readouterr().err


ORDER = ("data", "tuning", "sample", "evaluate", "metrics")  # of a chain's way


def planned(folder: Path, target: str) -> list[tuple[str, str]]:
    """Return the (rule, file) that a run would make for a target, what others need first."""
    lines = [line.split("\t") for line in snakemake(folder, "--summary", target).splitlines()]
    made = [(fields[2], fields[0]) for fields in lines if fields[-1] == "update pending"]
    return sorted(made, key=lambda job: (ORDER.index(job[0].partition("_")[0]), job[1]))


def test_the_rules_run_what_is_needed_of_the_other_study(tmp_path) -> None:
    copy_pipeline(tmp_path, {"other": OTHER, "base": BASE})
    files = [file for _, file in planned(tmp_path, "results/other/metrics.csv")]
    sampled = {match.groups() for file in files if (match := re.match(CELL, file))}
    assert {cell for cell in sampled if cell[0] == "other"} == {("other", "circle", "dp-penalty-mine", "1")}
    assert {model for study, model, _, _ in sampled if study == "base"} == {"circle", "flat-banana-2d"}
    assert {file for file in files if "/metrics/" in file} == {
        "results/other/metrics/circle.csv",
        "results/other/metrics/flat-banana-2d.csv",
        "results/base/metrics/circle.csv",
        "results/base/metrics/flat-banana-2d.csv",
    }


def test_metrics_are_made_anew_when_those_of_the_other_study_change(tmp_path) -> None:
    copy_pipeline(tmp_path, {"other": OTHER, "base": BASE})
    target = "results/other/metrics.csv"
    files = [file for _, file in planned(tmp_path, target)]
    for moment, name in enumerate(files, start=1_000_000_000):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
        os.utime(tmp_path / name, (moment, moment))
    assert target in files and planned(tmp_path, target) == []

    metrics = "results/base/metrics/circle.csv"
    (tmp_path / metrics).write_text("other numbers")
    assert planned(tmp_path, target) == [("metrics", target)]
    os.utime(tmp_path / metrics, (1_000_000_000, 1_000_000_000))

    chain = next(name for name in files if name.startswith("results/base/chains/circle/dp-hmc/"))
    (tmp_path / chain).write_text("another chain")
    assert planned(tmp_path, target) == [("evaluate", metrics), ("metrics", target)]
