"""Models given in Python: instances, classes, functions; gradients checked, or taken by JAX."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dpmc

SETTING = {"tau": 0.5, "clip": 5.0, "proposal_sd": 0.05}
HMC = {"tau_l": 0.5, "tau_g": 1, "steps": 2, "step_size": 0.01, "mass": 1, "clip_l": 5, "clip_g": 5}
ROWS = np.random.default_rng(0).normal([1.0, 2.0], 1.0, (200, 2))


class Normal:
    """x ~ N(θ, sd²)."""

    dimension = 2
    columns = 2

    def __init__(self, sd: float = 1.0) -> None:
        self.sd = sd

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> Any:
        return -0.5 * (((rows - theta) / self.sd) ** 2).sum(axis=1)

    def log_likelihood_gradient(self, theta: np.ndarray, rows: np.ndarray) -> Any:
        return (rows - theta) / self.sd**2

    def log_prior(self, theta: np.ndarray) -> float:
        return -0.5 * float((theta**2).sum())

    def log_prior_gradient(self, theta: np.ndarray) -> Any:
        return -theta


def sampled(model: Any, algorithm: str = "dp-penalty", **more: Any) -> Any:
    options = {"hyperparameters": HMC if algorithm == "dp-hmc" else SETTING, "iterations": 20, **more}
    return dpmc.sample(model, ROWS, algorithm, epsilon=50, progress=False, **options)


def draws(model: Any, algorithm: str = "dp-penalty", **more: Any) -> Any:
    return sampled(model, algorithm, **more).posterior.theta.values


def test_a_class_an_instance_and_functions_are_the_same_model() -> None:
    by_class, by_instance = draws(Normal), draws(Normal())
    assert (by_class == by_instance).all() and len(np.unique(by_class)) > 2
    assert (draws(Normal(2.0)) != by_class).any()  # arguments of the constructor matter
    own = Normal()
    functions = dpmc.Model(2, own.log_likelihood, own.log_prior)
    start = np.zeros(2)
    assert draws(functions, start=start).shape == draws(own, start=start).shape == (1, 20, 2)


def with_gradients(likelihood: Callable[..., Any], prior: Callable[..., Any]) -> dpmc.Model:
    own = Normal()
    return dpmc.Model(
        2, own.log_likelihood, own.log_prior, log_likelihood_gradient=likelihood, log_prior_gradient=prior
    )


RIGHT, RIGHT_PRIOR = Normal().log_likelihood_gradient, Normal().log_prior_gradient


@pytest.mark.parametrize(
    ("likelihood", "prior", "words"),
    [
        (lambda t, x: t - x, RIGHT_PRIOR, "log_likelihood_gradient: component 0 is"),
        (lambda t, x: (x - t) * [1.0, 1.01], RIGHT_PRIOR, "log_likelihood_gradient: component 1 is"),
        (RIGHT, lambda t: -t * [1.0, 0.5], "log_prior_gradient: component 1 is"),
    ],
)
def test_a_wrong_gradient_is_refused_with_its_component(likelihood: Any, prior: Any, words: str) -> None:
    with pytest.raises(dpmc.DpmcError, match=rf"model: .*{words}.*finite differences give"):
        draws(with_gradients(likelihood, prior), "dp-hmc", start=[0.5, 0.7])


def huber(theta: np.ndarray, rows: np.ndarray) -> Any:
    residual = np.abs(rows - theta)
    return -np.where(residual < 0.3, 0.5 * residual**2, 0.3 * residual - 0.045).sum(axis=1)


@pytest.mark.parametrize(
    ("density", "gradient"),
    [
        (Normal().log_likelihood, RIGHT),
        (huber, lambda t, x: np.clip(x - t, -0.3, 0.3)),
        (lambda t, x: -np.abs(x - t).sum(axis=1), lambda t, x: np.sign(x - t)),  # kinks
        (  # single precision
            lambda t, x: Normal().log_likelihood(t.astype(np.float32), x.astype(np.float32)),
            lambda t, x: x.astype(np.float32) - t.astype(np.float32),
        ),
        (lambda t, x: 1e5 - 0.5 * ((x - t) ** 2).sum(axis=1), RIGHT),
    ],
    ids=["normal", "huber", "kinks", "single precision", "far from 0"],
)
def test_a_right_gradient_is_not_refused(density: Any, gradient: Any) -> None:
    assert draws(dpmc.Model(2, density, log_likelihood_gradient=gradient), "dp-hmc").shape == (1, 20, 2)


class Affine(dpmc.ExponentialFamily):
    """x ~ N(θ, I); `factor` makes its gradient wrong."""

    dimension = columns = 2

    def __init__(self, factor: float = 1.0) -> None:
        self.factor = factor

    def statistics(self, rows: np.ndarray) -> np.ndarray:
        return rows

    def slopes(self, theta: np.ndarray) -> np.ndarray:
        return theta

    def offset(self, theta: np.ndarray) -> Any:
        return -0.5 * (theta**2).sum(axis=1)

    def gradient_form(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.tile(np.eye(2), (len(theta), 1, 1)), -self.factor * theta


def test_an_exponential_family_uses_the_fast_kernels_and_its_form_is_checked() -> None:
    start = [0.5, 0.7]
    plain = dpmc.Model(2, Normal().log_likelihood, log_likelihood_gradient=RIGHT)
    for algorithm in ("dp-penalty", "dp-hmc"):
        assert sampled(Affine(), algorithm, start=start).attrs["evaluator"] == "affine"
    one, other = Affine(), Normal()
    theta, move = np.array([0.5, 0.7]), np.array([0.1, -0.2])
    ratios = [m.log_likelihood(theta + move, ROWS) - m.log_likelihood(theta, ROWS) for m in (one, other)]
    assert np.allclose(*ratios)
    assert np.allclose(one.log_likelihood_gradient(theta, ROWS), plain.log_likelihood_gradient(theta, ROWS))
    with pytest.raises(dpmc.DpmcError, match="(log_likelihood_gradient|gradient_form): component 0 is"):
        draws(Affine(factor=0.5), "dp-hmc", start=start)


LIKELIHOOD = Normal().log_likelihood


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: dpmc.Model(2, len, colour="red"),
            "Model: 'colour' is unknown; known: columns, codebook, parameters",
        ),
        (lambda: draws(dpmc.Model("two", LIKELIHOOD)), "dimension: 'two' must be a whole number"),
        (lambda: draws(dpmc.Model(2, LIKELIHOOD, columns=["a", "a"])), "columns: .* different names"),
        (lambda: draws(dpmc.Model(2, LIKELIHOOD, log_prior_gradient=np.negative)), "without log_prior"),
        (lambda: draws(dpmc.Model(2, LIKELIHOOD, parameters=["a"])), "parameters: .* 2 different"),
        (lambda: draws(dpmc.Model(2, lambda t, x: 1 / 0)), r"ZeroDivisionError: .*, test_models.py line"),
        (lambda: draws(42), "has no dimension"),
    ],
)
def test_mistakes_in_a_model(make: Any, words: str) -> None:
    with pytest.raises(dpmc.DpmcError, match=words) as caught:
        make()
    assert caught.value.__cause__ is None and "\n" not in str(caught.value)


def test_jax_takes_gradients_in_double_precision() -> None:
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    def density(theta: Any, rows: Any) -> Any:
        return -0.5 * ((rows - theta) ** 2).sum(axis=1)

    def prior(theta: Any) -> Any:
        return -0.5 * jnp.sum(theta**2)

    own = Normal()
    model = dpmc.Model(2, density, prior, gradient="jax")
    theta = np.array([0.1, 0.2])
    assert np.allclose(
        model.log_likelihood_gradient(theta, ROWS), own.log_likelihood_gradient(theta, ROWS), 1e-12
    )
    assert np.allclose(model.log_prior_gradient(theta), -theta, 1e-12)
    assert model.log_likelihood(theta, ROWS).dtype == np.float64
    start = np.zeros(2)
    assert np.allclose(draws(model, "dp-hmc", start=start)[0, 0], draws(model, "dp-hmc", start=start)[0, 0])
    assert jnp.zeros(1).dtype == np.float32  # JAX elsewhere is as it was
