"""Every kernel passes the ladder: balance, reversibility, invariance, joint test, releases."""

from dataclasses import replace

import pytest

from kernels import ladder
from kernels.ladder import COMPILED, KERNELS, REUSING, Kernel

LEAPS = ("hmc", "dp-hmc")
#: The clipping experiment's samplers: how rows are clipped is checked, the posterior is not kept.
CLIPPED = {
    f"{name} clipped {'as coded' if as_coded else 'as written'}": replace(
        KERNELS[name], algorithm=KERNELS[name].algorithm._replace(clip=0.5, as_coded=as_coded)
    )
    for name in ("rwmh", "hmc")
    for as_coded in (False, True)
}
each_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


@each_kernel
def test_moves_are_in_detailed_balance(kernel: Kernel) -> None:
    assert ladder.imbalance(kernel) < ladder.IMBALANCE


@each_kernel
def test_moves_can_be_undone(kernel: Kernel) -> None:
    assert ladder.return_error(kernel) < ladder.RETURN_ERROR


@pytest.mark.parametrize("name", LEAPS)
def test_trajectories_keep_volume(name: str) -> None:
    assert ladder.volume_error(KERNELS[name]) < ladder.VOLUME_ERROR


@pytest.mark.parametrize("name", COMPILED)
def test_exact_draws_stay_exact(name: str) -> None:
    kernel, setting = COMPILED[name]
    assert ladder.invariance(kernel, setting, chains=4000, iterations=50) > ladder.P_VALUE


@pytest.mark.parametrize("name", KERNELS)
def test_parameters_and_rows_keep_their_joint_law(name: str) -> None:
    kernel = replace(KERNELS[name], python=False)
    assert ladder.joint_test(kernel, ladder.WEAK, replicates=4000, iterations=60) > ladder.P_VALUE


@pytest.mark.parametrize(
    "kernel", [*KERNELS.values(), REUSING, *CLIPPED.values()], ids=[*KERNELS, "reusing", *CLIPPED]
)
def test_performed_releases_equal_declared_ones(kernel: Kernel) -> None:
    assert ladder.release_faults(kernel) == []


@pytest.mark.parametrize(
    "kernel",
    [KERNELS["dp-penalty"], KERNELS["dp-penalty-guided"], KERNELS["dp-hmc"], REUSING],
    ids=["dp-penalty", "dp-penalty-guided", "dp-hmc", "reusing gradients"],
)
def test_noise_multipliers_are_attained_by_the_worst_neighbour(kernel: Kernel) -> None:
    found = ladder.attained_multipliers(kernel)
    assert found
    for multiplier, declared in found.values():
        assert multiplier == pytest.approx(declared, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("name", COMPILED)
def test_false_alarms_are_rare_on_other_seeds(name: str, seed: int) -> None:
    kernel, setting = COMPILED[name]
    p = ladder.invariance(kernel, setting, chains=4000, iterations=50, seed=100 + seed)
    assert p > ladder.P_VALUE
