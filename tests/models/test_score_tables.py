"""Tables of bounded scores against SciPy's distributions: mean 0, slope, bound; families that do not fit."""

import functools
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

import dpmc
from dpmc.models import score_tables
from dpmc.models.families import Bernoulli, NegativeBinomial, Normal, Poisson


class Gamma:
    """Outcomes of shape 2 and mean e^η: a family of one's own."""

    support = "positive"

    def log_density(self, eta: np.ndarray, y: np.ndarray) -> np.ndarray:
        return -2.0 * (eta + y * np.exp(-eta))

    def log_base(self, y: np.ndarray) -> np.ndarray:
        return np.log(4.0 * y)

    def score(self, eta: np.ndarray, y: np.ndarray) -> np.ndarray:
        return 2.0 * (y * np.exp(-eta) - 1.0)

    def mean(self, eta: np.ndarray) -> np.ndarray:
        return np.exp(eta)

    def draw(self, generator: np.random.Generator, eta: np.ndarray) -> np.ndarray:
        return generator.gamma(2.0, 0.5 * np.exp(eta))


class StudentT(Gamma):
    """Outcomes around η, with t-distributed errors of 4 degrees of freedom: a location family."""

    support, is_location = "real", True

    def log_density(self, eta: np.ndarray, y: np.ndarray) -> np.ndarray:
        return -2.5 * np.log1p((y - eta) ** 2 / 4.0)

    def log_base(self, y: np.ndarray) -> np.ndarray:
        return np.full(len(y), gammaln(2.5) - gammaln(2.0) - 0.5 * np.log(4.0 * np.pi))

    def score(self, eta: np.ndarray, y: np.ndarray) -> np.ndarray:
        return 5.0 * (y - eta) / (4.0 + (y - eta) ** 2)

    def mean(self, eta: np.ndarray) -> np.ndarray:
        return eta

    def draw(self, generator: np.random.Generator, eta: np.ndarray) -> np.ndarray:
        return eta + generator.standard_t(4.0, len(eta))


#: By name: a family, SciPy's distribution at η, and values of η off the nodes.
FAMILIES: dict[str, tuple[Any, Any, tuple[float, ...]]] = {
    "normal": (Normal(0.7), lambda eta: stats.norm(eta, 0.7), (-3.1, 0.0, 7.123)),
    "logistic": (Bernoulli(), lambda eta: stats.bernoulli(1.0 / (1.0 + np.exp(-eta))), (-4.004, 0.007, 2.31)),
    "poisson": (Poisson(), lambda eta: stats.poisson(np.exp(eta)), (-2.003, 0.0041, 1.7777, 3.511)),
    "negative binomial": (
        NegativeBinomial(0.5),
        lambda eta: stats.nbinom(2.0, 1.0 / (1.0 + 0.5 * np.exp(eta))),
        (-2.003, 0.0041, 1.7777),
    ),
    "gamma": (Gamma(), lambda eta: stats.gamma(2.0, scale=0.5 * np.exp(eta)), (-1.003, 0.0041, 2.0047)),
    "student": (StudentT(), lambda eta: stats.t(4.0, eta), (-1.003, 0.5)),
}
QUICK = ("normal", "logistic", "student")  #: tables that take no time


@functools.cache
def table_of(name: str, clip: float) -> score_tables.ScoreTable:
    return score_tables.ScoreTable(FAMILIES[name][0], clip)


def outcomes(law: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return outcomes of a distribution and their probabilities: all, or midpoints of equal ones."""
    if hasattr(law, "pmf"):
        y = np.arange(law.ppf(1.0 - 1e-15) + 20.0)
        y = y[law.pmf(y) > 0.0]
        return y, law.pmf(y)
    m = 200_000
    return law.ppf((np.arange(m) + 0.5) / m), np.full(m, 1.0 / m)


def faults_of(name: str, clip: float, anew: bool = False) -> list[str]:
    """Return where a table differs from the distributions: mean, slope, bound, information, variance."""
    family, law, etas = FAMILIES[name]
    table = score_tables.ScoreTable(family, clip) if anew else table_of(name, clip)
    found = []
    for eta in etas:

        def at(y: np.ndarray, eta: float = eta) -> Any:
            return table.at(np.full(len(y), eta), y)

        (y, p), step = outcomes(law(eta)), 1e-3
        own = at(y)
        # h is a function of y alone in a neighbourhood of η, so that its mean can be differentiated.
        ends = [
            float(weights @ at(ys).clipped)
            for ys, weights in map(outcomes, (law(eta + step), law(eta - step)))
        ]
        wanted = {
            "mean": (float(p @ own.h), 0.0, 1e-6),
            "slope": (own.slope[0], (ends[0] - ends[1]) / (2.0 * step), 2e-4 * own.root[0]),
            "information": (
                own.root[0] ** 2,
                float(p @ family.score(np.full(len(y), eta), y) ** 2),
                0.02 * own.root[0] ** 2,
            ),
            "variance": (score_tables.reference(family, clip, eta).variance, float(p @ own.h**2), 0.01),
        }
        found += [
            f"{what} at {eta}: {a}, {b}" for what, (a, b, most) in wanted.items() if not abs(a - b) <= most
        ]
        seen = float(np.abs(own.h).max())
        # Largest among 20,001 outcomes of a quadrature: 4.5e-7 below the largest if that is at a peak.
        if not (seen <= own.bound[0] * (1.0 + 5e-7) and own.known.all()):
            found.append(f"bound at {eta}: {own.bound[0]}, {seen}")
        # A bound above what is seen costs noise; counts above those enumerated may reach it.
        if own.bound[0] > seen + (1e-2 * clip if name in QUICK else 1.0):
            found.append(f"bound at {eta} is too large: {own.bound[0]}, {seen}")
    return found


@pytest.mark.parametrize(
    ("name", "clip"),
    [
        pytest.param(name, clip, marks=[pytest.mark.slow] if name not in QUICK and clip != 1.5 else [])
        for name in FAMILIES
        for clip in (0.5, 1.5, 3.0)
    ],
)
def test_bounded_scores_have_mean_0_and_slope_and_bound_of_the_distribution(name: str, clip: float) -> None:
    assert faults_of(name, clip) == []


@pytest.mark.parametrize("name", ["normal", "student"])
def test_scores_of_a_location_family_depend_on_the_difference_alone(name: str) -> None:
    y = np.linspace(-4.0, 4.0, 81)
    here, there = (table_of(name, 1.5).at(np.full(81, eta), y + eta) for eta in (0.0, 1234.5))
    for some, others in zip(here, there, strict=True):
        np.testing.assert_allclose(some, others, rtol=1e-9, atol=1e-9)
    family = FAMILIES[name][0]
    at = [score_tables.reference(family, 1.5, eta) for eta in (-7.0, 3.0)]
    np.testing.assert_allclose(*at, rtol=1e-9)


def test_what_a_family_cannot_have_and_what_is_beyond_the_table_is_not_known() -> None:
    y = np.array([0.0, 1.0, 7.0, 0.5, -1.0, np.nan, np.inf])
    wanted = {
        "logistic": [1, 1, 0, 0, 0, 0, 0],
        "poisson": [1, 1, 1, 0, 0, 0, 0],
        "normal": [1, 1, 1, 1, 1, 0, 0],
    }
    for name, known in wanted.items():
        table = table_of(name, 1.5)
        with np.errstate(all="ignore"):
            assert table.at(np.full(7, 0.3), y).known.tolist() == known
            far = np.array([np.nan, np.inf, -np.inf, 1e3, -1e3])
            assert not table.at(far, np.ones(5)).known[: 3 if name == "normal" else 5].any()
        assert (table.root(far)[: 3 if name == "normal" else 5] == 0.0).all()


def test_what_a_family_keeps_of_some_rows_reaches_no_others() -> None:
    class Remembering(StudentT):
        most = 0.0

        def score(self, eta: np.ndarray, y: np.ndarray) -> np.ndarray:
            self.most = max(self.most, float(np.max(y - 2e5)))
            return super().score(eta, y) + self.most

    table = score_tables.ScoreTable(Remembering(), 1.5)
    before = table.at(np.zeros(1), np.ones(1)).h
    table.at(np.zeros(1), np.full(1, 1e9))
    np.testing.assert_array_equal(table.at(np.zeros(1), np.ones(1)).h, before)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"log_base": lambda self, y: np.log(5.0 * y)},
         r"log_density: integrates to 1\.25 over support 'positive' at eta = 0; must be 1"),
        ({"support": "counts"}, "log_density: integrates to .* over support 'counts'"),
        ({"score": lambda self, eta, y: 1.0 - 2.0 * y * np.exp(-eta)},
         "score: .* at eta = 0, y = .* must be the derivative of log_density in eta"),
        ({"score": lambda self, eta, y: y * np.exp(-eta) - 1.0},
         "score: .* must be the derivative of log_density"),
        ({"log_density": lambda self, eta, y: -2.0 * y + 0.0 * eta,
          "score": lambda self, eta, y: 0.0 * (eta + y)},
         "no information on eta = 0"),
        ({"is_location": True}, "is_location: score must depend on y - eta alone"),
    ],
)  # fmt: skip
def test_a_family_whose_functions_do_not_fit_together_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(dpmc.DpmcError, match=f"^family Wrong: {words}") as caught:
        score_tables.ScoreTable(type("Wrong", (Gamma,), change)(), 1.5)
    assert "\n" not in str(caught.value)
