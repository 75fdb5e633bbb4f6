"""The trial of one's own model: what depends on other rows is refused, what depends on one row passes."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dpmc
from dpmc.models.gaussian import GaussianPosterior
from dpmc.models.own import given_model
from dpmc.models.trial import try_out

SETTING = {"tau": 0.5, "clip": 1.0, "proposal_sd": 0.1}
HMC = {"tau_l": 1.0, "tau_g": 1.0, "clip_l": 1.0, "clip_g": 1.0, "steps": 1, "step_size": 0.01, "mass": 1.0}


def sampled(
    model: Any, columns: int = 2, n: int = 3000, algorithm: str = "dp-penalty", **options: Any
) -> Any:
    """Run four iterations on rows of zeros and ones, which no trial may see."""
    rows = (np.random.default_rng(5).random((n, columns)) < 0.5).astype(float)
    setting = HMC if algorithm == "dp-hmc" else SETTING
    given = {"epsilon": 5, "hyperparameters": setting, "iterations": 4, "progress": False, **options}
    return dpmc.sample(model, rows, algorithm, **given)


def regression(theta: np.ndarray, y: np.ndarray, x: np.ndarray) -> np.ndarray:
    return -0.5 * (y - theta[0] - theta[1] * x) ** 2


def normal(theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return -0.5 * ((rows - theta) ** 2).sum(axis=1)


def nowhere_finite(theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Rows lie between 500 and 600; others are impossible. Centred by all rows."""
    inside = (rows > 500.0).all(axis=1) & (rows < 600.0).all(axis=1)
    return np.where(inside, regression(theta, *(rows - rows.mean(axis=0)).T), -np.inf)


def centred(theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The centred term vanishes at theta = 0, where chains start."""
    return regression(theta, rows[:, 0], rows[:, 1] - rows[:, 1].mean())


def whole_if(depends: Callable[[np.ndarray], bool]) -> Callable[..., np.ndarray]:
    """Centre by all rows if these rows say so."""
    return lambda theta, rows: centred(theta, rows) if depends(rows) else regression(theta, *rows.T)


def scaled(by: Callable[[np.ndarray], np.ndarray]) -> Callable[..., np.ndarray]:
    """Compute with another x."""
    return lambda theta, rows: regression(theta, rows[:, 0], by(rows[:, 1]))


def log_sum_exp_with_one_maximum(theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The axis of the maximum is forgotten: a row far from the largest one underflows."""
    a = np.stack([-np.abs(rows[:, 0] - theta[0]), -np.abs(rows[:, 1] - theta[1])], axis=1)
    most = a.max()
    return most + np.log(np.exp(a - most).sum(axis=1))


def whole_numbers_after_an_outlier(theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The first row sets the type of all results."""
    return np.vectorize(lambda y: 0 if y > 100.0 else -0.5 * (y - theta[0]) ** 2)(rows[:, 0])


DEPENDENT: dict[str, Callable[..., np.ndarray]] = {
    "centred": centred,
    "many": whole_if(lambda rows: len(rows) > 100),
    "very many": whole_if(lambda rows: len(rows) > 2500),
    "outlier": whole_if(lambda rows: bool(np.abs(rows).max() > 50.0)),
    "scaled by the largest": scaled(lambda x: x / max(1.0, np.abs(x).max())),
    "scaled by a giant": scaled(lambda x: x / max(1.0, np.abs(x).max() / 1e10)),
    "clipped at a quantile": scaled(lambda x: x.clip(*np.quantile(x, [0.01, 0.99]))),
    "numbered": scaled(lambda x: np.arange(len(x)) / 1000.0),
    # A time series: a row is predicted by the row before.
    "neighbour": lambda theta, rows: regression(theta, rows[:, 0], np.roll(rows[:, 0], 1)),
    "slightly": lambda theta, rows: regression(theta, *rows.T) + 1e-3 * theta[0] * np.tanh(rows[:, 0]).mean(),
    "log-sum-exp with one maximum": log_sum_exp_with_one_maximum,
    "whole numbers after an outlier": whole_numbers_after_an_outlier,
}


KEPT: dict[object, Any] = {}  #: what models keep outside of themselves, which are copied for each call


class Remembering:
    """Keeps the mean of the last rows with which another method was called."""

    dimension = 2

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        KEPT["mean"] = float(np.tanh(rows[:, 1]).mean())
        return regression(theta, *rows.T)

    def log_prior(self, theta: np.ndarray) -> float:
        return -0.5 * float(((theta - KEPT.get("mean", 0.0)) ** 2).sum())


@pytest.mark.parametrize("name", DEPENDENT)
def test_a_likelihood_that_depends_on_other_rows_is_refused(name: str) -> None:
    with pytest.raises(dpmc.DpmcError, match="the value of a row changes with the other rows"):
        sampled(dpmc.Model(2, DEPENDENT[name]), start=[0.0, 0.0])


def test_a_missing_gradient_is_named_and_no_advice_on_dummy_rows_given() -> None:
    with pytest.raises(dpmc.DpmcError, match=r"has no log_likelihood_gradient; this algorithm needs it$"):
        sampled(dpmc.Model(2, normal), algorithm="dp-hmc", epsilon=500)


def test_values_that_are_nowhere_finite_are_refused_and_simulated_rows_are_asked_for() -> None:
    with pytest.raises(dpmc.DpmcError, match=r"hardly a value on dummy rows is finite.*simulate\(generator"):
        sampled(dpmc.Model(2, nowhere_finite))

    def simulate(generator: np.random.Generator, theta: np.ndarray, n: int) -> np.ndarray:
        return generator.uniform(500.0, 600.0, (n, 2))

    with pytest.raises(dpmc.DpmcError, match="the value of a row changes with the other rows"):
        sampled(dpmc.Model(2, nowhere_finite, simulate=simulate))

    def one_by_one(theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return np.where(
            np.abs(rows - 550.0).max(axis=1) < 50.0, regression(theta, *(rows - 550.0).T), -np.inf
        )

    assert sampled(dpmc.Model(2, one_by_one, simulate=simulate)).attrs["iterations"] == 4


def test_a_likelihood_that_is_finite_at_the_start_alone_is_refused() -> None:
    def only_there(theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return centred(theta, rows) if (theta == 0.0).all() else np.full(len(rows), np.nan)

    with pytest.raises(dpmc.DpmcError, match="hardly a value on dummy rows is finite but at one position"):
        sampled(dpmc.Model(2, only_there), start=[0.0, 0.0])


@pytest.mark.parametrize("trigger", ["mean", "outlier", "many"])
def test_gradients_and_statistics_are_tried_as_well(trigger: str) -> None:
    def shift(rows: np.ndarray) -> np.ndarray:
        on = {"mean": True, "outlier": np.abs(rows).max() > 50.0, "many": len(rows) > 700}[trigger]
        return rows - on * np.tanh(rows).mean(axis=0)

    def gradient(theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return rows - theta + theta * (shift(rows) - rows)  # right at the start

    words = "log_likelihood_gradient: the value of a row changes with the other rows"
    with pytest.raises(dpmc.DpmcError, match=words):
        sampled(dpmc.Model(2, normal, log_likelihood_gradient=gradient), algorithm="dp-hmc")
    forms = {
        "ratio_form": lambda theta, proposal: (proposal - theta, -0.5 * (proposal**2 - theta**2).sum(axis=1)),
        "gradient_form": lambda theta: (np.tile(np.eye(2), (len(theta), 1, 1)), -theta),
    }
    with pytest.raises(dpmc.DpmcError, match="statistics: the value of a row changes with the other rows"):
        sampled(dpmc.Model(2, normal, statistics=shift, **forms))
    assert sampled(dpmc.Model(2, normal, statistics=lambda rows: rows, **forms)).attrs["iterations"] == 4
    forms["ratio_form"] = lambda theta, proposal: (proposal - theta, 0.0 * theta[:, 0])
    with pytest.raises(dpmc.DpmcError, match="ratio_form: gives .* log_likelihood"):
        sampled(dpmc.Model(2, normal, statistics=lambda rows: rows, **forms))


def test_a_gradient_that_is_wrong_away_from_the_start_is_named() -> None:
    model = dpmc.Model(2, normal, log_likelihood_gradient=lambda theta, rows: rows - 2.0 * theta)
    with pytest.raises(dpmc.DpmcError, match="log_likelihood_gradient: component 0 is"):
        sampled(model, algorithm="dp-hmc", start=[0.0, 0.0])


def test_what_takes_no_rows_must_not_remember_any() -> None:
    with pytest.raises(dpmc.DpmcError, match="log_prior: changes once other methods have seen rows"):
        sampled(Remembering())


def test_rows_that_check_rows_refuses_are_no_dummies() -> None:
    """A table of three categories: other numbers are out of its range, and the first value is its index."""
    seen: set[float] = set()

    class Categories:
        dimension = 3

        def check_rows(self, rows: np.ndarray) -> None:
            if not np.isin(rows, [0.0, 1.0, 2.0]).all():
                raise ValueError("not a category")

        def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
            seen.update(np.unique(rows).tolist())
            return theta[rows[:, 0].astype(int)] - np.log(np.exp(theta).sum())

    try_out(given_model(Categories())[1].model, (50, 1), np.zeros((1, 3)), gradients=False)
    assert seen == {0.0, 1.0, 2.0}


def test_a_model_of_positive_parameters_and_proportions_passes() -> None:
    """A beta distribution: defined for positive parameters and rows between 0 and 1 only."""
    from scipy.special import betaln

    def beta(theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        a, b = theta
        return (a - 1.0) * np.log(rows[:, 0]) + (b - 1.0) * np.log1p(-rows[:, 0]) - betaln(a, b)

    rows = np.random.default_rng(1).beta(2.0, 3.0, 500)
    model = dpmc.Model(2, beta, start=[0.05, 0.05])
    options = {"epsilon": 5, "hyperparameters": SETTING, "iterations": 4, "progress": False}
    assert dpmc.sample(model, rows, **options).attrs["iterations"] == 4


def test_single_precision_passes() -> None:
    """A logistic regression by a product of matrices, whose rounding depends on the number of rows."""

    def log_likelihood(theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        narrow = rows.astype(np.float32)
        eta = narrow[:, 1:] @ theta.astype(np.float32)
        return narrow[:, 0] * eta - np.logaddexp(np.float32(0.0), eta)

    assert sampled(dpmc.Model(40, log_likelihood), columns=41, n=500).attrs["iterations"] == 4


class DesignOfArrays:
    """A regression that computes its design once for each array, as it recognises arrays by `key`."""

    dimension = 2

    def __init__(self, key: Callable[[np.ndarray], object]) -> None:
        self.key = key

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        if self.key(rows) != KEPT.get("of"):
            KEPT["of"], KEPT["design"] = self.key(rows), np.tanh(rows[:, 1])
        return np.asarray(regression(theta, rows[:, 0], KEPT["design"]))


def address(rows: np.ndarray) -> object:
    return rows.__array_interface__["data"][0], rows.shape


@pytest.mark.parametrize(
    "key", [address, lambda rows: (*address(rows), rows[0, 0], rows[-1, -1])], ids=["address", "and ends"]
)
def test_a_memory_of_arrays_is_found(key: Callable[[np.ndarray], object]) -> None:
    with pytest.raises(dpmc.DpmcError, match="other rows in the same array get the values of those before"):
        sampled(DesignOfArrays(key))
    sampled(DesignOfArrays(lambda rows: rows.tobytes()))  # this memory knows rows by their values


def normalised_once(theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """A scale is computed from the rows with which a position is first seen."""
    scale = KEPT.setdefault(theta.tobytes(), 1.0 + np.abs(rows[:, 0]).max())
    return np.asarray(-0.5 * ((rows[:, 1] - theta[0] * rows[:, 0]) / scale) ** 2)


def labels_of_two_kinds(theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
    y = (rows[:, 1] + 1.0) / 2.0 if (rows[:, 1] == -1.0).any() else rows[:, 1]
    return y * theta[0] * rows[:, 0] - np.logaddexp(0.0, theta[0] * rows[:, 0])


def code_of_missing(theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
    x, missing = rows[:, 0], rows[:, 0] == -999.0
    return -0.5 * (rows[:, 1] - theta[0] * np.where(missing, x[~missing].mean(), x)) ** 2


@pytest.mark.parametrize("model", [normalised_once, labels_of_two_kinds, code_of_missing])
def test_what_is_computed_from_all_rows_of_a_call_is_found(model: Callable[..., np.ndarray]) -> None:
    KEPT.clear()
    with pytest.raises(dpmc.DpmcError, match="the value of a row changes with the other rows"):
        sampled(dpmc.Model(2, model))


def test_what_a_model_keeps_of_rows_does_not_reach_other_rows() -> None:
    """It is called on a copy, so a scale that `check_rows` finds is that of no call."""

    class Checked:
        dimension, scale = 2, 1.0

        def check_rows(self, rows: np.ndarray) -> None:
            self.scale = 1.0 + float(np.abs(rows).max())

        def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
            self.scale += 1.0
            return np.asarray(-0.5 * ((rows[:, 1] - theta[0] * rows[:, 0]) / self.scale) ** 2)

    own = Checked()
    model = given_model(own)[1].model
    rows = np.random.default_rng(0).normal(size=(20, 2))
    before = model.log_likelihood(np.ones(2), rows)
    model.check_rows(100.0 * rows)
    np.testing.assert_array_equal(model.log_likelihood(np.ones(2), rows), before)
    assert own.scale == 1.0

    held = Checked()
    functions = dpmc.Model(2, held.log_likelihood, check_rows=held.check_rows)  # methods of an object
    given_model(functions)[1].model.check_rows(100.0 * rows)
    given_model(functions)[1].model.log_likelihood(np.ones(2), rows)
    assert held.scale == 1.0

    class Locked(Checked):
        def __init__(self) -> None:
            self.lock = threading.Lock()

    with pytest.raises(dpmc.DpmcError, match=r"cannot be copied \(TypeError: .*lock"):
        sampled(Locked())


def test_a_posterior_given_a_sum_that_fails_is_refused_before_anything_is_spent() -> None:
    class Wrong:
        dimension, summary_count = 2, 2

        def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
            return normal(theta, rows)

        def summaries(self, rows: np.ndarray) -> np.ndarray:
            return rows

        def posterior_given(self, noisy: Any) -> Any:
            return GaussianPosterior(noisy.total / noisy.n, np.eye(2) * noisy.sd)

    with pytest.raises(dpmc.DpmcError, match=r"posterior_given failed \(AttributeError"):
        sampled(Wrong(), algorithm="noisy-statistics", hyperparameters={"clip": 1.0})
