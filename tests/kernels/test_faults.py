"""Every kind of mistake is caught: a kernel with a fault sown into its code fails its checks."""

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kernels import ladder, queries, test_fast_mh, test_sgld
from kernels.ladder import BATCHES, FAULT_P, JITTERED, JOINT, KERNELS, Fault, sown
from kernels.problems import SMALL, WEAK

#: Kernels, and moves of DP-Fast MH, that faults are sown into.
SUBJECTS = {**KERNELS, **JITTERED, "reusing": ladder.STICKY, **test_sgld.KERNELS}
SUBJECTS |= {**test_fast_mh.CASES, **test_fast_mh.DECLARING}


#: Checks by name: whether a kernel fails.
CHECKS: dict[str, Callable[[Any], bool]] = {
    "balance": lambda kernel: ladder.imbalance(kernel, nodes=401) > 10.0 * ladder.IMBALANCE,
    "batch_balance": lambda kernel: ladder.batch_balance(kernel) < FAULT_P,
    "invariance": lambda kernel: (
        ladder.invariance(kernel, 1000, 20 if kernel.algorithm.batch_size else 12) < FAULT_P
    ),
    "long_invariance": lambda kernel: ladder.invariance(kernel, 30_000, 60) < FAULT_P,
    "joint": lambda kernel: ladder.joint_test(replace(kernel, setting=SMALL), 3000, 12) < FAULT_P,
    "undoing": lambda kernel: ladder.return_error(kernel) > 1e4 * ladder.RETURN_ERROR,
    "volume": lambda kernel: ladder.volume_error(kernel) > 1e3 * ladder.VOLUME_ERROR,
    "query": lambda kernel: bool(queries.query_faults(kernel)),
    # Is some noise multiplier smaller than declared?
    "attained": lambda kernel: (
        min(one / declared for one, declared in queries.attained_multipliers(kernel).values()) < 0.999
    ),
    "pace": lambda kernel: ladder.pace_error(kernel) > 1e-6,
    "step": lambda kernel: test_sgld.step_error(kernel) > 1e-6,
    "step_attained": lambda kernel: test_sgld.attained(kernel) < 0.999,
    "frequency": lambda case: case.frequency_p(10_000) < FAULT_P,
    "bit_query": lambda kernel: bool(test_fast_mh.bit_query_faults(kernel)),
}

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
UNIFORM_NOISE = "log_ratio + (sd * kernels.uniforms(words, kernels.NOISE) - 0.5 * sd * sd)"
FORGETFUL = "moved._replace(carried=np.where(moved.accepted[:, None], state.carried, 1.0))"
THRESHOLD = "barker_threshold(log_uniform)"
OF_ALL_ROWS = "multiplier(rule.epsilon, rule.delta)"
ANEW = "self.gradient(state.theta, 0, private) + model.log_prior_gradient(state.theta)"
KEPT = "globals().setdefault('z', draws.normal)"
SIZE = "self._words.shape[1]"  # of a batch
OF_SUM, UNBIASED = f"squares / {SIZE}", f"squares * {SIZE} / ({SIZE} - 1.0)"
ALL = ""  # the whole shape is exchanged

#: (module, function, shape) -> name of the fault: the subject, a piece of the shape, what replaces it, what
#: catches it. `ladder.Fault` says what a shape is.
FAULTS: dict[tuple[str, str, str], dict[str, tuple[str, ...]]] = {
    (NOISE, "corrected", "sd * self._ratio_normals[self._i] - 0.5 * sd * sd"): {
        "penalty added, not subtracted": ("dp-penalty", "- 0.5", "+ 0.5", "balance invariance"),
        "correction missing": ("dp-penalty", "- 0.5 * sd * sd", "", "balance"),
        "correction missing in dp-hmc": ("dp-hmc", "- 0.5 * sd * sd", "", "balance"),
        "correction missing on a batch": (MINI, "- 0.5 * sd * sd", "", "batch_balance"),
        "correction of half the variance": ("dp-penalty", "0.5", "0.25", "balance"),
        "uniform noise on [0, sd)": ("dp-penalty", ALL, f"sd * {UNIFORM} - 0.5 * sd * sd", "balance"),
        "uniform noise of the right variance": ("dp-penalty", ALL, CENTRED, "balance"),
    },
    (RWMH, "metropolis", "draws.log_uniform < log_ratio"): {
        "u in place of ln u": ("dp-penalty", ALL, "np.exp(draws.log_uniform) < log_ratio", "invariance"),
        "always accepts": ("rwmh", ALL, "log_ratio == log_ratio", "invariance"),
    },
    (WALKS, "step", "log_ratio + prior_ratio(model, state.theta, proposal)"): {
        "prior left out": ("dp-penalty", ALL, "log_ratio", "balance"),
        "prior ratio upside down": ("rwmh", "+", "-", "balance joint"),
        "batch penalty with the prior upside down": (BATCH_GUIDED, "+", "-", "batch_balance"),
        "Barker's test without the prior": ("dp-barker", ALL, "log_ratio", "batch_balance invariance"),
    },
    (WALKS, "step", "component & ~moved.accepted[:, None]"): {
        "guided walk never turns": (GUIDED, "~moved.accepted[:, None]", "False", "invariance"),
    },
    (WALKS, "step", "moved._replace(carried=np.where(turned, -state.carried, state.carried))"): {
        "guided walk forgets all directions": (GUIDED, ALL, FORGETFUL, "invariance"),
    },
    (WALKS, "step", "state.theta + self.proposal_sd * draws.normal"): {
        "lopsided proposal": ("dp-penalty", "draws.normal", "(draws.normal + 0.3)", "undoing invariance"),
    },
    (HMC, "step", "1.0 if A else low + (high - low) * draws.uniform"): {
        "the same jitter for all": ("dp-hmc jittered", "draws.uniform", "0.5", "pace"),
    },
    (HMC, "step", "momentum / pace"): {"p in place of p/u": ("dp-hmc jittered", " / pace", "", "pace")},
    (HMC, "step", "pace**2"): {"u in place of u squared": ("dp-hmc jittered", "**2", "", "pace")},
    (HMC, "step", "self.step_size * q / self.mass"): {
        "step size dropped from the step of θ": ("dp-hmc", " * q", " * q * 0.3 * self.step_size", "balance"),
    },
    (HMC, "step", "q = q + half * gradient; proposal = A"): {
        "full kick at the start": ("hmc", "half", "2.0 * half", "undoing balance"),
    },
    (HMC, "step", "gradient = A; q = q + half * gradient"): {
        "full kick at the end": ("dp-hmc", "half", "2.0 * half", "balance"),
        "no kick at the end": ("dp-hmc", "half", "0.0 * half", "balance"),
    },
    (HMC, "step", "q + half * gradient"): {
        "friction in the trajectory": ("hmc", "q +", "0.99 * q +", "volume")
    },
    (HMC, "kinetic_energy", "momentum**2 / self.mass"): {
        "kinetic energy without the mass": ("dp-hmc", " / self.mass", "", "balance invariance"),
    },
    (HMC, "step", "log_ratio + self.kinetic_energy(momentum) - self.kinetic_energy(q * pace)"): {
        "energy of the wrong momentum": ("dp-hmc jittered", " * pace", "", "pace"),
        "kinetic energy upside down": ("dp-hmc", "- self", "- 3.0 * self", "balance"),
    },
    (HMC, "step", "np.sqrt(self.mass) * draws.normal"): {
        "momentum of unit variance": ("hmc", "np.sqrt(self.mass) * ", "", "balance"),
        "momentum with M for its square root": ("dp-hmc", "np.sqrt(self.mass)", "self.mass", "balance"),
        "momentum never refreshed": ("hmc", "draws.normal", KEPT, "invariance"),
    },
    (HMC, "step", "np.where(moved.accepted[:, None], gradient, first)"): {
        "gradient kept after a rejection": ("hmc", ALL, "gradient", "invariance"),
        "gradient drawn anew after a rejection": ("reusing", "first", ANEW, "long_invariance"),
    },
    (MECHANISMS, "_ratio_sums", "self._temperature * self._evaluator.unit_of_ratios(within)"): {
        "likelihood not tempered": ("dp-penalty", "self._temperature * ", "", "balance invariance joint"),
        "tempered twice": ("dp-penalty", "_temperature", "_temperature**2", "balance invariance"),
    },
    (MECHANISMS, "penalty_log_ratio", "self._noise.corrected(total, unit, sd)"): {
        "query without noise": ("dp-penalty", ALL, "unit * total", "query attained"),
    },
    (MECHANISMS, "penalty_log_ratio", "self._temperature * 2.0 * tau * np.sqrt(self.n) * bound"): {
        "ratio noise of half the sensitivity": ("dp-penalty", "2.0", "1.0", "query attained"),
        "ratio noise without root n": (GUIDED, "np.sqrt(self.n)", "1.0", "query"),
        "ratio noise not tempered": ("dp-penalty", "self._temperature * ", "", "query"),
        "noise scaled by the 1-norm only": ("dp-penalty", "bound", f"clip * {COORDINATES}", "query"),
    },
    (MECHANISMS, "gradient", "self._temperature * 2.0 * tau * np.sqrt(self.n) * clip"): {
        "gradient noise of half the sensitivity": ("dp-hmc", "2.0", "1.0", "query attained"),
        "gradient noise not tempered": ("dp-hmc", "self._temperature * ", "", "query"),
    },
    (MECHANISMS, "gradient", "self._noise.vectors(total, unit, sd, stage)"): {
        "gradient without noise": ("dp-hmc", ALL, "unit * total", "attained"),
    },
    (MECHANISMS, "distance", "np.sqrt(((theta - proposal) ** 2).sum(axis=1))"): {
        "clipped by the 1-norm": ("dp-penalty", ALL, "np.abs(theta - proposal).sum(axis=1)", "query"),
        "clipped by |sum of differences|": ("dp-penalty", ALL, COORDINATES, "query"),
    },
    ("algorithms.dp_penalty", "log_ratio", ASKED): {
        "undeclared query": ("dp-penalty", ALL, ASKED_TWICE, "query")
    },
    (DP_HMC, "gradient", "private.gradient(theta, self.clip_g, self.tau_g, stage)"): {
        "one noise vector for all gradients": ("dp-hmc", "stage", "0", "query"),
    },
    (DP_HMC, "queries", "self.steps + 1 - self.reuse_gradients"): {
        "one gradient declared too few": ("dp-hmc", " + 1", "", "query"),
    },
    # Batches and their variance.
    (SUMS, "draw_batches", "if taken[pick]: pick = last"): {
        "batch with replacement": (BATCH_GUIDED, "taken[pick]", "False", "attained"),
    },
    (MECHANISMS, "begin", "self._all_words[i]"): {
        "same batch in all iterations": (MINI, "[i]", "[0]", "invariance query"),
        "same batch in all of Barker's iterations": ("dp-barker", "[i]", "[0]", "invariance query"),
        "the first batch again and again": ("dp-sgld", "[i]", "[0]", "step query"),
    },
    (MECHANISMS, "batch_penalty_log_ratio", "scale * total - 0.5 * scale * scale * squares"): {
        "batch sum not tempered": (MINI, "scale * t", f"self.n / {SIZE} * t", "batch_balance"),
        "no batch variance in the penalty": (BATCH_GUIDED, ALL, "scale * total", "batch_balance invariance"),
        "batch variance added, not subtracted": (MINI, "-", "+", "batch_balance"),
        "half the batch variance": (MINI, "0.5", "0.25", "batch_balance"),
        "batch variance of the sum": (MINI, "squares", OF_SUM, "batch_balance"),
        "divisor b - 1": (BATCH_GUIDED, "squares", UNBIASED, "attained"),
        "batch variance not scaled": (MINI, "scale * scale", f"self.n / {SIZE}", "batch_balance"),
    },
    (MECHANISMS, "batch_penalty_log_ratio", "self._temperature * self.n / size"): {
        "nothing about the batch tempered": (MINI, "self._temperature * ", "", "query"),
        "batch sum not scaled up to all rows": (MINI, " * self.n / size", "", "query batch_balance"),
    },
    (
        MECHANISMS,
        "batch_penalty_log_ratio",
        "2.0 * reach + variance_factor * (1.0 - 1.0 / size) * reach * reach",
    ): {
        "no variance's part": (BATCH_GUIDED, "(1.0 -", "0.0 * (1.0 -", "query attained"),
        "half the variance's part": (BATCH_GUIDED, "(1.0 -", "0.5 * (1.0 -", "query attained"),
        "root of the variance's part": (BATCH_GUIDED, "reach * reach", "reach", "query"),
        "batch noise of half the sensitivity": (BATCH_GUIDED, "2.0 * ", "", "query attained"),
    },
    (MECHANISMS, "batch_penalty_log_ratio", "self._noise.corrected(estimate, A, multiplier * B)"): {
        "multiplier squared": (BATCH_GUIDED, "multiplier", "multiplier**2", "query attained"),
        "batch query without noise": (BATCH_GUIDED, ALL, "estimate", "query attained"),
    },
    (MINIBATCH, "queries", "np.sqrt(self.tau)"): {
        "squared multiplier declared": (MINI, ALL, "self.tau**0.25", "query attained"),
    },
    (MINIBATCH, "queries", "self.batch_size"): {
        "half the batch declared": (MINI, "size", "size // 2", "query"),
    },
    # Barker's test.
    (MECHANISMS, "barker_log_ratio", "scale * scale * squares"): {
        "Barker's variance of the sum": ("dp-barker", "squares", OF_SUM, "batch_balance query"),
        "Barker's divisor b - 1": ("dp-barker", "squares", UNBIASED, "query"),
    },
    (MECHANISMS, "barker_log_ratio", "clip_factor / (scale * np.sqrt(size))"): {
        "clip factor forgotten": ("dp-barker", "clip_factor", "1.0", "query"),
        "Barker's rows bounded by b/(nT)": ("dp-barker", ALL, "clip_factor / scale", "query"),
        "Barker's bound not tempered": ("dp-barker", "scale", "self.n / size", "query"),
    },
    (MECHANISMS, "barker_log_ratio", "self._noise.centred(scale * total, A, np.sqrt(2.0 - variance))"): {
        "noise filled up from 2": ("dp-barker", "- variance", "+ 0.0 * variance", "batch_balance query"),
        "noise of variance 2 - s^2 as its sd": ("dp-barker", "np.sqrt", "", "batch_balance query"),
        "no noise beside the batch's": ("dp-barker", "np.sqrt(2.0 -", "(0.0 *", "batch_balance query"),
        "Barker's batch sum not tempered": ("dp-barker", "scale", f"self.n / {SIZE}", "batch_balance"),
    },
    (BARKER, "decide", "log_ratio + barker_correction(draws.uniform[:, 0]) > 0.0"): {
        "accepted below 0": ("dp-barker", ">", "<", "batch_balance"),
        "Metropolis' test": ("dp-barker", ALL, "np.log(draws.uniform[:, 0]) < log_ratio", "batch_balance"),
    },
    (CORRECTION, "barker_correction", "np.array(VALUES)"): {
        "no correction of Barker's noise": ("dp-barker", "np.", "0.0 * np.", "batch_balance"),
        "a correction of twice the variance": ("dp-barker", "np.", "2.0**0.5 * np.", "batch_balance"),
    },
    # Langevin's steps.
    (SGLD, "step", "DRIFTS[self.drift] * h"): {
        "drift twice too large": ("dp-sgld", "DRIFTS[self.drift] * ", "", "step"),
    },
    (SGLD, "step", "self.step_size / private.n"): {
        "step not over n": ("dp-sgld", " / private.n", "", "step")
    },
    (SGLD, "noise_multiplier", "2.0 * DRIFTS[self.drift]"): {
        "the published multiplier": ("dp-sgld", " * DRIFTS[self.drift]", "", "step"),
    },
    (MECHANISMS, "batch_gradient", "multiplier * 2.0 * clip * scale"): {
        "step's noise half as large": ("dp-sgld", "2.0 * ", "", "step step_attained query"),
        "step's noise without n/b": ("dp-sgld", " * scale", "", "step step_attained query"),
    },
    (MECHANISMS, "batch_gradient", "self.n / self._words.shape[1]"): {
        "n/b forgotten": ("dp-sgld", ALL, "1.0", "step query"),
    },
    (MECHANISMS, "batch_gradient", "scale * self._temperature * A"): {
        "temperature forgotten": ("dp-sgld", "self._temperature * ", "", "step step_attained"),
    },
    (MECHANISMS, "batch_gradient", "clip / self._temperature"): {
        "clipped before tempering": ("dp-sgld", " / self._temperature", "", "step query"),
    },
    (NOISE, "vectors", "self._gradient_normals[self._i, :, stage]"): {
        "the first noise again and again": ("dp-sgnht", "self._i", "0", "step query"),
    },
    (SUMS, "batch_gradient_sums", "clip_factor(square, bound)"): {
        "no clipping": ("dp-sgld", ALL, "1.0", "step step_attained"),
    },
    (SUMS, "batch_gradient_sums", "sums[c, i] += factor * gradient[i]"): {
        "the last row alone": ("dp-sgld", "+=", "=", "step")
    },
    (LANGEVIN, "queries", "SubsampledGaussianQuery(A, multiplier, B, n, sensitivity=C)"): {
        "too large a multiplier declared": ("dp-sgld", "mul", "2.0 * mul", "step_attained query"),
    },
    (LANGEVIN, "queries", "2.0 * n * self.clip"): {
        "half the sensitivity declared": ("dp-sgnht", "2.0 * ", "", "query"),
    },
    (LANGEVIN, "gradient", "gradient + model.log_prior_gradient(state.theta)"): {
        "prior's gradient forgotten": ("dp-sgld", ALL, "gradient", "step"),
        "prior scaled like the rows": ("dp-sgnht", "model", "private.n * model", "step"),
    },
    (SGNHT, "step", "old if A else new"): {
        "stale momentum": ("dp-sgnht", ALL, "old", "step"),
        "new momentum where the old one was published": ("dp-sgnht published", ALL, "new", "step"),
    },
    (SGNHT, "step", "np.where(moved.accepted[:, None], carried, state.carried)"): {
        "momentum not carried on": ("dp-sgnht", "moved.accepted[:, None]", "False", "step"),
    },
    (SGNHT, "step", "old - thermostat * h * old"): {
        "friction that heats": ("dp-sgnht", "-", "+", "step"),
        "no friction": ("dp-sgnht", ALL, "old", "step"),
    },
    (SGNHT, "step", "A / old.shape[1]"): {"a thermostat for one component": ("dp-sgnht", ALL, "A", "step")},
    (SGNHT, "noise_multiplier", "2.0 * self.diffusion"): {
        "half the diffusion": ("dp-sgnht", "2.0 * ", "", "step")
    },
    # How often a move of DP-Fast MH is accepted.
    (FAST, "passes", "np.where(A, free < log_ratio, log_uniform < noisy)"): {
        "Barker's test beside noise": (NOISY_ROWS, "log_uniform", THRESHOLD, "frequency"),
        "correction without noise, minibatch": (FREE_BATCH, *LISTING, "frequency"),
        "correction without noise, all rows": (FREE_ROWS, *LISTING, "frequency"),
    },
    (FAST, "passes", "self.noise.corrected(log_ratio, 1.0, sd)"): {
        "uniform noise on all rows": (NOISY_ROWS, ALL, UNIFORM_NOISE, "frequency"),
        "noise without correction": (NOISY_BATCH, "corrected", "centred", "frequency"),
    },
    (SUMS, "thinned_log_ratio", "uniform(word, THINNING + j) * (1.0 + h) < 1.0 - h * v"): {
        "one number for a row and its thinning": (BARKER_BATCH, "THINNING", "ROW_PLACES", "frequency"),
        "thinning off by c_i M": ("tuna-mh", "- h * v", "- h * v * reach[j]", "frequency"),
        "thinning upside down": ("tuna-mh", "- h", "+ h", "frequency"),
        "no thinning": (FREE_BATCH, ALL, "True", "frequency"),
    },
    (SUMS, "draw_with_replacement", "place - column < threshold[column]"): {
        "rows drawn uniformly": ("published, uneven rows", ALL, "True", "frequency"),
    },
    (FAST, "rows_to_draw", "self.rule.batch_mean + reach"): {
        "Poisson mean without lambda": ("tuna-mh", "self.rule.batch_mean + ", "", "frequency"),
        "Poisson mean without CM": (BARKER_BATCH, "reach", "0.0 * reach", "frequency"),
    },
    (SUMS, "poisson_counts", "np.zeros(words.shape[0], np.int64)"): {
        "one arrival too many": ("tuna-mh", "zeros", "ones", "frequency"),
    },
    (SUMS, "thinned_log_ratio", "math.log((1.0 + h * v) / (1.0 - h * v))"): {
        "artanh without its factor 2": (FREE_BATCH, "math", "0.5 * math", "frequency"),
    },
    (FAST, "verdict", "self.temperature * self.evaluator.row_ratios(A, B, chosen)"): {
        "minibatch not tempered": ("tuna-mh", "self.temperature * ", "", "frequency"),
    },
    (FAST, "verdict", "self.temperature * sums"): {
        "all rows not tempered": ("corrected, all rows, cool", "self.temperature * ", "", "frequency"),
    },
    (FAST, "passes", "barker_threshold(log_uniform) if self.rule.barker else log_uniform"): {
        "Metropolis in place of Barker's test": (BARKER_ROWS, ALL, "log_uniform", "frequency"),
    },
    (FAST, "verdict", "log_ratio + prior_ratio"): {
        "prior forgotten on a minibatch": (BARKER_BATCH, " + prior_ratio", "", "frequency"),
        "prior forgotten on all rows": (FREE_ROWS, " + prior_ratio", "", "frequency"),
    },
    # Noise and limits of DP-Fast MH.
    (FAST, "verdict", "2.0 * self.bounded.largest"): {
        "half the sensitivity on all rows": ("all rows with noise", "2.0 * ", "", "bit_query"),
    },
    (FAST, "batch_noise_sd", "2.0 * np.log(1.0 + reach / rule.batch_mean)"): {
        "half the sensitivity on a minibatch": ("minibatch with noise", "2.0 * ", "", "bit_query"),
    },
    (FAST, "batch_noise_sd", "batch_epsilon(rule.epsilon, rule.most_rows, share)"): {
        "no factor 6": ("minibatch with noise", "batch_epsilon(", "6.0 * batch_epsilon(", "bit_query"),
        "limit of all rows": ("minibatch with noise", ALL, "rule.epsilon", "bit_query"),
    },
    (FAST, "batch_noise_sd", "batch_multiplier(rule.epsilon, rule.delta, rule.most_rows, share)"): {
        "noise of all rows on a minibatch": ("minibatch with noise", ALL, OF_ALL_ROWS, "bit_query"),
    },
    (FAST, "rows_to_draw", "not self.rule.branch_on_mean"): {
        "a branch on the number of rows drawn": ("minibatch without noise", ALL, "True", "bit_query"),
    },
}
#: By name: the subject, its module, the fault and what catches it.
SOWN = {
    name: (
        subject,
        f"dpmc.{module}",
        Fault(function, shape, shape.replace(piece or shape, by)),
        checks.split(),
    )
    for (module, function, shape), faults in FAULTS.items()
    for name, (subject, piece, by, checks) in faults.items()
}
CHECKED = [(name, check) for name, fault in SOWN.items() for check in fault[-1]]


@pytest.mark.parametrize(("name", "check"), CHECKED)
def test_fault_is_caught(name: str, check: str) -> None:
    subject, module, fault, _ = SOWN[name]
    with sown(module, fault):
        assert CHECKS[check](SUBJECTS[subject].anew())


@pytest.mark.parametrize("module", sorted({module for _, module, *_ in SOWN.values()}))
def test_faults_are_sown_in_other_words_too(module: str) -> None:
    """With other line breaks, brackets and names of local variables; `sow` fails if nothing changes."""
    tree = ladder.tree_of(module)
    for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
        names = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
        local = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        for node in names:
            node.id = f"other_{node.id}" if node.id in local else node.id
    for fault in [fault for _, its_module, fault, _ in SOWN.values() if its_module == module]:
        fault.sow(module, ast.parse(ast.unparse(tree)))


@pytest.mark.parametrize(("name", "module"), sorted({fault[:2] for fault in SOWN.values()}))
def test_reloaded_sources_without_a_fault_pass(name: str, module: str) -> None:
    # so that the faults above are caught for what was changed, not for how they are made
    with sown(module):
        for check in {check for fault in SOWN.values() if fault[:2] == (name, module) for check in fault[-1]}:
            assert not CHECKS[check](SUBJECTS[name].anew())


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
