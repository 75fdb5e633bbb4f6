"""The regenerated data sets against numbers of the published experiments.

Rows: numbers drawn once with JAX 0.10.2 (64-bit mode, ``jax_threefry_partitionable`` off), whose
leading digits are those of the published data. Starting points: read off the thesis's Figure 5.1,
whose vector paths give them with errors up to about 1e-9, mostly one common shift of the panel.
"""

import numpy as np
import pytest

from dpmc.common import threefry
from dpmc.models import published
from dpmc.models.banana import Banana, BananaPosterior

TRUE_THETA = np.array([0.0, 3.0])
BANANA_SIGMA2 = np.array([20.0, 2.5])
CORRELATED = np.array([[1.0, 0.999], [0.999, 1.0]])
READING_ERROR = 2e-9

# Chains 0, 1, 5, 12 and 19 of Figure 5.1.
CHAINS = [0, 1, 5, 12, 19]
FIGURE_5_1 = {
    "flat-banana-2d": [
        (-0.003540898562, 2.988512792),
        (0.002007666162, 2.999847103),
        (0.01849015298, 2.984146621),
        (-6.139013466e-05, 3.002523071),
        (0.004884195154, 2.998864299),
    ],
    "narrow-banana": [
        (-0.01588122984, 2.948478901),
        (0.009004552714, 2.999314245),
        (0.08292990157, 2.928896254),
        (-0.0002753399548, 3.01131619),
        (0.02190602878, 2.994906285),
    ],
    "tempered-banana-2d": [
        (-0.09956307207, 2.677002416),
        (0.05645160297, 2.995700843),
        (0.5199065597, 2.554234317),
        (-0.001726171261, 3.070943785),
        (0.1373339137, 2.968066329),
    ],
    "correlated-gauss": [
        (-0.0006468289768, 2.99790159),
        (0.0003667477195, 2.99997207),
        (0.003377664121, 2.997104005),
        (-1.121439325e-05, 3.000460899),
        (0.0008922138351, 2.999792537),
    ],
    "circle": [
        (-0.2847615546, 0.07619067346),
        (0.1614579202, 0.987703929),
        (1.486991094, -0.2749398627),
        (-0.004937041377, 1.202907186),
        (0.3927904034, 0.9086661198),
    ],
}


def banana_problem(d):
    """Likelihood variances and true parameters of the thesis's d-dimensional bananas."""
    return np.append(BANANA_SIGMA2, np.ones(d - 2)), np.append(TRUE_THETA, np.zeros(d - 2))


def banana_reference(rows, sigma2, a, tempering=1.0):
    """1,000 reference draws, posterior parameters by Theorem 5.2, prior variance 1000."""
    precision = tempering * len(rows) / sigma2
    variance = 1 / (precision + 1 / 1000)
    mu = precision * rows.mean(axis=0) * variance
    posterior = BananaPosterior(mu, variance, Banana(a, 0.0, 0.0, sigma2, 1000.0))
    return posterior.draws(published.normals(published.posterior_keys("banana")[0]), 1000)


def banana_rows(n, sigma2, theta, a):
    generator = published.normals(threefry.key_of_seed(published.BANANA_SEED))
    return Banana(a, 0.0, 0.0, sigma2, 1000.0).simulate(generator, theta, n)


def gaussian_reference(rows, covariance, prior_variance):
    """1,000 reference draws of the conjugate posterior with prior N(0, prior_variance I)."""
    likelihood = len(rows) * np.linalg.inv(covariance)
    variance = np.linalg.inv(likelihood + np.eye(len(covariance)) / prior_variance)
    mean = variance @ likelihood @ rows.mean(axis=0)
    return threefry.multivariate_normal(published.posterior_keys("gaussian")[0], mean, variance, 1000)


def spread(draws):
    """The published scale of starting points."""
    return draws.std(axis=0).mean()


@pytest.fixture(scope="module")
def correlated_rows():
    key = threefry.key_of_seed(published.GAUSSIAN_SEED)
    return threefry.multivariate_normal(key, TRUE_THETA, CORRELATED, 200000)


@pytest.mark.parametrize(
    ("n", "d", "a", "first", "last"),
    [
        (100000, 2, 20, [0.7438261426908063, 1.815932496353519], [-5.295164620545635, 4.052917488991601]),
        (150000, 2, 350, [3.662561424110687, 2.418388252645286], [-2.3641931938200886, 1.7782580257131464]),
        (
            200000,
            10,
            20,
            [5.810160441063176, 1.9240833591848248, -0.15386497251305817, -1.583554508129629],
            [1.1441881674659562, -0.7831102397462664, -0.2448295415144861, -1.0070233748189328],
        ),
        (
            200000,
            30,
            0,
            [5.810160441063176, 1.9240833591848248, 0.07984603789906623, 0.6800056617824296],
            [0.9032340520203771, 0.4668804896684869, 0.16548472086846294, -0.01563384084559205],
        ),
    ],
    ids=["flat-banana-2d", "narrow-banana", "flat-banana-10d", "gauss-30d"],
)
def test_banana_rows(n, d, a, first, last):
    sigma2, true_theta = banana_problem(d)
    rows = banana_rows(n, sigma2, true_theta, a)
    assert rows.shape == (n, d)
    np.testing.assert_allclose(rows[0, : len(first)], first, rtol=0, atol=1e-12)
    np.testing.assert_allclose(rows[-1, -len(last) :], last, rtol=0, atol=1e-12)


def test_circle_rows():
    rows = published.circle_rows(100000)
    assert rows.shape == (100000, 1)
    expected = [4.248300739178053, 3.7493758806707143]
    np.testing.assert_allclose(rows[[0, -1], 0], expected, rtol=0, atol=1e-13)
    assert (rows**2).mean() == pytest.approx(9.97627, abs=5e-6)


def test_correlated_gaussian_rows(correlated_rows):
    assert correlated_rows.shape == (200000, 2)
    expected = [[-0.9637364841366326, 1.9793978086193325], [-0.5781598480604021, 2.4445681773041024]]
    np.testing.assert_allclose(correlated_rows[[0, -1]], expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("model", "n", "a", "tempering"),
    [
        ("flat-banana-2d", 100000, 20, 1.0),
        ("narrow-banana", 150000, 350, 1.0),
        ("tempered-banana-2d", 100000, 20, 0.01),
    ],
)
def test_banana_starts_are_those_of_figure_5_1(model, n, a, tempering):
    rows = banana_rows(n, BANANA_SIGMA2, TRUE_THETA, a)
    draws = banana_reference(rows, BANANA_SIGMA2, a, tempering)
    starts = published.starts(TRUE_THETA, spread(draws))
    np.testing.assert_allclose(starts[CHAINS], FIGURE_5_1[model], rtol=0, atol=READING_ERROR)


def test_starts_of_the_circle_and_the_correlated_gaussian_are_those_of_figure_5_1(correlated_rows):
    draws = gaussian_reference(correlated_rows, CORRELATED, prior_variance=100)
    for model, centre, scale in (
        ("circle", [0, 1], 1.0),
        ("correlated-gauss", TRUE_THETA, spread(draws)),
    ):
        starts = published.starts(centre, scale)
        np.testing.assert_allclose(starts[CHAINS], FIGURE_5_1[model], rtol=0, atol=READING_ERROR)


def test_prior_variance_of_the_correlated_gaussian_is_100_and_not_100_squared(correlated_rows):
    # The slope of the published theta_1 on the chains' normals is the scale, free of the shift:
    # it tells apart two priors whose scales differ by a relative 5e-8.
    normals = published.starts([0.0, 0.0], 1.0)[CHAINS, 0]
    theta_1 = np.array(FIGURE_5_1["correlated-gauss"])[:, 0]
    slope = np.polynomial.Polynomial.fit(normals, theta_1, 1).convert().coef[1]
    scales = {
        variance: spread(gaussian_reference(correlated_rows, CORRELATED, variance))
        for variance in (100.0, 100.0**2)
    }
    assert slope == pytest.approx(scales[100.0], rel=1e-9)
    assert slope != pytest.approx(scales[100.0**2], rel=2e-8)
