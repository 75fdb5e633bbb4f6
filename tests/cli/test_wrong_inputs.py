"""Values that cannot be right stop every command with one line that names file, key, value and rule."""

import json
import shutil
from pathlib import Path

import netCDF4
import pytest

from dpmc.cli.main import main

ROOT = Path(__file__).parents[2]
INT23 = "9" * 23
CIRCLE = ("--model", "circle", "--method", "dp-hmc")
RUN = ("sample", *CIRCLE, "--seed", "0", "--output", "c.nc", "--quiet")
SAMPLE = (*RUN, "--data", "circle.nc", "--epsilon", "1")
FREE = (*RUN, "--data", "circle.nc", "--epsilon", "inf", "--iterations", "5")
BUDGET = ("budget", *CIRCLE)
WALK = ("budget", "--model", "circle", "--method", "dp-penalty", "--epsilon", "1")
TUNE = ("tune", *CIRCLE, "--output", "t.yaml")
EVALUATE = ("evaluate", "--data", "circle.nc", "--output", "o.csv")


def names(error: str, *words: str) -> None:
    for word in words:
        assert word in error, error


# -- options ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["٣", "1_0", "1e400", "9" * 400, ""])
@pytest.mark.parametrize("option", ["epsilon", "seed", "checkpoint-seconds"])
def test_numbers_are_plain(folder, refused, option, value):
    assert option in refused(*FREE, f"--{option}={value}")
    assert not (folder / "c.nc").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*SAMPLE, "--epsilon=0"), ["epsilon: '0' must be greater than 0"]),
        ((*SAMPLE, "--method", "dp-hcm"), ["'dp-hcm'", "dp-hmc"]),
        ((*SAMPLE, "--study", "theses"), ["--study: 'theses' is unknown; known: "]),
        ((*SAMPLE, "--model", "narrow-banana"), ["holds data for circle"]),
        ((*RUN, "--epsilon", "1", "--seed", "999999999"), ["seed: 1000000000 start points", "1000000"]),
        ((*SAMPLE, "--iterations", "0"), ["--iterations: 0 must be a whole number, at least 1"]),
        ((*SAMPLE, "--iterations", "100000"), ["iterations: 100000 exceeds the budget"]),
        ((*RUN, "--epsilon", "inf"), ["iterations: needed"]),
        ((*FREE, "--thin", "6"), ["thin: 6 must be at most 5"]),
        ((*SAMPLE, "--chains", "1000000000"), ["--chains: 1000000000", "at most 1000"]),
        (BUDGET, ["--epsilon, --iterations: give one of them"]),
        ((*BUDGET, "--epsilon", "1", "--delta=-0.1"), ["delta: -0.1", "must be greater than 0"]),
        ((*TUNE, "--trials", "3"), ["--trials: only with --search"]),
        ((*TUNE, "--method", "dp-hmc", "dp-penalty"), ["--output: 1 files for 2 methods, must be equal"]),
        ((*TUNE, "--search", "--method", "dp-hmc", "dp-penalty"), ["dp-hmc dp-penalty: must be one"]),
        ((*EVALUATE, "--baselines"), ["--model: needed with --baselines, if there are no chains"]),
        (EVALUATE, ["--chains: at least one chain file is needed"]),
        (("plot", "--figure", "mmd-easy", "--output", "f.svg"), ["--metrics: needed to draw mmd-easy"]),
    ],
)  # fmt: skip
def test_options(folder, refused, arguments, words):
    before = sorted(folder.rglob("*"))
    names(refused(*arguments), *words)
    assert sorted(folder.rglob("*")) == before


# -- YAML -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", ["1_0", "0x10", "1:30", "1.0e+400"])
def test_numbers_of_yaml_are_plain(folder, refused, number):
    for path in ("own.yaml", "config/hyperparameters/thesis.yaml", "config/studies/own.yaml"):
        Path(path).write_text(f"a: 1\nepsilon: {number}")
    assert "studies/own.yaml" in refused(*WALK, "--study", "own")
    assert "hyperparameters/thesis.yaml" in refused(*WALK, "--study", "smoke")  # whose they are
    paper = ("--study", "dp-hmc", "--model", "paper-gauss", "--hyperparameters", "own.yaml")
    names(refused(*WALK, *paper), "own.yaml", f"line 2: '{number}'")


# -- models of one's own ----------------------------------------------------------------------------------

MODEL = """import numpy as np
class Model:
    dimension = 1
    n = 30
    true_theta = [0.0]
    def log_likelihood(self, theta, rows):
        return -0.5 * ((rows - theta) ** 2).sum(axis=1)
    def simulate(self, generator, theta, n):
        return generator.normal(theta, 1.0, (n, 1))
"""
POSTERIOR = """    def posterior(self, rows, temperature): return Posterior()
class Posterior:
    def draws(self, generator, n): return generator.normal(0.0, 1.0, (n, 1))
    def mean(self): return [0.0]
    def covariance(self): return [[1.0]]
"""
LAW = POSTERIOR.strip() + "\n"
OWN = (
    *("sample", "--model", "mine:Model", "--method", "dp-penalty", "--hyperparameters", "mine.yaml"),
    *("--epsilon", "inf", "--iterations", "5", "--seed", "0", "--output", "c.nc", "--quiet"),
)


@pytest.fixture
def own(folder):
    """The folder of a model of one's own, mine.py, with its hyperparameters and rows."""
    (folder / "mine.yaml").write_text("{tau: 1, clip: 1, proposal_sd: 0.1}")
    (folder / "rows.csv").write_text("0.5\n1.5\n-0.3\n0.2\n1.0\n")
    (folder / "mine.py").write_text(MODEL)
    return folder


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("dimension = '2'", ("dimension", "'2'", "whole number")),
        ("dimension = property(lambda self: 1 / 0)", ("ZeroDivisionError", "mine.py line 10")),
        (f"n = {INT23}", ("n: 999", "at most 1000000000")),
        ("tempering = 0", ("tempering: 0", "greater than 0")),
        ("true_theta = [0.0, 1.0]", ("true_theta", "(2,)", "(1,)")),
        ("parameters = ('a', 'b')", ("parameters: ('a', 'b')", "1 different names")),
        ("log_likelihood = None", ("log_likelihood: None", "method")),
        ("def __init__(self): raise RuntimeError('no')", ("cannot be loaded", "RuntimeError: no", "line 10")),
        ("def log_prior(self, theta): return float('nan')", ("log_prior", "nan", "start point 0")),
        ("def log_likelihood(self, *_): return self.log_likelihood(*_)", ("RecursionError",)),
        ("def posterior(self, rows, temperature): return [1, 2]", ("posterior: [1, 2]", "draws")),
        (f"{LAW}    def draws(self, generator, n): return np.zeros((n, 2))", ("draws", "1000, 2)")),
        (f"{LAW}    def covariance(self): return 1.0", ("covariance", "()", "(1, 1)")),
    ],
)  # fmt: skip
def test_a_model_of_ones_own(own, refused, line, words):
    Path("mine.py").write_text(f"{MODEL}    {line}\n")
    names(refused(*OWN), "mine:Model", *words)
    assert not (own / "c.nc").exists()


# -- chain files (of data and metrics: tests/fuzz) ----------------------------------------------------------


def attribute(name, value):
    return lambda file: file.setncattr(name, value)


def without(name):
    return lambda file: file.delncattr(name)


def ledger(**values):
    def change(file):
        file.ledger = json.dumps({**json.loads(file.ledger), **values})

    return change


@pytest.fixture(scope="module")
def chain(circle):
    """A chain of the circle with a budget."""
    output = circle.with_name("chain.nc")
    study = ("--study", str(ROOT / "config/studies/thesis.yaml"), "--data", str(circle), "--quiet", "--force")
    assert main(("sample", *CIRCLE, *study, "--epsilon", "4", "--seed", "0", "--output", str(output))) == 0
    return output


READ = ("study", "model", "method", "epsilon", "dataset", "status", "seed", "iterations", "n", "ledger")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        *((without(name), (name,)) for name in READ),
        (attribute("schema", 3), ("schema: 3", "must be 1 or 2")),
        (attribute("epsilon", "four"), ("epsilon", "'four'")),
        (attribute("iterations", 7), ("theta", "7 iterations")),
        (attribute("ledger", "x"), ("ledger", "damaged")),
        (ledger(performed=[{}]), ("ledger", "damaged")),
        (ledger(budget={"epsilon": 4}), ("ledger", "delta")),
        (lambda file: file.renameGroup("posterior", "prior"), ("posterior",)),
    ],
)
def test_a_damaged_chain_file(folder, chain, refused, change, words):
    shutil.copy(chain, "c.nc")
    with netCDF4.Dataset("c.nc", "a") as file:
        change(file)
    names(refused(*EVALUATE, "--chains", "c.nc"), "c.nc", *words)
    assert not Path("o.csv").exists()


@pytest.mark.parametrize("command", ["evaluate", "trace"])
def test_files_that_are_no_chains_or_cut_off(folder, chain, refused, command):
    Path("short.nc").write_bytes(chain.read_bytes()[:5000])
    shutil.copy("config/studies/smoke.yaml", "text.csv")
    for name in ("circle.nc", "text.csv", "config", "nothing.nc", "short.nc"):
        assert name in refused(command, *EVALUATE[1:], "--chains", name)
    Path("circle.nc").write_bytes(Path("circle.nc").read_bytes()[:5000])
    assert "cut off" in refused(*SAMPLE)
