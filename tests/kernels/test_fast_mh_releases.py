"""DP-Fast MH: declared and performed releases, public facts, and the privacy of the accept bit."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpmc.privacy import noise as noises
from dpmc.privacy.events import FastMetropolisRelease, NonPrivateRelease
from kernels import ladder
from kernels.fast_mh import Case, Line, LineSetting, acceptance
from kernels.ladder import P_VALUE, Kernel, Spy, sown
from kernels.problems import Setting
from kernels.test_fast_mh import AS_CODED, CORRECTED, FREE, FULL_FREE, MANY, PUBLISHED, kernel_of

VALID = {**CORRECTED, "clip": 1.0, "delta": 0.3}
#: Corrected kernels whose calibration is valid (n = 60), each with the kinds of tests it makes.
DECLARING = {
    **{
        name: kernel_of("dp-fast-mh", {**VALID, "batch_mean": mean, "most_rows": most, "epsilon": epsilon})
        for name, mean, most, epsilon in (
            ("minibatch without noise", 40.0, 57, 4.0),
            ("minibatch with noise", 20.0, 57, 1.0),
            ("all rows without noise", 50.0, 51, 3.5),
            ("all rows with noise", 50.0, 51, 0.02),
        )
    },
    "all rows, always": kernel_of("dp-fast-mh-full", {**VALID, "epsilon": 0.2}),
}


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
    kernel = DECLARING[name]
    assert release_faults(kernel) == []
    if name != "all rows, always":
        tests = verdicts(kernel)
        assert tests.noise_drawn.mean() == pytest.approx(float("with noise" in name), abs=0.2)
        assert tests.all_rows.mean() == pytest.approx(float("all rows" in name), abs=0.3)


def public_facts_differ(kernel: Kernel) -> bool:
    """Return whether replacing a row changes the choice of tests, their numbers of rows or their noise."""
    other = MANY.rows.copy()
    other[0] = 100.0
    pairs = zip(verdicts(kernel)[1:], verdicts(kernel, replace(MANY, rows=other))[1:], strict=True)
    return any((ours != theirs).any() for ours, theirs in pairs)


@pytest.mark.parametrize("name", DECLARING)
def test_public_facts_do_not_depend_on_a_row(name: str) -> None:
    assert not public_facts_differ(DECLARING[name])


def test_bounds_taken_from_the_rows_are_detected() -> None:
    with sown("dpmc.evaluators.poisson", ("if clip < np.inf:", "if False:")):
        assert public_facts_differ(DECLARING["minibatch without noise"])


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


# --- the paper's settings ------------------------------------------------------------------------
