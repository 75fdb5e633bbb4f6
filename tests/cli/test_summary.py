"""The summary of `dpmc sample`: numbers, warnings, and the joint cost of several seeds."""

import dataclasses
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

import dpmc
from dpmc.cli.main import main
from dpmc.data.chain_files import read_chain
from dpmc.metrics import summary
from dpmc.models.own import own_model
from dpmc.privacy import accountants
from dpmc.privacy.data_ledger import DataLedger
from dpmc.privacy.events import from_json
from dpmc.results import as_tree, parameters
from release.of_numbers import Numbers

ROOT = Path(__file__).parents[2]
MODELS = '''
import numpy as np


class Normal:
    """x ~ N(theta, 1)."""
    dimension = 1
    tempering = 100
    likelihood = staticmethod(lambda theta, rows: -0.5 * (rows[:, 0] - theta[0]) ** 2)

    def log_likelihood(self, theta, rows):
        return self.likelihood(theta, rows)


class Nothing(Normal):
    """Not a number for rows about 1000, which the trial does not know of."""
    likelihood = staticmethod(
        lambda theta, rows: np.where(abs(rows[:, 0] - 1000.0) < 9.0, np.nan, Normal.likelihood(theta, rows))
    )


class Hills(Normal):
    """Two modes so far apart that no chain goes from one to the other; starts lie between."""
    likelihood = staticmethod(lambda theta, rows: -((theta[0] ** 2 - 1.0) ** 2) + 0.0 * rows[:, 0])


class Beyond(Normal):
    """A prior that is 0 around 0, where chains start, but for the start points below 0.1."""
    def log_prior(self, theta):
        return np.where(theta[..., 0] > 0.1, -np.inf, 0.0)
'''
GOOD = {"tau": 1.0, "clip": 3.0, "proposal_sd": 0.15}


@pytest.fixture
def own(folder):
    """The name of a module of own models, beside private rows."""
    name = f"models_{folder.name.replace('-', '_')}"
    Path(f"{name}.py").write_text(MODELS)
    np.savetxt("rows.csv", np.random.default_rng(3).normal(0.0, 1.0, 2000))
    return name


def said(capfd, model: str, *arguments: str, quiet: bool = False, **settings) -> list[str]:
    """Return the lines that `sample` prints about a model, without progress and inputs."""
    Path("own.yaml").write_text(json.dumps({**GOOD, **settings}))
    arguments = ("--model", model, "--method", "dp-penalty", "--epsilon", "4", *arguments)
    seeds = () if "--seed" in arguments else ("--seed", "0")
    files = ("--data", "rows.csv", "--hyperparameters", "own.yaml", "--force")
    files += () if "--output" in arguments else ("--output", "c{seed}.nc")
    capfd.readouterr()
    assert main(("sample", *arguments, *seeds, *files, *(("--quiet",) if quiet else ()))) == 0
    lines = capfd.readouterr().err.splitlines()
    if quiet:
        return lines
    assert re.match(r"sample: \d+\.\d+ s CPU in ", lines.pop())
    return [line for line in lines if not re.search(r"\d+/\d+ iterations, ", line)]


def table_of(lines: list[str]) -> list[dict[str, str]]:
    """The rows of the summary's table, by column."""
    start = next(place for place, line in enumerate(lines) if line.startswith("  epsilon"))
    found = [re.split("  +", line.strip()) for line in lines[start:] if re.match(r"  [\w.]", line)]
    return [dict(zip(found[0], row, strict=True)) for row in found[1:]]


def warnings(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith("dpmc: warning: ")]


def test_a_good_chain_has_a_table_and_no_warning(own, capfd):
    title, *lines = said(capfd, f"{own}:Normal")
    assert title == f"{own}:Normal dp-penalty: delta 5e-05" and not warnings(lines)
    [row] = table_of(lines)
    chain = read_chain("c0.nc")
    k = chain.attrs["iterations"]
    assert row["iterations"] == str(k) and row["file"] == "c0.nc"
    assert row["accepted"] == f"{chain.totals['accepted'].sum() / k:.1%}"
    spent = float(row["spent"])
    assert 0.0 <= spent - json.loads(chain.attrs["ledger"])["epsilon_spent"] < 0.001  # rounded up
    ess = int(row["ESS"])
    half = chain.draws[:, k // 2 :]
    from arviz_stats.base import array_stats

    assert ess == pytest.approx(array_stats.ess(half[:, :, 0], method="bulk"), abs=2) and ess > 25
    clipped = chain.totals["ratio_clipped"].sum() / (k * 2000)
    assert row["log ratios clipped*"] == f"{clipped:.1%}" and "* private, not to be released" in lines[-1]
    assert "R-hat" not in row


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"proposal_sd": 20.0}, ["proposals were accepted", "make proposal_sd smaller", "noise (tau)"]),
        ({"proposal_sd": 0.0005}, ["independent draws", "make proposal_sd larger"]),
        ({"tau": 0.1}, ["independent draws", "larger tau"]),
        ({"clip": 0.5}, ["of log ratios are clipped (private)", "raise clip"]),
    ],
)
def test_a_bad_setting_is_warned_of(own, capfd, settings, words):
    lines = said(capfd, f"{own}:Normal", **settings)
    assert any(all(word in line for word in words) for line in warnings(lines)), lines
    # No count of the rows decides whether the last line appears.
    said_again = lines[-1].startswith("dpmc: another run on these rows spends as much again")
    assert said_again == any("(private)" not in line for line in warnings(lines))


def test_another_run_costs_nothing_on_public_rows_and_without_a_budget(own, capfd):
    Path("own.yaml").write_text(json.dumps({**GOOD, "proposal_sd": 20.0}))
    run = ("--method", "dp-penalty", "--seed", "0", "--iterations", "30", "--hyperparameters", "own.yaml")
    own = ("--model", f"{own}:Normal", "--data", "rows.csv", "--epsilon", "inf", "--output", "own.nc")
    public = ("--model", "circle", "--epsilon", "4", "--seed", "0", "1", "--output", "public{seed}.nc")
    for more in (own, public):
        assert main(("sample", *run, *more)) == 0
        printed = capfd.readouterr().err
        assert "dpmc: warning: " in printed
        assert "another run" not in printed and "seeds spend" not in printed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--thin", "100000"), r"thin: 100000 must be at most \d+, the iterations of a chain; no draw"),
        (("--chains", "600"), "budget too small: epsilon 4 allows [123] iterations?; more noise in each"),
        (("--delta", "0.9"), "delta: 0.9 for n = 2000: 0.9 must be greater than 0 and less than 1/n"),
    ],
)
def test_a_run_that_would_return_nothing_is_refused(own, refused, arguments, words):
    Path("own.yaml").write_text(json.dumps(GOOD))
    run = ("--model", f"{own}:Normal", "--method", "dp-penalty", "--epsilon", "4", "--seed", "0")
    files = ("--data", "rows.csv", "--hyperparameters", "own.yaml", "--output", "c.nc", "--quiet")
    assert re.search(words, refused("sample", *run, *files, *arguments))
    assert not list(Path().glob("*c.nc*"))


def test_a_likelihood_that_is_nan_is_warned_of(own, capfd):
    np.savetxt("rows.csv", np.random.default_rng(3).normal(1000.0, 1.0, 2000))
    lines = said(capfd, f"{own}:Nothing")
    assert any("NaN" in line for line in warnings(lines)), lines


@pytest.mark.parametrize("setting", [{"tau": 0.1}, {"proposal_sd": 20.0}, {}])
def test_warnings_that_are_not_marked_private_do_not_depend_on_clip_counts(own, capfd, setting):
    """Two runs with the same released draws, and none or all rows clipped."""
    said(capfd, f"{own}:Normal", **setting)
    chain, shown = read_chain("c0.nc"), []
    evaluations = 2000 * chain.attrs["iterations"]
    for clipped in (0, evaluations // 2, evaluations):
        other = dataclasses.replace(chain, totals={**chain.totals, "ratio_clipped": np.array([clipped])})
        lines = [
            line for line in summary.summary_lines([([other], [])]) if line.startswith("dpmc: warning: ")
        ]
        shown.append([line for line in lines if "(private)" not in line])
        assert (len(shown[-1]) < len(lines)) == (clipped > 0)
    assert shown[0] == shown[1] == shown[2] and bool(shown[0]) == bool(setting)


def test_chains_that_disagree_are_warned_of(own, capfd):
    lines = said(capfd, f"{own}:Hills", "--chains", "4", clip=0.5, proposal_sd=0.05)
    assert float(table_of(lines)[0]["R-hat"]) > 1.05
    assert any("R-hat is" in line and "come together" in line for line in warnings(lines)), lines


def test_chains_share_a_budget_and_delta_may_be_given(own, capfd):
    said(capfd, f"{own}:Normal")
    alone = read_chain("c0.nc")
    [row] = table_of(said(capfd, f"{own}:Normal", "--chains", "4"))
    four = read_chain("c0.nc")
    assert four.draws.shape[0] == 4 and four.attrs["chains"] == 4
    assert four.attrs["iterations"] == alone.attrs["iterations"] // 4
    assert row["iterations"] == str(four.attrs["iterations"]) and row["chains"] == "4" and row["R-hat"]
    ledger = json.loads(four.attrs["ledger"])
    assert 3.9 < ledger["epsilon_spent"] <= 4.0
    said(capfd, f"{own}:Normal", "--delta", "1e-9")
    strict = read_chain("c0.nc")
    assert strict.attrs["delta"] == 1e-9 == json.loads(strict.attrs["ledger"])["budget"]["delta"]
    assert strict.attrs["iterations"] < alone.attrs["iterations"]


def test_several_seeds_on_own_data_report_the_total_cost(own, capfd):
    for quiet in (False, True):
        lines = said(capfd, f"{own}:Normal", "--seed", "0", "1", "2", quiet=quiet)
        [line] = [line for line in lines if "seeds spend" in line]
        events = [
            event
            for seed in range(3)
            for event in from_json(json.loads(read_chain(f"c{seed}.nc").attrs["ledger"])["performed"])
        ]
        together = accountants.get("tight").epsilon(events, 5e-5)
        assert together > 6.0
        numbers = re.search(r"3 seeds spend epsilon (\S+) each, together (\S+), at delta 5e-05", line)
        assert 3.99 < float(numbers[1]) <= 4.0
        assert together <= float(numbers[2]) < together + 0.001  # rounded up
    assert not any("seeds spend" in line for line in said(capfd, f"{own}:Normal", "--chains", "3"))


def test_the_page_on_ones_own_model_works_as_it_stands(tmp_path, monkeypatch, capfd):
    """Files and commands as the page gives them; the posterior's mean is known without privacy."""
    page = (ROOT / "docs" / "how-to" / "own-model.md").read_text()
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    for body in (body for language, body in blocks if language):
        Path(re.match(r"# ([\w.]+)", body)[1]).write_text(body)
    [commands] = (body for language, body in blocks if not language)
    errors = []
    for command in commands.replace("\\\n", " ").splitlines():
        program, *words = command.split()
        if program == "python":
            exec(Path(words[0]).read_text(), {})
        else:
            assert program == "dpmc" and main(words) == 0
            errors += capfd.readouterr().err.splitlines()
    # The last bits of a sum depend on the processor, so a long chain takes another path there, with an ESS
    # from 20 to 80; the bounds below allow for that.
    assert all("independent draws" in line for line in warnings(errors)), errors
    [shown] = table_of(re.findall(r"^    (.*)$", page, re.MULTILINE))
    *_, printed = table_of(errors)
    assert shown.keys() == printed.keys() and shown["iterations"] == printed["iterations"]
    assert int(printed["ESS"]) > 10

    exec(Path("late.py").read_text(), names := {})
    assert names["late"].posterior.sizes["draw"] == -(-names["tree"].posterior.sizes["draw"] // 2)

    rows = np.loadtxt("rows.csv", delimiter=",")
    design = np.column_stack([np.ones(len(rows)), rows[:, 1]])

    def minus_log_posterior(theta):
        eta = design @ theta
        return -(500 / len(rows)) * (rows[:, 0] * eta - np.exp(eta)).sum() + (theta**2).sum() / 20.0

    # The posterior of 500 rows is normal to a hundredth of its standard deviation.
    fit = minimize(minus_log_posterior, [1.0, 0.5])
    sd = np.sqrt(np.diag(fit.hess_inv))
    chain = read_chain("chain.nc")
    half = chain.draws[0, chain.draws.shape[1] // 2 :]
    assert (np.abs(half.mean(axis=0) - fit.x) < 1.5 * sd).all()
    np.testing.assert_allclose(half.std(axis=0), sd, rtol=0.6)

    model = own_model("waiting:model").model
    np.savetxt(
        "waits.csv", model.simulate(np.random.default_rng(1), np.array([1.0, 0.3]), 500), delimiter=","
    )
    run = "sample --model waiting:model --method dp-penalty --epsilon 4 --hyperparameters mine.yaml"
    assert main(f"{run} --data waits.csv --seed 0 --iterations 20 --output waits.nc".split()) == 0
    assert list(as_tree("waits.nc").posterior.parameter.values) == ["intercept", "age"]


LINE = dpmc.LinearRegression("y", ["x"], true_theta=[0.5, 1.0], tempering=20)
NUMBERS = Numbers()
PEOPLE = LINE.simulate(np.random.default_rng(0), np.array([0.5, 1.0]), 60)
WALK = {"tau": 2.0, "clip": 1.0, "proposal_sd": [0.1, 0.1]}


def release(output, method="dp-penalty", hyperparameters=WALK, model=LINE, ledger="people.ledger", **more):
    """Make a small release in the current folder, with a ledger."""
    if not Path(ledger).exists():
        DataLedger.create(Path(ledger), 1e6, 0.5, ledger)
    given = {"epsilon": 4, "delta": 1e-3, "iterations": 12, "progress": False, **more}
    people = PEOPLE[:, : len(model.columns)]
    return dpmc.release(
        model, people, method, ledger=ledger, hyperparameters=hyperparameters, output=output, **given
    )


@pytest.mark.parametrize(
    ("method", "model", "hyperparameters"),
    [
        ("dp-penalty", LINE, WALK),
        ("dp-sgld", LINE, {"batch_size": 6, "clip": 5.0, "step_size": 1e-3}),
        ("noisy-statistics", NUMBERS, {"clip": 4.0}),
    ],
)
def test_a_release_is_summarised(folder, capsys, method, model, hyperparameters):
    """What it took from the ledger, acceptance if there is a test, no clipping, and the parameters."""
    tree = release("release.nc", method, hyperparameters, model)
    capsys.readouterr()
    assert main(["summary", "release.nc", "--level", "0.8"]) == 0
    said = capsys.readouterr().out.splitlines()
    [row] = table_of(said[:3])
    assert {key: row[key] for key in ("epsilon", "spent", "chains", "iterations")} == {
        **{"epsilon": "4", "spent": "4", "chains": "1", "iterations": "12"}
    }
    rate = f"{tree.sample_stats.attrs['accepted_total'][0] / 12:.1%}"
    assert row.get("accepted") == (rate if method == "dp-penalty" else None)
    assert not any("clipped" in line for line in said)
    assert said[-4:] == parameters.parameter_lines(dpmc.summary("release.nc", level=0.8))


def test_releases_of_one_ledger_are_joined_and_others_are_not(folder, capsys, refused):
    """Of another length too, as after a kill; a lab chain of the same name stands alone."""
    for name, more in {"a": {}, "b": {"iterations": 11}, "other": {"ledger": "others.ledger"}}.items():
        release(f"{name}.nc", **more)
    lab = {"epsilon": 4, "delta": 1e-3, "hyperparameters": WALK, "progress": False, "iterations": 12}
    dpmc.sample(LINE, PEOPLE, **lab).to_netcdf("lab.nc")
    capsys.readouterr()
    assert main(["summary", "a.nc", "b.nc", "lab.nc"]) == 0
    said = capsys.readouterr().out.splitlines()
    rows = [line.split()[:3] for line in said if re.match(r"  4  ", line)]
    assert [row[2] for row in rows] == ["2", "1"]
    assert "summary: ledger of the rows must be the same in all runs" in refused(
        "summary", "a.nc", "other.nc"
    )


def test_a_parameter_that_never_moved_is_warned_of(own, capfd):
    lines = said(capfd, f"{own}:Normal", proposal_sd=1e6)
    assert any("theta[0]: never moved in the second half of the chain" in line for line in lines), lines
    chain = read_chain("c0.nc")
    moving = np.random.default_rng(1).normal(size=(2, *chain.draws.shape[1:]))
    moving[1] = moving[1, :1]
    both = dataclasses.replace(chain, draws=moving, attrs={**chain.attrs, "chains": 2})
    assert any("1 of 2 chains" in line for line in summary.summary_lines([([both], [])]))


def test_a_start_without_prior_is_refused_before_anything_is_spent(own, refused):
    """By the shell; the first run is possible, the second is not."""
    Path("own.yaml").write_text(json.dumps(GOOD))
    run = (
        "--model",
        f"{own}:Beyond",
        "--method",
        "dp-penalty",
        "--epsilon",
        "4",
        "--seed",
        "0",
        "1",
        "2",
        "3",
    )
    files = ("--data", "rows.csv", "--hyperparameters", "own.yaml", "--output", "c{seed}.nc", "--quiet")
    starts = dpmc.sample(f"{own}:Normal", "rows.csv", epsilon=4, hyperparameters=GOOD, seed=2, progress=False)
    assert float(starts.constant_data.theta_0[0, 0]) > 0.1
    line = refused("sample", *run, *files)
    assert re.search(r"start: start point 2, \[0\.\d+\]: log_prior is -inf, must be finite", line)
    assert not list(Path().glob("*c?.nc*"))


def test_names_are_printed_where_the_terminal_lacks_their_letters(folder):
    """Of parameters and of a file that is missing."""
    model = dpmc.LinearRegression("y", ["âge"])
    rows = model.simulate(np.random.default_rng(1), np.zeros(2), 200)
    options = {"epsilon": "inf", "iterations": 40, "hyperparameters": {"proposal_sd": 0.1}, "progress": False}
    dpmc.sample(model, rows, "rwmh", **options).to_netcdf("âge.nc")
    for arguments, status, words in (
        (("summary", "âge.nc"), 0, r"\xe2ge "),
        (("sample", "--help"), 0, "usage: dpmc sample"),
        (("summary", "né.nc"), 2, r"n\xe9.nc: no such file"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "dpmc", *arguments],
            check=False,
            env={**os.environ, "PYTHONIOENCODING": "ascii"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == status and words in done.stdout + done.stderr, done.stderr
