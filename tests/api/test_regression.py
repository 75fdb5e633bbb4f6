"""Regression models, up the ladder: gradients, forms, prior, exact posterior, chains."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

import dpmc
from dpmc.evaluators import evaluator_of
from dpmc.evaluators.generic import Evaluator
from dpmc.models.own import given_model

AGE = {"age": (45.0, 15.0), "bmi": (28.0, 5.0)}
MODELS = {
    "linear": lambda: dpmc.LinearRegression("y", AGE, sd=0.5, true_theta=[0.2, 0.5, -0.3]),
    "linear, outcome scaled": lambda: dpmc.LinearRegression({"y": (100.0, 20.0)}, AGE, prior_sd=[1, 2, 3]),
    "linear, no intercept": lambda: dpmc.LinearRegression("y", AGE, intercept=False),
    "linear, sd unknown": lambda: dpmc.LinearRegression("y", AGE, sd=None, true_theta=[0.2, 0.5, -0.3, -0.7]),
    "linear, one predictor": lambda: dpmc.LinearRegression("y", ["x"], norm=1.5),
    "linear, mean alone": lambda: dpmc.LinearRegression("y", []),
    "logistic": lambda: dpmc.LogisticRegression("y", AGE, norm=2.0, true_theta=[0.2, 0.5, -0.3]),
    "logistic, no intercept": lambda: dpmc.LogisticRegression("y", AGE, intercept=False),
    "poisson": lambda: dpmc.PoissonRegression("y", AGE, true_theta=[1.0, 0.4, -0.2]),
    "negative binomial": lambda: dpmc.NegativeBinomialRegression(
        "y", AGE, dispersion=0.5, true_theta=[1.0, 0.4, -0.2]
    ),
}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Any:
    return MODELS[request.param]()


def rows_of(model: Any, n: int = 700) -> np.ndarray:
    rows: np.ndarray = model.simulate(np.random.default_rng(1), model.true_theta, n)
    return rows


def near(model: Any, scale: float) -> np.ndarray:
    found: np.ndarray = model.true_theta + scale * np.random.default_rng(2).standard_normal(model.dimension)
    return found


def test_gradients_are_those_of_the_density_and_of_the_prior(model: Any) -> None:
    rows, theta, h = rows_of(model), near(model, 0.3), 1e-5
    for function, gradient in (
        (lambda at: model.log_likelihood(at, rows), model.log_likelihood_gradient(theta, rows)),
        (lambda at: np.array([model.log_prior(at)]), model.log_prior_gradient(theta)[None]),
    ):
        for i, axis in enumerate(np.eye(model.dimension)):
            differences = (function(theta + h * axis) - function(theta - h * axis)) / (2.0 * h)
            assert np.allclose(gradient[:, i], differences, rtol=1e-6, atol=1e-6)


def test_the_fast_evaluator_agrees_with_the_plain_density(model: Any) -> None:
    rows = rows_of(model)
    fast, plain = evaluator_of(model, rows), Evaluator(model, rows)
    names = {"Linear": "affine", "Logistic": "softplus", "Poisson": "generic", "NegativeBinomial": "generic"}
    assert fast.name == names[type(model).__name__.removesuffix("Regression")]
    theta = np.stack([near(model, 0.3), near(model, 0.1)])
    proposal = theta + 0.05
    distance = np.sqrt(((proposal - theta) ** 2).sum(axis=1))
    for bound in (np.full(2, np.inf), 0.5 * distance):
        (sums, counts), (wanted, clipped) = (e.ratio_sums(theta, proposal, bound) for e in (fast, plain))
        assert np.allclose(sums, wanted, rtol=1e-9, atol=1e-9) and (counts == clipped).all()
    assert 0 < counts.max() < len(rows)  # some are clipped, others are not
    for limit in (np.inf, 0.5):
        (sums, counts), (wanted, clipped) = (e.gradient_sums(theta, limit) for e in (fast, plain))
        assert np.allclose(sums, wanted, rtol=1e-9, atol=1e-9) and (counts == clipped).all()


def test_log_likelihood_of_rows_equals_that_of_scipy(model: Any) -> None:
    rows, one, other = rows_of(model, 50), near(model, 0.3), near(model, 0.1)
    z, y = model.design(rows), rows[:, 0]

    def density(theta: np.ndarray) -> np.ndarray:
        eta = z @ theta[: z.shape[1]]
        if isinstance(model, dpmc.LogisticRegression):
            return stats.bernoulli.logpmf(y, 1.0 / (1.0 + np.exp(-eta)))
        if isinstance(model, dpmc.PoissonRegression):
            return stats.poisson.logpmf(y, np.exp(eta))
        if isinstance(model, dpmc.NegativeBinomialRegression):
            return stats.nbinom.logpmf(y, 2.0, 1.0 / (1.0 + 0.5 * np.exp(eta)))
        sd = np.exp(theta[-1]) if model.sd is None else model.sd
        return stats.norm.logpdf(model.response(rows), eta, sd)

    ratio = model.log_likelihood(one, rows) - model.log_likelihood(other, rows)
    assert np.allclose(ratio, density(one) - density(other))
    priors = [stats.norm.logpdf(theta, 0.0, model.prior_sd).sum() for theta in (one, other)]
    assert np.isclose(model.log_prior(one) - model.log_prior(other), priors[0] - priors[1])


def test_predictors_are_standardised_by_public_numbers_and_shortened_to_the_norm() -> None:
    model = dpmc.LogisticRegression("y", AGE, norm=2.0)
    design = model.design(np.array([[1.0, 45.0, 33.0], [0.0, 45.0 + 150.0, 28.0]]))
    assert design.tolist() == [[1.0, 0.0, 1.0], [1.0, 2.0, 0.0]]
    assert model.lossless_clip == np.sqrt(5.0)


def test_nothing_is_clipped_at_the_lossless_bound() -> None:
    model = MODELS["logistic"]()
    evaluator = evaluator_of(model, rows_of(model))
    theta, proposal = near(model, 0.3)[None], near(model, 3.0)[None]
    distance = np.sqrt(((proposal - theta) ** 2).sum(axis=1))
    assert evaluator.ratio_sums(theta, proposal, model.lossless_clip * distance)[1] == 0
    assert evaluator.ratio_sums(theta, proposal, 0.5 * distance)[1] > 0


def test_the_exact_posterior_of_the_linear_model_is_that_of_its_density() -> None:
    model = MODELS["linear, outcome scaled"]()
    rows, temperature = rows_of(model), 0.3
    posterior = model.posterior(rows, temperature)

    def log_density(theta: np.ndarray) -> float:
        return float(temperature * model.log_likelihood(theta, rows).sum() + model.log_prior(theta))

    law = stats.multivariate_normal(posterior.mean(), posterior.covariance())
    one, other = near(model, 0.1), posterior.mean()
    assert np.isclose(log_density(one) - log_density(other), law.logpdf(one) - law.logpdf(other))


def exact_and_chain(algorithm: str, n: int = 400, **options: Any) -> tuple[Any, np.ndarray]:
    model = MODELS["linear"]()
    rows = rows_of(model, n)
    tree = dpmc.sample(model, rows, algorithm, progress=False, **options)
    draws = tree.posterior.theta.values
    return model.posterior(rows, 1.0), draws[:, draws.shape[1] // 10 :]


@pytest.mark.parametrize(
    ("algorithm", "options"),
    [
        ("rwmh", {"epsilon": "inf", "hyperparameters": {"proposal_sd": 0.04}}),
        ("hmc", {"epsilon": "inf", "hyperparameters": {"step_size": 0.02, "steps": 2, "mass": 1}}),
        ("dp-penalty", {"epsilon": 1e6, "hyperparameters": {"tau": 0.01, "clip": 20, "proposal_sd": 0.04}}),
    ],
)
def test_chains_have_the_moments_of_the_exact_posterior(algorithm: str, options: dict[str, Any]) -> None:
    """Also the private one, with a budget that leaves little noise and a bound that clips nothing."""
    posterior, draws = exact_and_chain(algorithm, chains=4, iterations=8000, **options)
    sd = np.sqrt(np.diag(posterior.covariance()))
    batches = draws.reshape(4 * 8, -1, draws.shape[2]).mean(axis=1)  # their means are nearly independent
    error = batches.std(axis=0, ddof=1) / np.sqrt(len(batches))
    assert (error < 0.1 * sd).all()  # the test has power
    assert (np.abs(draws.mean(axis=(0, 1)) - posterior.mean()) < 4.5 * error).all()
    assert np.allclose(draws.std(axis=(0, 1)), sd, rtol=0.12)


SCALES = "predictors: x: "


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: dpmc.LinearRegression("y", ["x", "x"]), "must be different names"),
        (lambda: dpmc.LinearRegression("y", {"x": (0.0, 0.0)}), SCALES + "scale: 0 must be greater than 0"),
        (lambda: dpmc.LinearRegression("y", ["y"]), "outcome: 'y' must be the name of a column of its own"),
        (lambda: dpmc.LogisticRegression("y", ["x"], norm=np.nan), "norm: nan must be greater than 0"),
        (lambda: dpmc.PoissonRegression("y", ["x"], prior_sd=0.0), "prior_sd: 0.0 must be greater than 0"),
        (lambda: dpmc.PoissonRegression("y", ["x"], true_theta=[1.0]), r"true_theta: shape \(1,\) must be"),
        (lambda: dpmc.LogisticRegression("y", [], intercept=False), "outcome"),
        (lambda: dpmc.LogisticRegression("y", ["x"], binary={"y": 0.5}), "'y' must be one of the predictors"),
        (lambda: dpmc.LogisticRegression("y", ["x"], binary={"x": 1.0}), "x: 1.0 must be a share of ones"),
    ],
)  # fmt: skip
def test_mistakes_name_model_argument_value_and_rule(make: Any, words: str) -> None:
    with pytest.raises(dpmc.DpmcError, match=words):
        make()


@pytest.mark.parametrize(
    ("model", "outcome", "rule"),
    [
        (dpmc.PoissonRegression, 2.5, "outcome y: 2.5 in row 2 must be a whole number"),
        (dpmc.LogisticRegression, 2.0, "outcome y: 2 in row 2 must be 0 or 1"),
    ],
)
def test_a_wrong_outcome_is_refused_before_any_budget_is_spent(model: Any, outcome: float, rule: str) -> None:
    rows, setting = np.array([[1.0, 0.0], [outcome, 0.0]]), {"tau": 1, "clip": 1, "proposal_sd": 1}
    with pytest.raises(dpmc.DpmcError, match=rule):
        dpmc.sample(model("y", ["age"]), rows, epsilon=50, progress=False, hyperparameters=setting)


class Waiting:
    """Waiting times with rate e^{−η}, as a user would write the family."""

    support = "positive"

    def log_density(self, eta: np.ndarray, y: np.ndarray) -> Any:
        return -eta - y * np.exp(-eta)

    def score(self, eta: np.ndarray, y: np.ndarray) -> Any:
        return y * np.exp(-eta) - 1.0

    def mean(self, eta: np.ndarray) -> Any:
        return np.exp(eta)

    def draw(self, generator: np.random.Generator, eta: np.ndarray) -> np.ndarray:
        return generator.exponential(np.exp(eta))


def test_a_family_of_ones_own_is_four_functions_and_a_support() -> None:
    model = dpmc.Regression("wait", AGE, family=Waiting(), true_theta=[1.0, 0.5, 0.0])
    options: dict[str, Any] = {"epsilon": "inf", "iterations": 1500, "progress": False}
    options["hyperparameters"] = {"step_size": 0.03, "steps": 4, "mass": 1}
    rows = rows_of(model, 300)
    draws = dpmc.sample(model, rows, "hmc", **options).posterior.theta.values[0, 500:]
    assert np.abs(draws.mean(axis=0) - model.true_theta).max() < 0.25
    assert 0.03 < draws.std(axis=0).min() and draws.std(axis=0).max() < 0.12  # about 1/√300
    assert given_model(model)[0] == f"{__name__}:Waiting", "named as the code that is the user's"
    with pytest.raises(dpmc.DpmcError, match="outcome wait: -1 in row 2 must be greater than 0"):
        model.check_rows(np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]))


class Remembers(Waiting):
    """Keeps the outcomes of a call in the family, and adds them to those of the next."""

    last = 0.0

    def log_density(self, eta: np.ndarray, y: np.ndarray) -> Any:
        found = super().log_density(eta, y) + self.last
        self.last = float(y.sum())
        return found


def test_what_a_family_keeps_of_some_rows_reaches_no_others() -> None:
    model = given_model(dpmc.Regression("wait", ["x"], family=Remembers()))[1].model
    rows = np.ones((3, 2))
    first, second = (model.log_likelihood(np.zeros(2), rows) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("make", [dpmc.LinearRegression, dpmc.LogisticRegression, dpmc.PoissonRegression])
def test_columns_said_to_be_binary_are_simulated_as_zeros_and_ones(make: Any) -> None:
    """The others have the same random numbers as without."""
    scales, n = {"age": (45.0, 15.0), "smoker": (0.5, 0.5)}, 4000
    plain, told = make("y", scales), make("y", scales, binary={"smoker": 0.2})
    theta = np.array([0.1, 0.2, -0.3])
    before, rows = (model.simulate(np.random.default_rng(1), theta, n) for model in (plain, told))
    assert set(rows[:, 2]) == {0.0, 1.0} and len(set(before[:, 2])) == n
    assert abs(rows[:, 2].mean() - 0.2) < 5.0 * np.sqrt(0.2 * 0.8 / n)
    np.testing.assert_array_equal(rows[:, 1], before[:, 1])
    design = told.design(rows)
    assert set(design[:, 2]) == {-1.0, 1.0}
