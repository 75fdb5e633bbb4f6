"""The test ladder: checks that any kernel of the library must pass and any faulty one must fail.

A `Kernel` is an algorithm with the small problem on which it is checked. A `Fault` replaces a piece of a
module's code (`sown`); the kernel then goes through the very same checks. Each check returns a number (an
error, a p-value) or a list of complaints and leaves the verdict to the caller; the limits used throughout
are below. To add an algorithm, add it to `KERNELS` and to `cells.HYPERPARAMETERS` (and, if it neither walks
nor leaps, extend `reversed_move` by the reverse of its move).

Kernels that look at batches keep the posterior only as far as a batch's sum is normal and its estimated
variance the right one. Their settings make that good: n = b², for which the estimate is unbiased (a batch
without replacement has 1 − b/n of the variance, the divisor b takes (b − 1)/b of it), b ≥ 50, batch noise
of the log ratio of variance about 1. What is left is below the checks' resolution, which is stated there.
"""

import ast
import builtins
import importlib
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_ndtr, ndtr, ndtri

from dpmc import evaluators
from dpmc.base import Algorithm, Draws, State
from dpmc.evaluators import kernels, poisson
from dpmc.evaluators.generic import Evaluator
from dpmc.privacy import mechanisms, noise
from dpmc.sampling.loop import iterate
from kernels import cells
from kernels.cells import read
from kernels.problems import (
    BATCHED,
    CORNERS,
    LARGE,
    RING,
    SLANTED,
    SMALL,
    WEAK,
    WEAK_BATCHED,
    Setting,
    bent,
    normal_uniforms,
)

#: A right kernel stays below the errors and above the p-value; a fault must be below FAULT_P.
IMBALANCE = 1e-3
RETURN_ERROR = 1e-10
VOLUME_ERROR = 1e-6
P_VALUE = 1e-4
FAULT_P = 1e-8
ROUND = 20  #: iterations whose random numbers are held at a time


# --- kernels and their faults --------------------------------------------------------------------


@dataclass(frozen=True)
class Kernel:
    """An algorithm with its hyperparameters, and a small problem for it."""

    algorithm: Any
    setting: Setting = field(default=SMALL, repr=False)

    @property
    def is_barker(self) -> bool:
        return hasattr(self.algorithm, "clip_factor")

    def but(self, **changes: Any) -> "Kernel":
        """The same with other hyperparameters."""
        return replace(self, algorithm=replace(self.algorithm, **changes))

    def anew(self) -> "Kernel":
        """Return the same hyperparameters in the present class, which may have a sown fault."""
        kind = type(self.algorithm)
        now = getattr(sys.modules[kind.__module__], kind.__name__)
        values = {f.name: getattr(self.algorithm, f.name) for f in fields(self.algorithm) if f.init}
        return replace(self, algorithm=now(**values))


class Fault(NamedTuple):
    """A mistake: in the functions of this name, code of this shape is replaced by other code.

    A shape is Python: an expression, or statements that follow one another. Names that the module does not
    define stand for any names, single capital letters for any expressions; the replacement may use them, and
    the function's parameters.
    """

    function: str
    shape: str
    instead: str

    def sow(self, module: str, tree: ast.Module) -> None:
        """Replace all code of the shape in the tree of a module; fail if this changes nothing."""
        before, shape = ast.dump(tree), nodes_of(self.shape)
        known = {*vars(importlib.import_module(module)), *dir(builtins), "self"}
        functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == self.function]
        for function in functions:
            usable = known | {
                argument.arg for argument in ast.walk(function.args) if hasattr(argument, "arg")
            }
            for inside in list(ast.walk(function)):
                for name, value in ast.iter_fields(inside):
                    nodes = value if isinstance(value, list) else [value]
                    for i in range(len(nodes)):
                        if (found := matched(shape, nodes[i : i + len(shape)], known, {})) is not None:
                            nodes[i : i + len(shape)] = self._written(found, usable)
                    setattr(inside, name, nodes if isinstance(value, list) else nodes[0])
        assert ast.dump(tree) != before, f"{module}.{self.function} has nothing like {self.shape!r} any more"

    def _written(self, found: dict[str, str], usable: set[str]) -> list[ast.AST]:
        """Return the replacement, with what the shape's names stand for."""
        tree = ast.parse(self.instead)
        for name in [node for node in ast.walk(tree) if isinstance(node, ast.Name)]:
            assert name.id in found or name.id in usable, f"{name.id} is not in {self.shape!r}"
            name.id = f"({found[name.id]})" if name.id in found else name.id
        return nodes_of(ast.unparse(tree))


def nodes_of(text: str) -> list[ast.AST]:
    """Return the node of an expression, or those of statements."""
    body = ast.parse(text).body
    return [body[0].value] if isinstance(body[0], ast.Expr) else [*body]


def matched(shape: Any, node: Any, known: set[str], found: dict[str, str]) -> dict[str, str] | None:
    """Return `found` with what the free names of a shape stand for; None if the node has another shape."""
    if isinstance(shape, ast.Name) and shape.id not in known:
        kind = ast.expr if len(shape.id) == 1 and shape.id.isupper() else ast.Name
        same = isinstance(node, kind) and found.setdefault(shape.id, ast.unparse(node)) == ast.unparse(node)
    elif type(shape) is not type(node):
        same = False
    elif isinstance(shape, list):
        parts = zip(shape, node, strict=False)
        same = len(shape) == len(node) and all(matched(*part, known, found) is not None for part in parts)
    elif isinstance(shape, ast.AST):
        fields = [[getattr(one, name) for name in shape._fields if name != "ctx"] for one in (shape, node)]
        same = matched(*fields, known, found) is not None
    else:
        same = shape == node
    return found if same else None


def tree_of(module: str) -> ast.Module:
    """Return the syntax tree of a module's text."""
    return ast.parse(Path(importlib.import_module(module).__file__ or "").read_text(encoding="utf-8"))


def mutant(module: str, *faults: Fault) -> dict[str, Any]:
    """Run a module with faults, nothing compiled; return the names that it defines."""
    tree = tree_of(module)
    for fault in faults:
        fault.sow(module, tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = [one for one in node.decorator_list if "njit" not in ast.unparse(one)]
    found = types.ModuleType(module)
    exec(compile(ast.fix_missing_locations(tree), f"<mutant of {module}>", "exec"), vars(found))
    return vars(found)


@contextmanager
def sown(module: str, *faults: Fault) -> Iterator[None]:
    """Put `mutant`'s functions and classes in the place of the module's own, wherever dpmc imported them."""
    names = mutant(module, *faults)
    own = {
        name: value
        for name, value in vars(importlib.import_module(module)).items()
        if getattr(value, "__module__", None) == module
    }
    # Samplers of other modules derive from a module's own classes: these take over the changed methods.
    methods = [
        (value, method, was)
        for value in own.values()
        if isinstance(value, type) and issubclass(value, Algorithm)
        for method, was in list(vars(value).items())
        if isinstance(was, types.FunctionType)
        and not method.startswith("__")
        and was.__code__ != vars(names[value.__name__])[method].__code__
    ]
    places = [
        (vars(where), name, value)
        for label, where in list(sys.modules.items())
        if label.split(".")[0] == "dpmc"
        for name, value in list(vars(where).items())
        if name in own and value is own[name]
    ]
    for space, name, _ in places:
        space[name] = names[name]
    for kind, method, _ in methods:
        setattr(kind, method, vars(names[kind.__name__])[method])
    try:
        yield
    finally:
        for kind, method, was in methods:
            setattr(kind, method, was)
        for space, name, value in places:
            space[name] = value


def kernel_of(algorithm: str, setting: Setting = SMALL, **values: Any) -> Kernel:
    """A kernel from hyperparameters as a file has them."""
    return Kernel(read(algorithm, values), setting)


def unclipped(method: str, setting: Setting = LARGE, **changes: Any) -> Kernel:
    """The sampler of a cell, with clip bounds out of reach."""
    return kernel_of(method.split()[0], setting, **{**cells.unclipped(method), **changes})


WALK = {"proposal_sd": [0.9, 0.7]}
LEAP = {"steps": 3, "mass": [2.5, 0.4]}
#: Clip bounds are out of reach, so the posterior is invariant; τ is such that noise of a log ratio has an sd
#: near 1, and that of a gradient is felt.
NOISE = {"tau_l": 0.004, "tau_g": 0.001, "clip_l": 100.0, "clip_g": 400.0}
MINIBATCH = {"tau": 0.01, "batch_size": 50, "clip": 10.0}
KERNELS: dict[str, Kernel] = {
    "rwmh": kernel_of("rwmh", **WALK),
    "hmc": kernel_of("hmc", step_size=[0.85, 0.33], **LEAP),
    "dp-penalty": kernel_of("dp-penalty", tau=0.004, clip=100.0, **WALK),
    "dp-penalty-guided": kernel_of("dp-penalty-guided", tau=0.004, clip=100.0, proposal_sd=[1.1, 0.9]),
    "dp-hmc": kernel_of("dp-hmc", **NOISE, step_size=[0.55, 0.23], **LEAP),
    "dp-mala": kernel_of("dp-mala", **NOISE, step_size=[0.9, 0.4], mass=[2.5, 0.4]),
    "minibatch-penalty": kernel_of("minibatch-penalty", BATCHED, **MINIBATCH, proposal_sd=[0.12, 0.06]),
    "minibatch-penalty-guided": kernel_of(
        "minibatch-penalty-guided", BATCHED, **MINIBATCH, proposal_sd=[0.18, 0.1], sensitivity="tight"
    ),
    "dp-barker": kernel_of("dp-barker", CORNERS, batch_size=100, clip_factor=0.99, proposal_sd=0.07),
}
BATCHES = tuple(name for name, kernel in KERNELS.items() if kernel.algorithm.batch_size)
REUSING = {
    f"{name} reusing gradients": KERNELS[name].but(reuse_gradients=True) for name in ("dp-hmc", "dp-mala")
}
JITTERED = {
    f"{name} jittered": unclipped(name, step_size=[0.3, 0.14], jitter="halton") for name in ("hmc", "dp-hmc")
} | {"hmc jittered a little": unclipped("hmc", step_size=[0.2, 0.09], jitter=(0.8, 1.2))}
#: Gradients are clipped, all to one length, and their noise decides which proposals are accepted: the chain's
#: distribution is wrong if a rejection draws the gradient anew.
STICKY = kernel_of(
    "dp-mala",
    tau_l=0.001,
    tau_g=8.0,
    clip_l=100.0,
    clip_g=0.3,
    reuse_gradients=True,
    step_size=[0.37, 0.27],
    mass=1.0,
)
#: For the test of stationarity.
STATIONARY: dict[str, Kernel] = {
    **{name: unclipped(name) for name in (*KERNELS, *REUSING) if name not in BATCHES},
    **JITTERED,
    "dp-mala reusing gradients": STICKY,
    "dp-penalty-guided on the circle": unclipped("dp-penalty-guided", RING, proposal_sd=0.8),
    "dp-penalty-guided on a slanted Gaussian": unclipped(
        "dp-penalty-guided", SLANTED, proposal_sd=[0.6, 0.4]
    ),
    "dp-hmc on the circle": unclipped("dp-hmc", RING, step_size=0.1),
    **{name: KERNELS[name] for name in BATCHES},
}
#: For the joint test: data and prior weigh about the same. Rows drawn by the tempered likelihood make
#: batch noise of variance n/b k², k the step in sds of the likelihood alone: steps are short, runs long.
JOINT_BATCH = {"tau": 0.0005, "batch_size": 30, "clip": 10.0}
JOINT: dict[str, Kernel] = {
    **{name: replace(kernel, setting=WEAK) for name, kernel in {**KERNELS, **REUSING}.items()},
    "minibatch-penalty": kernel_of(
        "minibatch-penalty", WEAK_BATCHED, **JOINT_BATCH, proposal_sd=[0.008, 0.004]
    ),
    "minibatch-penalty-guided": kernel_of(
        "minibatch-penalty-guided", WEAK_BATCHED, **JOINT_BATCH, proposal_sd=[0.012, 0.006]
    ),
    "dp-barker": kernel_of(
        "dp-barker",
        replace(WEAK_BATCHED, along_axes=True),
        batch_size=300,
        clip_factor=1.0,
        proposal_sd=[0.0042, 0.0021],
    ),
}


def joint_cases(*names: str) -> list[Any]:
    """Return the names of kernels in `JOINT`; the one with the largest batches is slow."""
    return [pytest.param(n, marks=pytest.mark.slow) if n == "dp-barker" else n for n in names]


# --- running -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Numbers:
    """All random numbers of m iterations of some chains."""

    normal: np.ndarray  # (m, chains, normals)
    uniform: np.ndarray  # (m, chains, uniforms)
    log_uniform: np.ndarray  # (m, chains)
    words: np.ndarray  # (m, chains, words)
    ratio_normals: np.ndarray  # (m, chains)
    gradient_normals: np.ndarray  # (m, chains, stages, d)
    carried: np.ndarray | None  # (chains, e); None: `prepare` asks for a gradient at the start

    def repeated(self, times: int) -> "Numbers":
        """Return every chain's numbers repeated for `times` chains."""
        arrays = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "carried"}
        carried = None if self.carried is None else np.repeat(self.carried, times, axis=0)
        return Numbers(**{name: np.repeat(a, times, axis=1) for name, a in arrays.items()}, carried=carried)


def numbers(
    kernel: Kernel, generator: np.random.Generator, chains: int, m: int, setting: Setting | None = None
) -> Numbers:
    """Draw the random numbers of m iterations, and the state that the algorithm carries at the start."""
    setting = setting or kernel.setting
    d = setting.model.dimension
    needs = kernel.algorithm.needs(d)
    normal = generator.standard_normal((m, chains, needs.normals))
    carried = None
    if not getattr(kernel.algorithm, "reuse_gradients", False):
        prepare: Any = kernel.algorithm.prepare
        carried = prepare(np.zeros((chains, d)), setting.model, None, [generator] * chains)
    return Numbers(
        one_axis(normal) if setting.along_axes else normal,
        generator.random((m, chains, needs.uniforms)),
        np.log(generator.random((m, chains))),
        generator.integers(0, 2**64, (m, chains, needs.words), dtype=np.uint64),
        generator.standard_normal((m, chains)),
        generator.standard_normal((m, chains, needs.noise_vectors, d)),
        carried,
    )


def one_axis(normal: np.ndarray) -> np.ndarray:
    """Moves (…, d) of exactly 1 or −1 in the largest component, 0 in the others."""
    largest = np.abs(normal).argmax(axis=-1)[..., None]
    moves = np.zeros_like(normal)
    np.put_along_axis(moves, largest, np.sign(np.take_along_axis(normal, largest, axis=-1)), axis=-1)
    return moves


@dataclass
class History:
    """Results of m iterations of some chains."""

    theta: np.ndarray  # (m, chains, d)
    accepted: np.ndarray  # (m, chains)
    diverging: np.ndarray  # (m, chains)
    ratio_clipped: np.ndarray  # (m, chains)
    gradient_clipped: np.ndarray  # (m, chains)
    carried: np.ndarray  # (chains, e) at the end


def private_data(
    kernel: Kernel, given: Numbers, setting: Setting | None = None, evaluator: Any = None, source: Any = None
) -> Any:
    """Return the kernel's rows with the noise and the batches of `given`, as defaults."""
    setting = setting or kernel.setting
    source = source or noise.LabNoise(given.ratio_normals, given.gradient_normals)
    evaluator = evaluator or evaluators.evaluator_of(setting.model, setting.rows)
    clip, bounded = kernel.algorithm.public_clip, None
    if clip is not None:
        bounded = poisson.bounded_rows(setting.model, setting.rows, setting.temperature, clip)
    return mechanisms.PrivateData(evaluator, setting.temperature, source, given.words, bounded)


def steps(
    kernel: Kernel, start: np.ndarray, given: Numbers, model: Any, private: Any, log_uniform: Any = None
) -> Iterator[State]:
    """Run all iterations that `given` has numbers for, from `start` (chains, d); yield the state of each.

    `log_uniform` stands in for ln u of every iteration, such as a `Probe`.
    """
    never = np.zeros(len(start), bool)
    carried = given.carried
    if carried is None:
        carried = kernel.algorithm.prepare(start, model, private, ())
    state = State(start.copy(), carried.copy(), never, never)
    log_uniform = given.log_uniform if log_uniform is None else log_uniform
    draws = Draws(given.normal, given.uniform, log_uniform)
    return iterate(kernel.algorithm, model, private, state, draws)


def run(
    kernel: Kernel,
    start: np.ndarray,
    given: Numbers,
    setting: Setting | None = None,
    private: Any = None,
    log_uniform: Any = None,
) -> History:
    """Return the results of all iterations that `given` has numbers for, by default on the kernel's rows."""
    setting = setting or kernel.setting
    private = private_data(kernel, given, setting) if private is None else private
    found, state = [], None
    for state in steps(kernel, start, given, setting.model, private, log_uniform):
        counts = np.copy(private.ratio_clipped), np.copy(private.gradient_clipped)
        found.append((state.theta.copy(), state.accepted.copy(), state.diverging.copy(), *counts))
    return History(*(np.array(parts) for parts in zip(*found, strict=True)), state.carried)


class Probe:
    """Stand-in for ln u in the acceptance test: records the other side of the comparison, and accepts."""

    __array_ufunc__ = None
    compared: Any = None

    def __getitem__(self, i: int) -> "Probe":
        return self

    def __lt__(self, log_ratio: Any) -> np.ndarray:
        self.compared = np.array(log_ratio)
        return np.ones(self.compared.shape, bool)


class Spy:
    """Wrapper that forwards every call and records its name, arguments and answer."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.calls: list[tuple[str, tuple[Any, ...], Any]] = []

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.inner, name)
        if not callable(value):
            return value

        def call(*arguments: Any) -> Any:
            answer = value(*arguments)
            self.calls.append((name, tuple(np.copy(a) for a in arguments), answer))
            return answer

        return call

    def of(self, *names: str) -> list[tuple[Any, ...]]:
        """Return arguments and answer of the calls with one of these names, in order."""
        return [(*arguments, answer) for name, arguments, answer in self.calls if name in names]


# --- moves there and back ------------------------------------------------------------------------


@dataclass(frozen=True)
class Move:
    """Moves of some chains with frozen numbers, and their ends."""

    start: np.ndarray  # (chains, d)
    given: Numbers  # for one iteration
    end: np.ndarray  # (chains, d)
    momentum: np.ndarray | None  # (chains, d) at the end, for leapfrog methods
    kinetic: np.ndarray  # (chains,) ½pᵀM⁻¹p at the start minus that at the end


def move(kernel: Kernel, start: np.ndarray, given: Numbers) -> Move:
    """Propose from `start` (chains, d) with frozen numbers; a probe accepts every proposal."""
    if kernel.is_barker:  # no ln u: noise beyond any log ratio accepts
        given = replace(given, ratio_normals=np.full_like(given.ratio_normals, 1e3))
    spy = Spy(private_data(kernel, given))
    end = run(kernel, start, given, private=spy, log_uniform=Probe()).theta[0]
    gradients = spy.of("gradient", "exact_gradient")
    if not gradients:
        return Move(start, given, end, None, np.zeros(len(start)))
    mass, step = kernel.algorithm.mass, kernel.algorithm.step_size
    before, last, answer = gradients[-2][0], gradients[-1][0], gradients[-1][-1]
    first = np.sqrt(mass) * given.normal[0]
    slope = answer + kernel.setting.model.log_prior_gradient(last)
    momentum = (last - before) * mass / step + 0.5 * step * slope
    kinetic = 0.5 * ((first**2 / mass).sum(axis=1) - (momentum**2 / mass).sum(axis=1))
    return Move(start, given, end, momentum, kinetic)


def reversed_move(kernel: Kernel, made: Move) -> Numbers:
    """Return the numbers with which the same kernel proposes the reverse move."""
    given = made.given
    if made.momentum is not None:  # flip the momentum, meet the same gradient noise in reverse order
        normal = (-made.momentum / np.sqrt(kernel.algorithm.mass))[None]
        return replace(given, normal=normal, gradient_normals=given.gradient_normals[:, :, ::-1])
    if (
        given.carried is not None and given.carried.shape[1]
    ):  # the walk turns around: the same length, the other direction
        return replace(given, carried=-given.carried)
    return replace(given, normal=-given.normal)


def moves(kernel: Kernel, pairs: int, seed: int) -> Move:
    """Random moves from posterior draws."""
    generator = np.random.default_rng(seed)
    start = kernel.setting.posterior.draws(generator, pairs)
    return move(kernel, start, numbers(kernel, generator, pairs, 1))


def wanted_ratios(kernel: Kernel, made: Move) -> np.ndarray:
    """ln π(there) − ln π(here) (chains,), with the momentum's for leapfrog methods."""
    pairs = zip(made.start, made.end, strict=True)
    law = kernel.setting.log_posterior
    return np.array([law(there) - law(here) for here, there in pairs]) + made.kinetic


def imbalance(kernel: Kernel, pairs: int = 4, nodes: int = 801) -> float:
    """Largest |ln a(move) − ln a(move back) − ln(π(there)/π(here))| over random moves.

    a is the probability of acceptance: the real kernel is run once for each node z of the log
    ratio's noise, a probe reads what ln u is compared with, and min(1, e^x) is integrated over z.
    π includes the momentum for leapfrog methods, whose gradient noise is frozen.
    """
    z = np.linspace(-9.0, 9.0, nodes)
    weight = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi) * (z[1] - z[0])

    def log_acceptance(start: np.ndarray, given: Numbers) -> np.ndarray:
        many, probe = given.repeated(nodes), Probe()
        many = replace(many, ratio_normals=np.tile(z, pairs)[None])
        run(kernel, np.repeat(start, nodes, axis=0), many, log_uniform=probe)
        chance = np.exp(np.minimum(probe.compared.reshape(pairs, nodes), 0.0)) @ weight
        return np.log(np.maximum(chance, 1e-300))  # a fault may make it 0

    made = moves(kernel, pairs, 20)
    there = log_acceptance(made.start, made.given)
    back = log_acceptance(made.end, reversed_move(kernel, made))
    return float(np.abs(there - back - wanted_ratios(kernel, made)).max())


def batch_balance(kernel: Kernel, pairs: int = 4) -> float:
    """p-value that ln a(move) − ln a(move back) = ln(π(there)/π(here)), for kernels that look at batches.

    a is the probability of acceptance over batches and noise, estimated from many fresh batches each way.
    What N(m, sd²) noise makes of Metropolis' test is known: Φ(m/sd) + e^(m + sd²/2) Φ(−sd − m/sd), so the
    kernel is run with noise −1 and 1, which shows a batch's m and sd. Of Barker's test the bits are counted,
    over noise and correction as well, and moves are in the posterior's flank, where wrong noise tells. A
    pair's log ratio is seen to 1 % (Barker: 3 %, of which the correction's error is a third at most).
    """
    generator, law = np.random.default_rng(20), kernel.setting.posterior
    batches = 10_000 if kernel.is_barker else 4000

    def acceptances(start: np.ndarray, given: Numbers) -> np.ndarray:
        many, starts = given.repeated(batches), np.repeat(start, batches, axis=0)
        many = replace(many, words=generator.integers(0, 2**64, many.words.shape, dtype=np.uint64))
        if kernel.is_barker:
            normals, uniform = generator.standard_normal((1, batches)), generator.random((1, batches, 1))
            return run(kernel, starts, replace(many, ratio_normals=normals, uniform=uniform)).accepted[0]
        compared = []
        for z in (-1.0, 1.0):
            probe = Probe()
            run(kernel, starts, replace(many, ratio_normals=np.full((1, batches), z)), log_uniform=probe)
            compared.append(probe.compared)
        m, sd = 0.5 * (compared[1] + compared[0]), 0.5 * (compared[1] - compared[0])
        sd = np.maximum(sd, 1e-9)  # a fault may leave the noise out
        return ndtr(m / sd) + np.exp(m + 0.5 * sd**2 + log_ndtr(-sd - m / sd))

    total = 0.0
    starts = law.draws(generator, pairs)
    if kernel.is_barker:
        starts = law.mean() + 3.3 * np.sqrt(np.diag(law.covariance())) * np.sign(starts - law.mean())
    for start in starts:
        made = move(kernel, start[None], numbers(kernel, generator, 1, 1))
        there = acceptances(made.start, made.given)
        back = acceptances(made.end, reversed_move(kernel, made))
        found = np.log(max(there.mean(), 1e-9)) - np.log(max(back.mean(), 1e-9))
        variance = sum(a.var() / max(a.mean(), 1e-3) ** 2 / batches for a in (there, back))
        total += (found - wanted_ratios(kernel, made)[0]) ** 2 / max(variance, 1e-9)
    return float(stats.chi2.sf(total, pairs))


def return_error(kernel: Kernel) -> float:
    """Return the distance from the start after a frozen move and its reverse."""
    made = moves(kernel, 5, 21)
    undone = move(kernel, made.end, reversed_move(kernel, made))
    worst = np.abs(undone.end - made.start).max()
    if undone.momentum is not None:
        first = np.sqrt(kernel.algorithm.mass) * made.given.normal[0]
        worst = max(worst, np.abs(undone.momentum + first).max())
    return float(worst)


def volume_error(kernel: Kernel) -> float:
    """|det − 1| of a leapfrog trajectory (θ, p) → (θ', p') with frozen noise, by differences."""
    made, root, h = moves(kernel, 1, 22), np.sqrt(kernel.algorithm.mass), 1e-5
    point = np.concatenate([made.start[0], root * made.given.normal[0, 0]])
    d = len(root)
    places = point + h * np.concatenate([np.eye(2 * d), -np.eye(2 * d)])
    given = replace(made.given.repeated(4 * d), normal=(places[:, d:] / root)[None])
    found = move(kernel, places[:, :d].copy(), given)
    assert found.momentum is not None
    ends = np.concatenate([found.end, found.momentum], axis=1)
    return abs(float(np.linalg.det((ends[: 2 * d] - ends[2 * d :]) / (2.0 * h))) - 1.0)


def pace_error(kernel: Kernel) -> float:
    """Return the distance of a trajectory with jitter u from one with step size uη and no jitter.

    u = a + 0.37(b − a), 0.37 the uniform number of the iteration.
    """
    generator = np.random.default_rng(6)
    start = kernel.setting.posterior.draws(generator, 3)
    given = numbers(kernel, generator, 3, 4)
    given.uniform[:] = 0.37
    low, high = (0.0, 1.0) if kernel.algorithm.jitter == "halton" else kernel.algorithm.jitter
    pace = low + 0.37 * (high - low)
    plain = kernel.but(step_size=pace * kernel.algorithm.step_size, jitter="none")
    theirs = run(plain, start, given)
    assert theirs.accepted.any()
    return float(np.abs(run(kernel, start, given).theta - theirs.theta).max())


# --- stationarity --------------------------------------------------------------------------------


def smallest_p(uniforms: np.ndarray) -> float:
    """The worst p-value that columns (N, q) are uniform, times the number of tests (Bonferroni).

    Three tests a column: Kolmogorov–Smirnov, and mean and variance of its normal scores.
    """
    count = len(uniforms)
    scores = ndtri(np.clip(uniforms, 1e-300, 1.0 - 1e-16))
    mean = 2.0 * stats.norm.sf(np.abs(scores.sum(axis=0)) / np.sqrt(count))
    square = (scores**2).sum(axis=0)
    variance = 2.0 * np.minimum(stats.chi2.cdf(square, count), stats.chi2.sf(square, count))
    whole = [stats.kstest(column, "uniform").pvalue for column in uniforms.T]
    p = np.concatenate([mean, variance, whole])
    return min(1.0, float(p.min()) * len(p))


def invariance(kernel: Kernel, chains: int = 1000, iterations: int = 20, seed: int = 1) -> float:
    """p-value: chains started from exact posterior draws keep that law."""
    generator = np.random.default_rng(seed)
    start = kernel.setting.posterior.draws(generator, chains)
    path = run(kernel, start, numbers(kernel, generator, chains, iterations))
    assert path.ratio_clipped.sum() == 0, "rows were clipped"
    moved = (path.theta[-1] != start).any(axis=1).mean()
    assert moved > 0.5, f"only {moved:.0%} of the chains moved: this test would prove nothing"
    return smallest_p(kernel.setting.uniforms(path.theta[-1]))


class ManyDataSets(Evaluator):
    """An evaluator with a data set of its own for each chain, straight from the model's affine form."""

    def __init__(self, model: Any, rows: np.ndarray) -> None:
        chains, self.n, _ = rows.shape
        self.model = model
        table = model.statistics(rows.reshape(chains * self.n, -1))
        self.columns = [column.reshape(chains, self.n).copy() for column in table.T]

    def _clipped_ratios(self, theta: Any, proposal: Any, bound: Any, columns: Any) -> tuple[Any, Any]:
        alpha, gamma = self.model.ratio_form(theta, proposal)
        ratios = gamma[:, None] + sum(alpha[:, [q]] * column for q, column in enumerate(columns))
        kept = np.clip(ratios, -bound[:, None], bound[:, None])
        return kept, (kept != ratios).sum(axis=1)

    def ratio_sums(self, theta: Any, proposal: Any, bound: Any) -> tuple[Any, Any]:
        kept, counts = self._clipped_ratios(theta, proposal, bound, self.columns)
        return kept.sum(axis=1), counts

    def gradient_sums(self, theta: Any, bound: float) -> tuple[Any, Any]:
        linear, constant = self.model.gradient_form(theta)
        rows = np.einsum("cdk,kcn->cnd", linear, self.columns) + constant[:, None]
        norms = np.sqrt((rows**2).sum(axis=2))
        factors = bound / np.maximum(norms, bound) if np.isfinite(bound) else np.ones_like(norms)
        return (factors[..., None] * rows).sum(axis=1), (norms > bound).sum(axis=1)

    def batch_ratio_sums(self, theta: Any, proposal: Any, bound: Any, words: Any) -> tuple[Any, Any, Any]:
        chosen = kernels.draw_batches(words, self.n)
        columns = [np.take_along_axis(column, chosen, axis=1) for column in self.columns]
        kept, counts = self._clipped_ratios(theta, proposal, bound, columns)
        return kept.sum(axis=1), kept.shape[1] * kept.var(axis=1), counts


def joint_test(
    kernel: Kernel,
    replicates: int = 1000,
    iterations: int = 20,
    model: Any = None,
    temperature: float | None = None,
) -> float:
    """p-value of a joint (Geweke) test: θ ~ prior, rows ~ p(·|θ)^T, then the kernel moves θ.

    The pair must keep its law: φ(θ) that of the prior, the rows that of the likelihood around φ(θ),
    both independent of each other. Every replicate is independent, so the p-value is exact. `model`
    and `temperature` are those that the kernel uses; they default to the truth.
    """
    setting, generator = kernel.setting, np.random.default_rng(2)
    truth, n = setting.model, setting.n
    told = replace(setting, model=model or truth, temperature=temperature or setting.temperature)
    hot = replace(truth, variance=truth.variance / setting.temperature)  # p(x|θ)^T is normal again
    start = np.sqrt(truth.prior_variance) * generator.standard_normal((replicates, truth.dimension))
    start[:, 1] -= truth.a * (start[:, 0] - truth.m) ** 2 + truth.b
    rows = np.array([hot.simulate(generator, theta, n) for theta in start])
    evaluator, carried, theta = ManyDataSets(told.model, rows), None, start
    for _ in range(0, iterations, ROUND):
        given = numbers(kernel, generator, replicates, min(ROUND, iterations))
        given = given if carried is None else replace(given, carried=carried)
        path = run(kernel, theta, given, told, private_data(kernel, given, told, evaluator))
        theta, carried = path.theta[-1], path.carried
        assert not (kernel.algorithm.batch_size and path.ratio_clipped.any()), "rows were clipped"
    after = bent(truth, theta)
    rest = rows - after[:, None]
    centred = rest.mean(axis=1) * np.sqrt(n / hot.variance)
    square = (rest**2 / hot.variance).sum(axis=1)
    prior = after / np.sqrt(truth.prior_variance)
    mixed = (prior + centred) / np.sqrt(2.0)  # independent standard normals, if all is right
    parts = [normal_uniforms(prior), ndtr(centred), ndtr(mixed), stats.chi2.cdf(square, n)]
    return smallest_p(np.column_stack(parts))
