"""Families of a regression: densities that integrate to one, scores, draws, and what a family must have."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dpmc
from dpmc.models import families
from dpmc.models.families import SUPPORTS, Bernoulli, NegativeBinomial, Normal, Poisson, log_base
from dpmc.models.own import given_model
from dpmc.releases import files as release_files

FAMILIES = [Normal(), Normal(0.3), Bernoulli(), Poisson(), NegativeBinomial(0.4), NegativeBinomial(1e-9)]
API = Path(__file__).parents[2] / "docs/reference/api.md"
ETA = np.array([-1.5, 0.0, 0.4, 2.0])
OUTCOMES = {"counts": np.arange(2000.0), "binary": np.arange(2.0), "real": np.array([-1.0, 0.2, 3.0])}
OUTCOMES["positive"] = np.array([0.1, 1.0, 3.0])


def density(family: Any, eta: float, y: np.ndarray) -> Any:
    return np.exp(family.log_density(np.full(len(y), eta), y) + log_base(family, y))


def test_every_family_is_tested_here_and_on_the_page_of_the_interface() -> None:
    own = {
        name for name, kind in vars(families).items() if getattr(kind, "__module__", "") == families.__name__
    }
    known = {name for name in own if isinstance(getattr(getattr(families, name), "support", None), str)}
    assert known == {type(family).__name__ for family in FAMILIES}, "FAMILIES of this file"
    (listed,) = re.findall(
        r"automodule:: dpmc.models.families\n +:members: (.*)", API.read_text(encoding="utf-8")
    )
    assert known - set(listed.split(", ")) == set(), "families without a place in docs/reference/api.md"


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_densities_are_one_in_all_and_draws_have_their_moments(family: Any) -> None:
    for eta in ETA:
        y = OUTCOMES[family.support]
        if family.support in ("real", "positive"):
            mean = family.mean(np.array([eta]))[0]
            ends = (eta - 9.0, eta + 9.0) if family.support == "real" else (1e-9 * mean, 40.0 * mean)
            grid = np.linspace(*ends, 4001 if family.support == "real" else 400_001)
            total = np.trapezoid(density(family, eta, grid), grid)
        else:
            total = density(family, eta, y).sum()
            assert (density(family, eta, y) * y).sum() == pytest.approx(family.mean(np.array([eta]))[0])
        assert total == pytest.approx(1.0, abs=1e-7)
        drawn = family.draw(np.random.default_rng(1), np.full(20_000, eta))
        error = drawn.std() / np.sqrt(len(drawn))
        assert abs(drawn.mean() - family.mean(np.array([eta]))[0]) < 4.5 * error
        assert SUPPORTS[family.support][0](drawn).all()


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_the_score_is_the_derivative_of_the_log_density(family: Any) -> None:
    for y in OUTCOMES[family.support][:9]:
        at, h = np.full(len(ETA), y), 1e-6
        slope = (family.log_density(ETA + h, at) - family.log_density(ETA - h, at)) / (2.0 * h)
        np.testing.assert_allclose(family.score(ETA, at), slope, rtol=1e-6, atol=1e-6)


def test_the_negative_binomial_has_the_dispersion_of_statsmodels_and_nears_poisson() -> None:
    y, mean = OUTCOMES["counts"][:40], 3.0
    wanted = stats.nbinom.pmf(y, 1.0 / 0.7, 1.0 / (1.0 + 0.7 * mean))
    np.testing.assert_allclose(density(NegativeBinomial(0.7), np.log(mean), y), wanted, rtol=1e-10)
    drawn = NegativeBinomial(0.7).draw(np.random.default_rng(1), np.full(200_000, np.log(mean)))
    assert drawn.var() == pytest.approx(mean + 0.7 * mean**2, rel=0.03)
    few = density(NegativeBinomial(1e-9), np.log(mean), y)
    np.testing.assert_allclose(few, stats.poisson.pmf(y, mean), rtol=1e-5)


def test_far_positions_give_numbers_or_minus_infinity_and_no_nan() -> None:
    eta, y = np.array([-1e3, 1e3, -1e3, 1e3]), np.array([0.0, 0.0, 7.0, 7.0])
    for family in (Normal(), Bernoulli(), NegativeBinomial(0.5)):
        outcomes = np.minimum(y, 1.0)
        assert np.isfinite(family.log_density(eta, outcomes)).all()
        assert np.isfinite(family.score(eta, outcomes)).all()
    assert np.isfinite(NegativeBinomial(0.5).draw(np.random.default_rng(1), eta)).all()


def lacking(name: str, **attributes: Any) -> Any:
    functions = {each: getattr(Poisson, each) for each in ("log_density", "score", "mean", "draw")}
    kept = {key: value for key, value in functions.items() if key != name}
    return type("Own", (), {"support": "counts", **kept, **attributes})()


@pytest.mark.parametrize(
    ("family", "words"),
    [
        *((lacking(name), f"family: Own has no {name}; a family has support, log_density, score, mean, draw")
          for name in ("log_density", "score", "mean", "draw")),
        (lacking("", support="whole"), "family: Own: support: 'whole' must be one of real, positive, counts"),
        (lacking("", support=None), "family: Own: support: None must be one of"),
        (Poisson, r"family: Poisson is a class: give an instance, Poisson\(\)"),
        (Normal(0.0), "family: Normal: sd: 0 must be greater than 0"),
        (NegativeBinomial(-1.0), "family: NegativeBinomial: dispersion: -1 must be greater than 0"),
        (Normal(None), r"family: Normal\(sd=None\): an unknown sd is a parameter of LinearRegression alone"),
    ],
)  # fmt: skip
def test_a_family_that_lacks_something_is_refused_in_one_line(family: Any, words: str) -> None:
    with pytest.raises(dpmc.DpmcError, match=f"^Regression: {words}") as caught:
        dpmc.Regression("y", ["x"], family=family)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("support", "wrong", "rule"),
    [
        ("positive", 0.0, "greater than 0"),
        ("counts", 0.5, "a whole number, at least 0"),
        ("counts", -1.0, "a whole number, at least 0"),
        ("binary", 2.0, "0 or 1"),
    ],
)
def test_the_support_says_which_outcomes_are_refused(support: str, wrong: float, rule: str) -> None:
    model = dpmc.Regression("y", ["x"], family=lacking("", support=support))
    model.check_rows(np.array([[1.0, -7.5]]))
    with pytest.raises(dpmc.DpmcError, match=f"outcome y: {wrong:g} in row 2 must be {rule}"):
        model.check_rows(np.array([[1.0, -7.5], [wrong, 0.0]]))
    dpmc.Regression("y", ["x"], family=Normal()).check_rows(np.array([[wrong, 0.0]]))


def test_a_release_of_a_negative_binomial_regression_is_known_by_its_description() -> None:
    model = dpmc.NegativeBinomialRegression("y", {"x": (1.0, 2.0)}, dispersion=0.5, norm=2.0)
    known = release_files.known_model(model.description, given_model(model)[0]).model
    assert repr(known) == repr(model) and isinstance(known, dpmc.NegativeBinomialRegression)
    general = dpmc.Regression("y", ["x"], family=Poisson())
    assert release_files.known_model(general.description, given_model(general)[0]) is None


def test_a_regression_with_a_family_of_dpmc_is_that_of_its_class() -> None:
    general = dpmc.Regression("y", {"x": (1.0, 2.0)}, family=Normal(0.5), true_theta=[0.1, 0.2])
    special = dpmc.LinearRegression("y", {"x": (1.0, 2.0)}, sd=0.5, true_theta=[0.1, 0.2])
    rows = general.simulate(np.random.default_rng(1), general.true_theta, 50)
    np.testing.assert_array_equal(rows, special.simulate(np.random.default_rng(1), general.true_theta, 50))
    for name in ("log_likelihood", "log_likelihood_gradient"):
        found, wanted = (getattr(model, name)(general.true_theta, rows) for model in (general, special))
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
    assert repr(general).endswith("family=Normal(sd=0.5), true_theta=[0.1, 0.2])")
