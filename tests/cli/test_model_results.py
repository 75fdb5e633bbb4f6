"""A model whose methods return invalid results is refused before any budget is reserved."""

import sys
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest

from dpmc import models
from dpmc.cli import main as cli
from dpmc.common.errors import DpmcError
from dpmc.privacy.ledger import Ledger
from dpmc.sampling import loop, run
from dpmc.studies import Hyperparameters, load_study, make_cell

#: A regression of y on x, as it should be; what follows changes one of its lines.
MODEL = """
import numpy as np


class Own:
    dimension = 2

    def log_likelihood(self, theta, rows):
        y, x = rows[:, 0], rows[:, 1:]
        return -0.5 * (y - theta[0] - x @ theta[1:]) ** 2

    def log_likelihood_gradient(self, theta, rows):
        y, x = rows[:, 0], rows[:, 1:]
        return (y - theta[0] - x @ theta[1:])[:, None] * np.column_stack([np.ones(len(y)), x])

    def log_prior(self, theta):
        return -0.5 * (theta**2).sum()

    def log_prior_gradient(self, theta):
        return -theta
"""
LINE = "return -0.5 * (y - theta[0] - x @ theta[1:]) ** 2"
GRADIENT = "return (y - theta[0] - x @ theta[1:])[:, None] * np.column_stack([np.ones(len(y)), x])"
PRIOR = "return -0.5 * (theta**2).sum()"
SLOPE = "return -theta"

#: What is wrong: the line, what stands in its place, and words of the message.
WRONG = {
    "n by n": (
        LINE,
        "return -0.5 * (y - x @ theta[1:, None]) ** 2",
        "log_likelihood: returned shape (1000, 1000)",
    ),
    "no sum over columns": (LINE, "return -0.5 * (y[:, None] - x - theta) ** 2", "must be (1000,): sum over"),
    "a sum": (
        LINE,
        LINE.replace("return", "return np.sum(") + ")",
        "shape (), must be (1000,): one number per row",
    ),
    "a scalar": (LINE, "return 0.0", "returned shape (), must be (1000,)"),
    "the number of rows forgotten": (LINE, "return np.zeros(3)", "returned shape (3,), must be (1000,)"),
    "complex numbers": (LINE, LINE + " + 0j", "returned complex128 numbers, must be real"),
    "truth values": (LINE, "return y > 0.0", "returned bool numbers, must be real"),
    "None": (LINE, "pass", "returned NoneType, must be real"),
    "text": (LINE, "return ['a'] * len(y)", "must be real"),
    "ragged lists": (LINE, "return [[1.0], [1.0, 2.0]]", "must be real"),
    "standardised by all rows": (
        LINE,
        "x = (x - x.mean()) / (x.std() + 1.0); " + LINE,
        "changes with the other rows, must depend on that row alone",
    ),
    "cumulative": (
        LINE,
        LINE.replace("return", "return np.cumsum(") + ")",
        "changes with the other rows",
    ),
    "random": (
        LINE,
        "return np.random.default_rng().normal(size=len(y))",
        "two calls with the same rows differ",
    ),
    "a gradient of one column": (GRADIENT, "return y", "log_likelihood_gradient: returned shape (1000,)"),
    "a summed gradient": (
        GRADIENT,
        GRADIENT.replace("return ", "return (") + ").sum(axis=0)",
        "log_likelihood_gradient: returned shape (2,)",
    ),
    "a gradient by all rows": (
        GRADIENT,
        GRADIENT + " - y.mean()",
        "log_likelihood_gradient: the value of a row",
    ),
    "a prior a component": (PRIOR, "return -0.5 * theta**2", "log_prior: returned shape (2,), must be ()"),
    "a prior that is None": (PRIOR, "pass", "log_prior: returned NoneType"),
    "a prior's gradient that is one number": (
        SLOPE,
        "return -theta.sum()",
        "log_prior_gradient: returned shape (), must be (2,)",
    ),
    "a prior's gradient that returns nothing": (
        SLOPE,
        "theta *= -1",
        "log_prior_gradient: returned NoneType",
    ),
    "a prior's gradient that writes, as it once did": (
        "log_prior_gradient(self, theta):\n        return -theta",
        "log_prior_gradient(self, theta, out):\n        out[:] = -theta",
        "log_prior_gradient: must take theta alone, and return the gradient (d,)",
    ),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: Any) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(1).normal(size=(40, 2))
    np.savetxt("rows.csv", rows, delimiter=",", header="y,x", comments="")
    Path("walk.yaml").write_text("tau: 0.5\nclip: 1\nproposal_sd: 0.05\n")
    Path("hmc.yaml").write_text(
        "tau_l: 0.9\ntau_g: 0.9\nclip_l: 1\nclip_g: 1\nsteps: 1\nstep_size: 0.01\nmass: 1\n"
    )
    return tmp_path


def sample(text: str, method: str = "dp-penalty", settings: str = "walk.yaml", name: str = "") -> int:
    """Run `dpmc sample` on a model of this text; return its exit code. Start points depend on the name."""
    name = name or f"own_{abs(hash(text)) % 10**12}"
    sys.modules.pop(name, None)
    Path(f"{name}.py").write_text(text)
    study = Path(__file__).parents[2] / "config" / "studies" / "thesis.yaml"
    arguments = (
        f"sample --study {study} --model {name}:Own --method {method} --epsilon 20 --iterations 5 --seed 0"
    )
    files = f"--data rows.csv --hyperparameters {settings} --output chain.nc --quiet --force"
    return cli.main([*arguments.split(), *files.split()])


def spied(monkeypatch: Any) -> list[Any]:
    """Return a list of the ledgers that reserve budget from now on."""
    reserved: list[Any] = []
    reserve = Ledger.reserve

    def noting(ledger: Ledger, events: Any) -> None:
        reserved.append(ledger)
        reserve(ledger, events)

    monkeypatch.setattr(Ledger, "reserve", noting)
    return reserved


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_result_is_refused_before_any_release(
    name: str, folder: Path, capsys: Any, monkeypatch: Any
) -> None:
    old, new, words = WRONG[name]
    assert old in MODEL
    reserved = spied(monkeypatch)
    method = ("dp-hmc", "hmc.yaml") if "gradient" in words else ("dp-penalty", "walk.yaml")
    assert sample(MODEL.replace(old, new), *method) == 2
    message = capsys.readouterr().err.strip()
    assert message.startswith("dpmc: error: model: ") and "\n" not in message
    assert words in message
    assert reserved == [] and not Path("chain.nc").exists()


@pytest.mark.parametrize(("method", "settings"), [("dp-penalty", "walk.yaml"), ("dp-hmc", "hmc.yaml")])
def test_a_correct_model_runs(method: str, settings: str, folder: Path, monkeypatch: Any) -> None:
    reserved = spied(monkeypatch)
    assert sample(MODEL, method, settings) == 0
    assert reserved


#: The same model by its affine form: statistics are all products of (y, 1, x).
AFFINE = """
    def statistics(self, rows):
        y, x = rows.T
        return np.column_stack([y, x * y, x, x**2])

    def ratio_form(self, theta, proposal):
        (a, b), (c, d) = theta.T, proposal.T
        return np.stack([c - a, d - b, a * b - c * d, 0.5 * (b**2 - d**2)], axis=1), 0.5 * (a**2 - c**2)

    def gradient_form(self, theta):
        a, b = theta.T
        zero, one = 0.0 * a, 0.0 * a + 1.0
        first, second = [one, zero, -b, zero], [zero, one, -a, -b]
        return np.moveaxis(np.array([first, second]), 2, 0), np.stack([-a, zero], axis=1)
"""


@pytest.mark.parametrize(("method", "settings"), [("dp-penalty", "walk.yaml"), ("dp-hmc", "hmc.yaml")])
def test_an_affine_form_of_ones_own_gives_the_same_chain(
    method: str, settings: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "stream_names", lambda cell, seed: ("the same for both", seed))
    chains = []
    for text in (MODEL, MODEL + AFFINE):
        assert sample(text, method, settings, "own_of_one_name") == 0
        with netCDF4.Dataset("chain.nc") as file:
            chains.append(np.array(file["posterior"]["theta"][:]))
    assert np.ptp(chains[0], axis=1).max() > 0.0
    np.testing.assert_allclose(chains[0], chains[1], rtol=1e-9)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("axis=1), 0.5 * (a**2", "axis=0), 0.5 * (a**2", "ratio_form: returned shape (4, 2), must be (2, 2)"),
        ("0.5 * (a**2 - c**2)", "0.0", "ratio_form: returned shape (), must be (2,)"),
        ("np.stack([-a, zero], axis=1)", "-a", "gradient_form: returned shape (2,), must be (2, 2)"),
        ("return np.column_stack([y, x * y, x, x**2])", "return x", "statistics: returned shape"),
        ("return np.column_stack([y, x * y, x, x**2])", "return self.t", "statistics failed (AttributeError"),
    ],
)
def test_a_wrong_affine_form_is_refused(old: str, new: str, words: str, folder: Path, capsys: Any) -> None:
    assert old in AFFINE
    assert sample(MODEL + AFFINE.replace(old, new)) == 2
    message = capsys.readouterr().err.strip()
    assert message.startswith("dpmc: error: model: ") and "\n" not in message
    assert words in message


def test_a_wrong_shape_for_many_rows_is_refused(folder: Path, capsys: Any) -> None:
    """The dummy rows are a thousand; with 2000 rows the same text returns a matrix."""
    np.savetxt("rows.csv", np.zeros((2000, 2)), delimiter=",", header="y,x", comments="")
    late = "value = " + LINE.removeprefix("return ")
    late += "; return value if len(y) < 1500 else value[:, None] * value"
    assert sample(MODEL.replace(LINE, late)) == 2
    assert "returned shape (2000, 2000), must be (2000,)" in capsys.readouterr().err


def test_rows_that_a_model_simulates_are_the_dummies(folder: Path, capsys: Any) -> None:
    """Rows must be whole numbers here: made-up ones fail, simulated ones do not."""
    choosy = MODEL.replace(LINE, "assert set(np.unique(y)) <= {3.0, 4.0}; " + LINE)
    np.savetxt("rows.csv", np.full((40, 2), 3.0), delimiter=",", header="y,x", comments="")
    assert sample(choosy) == 2
    assert "give the model simulate(generator, theta, n)" in capsys.readouterr().err
    simulate = (
        "\n    def simulate(self, generator, theta, n):\n        return generator.integers(3, 5, (n, 2))\n"
    )
    assert sample(choosy + simulate) == 0


def test_models_of_the_catalogue_depend_on_rows_one_by_one() -> None:
    """They are not tried at each run."""
    for name in models.MODELS:
        definition = models.definition(name)
        theta = np.array(definition.true_theta) + 0.1
        rows = definition.model.simulate(np.random.default_rng(0), theta, 6)
        together = definition.model.log_likelihood(theta, rows)
        alone = [definition.model.log_likelihood(theta, rows[j : j + 1])[0] for j in range(6)]
        np.testing.assert_allclose(together, alone, rtol=1e-10)


def test_sampling_in_python_refuses_wrong_results_too() -> None:
    """Not only the command line: `sampling.sample` itself refuses."""
    from dpmc.data.problem import Problem

    class Wrong:
        dimension = 1

        def log_prior(self, theta: Any) -> Any:
            return np.zeros(theta.shape[:-1])

        def log_likelihood(self, theta: Any, rows: Any) -> Any:
            return rows @ theta[:, None] * np.ones(len(rows))

    empty = np.empty((0, 1))
    rows = np.ones((9, 1))
    problem = Problem(
        "own:Wrong",
        "own:Wrong",
        "rows",
        Wrong(),
        rows,
        1.0,
        np.zeros((3, 1)),
        np.zeros(1),
        empty,
        empty,
        empty,
        empty,
    )
    root = Path(__file__).parents[2]
    study = load_study(root / "config" / "studies" / "thesis.yaml")
    given = Hyperparameters({"tau": 0.5, "clip": 1.0, "proposal_sd": 0.1}, "here")
    cell = make_cell(study, problem, "dp-penalty", "2", given)
    with pytest.raises(DpmcError, match=r"model: Wrong: log_likelihood: returned shape \(1000, 1000\)"):
        loop.sample(cell, [0])
