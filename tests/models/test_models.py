"""Models: formulas against each other, finite differences and numerical integration."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from dpmc import models
from dpmc.common.errors import DpmcError
from dpmc.models.banana import Banana
from dpmc.models.circle import Circle
from dpmc.models.gaussian import Gaussian
from dpmc.models.logistic import Logistic
from dpmc.models.mixture import Mixture
from dpmc.models.own import OwnModel

BANANA = Banana(0.7, 0.4, -0.3, np.array([2.0, 0.5, 1.3]), 3.0)
STRAIGHT = Banana(0.0, 0.0, 0.0, np.array([1.5, 0.7]), 10.0)
GAUSSIAN = Gaussian(np.array([[2.0, -0.6, 0.1], [-0.6, 0.9, 0.3], [0.1, 0.3, 1.4]]), 3.0, 3.0)
CIRCLE = Circle(0.03)
MODELS = {
    "banana": BANANA,
    "banana without a bend": STRAIGHT,
    "gaussian": GAUSSIAN,
    "circle": CIRCLE,
}
OWN = OwnModel(  # priors of a user's class are for one position
    SimpleNamespace(
        dimension=2,
        log_prior=lambda theta: -float(theta[0]) * theta[1],
        log_prior_gradient=lambda theta: [-theta[1], -theta[0]],
    ),
    "mine:Mine",
)
LOGISTIC, MIXTURE = Logistic(4, 2.5), Mixture(2.0, 3.0)
each_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
each_softplus = pytest.mark.parametrize("model", [LOGISTIC, MIXTURE], ids=["logistic", "mixture"])


def some_rows(model: Any, n: int = 12) -> np.ndarray:
    return model.simulate(np.random.default_rng(3), np.full(model.dimension, 0.4), n)


def positions(model: Any, seed: int, *shape: int) -> np.ndarray:
    """Some θ (*shape, d)."""
    return np.random.default_rng(seed).normal(0.0, 1.5, (*shape, model.dimension))


def slopes(function: Any, theta: np.ndarray) -> np.ndarray:
    """Central differences, one row per parameter."""
    h = 1e-5
    steps = h * np.eye(len(theta))
    return np.array([(function(theta + e) - function(theta - e)) / (2.0 * h) for e in steps])


@each_model
def test_affine_ratio_is_the_difference_of_log_likelihoods(model: Any) -> None:
    rows, (theta, proposal) = some_rows(model), positions(model, 1, 2, 20)
    slope, offset = model.ratio_form(theta, proposal)
    found = slope @ model.statistics(rows).T + offset[:, None]
    for c in range(20):
        wanted = model.log_likelihood(proposal[c], rows) - model.log_likelihood(theta[c], rows)
        np.testing.assert_allclose(found[c], wanted, rtol=1e-11, atol=1e-11)


@each_model
def test_affine_gradient_is_the_slope_of_the_log_likelihood(model: Any) -> None:
    rows, theta = some_rows(model), positions(model, 2, 10)
    linear, constant = model.gradient_form(theta)
    for c in range(10):
        wanted = slopes(lambda at: model.log_likelihood(at, rows), theta[c])
        found = linear[c] @ model.statistics(rows).T + constant[c][:, None]
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


@each_softplus
def test_softplus_form_is_the_log_likelihood_and_its_gradient_the_slope(model: Any) -> None:
    rows, theta = some_rows(model, 30), positions(model, 2, 20)
    line, link = (
        slope @ model.statistics(rows).T + offset[:, None]
        for slope, offset in (model.line(theta), model.link(theta))
    )
    rest = [model.log_likelihood(at, rows) for at in theta] - line - model.sign * np.logaddexp(0.0, link)
    np.testing.assert_allclose(rest, np.tile(rest[0], (20, 1)), rtol=0.0, atol=1e-12)  # of x alone
    for at in theta:
        wanted = slopes(lambda position: model.log_likelihood(position, rows), at)
        np.testing.assert_allclose(model.log_likelihood_gradient(at, rows).T, wanted, rtol=1e-7, atol=1e-8)


@each_model
def test_prior_gradient_is_the_slope_of_the_log_prior(model: Any) -> None:
    for theta in positions(model, 4, 10):
        found = model.log_prior_gradient(theta)
        np.testing.assert_allclose(found, slopes(model.log_prior, theta), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize(
    "model",
    [*MODELS.values(), LOGISTIC, MIXTURE, OWN],
    ids=lambda model: type(model).__name__,
)
def test_priors_serve_positions_with_any_leading_axes(model: Any) -> None:
    theta = positions(model, 5, 2, 3)
    before = theta.copy()
    priors, gradients = model.log_prior(theta), model.log_prior_gradient(theta)
    assert priors.shape == (2, 3)
    assert gradients.shape == theta.shape
    for place in np.ndindex(2, 3):
        assert priors[place] == model.log_prior(theta[place])
        np.testing.assert_array_equal(gradients[place], model.log_prior_gradient(theta[place]))
    np.testing.assert_array_equal(theta, before)


@pytest.mark.parametrize("model", [*MODELS.values(), MIXTURE], ids=[*MODELS, "mixture"])
def test_posterior_draws_have_the_stated_mean_and_covariance(model: Any) -> None:
    size = 200_000
    posterior = model.posterior(some_rows(model), 0.3)
    draws = posterior.draws(np.random.default_rng(5), size)
    errors = (draws.mean(axis=0) - posterior.mean()) / (draws.std(axis=0) / np.sqrt(size))
    assert np.abs(errors).max() < 5.0
    centred = draws - posterior.mean()
    products = centred[:, :, None] * centred[:, None, :]
    spread = products.std(axis=0) / np.sqrt(size)
    errors = (products.mean(axis=0) - posterior.covariance()) / spread
    assert np.abs(errors).max() < 5.0


@pytest.mark.parametrize("model", [BANANA, STRAIGHT, GAUSSIAN], ids=["banana", "without a bend", "gaussian"])
def test_posterior_is_likelihood_to_the_temperature_times_prior(model: Any) -> None:
    rows, temperature = some_rows(model), 0.3
    posterior = model.posterior(rows, temperature)

    def log_density(theta: np.ndarray) -> float:
        if model is GAUSSIAN:
            return stats.multivariate_normal.logpdf(theta, posterior.mean(), posterior.covariance())
        phi = theta.copy()
        phi[1] = model.bend(theta)  # a shear: its Jacobian is 1
        return stats.norm.logpdf(phi, posterior.mu, np.sqrt(posterior.variance)).sum()

    constants = [
        log_density(theta) - temperature * model.log_likelihood(theta, rows).sum() - model.log_prior(theta)
        for theta in np.random.default_rng(6).normal(0.0, 2.0, (20, model.dimension))
    ]
    np.testing.assert_allclose(constants, constants[0], rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("scale", [1.0, 0.05], ids=["ring", "nearly a disc, cut at 0"])
def test_circle_moments_by_integration(scale: float) -> None:
    model, temperature = Circle(0.01 * scale), 0.7
    rows = scale * some_rows(CIRCLE, 9)
    posterior = model.posterior(rows, temperature)

    def density(u: float) -> float:  # of u = ‖θ‖²; the area element is ½ du dv
        offset = model.log_likelihood(np.array([np.sqrt(posterior.square_mean), 0.0]), rows).sum()
        log = model.log_likelihood(np.array([np.sqrt(u), 0.0]), rows).sum() - offset
        return float(np.exp(temperature * log))

    top = posterior.square_mean + 12.0 * np.sqrt(posterior.square_variance)
    options = {"limit": 400, "epsabs": 1e-13, "epsrel": 1e-11, "points": [posterior.square_mean]}
    total = integrate.quad(density, 0.0, top, **options)[0]
    first = integrate.quad(lambda u: u * density(u), 0.0, top, **options)[0]
    np.testing.assert_allclose(posterior.covariance(), 0.5 * first / total * np.eye(2), rtol=1e-8)
    assert (posterior.mean() == 0.0).all()


@pytest.mark.parametrize("scale", [1.0, 0.05], ids=["ring", "nearly a disc, cut at 0"])
def test_circle_draws_follow_the_cut_normal_law(scale: float) -> None:
    posterior = Circle(0.01 * scale).posterior(scale * some_rows(CIRCLE, 9), 0.7)
    draws = posterior.draws(np.random.default_rng(9), 20_000)
    sd = np.sqrt(posterior.square_variance)
    cut = stats.truncnorm(-posterior.square_mean / sd, np.inf, posterior.square_mean, sd)
    assert stats.kstest((draws**2).sum(axis=1), cut.cdf).pvalue > 1e-4
    angle = np.arctan2(draws[:, 1], draws[:, 0]) / (2.0 * np.pi) + 0.5
    assert stats.kstest(angle, "uniform").pvalue > 1e-4


def test_simulated_rows_follow_their_laws() -> None:
    rows = GAUSSIAN.simulate(np.random.default_rng(12), np.arange(3.0), 20_000)
    white = (rows - np.arange(3.0)) @ np.linalg.cholesky(GAUSSIAN.precision)
    for column in white.T:
        assert stats.kstest(column, "norm").pvalue > 1e-4
    assert np.abs(np.cov(white.T) - np.eye(3)).max() < 0.05
    rows = CIRCLE.simulate(np.random.default_rng(10), np.zeros(2), 20_000)
    assert rows.shape == (20_000, 1)
    assert stats.kstest(rows[:, 0] - 3.0, "norm").pvalue > 1e-4
    rows = MIXTURE.simulate(np.random.default_rng(6), np.array([0.5, 2.0]), 20_000)
    sd = np.sqrt(2.0)
    law = lambda x: 0.5 * stats.norm.cdf(x, 0.5, sd) + 0.5 * stats.norm.cdf(x, 2.5, sd)  # noqa: E731
    assert stats.kstest(rows[:, 0], law).pvalue > 1e-4
    theta = np.array([0.5, -0.2, 1.0])
    rows = BANANA.simulate(np.random.default_rng(11), theta, 20_000)
    mean = np.array([0.5, -0.2 + 0.7 * 0.8**2 + 0.4, 1.0])
    for column, centre, variance in zip(rows.T, mean, BANANA.variance, strict=True):
        assert stats.kstest((column - centre) / np.sqrt(variance), "norm").pvalue > 1e-4


def test_logistic_log_likelihood_is_that_of_a_coin_with_logistic_odds() -> None:
    rows = some_rows(LOGISTIC, 40)
    for theta in np.random.default_rng(1).normal(0.0, 2.0, (20, 4)):
        wanted = stats.bernoulli.logpmf(rows[:, 0], 1.0 / (1.0 + np.exp(-rows[:, 1:] @ theta)))
        np.testing.assert_allclose(LOGISTIC.log_likelihood(theta, rows), wanted, rtol=1e-9, atol=1e-13)


def test_logistic_row_bounds_are_norms_and_bound_every_ratio() -> None:
    generator, rows = np.random.default_rng(5), some_rows(LOGISTIC, 40)
    bounds = LOGISTIC.row_bounds(rows)
    np.testing.assert_allclose(bounds, np.linalg.norm(rows[:, 1:], axis=1), rtol=1e-14)
    for _ in range(2000):
        theta, step = generator.normal(0.0, 2.0, (2, 4))
        step *= 10.0 ** generator.uniform(-4.0, 1.0)
        change = LOGISTIC.log_likelihood(theta + step, rows) - LOGISTIC.log_likelihood(theta, rows)
        assert (np.abs(change) <= bounds * np.linalg.norm(step) * (1.0 + 1e-9) + 1e-13).all()
    for row, bound in zip(rows, bounds, strict=True):  # nearly reached where the label is most surprising
        against = -40.0 / bound**2 * (2.0 * row[0] - 1.0) * row[1:]
        change = LOGISTIC.log_likelihood(1.1 * against, row[None]) - LOGISTIC.log_likelihood(
            against, row[None]
        )
        assert abs(change[0]) == pytest.approx(bound * np.linalg.norm(0.1 * against), rel=1e-9)


def test_logistic_rows_are_clipped_normal_with_labels_at_the_stated_odds() -> None:
    """False alarm of each check: 1e-4 or less."""
    n, theta = 20_000, np.array([0.8, -0.5, 1.5, 0.1])
    rows = LOGISTIC.simulate(np.random.default_rng(6), theta, n)
    assert rows.shape == (n, 5)
    assert set(np.unique(rows[:, 0])) == {0.0, 1.0}
    length = np.linalg.norm(rows[:, 1:], axis=1)
    assert length.max() <= 2.5 * (1.0 + 1e-12)
    clipped = length > 2.5 * (1.0 - 1e-12)
    law = stats.chi(4)
    assert stats.binomtest(int(clipped.sum()), n, float(law.sf(2.5))).pvalue > 1e-4
    free = stats.kstest(length[~clipped], lambda r: law.cdf(r) / law.cdf(2.5))
    assert free.pvalue > 1e-4
    link = rows[:, 1:] @ theta
    probability = 1.0 / (1.0 + np.exp(-link))
    for chosen in (link < -1.0, np.abs(link) <= 1.0, link > 1.0):
        p = probability[chosen]
        error = (rows[chosen, 0] - p).sum() / np.sqrt((p * (1.0 - p)).sum())
        assert abs(error) < 4.0


@pytest.mark.parametrize("name", models.MODELS)
def test_catalogue_holds_whole_definitions(name: str) -> None:
    definition = models.definition(name)
    assert len(definition.true_theta) == definition.model.dimension
    assert definition.n > 0
    n = 10 * definition.n
    factor = 1.0 if definition.tempering is None else definition.tempering / n
    assert definition.temperature(n) == factor


def test_rows_count_as_at_most_as_many_as_they_are() -> None:
    definition = models.definition("tempered-banana-2d")
    assert definition.temperature(1000) == 1.0
    with pytest.raises(DpmcError, match="tempering: 1000 must be at most the number of rows, 999"):
        definition.temperature(999)


def test_a_missing_prior_is_flat_and_missing_gradients_are_refused() -> None:
    bare = OwnModel(SimpleNamespace(dimension=1), "mine:Bare")
    assert (bare.log_prior(np.ones((3, 1))) == np.zeros(3)).all()
    assert (bare.log_prior_gradient(np.ones((3, 1))) == np.zeros((3, 1))).all()
    with pytest.raises(DpmcError, match="mine:Bare has no log_likelihood_gradient"):
        bare.log_likelihood_gradient(np.zeros(1), np.zeros((2, 1)))
    curved = OwnModel(SimpleNamespace(log_prior=lambda theta: -float(theta[0])), "mine:Curved")
    assert (curved.log_prior(np.array([[1.0], [3.0]])) == [-1.0, -3.0]).all()
    with pytest.raises(DpmcError, match="no log_prior_gradient"):
        curved.log_prior_gradient(np.zeros(1))
