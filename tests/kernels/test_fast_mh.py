"""TunaMH and DP-Fast MH: exactness and privacy of their accept bits, and faults in each of them.

Acceptance probabilities of the paper's text, computed exactly on three rows (`kernels.fast_mh`), are in
detailed balance or not; the compiled kernels accept as often as they say. Random tests are seeded; each fails
a right kernel with probability 1e-4 or less.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpmc import evaluators, sampling, storage
from dpmc.algorithms import algorithm_class
from dpmc.algorithms.common import Record, Settings, State
from dpmc.algorithms.dp_barker import DPBarker
from dpmc.algorithms.dp_barker import fits as barker_fits
from dpmc.algorithms.dp_fast_mh_full import DPFastMHFull
from dpmc.algorithms.dp_penalty import DPPenalty
from dpmc.algorithms.rwmh import RWMH
from dpmc.errors import DpmcError
from dpmc.evaluators import poisson
from dpmc.metrics.cell import cell_metrics
from dpmc.models.mixture import Mixture
from dpmc.privacy import accountants
from dpmc.privacy.events import FastMetropolisRelease, GaussianRelease, NonPrivateRelease
from dpmc.privacy.fast_mechanism import FastRule, batch_epsilon, batch_multiplier, multiplier
from kernels import ladder
from kernels.cells import MIXTURE, cell, problem
from kernels.fast_mh import FEW, Case, Line, LineSetting, acceptance, imbalance
from kernels.ladder import FAULT_P, P_VALUE, Kernel, lengths, mutant

FREE = {"batch_mean": 3.0, "most_rows": 60, "epsilon": 250.0, "delta": 0.5}
NOISY = {"batch_mean": 3.0, "most_rows": 25, "epsilon": 60.0, "delta": 0.9}
ON_ALL = {"batch_mean": 3.0, "most_rows": 5, "epsilon": 1.0, "delta": 0.9}
FULL_FREE, FULL_NOISY = {"epsilon": 3.0, "delta": 0.5}, {"epsilon": 1.0, "delta": 0.9}
PUBLISHED, AS_CODED = {"variant": "published"}, {"variant": "as_coded"}
CORRECTED = {"variant": "corrected", "clip": 1.1}
TUNA = {"variant": "tuna", "batch_mean": 0.6}
COOL = replace(FEW, temperature=0.4)

#: Reversible by quadrature, each with its mean number of rows, and whether noise is drawn.
BALANCED = {
    "tuna-mh": Case("tuna-mh", TUNA, COOL),
    "published, minibatch without noise": Case("dp-fast-mh", {**PUBLISHED, **FREE}),
    "published, minibatch with noise": Case("dp-fast-mh", {**PUBLISHED, **NOISY}),
    "published, all rows without noise": Case("dp-fast-mh-full", {**PUBLISHED, **FULL_FREE}),
    "published, all rows with noise": Case("dp-fast-mh-full", {**PUBLISHED, **FULL_NOISY}),
    "corrected, minibatch without noise": Case("dp-fast-mh", {**CORRECTED, **FREE}),
    "corrected, minibatch with noise": Case("dp-fast-mh", {**CORRECTED, **NOISY}),
    "corrected, sent to all rows": Case("dp-fast-mh", {**CORRECTED, **ON_ALL}),
    "corrected, all rows without noise": Case("dp-fast-mh-full", {**CORRECTED, **FULL_FREE}),
    "corrected, all rows with noise": Case("dp-fast-mh-full", {**CORRECTED, **FULL_NOISY}),
    "as coded, minibatch without noise": Case("dp-fast-mh", {**AS_CODED, **FREE}),
    "as coded, all rows without noise": Case("dp-fast-mh-full", {**AS_CODED, **FULL_FREE}),
}
#: Not reversible, with the least error: uniform noise, and a branch on the number of rows drawn.
UNBALANCED = {
    "as coded, minibatch with noise": (Case("dp-fast-mh", {**AS_CODED, **NOISY}), 0.3),
    "as coded, all rows with noise": (Case("dp-fast-mh-full", {**AS_CODED, **FULL_NOISY}), 0.1),
    "as coded, sensitivity inverted": (
        Case("dp-fast-mh", {**AS_CODED, **NOISY, "epsilon": 10.0, "inverted_sensitivity": True}),
        0.1,
    ),
    "published, K near the mean number of rows": (
        Case("dp-fast-mh", {**PUBLISHED, **FREE, "most_rows": 6, "epsilon": 100.0}),
        0.05,
    ),
}


# --- detailed balance ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", BALANCED)
def test_detailed_balance_by_quadrature(name: str) -> None:
    case = BALANCED[name]
    assert abs(imbalance(case.method, case.values, case.setting, case.ends)) < ladder.IMBALANCE


@pytest.mark.parametrize("name", UNBALANCED)
def test_where_detailed_balance_fails_by_quadrature(name: str) -> None:
    case, least = UNBALANCED[name]
    assert abs(imbalance(case.method, case.values, case.setting, case.ends)) > least


@pytest.mark.parametrize("name", [*BALANCED, *UNBALANCED])
def test_the_kernel_accepts_as_often_as_quadrature_says(name: str) -> None:
    case = BALANCED[name] if name in BALANCED else UNBALANCED[name][0]
    record = case.record(case.kernel, False, 1000)
    if name in BALANCED:  # it is the test that the name says
        assert record.noisy.mean() == ("with noise" in name or "sent to" in name)
        assert record.all_rows.mean() == ("all rows" in name)
    assert not record.ratio_clipped.any()
    assert case.frequency_p(case.kernel) > P_VALUE


@pytest.mark.parametrize(("sd", "gap"), [(0.5, 0.56), (1.0, 0.66), (2.0, 1.20)])
def test_size_of_the_error_of_uniform_noise(sd: float, gap: float) -> None:
    # two equal rows, flat prior: log ratio 0.7; ε such that the noise has this sd
    move = 0.7
    setting = LineSetting(Line(1e12), np.array([[0.5, 0.0], [0.5, 0.0]]), 1.0)
    ends = np.array([[0.0, 0.0], [move, 0.0]])
    for method, sizes in (("published", 0.7), ("as_coded", gap)):
        # sensitivity 0.7, a little more than ε; noise sd = √(2 ln(1.25/δ)) · 0.7/ε
        epsilon = 0.99 * move
        delta = float(1.25 * np.exp(-0.5 * (0.99 * sd) ** 2))
        values = {"variant": method, "epsilon": epsilon, "delta": delta}
        there = acceptance("dp-fast-mh-full", values, setting, *ends)
        back = acceptance("dp-fast-mh-full", values, setting, *ends[::-1])
        assert np.log(there) - np.log(back) == pytest.approx(sizes, abs=0.006)


def test_the_listing_without_noise_is_not_balanced() -> None:
    # Algorithm 2 as printed subtracts ½σ²Δ² where no noise is drawn, too
    case = BALANCED["published, all rows without noise"]
    sd = np.sqrt(2.0 * np.log(1.25 / 0.5)) / 3.0 * 2.0
    log_ratio = 0.5
    gap = min(log_ratio - 0.5 * sd**2, 0.0) - min(-log_ratio - 0.5 * sd**2, 0.0) - log_ratio
    assert abs(gap) > 0.2
    listing = faulty(case.kernel, MECHANISM, *LISTING_ON_ALL)
    assert case.frequency_p(listing, 10_000) < FAULT_P


# --- stationarity --------------------------------------------------------------------------------

MANY = LineSetting(Line(0.5), np.random.default_rng(12).normal([0.6, -0.4], 0.8, (60, 2)), 0.1)
STEPS = {"proposal_sd": [0.7, 0.7]}
MOVES = {
    "tuna-mh": ("tuna-mh", {"batch_mean": 5.0}),
    "published, minibatch": ("dp-fast-mh", {**PUBLISHED, **FREE, "epsilon": 40.0, "delta": 0.9}),
    "published, all rows": ("dp-fast-mh-full", {**PUBLISHED, "epsilon": 0.2, "delta": 0.9}),
    "corrected": (
        "dp-fast-mh",
        {**CORRECTED, "clip": 4.0, "batch_mean": 30.0, "most_rows": 48, "epsilon": 10.0, "delta": 0.9},
    ),
    "corrected, all rows": (
        "dp-fast-mh-full",
        {**CORRECTED, "clip": 4.0, "epsilon": 0.8, "delta": 0.9},
    ),
}


def kernel_of(method: str, values: dict[str, Any]) -> Kernel:
    settings = Settings({**values, **STEPS}, 2, "tests")
    algorithm = algorithm_class(method).read(settings)
    settings.finish()
    return Kernel(algorithm, setting=MANY)


@pytest.mark.parametrize("name", MOVES)
def test_exact_draws_stay_exact(name: str) -> None:
    kernel = kernel_of(*MOVES[name])
    assert ladder.invariance(kernel, MANY, chains=4000, iterations=60) > P_VALUE


def test_exact_draws_stay_exact_by_barkers_test_without_privacy() -> None:
    kernel = Kernel(RWMH(np.inf, lengths(0.7, 0.7), barker=True))
    assert ladder.invariance(kernel, MANY, chains=4000, iterations=60) > P_VALUE


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("published, all rows", AS_CODED),  # uniform noise
        ("published, minibatch", {"most_rows": 9, "epsilon": 1000.0}),  # a branch on the number drawn
    ],
)
def test_exact_draws_do_not_stay_where_balance_fails(name: str, changes: dict[str, Any]) -> None:
    method, values = MOVES[name]
    kernel = kernel_of(method, {**values, **changes})
    assert ladder.invariance(kernel, MANY, chains=20_000, iterations=60) < FAULT_P


# --- faults --------------------------------------------------------------------------------------

MECHANISM, POISSON = "dpmc.privacy.fast_mechanism", "dpmc.evaluators.poisson"
EVALUATORS, FAST = "dpmc.evaluators", "dpmc.algorithms.dp_fast_mh"
ON_BATCH = "sd = batch_noise_sd(rule, share, reach)\n"
ON_ALL_ROWS = "log_ratio = temperature * sums[c] + prior[c]\n"
LISTING = (ON_BATCH, ON_BATCH + "        log_ratio -= 0.5 * (0.0 if sd else 1.0)\n")
LISTING_ON_ALL = (ON_ALL_ROWS, ON_ALL_ROWS + "            log_ratio -= 0.5 * (0.0 if sd else 1.0)\n")
CORRECTED_NOISE = "noise.corrected(c, i, sd)"
UNIFORM_NOISE = "sd * uniform(word, NOISE) - 0.5 * sd * sd"
KEPT = "(1.0 + h) < 1.0 - h * v"
DOUBLE_ARTANH = "np.log((1.0 + h * v) / (1.0 - h * v))"

#: Faults that change how often a move is accepted: the case, the module, old and new text.
ODD = {
    "correction where no noise is drawn, minibatch": (
        "published, minibatch without noise",
        MECHANISM,
        *LISTING,
    ),
    "correction where no noise is drawn, all rows": (
        "published, all rows without noise",
        MECHANISM,
        *LISTING_ON_ALL,
    ),
    "uniform noise in the published variant": (
        "published, minibatch with noise",
        MECHANISM,
        CORRECTED_NOISE,
        UNIFORM_NOISE,
    ),
    "uniform noise in the corrected variant": (
        "corrected, all rows with noise",
        MECHANISM,
        CORRECTED_NOISE,
        UNIFORM_NOISE,
    ),
    "noise without correction": (
        "corrected, minibatch with noise",
        MECHANISM,
        CORRECTED_NOISE,
        "noise.centred(c, i, sd)",
    ),
    "thinning off by c_i": (
        "tuna-mh",
        MECHANISM,
        KEPT,
        "(1.0 + h) < 1.0 - h * v * evaluator.bounds[chosen[j]]",
    ),
    "thinning upside down": ("tuna-mh", MECHANISM, KEPT, "(1.0 + h) < 1.0 + h * v"),
    "no thinning": ("published, minibatch without noise", MECHANISM, KEPT, "1e-9 < 1.0"),
    "one random number for a row and its thinning": (
        "corrected, minibatch without noise",
        MECHANISM,
        "uniform(word, THINNING + first + j)",
        "uniform(word, 1099511627776 + first + j)",
    ),
    "rows drawn uniformly whatever their bounds": (
        "published, uneven rows",
        POISSON,
        "place - column < self.threshold[column]",
        "True",
    ),
    "Poisson mean without lambda": (
        "tuna-mh",
        MECHANISM,
        "mean = rule.batch_mean + reach",
        "mean = reach",
    ),
    "Poisson mean without CM": (
        "corrected, minibatch without noise",
        MECHANISM,
        "mean = rule.batch_mean + reach",
        "mean = rule.batch_mean",
    ),
    "one arrival too many": (
        "tuna-mh",
        POISSON,
        "time, count = 0.0, 0",
        "time, count = 0.0, 1",
    ),
    "artanh without its factor 2": (
        "published, minibatch without noise",
        MECHANISM,
        DOUBLE_ARTANH,
        f"0.5 * {DOUBLE_ARTANH}",
    ),
    "minibatch not tempered": (
        "tuna-mh",
        MECHANISM,
        "v = temperature * ratios[j] / reach",
        "v = ratios[j] / reach",
    ),
    "all rows not tempered": (
        "corrected, all rows, cool",
        MECHANISM,
        "log_ratio = temperature * sums[c]",
        "log_ratio = sums[c]",
    ),
    "Metropolis in the corrected variant's minibatch": (
        "corrected, minibatch without noise",
        MECHANISM,
        "if rule.barker else log_u",
        "if False else log_u",
    ),
    "Metropolis in the corrected variant on all rows": (
        "corrected, all rows without noise",
        MECHANISM,
        "if rule.barker else log_u",
        "if False else log_u",
    ),
    "Barker's test beside noise": (
        "corrected, all rows with noise",
        MECHANISM,
        "return log_u < log_ratio + noise",
        "return barker_threshold(log_u) < log_ratio + noise",
    ),
    "prior forgotten on a minibatch": (
        "corrected, minibatch without noise",
        MECHANISM,
        "passes(rule, log_ratio + prior[c]",
        "passes(rule, log_ratio",
    ),
    "prior forgotten on all rows": (
        "published, all rows without noise",
        MECHANISM,
        "sums[c] + prior[c]",
        "sums[c]",
    ),
}
#: Rows of very different bounds, and all weight of a move in one of them.
UNEVEN = LineSetting(Line(2.0), np.array([[1.5, 0.0], [0.0, 0.2], [0.1, -0.1]]), 0.9)
FAULTY_CASES = {
    **BALANCED,
    "published, uneven rows": Case("dp-fast-mh", {**PUBLISHED, **FREE}, UNEVEN),
    "corrected, all rows, cool": Case("dp-fast-mh-full", {**CORRECTED, **FULL_FREE}, COOL),
}


def faulty(kernel: Kernel, module: str, *changes: str) -> Kernel:
    """The kernel in plain Python, with pieces (old, new, …) of a module's text exchanged."""
    pairs = list(zip(changes[::2], changes[1::2], strict=True))
    mechanism = mutant(MECHANISM, *(pairs if module == MECHANISM else ()))
    rows = mutant(POISSON, *(pairs if module == POISSON else ()))
    mechanism.update({name: rows[name] for name in ("uniform", "poisson_count")})
    door = mutant("dpmc.privacy.mechanisms")
    door["accept_bits"] = mechanism["accept_bits"]

    class WithFault(Kernel):
        def evaluator_of(self, setting: Any) -> Any:
            return rows["PoissonEvaluator"](*super().evaluator_of(setting))

    return WithFault(kernel.algorithm, door=door["Door"], python=True, setting=kernel.setting)


@pytest.mark.parametrize("name", ODD)
def test_frequencies_catch(name: str) -> None:
    label, module, old, new = ODD[name]
    case = FAULTY_CASES[label]
    assert case.frequency_p(faulty(case.kernel, module, old, new), 10_000) < FAULT_P


@pytest.mark.parametrize("name", [*dict.fromkeys(fault[0] for fault in ODD.values())])
def test_frequencies_pass_the_same_text_without_a_fault(name: str) -> None:
    case = FAULTY_CASES[name]
    assert case.frequency_p(faulty(case.kernel, MECHANISM), 10_000) > P_VALUE


# --- what is declared and what is public ---------------------------------------------------------

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


def release_faults(kernel: Kernel, chains: int = 6, m: int = 4) -> list[str]:
    """What a corrected kernel's tests have different from the event that it declares; empty if nothing.

    From outside: the noise asked for must be the declared multiplier times the public sensitivity, and
    absent only where that is within the declared ε; all of it a function of θ, θ' and public numbers.
    """
    setting = MANY
    once, (event,) = kernel.algorithm.releases(setting.n)
    assert once == () and isinstance(event, FastMetropolisRelease)
    generator = np.random.default_rng(23)
    start = setting.posterior.draws(generator, chains)
    given = ladder.numbers(kernel.algorithm, generator, chains, m, 2)
    noise = ladder.SpyNoise(kernel.noise(given.ratio_normals, given.gradient_normals))
    state, record = State(start.copy(), given.extra.copy()), Record.empty(chains, m, 2)
    door = kernel.door_of(setting)
    faults: list[str] = []
    for i in range(m):
        noise.ratios.clear()
        with np.errstate(over="ignore"):
            kernel.algorithm.iterate(door, noise, given.draws, i, state, record)
        asked = {(c, at): sd for c, at, sd in noise.ratios}
        for c in range(chains):
            move = np.linalg.norm(given.draws.normal[c, i] * kernel.algorithm.proposal_sd)
            reach = setting.temperature * setting.n * kernel.algorithm.public_clip * move
            sensitivity, limit, scale = 2.0 * reach / setting.n, event.epsilon, event.noise_multiplier
            if not record.all_rows[c, i]:
                sensitivity = 2.0 * np.log(1.0 + reach / kernel.algorithm.rule.batch_mean)
                limit, scale = event.batch_epsilon, event.batch_noise_multiplier
            found = asked.get((c, i), 0.0)
            if bool(record.noisy[c, i]) != (found > 0.0):
                faults.append(f"noise of sd {found} recorded as {record.noisy[c, i]}")
            if found == 0.0 and sensitivity > limit:
                faults.append(f"no noise at sensitivity {sensitivity}, declared {limit}")
            if found and not np.isclose(found, scale * sensitivity, rtol=1e-9):
                faults.append(f"sd {found}, declared {scale} times {sensitivity}")
            on_all = event.most_rows == 0 or kernel.algorithm.rule.batch_mean + reach >= event.most_rows
            if on_all != bool(record.all_rows[c, i]):
                faults.append("all rows or a minibatch: not by the mean number of rows")
    return faults


@pytest.mark.parametrize("name", DECLARING)
def test_declared_events_are_those_performed(name: str) -> None:
    kernel = declaring(name)
    assert release_faults(kernel) == []
    record = ladder.run(kernel, kernel.door_of(MANY), *started(kernel, 200))
    if name != "all rows, always":
        assert record.noisy.mean() == pytest.approx(float("with noise" in name), abs=0.2)
        assert record.all_rows.mean() == pytest.approx(float("all rows" in name), abs=0.3)


def started(kernel: Kernel, chains: int) -> tuple[np.ndarray, Any]:
    generator = np.random.default_rng(4)
    start = MANY.posterior.draws(generator, chains)
    return start, ladder.numbers(kernel.algorithm, generator, chains, 3, 2)


#: Faults about releases: the kernel, old and new text of the mechanism.
UNDECLARED = {
    "half the sensitivity on all rows": (
        "all rows with noise",
        "sensitivity = 2.0 * evaluator.largest",
        "sensitivity = evaluator.largest",
    ),
    "half the sensitivity on a minibatch": (
        "minibatch with noise",
        "sensitivity = 2.0 * np.log(1.0 + reach",
        "sensitivity = np.log(1.0 + reach",
    ),
    "limit of a minibatch without the factor 6": (
        "minibatch with noise",
        "epsilon / (6.0 * most_rows",
        "epsilon / (most_rows",
    ),
    "limit of all rows on a minibatch": (
        "minibatch with noise",
        "limit = batch_epsilon(rule.epsilon, rule.most_rows, share)",
        "limit = rule.epsilon",
    ),
    "noise of all rows on a minibatch": (
        "minibatch with noise",
        "scale = batch_multiplier(rule.epsilon, rule.delta, rule.most_rows, share)",
        "scale = multiplier(rule.epsilon, rule.delta)",
    ),
    "a branch on the number of rows drawn": (
        "minibatch without noise",
        "if not rule.branch_on_mean:",
        "if True:",
    ),
}


@pytest.mark.parametrize("name", UNDECLARED)
def test_releases_catch(name: str) -> None:
    label, old, new = UNDECLARED[name]
    kernel = declaring(label)
    assert release_faults(faulty(kernel, MECHANISM, old, new), chains=40) != []


def public_facts(kernel: Kernel, rows: np.ndarray) -> list[np.ndarray]:
    """Rows looked at, noise or not, all rows or not, of one iteration from given places."""
    start, given = started(kernel, 50)
    record = ladder.run(kernel, kernel.door_of(replace(MANY, rows=rows)), start, given)
    return [record.rows_used[:, 0], record.noisy[:, 0], record.all_rows[:, 0]]


@pytest.mark.parametrize("name", DECLARING)
def test_public_facts_do_not_depend_on_a_row(name: str) -> None:
    other = MANY.rows.copy()
    other[0] = 100.0
    kernel = declaring(name)
    pairs = zip(public_facts(kernel, MANY.rows), public_facts(kernel, other), strict=True)
    for ours, theirs in pairs:
        np.testing.assert_array_equal(ours, theirs)


def test_public_facts_catch_bounds_taken_from_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    own = mutant(EVALUATORS, ("if clip < np.inf:", "if False:"))
    monkeypatch.setattr(sampling.evaluators, "build_poisson", own["build_poisson"])
    other = MANY.rows.copy()
    other[0] = 100.0
    kernel = replace(declaring("minibatch without noise"), python=True)
    assert any(
        not np.array_equal(ours, theirs)
        for ours, theirs in zip(public_facts(kernel, MANY.rows), public_facts(kernel, other), strict=True)
    )


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
def test_what_guarantees_nothing_says_so(variant: dict[str, Any]) -> None:
    for method, values in (("dp-fast-mh", FREE), ("dp-fast-mh-full", FULL_FREE)):
        algorithm = kernel_of(method, {**variant, **values}).algorithm
        assert algorithm.releases(60) == ((), (NonPrivateRelease("acceptance test"),))
        assert algorithm.variant.endswith("no guarantee")


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
        assert case.frequency_p(case.kernel) > P_VALUE


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
        assert case.frequency_p(case.kernel) > P_VALUE


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
    model = Mixture(2.0, 3.0)
    generator = np.random.default_rng(5)
    setting = ladder.Setting(model, model.simulate(generator, np.array([0.0, 1.0]), 50_000), 1.0 / 500.0)
    values = {**AS_CODED, "epsilon": epsilon, "delta": 1e-5, "batch_mean": 10.0, "most_rows": 60}
    settings = Settings({**values, "proposal_sd": 0.06}, 2, "tests")
    kernel = Kernel(algorithm_class("dp-fast-mh").read(settings), setting=setting)
    given = ladder.numbers(kernel.algorithm, generator, 1, 2000, 2)
    record = ladder.run(kernel, kernel.door_of(setting), np.array([[0.0, 1.0]]), given)
    assert least <= record.noisy.mean() <= most
    assert 0.4 < record.all_rows.mean() < 0.55
    assert (record.rows_used[record.all_rows == 1] == 50_000).all()
    assert not record.ratio_clipped.any()


# --- random numbers ------------------------------------------------------------------------------


def uniforms(words: np.ndarray, places: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.array([poisson.uniform(word, int(k)) for word in words for k in places])


def test_uniform_numbers_of_words_are_uniform_and_independent() -> None:
    words = np.random.default_rng(1).integers(0, 2**64, 400, dtype=np.uint64)
    places = np.array([0, 1, 2, 3, poisson.ROWS, poisson.ROWS + 1, poisson.THINNING, poisson.NOISE])
    u = uniforms(words, places).reshape(400, 8)
    along = uniforms(words[:1], np.arange(20_000))
    near = uniforms(np.arange(2000, dtype=np.uint64), np.array([0]))  # words in a row
    assert ((0.0 < u) & (u < 1.0)).all()
    for sample in (*u.T, along, near):
        assert stats.kstest(sample, "uniform").pvalue > 1e-5
        assert stats.kstest((sample * 2**20) % 1.0, "uniform").pvalue > 1e-5  # its low bits
    together = np.corrcoef(stats.norm.ppf(u).T)
    assert np.abs(together - np.eye(8)).max() < 5.0 / np.sqrt(400)
    for lag in (1, 2, 7):
        assert abs(np.corrcoef(along[lag:], along[:-lag])[0, 1]) < 5.0 / np.sqrt(len(along))


def test_a_poisson_count_has_its_law_and_stops() -> None:
    words = np.random.default_rng(2).integers(0, 2**64, 4000, dtype=np.uint64)
    with np.errstate(over="ignore"):
        found = np.array([poisson.poisson_count(word, 4.2, 1000) for word in words])
        stopped = np.array([poisson.poisson_count(word, 4.2, 3) for word in words])
        none = poisson.poisson_count(words[0], 4.2, 0)
    counts = np.bincount(np.minimum(found, 12), minlength=13)
    wanted = stats.poisson.pmf(np.arange(12), 4.2)
    assert stats.chisquare(counts, 4000 * np.append(wanted, 1.0 - wanted.sum())).pvalue > P_VALUE
    np.testing.assert_array_equal(stopped, np.minimum(found, 3))
    assert none == 0


@pytest.mark.parametrize("weights", [[1.0], [1.0, 2.0, 0.0, 5.0], [0.0, 1.0], [1.0] * 7, list(range(50))])
def test_alias_tables_give_every_row_its_probability(weights: list[float]) -> None:
    bounds = np.array(weights)
    threshold, alias = poisson.alias_table(bounds)
    chance = threshold.copy()
    np.add.at(chance, alias, 1.0 - threshold)
    np.testing.assert_allclose(chance / len(bounds), bounds / bounds.sum(), atol=1e-14)
    evaluator = poisson.PoissonEvaluator.build(None, None, bounds)
    words = np.random.default_rng(3).integers(0, 2**64, 300, dtype=np.uint64)
    with np.errstate(over="ignore"):
        drawn = [evaluator.draw_row(word, j) for word in words for j in range(3)]
    assert (bounds[drawn] > 0.0).all()


# --- the whole loop ------------------------------------------------------------------------------


class Plain:
    """The mixture as a user would write it."""

    dimension = 2

    def __init__(self, model: Mixture) -> None:
        for name in ("log_prior", "log_likelihood", "row_bounds"):
            setattr(self, name, getattr(model, name))


@pytest.mark.parametrize("method", MIXTURE)
def test_a_plain_model_has_the_same_chain(method: str) -> None:
    chosen = cell(method)
    ours = sampling.sample(chosen, [0])[0]
    plain = replace(chosen, problem=replace(chosen.problem, model=Plain(chosen.problem.model)))
    theirs = sampling.sample(plain, [0])[0]
    assert theirs.attributes["evaluator"] == "poisson and generic"
    np.testing.assert_allclose(ours.draws, theirs.draws, rtol=1e-9)
    np.testing.assert_array_equal(ours.totals, theirs.totals)


def test_rows_without_bounds_are_refused() -> None:
    with pytest.raises(DpmcError, match="model: Banana: row_bounds: missing"):
        sampling.sample(cell("tuna-mh", problem("banana")), [0])
    for wrong in (np.nan, -1.0, 0.0):
        model = Plain(Mixture(2.0, 3.0))
        model.row_bounds = lambda rows, wrong=wrong: np.full(len(rows), wrong)  # type: ignore[attr-defined]
        with pytest.raises(DpmcError, match="model: Plain: row_bounds: must be finite"):
            evaluators.build_poisson(model, np.zeros((3, 1)), 1.0)


@pytest.mark.parametrize("thin", [1, 3, 7])
def test_facts_about_rows_reach_files_and_metrics(thin: int, tmp_path: Path) -> None:
    chosen = cell("dp-fast-mh published", thin=thin)
    run = sampling.sample(chosen, [0])[0]
    whole = sampling.sample(cell("dp-fast-mh published"), [0])[0]
    assert whole.random_rows is not None and run.random_rows is not None
    windows = whole.random_rows[:, :, : 40 // thin * thin].reshape(3, 1, -1, thin).sum(axis=3)
    np.testing.assert_array_equal(run.random_rows, windows)
    np.testing.assert_array_equal(run.totals, whole.totals)
    assert 0 < whole.totals[6, 0] < 40  # some tests on all rows, some not
    run.attributes["study"] = "tests"
    storage.write_chains(tmp_path / "chain.nc", run)
    read = storage.read_chain(tmp_path / "chain.nc")
    assert list(read.totals) == list(storage.TOTALS)
    for chain in (read, storage.ChainFile.of(run, {})):
        found = cell_metrics([chain], chosen.problem)
        rows = {row["metric"]: row["value"] for row in found if row["seed"] == 0}
        assert rows["rows_per_iteration"] == whole.totals[4, 0] / 40
        assert rows["noise_fraction"] == whole.totals[5, 0] / 40
        assert rows["full_batch_fraction"] == whole.totals[6, 0] / 40
        assert rows["ratio_clip_fraction"] == 0.0
    from netCDF4 import Dataset

    with Dataset(tmp_path / "chain.nc") as file:
        for name, counts in zip(storage.RANDOM_ROWS, run.random_rows, strict=True):
            np.testing.assert_array_equal(file["sample_stats"][name][:], counts)


def test_clip_fraction_is_that_of_rows_looked_at() -> None:
    chosen = cell("dp-fast-mh", clip=0.5, iterations=200)
    run = sampling.sample(chosen, [0])[0]
    run.attributes["study"] = "tests"
    rows = cell_metrics([storage.ChainFile.of(run, {})], chosen.problem)
    value = {row["metric"]: row["value"] for row in rows}["ratio_clip_fraction"]
    assert value == run.totals[2, 0] / run.totals[4, 0]
    assert 0.0 < value < 1.0


def test_a_proposal_outside_the_prior_is_rejected_unseen() -> None:
    chosen = cell("tuna-mh", proposal_sd=[1e3, 1e3])
    run = sampling.sample(chosen, [0])[0]
    assert run.totals[0, 0] == run.totals[4, 0] == 0


# --- noise set by an epsilon per iteration -------------------------------------------------------


def test_dp_fast_mh_is_set_to_an_epsilon_per_iteration() -> None:
    for method in ("dp-fast-mh", "dp-fast-mh-full"):
        found = algorithm_class(method).calibrate({"proposal_sd": 1.0, "epsilon": 9.0}, 0.05, 1e-5, 60)
        assert found == {"proposal_sd": 1.0, "epsilon": 0.05, "delta": 1e-5}


def test_dp_penalty_is_set_to_an_epsilon_per_iteration() -> None:
    for how, wanted in ((None, 96.90), ("classical", 96.90), ("exact", 57.77)):
        values = {"clip": 1.0} if how is None else {"clip": 1.0, "calibration": how}
        found = DPPenalty.calibrate(values, 0.05, 1e-5, 50_000)
        assert set(found) == {"clip", "tau"}
        assert found["tau"] * np.sqrt(50_000) == pytest.approx(wanted, abs=0.006)
    event = DPPenalty(found["tau"], 1.0, lengths(1.0)).releases(50_000)[1]
    delta = accountants.get("tight").delta(event, 0.05)
    assert delta == pytest.approx(1e-5, rel=1e-9)
    assert multiplier(0.05, 1e-5) == pytest.approx(96.90, abs=0.006)
    with pytest.raises(DpmcError, match="calibration: 'best' must be one of"):
        DPPenalty.calibrate({"calibration": "best"}, 0.05, 1e-5, 50_000)


def test_dp_barker_is_set_to_an_epsilon_per_iteration() -> None:
    size = DPBarker.calibrate({"clip_factor": 0.9}, 0.01, 1e-5, 50_000)["batch_size"]
    assert barker_fits(size, 50_000, 0.01, 1e-5) and not barker_fits(size + 1, 50_000, 0.01, 1e-5)
    assert DPBarker.calibrate({"batch_size": 300}, 0.01, 1e-5, 50_000) == {"batch_size": 300}
    assert DPBarker.calibrate({"batch_size": size + 1}, 0.01, 1e-5, 50_000)["batch_size"] == size
    with pytest.raises(DpmcError, match="epsilon: 1e-06 per iteration is too small for dp-barker"):
        DPBarker.calibrate({}, 1e-6, 1e-5, 50_000)


def test_the_ledger_of_a_corrected_chain_is_json() -> None:
    run = sampling.sample(cell("dp-fast-mh", iterations=20, epsilon="1000000"), [0])[0]
    (performed,) = json.loads(run.attributes["ledger"])["performed"]
    assert (performed["type"], performed["count"], performed["most_rows"]) == ("fast-metropolis", 20, 48)


@pytest.mark.parametrize(
    ("epsilon", "kept"), [(0.05, True), (8.4, True), (8.43, False), (10.0, False), (50.0, False)]
)
def test_classical_noise_is_refused_where_it_is_not_private(epsilon: float, kept: bool) -> None:
    """At delta = 1e-5 the exact curve exceeds delta from epsilon = 8.42 on (docs/accounting.md)."""
    n, sd = 1000, np.ones(1)
    rule = FastRule(epsilon, 1e-5, 1.0, 0, 1.0, True, True, False, False)
    private = (
        lambda: DPPenalty.calibrate({"calibration": "classical"}, epsilon, 1e-5, n),
        lambda: DPFastMHFull(rule, sd).releases(n),
    )
    for ask in private:
        if kept:
            ask()
        else:
            with pytest.raises(DpmcError, match=r"classical noise multiplier .* in truth"):
                ask()
    tau = DPPenalty.calibrate({"calibration": "exact"}, epsilon, 1e-5, n)["tau"]
    release = GaussianRelease("ratio", tau * np.sqrt(n))
    assert accountants.get("tight").delta([release], epsilon) <= 1e-5
    published = rule._replace(clip=np.inf, barker=False)
    assert isinstance(DPFastMHFull(published, sd).releases(n)[1][0], NonPrivateRelease)  # it promises nothing
