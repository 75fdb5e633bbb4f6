"""Runs that differ have independent noise, equal runs have equal bits; an edited model is not resumed."""

import dataclasses
import functools
import json
import runpy
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmc
from dpmc.models.fingerprint import digest, fingerprint
from dpmc.models.own import given_model
from dpmc.privacy.noise import LabNoise
from dpmc.sampling import loop, run
from dpmc.sampling.jobs import Job
from kernels.cells import cell, problem

ROWS = np.random.default_rng(1).normal(1.0, 1.0, (400, 1))
SGLD = {"batch_size": 400, "clip": 10.0, "step_size": 0.1}
PENALTY = {"tau": 1.0, "clip": 3.0, "proposal_sd": 0.1}


def gaussian(scale: float = 1.0, **optional: Any) -> dpmc.Model:
    return dpmc.Model(
        1,
        lambda theta, rows: -0.5 * scale * (rows[:, 0] - theta[0]) ** 2,
        log_likelihood_gradient=lambda theta, rows: scale * (rows - theta),
        **optional,
    )


def sample(model: Any = None, rows: Any = ROWS, algorithm: str = "dp-sgld", **more: Any) -> Any:
    usual = {"epsilon": 4, "hyperparameters": SGLD, "iterations": 4, "progress": False}
    return dpmc.sample(gaussian() if model is None else model, rows, algorithm, **{**usual, **more})


def keys(monkeypatch: pytest.MonkeyPatch, **call: Any) -> set[tuple[Any, ...]]:
    """What keys the random streams of a call."""
    seen, stream = set(), run.stream
    with monkeypatch.context() as patch:
        patch.setattr(run, "stream", lambda *names: seen.add(names) or stream(*names))  # type: ignore[func-returns-value]
        sample(**call)
    return seen


def changed_by_one_row() -> np.ndarray:
    rows = ROWS.copy()
    rows[7, 0] += 1e-9
    return rows


#: Calls that differ from `sample()` in one thing.
OTHERS: dict[str, dict[str, Any]] = {
    "one row": {"rows": changed_by_one_row()},
    "order of rows": {"rows": ROWS[::-1]},
    "simulated rows": {"rows": np.random.default_rng(2).normal(1.0, 1.0, (400, 1))},
    "step size": {"hyperparameters": {**SGLD, "step_size": 0.1 + 1e-12}},
    "clip": {"hyperparameters": {**SGLD, "clip": 9.0}},
    "algorithm": {"algorithm": "dp-penalty", "hyperparameters": PENALTY},
    "closure": {"model": gaussian(1.0 + 1e-12)},
    "tempering": {"model": gaussian(tempering=399.0)},
    "prior": {"model": gaussian(log_prior=lambda theta: 0.0, log_prior_gradient=lambda theta: 0.0 * theta)},
    "start": {"start": [0.3]},
    "epsilon": {"epsilon": 4.001},
    "delta": {"delta": 1e-4},
    "accountant": {"accountant": "rdp"},
    "chains": {"chains": 2},
    "iterations": {"iterations": 5},
    "seed": {"seed": 1},
}


def test_calls_that_differ_in_anything_have_other_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"the call": keys(monkeypatch), **{name: keys(monkeypatch, **o) for name, o in OTHERS.items()}}
    for name, found in known.items():
        shared = [other for other, theirs in known.items() if other != name and found & theirs]
        assert not shared, f"{name} has streams of {shared}"


def test_noise_of_two_calls_is_not_correlated(monkeypatch: pytest.MonkeyPatch) -> None:
    normals: list[np.ndarray] = []

    def keep(ratios: np.ndarray, gradients: np.ndarray, *shared: Any) -> LabNoise:
        normals.append(gradients.ravel())
        return LabNoise(ratios, gradients)

    monkeypatch.setattr(loop, "LabNoise", keep)
    for step in (0.01, 0.011):
        sample(hyperparameters={**SGLD, "step_size": step}, iterations=4000, epsilon=50)
    together = np.concatenate(normals).reshape(2, 4000)
    assert abs(np.corrcoef(together)[0, 1]) < 5.0 / np.sqrt(4000)


def test_a_rehearsal_on_simulated_rows_has_other_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    model = dpmc.LinearRegression("y", ["x"], true_theta=[0.5, 1.0])
    rows = model.simulate(np.random.default_rng(0), np.array([0.5, 1.0]), 300)
    model.n = 300
    call = {"model": model, "algorithm": "dp-penalty", "hyperparameters": PENALTY}
    private, rehearsal = keys(monkeypatch, rows=rows, **call), keys(monkeypatch, rows="fresh-0", **call)
    other = dpmc.LinearRegression("x", ["y"], true_theta=[0.5, 1.0])
    column = keys(monkeypatch, **{**call, "model": other}, rows=rows)
    assert not private & rehearsal and not private & column


def test_equal_calls_have_equal_bits_whatever_is_kept_or_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    first, again = sample(gaussian()), sample(gaussian(), progress=True)
    assert (first.posterior.theta.values == again.posterior.theta.values).all()
    assert keys(monkeypatch) == keys(monkeypatch, thin=2) == keys(monkeypatch, rows=ROWS[:, 0])
    thinned = sample(thin=2).posterior.theta.values
    assert (thinned == first.posterior.theta.values[:, 1::2]).all()


CODE = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np
import dpmc
from normal import Normal

rows = np.random.default_rng(1).normal(1.0, 1.0, (400, 1))
setting = {{"tau": 1.0, "clip": 3.0, "proposal_sd": 0.1}}
tree = dpmc.sample(Normal(), rows, epsilon=1, hyperparameters=setting, iterations=30, progress=False)
print(tree.posterior.theta.values.tobytes().hex())
"""
NORMAL = '''
import logging
import math

import scipy.stats

log, FACTORS = logging.getLogger("normal"), {"b", "a", "c"}


def square(x):
    return x * x


class Normal:
    """A model."""

    dimension = 1
    prior = scipy.stats.norm(0, 3)

    def log_likelihood(self, theta, rows):
        log.debug("called")
        return -0.5 * square(rows[:, 0] - theta[0])

    def log_prior(self, theta):
        return self.prior.logpdf(theta[0]) if "a" in FACTORS else 0.0
'''


def in_a_process(folder: Path, text: str, hash_seed: int = 0) -> str:
    (folder / "normal.py").write_text(text)
    code = CODE.format(folder=str(folder))
    environment = {"PYTHONHASHSEED": str(hash_seed), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_bits_are_equal_in_another_process_and_other_for_an_edited_model(tmp_path: Path) -> None:
    first = in_a_process(tmp_path, NORMAL)
    commented = f"# A comment.\n\n{NORMAL}"
    assert in_a_process(tmp_path, commented, hash_seed=7) == first
    assert in_a_process(tmp_path, NORMAL.replace("x * x", "x * x * (1 + 1e-13)")) != first


@pytest.mark.parametrize("what", ["rows", "model", "hyperparameters"])
def test_an_edited_job_resumes_nothing(what: str, tmp_path: Path) -> None:
    """Its unfinished and its waiting runs have other names."""
    on, same = (problem() for _ in range(2))
    on.rows = on.rows.copy()
    if what == "rows":
        on.rows[0, 0] += 1e-9
    if what == "model":
        on.model = dataclasses.replace(on.model, b=on.model.b + 1e-7)
    clip = 2.0 + 1e-12 if what == "hyperparameters" else 2.0
    cells = cell("dp-penalty", on, clip=clip), cell("dp-penalty", same), cell("dp-penalty")
    jobs = [Job([of], [0], {("inf", 0): tmp_path / "chain.nc"}) for of in cells]
    edited, first, again = ({job.checkpoint, job.waiting(job.cells[0], 0)} for job in jobs)
    assert first == again and not first & edited


KILLED = """
import os, signal, sys
from dpmc.cli import main as cli
from dpmc.sampling import loop

advance, blocks, loop.BLOCK_SECONDS = loop.Loop.advance, int(sys.argv.pop(1)), 0.0

def advance_or_die(*arguments):
    global blocks
    if blocks == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    blocks -= 1
    advance(*arguments)

loop.Loop.advance = advance_or_die
sys.exit(cli.main(sys.argv[1:]))
"""


def test_a_killed_run_of_an_edited_model_starts_anew(tmp_path: Path) -> None:
    (tmp_path / "setting.json").write_text(json.dumps(PENALTY))
    np.savetxt(tmp_path / "rows.csv", ROWS)
    files = ["--data", "rows.csv", "--hyperparameters", "setting.json", "--checkpoint-seconds", "0"]
    options = ["--model", "normal:Normal", "--method", "dp-penalty", "--epsilon", "4", "--iterations", "100"]
    command = ["sample", *options, *files, "--seed", "0", "--quiet", "--output"]

    def code(output: str, dies_after: int) -> int:
        arguments = [sys.executable, "-c", KILLED, str(dies_after), *command, output]
        return subprocess.run(arguments, cwd=tmp_path, check=False).returncode

    (tmp_path / "normal.py").write_text(NORMAL)
    assert code("chain.nc", 5) == -9 and list(tmp_path.glob(".checkpoint-*"))
    (tmp_path / "normal.py").write_text(NORMAL.replace("x * x", "1.1 * x * x"))
    assert code("chain.nc", -1) == code("whole.nc", -1) == 0
    assert (tmp_path / "chain.nc").read_bytes() == (tmp_path / "whole.nc").read_bytes()


def model_of(folder: Path, text: str) -> Any:
    """The model `it` of a module's text."""
    (folder / "module.py").write_text(text)
    return runpy.run_path(str(folder / "module.py"), {"np": np}, "module")["it"]


def fingerprint_of(model: Any) -> str:
    return fingerprint(given_model(model)[1].model, ROWS)


PLAIN = """
class It:
    dimension = 1
    {more}
    def log_likelihood(self, theta, rows):
        return {value}
it = It()
"""
VALUE = "-0.5 * (rows[:, 0] - theta[0]) ** 2"


@pytest.mark.parametrize(
    "other",
    [
        {"value": VALUE.replace("0.5", "0.50000000000001")},  # not to be seen in six digits
        {"value": f"{VALUE} if len(rows) < 10**6 else 0.0 * rows[:, 0]"},  # nor on these rows
        {"more": "scale = 2"},
        {"more": "tempering = 5.0"},
        {"more": "def log_prior(self, theta): return -theta[0] ** 2"},
    ],
)
def test_models_that_differ_have_other_fingerprints(other: dict[str, str], tmp_path: Path) -> None:
    usual = {"more": "", "value": VALUE}
    plain = fingerprint_of(model_of(tmp_path, PLAIN.format(**usual)))
    assert plain == fingerprint_of(model_of(tmp_path, PLAIN.format(**usual)))
    assert plain != fingerprint_of(model_of(tmp_path, PLAIN.format(**{**usual, **other})))


def test_values_tell_models_apart_whose_code_is_not_read() -> None:
    """Of an object without text and public attributes the values count."""

    def scaled(k: float, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return np.asarray(-k * (rows[:, 0] - theta[0]) ** 2)

    one, other = (dpmc.Model(1, functools.partial(scaled, k)) for k in (1.0, 2.0))
    assert fingerprint_of(one) != fingerprint_of(other)


def test_what_a_model_caches_or_contains() -> None:
    class Cached:
        dimension, tempering = 1, None

        @functools.cached_property
        def sd(self) -> float:
            return 1.0

        def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
            return np.asarray(-(((rows[:, 0] - theta[0]) / self.sd) ** 2))

    model = Cached()
    before = fingerprint_of(model)
    assert model.sd == 1.0 and fingerprint_of(model) == before
    model.others = [model.__dict__]  # type: ignore[attr-defined]
    with pytest.raises(dpmc.DpmcError, match="nested too deeply"):
        fingerprint_of(model)


def test_a_digest_tells_types_order_and_grouping_apart() -> None:
    values = [1, 1.0, True, "1", b"1", None, [1], (1,), [[1], []], [[], [1]], {1: 2}, {2: 1}, {1, 2}]
    assert len({digest(value) for value in values}) == len(values)
    assert digest({"a": 1, "b": 2}) != digest({"b": 2, "a": 1}) and digest({3, "x"}) == digest({"x", 3})
    assert digest(np.zeros(2)) != digest(np.zeros((2, 1))) != digest(np.zeros((2, 1), np.float32))
    state = np.random.default_rng(0)
    before = digest(state)
    state.random()
    assert digest(state) == before


def test_a_module_that_is_changed_while_it_runs_does_not_give_a_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = types.ModuleType("limits")
    monkeypatch.setattr(limits, "LIMIT", 2.5, raising=False)
    model = dpmc.Model(
        1,
        lambda theta, rows: -0.5 * (np.minimum(rows[:, 0], limits.LIMIT) - theta[0]) ** 2,
        log_likelihood_gradient=lambda theta, rows: np.minimum(rows, limits.LIMIT) - theta,
    )
    before = keys(monkeypatch, model=model)
    monkeypatch.setattr(limits, "LIMIT", 100.0)
    assert not before & keys(monkeypatch, model=model)
