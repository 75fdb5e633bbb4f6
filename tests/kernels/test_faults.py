"""Every kind of mistake is caught: a kernel with a fault sown into its text fails the ladder."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from kernels import ladder
from kernels.ladder import BATCHES, FAULT_P, JOINT, KERNELS, SMALL, WEAK, Kernel

RWMH = "dpmc.algorithms.rwmh"
PENALTY = "dpmc.algorithms.dp_penalty"
GUIDED = "dpmc.algorithms.dp_penalty_guided"
HMC = "dpmc.algorithms.hmc"
DP_HMC = "dpmc.algorithms.dp_hmc"
LEAPFROG = "dpmc.algorithms.leapfrog"
MINIBATCH = "dpmc.algorithms.minibatch_penalty"
MINIBATCH_GUIDED = "dpmc.algorithms.minibatch_penalty_guided"
BARKER = "dpmc.algorithms.dp_barker"
BARKER_CORRECTION = "dpmc.privacy.barker_correction"
BATCH = "dpmc.evaluators.batch"
COMMON = "dpmc.algorithms.common"
DOOR = "dpmc.privacy.mechanisms"
NOISE = "dpmc.privacy.noise"


Measure = Callable[[Kernel], Any]


def balance(kernel: Kernel) -> float:
    return ladder.imbalance(kernel, nodes=401)


def batch_balance(kernel: Kernel) -> float:
    return ladder.batch_balance(kernel)


def invariance(kernel: Kernel) -> float:
    iterations = 20 if kernel.algorithm.batch_size else 12
    return ladder.invariance(kernel, kernel.setting, chains=1000, iterations=iterations)


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
    batch_balance: lambda p: p < FAULT_P,
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
BATCH_ASKED = "safe, within, words, i,"
BATCH_SCALE = "scale = self.temperature * float(self.n) / size"
BATCH_VARIANCE = "- 0.5 * scale * scale * squares[c]"
BATCH_SUM = "answer[c] = scale * answer[c]"
BATCH_SENSITIVITY = "+ variance_factor * (1.0 - 1.0 / size) * reach * reach"
BATCH_NOISE = "noise.corrected(c, i, multiplier * sensitivity)"
BATCH_RELEASE = 'SubsampledGaussianRelease("batch log-ratio", float(np.sqrt(self.tau)), self.batch_size, n)'
BARKER_BOUND = "bound[c] = clip_factor / (scale * np.sqrt(size))"
BARKER_VARIANCE = "variance = scale * scale * squares[c]"
BARKER_FILLING = "np.sqrt(2.0 - variance)"
BARKER_TEST = "log_ratio[c] + barker_correction(draws.uniform[c, i, 0]) > 0.0"

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
    # batches and their variance
    "batch with replacement": Fault(
        "minibatch-penalty-guided", BATCH, "if taken[pick]:", "if False:", (attained,)
    ),
    "same batch in all iterations": Fault(
        "minibatch-penalty", DOOR, BATCH_ASKED, "safe, within, words, 0,", (invariance, releases)
    ),
    "same batch in all guided iterations": Fault(
        "minibatch-penalty-guided", DOOR, BATCH_ASKED, "safe, within, words, 0,", (invariance, releases)
    ),
    "same batch in all of Barker's iterations": Fault(
        "dp-barker", DOOR, BATCH_ASKED, "safe, within, words, 0,", (invariance, releases)
    ),
    "no batch variance in the penalty": Fault(
        "minibatch-penalty", DOOR, BATCH_VARIANCE, "", (batch_balance,)
    ),
    "no batch variance in the guided penalty": Fault(
        "minibatch-penalty-guided", DOOR, BATCH_VARIANCE, "", (batch_balance, invariance)
    ),
    "batch variance added, not subtracted": Fault(
        "minibatch-penalty", DOOR, BATCH_VARIANCE, BATCH_VARIANCE.replace("-", "+"), (batch_balance,)
    ),
    "half the batch variance": Fault(
        "minibatch-penalty", DOOR, BATCH_VARIANCE, BATCH_VARIANCE.replace("0.5", "0.25"), (batch_balance,)
    ),
    "batch variance of the sum, not of its sd": Fault(
        "minibatch-penalty", DOOR, BATCH_VARIANCE, f"{BATCH_VARIANCE} / size", (batch_balance,)
    ),
    "batch variance with divisor b - 1": Fault(
        "minibatch-penalty-guided",
        DOOR,
        BATCH_VARIANCE,
        f"{BATCH_VARIANCE} * size / (size - 1.0)",
        (attained,),
    ),
    "batch variance not tempered": Fault(
        "minibatch-penalty",
        DOOR,
        BATCH_VARIANCE,
        BATCH_VARIANCE.replace("scale * scale", "(float(self.n) / size) ** 2"),
        (batch_balance,),
    ),
    "batch sum not tempered": Fault(
        "minibatch-penalty",
        DOOR,
        BATCH_SUM,
        BATCH_SUM.replace("scale", "float(self.n) / size"),
        (batch_balance,),
    ),
    "nothing about the batch tempered": Fault(
        "minibatch-penalty", DOOR, BATCH_SCALE, BATCH_SCALE.replace("self.temperature * ", ""), (releases,)
    ),
    "batch sum not scaled up to all rows": Fault(
        "minibatch-penalty", DOOR, BATCH_SCALE, "scale = self.temperature", (releases, batch_balance)
    ),
    "batch penalty without the prior": Fault("minibatch-penalty", MINIBATCH, PRIOR, "pass", (batch_balance,)),
    "guided batch penalty with the prior upside down": Fault(
        "minibatch-penalty-guided", MINIBATCH_GUIDED, PRIOR, PRIOR.replace("+=", "-="), (batch_balance,)
    ),
    "guided batch walk never turns": Fault(
        "minibatch-penalty-guided", MINIBATCH_GUIDED, FLIP, "pass", (invariance,)
    ),
    "correction missing on a batch": Fault(
        "minibatch-penalty",
        NOISE,
        CORRECTED,
        CORRECTED.replace("- 0.5 * sd * sd", ""),
        (batch_balance,),
    ),
    "sensitivity without the variance's part": Fault(
        "minibatch-penalty-guided", DOOR, BATCH_SENSITIVITY, "", (releases, attained)
    ),
    "sensitivity with half the variance's part": Fault(
        "minibatch-penalty-guided",
        DOOR,
        BATCH_SENSITIVITY,
        f"{BATCH_SENSITIVITY} / 2.0",
        (releases, attained),
    ),
    "batch noise of half the sensitivity": Fault(
        "minibatch-penalty-guided", DOOR, "2.0 * reach +", "reach +", (releases, attained)
    ),
    "batch noise with the multiplier squared": Fault(
        "minibatch-penalty-guided",
        DOOR,
        BATCH_NOISE,
        BATCH_NOISE.replace("multiplier", "multiplier * multiplier"),
        (releases, attained),
    ),
    "batch release without noise": Fault(
        "minibatch-penalty-guided", DOOR, f"answer[c] += {BATCH_NOISE}", "pass", (releases, attained)
    ),
    "squared multiplier declared": Fault(
        "minibatch-penalty",
        MINIBATCH,
        BATCH_RELEASE,
        BATCH_RELEASE.replace("float(np.sqrt(self.tau))", "float(self.tau) ** 0.25"),
        (releases, attained),
    ),
    "half the batch declared": Fault(
        "minibatch-penalty",
        MINIBATCH,
        BATCH_RELEASE,
        BATCH_RELEASE.replace("self.batch_size", "self.batch_size // 2"),
        (releases,),
    ),
    # Barker's test
    "noise filled up from 2": Fault(
        "dp-barker", DOOR, BARKER_FILLING, "np.sqrt(2.0)", (batch_balance, releases)
    ),
    "noise of variance 2 - s^2 as its sd": Fault(
        "dp-barker", DOOR, BARKER_FILLING, "2.0 - variance", (batch_balance, releases)
    ),
    "no noise beside the batch's": Fault("dp-barker", DOOR, BARKER_FILLING, "0.0", (batch_balance, releases)),
    "Barker's batch variance of the sum, not of its sd": Fault(
        "dp-barker", DOOR, BARKER_VARIANCE, f"{BARKER_VARIANCE} / size", (batch_balance, releases)
    ),
    "Barker's batch variance with divisor b - 1": Fault(
        "dp-barker", DOOR, BARKER_VARIANCE, f"{BARKER_VARIANCE} * size / (size - 1.0)", (releases,)
    ),
    "clip factor forgotten": Fault(
        "dp-barker", DOOR, BARKER_BOUND, BARKER_BOUND.replace("clip_factor", "1.0"), (releases,)
    ),
    "Barker's rows bounded by b/(nT)": Fault(
        "dp-barker", DOOR, BARKER_BOUND, "bound[c] = clip_factor / scale", (releases,)
    ),
    "Barker's bound not tempered": Fault(
        "dp-barker", DOOR, BARKER_BOUND, f"{BARKER_BOUND} * self.temperature", (releases,)
    ),
    "Barker's batch sum not tempered": Fault(
        "dp-barker",
        DOOR,
        BATCH_SUM,
        BATCH_SUM.replace("scale", "float(self.n) / size"),
        (batch_balance,),
    ),
    "Barker's test without the prior": Fault("dp-barker", BARKER, PRIOR, "pass", (batch_balance, invariance)),
    "accepted below 0": Fault(
        "dp-barker", BARKER, BARKER_TEST, BARKER_TEST.replace(">", "<"), (batch_balance,)
    ),
    "no correction of Barker's noise": Fault(
        "dp-barker", BARKER_CORRECTION, "return VALUES[k]", "return 0.0", (batch_balance,)
    ),
    "a correction of twice the variance": Fault(
        "dp-barker", BARKER_CORRECTION, "return VALUES[k]", "return 2.0**0.5 * VALUES[k]", (batch_balance,)
    ),
    "Metropolis' test in place of Barker's": Fault(
        "dp-barker", BARKER, BARKER_TEST, "np.log(draws.uniform[c, i, 0]) < log_ratio[c]", (batch_balance,)
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
def test_text_run_anew_without_a_fault_is_not_blamed(module: tuple[str, str]) -> None:
    # so that the faults above are caught for what was changed, not for how they are made
    kernel = KERNELS[module[0]].mutated(module[1])
    checks = {
        releases,
        *(check for f in FAULTS.values() if (f.kernel, f.module) == module for check in f.checks),
    }
    for check in checks - {invariance, joint}:
        assert not CAUGHT[check](check(kernel))


@pytest.mark.parametrize("name", KERNELS)
def test_statistical_checks_blame_no_right_kernel_in_plain_python(name: str) -> None:
    assert invariance(KERNELS[name]) > ladder.P_VALUE


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


@pytest.mark.parametrize("name", BATCHES)
def test_joint_test_over_batches_catches_a_wrong_prior(name: str) -> None:
    kernel, setting = JOINT[name]
    wrong = setting.model._replace(prior_variance=2.0 * setting.model.prior_variance)
    assert ladder.joint_test(kernel, setting, 2000, 200, model=wrong) < FAULT_P


def test_a_fault_whose_text_is_gone_says_so() -> None:
    with pytest.raises(AssertionError, match="write this fault anew"):
        KERNELS["rwmh"].mutated(RWMH, ("no such text", ""))


def test_a_probe_accepts_and_remembers() -> None:
    probe = ladder.Probe()
    assert probe < np.float64(-3.5)
    assert probe.compared == -3.5
