"""The commands end to end, on small data, in one process."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from dpmc.cli.main import main
from dpmc.cli.options import COMMANDS
from dpmc.data.chain_files import read_chain

CELL = ("--model", "circle", "--method", "dp-penalty")
SAMPLE = ("sample", *CELL, "--epsilon", "1", "--data", "circle.nc", "--quiet", "--seed", "0", "--output")


def run(*arguments: str) -> None:
    assert main(arguments) == 0


def test_sample_evaluate(folder, table):
    run(*SAMPLE, "seed-{seed}.nc", "--seed", "0", "1", "2")
    chains = ("seed-0.nc", "seed-1.nc", "seed-2.nc")
    run("evaluate", "--data", "circle.nc", "--chains", *chains, "--output", "metrics.csv")
    rows = table("metrics.csv")
    assert all(row["value"] not in ("", "nan") for row in rows)
    metrics = {row["metric"] for row in rows}
    assert {"mmd", "mean_error", "acceptance_rate", "ratio_clip_fraction", "iterations"} <= metrics
    assert not list(folder.glob(".*"))  # no checkpoint or temporary file is left


def test_thinning_keeps_the_chain_and_its_ledger(folder):
    run(*SAMPLE, "whole/seed-0.nc")
    run(*SAMPLE, "thin/seed-0.nc", "--thin", "3")
    whole, thin = read_chain("whole/seed-0.nc"), read_chain("thin/seed-0.nc")
    k = thin.attrs["iterations"]
    ledger = json.loads(thin.attrs["ledger"])
    assert ledger["accountant"]["name"] == "tight"
    assert ledger["performed"] == ledger["reserved"]
    assert 0 < ledger["epsilon_spent"] <= 1
    assert sum(event["count"] for event in ledger["performed"]) == k
    np.testing.assert_array_equal(whole.draws[:, 2::3], thin.draws)
    for name, total in whole.totals.items():
        np.testing.assert_array_equal(total, thin.totals[name])


def test_a_budget_that_is_too_small_is_a_status(folder, table):
    (folder / "own.yaml").write_text("{tau: 0.1, clip: 0.002, proposal_sd: 0.2}")
    run(*SAMPLE, "seed-0.nc", "--epsilon", "0.5", "--hyperparameters", "own.yaml")
    chain = read_chain("seed-0.nc")
    assert chain.attrs["iterations"] < 4
    assert chain.attrs["status"].startswith("budget too small")
    run("evaluate", "--data", "circle.nc", "--chains", "seed-0.nc", "--output", "m.csv")
    status = [row["value"] for row in table("m.csv") if row["metric"] == "status"]
    assert any("budget too small" in text for text in status)


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
    Path("notes.tsv").write_text("mine")
    assert main([*SAMPLE, "seed-0.nc", "--force", "--times", "notes.tsv"]) == 2
    assert "notes.tsv: exists and has no run times" in capsys.readouterr().err
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


def test_methods_are_tried_together_as_each_alone(folder):
    trial = ("tune", "--study", "smoke", "--model", "circle", "--data", "circle.nc", "--quiet", "--method")
    run(*trial, "dp-penalty", "dp-hmc", "--output", "a.yaml", "b.yaml")
    run(*trial, "dp-penalty", "--output", "a-alone.yaml")
    run(*trial, "dp-hmc", "--output", "b-alone.yaml")
    for name in ("a", "b"):
        assert Path(f"{name}.yaml").read_bytes() == Path(f"{name}-alone.yaml").read_bytes()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main((command, "--help"))
    assert stop.value.code == 0
    assert f"example: dpmc {command} " in " ".join(capsys.readouterr().out.split())


def test_completion(tmp_path):
    """By argcomplete's documented protocol."""
    pytest.importorskip("argcomplete")
    output = tmp_path / "output"
    request = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_STDOUT_FILENAME": str(output)}
    request |= {"COMP_LINE": "dpmc sample --hyp", "COMP_POINT": "17"}
    done = subprocess.run([sys.executable, "-m", "dpmc"], env={**os.environ, **request}, check=False)
    assert done.returncode == 0 and output.read_text().strip() == "--hyperparameters"
