"""The test ladder: checks that any kernel of the library must pass and any faulty one must fail.

A `Kernel` is an algorithm with the classes of its door and noise source; a fault is the same kernel
with a piece of its text changed (`Kernel.mutated`) and goes through the very same checks. Each
check returns a number (an error, a p-value) or a list of complaints and leaves the verdict to the
caller; the limits used throughout are below. To add an algorithm, add it to `KERNELS` and
`COMPILED` (and, if it neither walks nor leaps, teach `reversed_move` how its move is undone).

Kernels that look at batches keep the posterior only as far as a batch's sum is normal and its estimated
variance the right one. Their settings make that good: n = b², for which the estimate is unbiased (a batch
without replacement has 1 − b/n of the variance, the divisor b takes (b − 1)/b of it), b ≥ 50, batch noise
of the log ratio of variance about 1. What is left is below the checks' resolution, which is stated there.
"""

import importlib
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import log_ndtr, ndtr, ndtri

from dpmc import sampling
from dpmc.algorithms.common import Draws, Record, State
from dpmc.algorithms.dp_barker import DPBarker
from dpmc.algorithms.dp_hmc import DPHMC
from dpmc.algorithms.dp_penalty import DPPenalty
from dpmc.algorithms.dp_penalty_guided import DPPenaltyGuided
from dpmc.algorithms.hmc import HMC
from dpmc.algorithms.minibatch_penalty import MinibatchPenalty
from dpmc.algorithms.minibatch_penalty_guided import MinibatchPenaltyGuided
from dpmc.algorithms.rwmh import RWMH
from dpmc.compiler import compiled
from dpmc.evaluators.batch import BatchEvaluator
from dpmc.models.banana import Banana
from dpmc.models.circle import Circle
from dpmc.models.gaussian import Gaussian
from dpmc.privacy.events import BarkerRelease, GaussianRelease, SubsampledGaussianRelease
from dpmc.privacy.mechanisms import Door
from dpmc.privacy.noise import LabNoise

#: A right kernel stays below the errors and above the p-value; a fault must be below FAULT_P.
IMBALANCE = 1e-3
RETURN_ERROR = 1e-10
SHARED = (
    "accept",
    "settle",
    "walk",
    "guided_walk",
    "draw_momentum",
    "kick",
    "drift",
    "kinetic_energy",
    "barker_correction",
)
VOLUME_ERROR = 1e-6
P_VALUE = 1e-4
FAULT_P = 1e-8


# --- small problems with a known posterior -------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    """A small problem whose posterior is known exactly."""

    model: Any
    rows: np.ndarray  # (n, d_x)
    temperature: float
    along_axes: bool = False  # walks are to move one component by exactly its proposal_sd

    @property
    def n(self) -> int:
        return len(self.rows)

    @property
    def posterior(self) -> Any:
        return self.model.posterior(self.rows, self.temperature)

    def log_posterior(self, theta: np.ndarray) -> float:
        """T Σ ln p(x_j|θ) + ln p(θ), straight from the model's formulas."""
        likelihood = self.model.log_likelihood(theta, self.rows).sum()
        return float(self.temperature * likelihood + self.model.log_prior(theta))

    def uniforms(self, theta: np.ndarray) -> np.ndarray:
        """Statistics (N, q) of draws (N, d), each uniform on (0, 1) under the exact posterior."""
        if isinstance(self.model, Circle):
            law, sd = self.posterior, np.sqrt(self.posterior.square_variance)
            below = ndtr(-law.square_mean / sd)
            u = (ndtr(((theta**2).sum(axis=1) - law.square_mean) / sd) - below) / (1.0 - below)
            angle = np.arctan2(theta[:, 1], theta[:, 0]) / (2.0 * np.pi) + 0.5
            return np.column_stack([u, angle])
        if isinstance(self.model, Gaussian):
            root = np.linalg.cholesky(self.posterior.spread)
            return normal_uniforms(np.linalg.solve(root, (theta - self.posterior.centre).T).T)
        return normal_uniforms(
            (bent(self.model, theta) - self.posterior.mu) / np.sqrt(self.posterior.variance)
        )


def bent(model: Banana, theta: np.ndarray) -> np.ndarray:
    """φ(θ) of draws (N, d): normal with independent components under prior and posterior."""
    phi = np.array(theta)
    phi[:, 1] += model.a * (theta[:, 0] - model.m) ** 2 + model.b
    return phi


def normal_uniforms(z: np.ndarray) -> np.ndarray:
    """Margins, squared length, sum and difference of standard normal z (N, 2), made uniform."""
    pairs = np.column_stack([z[:, 0] + z[:, 1], z[:, 0] - z[:, 1]]) / np.sqrt(2.0)
    return np.column_stack([ndtr(z), ndtr(pairs), stats.chi2.cdf((z**2).sum(axis=1), 2)])


def banana(n: int, temperature: float) -> Setting:
    """A bent Gaussian with every constant of the model different from 0 and from 1."""
    model = Banana(0.4, 0.3, -0.2, np.array([2.0, 0.5]), 4.0)
    rows = model.simulate(np.random.default_rng(7), np.array([0.5, -0.3]), n)
    return Setting(model, rows, temperature)


def weighty_prior(n: int, temperature: float, prior_variance: float) -> Setting:
    """As `banana`, with a prior that is felt beside many rows."""
    model = banana(1, 1.0).model._replace(prior_variance=prior_variance)
    return Setting(model, model.simulate(np.random.default_rng(10), np.array([0.5, -0.3]), n), temperature)


def corners(n: int, temperature: float, half_side: float) -> Setting:
    """A Gaussian with unit covariance whose rows are the four corners of a square, n/4 each.

    A move along an axis has log ratios of two values only, so batch noise comes near the largest that a
    clip bound allows, and no row is clipped.
    """
    model = Gaussian(np.eye(2), 0.04, 0.04)
    square = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    rows = np.array([0.2, -0.1]) + half_side * np.tile(square, (n // 4, 1))
    return Setting(model, rows, temperature, along_axes=True)


def circle(n: int, temperature: float) -> Setting:
    model = Circle(0.02)
    return Setting(model, model.simulate(np.random.default_rng(8), np.zeros(2), n), temperature)


def gaussian(n: int, temperature: float) -> Setting:
    model = Gaussian(np.array([[0.8, -0.9], [-0.9, 2.0]]), 4.0, 4.0)
    rows = model.simulate(np.random.default_rng(9), np.array([0.5, -0.3]), n)
    return Setting(model, rows, temperature)


SMALL = banana(5, 0.6)  # for plain Python
LARGE = banana(60, 0.2)  # for compiled runs
RING = circle(60, 0.2)
SLANTED = gaussian(60, 0.2)
WEAK = banana(6, 0.2)  # data and prior weigh about the same
BATCHED = weighty_prior(2500, 0.02, 0.3)  # for batches of 50: nT/b = 1
CORNERS = corners(10_000, 0.005, 2.07)  # for batches of 100: nT/b = 0.5
WEAK_BATCHED = weighty_prior(900, 1.0, 0.0015)  # n/σ² = 450 and 1800, 1/σ_0² = 667


# --- kernels and their faults --------------------------------------------------------------------


@dataclass(frozen=True)
class Kernel:
    """An algorithm with its hyperparameters, and the classes that stand between it and the rows."""

    algorithm: Any
    door: Any = Door
    noise: Any = LabNoise
    python: bool = False  # run the text as it stands in place of compiling it
    setting: Setting = field(default=SMALL, repr=False)  # where the checks run in plain Python
    batches: Any = None  # a BatchEvaluator in place of the library's

    def evaluator_of(self, setting: Setting) -> Any:
        """What serves the kernel; in plain Python, all but the sums over batches, which take long."""
        if self.batches is not None:
            return self.batches.build(setting.model.statistics(setting.rows))
        evaluator = sampling.build_evaluator(self.algorithm, setting)
        if self.python and isinstance(evaluator, BatchEvaluator):
            return CompiledBatches(evaluator)
        return evaluator

    def door_of(self, setting: Setting, evaluator: Any = None) -> Any:
        if evaluator is None:
            evaluator = self.evaluator_of(setting)
        return self.door(setting.model, evaluator, setting.temperature, setting.n)

    def mutated(self, module: str, *changes: tuple[str, str]) -> "Kernel":
        """The same kernel, in plain Python, with pieces of a module's text exchanged."""
        names = mutant(module, *changes)
        algorithm = type(self.algorithm)
        if algorithm.__name__ in names and names[algorithm.__name__].__module__ == names["__name__"]:
            return replace(self, algorithm=names[algorithm.__name__](*self.algorithm), python=True)
        if not {"accept", "kick", "cdf"}.isdisjoint(names):  # shared: algorithms import them by name
            own = mutant(algorithm.__module__)
            own |= {name: names[name] for name in SHARED if name in names}
            return replace(self, algorithm=own[algorithm.__name__](*self.algorithm), python=True)
        if "BatchEvaluator" in names:
            return replace(self, batches=names["BatchEvaluator"], python=True)
        if "Door" in names:
            return replace(self, door=names["Door"], python=True)
        return replace(self, noise=names["LabNoise"], python=True)


class CompiledBatches:
    """Compiled sums over batches, for a kernel in plain Python."""

    def __init__(self, evaluator: BatchEvaluator) -> None:
        self._evaluator = evaluator

    def batch_sums(self, model: Any, *arguments: Any) -> None:
        compiled_batch_sums(self._evaluator, model, *arguments)


def _batch_sums(evaluator, model, theta, proposal, bound, words, i, sums, squares, counts):  # type: ignore[no-untyped-def]
    evaluator.batch_sums(model, theta, proposal, bound, words, i, sums, squares, counts)


compiled_batch_sums = compiled(_batch_sums)


def mutant(module: str, *changes: tuple[str, str]) -> dict[str, Any]:
    """Run a module's text with pieces exchanged, in plain Python, and return what it defines.

    A piece that no longer occurs is an error: the fault must be written anew for the new text.
    """
    path = Path(importlib.import_module(module).__file__ or "")
    text = re.sub(r"^@compilable.*\n", "", path.read_text(), flags=re.MULTILINE)
    for old, new in changes:
        assert old in text, f"{module} has no text {old!r} any more: write this fault anew"
        text = text.replace(old, new)
    names: dict[str, Any] = {"__name__": f"{module}_mutant"}
    exec(compile(text, f"<mutant of {path.name}>", "exec"), names)
    return names


def lengths(*values: float) -> np.ndarray:
    return np.array(values)


#: Every kernel, for plain Python on its own small setting. Clip bounds are out of reach, so the posterior is
#: invariant; τ is such that noise of a log ratio has an sd near 1, and that of a gradient is felt.
KERNELS: dict[str, Kernel] = {
    "rwmh": Kernel(RWMH(np.inf, lengths(0.9, 0.7)), python=True),
    "hmc": Kernel(HMC(3, lengths(0.85, 0.33), lengths(2.5, 0.4), np.inf, np.inf), python=True),
    "dp-penalty": Kernel(DPPenalty(0.004, 100.0, lengths(0.9, 0.7)), python=True),
    "dp-penalty-guided": Kernel(DPPenaltyGuided(0.004, 100.0, lengths(1.1, 0.9)), python=True),
    "dp-hmc": Kernel(
        DPHMC(0.004, 0.001, 3, lengths(0.55, 0.23), lengths(2.5, 0.4), 100.0, 400.0, False),
        python=True,
    ),
    "minibatch-penalty": Kernel(
        MinibatchPenalty(0.01, 50, 10.0, lengths(0.12, 0.06), 3.0), python=True, setting=BATCHED
    ),
    "minibatch-penalty-guided": Kernel(
        MinibatchPenaltyGuided(0.01, 50, 10.0, lengths(0.18, 0.1), 2.0), python=True, setting=BATCHED
    ),
    "dp-barker": Kernel(DPBarker(100, 0.99, lengths(0.07, 0.07)), python=True, setting=CORNERS),
}
BATCHES = tuple(name for name, kernel in KERNELS.items() if kernel.algorithm.batch_size)
#: Not known to leave the posterior invariant: only what concerns releases and bits is tested.
REUSING = Kernel(KERNELS["dp-hmc"].algorithm._replace(reuse_gradients=True), python=True)

#: The same, compiled, on LARGE (n = 60, T = 0.2), and some on RING.
COMPILED: dict[str, tuple[Kernel, Setting]] = {
    "rwmh": (Kernel(RWMH(np.inf, lengths(0.6, 0.3))), LARGE),
    "hmc": (Kernel(HMC(3, lengths(0.25, 0.12), lengths(1.3, 0.7), np.inf, np.inf)), LARGE),
    "dp-penalty": (Kernel(DPPenalty(0.005, 100.0, lengths(0.6, 0.3))), LARGE),
    "dp-penalty-guided": (Kernel(DPPenaltyGuided(0.005, 100.0, lengths(0.8, 0.4))), LARGE),
    "dp-hmc": (
        Kernel(DPHMC(0.00125, 0.00125, 3, lengths(0.25, 0.12), lengths(1.3, 0.7), 400.0, 400.0, False)),
        LARGE,
    ),
    "dp-penalty-guided on the circle": (
        Kernel(DPPenaltyGuided(0.005, 100.0, lengths(0.8, 0.8))),
        RING,
    ),
    "dp-penalty-guided on a slanted Gaussian": (
        Kernel(DPPenaltyGuided(0.005, 100.0, lengths(0.6, 0.4))),
        SLANTED,
    ),
    "dp-hmc on the circle": (
        Kernel(DPHMC(0.00125, 0.00125, 3, lengths(0.1, 0.1), lengths(1.3, 0.7), 400.0, 400.0, False)),
        RING,
    ),
    **{name: (replace(KERNELS[name], python=False), KERNELS[name].setting) for name in BATCHES},
}
#: For the joint test: data and prior weigh about the same. Rows drawn by the tempered likelihood make
#: batch noise of variance n/b k², k the step in sds of the likelihood alone: steps are short, runs long.
JOINT: dict[str, tuple[Kernel, Setting]] = {
    **{name: (replace(kernel, python=False), WEAK) for name, kernel in KERNELS.items()},
    "minibatch-penalty": (
        Kernel(MinibatchPenalty(0.0005, 30, 10.0, lengths(0.008, 0.004), 3.0)),
        WEAK_BATCHED,
    ),
    "minibatch-penalty-guided": (
        Kernel(MinibatchPenaltyGuided(0.0005, 30, 10.0, lengths(0.012, 0.006), 3.0)),
        WEAK_BATCHED,
    ),
    "dp-barker": (
        Kernel(DPBarker(300, 1.0, lengths(0.0042, 0.0021))),
        replace(WEAK_BATCHED, along_axes=True),
    ),
}


# --- running -------------------------------------------------------------------------------------


@dataclass
class Numbers:
    """All random numbers of m iterations of some chains."""

    draws: Draws
    ratio_normals: np.ndarray  # (chains, m)
    gradient_normals: np.ndarray  # (chains, m, stages, d)
    extra: np.ndarray  # (chains, e)

    def repeated(self, chains: int) -> "Numbers":
        """One chain's numbers, for many chains."""

        def many(array: np.ndarray) -> np.ndarray:
            return np.repeat(array, chains, axis=0)

        draws = Draws(*(many(array) for array in self.draws))
        return Numbers(draws, many(self.ratio_normals), many(self.gradient_normals), many(self.extra))


def numbers(
    algorithm: Any,
    generator: np.random.Generator,
    chains: int,
    m: int,
    d: int,
    along_axes: bool = False,
) -> Numbers:
    """Draw what m iterations need; what an algorithm carries along starts as it says."""
    normal = generator.standard_normal((chains, m, algorithm.normals))
    if along_axes:
        one_axis(normal)
    stages = algorithm.evaluations[1] + 1 if algorithm.evaluations[1] else 0
    extra = np.zeros((chains, algorithm.extras))
    if algorithm.extras:
        for c in range(chains):
            extra[c] = algorithm.first_extra(generator)
    return Numbers(
        Draws(
            normal,
            generator.random((chains, m, algorithm.uniforms)),
            np.log(generator.random((chains, m))),
            generator.integers(0, 2**64, (chains, m, sampling.words_of(algorithm)), dtype=np.uint64),
        ),
        generator.standard_normal((chains, m)),
        generator.standard_normal((chains, m, stages, d)),
        extra,
    )


def one_axis(normal: np.ndarray) -> None:
    """Make moves (…, d) of exactly 1 or −1 in one component, each equally likely; 0 in the others."""
    largest = np.abs(normal).argmax(axis=-1)[..., None]
    signs = np.sign(np.take_along_axis(normal, largest, axis=-1))
    normal[:] = 0.0
    np.put_along_axis(normal, largest, signs, axis=-1)


def run(kernel: Kernel, door: Any, start: np.ndarray, given: Numbers, noise: Any = None) -> Record:
    """Run all iterations that `given` has numbers for, from `start` (chains, d)."""
    m = given.draws.log_u.shape[1]
    record = Record.empty(len(start), m, start.shape[1])
    state = State(start.copy(), given.extra.copy())
    noise = noise or kernel.noise(given.ratio_normals, given.gradient_normals)
    advance = sampling.run_iterations if kernel.python else sampling.compiled_iterations
    with np.errstate(over="ignore", invalid="ignore"):
        advance(kernel.algorithm, door, noise, given.draws, state, record)
    return record


class Probe:
    """Stands for ln u in the acceptance test: sees what it is compared with, and accepts."""

    compared: Any = None

    def __lt__(self, log_ratio: Any) -> bool:
        self.compared = float(log_ratio)
        return True


def probes(chains: int) -> np.ndarray:
    found = np.empty((chains, 1), dtype=object)
    for c in range(chains):
        found[c, 0] = Probe()
    return found


class SpyDoor:
    """A door that remembers where gradients were asked for, and its answers."""

    def __init__(self, door: Any) -> None:
        self._door = door
        self.gradients: list[tuple[np.ndarray, np.ndarray]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._door, name)

    def noisy_gradient(
        self,
        theta: Any,
        clip: Any,
        tau: Any,
        noise: Any,
        i: int,
        stage: int,
        answer: Any,
        clipped: Any,
    ) -> None:
        self._door.noisy_gradient(theta, clip, tau, noise, i, stage, answer, clipped)
        self.gradients.append((theta.copy(), answer.copy()))

    def exact_gradient(self, theta: Any, clip: Any, i: int, answer: Any, clipped: Any) -> None:
        self._door.exact_gradient(theta, clip, i, answer, clipped)
        self.gradients.append((theta.copy(), answer.copy()))


# --- moves there and back ------------------------------------------------------------------------


@dataclass
class Move:
    """One proposed move with frozen numbers, and where it led."""

    start: np.ndarray  # (d,)
    given: Numbers  # for one chain and one iteration
    end: np.ndarray  # (d,)
    momentum: np.ndarray | None  # (d,) at the end, for leapfrog methods
    kinetic: float  # ½pᵀM⁻¹p at the start minus that at the end


def move(kernel: Kernel, setting: Setting, start: np.ndarray, given: Numbers) -> Move:
    """Propose from `start` with frozen numbers; a probe accepts whatever is proposed."""
    door = SpyDoor(kernel.door_of(setting))
    given = replace(given, draws=given.draws._replace(log_u=probes(1)))
    if is_barker(kernel):  # no ln u: noise beyond any log ratio accepts
        given = replace(given, ratio_normals=np.full((1, 1), 1e3))
    end = run(kernel, door, start[None], given).theta[0, 0]
    if not door.gradients:
        return Move(start, given, end, None, 0.0)
    mass, step = kernel.algorithm.mass, kernel.algorithm.step_size
    first = np.sqrt(mass) * given.draws.normal[0, 0]
    before, last = door.gradients[-2][0][0], door.gradients[-1]
    momentum = (last[0][0] - before) * mass / step + 0.5 * step * last[1][0]
    kinetic = 0.5 * float((first**2 / mass).sum() - (momentum**2 / mass).sum())
    return Move(start, given, end, momentum, kinetic)


def is_barker(kernel: Kernel) -> bool:
    return hasattr(kernel.algorithm, "clip_factor")


def reversed_move(kernel: Kernel, made: Move) -> Numbers:
    """The numbers by which the same kernel proposes to go back."""
    given, algorithm = made.given, kernel.algorithm
    draws, extra, gradients = given.draws, given.extra, given.gradient_normals
    if made.momentum is not None:  # flip the momentum, meet the same gradient noise in reverse order
        draws = draws._replace(normal=(-made.momentum / np.sqrt(algorithm.mass))[None, None])
        used = algorithm.steps + 1
        gradients = np.concatenate([gradients[:, :, used - 1 :: -1], gradients[:, :, used:]], axis=2)
    elif algorithm.one_component:  # the walk turns around: the same length, the other direction
        extra = -extra
    else:
        draws = draws._replace(normal=-draws.normal)
    return Numbers(draws, given.ratio_normals, gradients, extra)


def imbalance(kernel: Kernel, pairs: int = 4, nodes: int = 801) -> float:
    """Largest |ln a(move) − ln a(move back) − ln(π(there)/π(here))| over random moves.

    a is the probability of acceptance: the real kernel is run once for each node z of the log
    ratio's noise, a probe reads what ln u is compared with, and min(1, e^x) is integrated over z.
    π includes the momentum for leapfrog methods, whose gradient noise is frozen.
    """
    setting, generator = kernel.setting, np.random.default_rng(20)
    z = np.linspace(-9.0, 9.0, nodes)
    weight = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi) * (z[1] - z[0])

    def log_acceptance(start: np.ndarray, given: Numbers) -> float:
        many = given.repeated(nodes)
        many.draws = many.draws._replace(log_u=probes(nodes))
        many.ratio_normals = z[:, None].copy()
        run(kernel, kernel.door_of(setting), np.repeat(start[None], nodes, axis=0), many)
        compared = np.array([probe.compared for probe in many.draws.log_u[:, 0]])
        chance = (weight * np.exp(np.minimum(compared, 0.0))).sum()
        return float(np.log(max(chance, 1e-300)))  # a fault may make it 0

    worst = 0.0
    for start in setting.posterior.draws(generator, pairs):
        made = move(kernel, setting, start, numbers(kernel.algorithm, generator, 1, 1, len(start)))
        there = log_acceptance(start, made.given)
        back = log_acceptance(made.end, reversed_move(kernel, made))
        wanted = setting.log_posterior(made.end) - setting.log_posterior(start) + made.kinetic
        worst = max(worst, abs(there - back - wanted))
    return worst


def batch_balance(kernel: Kernel, pairs: int = 4, more: int = 1) -> float:
    """p-value that ln a(move) − ln a(move back) = ln(π(there)/π(here)), for kernels that look at batches.

    a is the probability of acceptance over batches and noise, estimated from many fresh batches each way.
    What N(m, sd²) noise makes of Metropolis' test is known: Φ(m/sd) + e^(m + sd²/2) Φ(−sd − m/sd), so the
    kernel is run with noise −1 and 1, which shows a batch's m and sd. Of Barker's test the bits are counted,
    over noise and correction as well, and moves are in the posterior's flank, where wrong noise tells. A
    pair's log ratio is seen to 1 % (Barker: 3 %, of which the correction's error is a third at most); `more`
    times as many batches sharpen that.
    """
    setting, generator = kernel.setting, np.random.default_rng(20)
    batches = more * (10_000 if is_barker(kernel) else 4000)

    def acceptances(start: np.ndarray, given: Numbers) -> np.ndarray:
        many = given.repeated(batches)
        words = generator.integers(0, 2**64, many.draws.words.shape, dtype=np.uint64)
        many.draws = many.draws._replace(words=words, log_u=probes(batches))
        starts = np.repeat(start[None], batches, axis=0)
        if is_barker(kernel):
            many.ratio_normals = generator.standard_normal((batches, 1))
            many.draws = many.draws._replace(uniform=generator.random((batches, 1, 1)))
            return run(kernel, kernel.door_of(setting), starts, many).accepted[:, 0].astype(float)
        compared = []
        for z in (-1.0, 1.0):
            many.ratio_normals = np.full((batches, 1), z)
            run(kernel, kernel.door_of(setting), starts, many)
            compared.append(np.array([probe.compared for probe in many.draws.log_u[:, 0]]))
        m, sd = 0.5 * (compared[1] + compared[0]), 0.5 * (compared[1] - compared[0])
        sd = np.maximum(sd, 1e-9)  # a fault may leave the noise out
        return ndtr(m / sd) + np.exp(m + 0.5 * sd**2 + log_ndtr(-sd - m / sd))

    total = 0.0
    law = setting.posterior
    starts = law.draws(generator, pairs)
    if is_barker(kernel):
        starts = law.mean() + 3.3 * np.sqrt(np.diag(law.covariance())) * np.sign(starts - law.mean())
    for start in starts:
        given = numbers(kernel.algorithm, generator, 1, 1, len(start), setting.along_axes)
        made = move(kernel, setting, start, given)
        there = acceptances(start, made.given)
        back = acceptances(made.end, reversed_move(kernel, made))
        wanted = setting.log_posterior(made.end) - setting.log_posterior(start)
        found = np.log(max(there.mean(), 1e-9)) - np.log(max(back.mean(), 1e-9))
        variance = sum(a.var() / max(a.mean(), 1e-3) ** 2 / batches for a in (there, back))
        total += (found - wanted) ** 2 / max(variance, 1e-9)
    return float(stats.chi2.sf(total, pairs))


def return_error(kernel: Kernel) -> float:
    """How far from its start a frozen move ends that is made and then undone."""
    setting = kernel.setting
    generator = np.random.default_rng(21)
    worst = 0.0
    for start in setting.posterior.draws(generator, 5):
        made = move(kernel, setting, start, numbers(kernel.algorithm, generator, 1, 1, len(start)))
        undone = move(kernel, setting, made.end, reversed_move(kernel, made))
        worst = max(worst, float(np.abs(undone.end - start).max()))
        if undone.momentum is not None:
            first = np.sqrt(kernel.algorithm.mass) * made.given.draws.normal[0, 0]
            worst = max(worst, float(np.abs(undone.momentum + first).max()))
    return worst


def volume_error(kernel: Kernel) -> float:
    """|det − 1| of a leapfrog trajectory (θ, p) → (θ', p') with frozen noise, by differences."""
    setting = kernel.setting
    generator = np.random.default_rng(22)
    start = setting.posterior.draws(generator, 1)[0]
    d, root = len(start), np.sqrt(kernel.algorithm.mass)
    given = numbers(kernel.algorithm, generator, 1, 1, d)
    point = np.concatenate([start, root * given.draws.normal[0, 0]])

    def trajectory(place: np.ndarray) -> np.ndarray:
        draws = given.draws._replace(normal=(place[d:] / root)[None, None])
        made = move(kernel, setting, place[:d], replace(given, draws=draws))
        assert made.momentum is not None
        return np.concatenate([made.end, made.momentum])

    h = 1e-5
    steps = h * np.eye(2 * d)
    columns = [(trajectory(point + e) - trajectory(point - e)) / (2.0 * h) for e in steps]
    return abs(float(np.linalg.det(np.array(columns))) - 1.0)


# --- stationarity --------------------------------------------------------------------------------


def smallest_p(uniforms: np.ndarray) -> float:
    """The worst p-value that columns (N, q) are uniform, times the number of tests (Bonferroni).

    Three tests a column: Kolmogorov–Smirnov, and mean and variance of its normal scores.
    """
    count = len(uniforms)
    scores = ndtri(np.clip(uniforms, 1e-300, 1.0 - 1e-16))
    mean = 2.0 * stats.norm.sf(np.abs(scores.sum(axis=0)) / np.sqrt(count))
    square = stats.chi2.cdf((scores**2).sum(axis=0), count)
    variance = 2.0 * np.minimum(square, stats.chi2.sf((scores**2).sum(axis=0), count))
    whole = [stats.kstest(column, "uniform").pvalue for column in uniforms.T]
    p = np.concatenate([mean, variance, whole])
    return min(1.0, float(p.min()) * len(p))


def invariance(
    kernel: Kernel, setting: Setting, chains: int = 1000, iterations: int = 20, seed: int = 1
) -> float:
    """p-value: chains started from exact posterior draws keep that law."""
    generator = np.random.default_rng(seed)
    start = setting.posterior.draws(generator, chains)
    given = numbers(kernel.algorithm, generator, chains, iterations, start.shape[1], setting.along_axes)
    record = run(kernel, kernel.door_of(setting), start, given)
    assert record.ratio_clipped.sum() == record.gradient_clipped.sum() == 0, "rows were clipped"
    moved = (record.theta[:, -1] != start).any(axis=1).mean()
    assert moved > 0.5, f"only {moved:.0%} of the chains moved: this test would prove nothing"
    return smallest_p(setting.uniforms(record.theta[:, -1]))


def joint_test(
    kernel: Kernel,
    setting: Setting,
    replicates: int = 1000,
    iterations: int = 20,
    seed: int = 2,
    model: Any = None,
    temperature: float | None = None,
) -> float:
    """p-value of a joint (Geweke) test: θ ~ prior, rows ~ p(·|θ)^T, then the kernel moves θ.

    The pair must keep its law: φ(θ) that of the prior, the rows that of the likelihood around φ(θ),
    both independent of each other. Every replicate is independent, so the p-value is exact. `model`
    and `temperature` are what the kernel is told; they default to the truth.
    """
    truth, told = setting.model, model or setting.model
    hot = truth._replace(variance=truth.variance / setting.temperature)  # p(x|θ)^T is normal again
    generator = np.random.default_rng(seed)
    d = truth.dimension
    phi = np.sqrt(truth.prior_variance) * generator.standard_normal((replicates, d))
    start = phi.copy()
    start[:, 1] -= truth.a * (start[:, 0] - truth.m) ** 2 + truth.b
    end, centred, square = np.empty((3, replicates, d))
    for r in range(replicates):
        rows = hot.simulate(generator, start[r], setting.n)
        assumed = Setting(told, rows, setting.temperature if temperature is None else temperature)
        given = numbers(kernel.algorithm, generator, 1, iterations, d, setting.along_axes)
        record = run(kernel, kernel.door_of(assumed), start[r : r + 1], given)
        assert not (kernel.algorithm.batch_size and record.ratio_clipped.any()), "rows were clipped"
        end[r] = record.theta[0, -1]
        after = bent(truth, end[r : r + 1])[0]
        centred[r] = (rows - after).mean(axis=0) * np.sqrt(setting.n / hot.variance)
        square[r] = ((rows - after) ** 2 / hot.variance).sum(axis=0)
    prior = bent(truth, end) / np.sqrt(truth.prior_variance)
    mixed = (prior + centred) / np.sqrt(2.0)  # independent standard normals, if all is right
    parts = [normal_uniforms(prior), ndtr(centred), ndtr(mixed), stats.chi2.cdf(square, setting.n)]
    return smallest_p(np.column_stack(parts))


# --- releases ------------------------------------------------------------------------------------


class SpyEvaluator:
    """Remembers what was asked about the rows."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.ratios: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self.gradients: list[float] = []

    def ratio_sums(self, model: Any, theta: Any, proposal: Any, bound: Any, sums: Any, counts: Any) -> None:
        self.ratios.append((theta.copy(), proposal.copy(), bound.copy()))
        self._inner.ratio_sums(model, theta, proposal, bound, sums, counts)

    def gradient_sums(self, model: Any, theta: Any, bound: Any, sums: Any, counts: Any) -> None:
        self.gradients.append(float(bound))
        self._inner.gradient_sums(model, theta, bound, sums, counts)


class SpyBatches:
    """Remembers what was asked about batches, and the variances."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.asked: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []

    def batch_sums(
        self,
        model: Any,
        theta: Any,
        proposal: Any,
        bound: Any,
        words: Any,
        i: int,
        sums: Any,
        squares: Any,
        counts: Any,
    ) -> None:
        self._inner.batch_sums(model, theta, proposal, bound, words, i, sums, squares, counts)
        self.asked.append((theta.copy(), proposal.copy(), bound.copy(), words[:, i].copy(), squares.copy()))


class SpyNoise:
    """Remembers which noise was asked for."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.ratios: list[tuple[int, int, float]] = []
        self.gradients: list[tuple[int, int, int, float]] = []

    def corrected(self, c: int, i: int, sd: float) -> float:
        self.ratios.append((c, i, float(sd)))
        return float(self._inner.corrected(c, i, sd))

    def centred(self, c: int, i: int, sd: float) -> float:
        self.ratios.append((c, i, float(sd)))
        return float(self._inner.centred(c, i, sd))

    def vector(self, c: int, i: int, stage: int, sd: float, out: np.ndarray) -> None:
        self.gradients.append((c, i, stage, float(sd)))
        self._inner.vector(c, i, stage, sd, out)


def declared(algorithm: Any, n: int, name: str, first: bool) -> tuple[int, float | None]:
    """Releases of this name that an iteration declares, and their multiplier (None: exact)."""
    once, each = algorithm.releases(n)
    events = [e for e in (once if first else ()) + tuple(each) if e.name == name]
    multipliers = {e.noise_multiplier if isinstance(e, GaussianRelease) else None for e in events}
    assert len(multipliers) <= 1, f"several multipliers for {name}"
    return sum(e.count for e in events), multipliers.pop() if multipliers else None


def release_faults(kernel: Kernel, chains: int = 2, m: int = 4) -> list[str]:
    """What the kernel's performed releases have different from its declared ones; empty if nothing.

    The plain-Python text runs with spies as evaluator and noise source. Every question about the
    rows must be declared, bounded by clip‖θ − θ'‖₂ (or the gradient's clip), and answered with
    fresh noise of sd T · multiplier · 2 · bound.
    """
    if kernel.algorithm.batch_size:
        return batch_release_faults(kernel, chains, m)
    algorithm, setting = kernel.algorithm, kernel.setting
    generator = np.random.default_rng(23)
    start = setting.posterior.draws(generator, chains)
    given = numbers(algorithm, generator, chains, m, start.shape[1])
    noise = SpyNoise(kernel.noise(given.ratio_normals, given.gradient_normals))
    evaluator = SpyEvaluator(sampling.build_evaluator(algorithm, setting))
    door = kernel.door_of(setting, evaluator)
    state, record = State(start.copy(), given.extra.copy()), Record.empty(chains, m, start.shape[1])
    clip_ratio = getattr(algorithm, "clip_l", getattr(algorithm, "clip", None))
    faults: list[str] = []

    def compare(what: str, found: Any, wanted: Any) -> None:
        if not np.allclose(found, wanted, rtol=1e-12, atol=0.0):
            faults.append(f"iteration {i}: {what}: {found}, declared {wanted}")

    for i in range(m):
        for log in (evaluator.ratios, evaluator.gradients, noise.ratios, noise.gradients):
            log.clear()
        algorithm.iterate(door, noise, given.draws, i, state, record)
        ratios, ratio_multiplier = declared(algorithm, setting.n, "log-ratio", i == 0)
        gradients, gradient_multiplier = declared(algorithm, setting.n, "gradient", i == 0)
        compare("log ratios asked", len(evaluator.ratios), ratios)
        compare("gradients asked", len(evaluator.gradients), gradients)
        for bound in evaluator.gradients:
            compare("gradient bound", bound, algorithm.clip_g)
        sds = []
        for theta, proposal, bound in evaluator.ratios:
            distance = np.sqrt(((theta - proposal) ** 2).sum(axis=1))
            if getattr(algorithm, "as_coded", False):
                distance = np.abs((theta - proposal).sum(axis=1))
            wanted = clip_ratio * distance if np.isfinite(clip_ratio) else np.full(chains, np.inf)
            compare("log-ratio bound", bound, wanted)
            if ratio_multiplier is not None:
                sds.append(setting.temperature * ratio_multiplier * 2.0 * wanted)
        for c in range(chains):
            found = [sd for chain, _, sd in noise.ratios if chain == c]
            compare("log ratios with noise", len(found), ratios if ratio_multiplier else 0)
            for sd, wanted in zip(found, sds, strict=False):
                compare("sd of a log ratio", sd, wanted[c])
            vectors = [sd for chain, _, _, sd in noise.gradients if chain == c]
            compare("gradients with noise", len(vectors), gradients if gradient_multiplier else 0)
            for sd in vectors:
                compare(
                    "sd of a gradient",
                    sd,
                    setting.temperature * gradient_multiplier * 2.0 * algorithm.clip_g,
                )
        places = [entry[:-1] for entry in noise.ratios + noise.gradients]
        if len(set(places)) < len(places) or any(place[1] != i for place in places):
            faults.append(f"iteration {i}: noise used more than once")
    return faults


def batch_release_faults(kernel: Kernel, chains: int = 2, m: int = 4) -> list[str]:
    """As `release_faults`, for kernels that look at batches.

    One release an iteration: a batch of the declared size, by that iteration's own words; rows bounded by
    c = clip‖θ − θ'‖₂ with noise sd multiplier · (2nTc/b + factor (1 − 1/b)(nTc/b)²), or, for Barker's
    test, by clip_factor √b/(nT) with noise variance 2 less the batch's.
    """
    algorithm, setting = kernel.algorithm, kernel.setting
    generator = np.random.default_rng(23)
    start = setting.posterior.draws(generator, chains)
    given = numbers(algorithm, generator, chains, m, start.shape[1], setting.along_axes)
    noise = SpyNoise(kernel.noise(given.ratio_normals, given.gradient_normals))
    evaluator = SpyBatches(kernel.evaluator_of(setting))
    door = kernel.door_of(setting, evaluator)
    state, record = State(start.copy(), given.extra.copy()), Record.empty(chains, m, start.shape[1])
    once, each = algorithm.releases(setting.n)
    kind = BarkerRelease if is_barker(kernel) else SubsampledGaussianRelease
    wanted = (kind, algorithm.batch_size, setting.n, 1, "substitute")
    declared_now = [(type(e), e.batch_size, e.n, e.count, e.neighbours) for e in each]
    faults = [] if (once, declared_now) == ((), [wanted]) else [f"declared {once}, {each}"]

    def compare(what: str, found: Any, wanted: Any) -> None:
        if np.shape(found) != np.shape(wanted) or not np.allclose(found, wanted, rtol=1e-12, atol=0.0):
            faults.append(f"iteration {i}: {what}: {found}, declared {wanted}")

    b = float(algorithm.batch_size)
    scale = setting.temperature * setting.n / b
    for i in range(m):
        evaluator.asked.clear()
        noise.ratios.clear()
        algorithm.iterate(door, noise, given.draws, i, state, record)
        compare("batches asked", len(evaluator.asked), 1)
        for theta, proposal, bound, words, squares in evaluator.asked:
            compare("words", words, given.draws.words[:, i])
            if is_barker(kernel):
                c = np.full(chains, algorithm.clip_factor / (scale * np.sqrt(b)))
                sds = np.sqrt(2.0 - scale**2 * squares)
            else:
                c = algorithm.clip * np.sqrt(((theta - proposal) ** 2).sum(axis=1))
                variance_part = algorithm.variance_factor * (1.0 - 1.0 / b) * (scale * c) ** 2
                sds = each[0].noise_multiplier * (2.0 * scale * c + variance_part)
            compare("bound of a row", bound, c)
            compare("sd", [sd for _, _, sd in sorted(noise.ratios)], sds)
        if [(c, at) for c, at, _ in sorted(noise.ratios)] != [(c, i) for c in range(chains)]:
            faults.append(f"iteration {i}: noise of {noise.ratios}")
    return faults


def attained_batch_multiplier(kernel: Kernel) -> tuple[float, float]:
    """Noise multiplier found from outside, and the declared one, of a minibatch penalty release.

    In the worst batch all rows are clipped, to the same side, and one of them moves to the other side: the
    larger of the two changes is the sensitivity attained, joint for sum and variance.
    """
    algorithm, setting = kernel.algorithm, kernel.setting
    generator = np.random.default_rng(24)
    start = setting.posterior.draws(generator, 1)
    given = numbers(algorithm, generator, 1, 1, start.shape[1])
    given.draws.words[:] = 0  # the batch's first row is row 0; drawn anew, it would be all of them

    def answer(side: float, changed: bool, z: float) -> float:
        rows = np.full(setting.rows.shape, side * 1e9)
        if changed:
            rows[0] *= -1.0
        probe = probes(1)
        numbers_now = replace(
            given, draws=given.draws._replace(log_u=probe), ratio_normals=np.full((1, 1), z)
        )
        run(kernel, kernel.door_of(replace(setting, rows=rows)), start, numbers_now)
        return float(probe[0, 0].compared)

    change = max(abs(answer(side, True, 0.0) - answer(side, False, 0.0)) for side in (1.0, -1.0))
    sd = 0.5 * (answer(1.0, False, 1.0) - answer(1.0, False, -1.0))
    return sd / change, algorithm.releases(setting.n)[1][0].noise_multiplier


def attained_multipliers(kernel: Kernel) -> dict[str, tuple[float, float]]:
    """Noise multiplier found from outside, and the declared one, for each release of one iteration.

    Two data sets differ in one row, which is as extreme as a row can be and lies on opposite sides.
    The change of the noiseless answer is the sensitivity attained; the change of the answer from
    noise z = −1 to z = 1 is twice the sd.
    """
    if kernel.algorithm.batch_size:
        return {"batch log-ratio": attained_batch_multiplier(kernel)}
    algorithm, setting = kernel.algorithm, kernel.setting
    generator = np.random.default_rng(24)
    start = setting.posterior.draws(generator, 1)
    given = numbers(algorithm, generator, 1, 1, start.shape[1])

    def answers(side: float, z: float) -> tuple[float, np.ndarray]:
        rows = setting.rows.copy()
        rows[0] = side * 1e9
        door = SpyDoor(kernel.door_of(Setting(setting.model, rows, setting.temperature)))
        gradient_normals = np.zeros_like(given.gradient_normals)
        gradient_normals[:, :, :1, 0] = z
        probe = probes(1)
        numbers_now = replace(
            given,
            draws=given.draws._replace(log_u=probe),
            ratio_normals=np.full((1, 1), z),
            gradient_normals=gradient_normals,
        )
        run(kernel, door, start, numbers_now)
        first = door.gradients[0][1][0] if door.gradients else np.zeros(start.shape[1])
        return probe[0, 0].compared, first

    found = {}
    (low, low_gradient), (high, high_gradient) = answers(1.0, 0.0), answers(-1.0, 0.0)
    (minus, minus_gradient), (plus, plus_gradient) = answers(1.0, -1.0), answers(1.0, 1.0)
    _, ratio_multiplier = declared(algorithm, setting.n, "log-ratio", True)
    count, gradient_multiplier = declared(algorithm, setting.n, "gradient", True)
    if ratio_multiplier is not None and not count:
        # where gradients come first, a changed row changes the proposal too, and nothing is seen
        found["log-ratio"] = (0.5 * abs(plus - minus) / abs(high - low), ratio_multiplier)
    if gradient_multiplier is not None:
        change = np.sqrt(((high_gradient - low_gradient) ** 2).sum())
        sd = 0.5 * np.abs(plus_gradient - minus_gradient).max()
        found["gradient"] = (sd / change, gradient_multiplier)
    return found
