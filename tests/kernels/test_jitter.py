"""DP-MALA is DP-HMC with one step; jitter multiplies the step size and keeps the posterior."""

import numpy as np
import pytest

from dpmc.algorithms.dp_hmc import DPHMC
from dpmc.algorithms.dp_mala import DPMALA
from dpmc.algorithms.hmc import HMC
from kernels import ladder, releases
from kernels.ladder import QUIET, Kernel, lengths, sown
from kernels.problems import LARGE

NOISE = {"tau_l": 0.004, "tau_g": 0.001, "clip_l": 100.0, "clip_g": 400.0}
MALA = Kernel(DPMALA(**NOISE, step_size=lengths(0.9, 0.4), mass=lengths(2.5, 0.4)))


def test_mala_is_hmc_with_one_step() -> None:
    hmc = Kernel(DPHMC(**vars(MALA.algorithm), steps=1))
    generator = np.random.default_rng(5)
    start = LARGE.posterior.draws(generator, 3)
    given = ladder.numbers(hmc, generator, 3, 20)
    ours, theirs = (ladder.run(kernel, start, given, LARGE) for kernel in (MALA, hmc))
    for name, values in vars(ours).items():
        np.testing.assert_array_equal(values, getattr(theirs, name))
    assert MALA.algorithm.releases(60) == hmc.algorithm.releases(60)
    assert MALA.algorithm.needs(2) == hmc.algorithm.needs(2)


def test_mala_passes_the_ladder() -> None:
    assert ladder.imbalance(MALA) < ladder.IMBALANCE
    assert ladder.return_error(MALA) < ladder.RETURN_ERROR
    assert ladder.volume_error(MALA) < ladder.VOLUME_ERROR
    assert releases.release_faults(MALA) == []
    (found, declared) = releases.attained_multipliers(MALA)["gradient"]
    assert found == pytest.approx(declared, rel=1e-6)


LEAP = {"steps": 3, "step_size": lengths(0.3, 0.14), "mass": lengths(1.3, 0.7)}
JITTERED = {
    "dp-hmc": Kernel(DPHMC(**QUIET, **LEAP, jitter="halton"), LARGE),
    "hmc": Kernel(HMC(**LEAP, jitter="halton"), LARGE),
}
STATIONARY = {
    **{f"{name} jittered": kernel for name, kernel in JITTERED.items()},
    "dp-mala": Kernel(DPMALA(**QUIET, step_size=lengths(0.4, 0.2), mass=lengths(1.3, 0.7)), LARGE),
}


@pytest.mark.parametrize("name", STATIONARY)
def test_exact_draws_stay_exact(name: str) -> None:
    assert ladder.invariance(STATIONARY[name], chains=4000, iterations=50) > ladder.P_VALUE


def pace_error(name: str) -> float:
    """Return the distance of a trajectory with jitter u from one with step size uη and no jitter."""
    kernel = JITTERED[name].anew()
    generator = np.random.default_rng(6)
    start = LARGE.posterior.draws(generator, 3)
    given = ladder.numbers(kernel, generator, 3, 4)
    given.uniform[:] = 0.37
    plain = JITTERED[name].but(step_size=0.37 * LEAP["step_size"], jitter="none")
    theirs = ladder.run(plain, start, given)
    assert theirs.accepted.any()
    return float(np.abs(ladder.run(kernel, start, given).theta - theirs.theta).max())


@pytest.mark.parametrize("name", JITTERED)
def test_jitter_multiplies_the_step_size(name: str) -> None:
    assert pace_error(name) < 1e-12
    with sown("dpmc.algorithms.leapfrog"), sown(f"dpmc.algorithms.{name.replace('-', '_')}"):
        assert pace_error(name) < 1e-12


FAULTS = {
    "energy of the wrong momentum": ("leapfrog", "(q * pace)", "(q)"),
    "p in place of p/u": ("leapfrog", "momentum / pace", "momentum"),
    "u in place of u²": ("leapfrog", "pace**2", "pace"),
    "the same jitter for all": ("leapfrog", "draws.uniform if", "0.5 if"),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_wrong_use_of_jitter_is_detected(fault: tuple[str, str, str]) -> None:
    module, old, new = fault
    with sown(f"dpmc.algorithms.{module}", (old, new)):
        assert pace_error("dp-hmc") > 1e-6
