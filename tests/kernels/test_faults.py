"""Every kind of mistake is caught: a kernel with a fault sown into its text fails its checks."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kernels import ladder, releases, test_fast_mh, test_sgld
from kernels.ladder import BATCHES, FAULT_P, JITTERED, JOINT, KERNELS, sown
from kernels.problems import SMALL, WEAK

#: Kernels, and moves of DP-Fast MH, that faults are sown into.
SUBJECTS = {**KERNELS, **JITTERED, "reusing": ladder.STICKY, **test_sgld.KERNELS}
SUBJECTS |= {**test_fast_mh.CASES, **test_fast_mh.DECLARING}


def balance(kernel: Any) -> bool:
    return ladder.imbalance(kernel, nodes=401) > 10.0 * ladder.IMBALANCE


def batch_balance(kernel: Any) -> bool:
    return ladder.batch_balance(kernel) < FAULT_P


def invariance(kernel: Any) -> bool:
    return ladder.invariance(kernel, 1000, 20 if kernel.algorithm.batch_size else 12) < FAULT_P


def long_invariance(kernel: Any) -> bool:
    return ladder.invariance(kernel, 30_000, 60) < FAULT_P


def joint(kernel: Any) -> bool:
    return ladder.joint_test(replace(kernel, setting=SMALL), replicates=3000, iterations=12) < FAULT_P


def undoing(kernel: Any) -> bool:
    return ladder.return_error(kernel) > 1e4 * ladder.RETURN_ERROR


def volume(kernel: Any) -> bool:
    return ladder.volume_error(kernel) > 1e3 * ladder.VOLUME_ERROR


def release(kernel: Any) -> bool:
    return bool(releases.release_faults(kernel))


def attained(kernel: Any) -> bool:
    """Is some noise multiplier smaller than declared?"""
    found = releases.attained_multipliers(kernel).values()
    return min(multiplier / declared for multiplier, declared in found) < 0.999


def pace(kernel: Any) -> bool:
    return ladder.pace_error(kernel) > 1e-6


def step(kernel: Any) -> bool:
    return test_sgld.step_error(kernel) > 1e-6


def step_attained(kernel: Any) -> bool:
    return test_sgld.attained(kernel) < 0.999


def frequency(case: Any) -> bool:
    return case.frequency_p(10_000) < FAULT_P


def bit_release(kernel: Any) -> bool:
    return bool(test_fast_mh.bit_release_faults(kernel))


WALKS, RWMH, HMC = "algorithms.walks", "algorithms.acceptance", "algorithms.leapfrog"
DP_HMC, MINIBATCH, BARKER = (f"algorithms.{name}" for name in ("dp_hmc", "minibatch_penalty", "dp_barker"))
SGLD, SGNHT, LANGEVIN = (f"algorithms.{name}" for name in ("dp_sgld", "dp_sgnht", "langevin"))
MECHANISMS, NOISE, FAST = "privacy.mechanisms", "privacy.noise", "privacy.fast_mechanism"
SUMS = "evaluators.kernels"
CORRECTION = "privacy.barker_correction"
GUIDED, MINI, BATCH_GUIDED = "dp-penalty-guided", "minibatch-penalty", "minibatch-penalty-guided"
FREE_BATCH, FREE_ROWS = (f"published, {rows} without noise" for rows in ("minibatch", "all rows"))
BARKER_BATCH, BARKER_ROWS = (f"corrected, {rows} without noise" for rows in ("minibatch", "all rows"))
NOISY_BATCH, NOISY_ROWS = (f"corrected, {rows} with noise" for rows in ("minibatch", "all rows"))
ASKED = "private.penalty_log_ratio(theta, proposal, self.clip, self.tau)"
ASKED_TWICE = f"0.0 * private.penalty_log_ratio(proposal, theta, self.clip, self.tau) + {ASKED}"
UNIFORM = "__import__('scipy.special').special.ndtr(self._ratio_normals[self._i])"
COORDINATES = "np.abs((theta - proposal).sum(axis=1))"
LISTING = ("free < log_ratio", "free < log_ratio - 0.5")
CENTRED = f"12.0**0.5 * sd * ({UNIFORM} - 0.5) - 0.5 * sd * sd"
UNIFORM_NOISE = "noisy = log_ratio + (sd * kernels.uniforms(words, kernels.NOISE) - 0.5 * sd * sd)"
FORGETFUL = "np.where(moved.accepted[:, None], state.carried, 1.0)"
OF_ALL_ROWS = "multiplier(rule.epsilon, rule.delta)"
ANEW = "gradient_at(state.theta, 0)"
KEPT = "globals().setdefault('z', draws.normal)"
ALL = ""  # the whole text is exchanged

#: (module, text) -> name of the fault: the subject, a piece of the text, what replaces it, what catches it.
FAULTS: dict[tuple[str, str], dict[str, tuple[Any, ...]]] = {
    (NOISE, "sd * self._ratio_normals[self._i] - 0.5 * sd * sd"): {
        "penalty added, not subtracted": ("dp-penalty", "- 0.5", "+ 0.5", balance, invariance),
        "correction missing": ("dp-penalty", "- 0.5 * sd * sd", "", balance),
        "correction missing in dp-hmc": ("dp-hmc", "- 0.5 * sd * sd", "", balance),
        "correction missing on a batch": (MINI, "- 0.5 * sd * sd", "", batch_balance),
        "correction of half the variance": ("dp-penalty", "0.5", "0.25", balance),
        "uniform noise on [0, sd)": ("dp-penalty", ALL, f"sd * {UNIFORM} - 0.5 * sd * sd", balance),
        "uniform noise of the right variance": ("dp-penalty", ALL, CENTRED, balance),
    },
    (RWMH, "draws.log_uniform < log_ratio"): {
        "u in place of ln u": ("dp-penalty", ALL, "np.exp(draws.log_uniform) < log_ratio", invariance),
        "always accepts": ("rwmh", ALL, "log_ratio == log_ratio", invariance),
    },
    (WALKS, "log_ratio + prior_ratio(model, state.theta, proposal)"): {
        "prior left out": ("dp-penalty", ALL, "log_ratio", balance),
        "prior ratio upside down": ("rwmh", "+", "-", balance, joint),
        "batch penalty with the prior upside down": (BATCH_GUIDED, "+", "-", batch_balance),
        "Barker's test without the prior": ("dp-barker", ALL, "log_ratio", batch_balance, invariance),
    },
    (WALKS, "turned = component & ~moved.accepted[:, None]"): {
        "guided walk never turns": (GUIDED, "~moved.accepted[:, None]", "False", invariance),
    },
    (WALKS, "np.where(turned, -state.carried, state.carried)"): {
        "guided walk forgets all directions": (GUIDED, ALL, FORGETFUL, invariance),
    },
    (WALKS, "state.theta + self.proposal_sd * draws.normal"): {
        "lopsided proposal": ("dp-penalty", "draws.normal", "(draws.normal + 0.3)", undoing, invariance),
    },
    (HMC, "pace = draws.uniform if"): {
        "the same jitter for all": ("dp-hmc jittered", "draws.uniform", "0.5", pace),
    },
    (HMC, "first, momentum / pace"): {"p in place of p/u": ("dp-hmc jittered", " / pace", "", pace)},
    (HMC, "pace**2"): {"u in place of u squared": ("dp-hmc jittered", "**2", "", pace)},
    (HMC, "self.kinetic_energy(q * pace)"): {
        "energy of the wrong momentum": ("dp-hmc jittered", " * pace", "", pace),
    },
    (HMC, "(self.step_size * q / self.mass)"): {
        "step size dropped from the position's update": ("dp-hmc", "(", "0.3 * self.step_size * (", balance),
    },
    (HMC, "q = q + half * gradient\n            proposal"): {
        "full kick at the start": ("hmc", "half", "2.0 * half", undoing, balance),
    },
    (HMC, "gradient = gradient_at(proposal, stage)\n            q = q + half"): {
        "full kick at the end": ("dp-hmc", "half", "2.0 * half", balance),
        "no kick at the end": ("dp-hmc", "half", "0.0 * half", balance),
    },
    (HMC, "q = q + half"): {"friction in the trajectory": ("hmc", "q +", "0.99 * q +", volume)},
    (HMC, "momentum**2 / self.mass"): {
        "kinetic energy without the mass": ("dp-hmc", " / self.mass", "", balance, invariance),
    },
    (HMC, "+ self.kinetic_energy(momentum) - self.kinetic_energy(q * pace)"): {
        "kinetic energy upside down": ("dp-hmc", "- self", "- 3.0 * self", balance),
    },
    (HMC, "np.sqrt(self.mass) * draws.normal"): {
        "momentum of unit variance": ("hmc", "np.sqrt(self.mass) * ", "", balance),
        "momentum with M for its square root": ("dp-hmc", "np.sqrt(self.mass)", "self.mass", balance),
        "momentum never refreshed": ("hmc", "draws.normal", KEPT, invariance),
    },
    (HMC, "kept = np.where(moved.accepted[:, None], gradient, first)"): {
        "gradient kept after a rejection": ("hmc", ALL, "kept = gradient", invariance),
        "gradient drawn anew after a rejection": ("reusing", "first", ANEW, long_invariance),
    },
    (MECHANISMS, "self._temperature * self._evaluator.unit_of_ratios"): {
        "likelihood not tempered": ("dp-penalty", "self._temperature * ", "", balance, invariance, joint),
        "tempered twice": ("dp-penalty", "_temperature", "_temperature**2", balance, invariance),
    },
    (MECHANISMS, "self._noise.corrected(total, unit, sd)"): {
        "release without noise": ("dp-penalty", ALL, "unit * total", release, attained),
    },
    (MECHANISMS, "sd = self._temperature * 2.0 * tau * np.sqrt(self.n) * bound"): {
        "ratio noise of half the sensitivity": ("dp-penalty", "2.0", "1.0", release, attained),
        "ratio noise without root n": (GUIDED, "np.sqrt(self.n)", "1.0", release),
        "ratio noise not tempered": ("dp-penalty", "self._temperature * ", "", release),
        "noise scaled by the 1-norm only": ("dp-penalty", "bound", f"clip * {COORDINATES}", release),
    },
    (MECHANISMS, "sd = self._temperature * 2.0 * tau * np.sqrt(self.n) * clip"): {
        "gradient noise of half the sensitivity": ("dp-hmc", "2.0", "1.0", release, attained),
        "gradient noise not tempered": ("dp-hmc", "self._temperature * ", "", release),
    },
    (MECHANISMS, "self._noise.vectors(total, unit, sd, stage)"): {
        "gradient without noise": ("dp-hmc", ALL, "unit * total", attained),
    },
    (MECHANISMS, "np.sqrt(((theta - proposal) ** 2).sum(axis=1))"): {
        "clipped by the 1-norm": ("dp-penalty", ALL, "np.abs(theta - proposal).sum(axis=1)", release),
        "clipped by |sum of differences|": ("dp-penalty", ALL, COORDINATES, release),
    },
    ("algorithms.dp_penalty", ASKED): {"undeclared release": ("dp-penalty", ALL, ASKED_TWICE, release)},
    (DP_HMC, "private.gradient(theta, self.clip_g, self.tau_g, stage)"): {
        "one noise vector for all gradients": ("dp-hmc", "stage", "0", release),
    },
    (DP_HMC, 'GaussianRelease("gradient", self.tau_g * root, self.steps + 1 - self.reuse_gradients)'): {
        "one gradient declared too few": ("dp-hmc", " + 1", "", release),
    },
    # Batches and their variance.
    (SUMS, "if taken[pick]:"): {"batch with replacement": (BATCH_GUIDED, "taken[pick]", "False", attained)},
    (MECHANISMS, "self._words = self._all_words[i]"): {
        "same batch in all iterations": (MINI, "[i]", "[0]", invariance, release),
        "same batch in all of Barker's iterations": ("dp-barker", "[i]", "[0]", invariance, release),
        "the first batch again and again": ("dp-sgld", "[i]", "[0]", step, release),
    },
    (MECHANISMS, "- 0.5 * scale * scale * squares"): {
        "no batch variance in the penalty": (BATCH_GUIDED, ALL, "", batch_balance, invariance),
        "batch variance added, not subtracted": (MINI, "-", "+", batch_balance),
        "half the batch variance": (MINI, "0.5", "0.25", batch_balance),
        "batch variance of the sum": (MINI, "squares", "squares / size", batch_balance),
        "divisor b - 1": (BATCH_GUIDED, "squares", "squares * size / (size - 1.0)", attained),
        "batch variance not scaled": (MINI, "scale * scale", "self.n / size", batch_balance),
    },
    (MECHANISMS, "estimate = scale * total"): {
        "batch sum not tempered": (MINI, "scale", "self.n / size", batch_balance),
    },
    (MECHANISMS, "scale = self._temperature * self.n / size"): {
        "nothing about the batch tempered": (MINI, "self._temperature * ", "", release),
        "batch sum not scaled up to all rows": (MINI, " * self.n / size", "", release, batch_balance),
    },
    (MECHANISMS, "2.0 * reach + variance_factor * (1.0 - 1.0 / size) * reach * reach"): {
        "no variance's part": (BATCH_GUIDED, "(1.0 -", "0.0 * (1.0 -", release, attained),
        "half the variance's part": (BATCH_GUIDED, "(1.0 -", "0.5 * (1.0 -", release, attained),
        "root of the variance's part": (BATCH_GUIDED, "reach * reach", "reach", release),
        "batch noise of half the sensitivity": (BATCH_GUIDED, "2.0 * ", "", release, attained),
    },
    (MECHANISMS, "self._noise.corrected(estimate, unit, multiplier * (sensitivity + rounding))"): {
        "multiplier squared": (BATCH_GUIDED, "multiplier", "multiplier**2", release, attained),
        "batch release without noise": (BATCH_GUIDED, ALL, "estimate", release, attained),
    },
    (MINIBATCH, "multiplier = float(np.sqrt(self.tau))"): {
        "squared multiplier declared": (MINI, "np.sqrt(self.tau)", "self.tau**0.25", release, attained),
    },
    (MINIBATCH, "multiplier, self.batch_size, n)"): {
        "half the batch declared": (MINI, "size", "size // 2", release),
    },
    # Barker's test.
    (MECHANISMS, "np.sqrt(2.0 - variance)"): {
        "noise filled up from 2": ("dp-barker", "- variance", "+ 0.0 * variance", batch_balance, release),
        "noise of variance 2 - s^2 as its sd": ("dp-barker", "np.sqrt", "", batch_balance, release),
        "no noise beside the batch's": ("dp-barker", ALL, "0.0 * variance", batch_balance, release),
    },
    (MECHANISMS, "variance = scale * scale * squares"): {
        "Barker's variance of the sum": ("dp-barker", "squares", "squares / size", batch_balance, release),
        "Barker's divisor b - 1": ("dp-barker", "squares", "squares * size / (size - 1.0)", release),
    },
    (MECHANISMS, "clip_factor / (scale * np.sqrt(size))"): {
        "clip factor forgotten": ("dp-barker", "clip_factor", "1.0", release),
        "Barker's rows bounded by b/(nT)": ("dp-barker", ALL, "clip_factor / scale", release),
        "Barker's bound not tempered": ("dp-barker", "scale", "self.n / size", release),
    },
    (MECHANISMS, "self._noise.centred(scale * total"): {
        "Barker's batch sum not tempered": ("dp-barker", "scale", "self.n / size", batch_balance),
    },
    (BARKER, "log_ratio + barker_correction(draws.uniform[:, 0]) > 0.0"): {
        "accepted below 0": ("dp-barker", ">", "<", batch_balance),
        "Metropolis' test": ("dp-barker", ALL, "np.log(draws.uniform[:, 0]) < log_ratio", batch_balance),
    },
    (CORRECTION, "return np.array(VALUES)"): {
        "no correction of Barker's noise": ("dp-barker", "np.", "0.0 * np.", batch_balance),
        "a correction of twice the variance": ("dp-barker", "np.", "2.0**0.5 * np.", batch_balance),
    },
    # Langevin's steps.
    (SGLD, "DRIFTS[self.drift] * h"): {
        "drift twice too large": ("dp-sgld", "DRIFTS[self.drift] * ", "", step),
    },
    (SGLD, "self.step_size / private.n"): {"step not over n": ("dp-sgld", " / private.n", "", step)},
    (SGLD, "(2.0 * DRIFTS[self.drift] * self.clip"): {
        "the published multiplier": ("dp-sgld", "DRIFTS[self.drift] * ", "", step),
    },
    (MECHANISMS, "multiplier * 2.0 * clip * scale"): {
        "step's noise half as large": ("dp-sgld", "2.0 * ", "", step, step_attained, release),
        "step's noise without n/b": ("dp-sgld", " * scale", "", step, step_attained, release),
    },
    (MECHANISMS, "scale = self.n / self._words.shape[1]\n        unit"): {
        "n/b forgotten": ("dp-sgld", "self.n / self._words.shape[1]", "1.0", step, release),
    },
    (MECHANISMS, "scale * self._temperature * self._evaluator"): {
        "temperature forgotten": ("dp-sgld", "self._temperature * ", "", step, step_attained),
    },
    (MECHANISMS, "bound = clip / self._temperature"): {
        "clipped before tempering": ("dp-sgld", " / self._temperature", "", step, release),
    },
    (NOISE, "self._gradient_normals[self._i"): {
        "the first noise again and again": ("dp-sgnht", "self._i", "0", step, release),
    },
    (SUMS, "factor = clip_factor(square, bound)"): {
        "no clipping": ("dp-sgld", "clip_factor(square, bound)", "1.0", step, step_attained),
    },
    (SUMS, "sums[c, i] += factor * gradient[i]"): {"the last row alone": ("dp-sgld", "+=", "=", step)},
    (LANGEVIN, '"batch gradient", multiplier'): {
        "too large a multiplier declared": ("dp-sgld", ", mul", ", 2.0 * mul", step_attained, release),
    },
    (LANGEVIN, "2.0 * n * self.clip / self"): {
        "half the sensitivity declared": ("dp-sgnht", "2.0 * ", "", release),
    },
    (LANGEVIN, "gradient + model.log_prior_gradient(state.theta)"): {
        "prior's gradient forgotten": ("dp-sgld", ALL, "gradient", step),
        "prior scaled like the rows": ("dp-sgnht", "model", "private.n * model", step),
    },
    (SGNHT, 'moving = old if self.order == "published" else new'): {
        "stale momentum": ("dp-sgnht", ' if self.order == "published" else new', "", step),
        "new momentum where the old one was published": ("dp-sgnht published", ALL, "moving = new", step),
    },
    (SGNHT, "(moved.accepted[:, None], carried,"): {
        "momentum not carried on": ("dp-sgnht", "moved.accepted[:, None]", "False", step),
    },
    (SGNHT, "old - thermostat * h * old"): {
        "friction that heats": ("dp-sgnht", "-", "+", step),
        "no friction": ("dp-sgnht", ALL, "old", step),
    },
    (SGNHT, " / old.shape[1]"): {"a thermostat for one component": ("dp-sgnht", ALL, "", step)},
    (SGNHT, "math.sqrt(2.0 * self.diffusion"): {"half the diffusion": ("dp-sgnht", "2.0 * ", "", step)},
    # How often a move of DP-Fast MH is accepted.
    (FAST, LISTING[0]): {
        "correction without noise, minibatch": (FREE_BATCH, *LISTING, frequency),
        "correction without noise, all rows": (*(FREE_ROWS, *LISTING, frequency),),
    },
    (FAST, "noisy = self.noise.corrected(log_ratio, 1.0, sd)"): {
        "uniform noise on all rows": (NOISY_ROWS, ALL, UNIFORM_NOISE, frequency),
        "noise without correction": (NOISY_BATCH, "corrected", "centred", frequency),
    },
    (SUMS, "(1.0 + h) < 1.0 - h * v"): {
        "thinning off by c_i M": ("tuna-mh", "- h * v", "- h * v * reach[j]", frequency),
        "thinning upside down": ("tuna-mh", "- h", "+ h", frequency),
        "no thinning": (FREE_BATCH, ALL, "1e-9 < 1.0", frequency),
    },
    (SUMS, "uniform(word, THINNING + j)"): {
        "one number for a row and its thinning": (BARKER_BATCH, "THINNING", "ROWS", frequency),
    },
    (SUMS, "place - column < threshold[column]"): {
        "rows drawn uniformly": ("published, uneven rows", ALL, "True", frequency),
    },
    (FAST, "self.rule.batch_mean + reach, self.rule.most_rows"): {
        "Poisson mean without lambda": ("tuna-mh", "self.rule.batch_mean + ", "", frequency),
        "Poisson mean without CM": (BARKER_BATCH, "reach", "0.0 * reach", frequency),
    },
    (SUMS, "counts = np.zeros(words.shape[0], np.int64)"): {
        "one arrival too many": ("tuna-mh", "zeros", "ones", frequency),
    },
    (SUMS, "math.log((1.0 + h * v) / (1.0 - h * v))"): {
        "artanh without its factor 2": (FREE_BATCH, "math", "0.5 * math", frequency),
    },
    (FAST, "self.temperature * self.evaluator.row_ratios"): {
        "minibatch not tempered": ("tuna-mh", "self.temperature * ", "", frequency),
    },
    (FAST, "self.temperature * sums"): {
        "all rows not tempered": ("corrected, all rows, cool", "self.temperature * ", "", frequency),
    },
    (FAST, "free = barker_threshold(log_uniform) if self.rule.barker else log_uniform"): {
        "Metropolis in place of Barker's test": (BARKER_ROWS, ALL, "free = log_uniform", frequency),
    },
    (FAST, "log_uniform < noisy"): {
        "Barker's test beside noise": (NOISY_ROWS, "log_uniform", "barker_threshold(log_uniform)", frequency),
    },
    (FAST, "log_ratio + prior_ratio, sd"): {
        "prior forgotten on a minibatch": (BARKER_BATCH, " + prior_ratio", "", frequency),
        "prior forgotten on all rows": (FREE_ROWS, " + prior_ratio", "", frequency),
    },
    # Noise and limits of DP-Fast MH.
    (FAST, "2.0 * self.bounded.largest"): {
        "half the sensitivity on all rows": ("all rows with noise", "2.0 * ", "", bit_release),
    },
    (FAST, "sensitivity = 2.0 * np.log(1.0 + reach"): {
        "half the sensitivity on a minibatch": ("minibatch with noise", "2.0 * ", "", bit_release),
    },
    (FAST, "limit = batch_epsilon(rule.epsilon, rule.most_rows, share)"): {
        "no factor 6": ("minibatch with noise", "batch_epsilon(", "6.0 * batch_epsilon(", bit_release),
        "limit of all rows": ("minibatch with noise", ALL, "limit = rule.epsilon", bit_release),
    },
    (FAST, "batch_multiplier(rule.epsilon, rule.delta, rule.most_rows, share)"): {
        "noise of all rows on a minibatch": ("minibatch with noise", ALL, OF_ALL_ROWS, bit_release),
    },
    (FAST, "if not self.rule.branch_on_mean:"): {
        "a branch on the number of rows drawn": ("minibatch without noise", ALL, "if True:", bit_release),
    },
}
#: By name: the subject, its module, old and new text, and what catches the fault.
SOWN = {
    name: (subject, f"dpmc.{module}", text, text.replace(piece, by) if piece else by, checks)
    for (module, text), faults in FAULTS.items()
    for name, (subject, piece, by, *checks) in faults.items()
}
CHECKED = [(name, check) for name, fault in SOWN.items() for check in fault[-1]]


@pytest.mark.parametrize(("name", "check"), CHECKED, ids=lambda part: getattr(part, "__name__", part))
def test_fault_is_caught(name: str, check: Callable[[Any], bool]) -> None:
    subject, module, old, new, _ = SOWN[name]
    with sown(module, (old, new)):
        assert check(SUBJECTS[subject].anew())


@pytest.mark.parametrize(("name", "module"), sorted({fault[:2] for fault in SOWN.values()}))
def test_reloaded_sources_without_a_fault_pass(name: str, module: str) -> None:
    # so that the faults above are caught for what was changed, not for how they are made
    with sown(module):
        for check in {check for fault in SOWN.values() if fault[:2] == (name, module) for check in fault[-1]}:
            assert not check(SUBJECTS[name].anew())


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
