"""Every kind of mistake is caught: a kernel with a fault sown into its text fails the ladder."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from kernels import ladder
from kernels.ladder import FAULT_P, KERNELS, SMALL, WEAK, Kernel

RWMH = "dpmc.algorithms.rwmh"
PENALTY = "dpmc.algorithms.dp_penalty"
GUIDED = "dpmc.algorithms.dp_penalty_guided"
HMC = "dpmc.algorithms.hmc"
DP_HMC = "dpmc.algorithms.dp_hmc"
LEAPFROG = "dpmc.algorithms.leapfrog"
COMMON = "dpmc.algorithms.common"
DOOR = "dpmc.privacy.mechanisms"
NOISE = "dpmc.privacy.noise"


Measure = Callable[[Kernel], Any]


def balance(kernel: Kernel) -> float:
    return ladder.imbalance(kernel, nodes=401)


def invariance(kernel: Kernel) -> float:
    return ladder.invariance(kernel, SMALL, chains=1000, iterations=12)


def joint(kernel: Kernel) -> float:
    return ladder.joint_test(kernel, SMALL, replicates=1000, iterations=12)


def undoing(kernel: Kernel) -> float:
    return ladder.return_error(kernel)


def volume(kernel: Kernel) -> float:
    return ladder.volume_error(kernel)


def releases(kernel: Kernel) -> list[str]:
    return ladder.release_faults(kernel)


def attained(kernel: Kernel) -> float:
    """The smallest noise multiplier found, as a fraction of the declared one."""
    return min(found / declared for found, declared in ladder.attained_multipliers(kernel).values())


#: When a measure catches a fault: far beyond what a right kernel is allowed.
CAUGHT: dict[Measure, Callable[[Any], bool]] = {
    balance: lambda error: error > 10.0 * ladder.IMBALANCE,
    invariance: lambda p: p < FAULT_P,
    joint: lambda p: p < FAULT_P,
    undoing: lambda error: error > 1e4 * ladder.RETURN_ERROR,
    volume: lambda error: error > 1e3 * ladder.VOLUME_ERROR,
    releases: bool,
    attained: lambda fraction: fraction < 0.999,
}


@dataclass(frozen=True)
class Fault:
    """A mistake in a module's text, for a kernel, and the checks that must catch it."""

    kernel: str
    module: str
    old: str
    new: str
    checks: tuple[Measure, ...]


EXTRA_RELEASE = """
        door.noisy_log_ratio(
            proposal, state.theta, self.clip, self.tau, noise, i, log_ratio, record.ratio_clipped
        )"""
ASKED_ONCE = """
        door.noisy_log_ratio(
            state.theta, proposal, self.clip, self.tau, noise, i, log_ratio, record.ratio_clipped
        )"""
CORRECTED = "sd * self.ratio_normals[c, i] - 0.5 * sd * sd"
UNIFORM = "__import__('scipy.special').special.ndtr(self.ratio_normals[c, i])"
FLIP = "state.extra[c, component[c]] *= -1.0"
FIRST_KICK = "kick(momentum, 0.5, self.step_size, gradient)\n            drift("
LAST_KICK = "counts)\n            kick(momentum, 0.5, self.step_size, gradient)"
DRIFT = "step_size[k] * momentum[c, k] / mass[k]"
REFRESH = "np.sqrt(mass[k]) * normal[c, i, k]"
PRIOR = "log_ratio[c] += door.log_prior(proposal[c]) - door.log_prior(state.theta[c])"
RATIO_SD = "sd = self.temperature * 2.0 * tau * np.sqrt(float(self.n)) * bound[c]"
GRADIENT_SD = "sd = self.temperature * 2.0 * tau * np.sqrt(float(self.n)) * clip"
L2_BOUND = "clip * distance(theta[c], proposal[c])"
TEMPERED = "answer[c] = self.temperature * answer[c] + noise"

FAULTS = {
    # the acceptance test
    "penalty added, not subtracted": Fault(
        "dp-penalty", NOISE, CORRECTED, CORRECTED.replace("- 0.5", "+ 0.5"), (balance, invariance)
    ),
    "correction missing": Fault(
        "dp-penalty", NOISE, CORRECTED, CORRECTED.replace("- 0.5 * sd * sd", ""), (balance,)
    ),
    "correction missing in dp-hmc": Fault(
        "dp-hmc", NOISE, CORRECTED, CORRECTED.replace("- 0.5 * sd * sd", ""), (balance,)
    ),
    "correction of half the variance": Fault(
        "dp-penalty", NOISE, CORRECTED, CORRECTED.replace("0.5", "0.25"), (balance,)
    ),
    "uniform noise on [0, sd)": Fault(
        "dp-penalty", NOISE, CORRECTED, f"sd * {UNIFORM} - 0.5 * sd * sd", (balance,)
    ),
    "uniform noise without correction": Fault("dp-penalty", NOISE, CORRECTED, f"sd * {UNIFORM}", (balance,)),
    "centred uniform noise of the right variance": Fault(
        "dp-penalty",
        NOISE,
        CORRECTED,
        f"12.0**0.5 * sd * ({UNIFORM} - 0.5) - 0.5 * sd * sd",
        (balance,),
    ),
    "u in place of ln u": Fault(
        "dp-penalty", COMMON, "draws.log_u[c, i] <", "np.exp(draws.log_u[c, i]) <", (invariance,)
    ),
    "always accepts": Fault("rwmh", COMMON, "draws.log_u[c, i] < log_ratio", "True", (invariance,)),
    "prior left out": Fault("dp-penalty", PENALTY, PRIOR, "pass", (balance,)),
    "prior ratio upside down": Fault("rwmh", RWMH, PRIOR, PRIOR.replace("+=", "-="), (balance, joint)),
    "likelihood not tempered": Fault(
        "dp-penalty", DOOR, TEMPERED, "answer[c] = answer[c] + noise", (balance, invariance, joint)
    ),
    "tempered twice": Fault(
        "dp-penalty",
        DOOR,
        TEMPERED,
        TEMPERED.replace("temperature", "temperature**2"),
        (balance, invariance),
    ),
    # walks
    "guided walk never turns": Fault("dp-penalty-guided", GUIDED, FLIP, "pass", (invariance,)),
    "guided walk turns all components": Fault(
        "dp-penalty-guided", GUIDED, FLIP, "state.extra[c] *= state.extra[c]", (invariance,)
    ),
    "lopsided proposal": Fault(
        "dp-penalty",
        COMMON,
        "proposal_sd[k] * normal[c, i, k]",
        "proposal_sd[k] * (normal[c, i, k] + 0.3)",
        (undoing, invariance),
    ),
    # leapfrog
    "step size dropped from the position's update": Fault(
        "dp-hmc",
        LEAPFROG,
        DRIFT,
        f"0.3 * step_size[k] * {DRIFT}",
        (balance,),
    ),
    "full kick at the start": Fault(
        "hmc", HMC, FIRST_KICK, FIRST_KICK.replace("0.5", "1.0"), (undoing, balance)
    ),
    "full kick at the end": Fault("dp-hmc", DP_HMC, LAST_KICK, LAST_KICK.replace("0.5", "1.0"), (balance,)),
    "no kick at the end": Fault("dp-hmc", DP_HMC, LAST_KICK, LAST_KICK.replace("0.5", "0.0"), (balance,)),
    "friction in the trajectory": Fault(
        "hmc", LEAPFROG, "momentum[c, k] +=", "momentum[c, k] = 0.99 * momentum[c, k] +", (volume,)
    ),
    "kinetic energy without the mass": Fault(
        "dp-hmc",
        LEAPFROG,
        "momentum[k] ** 2 / mass[k]",
        "momentum[k] ** 2",
        (balance, invariance),
    ),
    "kinetic energy upside down": Fault(
        "dp-hmc", DP_HMC, "+= energy[c] - kinetic", "-= energy[c] - kinetic", (balance,)
    ),
    "momentum of unit variance": Fault("hmc", LEAPFROG, REFRESH, "normal[c, i, k]", (balance,)),
    "momentum with M for its square root": Fault(
        "dp-hmc", LEAPFROG, REFRESH, REFRESH.replace("np.sqrt(mass[k])", "mass[k]"), (balance,)
    ),
    "momentum never refreshed": Fault(
        "hmc", LEAPFROG, REFRESH, REFRESH.replace(", i,", ", 0,"), (invariance,)
    ),
    "gradient kept at the proposal after a rejection": Fault(
        "hmc",
        HMC,
        "if accept(state, theta, log_ratio[c], draws, c, i, record):",
        "if accept(state, theta, log_ratio[c], draws, c, i, record) or True:",
        (invariance,),
    ),
    # releases
    "ratio noise of half the sensitivity": Fault(
        "dp-penalty", DOOR, RATIO_SD, RATIO_SD.replace("2.0", "1.0"), (releases, attained)
    ),
    "ratio noise without root n": Fault(
        "dp-penalty-guided",
        DOOR,
        RATIO_SD,
        RATIO_SD.replace("np.sqrt(float(self.n))", "1.0"),
        (releases,),
    ),
    "ratio noise not tempered": Fault(
        "dp-penalty", DOOR, RATIO_SD, RATIO_SD.replace("self.temperature * ", ""), (releases,)
    ),
    "gradient noise of half the sensitivity": Fault(
        "dp-hmc", DOOR, GRADIENT_SD, GRADIENT_SD.replace("2.0", "1.0"), (releases, attained)
    ),
    "gradient noise not tempered": Fault(
        "dp-hmc", DOOR, GRADIENT_SD, GRADIENT_SD.replace("self.temperature * ", ""), (releases,)
    ),
    "clipped by the 1-norm": Fault(
        "dp-penalty", DOOR, L2_BOUND, "clip * abs(theta[c] - proposal[c]).sum()", (releases,)
    ),
    "clipped by |sum of differences|": Fault(
        "dp-penalty", DOOR, L2_BOUND, "clip * abs((theta[c] - proposal[c]).sum())", (releases,)
    ),
    "noise scaled by the 1-norm only": Fault(
        "dp-penalty",
        DOOR,
        RATIO_SD,
        RATIO_SD.replace("bound[c]", "clip * abs((theta[c] - proposal[c]).sum())"),
        (releases,),
    ),
    "undeclared release": Fault("dp-penalty", PENALTY, ASKED_ONCE, EXTRA_RELEASE + ASKED_ONCE, (releases,)),
    "release without noise": Fault(
        "dp-penalty", DOOR, "+ noise.corrected(c, i, sd)", "", (releases, attained)
    ),
    "gradient without noise": Fault("dp-hmc", DOOR, "answer[c, k] += z[k]", "pass", (attained,)),
    "one noise vector for all gradients": Fault(
        "dp-hmc", DP_HMC, "noise, i, step, gradient", "noise, i, 0, gradient", (releases,)
    ),
    "one gradient declared too few": Fault(
        "dp-hmc",
        DP_HMC,
        'return (), (ratio, GaussianRelease("gradient", self.tau_g * root, self.steps + 1))',
        'return (), (ratio, GaussianRelease("gradient", self.tau_g * root, self.steps))',
        (releases,),
    ),
}
CASES = [
    pytest.param(fault, check, id=f"{name}: {check.__name__}")
    for name, fault in FAULTS.items()
    for check in fault.checks
]


@pytest.mark.parametrize(("fault", "check"), CASES)
def test_fault_is_caught(fault: Fault, check: Measure) -> None:
    assert CAUGHT[check](check(KERNELS[fault.kernel].mutated(fault.module, (fault.old, fault.new))))


@pytest.mark.parametrize("module", sorted({(f.kernel, f.module) for f in FAULTS.values()}))
@pytest.mark.parametrize("check", [balance, releases])
def test_text_run_anew_without_a_fault_is_not_blamed(module: tuple[str, str], check: Measure) -> None:
    # so that the faults above are caught for what was changed, not for how they are made
    assert not CAUGHT[check](check(KERNELS[module[0]].mutated(module[1])))


@pytest.mark.parametrize("name", KERNELS)
def test_statistical_checks_blame_no_right_kernel_in_plain_python(name: str) -> None:
    assert ladder.invariance(KERNELS[name], SMALL, chains=1000, iterations=12) > ladder.P_VALUE


WRONG = {
    "likelihood variance": {"model": WEAK.model._replace(variance=WEAK.model.variance * 1.5)},
    "prior variance": {"model": WEAK.model._replace(prior_variance=12.0)},
    "prior's bend": {"model": WEAK.model._replace(b=0.8)},
    "temperature": {"temperature": 0.3},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("name", ["dp-penalty", "dp-hmc"])
def test_joint_test_catches_a_wrong_model(name: str, wrong: dict[str, Any]) -> None:
    kernel = replace(KERNELS[name], python=False)
    assert ladder.joint_test(kernel, WEAK, replicates=4000, iterations=60, **wrong) < FAULT_P


def test_a_fault_whose_text_is_gone_says_so() -> None:
    with pytest.raises(AssertionError, match="write this fault anew"):
        KERNELS["rwmh"].mutated(RWMH, ("no such text", ""))


def test_a_probe_accepts_and_remembers() -> None:
    probe = ladder.Probe()
    assert probe < np.float64(-3.5)
    assert probe.compared == -3.5
