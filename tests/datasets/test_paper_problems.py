"""The DP-HMC paper's models and data, regenerated: numbers of its code, how text and code differ."""

import inspect

import numpy as np
import pytest

from dpmc import models
from dpmc.data import datasets
from dpmc.models import published
from dpmc.models.gaussian import dp_hmc_covariance


@pytest.fixture(scope="module")
def problems():
    return {
        name: datasets.build(name, name, "published", starts=40)
        for name in ("paper-banana", "paper-banana-wide", "paper-gauss")
    }


def test_covariance_of_the_gaussian_is_the_papers(problems):
    covariance = np.linalg.inv(problems["paper-gauss"].model.precision)
    np.testing.assert_allclose(covariance, dp_hmc_covariance(), rtol=0.0, atol=1e-13)
    expected = [0.9059993382618482, -0.29852380313100857, 0.5244587422236118]
    np.testing.assert_allclose(covariance[0, :3], expected, rtol=0.0, atol=1e-13)
    assert np.linalg.eigvalsh(covariance)[[0, -1]] == pytest.approx([0.01267115375564109, 4.774418675230966])


def test_rows_are_the_papers(problems):
    gauss, banana = problems["paper-gauss"], problems["paper-banana"]
    assert gauss.rows.shape == (100_000, 10)
    first = [-1.3265537950957005, 3.371432499734434, -1.0210587751834215, 1.4545864608098449]
    np.testing.assert_allclose(gauss.rows[0, :4], first, rtol=0.0, atol=1e-11)
    last = [-1.0815510960844505, 2.155935772122432, -1.7284962509272908, -3.1967109352880696]
    np.testing.assert_allclose(gauss.rows[-1, -4:], last, rtol=0.0, atol=1e-11)
    assert banana.rows.shape == (100_000, 2)
    expected = [[7.4382614269080625, -34.443502149126076], [-52.951646205456356, 36.29617453438725]]
    np.testing.assert_allclose(banana.rows[[0, -1]], expected, rtol=0.0, atol=1e-11)
    np.testing.assert_array_equal(banana.rows, problems["paper-banana-wide"].rows)


def test_priors_are_those_of_code_and_text(problems):
    assert problems["paper-banana"].model.prior_variance == 1000.0
    assert problems["paper-banana-wide"].model.prior_variance == 1000.0**2
    gauss = problems["paper-gauss"].model
    assert (gauss.prior_variance, gauss.exact_prior_variance) == (100.0**2, 100.0)
    weight = 100_000 * gauss.precision
    exact = np.linalg.inv(weight + np.eye(10) / 100.0)
    np.testing.assert_allclose(problems["paper-gauss"].exact.posterior_covariance, exact, rtol=1e-9)


@pytest.mark.parametrize("name", ["paper-banana", "paper-gauss"])
def test_starts_follow_the_thesis_rule_and_each_run_has_four_of_its_own(problems, name):
    problem = problems[name]
    assert problem.starts.shape == (40, problem.dimension)
    scale = problem.exact.reference.std(axis=0).mean()
    np.testing.assert_array_equal(problem.starts, published.starts(problem.true_theta, scale, 40))
    assert len(np.unique(problem.starts[:, 0])) == 40
    again = datasets.build(name, name, "published", starts=4)
    np.testing.assert_array_equal(again.starts, problem.starts[:4])


def test_what_is_published_stands_in_the_catalogue():
    families = {"Banana": True, "Gaussian": True, "Circle": True, "Mixture": False, "Logistic": False}
    for name in models.MODELS:
        definition = models.definition(name)
        assert (definition.published_rows is not None) == families[type(definition.model).__name__]
    source = inspect.getsource(datasets)
    assert "isinstance" not in source and not any(family in source for family in families)
