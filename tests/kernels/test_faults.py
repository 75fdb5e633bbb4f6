"""Every kind of mistake is caught: a kernel with a fault sown into its text fails the ladder."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from kernels import ladder
from kernels import releases as released
from kernels.ladder import BATCHES, FAULT_P, JOINT, KERNELS, Kernel, sown
from kernels.problems import SMALL, WEAK

RWMH = "dpmc.algorithms.rwmh"
PENALTY = "dpmc.algorithms.dp_penalty"
DP_HMC = "dpmc.algorithms.dp_hmc"
LEAPFROG = "dpmc.algorithms.leapfrog"
MINIBATCH = "dpmc.algorithms.minibatch_penalty"
BARKER = "dpmc.algorithms.dp_barker"
BARKER_CORRECTION = "dpmc.privacy.barker_correction"
SUMS = "dpmc.evaluators.kernels.batches"
ACCEPTANCE = "dpmc.algorithms.acceptance"
WALKS = "dpmc.algorithms.walks"
MECHANISMS = "dpmc.privacy.mechanisms"
NOISE = "dpmc.privacy.noise"

Measure = Callable[[Kernel], Any]


def balance(kernel: Kernel) -> float:
    return ladder.imbalance(kernel, nodes=401)


def batch_balance(kernel: Kernel) -> float:
    return ladder.batch_balance(kernel)


def invariance(kernel: Kernel) -> float:
    return ladder.invariance(kernel, chains=1000, iterations=20 if kernel.algorithm.batch_size else 12)


def joint(kernel: Kernel) -> float:
    return ladder.joint_test(replace(kernel, setting=SMALL), replicates=3000, iterations=12)


def undoing(kernel: Kernel) -> float:
    return ladder.return_error(kernel)


def volume(kernel: Kernel) -> float:
    return ladder.volume_error(kernel)


def releases(kernel: Kernel) -> list[str]:
    return released.release_faults(kernel)


def attained(kernel: Kernel) -> float:
    """The smallest noise multiplier found, as a fraction of the declared one."""
    return min(found / declared for found, declared in released.attained_multipliers(kernel).values())


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


ASKED = "private.penalty_log_ratio(theta, proposal, self.clip, self.tau)"
ASKED_TWICE = f"0.0 * private.penalty_log_ratio(proposal, theta, self.clip, self.tau) + {ASKED}"
CORRECTED = "sd * self._ratio_normals[self._i] - 0.5 * sd * sd"
UNIFORM = "__import__('scipy.special').special.ndtr(self._ratio_normals[self._i])"
COMPARED = "draws.log_uniform < log_ratio"
TURNED = "turned = component & ~moved.accepted[:, None]"
DIRECTIONS = "np.where(turned, -state.carried, state.carried)"
FIRST_KICK = "kick(momentum, 0.5, path.step_size, gradient)\n        theta"
LAST_KICK = "gradient = gradient_at(theta, step)\n        momentum = kick(momentum, 0.5,"
DRIFT = "(path.step_size * momentum / path.mass)"
REFRESH = "return np.sqrt(mass) * normal"
ENERGY = "+ kinetic_energy(momentum, self.mass) - kinetic_energy(last_momentum, self.mass)"
KEPT = "kept = np.where(moved.accepted[:, None], last, first)"
GRADIENT = "private.gradient(theta, self.clip_g, self.tau_g, stage)"
DECLARED = 'GaussianRelease("gradient", self.tau_g * root, self.steps + 1)'
PRIOR = "log_ratio + prior_ratio(model, state.theta, proposal)"
RATIO_SD = "sd = self._temperature * 2.0 * tau * np.sqrt(self.n) * bound"
GRADIENT_SD = "sd = self._temperature * 2.0 * tau * np.sqrt(self.n) * clip"
NORM = "np.sqrt(((theta - proposal) ** 2).sum(axis=1))"
NORM_1 = "np.abs(theta - proposal).sum(axis=1)"
COORDINATES = "np.abs((theta - proposal).sum(axis=1))"
TEMPERED = "self._temperature * total + self._noise"
BEGIN = "self._words = self._all_words[i]"
SAME_BATCH = "self._words = self._all_words[0]"
BATCH_SCALE = "scale = self._temperature * self.n / size"
BATCH_VARIANCE = "- 0.5 * scale * scale * squares"
BATCH_SUM = "estimate = scale * total"
BATCH_SENSITIVITY = "+ variance_factor * (1.0 - 1.0 / size) * reach * reach"
BATCH_NOISE = "self._noise.corrected(multiplier * sensitivity)"
BATCH_MULTIPLIER = "multiplier = float(np.sqrt(self.tau))"
BATCH_RELEASE = "multiplier, self.batch_size, n)"
BARKER_BOUND = "clip_factor / (scale * np.sqrt(size))"
BARKER_VARIANCE = "variance = scale * scale * squares"
BARKER_SUM = "scale * total + self._noise"
BARKER_FILLING = "np.sqrt(2.0 - variance)"
BARKER_TEST = "log_ratio + barker_correction(draws.uniform[:, 0]) > 0.0"
BARKER_VALUES = "return np.array(VALUES)"

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
        "dp-penalty", ACCEPTANCE, COMPARED, "np.exp(draws.log_uniform) < log_ratio", (invariance,)
    ),
    "always accepts": Fault("rwmh", ACCEPTANCE, COMPARED, "log_ratio == log_ratio", (invariance,)),
    "prior left out": Fault("dp-penalty", WALKS, PRIOR, "log_ratio", (balance,)),
    "prior ratio upside down": Fault("rwmh", WALKS, PRIOR, PRIOR.replace("+", "-"), (balance, joint)),
    "likelihood not tempered": Fault(
        "dp-penalty",
        MECHANISMS,
        TEMPERED,
        TEMPERED.replace("self._temperature * ", ""),
        (balance, invariance, joint),
    ),
    "tempered twice": Fault(
        "dp-penalty",
        MECHANISMS,
        TEMPERED,
        TEMPERED.replace("_temperature", "_temperature**2"),
        (balance, invariance),
    ),
    # walks
    "guided walk never turns": Fault(
        "dp-penalty-guided", WALKS, TURNED, "turned = component & False", (invariance,)
    ),
    "guided walk forgets all directions": Fault(
        "dp-penalty-guided",
        WALKS,
        DIRECTIONS,
        "np.where(moved.accepted[:, None], state.carried, 1.0)",
        (invariance,),
    ),
    "lopsided proposal": Fault(
        "dp-penalty",
        WALKS,
        "theta + proposal_sd * draws.normal",
        "theta + proposal_sd * (draws.normal + 0.3)",
        (undoing, invariance),
    ),
    # leapfrog
    "step size dropped from the position's update": Fault(
        "dp-hmc", LEAPFROG, DRIFT, f"0.3 * path.step_size * {DRIFT}", (balance,)
    ),
    "full kick at the start": Fault(
        "hmc", LEAPFROG, FIRST_KICK, FIRST_KICK.replace("0.5", "1.0"), (undoing, balance)
    ),
    "full kick at the end": Fault("dp-hmc", LEAPFROG, LAST_KICK, LAST_KICK.replace("0.5", "1.0"), (balance,)),
    "no kick at the end": Fault("dp-hmc", LEAPFROG, LAST_KICK, LAST_KICK.replace("0.5", "0.0"), (balance,)),
    "friction in the trajectory": Fault(
        "hmc", LEAPFROG, "return momentum +", "return 0.99 * momentum +", (volume,)
    ),
    "kinetic energy without the mass": Fault(
        "dp-hmc", LEAPFROG, "momentum**2 / mass", "momentum**2", (balance, invariance)
    ),
    "kinetic energy upside down": Fault("dp-hmc", LEAPFROG, ENERGY, f"- ({ENERGY[2:]})", (balance,)),
    "momentum of unit variance": Fault("hmc", LEAPFROG, REFRESH, "return normal", (balance,)),
    "momentum with M for its square root": Fault(
        "dp-hmc", LEAPFROG, REFRESH, REFRESH.replace("np.sqrt(mass)", "mass"), (balance,)
    ),
    "momentum never refreshed": Fault(
        "hmc", LEAPFROG, REFRESH, f"{REFRESH[:-6]}globals().setdefault('first', normal)", (invariance,)
    ),
    "gradient kept at the proposal after a rejection": Fault(
        "hmc", LEAPFROG, KEPT, "kept = last", (invariance,)
    ),
    # releases
    "ratio noise of half the sensitivity": Fault(
        "dp-penalty", MECHANISMS, RATIO_SD, RATIO_SD.replace("2.0", "1.0"), (releases, attained)
    ),
    "ratio noise without root n": Fault(
        "dp-penalty-guided", MECHANISMS, RATIO_SD, RATIO_SD.replace("np.sqrt(self.n)", "1.0"), (releases,)
    ),
    "ratio noise not tempered": Fault(
        "dp-penalty", MECHANISMS, RATIO_SD, RATIO_SD.replace("self._temperature * ", ""), (releases,)
    ),
    "gradient noise of half the sensitivity": Fault(
        "dp-hmc", MECHANISMS, GRADIENT_SD, GRADIENT_SD.replace("2.0", "1.0"), (releases, attained)
    ),
    "gradient noise not tempered": Fault(
        "dp-hmc", MECHANISMS, GRADIENT_SD, GRADIENT_SD.replace("self._temperature * ", ""), (releases,)
    ),
    "clipped by the 1-norm": Fault("dp-penalty", MECHANISMS, NORM, NORM_1, (releases,)),
    "clipped by |sum of differences|": Fault("dp-penalty", MECHANISMS, NORM, COORDINATES, (releases,)),
    "noise scaled by the 1-norm only": Fault(
        "dp-penalty",
        MECHANISMS,
        RATIO_SD,
        RATIO_SD.replace("bound", f"clip * {COORDINATES}"),
        (releases,),
    ),
    "undeclared release": Fault("dp-penalty", PENALTY, ASKED, ASKED_TWICE, (releases,)),
    "release without noise": Fault(
        "dp-penalty", MECHANISMS, "+ self._noise.corrected(sd)", "", (releases, attained)
    ),
    "gradient without noise": Fault(
        "dp-hmc", MECHANISMS, "+ self._noise.vectors(sd, stage)", "", (attained,)
    ),
    "one noise vector for all gradients": Fault(
        "dp-hmc", DP_HMC, GRADIENT, GRADIENT.replace("stage", "0"), (releases,)
    ),
    "one gradient declared too few": Fault(
        "dp-hmc", DP_HMC, DECLARED, DECLARED.replace(" + 1", ""), (releases,)
    ),
    # batches and their variance
    "batch with replacement": Fault(
        "minibatch-penalty-guided", SUMS, "if taken[pick]:", "if False:", (attained,)
    ),
    "same batch in all iterations": Fault(
        "minibatch-penalty", MECHANISMS, BEGIN, SAME_BATCH, (invariance, releases)
    ),
    "same batch in all guided iterations": Fault(
        "minibatch-penalty-guided", MECHANISMS, BEGIN, SAME_BATCH, (invariance, releases)
    ),
    "same batch in all of Barker's iterations": Fault(
        "dp-barker", MECHANISMS, BEGIN, SAME_BATCH, (invariance, releases)
    ),
    "no batch variance in the penalty": Fault(
        "minibatch-penalty", MECHANISMS, BATCH_VARIANCE, "", (batch_balance,)
    ),
    "no batch variance in the guided penalty": Fault(
        "minibatch-penalty-guided", MECHANISMS, BATCH_VARIANCE, "", (batch_balance, invariance)
    ),
    "batch variance added, not subtracted": Fault(
        "minibatch-penalty", MECHANISMS, BATCH_VARIANCE, BATCH_VARIANCE.replace("-", "+"), (batch_balance,)
    ),
    "half the batch variance": Fault(
        "minibatch-penalty",
        MECHANISMS,
        BATCH_VARIANCE,
        BATCH_VARIANCE.replace("0.5", "0.25"),
        (batch_balance,),
    ),
    "batch variance of the sum, not of its sd": Fault(
        "minibatch-penalty", MECHANISMS, BATCH_VARIANCE, f"{BATCH_VARIANCE} / size", (batch_balance,)
    ),
    "batch variance with divisor b - 1": Fault(
        "minibatch-penalty-guided",
        MECHANISMS,
        BATCH_VARIANCE,
        f"{BATCH_VARIANCE} * size / (size - 1.0)",
        (attained,),
    ),
    "batch variance not tempered": Fault(
        "minibatch-penalty",
        MECHANISMS,
        BATCH_VARIANCE,
        BATCH_VARIANCE.replace("scale * scale", "(self.n / size) ** 2"),
        (batch_balance,),
    ),
    "batch sum not tempered": Fault(
        "minibatch-penalty",
        MECHANISMS,
        BATCH_SUM,
        BATCH_SUM.replace("scale", "self.n / size"),
        (batch_balance,),
    ),
    "nothing about the batch tempered": Fault(
        "minibatch-penalty",
        MECHANISMS,
        BATCH_SCALE,
        BATCH_SCALE.replace("self._temperature * ", ""),
        (releases,),
    ),
    "batch sum not scaled up to all rows": Fault(
        "minibatch-penalty", MECHANISMS, BATCH_SCALE, "scale = self._temperature", (releases, batch_balance)
    ),
    "batch penalty without the prior": Fault(
        "minibatch-penalty", WALKS, PRIOR, "log_ratio", (batch_balance,)
    ),
    "guided batch penalty with the prior upside down": Fault(
        "minibatch-penalty-guided", WALKS, PRIOR, PRIOR.replace("+", "-"), (batch_balance,)
    ),
    "guided batch walk never turns": Fault(
        "minibatch-penalty-guided", WALKS, TURNED, "turned = component & False", (invariance,)
    ),
    "correction missing on a batch": Fault(
        "minibatch-penalty", NOISE, CORRECTED, CORRECTED.replace("- 0.5 * sd * sd", ""), (batch_balance,)
    ),
    "sensitivity without the variance's part": Fault(
        "minibatch-penalty-guided", MECHANISMS, BATCH_SENSITIVITY, "", (releases, attained)
    ),
    "sensitivity with half the variance's part": Fault(
        "minibatch-penalty-guided",
        MECHANISMS,
        BATCH_SENSITIVITY,
        f"{BATCH_SENSITIVITY} / 2.0",
        (releases, attained),
    ),
    "batch noise of half the sensitivity": Fault(
        "minibatch-penalty-guided", MECHANISMS, "2.0 * reach +", "reach +", (releases, attained)
    ),
    "batch noise with the multiplier squared": Fault(
        "minibatch-penalty-guided",
        MECHANISMS,
        BATCH_NOISE,
        BATCH_NOISE.replace("multiplier", "multiplier * multiplier"),
        (releases, attained),
    ),
    "batch release without noise": Fault(
        "minibatch-penalty-guided", MECHANISMS, f"+ {BATCH_NOISE}", "", (releases, attained)
    ),
    "squared multiplier declared": Fault(
        "minibatch-penalty",
        MINIBATCH,
        BATCH_MULTIPLIER,
        "multiplier = self.tau**0.25",
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
        "dp-barker",
        MECHANISMS,
        BARKER_FILLING,
        "np.sqrt(2.0 + 0.0 * variance)",
        (batch_balance, releases),
    ),
    "noise of variance 2 - s^2 as its sd": Fault(
        "dp-barker", MECHANISMS, BARKER_FILLING, "2.0 - variance", (batch_balance, releases)
    ),
    "no noise beside the batch's": Fault(
        "dp-barker", MECHANISMS, BARKER_FILLING, "0.0 * variance", (batch_balance, releases)
    ),
    "Barker's batch variance of the sum, not of its sd": Fault(
        "dp-barker", MECHANISMS, BARKER_VARIANCE, f"{BARKER_VARIANCE} / size", (batch_balance, releases)
    ),
    "Barker's batch variance with divisor b - 1": Fault(
        "dp-barker", MECHANISMS, BARKER_VARIANCE, f"{BARKER_VARIANCE} * size / (size - 1.0)", (releases,)
    ),
    "clip factor forgotten": Fault(
        "dp-barker", MECHANISMS, BARKER_BOUND, BARKER_BOUND.replace("clip_factor", "1.0"), (releases,)
    ),
    "Barker's rows bounded by b/(nT)": Fault(
        "dp-barker", MECHANISMS, BARKER_BOUND, "clip_factor / scale", (releases,)
    ),
    "Barker's bound not tempered": Fault(
        "dp-barker", MECHANISMS, BARKER_BOUND, f"{BARKER_BOUND} * self._temperature", (releases,)
    ),
    "Barker's batch sum not tempered": Fault(
        "dp-barker",
        MECHANISMS,
        BARKER_SUM,
        BARKER_SUM.replace("scale", "self.n / size"),
        (batch_balance,),
    ),
    "Barker's test without the prior": Fault(
        "dp-barker", WALKS, PRIOR, "log_ratio", (batch_balance, invariance)
    ),
    "accepted below 0": Fault(
        "dp-barker", BARKER, BARKER_TEST, BARKER_TEST.replace(">", "<"), (batch_balance,)
    ),
    "no correction of Barker's noise": Fault(
        "dp-barker", BARKER_CORRECTION, BARKER_VALUES, "return 0.0 * np.array(VALUES)", (batch_balance,)
    ),
    "a correction of twice the variance": Fault(
        "dp-barker", BARKER_CORRECTION, BARKER_VALUES, "return 2.0**0.5 * np.array(VALUES)", (batch_balance,)
    ),
    "Metropolis' test in place of Barker's": Fault(
        "dp-barker", BARKER, BARKER_TEST, "np.log(draws.uniform[:, 0]) < log_ratio", (batch_balance,)
    ),
}
CASES = [
    pytest.param(fault, check, id=f"{name}: {check.__name__}")
    for name, fault in FAULTS.items()
    for check in fault.checks
]


@pytest.mark.parametrize(("fault", "check"), CASES)
def test_fault_is_caught(fault: Fault, check: Measure) -> None:
    with sown(fault.module, (fault.old, fault.new)):
        assert CAUGHT[check](check(KERNELS[fault.kernel].anew()))


@pytest.mark.parametrize(("name", "module"), sorted({(f.kernel, f.module) for f in FAULTS.values()}))
def test_reloaded_sources_without_a_fault_pass(name: str, module: str) -> None:
    # so that the faults above are caught for what was changed, not for how they are made
    theirs = [f for f in FAULTS.values() if (f.kernel, f.module) == (name, module)]
    with sown(module):
        for check in {releases, *(check for fault in theirs for check in fault.checks)}:
            assert not CAUGHT[check](check(KERNELS[name].anew()))


def test_there_are_79_different_faults() -> None:
    changes = {(f.kernel, f.module, f.old, f.new) for f in FAULTS.values()}
    assert len(changes) == len(FAULTS) == 79


def test_a_sown_fault_is_removed_afterwards() -> None:
    with sown(RWMH):
        changed = KERNELS["rwmh"].anew()
    assert type(changed.algorithm) is not type(KERNELS["rwmh"].algorithm)
    assert type(KERNELS["rwmh"].anew().algorithm) is type(KERNELS["rwmh"].algorithm)


WRONG = {
    "likelihood variance": {"model": replace(WEAK.model, variance=WEAK.model.variance * 1.5)},
    "prior variance": {"model": replace(WEAK.model, prior_variance=12.0)},
    "prior's bend": {"model": replace(WEAK.model, b=0.8)},
    "temperature": {"temperature": 0.3},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("name", ["dp-penalty", "dp-hmc"])
def test_joint_test_catches_a_wrong_model(name: str, wrong: dict[str, Any]) -> None:
    assert ladder.joint_test(JOINT[name], replicates=4000, iterations=60, **wrong) < FAULT_P


@pytest.mark.parametrize("name", ladder.joint_cases(*BATCHES))
def test_joint_test_over_batches_catches_a_wrong_prior(name: str) -> None:
    model = JOINT[name].setting.model
    wrong = replace(model, prior_variance=2.0 * model.prior_variance)
    assert ladder.joint_test(JOINT[name], 2000, 200, model=wrong) < FAULT_P


def test_a_fault_whose_text_is_missing_is_reported() -> None:
    with pytest.raises(AssertionError, match="write this fault anew"), sown(RWMH, ("no such text", "")):
        pass


def test_a_probe_accepts_and_records_comparisons() -> None:
    probe = ladder.Probe()
    assert (probe < np.array([-3.5, np.nan])).all()
    np.testing.assert_array_equal(probe.compared, [-3.5, np.nan])
