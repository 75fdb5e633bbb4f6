"""A model whose methods return invalid results is refused before any budget is reserved."""

from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest

from dpmc import models
from dpmc.cli.main import main
from dpmc.privacy.ledger import Ledger
from dpmc.sampling import run

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

#: The line, what stands in its place, and words of the message.
WRONG = [
    (LINE, "return -0.5 * (y - x @ theta[1:, None]) ** 2", "log_likelihood: returned shape (1000, 1000)"),
    (LINE, "return np.zeros(3)", "returned shape (3,), must be (1000,)"),
    (LINE, "return y > 0.0", "returned bool numbers, must be real"),
    (LINE, f"x = (x - x.mean()) / (x.std() + 1.0); {LINE}", "changes with the other rows, must depend on"),
    (LINE, "return np.random.default_rng().normal(size=len(y))", "two calls with the same rows differ"),
    (GRADIENT, f"{GRADIENT} - y.mean()", "log_likelihood_gradient: the value of a row"),
    (PRIOR, "return -0.5 * theta**2", "log_prior: returned shape (2,), must be ()"),
    (SLOPE, "return -theta.sum()", "log_prior_gradient: returned shape (), must be (2,)"),
]

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
STATISTICS = "return np.column_stack([y, x * y, x, x**2])"
WRONG_FORMS = [
    ("axis=1), 0.5 * (a**2", "axis=0), 0.5 * (a**2", "ratio_form: returned shape (4, 2), must be (2, 2)"),
    ("np.stack([-a, zero], axis=1)", "-a", "gradient_form: returned shape (2,), must be (2, 2)"),
    (STATISTICS, "return self.t", "statistics failed (AttributeError"),
]


@pytest.fixture
def own(folder: Path) -> Path:
    """The folder with rows and hyperparameters for two methods."""
    rows = np.random.default_rng(1).normal(size=(40, 2))
    np.savetxt("rows.csv", rows, delimiter=",", header="y,x", comments="")
    Path("dp-penalty.yaml").write_text("{tau: 0.5, clip: 1, proposal_sd: 0.05}")
    hmc = "{tau_l: 0.9, tau_g: 0.9, clip_l: 1, clip_g: 1, steps: 1, step_size: 0.01, mass: 1}"
    Path("dp-hmc.yaml").write_text(hmc)
    return folder


@pytest.fixture
def reserved(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A list of the ledgers that reserve budget."""
    ledgers: list[Any] = []
    reserve = Ledger.reserve

    def noting(ledger: Ledger, events: Any) -> None:
        ledgers.append(ledger)
        reserve(ledger, events)

    monkeypatch.setattr(Ledger, "reserve", noting)
    return ledgers


def command(text: str, method: str = "dp-penalty", name: str = "") -> list[str]:
    """Write a model of this text; return `dpmc sample` on it."""
    name = name or f"own_{abs(hash(text)) % 10**12}"
    Path(f"{name}.py").write_text(text)
    cell = f"--model {name}:Own --method {method} --epsilon 20 --iterations 5 --seed 0"
    files = f"--data rows.csv --hyperparameters {method}.yaml --output {name}-{method}.nc --quiet"
    return ["sample", *cell.split(), *files.split()]


@pytest.mark.parametrize(("old", "new", "words"), WRONG)
def test_a_wrong_result_is_refused_before_any_query(
    own: Path, refused: Any, reserved: list[Any], old: str, new: str, words: str
) -> None:
    assert old in MODEL
    method = "dp-hmc" if "gradient" in words else "dp-penalty"
    error = refused(*command(MODEL.replace(old, new), method))
    assert error.startswith("dpmc: error: model: ") and words in error
    assert reserved == [] and not list(own.glob("own*.nc"))


@pytest.mark.parametrize(("old", "new", "words"), WRONG_FORMS)
def test_a_wrong_affine_form_is_refused(own: Path, refused: Any, old: str, new: str, words: str) -> None:
    assert old in AFFINE
    error = refused(*command(MODEL + AFFINE.replace(old, new)))
    assert error.startswith("dpmc: error: model: ") and words in error


@pytest.mark.parametrize("method", ["dp-penalty", "dp-hmc"])
def test_an_affine_form_of_ones_own_gives_the_same_chain(
    method: str, own: Path, reserved: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "stream_names", lambda cell, seed: ("the same for both", seed))
    chains = []
    # Start points do not depend on the name of a model, but on its rows.
    for name, text in (("plain", MODEL), ("affine", MODEL + AFFINE)):
        assert main(command(text, method, name)) == 0
        with netCDF4.Dataset(f"{name}-{method}.nc") as file:
            chains.append(np.array(file["posterior"]["theta"][:]))
    assert reserved and np.ptp(chains[0], axis=1).max() > 0.0
    np.testing.assert_allclose(chains[0], chains[1], rtol=1e-9)


def test_a_wrong_shape_for_many_rows_is_refused(own: Path, refused: Any) -> None:
    """The dummy rows are a thousand; with 2000 rows the same text returns a matrix."""
    np.savetxt("rows.csv", np.zeros((2000, 2)), delimiter=",", header="y,x", comments="")
    late = "value = " + LINE.removeprefix("return ")
    late += "; return value if len(y) < 1500 else value[:, None] * value"
    error = refused(*command(MODEL.replace(LINE, late)))
    assert "returned shape (2000, 2000), must be (2000,)" in error


def test_rows_that_a_model_simulates_are_the_dummies(own: Path, refused: Any) -> None:
    """Rows must be whole numbers here: made-up ones fail, simulated ones do not."""
    choosy = MODEL.replace(LINE, "assert set(np.unique(y)) <= {3.0, 4.0}; " + LINE)
    np.savetxt("rows.csv", np.full((40, 2), 3.0), delimiter=",", header="y,x", comments="")
    assert "give the model simulate(generator, theta, n)" in refused(*command(choosy))
    simulate = (
        "    def simulate(self, generator, theta, n):\n        return generator.integers(3, 5, (n, 2))\n"
    )
    assert main(command(f"{choosy}\n{simulate}")) == 0


def test_models_of_the_catalogue_depend_on_rows_one_by_one() -> None:
    """They are not tried at each run."""
    for name in models.MODELS:
        definition = models.definition(name)
        theta = np.array(definition.true_theta) + 0.1
        rows = definition.model.simulate(np.random.default_rng(0), theta, 6)
        together = definition.model.log_likelihood(theta, rows)
        alone = [definition.model.log_likelihood(theta, rows[j : j + 1])[0] for j in range(6)]
        np.testing.assert_allclose(together, alone, rtol=1e-10)
