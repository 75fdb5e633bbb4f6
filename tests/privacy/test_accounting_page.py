"""Numbers in docs/explanation/accounting.md that no other test has."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, norm

from dpmc.privacy import accountants
from dpmc.privacy.accountants.gaussian import log_delta
from dpmc.privacy.accountants.loss_distribution import LossDistributionAccountant
from dpmc.privacy.accountants.persons import for_persons
from dpmc.privacy.accountants.profiles import Amplified, Shift
from dpmc.privacy.events import FastMetropolisQuery, repeat
from dpmc.privacy.fast_mh import corrected_query, multiplier
from dpmc.privacy.lattice import price_of
from privacy.builders import barker, gaussian, minibatch

PAGE = " ".join((Path(__file__).parents[2] / "docs/explanation/accounting.md").read_text("utf-8").split())


def signed(profile: Amplified, epsilon: np.ndarray) -> np.ndarray:
    """Return the curve of a symmetric profile, mirrored below 0."""
    factor = np.exp(np.abs(epsilon))
    upper, lower = profile.tails(np.abs(epsilon))
    above = upper - factor * lower
    return np.where(epsilon >= 0.0, above, 1.0 - np.exp(epsilon) + np.exp(epsilon) * above)


def test_classical_noise_fails_at_large_epsilon() -> None:
    def delta(epsilon: float) -> float:
        return math.exp(log_delta(0.5 / multiplier(epsilon, 1e-5) ** 2, epsilon))

    assert delta(8.41) < 1e-5 < delta(8.42) and "from 8.42 on" in PAGE
    assert f"(ε = 10: δ = {delta(10) * 1e5:.1f}·10⁻⁵; 50: {delta(50):.3f})" in PAGE


def test_a_query_chosen_by_the_loss_of_the_one_before() -> None:
    mu = 0.5 / 5.0**2
    loss = np.linspace(mu - 2.0, mu + 2.0, 20_001)
    left = 1.0 - loss
    batch, gaussian = Amplified(Shift(1.0 / 0.434), 0.001), Amplified(Shift(1.0 / 5.61), 1.0)
    worst = np.maximum(signed(batch, left), signed(gaussian, left))
    delta = float(np.sum(worst * norm.pdf(loss, mu, math.sqrt(2.0 * mu))) * (loss[1] - loss[0]))
    assert f"has δ = {delta * 1e5:.2f}·10⁻⁵" in PAGE


def test_the_price_of_a_barker_tests_scale() -> None:
    price = price_of(barker(100, 1000, 5000), 1000, 3, 1, 2.0, 1e-6)
    assert f"{price.delta * 1e12:.1f}·10⁻¹² in δ" in PAGE


def test_the_mirror_is_needed() -> None:
    """dp-accounting's pair of Poisson sampling, which is no bound for batches without replacement."""
    from dp_accounting.pld import privacy_loss_distribution as library

    one_sided = library.from_gaussian_mechanism(
        math.sqrt(0.7), value_discretization_interval=1e-4, sampling_prob=0.01
    )
    deltas = [one_sided.self_compose(k).get_delta_for_epsilon(4.0) for k in (1610, 1611)]
    assert deltas[0] <= 1e-6 < deltas[1]
    found = accountants.get("wor-pld").iterations((), minibatch(0.7, 1000, 100_000), 4.0, 1e-6)
    assert f"gives 1610 iterations instead of {found}" in PAGE


def test_what_barker_tests_cost() -> None:
    accountant, test = accountants.get("barker-pld"), barker(1300, 100_000)
    least, most = (accountant.iterations((), test, epsilon, 1e-6) for epsilon in (1.0, 6.0))
    assert f"allows {least:,} to {most / 1e6:.1f} million" in PAGE
    assert f"about ε = {accountant.epsilon(repeat(test, 964), 1e-6):.2f}" in PAGE


def test_the_size_of_many_free_bits() -> None:
    """The loss distribution, the bound by moments, and an exact lower bound."""
    accountant = accountants.get("fast-mh-pld")
    bits = (FastMetropolisQuery("bit", 0.05, 0.0, 100_000, count=20_000),)
    moments = accountant.epsilon(bits, 1e-5)
    composed = [LossDistributionAccountant._delta(accountant, bits, epsilon) for epsilon in (25.05, 25.15)]
    assert composed[0] > 1e-5 > composed[1]
    assert f"loss distribution 25.1, moments {moments:.1f}" in PAGE
    ones, share = np.arange(20_001), 1.0 / (1.0 + math.exp(-0.025))
    losses = (2 * ones - 20_000) * 0.025
    mass = binom.pmf(ones, 20_000, share)
    exact = [float(np.sum(mass * np.maximum(0.0, -np.expm1(e - losses)))) for e in (20.665, 20.675)]
    assert exact[0] > 1e-5 > exact[1] and "(20.67)" in PAGE


def test_iterations_for_persons_of_ten_rows() -> None:
    def left(name: str, rows: int) -> int:
        each = gaussian(30.0) if name == "tight" else minibatch(2.0, 1000, 100_000)
        return for_persons(accountants.get(name), rows).iterations((), each, 4.0, 1e-6)

    batches, on_all = ((left(name, 10), left(name, 1)) for name in ("wor-pld", "tight"))
    assert f"leave {batches[0]} of {batches[1]:,} iterations on batches" in PAGE
    assert f"and {on_all[0]} of {on_all[1]} with Gaussian noise on all rows" in PAGE


def test_iterations_are_charged_as_free_tests_on_all_rows() -> None:
    accountant = accountants.get("fast-mh-pld")
    events = repeat([corrected_query("test", 0.05, 1e-5, 50_000, 417)], 20_000)
    free = [FastMetropolisQuery("bit", 0.05, 0.0, 50_000, count=20_000)]
    found, alone = (accountant.epsilon(each, 1e-5) for each in (events, free))
    assert found == pytest.approx(alone, rel=1e-9)
    assert "for ε = 0.05 and K = 417 the total is that of free tests on all rows" in PAGE
