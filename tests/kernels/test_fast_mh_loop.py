"""TunaMH and DP-Fast MH: their random numbers, whole chains, and noise set by an epsilon per iteration."""

from pathlib import Path

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
from dpmc.privacy.events import BarkerRelease, GaussianRelease, NonPrivateRelease
from dpmc.privacy.fast_rule import multiplier
from dpmc.sampling import loop
from kernels.cells import cell, problem
from kernels.ladder import P_VALUE, lengths


def uniforms(words: np.ndarray, places: np.ndarray) -> np.ndarray:
    return np.array([kernels.uniforms(words, int(k)) for k in places]).T


def test_uniform_numbers_of_words_are_uniform_and_independent() -> None:
    words = np.random.default_rng(1).integers(0, 2**64, 400, dtype=np.uint64)
    places = np.array([0, 1, 2, 3, kernels.ROWS, kernels.ROWS + 1, kernels.THINNING, kernels.NOISE])
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


def test_a_poisson_count_has_its_law_and_stops() -> None:
    words, mean = np.random.default_rng(2).integers(0, 2**64, 4000, dtype=np.uint64), np.full(4000, 4.2)
    found = kernels.poisson_counts(words, mean, 1000)
    counts = np.bincount(np.minimum(found, 12), minlength=13)
    wanted = stats.poisson.pmf(np.arange(12), 4.2)
    assert stats.chisquare(counts, 4000 * np.append(wanted, 1.0 - wanted.sum())).pvalue > P_VALUE
    np.testing.assert_array_equal(kernels.poisson_counts(words, mean, 3), np.minimum(found, 3))
    assert (kernels.poisson_counts(words, mean, 0) == 0).all()


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
    assert 0 < chains.totals[6, 0] < 40  # some tests on all rows, some not
    chains.attributes["study"] = "tests"
    chain_files.write_chains(tmp_path / "chain.nc", chains)
    for chain in (chain_files.read_chain(tmp_path / "chain.nc"), chain_files.ChainFile.of(chains, {})):
        rows = {row["metric"]: row["value"] for row in cell_metrics([chain], chosen.problem)}
        for metric, total in (("rows_per_iteration", 4), ("noise_fraction", 5), ("full_batch_fraction", 6)):
            assert rows[metric] == chains.totals[total, 0] / 40


def test_a_proposal_outside_the_prior_is_rejected_without_reading_rows() -> None:
    chosen = cell("tuna-mh", proposal_sd=[1e3, 1e3])
    run = loop.sample(chosen, [0])[0]
    assert run.totals[0, 0] == run.totals[4, 0] == 0


# --- noise set by an epsilon per iteration -------------------------------------------------------


def test_dp_penalty_is_set_to_an_epsilon_per_iteration() -> None:
    for how, wanted in ((None, 96.90), ("classical", 96.90), ("exact", 57.77)):
        values = {"clip": 1.0} if how is None else {"clip": 1.0, "calibration": how}
        found = DPPenalty.calibrate(values, 0.05, 1e-5, 50_000)
        assert set(found) == {"clip", "tau"}
        assert found["tau"] * np.sqrt(50_000) == pytest.approx(wanted, abs=0.006)
    event = DPPenalty(tau=found["tau"], clip=1.0, proposal_sd=lengths(1.0)).releases(50_000)[1]
    delta = accountants.get("tight").delta(event, 0.05)
    assert delta == pytest.approx(1e-5, rel=1e-9)
    assert multiplier(0.05, 1e-5) == pytest.approx(96.90, abs=0.006)


def test_dp_barker_is_set_to_an_epsilon_per_iteration() -> None:
    size = DPBarker.calibrate({"clip_factor": 0.9}, 0.01, 1e-5, 50_000)["batch_size"]
    barker_pld = accountants.get("barker-pld")
    deltas = [barker_pld.delta((BarkerRelease("test", b, 50_000),), 0.01) for b in (size, size + 1)]
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
        lambda: DPFastMHFull(variant="corrected", clip=1.0, **fixed).releases(n),
    )
    for ask in private:
        if kept:
            ask()
        else:
            with pytest.raises(DpmcError, match=r"classical noise multiplier .* exact delta"):
                ask()
    tau = DPPenalty.calibrate({"calibration": "exact"}, epsilon, 1e-5, n)["tau"]
    release = GaussianRelease("ratio", tau * np.sqrt(n))
    assert accountants.get("tight").delta([release], epsilon) <= 1e-5
    # what is published promises nothing
    assert isinstance(DPFastMHFull(**fixed).releases(n)[1][0], NonPrivateRelease)
