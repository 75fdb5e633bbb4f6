"""A model whose methods return what they must not is refused before any budget is reserved."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmc import cli, models, sampling
from dpmc.errors import DpmcError
from dpmc.studies import load_study

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

    def log_prior_gradient(self, theta, out):
        out[:] = -theta
"""
LINE = "return -0.5 * (y - theta[0] - x @ theta[1:]) ** 2"
GRADIENT = "return (y - theta[0] - x @ theta[1:])[:, None] * np.column_stack([np.ones(len(y)), x])"
PRIOR = "return -0.5 * (theta**2).sum()"

#: What is wrong: the line, what stands in its place, and words of the message.
WRONG = {
    "n by n": (LINE, "return -0.5 * (y - x @ theta[1:, None]) ** 2", "log_likelihood: returned shape (5, 5)"),
    "no sum over columns": (LINE, "return -0.5 * (y[:, None] - x - theta) ** 2", "must be (5,): sum over"),
    "a sum": (
        LINE,
        LINE.replace("return", "return np.sum(") + ")",
        "shape (), must be (5,): a number for each",
    ),
    "a scalar": (LINE, "return 0.0", "returned shape (), must be (5,)"),
    "the number of rows forgotten": (LINE, "return np.zeros(3)", "returned shape (3,), must be (5,)"),
    "complex numbers": (LINE, LINE + " + 0j", "returned complex128 numbers, must be real"),
    "truth values": (LINE, "return y > 0.0", "returned bool numbers, must be real"),
    "None": (LINE, "pass", "returned NoneType, must be real"),
    "text": (LINE, "return ['a'] * len(y)", "must be real"),
    "ragged lists": (LINE, "return [[1.0], [1.0, 2.0]]", "must be real"),
    "standardised by all rows": (
        LINE,
        "x = (x - x.mean()) / (x.std() + 1.0); " + LINE,
        "changes with the rows beside it, must depend on that row alone",
    ),
    "cumulative": (
        LINE,
        LINE.replace("return", "return np.cumsum(") + ")",
        "changes with the rows beside it",
    ),
    "random": (
        LINE,
        "return np.random.default_rng().normal(size=len(y))",
        "two calls with the same rows differ",
    ),
    "a gradient of one column": (GRADIENT, "return y", "log_likelihood_gradient: returned shape (5,)"),
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


def sample(text: str, method: str = "dp-penalty", settings: str = "walk.yaml") -> int:
    """Run `dpmc sample` on a model of this text; return its exit code."""
    name = f"own_{abs(hash(text)) % 10**12}"
    Path(f"{name}.py").write_text(text)
    study = Path(__file__).parents[2] / "config" / "studies" / "thesis.yaml"
    arguments = (
        f"sample --study {study} --model {name}:Own --method {method} --epsilon 20 --iterations 5 --seed 0"
    )
    files = f"--data rows.csv --hyperparameters {settings} --output chain.nc --quiet"
    return cli.main([*arguments.split(), *files.split()])


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_result_is_refused_before_any_release(
    name: str, folder: Path, capsys: Any, monkeypatch: Any
) -> None:
    old, new, words = WRONG[name]
    assert old in MODEL
    released: list[int] = []
    monkeypatch.setattr(sampling, "_advance", lambda *_: released.append(1))
    method = ("dp-hmc", "hmc.yaml") if "gradient" in words else ("dp-penalty", "walk.yaml")
    assert sample(MODEL.replace(old, new), *method) == 2
    message = capsys.readouterr().err.strip()
    assert message.startswith("dpmc: error: model: ") and "\n" not in message
    assert words in message
    assert released == [] and not Path("chain.nc").exists()


@pytest.mark.parametrize(("method", "settings"), [("dp-penalty", "walk.yaml"), ("dp-hmc", "hmc.yaml")])
def test_a_right_model_runs(method: str, settings: str, folder: Path) -> None:
    assert sample(MODEL, method, settings) == 0


def test_a_shape_that_goes_wrong_later_is_refused_when_it_does(folder: Path, capsys: Any) -> None:
    """The dummy rows are few; with 40 rows the same text returns a matrix."""
    late = "value = " + LINE.removeprefix("return ")
    late += "; return value if len(y) < 20 else value[:, None] * value"
    assert sample(MODEL.replace(LINE, late)) == 2
    assert "returned shape (40, 40), must be (40,)" in capsys.readouterr().err


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


def test_the_library_s_own_callers_are_told_too() -> None:
    """Not only the command line: `sampling.sample` itself refuses."""
    from dpmc.problem import Problem

    class Wrong:
        dimension = 1

        def log_prior(self, theta: Any) -> float:
            return 0.0

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
    cell = study.cell(problem, "dp-penalty", "2", {"tau": 0.5, "clip": 1.0, "proposal_sd": 0.1}, "here")
    with pytest.raises(DpmcError, match=r"model: Wrong: log_likelihood: returned shape \(5, 5\)"):
        sampling.sample(cell, [0])
