"""Interfaces of models, algorithms and mechanisms.

Arrays have a leading axis of chains. Everything is ordinary NumPy, and functions return their results. The
arithmetic of a chain must not depend on the other chains: it is elementwise or reduces the last axis.

    study -> data -> budget -> sampling -> evaluation -> figures

The loop (`sampling`) reserves an algorithm's declared queries in a ledger, draws random numbers beforehand
and calls `step`. `step` computes with the model's public formulas and gets everything that depends on the
rows from `PrivateData` (`privacy/mechanisms.py`). Mechanisms get clipped sums from an `Evaluator`
(`evaluators/generic.py`), and noise from a noise source (`privacy/noise.py`). Events and accountants are in
`privacy/events.py` and `privacy/accountants/base.py`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

Array = np.ndarray
Generators = Sequence[np.random.Generator]  #: one for each chain
FREE_DRAWS = 1000  #: of each chain, by default, where iterations ask nothing
DIFFERENCE_STEP = 1e-4  #: of finite differences, for parameters up to 1
Values = dict[str, Any]  #: hyperparameters by name, as given


class Model(Protocol):
    """A likelihood and a prior; `dimension` and `log_likelihood` are enough (docs/how-to/own-model.md)."""

    @property
    def dimension(self) -> int:
        """Return the number of parameters d."""

    def log_likelihood(self, theta: Array, rows: Array) -> Array:
        """Return ln p(x_j|θ) of each row (n,) at one θ (d,), up to a constant."""

    def log_prior(self, theta: Array) -> Array:
        """Return ln p(θ) up to a constant; θ is (..., d), the result (...)."""

    def log_prior_gradient(self, theta: Array) -> Array:
        """Return ∇ ln p(θ) in θ's shape (..., d)."""


class GradientModel(Model, Protocol):
    """A model for algorithms with gradients; not needed if there is a `gradient_form`."""

    def log_likelihood_gradient(self, theta: Array, rows: Array) -> Array:
        """Return ∇ ln p(x_j|θ), (n, d)."""


class SimulatingModel(Model, Protocol):
    """A model that draws its own rows."""

    def simulate(self, generator: np.random.Generator, theta: Array, n: int) -> Array:
        """Draw n rows (n, columns) at parameter θ (d,)."""


class Posterior(Protocol):
    """The exact posterior of a model, with which chains are compared; `posterior(rows, T)` returns it."""

    def draws(self, generator: np.random.Generator, size: int) -> Array:
        """Return exact draws (size, d)."""

    def at(self, normal: Array, uniform: Array) -> Array:
        """Return draws (m, d) made of standard normal numbers (m, d) and uniform ones (m, 2)."""

    def mean(self) -> Array:
        """Return E θ (d,)."""

    def covariance(self) -> Array:
        """Return Cov θ (d, d)."""


class AffineModel(Model, Protocol):
    """A model whose log ratios and gradients are affine in statistics t(x), which fast kernels use."""

    def statistics(self, rows: Array) -> Array:
        """Return t(x_j) of each row, (n, k)."""

    def ratio_form(self, theta: Array, proposal: Array) -> tuple[Array, Array]:
        """Return α (chains, k), γ (chains,) of ln p(x|θ') − ln p(x|θ) = α·t(x) + γ."""

    def gradient_form(self, theta: Array) -> tuple[Array, Array]:
        """Return G (chains, d, k), h (chains, d) of ∇ ln p(x|θ) = G t(x) + h."""


class SoftplusModel(Model, Protocol):
    """A model with ln p(x|θ) = α·t(x) + γ + s softplus(β·t(x) + η) up to a term of x alone, s = ±1."""

    @property
    def sign(self) -> float:
        """Return s."""

    def statistics(self, rows: Array) -> Array:
        """Return t(x_j) of each row, (n, k)."""

    def line(self, theta: Array) -> tuple[Array, Array]:
        """Return α (chains, k) and γ (chains,)."""

    def link(self, theta: Array) -> tuple[Array, Array]:
        """Return β (chains, k) and η (chains,)."""

    def sigmoid_form(self, theta: Array) -> tuple[Array, Array]:
        """Return G (chains, d, m), h (chains, d) of ∇ ln p(x|θ) = G u + h.

        u are the first m of the 2k + 1 terms w t, w and t, w = s/(1 + e^−(β·t + η)).
        """


class NoisySum(NamedTuple):
    """A noisy sum over the rows, and what is public about it."""

    total: Array  # (k,)
    n: int  # number of rows
    noise_sd: float  # of each component; 0: the noise is ignored
    temperature: float  # T: the sum is as variable as that of nT rows would make its mean

    @property
    def rows_worth(self) -> float:
        """Return of how many rows the mean is as variable, if summaries have variance 1: nT/(1 + Tσ²/n)."""
        return self.n * self.temperature / (1.0 + self.temperature * self.noise_sd**2 / self.n)


class SummaryModel(Model, Protocol):
    """A model with the posterior given a noisy sum over its rows, for `noisy-statistics`."""

    @property
    def summary_count(self) -> int:
        """Return the number k of summaries of a row."""

    def summaries(self, rows: Array) -> Array:
        """Return the summaries of each row (n, k), in units such that one clip bound suits the vector."""

    def posterior_given(self, noisy: NoisySum) -> Posterior:
        """Return the posterior given the noisy sum, noise and rows integrated, prior included."""


class Question(Protocol):
    """What one noisy answer asks of every row (`privacy/questions.py`)."""

    @property
    def size(self) -> int:
        """Return the number N of numbers of the answer."""

    @property
    def sensitivity(self) -> float:
        """Return the largest change of the sum if one row is replaced, in units of its noise."""

    def of_rows(self, rows: Array) -> Array:
        """Return each row's numbers (n, N), in units of their noise."""

    def total(self, rows: Array) -> Array:
        """Return their sum (N,), which may be computed in another way."""


class FastRule(NamedTuple):
    """The public constants that determine the test of an iteration and its noise."""

    epsilon: float  # ε of one iteration; ∞: no noise
    delta: float  # δ of one iteration
    batch_mean: float  # λ
    most_rows: int  # K: with K rows or more the test is on all rows; 0: always
    clip: float  # of every row, nats per unit distance, untempered; ∞: each row has its own bound
    branch_on_mean: bool = True  # minibatch if λ + CM < K; else if the number drawn is less than K
    barker: bool = False  # Barker's acceptance if no noise is drawn
    as_coded: bool = False  # noise uniform on [0, sd), drawn also if the sensitivity equals its limit
    inverted: bool = False  # sensitivity 2 ln(1 + 1/(λCM)) on a minibatch, as in one published script


class PrivateData(Protocol):
    """The mechanisms on the private rows, all that a sampler learns: see `privacy/mechanisms.py`."""

    n: int  # number of rows, public
    temperature: float  # T, public

    @property
    def runs(self) -> int: ...
    def answers(self, questions: Sequence[Question]) -> Array: ...
    def noisy_sums(self, question: Question, sd: float) -> Array: ...
    def least_eigenvalues(self, question: Any) -> Array: ...
    def perturbed_optima(self, objective: Any) -> Array: ...
    def penalty_log_ratio(self, theta: Array, proposal: Array, clip: float, tau: float) -> Array: ...
    def exact_log_ratio(
        self, theta: Array, proposal: Array, clip: float, as_coded: bool = False
    ) -> Array: ...
    def batch_penalty_log_ratio(
        self, theta: Array, proposal: Array, clip: float, multiplier: float, variance_factor: float
    ) -> Array: ...
    def barker_log_ratio(self, theta: Array, proposal: Array, clip_factor: float) -> Array: ...
    def gradient(self, theta: Array, clip: float, tau: float, stage: int) -> Array: ...
    def exact_gradient(self, theta: Array, clip: float) -> Array: ...
    def batch_gradient(self, theta: Array, clip: float, multiplier: float) -> Array: ...
    def fast_test(
        self, theta: Array, proposal: Array, prior_ratio: Array, rule: FastRule, log_uniform: Array
    ) -> Array: ...


class State(NamedTuple):
    """Positions of chains after an iteration, and the outcome of its proposals."""

    theta: Array  # (chains, d)
    carried: Array  # (chains, e) what else an algorithm carries from one iteration to the next
    accepted: Array  # (chains,) bool
    diverging: Array  # (chains,) bool: the proposal had diverged (`has_diverged`)


class Draws(NamedTuple):
    """Random numbers of one iteration, without those of mechanisms: noise, and the choice of rows."""

    normal: Array  # (chains, `Needs.normals`)
    uniform: Array  # (chains, `Needs.uniforms`)
    log_uniform: Array  # (chains,) ln u of the acceptance test


@dataclass(frozen=True)
class Needs:
    """Random numbers and evaluations of one iteration of one chain; fixed, so that streams never shift."""

    normals: int = 0
    uniforms: int = 0
    words: int = 0  # random 64-bit words, with which rows are drawn
    ratios: int = 1  # log ratios evaluated; 0: there is no acceptance test
    gradients: int = 0  # gradients evaluated
    noise_vectors: int = 0  # drawn for gradients, used or not
    halton: bool = False  # uniforms are points of a scrambled Halton sequence


class Queries(NamedTuple):
    """The `Query` events that an algorithm declares, by how often they happen."""

    run: tuple[Any, ...] = ()  # once in a run, whose chains share the answer
    chain: tuple[Any, ...] = ()  # once in each chain, before its first iteration
    each: tuple[Any, ...] = ()  # in each iteration of each chain


@dataclass(frozen=True, kw_only=True)
class Algorithm(ABC):
    """A sampler: a frozen dataclass of hyperparameters (`algorithms/hyperparameters.py`), one per file.

    The defaults are those of an algorithm that uses all rows and carries nothing between iterations.
    """

    draws_version = 1  # raised whenever a change alters the draws, so that finished chains are made anew
    batch_size = 0  # rows used by an iteration; 0: all, or a random number of them
    uses_gradients = False  # of rows, in its iterations or its questions
    explanation = ""  # a sentence for the captions of figures that show it

    #: Whether `calibrate` is for the (ε, δ) of a whole run, or of one iteration.
    calibrates_run = calibrates_iteration = False
    #: Hyperparameters that only `calibrate` reads, declared as those of the algorithm.
    calibration: ClassVar[dict[str, Field[Any]]] = {}

    first_iterations = 0  # that the noise of a search's first setting allows; 0: there is no first setting
    clips_by_batch = False  # the clip bound follows from the batch: a search has no rule on clipping
    #: Of a method that asks once, whose answers are data (`algorithms/answers.py`): names of its queries, and
    #: arrays of an answer by name, each with its dimensions. None for chains.
    asks: ClassVar[frozenset[str]] = frozenset()
    arrays: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    default_iterations = 0  # where iterations ask nothing; 0: their number has to be given
    is_for_comparison = False  # what a person would pick instead: no release has it, `dpmc.plan` not either
    is_point = False  # of one estimate, the mean of a run's second half: its spread is no uncertainty

    @classmethod
    def calibrate(cls, values: Values, epsilon: float, delta: float, n: int, per_person: int = 1) -> Values:
        """Return hyperparameters with those that a person's (ε, δ) decides; by default none does."""
        return values

    @property
    def note(self) -> str:
        """Return a remark to show with the output; "" for the default variant."""
        return ""

    @property
    def public_clip(self) -> float | None:
        """Return the clip bound of rows drawn with replacement, nats per distance; ∞: a row's own."""
        return None

    def largest_scale(self, ratio: float) -> float:
        """Return the largest scale of a test's own noise, in units: `ratio` a clip bound; 0: none."""
        return 0.0

    def check(self, model: Model, n: int, temperature: float = 1.0) -> None:
        """Raise DpmcError for a model that the algorithm cannot sample, on n rows tempered by T."""
        return

    @abstractmethod
    def needs(self, dimension: int) -> Needs:
        """Return what one iteration consumes in d dimensions."""

    @abstractmethod
    def queries(self, n: int) -> Queries:
        """Return what is asked about n rows, in a run, before a chain, and in an iteration."""

    def prepare(self, theta: Array, model: Model, private: PrivateData, generators: Generators) -> Array:
        """Return what chains carry into their first iteration, (chains, e); by default nothing, (chains, 0).

        `theta` are the start points (chains, d). Queries that are not of an iteration are made here.
        `generators` are for random numbers other than privacy noise.
        """
        return np.zeros((len(theta), 0))

    def group(self, carried: Array, model: Model) -> dict[str, tuple[tuple[str, ...], Array]]:
        """Return the arrays of an answer by name, with dimensions, from what a chain carries (e,)."""
        return {}

    def asked(self, answered: Mapping[str, Array], model: Model, n: int) -> Mapping[str, Array]:
        """Return an answer with what the method asks, if these are the answers: of a release it is equal."""
        return answered

    def remarks(self, answered: Mapping[str, Array], model: Model, n: int) -> list[str]:
        """Return what a reader of an answer has to know, from answers and public numbers alone."""
        return []

    @abstractmethod
    def step(self, state: State, model: Model, private: PrivateData, draws: Draws) -> State:
        """Make one iteration of every chain."""


#: A parameter beyond this has diverged. The rule depends on θ alone, so a rejection by it reveals nothing
#: about the rows. Below the limit the squares and products of the models stay finite.
DIVERGED = 1e30


def has_diverged(theta: Array) -> Array:
    """Return whether positions (..., d) are not finite or beyond `DIVERGED`, (...); public."""
    # Not `>=`, so that NaN counts as diverged.
    return ~(np.abs(theta) < DIVERGED).all(axis=-1)
