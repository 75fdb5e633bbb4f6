"""Simulated scores: sensitivity, calibration, refusals, releases."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

import dpmc
from dpmc.algorithms import simulated_likelihood, simulated_scores
from dpmc.algorithms.simulated_scores import SHARES, SimulatedScores
from dpmc.evaluators.lattice import Lattice, LatticeEvaluator
from dpmc.models import definition
from dpmc.models.circle import Circle
from dpmc.models.mixture import Mixture
from dpmc.privacy.data_ledger import DataLedger
from dpmc.privacy.questions import GradientQuestion
from dpmc.releases import files

CENTRE = np.array([-1.0, 1.0])


class Pair:
    """x ~ ½ N(a, 1) + ½ N(b, 1), a and b normal around −1 and 1."""

    dimension, parameters, start, true_theta = 2, ("a", "b"), (-1.0, 1.0), (-1.5, 1.5)

    def log_prior(self, theta: Any) -> Any:
        return -0.5 * ((theta - CENTRE) ** 2).sum(axis=-1)

    def log_prior_gradient(self, theta: Any) -> Any:
        return CENTRE - theta

    def log_likelihood(self, theta: Any, rows: Any) -> Any:
        return np.logaddexp(*(-0.5 * (rows[:, 0] - mean) ** 2 for mean in theta))

    def log_likelihood_gradient(self, theta: Any, rows: Any) -> Any:
        first, second = rows[:, 0] - theta[0], rows[:, 0] - theta[1]
        weight = expit(0.5 * (second**2 - first**2))
        return np.stack([weight * first, (1.0 - weight) * second], axis=1)

    def simulate(self, generator: Any, theta: Any, n: int) -> Any:
        means = np.where(generator.random(n) < 0.5, theta[0], theta[1])
        return (means + generator.standard_normal(n))[:, None]


class Wild(Pair):
    """A model whose gradients are whatever a row says."""

    def log_likelihood_gradient(self, theta: Any, rows: Any) -> Any:
        return np.stack([rows[:, 0], -rows[:, 0] * theta[1]], axis=1)


MODEL: Any = Pair()
METHOD = SimulatedScores(noise_multiplier=2.0)
HARD = [1e-300, 1.0, -3.0, 1e9, -1e160, 1e308, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("whitening", [np.eye(2), np.array([[3.0, -2.9], [-2.9, 3.0]])])
def test_one_row_moves_the_sum_by_the_sensitivity_at_most(whitening: np.ndarray) -> None:
    model: Any = Wild()
    asked = GradientQuestion(model, CENTRE, whitening, 1.7, 0.4)
    rows = np.array(HARD)[:, None]
    with np.errstate(all="ignore"):
        each = asked.of_rows(rows)
        assert np.isfinite(asked.total(rows)).all()
    moves = np.sqrt(((each[:, None] - each[None]) ** 2).sum(axis=2))
    assert 0.4 * (1.0 - 1e-8) < moves.max() <= 0.4  # attained by two opposite rows
    assert not each[~np.isfinite(rows[:, 0])].any()
    # In the integers of a release, with what rounding adds.
    sums = []
    for other in HARD:
        lattice = LatticeEvaluator(model, np.array([[other], [0.5], [np.nan]]), Lattice(1, 1))
        total, unit, rounding = lattice.answer_sums([asked])
        sums.append(total[0] * unit)
    moves = np.sqrt(((np.array(sums)[:, None] - np.array(sums)[None]) ** 2).sum(axis=2))
    assert 0.3 < moves.max() <= 0.4 + rounding


def test_rounds_cost_the_budget() -> None:
    events = METHOD.queries(100).run
    assert sum(event.noise_multiplier**-2 for event in events) == pytest.approx(0.25, rel=1e-12)
    rounds: list[Any] = []
    for event in events:
        asked = METHOD.question(MODEL, rounds, 100, 2000)
        assert asked.sensitivity == pytest.approx(1.0 / event.noise_multiplier, rel=1e-12)
        rounds.append(simulated_scores.answered_round(asked, np.zeros(2)))
    assert len(rounds) == len(SHARES)


def test_moments_are_those_of_simulated_rows() -> None:
    """Weighted rows of one θ have the mean, and its derivative, of rows of another one."""
    asked = METHOD.question(MODEL, [], 1000, 100_000)
    there = CENTRE + [0.05, -0.1]
    found = simulated_likelihood.Likelihood(MODEL, 1000, asked, np.zeros(2), 100_000).moments(there)
    fresh = asked.clipped(MODEL.simulate(np.random.default_rng(1), there, 400_000))
    error = fresh.std(axis=0) / np.sqrt(1e5)
    assert (np.abs(found.mean - fresh.mean(axis=0)) < 5.0 * error).all()
    assert np.allclose(found.covariance, np.cov(fresh.T), atol=0.02 * asked.clip**2)
    like = simulated_likelihood.Likelihood(MODEL, 1000, asked, np.zeros(2), 100_000)
    sides = [[like.moments(there + s * step).mean for s in (1e-4, -1e-4)] for step in np.eye(2)]
    slope = np.array([(after - before) / 2e-4 for after, before in sides]).T
    assert np.allclose(slope, found.slope, atol=1e-6)


def log_density(like: simulated_likelihood.Likelihood, theta: np.ndarray) -> float:
    found = like.moments(theta)
    spread, rest = like.spread(found), like.scores - like.n * found.mean
    value = np.linalg.slogdet(spread)[1] + rest @ np.linalg.solve(spread, rest)
    return float(MODEL.log_prior(theta) - 0.5 * value)


def test_the_gradient_is_that_of_the_density_with_its_determinant() -> None:
    asked = METHOD.question(MODEL, [], 60, 20_000)
    like = simulated_likelihood.Likelihood(MODEL, 60, asked, np.array([-9.0, 14.0]), 20_000)
    there, own = CENTRE + [-0.02, 0.03], []
    for step in 1e-4 * np.eye(2):
        own.append((log_density(like, there + step) - log_density(like, there - step)) / 2e-4)
    # The number of rows that weights are worth is taken as constant.
    assert like.slope(there) == pytest.approx(own, rel=2e-3)


def intervals(epsilon_multiplier: float, n: int, sets: int) -> tuple[np.ndarray, np.ndarray]:
    """Errors in posterior sds, and in sds of the information of n rows."""
    method, errors, sizes = SimulatedScores(noise_multiplier=epsilon_multiplier), [], []
    for k in range(sets):
        generator = np.random.default_rng([7, k])
        truth = np.array([-1.5, 1.5]) + 0.3 * generator.standard_normal(2)
        rows = MODEL.simulate(generator, truth, n)
        found = method.from_rows(MODEL, rows, generator, 5 * n)
        assert found.converged
        gradient = MODEL.log_likelihood_gradient(truth, rows)
        sd = np.sqrt(np.diag(np.linalg.inv(gradient.T @ gradient)))
        errors.append((found.mean - truth) / np.sqrt(np.diag(found.covariance)))
        sizes.append((found.mean - truth) / sd)
    return np.array(errors), np.array(sizes)


def test_intervals_hold() -> None:
    errors, sizes = intervals(4.0, 2000, 60)
    # 120 intervals: less than 81 % or more than 97 % that hold have a probability of about 1 in 500.
    assert 0.81 < (np.abs(errors) < 1.645).mean() < 0.975
    assert np.sqrt((sizes**2).mean()) < 2.0


def test_intervals_hold_with_hardly_any_noise() -> None:
    errors, sizes = intervals(0.01, 2000, 60)
    assert 0.81 < (np.abs(errors) < 1.645).mean() < 0.975
    assert np.sqrt((sizes**2).mean()) < 1.35


def test_without_information_the_posterior_is_the_prior() -> None:
    found = SimulatedScores(noise_multiplier=1e7).from_rows(
        MODEL, np.zeros((500, 1)), np.random.default_rng(0), 10_000
    )
    assert np.allclose(found.mean, CENTRE, atol=0.05)
    assert np.allclose(found.covariance, np.eye(2), atol=0.05)


class Shifted(Pair):
    """Rows are not drawn from the likelihood."""

    def simulate(self, generator: Any, theta: Any, n: int) -> Any:
        return super().simulate(generator, theta, n) + 0.3


class Flat(Pair):
    def simulate(self, generator: Any, theta: Any, n: int) -> Any:
        return super().simulate(generator, theta, n)[:, 0]


class Plain:
    """A normal mean without a gradient."""

    dimension = 1

    def log_likelihood(self, theta: Any, rows: Any) -> Any:
        return -0.5 * (rows[:, 0] - theta[0]) ** 2

    def simulate(self, generator: Any, theta: Any, n: int) -> Any:
        return theta + generator.standard_normal((n, 1))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Plain(), "has no log_likelihood_gradient"),
        (Circle(1e-5), "have not the mean 0: log_likelihood is no density"),
        (Shifted(), "have not the mean 0"),
        (Flat(), r"simulate: returned shape \(2,\)"),
        (dpmc.LogisticRegression("y", ["x"]), "a regression does not say how its predictors"),
        (definition("logistic-simulated").model, "a regression does not say"),
        (Mixture(2.0, 3.0), r"search for theta did not end in \d+% of them"),  # it begins at a saddle
    ],
)
def test_refused_models(model: Any, words: str) -> None:
    with pytest.raises(dpmc.DpmcError, match=words):
        METHOD.check(model, 500)


def test_refused_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(dpmc.DpmcError, match="tempering: must be None"):
        METHOD.check(MODEL, 500, 0.5)
    with pytest.raises(dpmc.DpmcError, match="guess: has 3 values, must be 2"):
        SimulatedScores(noise_multiplier=1.0, guess=(0.0, 1.0, 2.0)).check(MODEL, 500)
    with pytest.raises(dpmc.DpmcError, match="n: 10000000 is more than the 1333333 rows"):
        METHOD.check(MODEL, 10_000_000)
    monkeypatch.delattr(Pair, "simulate")
    with pytest.raises(dpmc.DpmcError, match="the model has no simulate"):
        METHOD.check(MODEL, 500)


def test_a_guess_at_the_right_peak_is_accepted() -> None:
    """The catalogue's kind of mixture has two peaks, and a saddle between them where it begins."""
    SimulatedScores(noise_multiplier=2.0, guess=(-1.0, 2.0)).check(Mixture(0.5, 3.0), 2000)


def test_a_refused_model_costs_nothing(tmp_path: Path) -> None:
    ledger = DataLedger.create(tmp_path / "people.ledger", 10.0, 0.5, "people")
    with pytest.raises(dpmc.DpmcError, match="have not the mean 0"):
        dpmc.release(
            Shifted(), np.zeros((500, 1)), "simulated-scores", epsilon=1, ledger=ledger.path, progress=False
        )
    assert not DataLedger.open(ledger.path).entries


OWN = "\n".join(
    ["import numpy as np", "from kernels.test_simulated_scores import Pair", "class Mine(Pair): pass"]
)


def test_a_release_of_a_model_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own_pair.py").write_text(OWN, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    ledger = DataLedger.create(Path("people.ledger"), 10.0, 0.5, "people")
    rows = MODEL.simulate(np.random.default_rng(3), np.array([-1.4, 1.6]), 1500)
    model = definition("own_pair:Mine").model.given
    tree = dpmc.release(
        model, rows, "simulated-scores", epsilon=2, ledger=ledger.path, output="out.nc", progress=False
    )
    sys.modules.pop("own_pair")
    assert files.check(files.read("out.nc")) == files.hidden("out.nc", files.read("out.nc")) == []
    with pytest.raises(dpmc.DpmcError, match="needs its model: dpmc.summary says its draws"):
        dpmc.Fit("out.nc")
    draws = tree["posterior"]["theta"].values[0]
    assert draws.shape == (1000, 2)
    assert np.allclose(draws.mean(axis=0), [-1.4, 1.6], atol=0.25)
    assert np.sqrt(1.0 / 1500) < draws.std(axis=0).min() and draws.std(axis=0).max() < 0.15


def test_what_was_asked_is_computed_again(tmp_path: Path) -> None:
    ledger = DataLedger.create(tmp_path / "people.ledger", 10.0, 0.5, "people")
    model: Any = definition("correlated-gauss").model
    rows = model.simulate(np.random.default_rng(3), np.array([0.0, 0.05]), 800)
    dpmc.release(
        "correlated-gauss",
        rows,
        "simulated-scores",
        epsilon=1,
        ledger=ledger.path,
        output=tmp_path / "out.nc",
        iterations=20,
        progress=False,
    )
    tree = files.read(tmp_path / "out.nc")
    assert files.check(tree) == []
    for name in SimulatedScores.arrays:
        answer = tree["answer"].to_dataset().copy(deep=True)
        answer[name].values[1] *= 1.01
        other = tree.copy()
        other["answer"] = other["answer"].assign({name: answer[name]})
        assert "is not what is asked after these answers" in files.check(other)[0]


def test_the_prior_has_its_gradient_and_curvature() -> None:
    gradient, curvature = simulated_likelihood.prior_at(MODEL, np.array([0.5, 0.0]))
    assert np.allclose(gradient, [-1.5, 1.0])
    assert np.allclose(curvature, np.eye(2))


def test_data_sets_are_simulated_where_the_model_says_that_the_truth_is() -> None:
    seen = []

    class Far(Pair):
        true_theta = (-4.0, 4.0)

        def simulate(self, generator: Any, theta: Any, n: int) -> Any:
            seen.append(np.array(theta))
            return super().simulate(generator, theta, n)

    far: Any = Far()
    METHOD.rehearsal(far, 200)
    assert min(np.abs(theta - [-4.0, 4.0]).max() for theta in seen[1:]) < 0.5


def test_a_search_that_does_not_end_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = METHOD.question(MODEL, [], 500, 10_000)
    near, far = ([simulated_scores.answered_round(asked, np.array(s))] for s in ([-5.0, 5.0], [-60.0, 60.0]))
    near, far = (simulated_scores.stacked(rounds) for rounds in (near, far))
    assert METHOD.remarks(near, MODEL, 500) == []
    assert METHOD.remarks(far, MODEL, 500) == [simulated_scores.LOST]
    monkeypatch.setattr(simulated_likelihood, "MOST_STEPS", 1)
    assert METHOD.remarks(near, MODEL, 500) == [simulated_scores.LOST]


def test_a_guess_that_is_four_sds_of_a_row_off_is_near_enough() -> None:
    model: Any = definition("correlated-gauss").model
    truth, held = np.array([0.0, 0.2]), []  # of sd 0.045 given the other
    for k in range(10):
        generator = np.random.default_rng([3, k])
        rows = model.simulate(generator, truth, 2000)
        found = METHOD.from_rows(model, rows, generator, 20_000)
        held.append(np.abs(found.mean - truth) < 1.645 * np.sqrt(np.diag(found.covariance)))
        assert np.diag(found.covariance).max() < 3.0 / 2000
    assert np.mean(held) >= 0.7
