"""DP-Fast MH: declared and performed releases, public facts, and the privacy of the accept bit."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpmc.common.errors import DpmcError
from dpmc.models.mixture import Mixture
from dpmc.privacy import accountants
from dpmc.privacy import noise as noises
from dpmc.privacy.events import FastMetropolisRelease, NonPrivateRelease
from dpmc.privacy.fast_rule import batch_epsilon, batch_multiplier
from kernels import ladder
from kernels.cells import read
from kernels.fast_mh import Case, Line, LineSetting, acceptance
from kernels.ladder import P_VALUE, Kernel, Spy, sown
from kernels.problems import Setting
from kernels.test_fast_mh import AS_CODED, CORRECTED, FREE, FULL_FREE, MANY, MECHANISM, PUBLISHED, kernel_of

#: Corrected kernels whose calibration is valid (n = 60), each with the kinds of tests it makes.
DECLARING = {
    "minibatch without noise": ("dp-fast-mh", {"batch_mean": 40.0, "most_rows": 57, "epsilon": 4.0}),
    "minibatch with noise": ("dp-fast-mh", {"batch_mean": 20.0, "most_rows": 57, "epsilon": 1.0}),
    "all rows without noise": ("dp-fast-mh", {"batch_mean": 50.0, "most_rows": 51, "epsilon": 3.5}),
    "all rows with noise": ("dp-fast-mh", {"batch_mean": 50.0, "most_rows": 51, "epsilon": 0.02}),
    "all rows, always": ("dp-fast-mh-full", {"epsilon": 0.2}),
}


def declaring(name: str) -> Kernel:
    method, values = DECLARING[name]
    return kernel_of(method, {**CORRECTED, "clip": 1.0, "delta": 0.3, **values})


def release_faults(kernel: Kernel, chains: int = 40, m: int = 4) -> list[str]:
    """Return the differences between a corrected kernel's tests and its declared event; empty if none.

    From outside: the noise asked for must be the declared multiplier times the public sensitivity, and
    absent only where that is within the declared ε; all of it a function of θ, θ' and public numbers.
    """
    algorithm = kernel.algorithm
    once, (event,) = algorithm.releases(MANY.n)
    assert once == () and isinstance(event, FastMetropolisRelease)
    start, given = started(kernel, chains, m)
    source = Spy(noises.LabNoise(given.ratio_normals, given.gradient_normals))
    private = ladder.private_data(kernel, given, source=source)
    faults: list[str] = []
    for i, _ in enumerate(ladder.steps(kernel, start, given, MANY.model, private)):
        ((sd, _),) = source.of("corrected", "centred")
        move = np.sqrt(((given.normal[i] * algorithm.proposal_sd) ** 2).sum(axis=1))
        reach = MANY.temperature * MANY.n * algorithm.public_clip * move
        if event.most_rows == 0:
            on_all = np.ones(chains, bool)
            sensitivity, limit, scale = 2.0 * reach / MANY.n, event.epsilon, event.noise_multiplier
        else:
            on_all = algorithm.batch_mean + reach >= event.most_rows
            batch = 2.0 * np.log(1.0 + reach / algorithm.batch_mean)
            sensitivity = np.where(on_all, 2.0 * reach / MANY.n, batch)
            limit = np.where(on_all, event.epsilon, event.batch_epsilon)
            scale = np.where(on_all, event.noise_multiplier, event.batch_noise_multiplier)
        if (private.tests.noise_drawn != (sd > 0.0)).any():
            faults.append(f"noise of sd {sd} recorded as {private.tests.noise_drawn}")
        if ((sd == 0.0) & (sensitivity > limit)).any():
            faults.append(f"no noise at sensitivity {sensitivity}, declared {limit}")
        if not np.allclose(sd, np.where(sd > 0.0, scale * sensitivity, 0.0), rtol=1e-9):
            faults.append(f"sd {sd}, declared {scale} times {sensitivity}")
        if (private.tests.all_rows != on_all).any():
            faults.append("all rows or a minibatch: not by the mean number of rows")
        source.calls.clear()
    return faults


def started(kernel: Kernel, chains: int, m: int = 1) -> tuple[np.ndarray, ladder.Numbers]:
    generator = np.random.default_rng(4)
    start = MANY.posterior.draws(generator, chains)
    return start, ladder.numbers(kernel, generator, chains, m)


def verdicts(kernel: Kernel, setting: Setting = MANY) -> Any:
    """Return the results of the tests of one iteration from given positions."""
    start, given = started(kernel, 200)
    private = ladder.private_data(kernel, given, setting)
    ladder.run(kernel, start, given, setting, private)
    return private.tests


@pytest.mark.parametrize("name", DECLARING)
def test_declared_events_are_those_performed(name: str) -> None:
    kernel = declaring(name)
    assert release_faults(kernel) == []
    if name != "all rows, always":
        tests = verdicts(kernel)
        assert tests.noise_drawn.mean() == pytest.approx(float("with noise" in name), abs=0.2)
        assert tests.all_rows.mean() == pytest.approx(float("all rows" in name), abs=0.3)


#: Faults about releases: the kernel, old and new text of the mechanism.
UNDECLARED = {
    "half the sensitivity on all rows": (
        "all rows with noise",
        "2.0 * self.bounded.largest",
        "self.bounded.largest",
    ),
    "half the sensitivity on a minibatch": (
        "minibatch with noise",
        "sensitivity = 2.0 * np.log(1.0 + reach",
        "sensitivity = np.log(1.0 + reach",
    ),
    "limit of a minibatch without the factor 6": (
        "minibatch with noise",
        "limit = batch_epsilon(",
        "limit = 6.0 * batch_epsilon(",
    ),
    "limit of all rows on a minibatch": (
        "minibatch with noise",
        "limit = batch_epsilon(rule.epsilon, rule.most_rows, share)",
        "limit = rule.epsilon",
    ),
    "noise of all rows on a minibatch": (
        "minibatch with noise",
        "batch_multiplier(rule.epsilon, rule.delta, rule.most_rows, share)",
        "multiplier(rule.epsilon, rule.delta)",
    ),
    "a branch on the number of rows drawn": (
        "minibatch without noise",
        "if not self.rule.branch_on_mean:",
        "if True:",
    ),
}


@pytest.mark.parametrize("name", UNDECLARED)
def test_releases_detect_faults(name: str) -> None:
    label, old, new = UNDECLARED[name]
    with sown(MECHANISM, (old, new)):
        assert release_faults(declaring(label)) != []


def test_releases_pass_without_a_fault() -> None:
    with sown(MECHANISM):
        assert [release_faults(declaring(name)) for name in DECLARING] == [[]] * len(DECLARING)


def public_facts_differ(kernel: Kernel) -> bool:
    """Return whether replacing a row changes the choice of tests, their numbers of rows or their noise."""
    other = MANY.rows.copy()
    other[0] = 100.0
    pairs = zip(verdicts(kernel)[1:], verdicts(kernel, replace(MANY, rows=other))[1:], strict=True)
    return any((ours != theirs).any() for ours, theirs in pairs)


@pytest.mark.parametrize("name", DECLARING)
def test_public_facts_do_not_depend_on_a_row(name: str) -> None:
    assert not public_facts_differ(declaring(name))


def test_bounds_taken_from_the_rows_are_detected() -> None:
    with sown("dpmc.evaluators.poisson", ("if clip < np.inf:", "if False:")):
        assert public_facts_differ(declaring("minibatch without noise"))


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"most_rows": 60, "epsilon": 0.05}, "epsilon_0 = .* = 6.94: must be at most 1.* at least 417"),
        ({"most_rows": 50_000, "epsilon": 6.0}, r"e\^epsilon_0 - 1\) = 1.72: must be at most 1"),
        ({"most_rows": 400, "epsilon": 0.01, "delta": 0.02}, "delta must be below 2.5 K p"),
    ],
)
def test_an_invalid_calibration_is_refused(changes: dict[str, Any], rule: str) -> None:
    values = {**CORRECTED, "batch_mean": 10.0, "delta": 1e-5, **changes}
    with pytest.raises(DpmcError, match=f"most_rows K = {values['most_rows']}, .*{rule}"):
        kernel_of("dp-fast-mh", values).algorithm.releases(50_000)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clip": 1.0}, "clip: unknown hyperparameter"),
        ({"variant": "corrected"}, "clip: missing"),
        ({"delta": 1.0}, "delta: 1.0 must be less than 1"),
        ({"most_rows": 0}, "most_rows: 0 must be a whole number"),
        ({"variant": "best"}, "variant: 'best' must be one of published"),
        ({"inverted_sensitivity": True}, "inverted_sensitivity: unknown"),
        ({"epsilon": -1}, "epsilon: -1 must be greater than 0"),
    ],
)
def test_wrong_hyperparameters_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DpmcError, match=message):
        kernel_of("dp-fast-mh", {**FREE, **changes})


@pytest.mark.parametrize("variant", [PUBLISHED, AS_CODED])
def test_variants_without_a_guarantee_declare_a_non_private_release(variant: dict[str, Any]) -> None:
    for method, values in (("dp-fast-mh", FREE), ("dp-fast-mh-full", FULL_FREE)):
        algorithm = kernel_of(method, {**variant, **values}).algorithm
        assert algorithm.releases(60) == ((), (NonPrivateRelease("acceptance test"),))
        assert algorithm.note.endswith("no guarantee")


# --- privacy of the accept bit -------------------------------------------------------------------


def hockey_stick(p: float, q: float, epsilon: float) -> float:
    """Smallest δ with which bits of probability p and q are (ε, δ)-indistinguishable."""
    pairs = [(p, q), (q, p), (1.0 - p, 1.0 - q), (1.0 - q, 1.0 - p)]
    return max(here - float(np.exp(epsilon)) * there for here, there in pairs)


#: Two data sets that differ in one row: log ratios 0 and −0.05 of a move of length 0.05, flat prior.
NEIGHBOURS = [LineSetting(Line(1e12), np.array([[x, 0.0], [-0.5, 0.0]]), 1.0) for x in (0.5, -0.5)]
SHORT = np.array([[0.0, 0.0], [0.05, 0.0]])


def test_the_published_bit_is_not_private_on_rejection() -> None:
    values = {**PUBLISHED, "epsilon": 0.05, "delta": 1e-5}
    p, q = (acceptance("dp-fast-mh-full", values, setting, *SHORT) for setting in NEIGHBOURS)
    assert hockey_stick(p, q, 0.05) == pytest.approx(-np.expm1(-0.05), rel=1e-6)  # 0.0488
    for setting in NEIGHBOURS:  # that is what the kernel does
        case = Case("dp-fast-mh-full", values, setting, SHORT)
        assert case.frequency_p(20_000) > P_VALUE


def test_the_corrected_bit_without_noise_is_private() -> None:
    values = {**CORRECTED, "clip": 0.5, "epsilon": 0.05, "delta": 1e-5}
    for shift in np.linspace(-200.0, 200.0, 41):  # other rows move both log ratios together
        pair = []
        for setting in NEIGHBOURS:
            others = np.tile([[0.5 * np.sign(shift), 0.0]], (int(abs(shift)), 1))
            rows = np.vstack([setting.rows, others])
            pair.append(acceptance("dp-fast-mh-full", values, replace(setting, rows=rows), *SHORT))
        assert hockey_stick(*pair, 0.05) < 1e-12
    for setting in NEIGHBOURS:
        case = Case("dp-fast-mh-full", values, setting, SHORT)
        assert case.frequency_p(20_000) > P_VALUE


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("third", [-0.5, 0.0, 0.5])
def test_a_minibatch_bit_is_within_its_accountants_bound(third: float, noisy: bool) -> None:
    ends = np.array([[0.0, 0.0], [0.8, 0.0]])
    values = {**CORRECTED, "clip": 0.5, "batch_mean": 2.0, "most_rows": 4, "epsilon": 60.0, "delta": 0.5}
    if noisy:
        values["epsilon"] = 5.0
    pair = []
    for x in (0.5, -0.5):
        setting = LineSetting(Line(1e12), np.array([[x, 0.0], [third, 0.0], [0.0, 1.0]]), 1.0)
        pair.append(acceptance("dp-fast-mh", values, setting, *ends))
    sensitivity = 2.0 * np.log(1.0 + 3 * 0.5 * 0.8 / 2.0)
    free = batch_epsilon(values["epsilon"], 4, 1.0 / 3.0)
    assert (sensitivity > free) == noisy
    scale = batch_multiplier(values["epsilon"], values["delta"], 4, 1.0 / 3.0)
    event = FastMetropolisRelease(
        "t", 1e-9, 0.0, 3, 4, 0.0 if noisy else sensitivity, float(scale) if noisy else 0.0
    )
    bound = accountants.get("fast-mh-pld")
    told = [hockey_stick(*pair, epsilon) for epsilon in (0.01, 0.1, 0.5)]
    assert told[0] > 0.0  # the bit does tell something
    for epsilon, delta in zip((0.01, 0.1, 0.5), told, strict=True):
        assert delta <= bound.delta([event], epsilon)


# --- the paper's settings ------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "least", "most"), [(0.05, 0.0, 0.002), (0.01, 0.3, 0.7)])
def test_how_often_the_scripts_draw_noise_on_the_mixture(epsilon: float, least: float, most: float) -> None:
    model, generator = Mixture(2.0, 3.0), np.random.default_rng(5)
    setting = Setting(model, model.simulate(generator, np.array([0.0, 1.0]), 50_000), 1.0 / 500.0)
    values = {**AS_CODED, "epsilon": epsilon, "delta": 1e-5, "batch_mean": 10.0, "most_rows": 60}
    kernel = Kernel(read("dp-fast-mh", {**values, "proposal_sd": 0.06}), setting)
    given = ladder.numbers(kernel, generator, 1, 2000)
    private = ladder.private_data(kernel, given)
    found = []
    for _ in ladder.steps(kernel, np.array([[0.0, 1.0]]), given, model, private):
        found.append([values[0] for values in private.tests])
        assert not private.ratio_clipped.any()
    _, rows_used, noisy, all_rows = np.array(found).T
    assert least <= noisy.mean() <= most
    assert 0.4 < all_rows.mean() < 0.55
    assert (rows_used[all_rows == 1] == 50_000).all()
