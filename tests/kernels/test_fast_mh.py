"""TunaMH and DP-Fast MH: exact accept bits, declared queries, random numbers, noise set by an epsilon.

Acceptance probabilities of the paper's text, computed exactly on three rows (`kernels.fast_mh`), are in
detailed balance or not; the kernels accept as often as they say. Random tests are seeded; each fails a right
kernel with probability 1e-4 or less.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpmc.algorithms.dp_barker import DPBarker
from dpmc.algorithms.dp_fast_mh_full import DPFastMHFull
from dpmc.algorithms.dp_penalty import DPPenalty
from dpmc.common.errors import DpmcError
from dpmc.data import chain_files
from dpmc.evaluators import kernels, poisson
from dpmc.metrics.cell import cell_metrics
from dpmc.models.mixture import Mixture
from dpmc.privacy import accountants
from dpmc.privacy import noise as noises
from dpmc.privacy.events import BarkerQuery, FastMetropolisQuery, GaussianQuery, NonPrivateQuery
from dpmc.privacy.fast_mh import multiplier
from dpmc.privacy.runs import RunQueries
from dpmc.sampling import loop
from kernels import ladder
from kernels.cells import cell, problem
from kernels.fast_mh import FEW, Case, Line, LineSetting, imbalance
from kernels.ladder import P_VALUE, Fault, Kernel, Spy, kernel_of, sown
from kernels.problems import Setting

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
#: Rows of very different bounds, and all weight of a move in one of them.
UNEVEN = LineSetting(Line(2.0), np.array([[1.5, 0.0], [0.0, 0.2], [0.1, -0.1]]), 0.9)
CASES = {
    **BALANCED,
    "published, uneven rows": Case("dp-fast-mh", {**PUBLISHED, **FREE}, UNEVEN),
    "corrected, all rows, cool": Case("dp-fast-mh-full", {**CORRECTED, **FULL_FREE}, COOL),
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
    assert abs(imbalance(BALANCED[name])) < ladder.IMBALANCE


@pytest.mark.parametrize("name", UNBALANCED)
def test_where_detailed_balance_fails_by_quadrature(name: str) -> None:
    case, least = UNBALANCED[name]
    assert abs(imbalance(case)) > least


@pytest.mark.parametrize("name", [*BALANCED, *UNBALANCED])
def test_the_kernel_accepts_as_often_as_quadrature_says(name: str) -> None:
    case = BALANCED[name] if name in BALANCED else UNBALANCED[name][0]
    _, private = case.one_test(case.kernel, False, 1000)
    if name in BALANCED:  # it is the test that the name says
        assert (private.tests.noise_drawn == ("with noise" in name or "sent to" in name)).all()
        assert (private.tests.all_rows == ("all rows" in name)).all()
    assert not private.ratio_clipped.any()
    assert case.frequency_p(20_000) > P_VALUE


# --- stationarity --------------------------------------------------------------------------------

MANY = LineSetting(Line(0.5), np.random.default_rng(12).normal([0.6, -0.4], 0.8, (60, 2)), 0.1)
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


def on_many(method: str, values: dict[str, Any]) -> Kernel:
    return kernel_of(method, MANY, **values, proposal_sd=0.7)


@pytest.mark.parametrize("name", MOVES)
def test_exact_draws_stay_exact(name: str) -> None:
    kernel = on_many(*MOVES[name])
    assert ladder.invariance(kernel, chains=2000, iterations=30) > P_VALUE


# --- queries ------------------------------------------------------------------------------------

VALID = {**CORRECTED, "clip": 1.0, "delta": 0.3}
#: Corrected kernels whose calibration is valid (n = 60), each with the kinds of tests it makes.
DECLARING = {
    **{
        name: on_many("dp-fast-mh", {**VALID, "batch_mean": mean, "most_rows": most, "epsilon": epsilon})
        for name, mean, most, epsilon in (
            ("minibatch without noise", 40.0, 57, 4.0),
            ("minibatch with noise", 20.0, 57, 1.0),
            ("all rows without noise", 50.0, 51, 3.5),
            ("all rows with noise", 50.0, 51, 0.02),
        )
    },
    "all rows, always": on_many("dp-fast-mh-full", {**VALID, "epsilon": 0.2}),
}


def bit_query_faults(kernel: Kernel, chains: int = 40, m: int = 4) -> list[str]:
    """Return the differences between a corrected kernel's tests and its declared event; empty if none.

    From outside: the noise asked for must be the declared multiplier times the public sensitivity, and
    absent only where that is within the declared ε; all of it a function of θ, θ' and public numbers.
    """
    algorithm = kernel.algorithm
    once, (event,) = RunQueries.of(algorithm, MANY.n)
    assert once == () and isinstance(event, FastMetropolisQuery)
    start, given = started(kernel, chains, m)
    source = Spy(noises.LabNoise(given.ratio_normals, given.gradient_normals))
    private = ladder.private_data(kernel, given, source=source)
    faults: list[str] = []
    for i, _ in enumerate(ladder.steps(kernel, start, given, MANY.model, private)):
        ((_, _, sd, _),) = source.of("corrected", "centred")
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
    assert bit_query_faults(kernel) == []
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
    with sown("dpmc.evaluators.poisson", Fault("bounded_rows", "clip < np.inf", "False")):
        assert public_facts_differ(DECLARING["minibatch without noise"])


# --- random numbers ------------------------------------------------------------------------------


def uniforms(words: np.ndarray, places: np.ndarray) -> np.ndarray:
    return np.array([kernels.uniforms(words, int(k)) for k in places]).T


def test_uniform_numbers_of_words_are_uniform_and_independent() -> None:
    words = np.random.default_rng(1).integers(0, 2**64, 400, dtype=np.uint64)
    places = np.array(
        [0, 1, 2, 3, kernels.ROW_PLACES, kernels.ROW_PLACES + 1, kernels.THINNING, kernels.NOISE]
    )
    u = uniforms(words, places)
    along = uniforms(words[:1], np.arange(20_000))[0]
    near = kernels.uniforms(np.arange(2000, dtype=np.uint64), 0)  # words in a row
    assert ((0.0 < u) & (u < 1.0)).all()
    for sample in (*u.T, along, near):
        assert stats.kstest(sample, "uniform").pvalue > 1e-5
        assert stats.kstest((sample * 2**20) % 1.0, "uniform").pvalue > 1e-5  # its low bits
    together = np.corrcoef(stats.norm.ppf(u).T)
    assert np.abs(together - np.eye(8)).max() < 5.0 / np.sqrt(400)
    for lag in (1, 2, 7):
        assert abs(np.corrcoef(along[lag:], along[:-lag])[0, 1]) < 5.0 / np.sqrt(len(along))


@pytest.mark.parametrize("weights", [[1.0], [1.0, 2.0, 0.0, 5.0], [0.0, 1.0], [1.0] * 7, list(range(50))])
def test_alias_tables_give_every_row_its_probability(weights: list[float]) -> None:
    bounds = np.array(weights)
    threshold, alias = poisson.alias_table(bounds)
    chance = threshold.copy()
    np.add.at(chance, alias, 1.0 - threshold)
    np.testing.assert_allclose(chance / len(bounds), bounds / bounds.sum(), atol=1e-14)
    words = np.random.default_rng(3).integers(0, 2**64, 300, dtype=np.uint64)
    drawn = np.concatenate([poisson.BoundedRows(bounds).draw(word, 30) for word in words])
    assert (bounds[drawn] > 0.0).all()
    counts = np.bincount(drawn, minlength=len(bounds))
    some = bounds > 0.0
    wanted = len(drawn) * bounds[some] / bounds.sum()
    assert len(wanted) == 1 or stats.chisquare(counts[some], wanted).pvalue > P_VALUE


# --- the whole loop ------------------------------------------------------------------------------


def test_rows_without_bounds_are_refused() -> None:
    with pytest.raises(DpmcError, match="model: Banana: row_bounds: missing"):
        loop.sample(cell("tuna-mh", problem("banana")), [0])
    for wrong in (np.nan, -1.0, 0.0):
        model = type("Wrong", (Mixture,), {"row_bounds": lambda self, rows, w=wrong: np.full(len(rows), w)})
        with pytest.raises(DpmcError, match="model: Wrong: row_bounds: must be finite"):
            poisson.bounded_rows(model(2.0, 3.0), np.zeros((3, 1)), 1.0, np.inf)


def test_facts_about_rows_reach_files_and_metrics(tmp_path: Path) -> None:
    chosen = cell("dp-fast-mh published")
    chains = loop.sample(chosen, [0])[0]
    assert 0 < chains.totals["all_rows"][0] < 40  # some tests on all rows, some not
    chains.attrs["study"] = "tests"
    chain_files.write_chains(tmp_path / "chain.nc", chains)
    for chain in (chain_files.read_chain(tmp_path / "chain.nc"), chains):
        rows = {row["metric"]: row["value"] for row in cell_metrics([chain], chosen.problem)}
        names = ("rows_per_iteration", "noise_fraction", "full_batch_fraction")
        for metric, total in zip(names, chain_files.RANDOM_ROWS, strict=True):
            assert rows[metric] == chains.totals[total][0] / 40


def test_a_proposal_outside_the_prior_is_rejected_without_reading_rows() -> None:
    chosen = cell("tuna-mh", proposal_sd=[1e3, 1e3])
    run = loop.sample(chosen, [0])[0]
    assert run.totals["accepted"][0] == run.totals["rows_used"][0] == 0


# --- noise set by an epsilon per iteration -------------------------------------------------------


def test_dp_penalty_is_set_to_an_epsilon_per_iteration() -> None:
    for how, wanted in ((None, 96.90), ("classical", 96.90), ("exact", 57.77)):
        values = {"clip": 1.0} if how is None else {"clip": 1.0, "calibration": how}
        found = DPPenalty.calibrate(values, 0.05, 1e-5, 50_000)
        assert set(found) == {"clip", "tau"}
        assert found["tau"] * np.sqrt(50_000) == pytest.approx(wanted, abs=0.006)
    event = DPPenalty(tau=found["tau"], clip=1.0, proposal_sd=np.ones(1)).queries(50_000).each
    delta = accountants.get("tight").delta(event, 0.05)
    assert delta == pytest.approx(1e-5, rel=1e-9)
    assert multiplier(0.05, 1e-5) == pytest.approx(96.90, abs=0.006)


def test_dp_barker_is_set_to_an_epsilon_per_iteration() -> None:
    size = DPBarker.calibrate({"clip_factor": 0.9}, 0.01, 1e-5, 50_000)["batch_size"]
    barker_pld = accountants.get("barker-pld")
    deltas = [barker_pld.delta((BarkerQuery("test", b, 50_000),), 0.01) for b in (size, size + 1)]
    assert deltas[0] <= 1e-5 < deltas[1]
    assert DPBarker.calibrate({"batch_size": 300}, 0.01, 1e-5, 50_000) == {"batch_size": 300}
    assert DPBarker.calibrate({"batch_size": size + 1}, 0.01, 1e-5, 50_000)["batch_size"] == size
    with pytest.raises(DpmcError, match="epsilon: 1e-06 per iteration is too small for dp-barker"):
        DPBarker.calibrate({}, 1e-6, 1e-5, 50_000)


@pytest.mark.parametrize(
    ("epsilon", "kept"), [(0.05, True), (8.4, True), (8.43, False), (10.0, False), (50.0, False)]
)
def test_classical_noise_is_refused_where_it_is_not_private(epsilon: float, kept: bool) -> None:
    """At delta = 1e-5 the exact curve exceeds delta from epsilon = 8.42 on (explanation/accounting.md)."""
    n, fixed = 1000, {"epsilon": epsilon, "delta": 1e-5, "proposal_sd": np.ones(1)}
    private = (
        lambda: DPPenalty.calibrate({"calibration": "classical"}, epsilon, 1e-5, n),
        lambda: DPFastMHFull(variant="corrected", clip=1.0, **fixed).queries(n),
    )
    for ask in private:
        if kept:
            ask()
        else:
            with pytest.raises(DpmcError, match=r"classical noise multiplier .* exact delta"):
                ask()
    tau = DPPenalty.calibrate({"calibration": "exact"}, epsilon, 1e-5, n)["tau"]
    query = GaussianQuery("ratio", tau * np.sqrt(n))
    assert accountants.get("tight").delta([query], epsilon) <= 1e-5
    # what is published promises nothing
    assert isinstance(DPFastMHFull(**fixed).queries(n).each[0], NonPrivateQuery)
