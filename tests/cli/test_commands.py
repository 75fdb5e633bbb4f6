"""The commands end to end, on small data, in one process."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray
import yaml

from dpmc.cli.main import main
from dpmc.cli.options import COMMANDS
from dpmc.data.chain_files import read_chain

CELL = ("--model", "circle", "--method", "dp-penalty")
SAMPLE = ("sample", *CELL, "--epsilon", "1", "--data", "circle.nc", "--quiet", "--output")
BUDGET = ("budget", "--model", "flat-banana-2d", "--method", "dp-penalty", "--json")


def run(*arguments: str) -> None:
    assert main(arguments) == 0


def test_budget_prints_one_flat_object(folder, capsys):
    (folder / "own.yaml").write_text("{tau: 0.2, clip: 2, proposal_sd: 0.008}")
    answers = []
    own = ("--hyperparameters", "own.yaml")
    for question in (("--epsilon", "4"), ("--iterations", "702"), ("--epsilon", "4", *own)):
        run(*BUDGET, *question)
        answers.append(json.loads(capsys.readouterr().out))
    assert answers[0]["tight"] == 702 > answers[0]["zcdp"]
    assert 3.99 < answers[1]["tight"] <= 4.0
    assert answers[2]["tight"] == 2808


def test_sample_evaluate(folder, table):
    run(*SAMPLE, "seed-{seed}.nc", "--seed", "0", "1", "2")
    chains = ("seed-0.nc", "seed-1.nc", "seed-2.nc")
    run("evaluate", "--data", "circle.nc", "--chains", *chains, "--output", "metrics.csv")
    rows = table("metrics.csv")
    assert all(row["value"] not in ("", "nan") for row in rows)
    metrics = {row["metric"] for row in rows}
    assert {"mmd", "mean_error", "acceptance_rate", "ratio_clip_fraction", "iterations"} <= metrics
    assert not list(folder.glob(".*"))  # no checkpoint or temporary file is left


def test_one_seed_is_bit_identical_alone_and_with_others(folder):
    run(*SAMPLE, "all/seed-3.nc", "all/seed-5.nc")
    assert [read_chain(f"all/seed-{seed}.nc").attrs["seed"] for seed in (3, 5)] == [3, 5]
    run(*SAMPLE, "one/seed-5.nc")
    assert (folder / "all/seed-5.nc").read_bytes() == (folder / "one/seed-5.nc").read_bytes()


def test_chain_file_follows_the_schema_and_thinning_keeps_the_chain(folder):
    run(*SAMPLE, "whole/seed-0.nc")
    run(*SAMPLE, "thin/seed-0.nc", "--thin", "3")
    whole, thin = read_chain("whole/seed-0.nc"), read_chain("thin/seed-0.nc")
    k = thin.attrs["iterations"]
    with xarray.open_datatree("thin/seed-0.nc") as tree:
        assert tree["posterior/theta"].dims == ("chain", "draw", "parameter")
        assert tree["posterior/draw"].values.tolist() == list(range(3, k + 1, 3))
        assert tree["private_diagnostics"].attrs["releasable"] == 0
        assert tree.attrs["mode"] == "lab"
    ledger = json.loads(thin.attrs["ledger"])
    assert ledger["accountant"]["name"] == "tight"
    assert ledger["performed"] == ledger["reserved"]
    assert 0 < ledger["epsilon_spent"] <= 1
    assert sum(event["count"] for event in ledger["performed"]) == k
    np.testing.assert_array_equal(whole.draws[:, 2::3], thin.draws)
    for name, total in whole.totals.items():
        np.testing.assert_array_equal(total, thin.totals[name])


def test_reuse_of_gradients_is_noted_in_outputs(folder, capsys, table):
    path = folder / "config/studies/thesis.yaml"
    study = yaml.safe_load(path.read_text())
    reused = {"algorithm": "dp-hmc", "options": {"reuse_gradients": True}, "models": ["circle"]}
    study["methods"]["dp-hmc-reused"] = reused
    path.write_text(yaml.safe_dump(study))
    cell = ("--model", "circle", "--method", "dp-hmc-reused", "--epsilon", "1", "--data", "circle.nc")
    run("sample", *cell, "--output", "seed-0.nc")
    assert "reuses gradients" in capsys.readouterr().err
    assert "reuses gradients" in read_chain("seed-0.nc").attrs["variant"]
    run("evaluate", "--data", "circle.nc", "--chains", "seed-0.nc", "--output", "m.csv")
    assert any("reuses gradients" in row["value"] for row in table("m.csv"))


@pytest.mark.parametrize("tau", [0.02, 0.1])
def test_a_budget_that_is_too_small_is_a_status(folder, table, tau):
    (folder / "own.yaml").write_text(f"{{tau: {tau}, clip: 0.002, proposal_sd: 0.2}}")
    run(*SAMPLE, "seed-0.nc", "--epsilon", "0.5", "--hyperparameters", "own.yaml")
    chain = read_chain("seed-0.nc")
    assert chain.attrs["iterations"] < 4
    assert chain.attrs["status"].startswith("budget too small")
    run("evaluate", "--data", "circle.nc", "--chains", "seed-0.nc", "--output", "m.csv")
    status = [row["value"] for row in table("m.csv") if row["metric"] == "status"]
    assert any("budget too small" in text for text in status)


OWN_MODEL = '''
import numpy as np

class Normal:
    """x ~ N(theta, 1) in two dimensions."""
    dimension = 2
    n = 300
    true_theta = np.array([1.0, -1.0])

    def log_likelihood(self, theta, rows):
        return -0.5 * ((rows - theta) ** 2).sum(axis=1)

    def simulate(self, generator, theta, n):
        return theta + generator.standard_normal((n, 2))
'''


def test_a_model_of_ones_own(folder, capsys):
    (folder / "own_model.py").write_text(OWN_MODEL)
    (folder / "own.yaml").write_text("{tau: 0.5, clip: 10, proposal_sd: 0.05}")
    cell = ("--model", "own_model:Normal", "--method", "dp-penalty", "--hyperparameters", "own.yaml")
    run("budget", *cell, "--epsilon", "4", "--json")
    k = json.loads(capsys.readouterr().out)["tight"]
    run("sample", *cell, "--epsilon", "4", "--output", "seed-0.nc", "--quiet")
    chain = read_chain("seed-0.nc")
    assert chain.attrs["evaluator"] == "generic"
    assert chain.draws.shape == (1, k, 2)
    np.savetxt("rows.csv", np.random.default_rng(0).normal([1.0, -1.0], 1.0, (300, 2)), delimiter=",")
    run("sample", *cell, "--epsilon", "4", "--data", "rows.csv", "--output", "own/seed-0.nc", "--quiet")
    assert read_chain("own/seed-0.nc").attrs["dataset"] == "rows"


def test_a_command_reports_time_and_memory_unless_quiet(folder, capsys):
    np.savetxt("rows.csv", np.arange(1.0, 21.0))
    run("data", "--study", "smoke", "--model", "circle", "--rows", "rows.csv", "--output", "made.nc")
    said = r"^data: (\d+\.\d+) s CPU in \d+\.\d+ s, at most (\d+) MB in a process\n\Z"
    sizes = re.search(said, capsys.readouterr().err)
    assert float(sizes[1]) > 0.0 and float(sizes[2]) > 10.0
    for _ in range(2):  # a second measurement replaces the first
        run(*SAMPLE, "seed-0.nc", "--iterations", "5", "--force", "--times", "job.tsv")
    run("budget", *CELL, "--epsilon", "4", "--json")
    assert capsys.readouterr().err == ""
    head, line = Path("job.tsv").read_text().splitlines()
    assert head.split() == ["wall_seconds", "cpu_seconds", "peak_mib"]
    assert all(float(number) > 0.0 for number in line.split("\t"))


def test_tune_writes_setting_and_verdict(folder):
    run("tune", "--study", "smoke", *CELL, "--data", "circle.nc", "--output", "t.yaml", "--quiet")
    result = yaml.safe_load(Path("t.yaml").read_text())
    assert result["hyperparameters"] == {"tau": 4, "clip": 0.002, "proposal_sd": 0.2}
    assert result["tried"]["clipping"].startswith(("passes", "fails"))
    assert result["tried"]["medians"]["mmd"] > 0
    run(*SAMPLE, "seed-0.nc", "--hyperparameters", "t.yaml")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main((command, "--help"))
    assert stop.value.code == 0
    assert f"example: dpmc {command} " in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("line", "answers"),
    [
        ("dpmc ev", {"evaluate"}),
        ("dpmc b", {"budget", "budgets"}),
        ("dpmc sample --hyp", {"--hyperparameters"}),
    ],
)
def test_completion(line, answers, tmp_path):
    """By argcomplete's documented protocol."""
    pytest.importorskip("argcomplete")
    output = tmp_path / "output"
    request = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_STDOUT_FILENAME": str(output)}
    request |= {"COMP_LINE": line, "COMP_POINT": str(len(line))}
    done = subprocess.run([sys.executable, "-m", "dpmc"], env={**os.environ, **request}, check=False)
    assert done.returncode == 0
    assert set(output.read_text().replace("\013", " ").split()) == answers
