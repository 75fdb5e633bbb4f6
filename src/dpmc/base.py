"""The contracts: what a model, an algorithm, an evaluator and a noise source must offer each other.

Arrays have a leading axis of chains. Everything is ordinary NumPy; results are returned. What a chain
computes must not depend on the chains beside it: elementwise, or reduced along the last axis.

    study -> data -> budget -> sampling -> evaluation -> figures

The loop (`sampling`) reserves an algorithm's declared releases in a ledger, draws random numbers beforehand
and calls `step`. `step` computes with the model's public formulas, and asks `PrivateData`
(`privacy/mechanisms.py`) whatever it wants to know of the rows. Mechanisms ask an evaluator for clipped
sums and a noise source for noise. Events and accountants are in `privacy/events.py` and
`privacy/accountants/base.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from dpmc.privacy.mechanisms import PrivateData as PrivateData
else:
    PrivateData = Any  # kernels are slow to load, and only who samples needs them

Array = np.ndarray


class Model(Protocol):
    """A likelihood and a prior; `dimension` and `log_likelihood` are enough (docs/how-to/own-model.md)."""

    dimension: int  # d

    def log_likelihood(self, theta: Array, rows: Array) -> Array:
        """ln p(x_j|θ) of each row (n,) at one θ (d,), up to a constant."""

    def log_prior(self, theta: Array) -> Array:
        """ln p(θ) up to a constant; θ is (..., d), the result (...)."""

    def log_prior_gradient(self, theta: Array) -> Array:
        """∇ ln p(θ), in θ's shape (..., d)."""

    def log_likelihood_gradient(self, theta: Array, rows: Array) -> Array:
        """∇ ln p(x_j|θ), (n, d). Needed by algorithms with gradients, unless there is a `gradient_form`."""


class AffineModel(Model, Protocol):
    """A model whose log ratios and gradients are affine in statistics t(x): served by fast kernels."""

    def statistics(self, rows: Array) -> Array:
        """t(x_j) of each row, (n, k)."""

    def ratio_form(self, theta: Array, proposal: Array) -> tuple[Array, Array]:
        """α (chains, k), γ (chains,) of ln p(x|θ') − ln p(x|θ) = α·t(x) + γ."""

    def gradient_form(self, theta: Array) -> tuple[Array, Array]:
        """G (chains, d, k), h (chains, d) of ∇ ln p(x|θ) = G t(x) + h."""


class SoftplusModel(Model, Protocol):
    """A model with ln p(x|θ) = α·t(x) + γ + s softplus(β·t(x) + η) up to a term of x alone, s = ±1."""

    sign: float  # s

    def statistics(self, rows: Array) -> Array:
        """t(x_j) of each row, (n, k)."""

    def line(self, theta: Array) -> tuple[Array, Array]:
        """α (chains, k) and γ (chains,)."""

    def link(self, theta: Array) -> tuple[Array, Array]:
        """β (chains, k) and η (chains,)."""


class Evaluator(Protocol):
    """Clipped sums over the rows of one model; asked by mechanisms alone (`evaluators/`).

    Log ratios r_j = ln p(x_j|θ') − ln p(x_j|θ) are clipped to ±bound (chains,), gradients to Euclidean norm
    `bound`, one number. `counts` (chains,) are the rows clipped. `words` (chains, b) are 64 random bits for
    each row of a batch, which is drawn without replacement.
    """

    name: str  # for provenance
    n: int  # rows

    def ratio_sums(self, theta: Array, proposal: Array, bound: Array) -> tuple[Array, Array]:
        """Σ_j clip(r_j) (chains,) over all rows, and counts."""

    def gradient_sums(self, theta: Array, bound: float) -> tuple[Array, Array]:
        """Σ_j clip(∇ ln p(x_j|θ)) (chains, d) over all rows, and counts."""

    def batch_ratio_sums(
        self, theta: Array, proposal: Array, bound: Array, words: Array
    ) -> tuple[Array, Array, Array]:
        """Σ clip(r_j), Σ (clip(r_j) − mean)² (chains,) over a batch, and counts."""

    def batch_gradient_sums(self, theta: Array, bound: float, words: Array) -> tuple[Array, Array]:
        """Σ clip(∇ ln p(x_j|θ)) (chains, d) over a batch, and counts."""

    def row_ratios(self, theta: Array, proposal: Array, chosen: Array) -> Array:
        """r_j (b,) of one chain, θ (d,), and rows `chosen` (b,), which may repeat; not clipped."""


class NoiseSource(Protocol):
    """Noise for mechanisms, for one iteration at a time (`privacy/noise.py`)."""

    def begin(self, i: int) -> None:
        """Go to iteration i of the block."""

    def corrected(self, sd: Array) -> Array:
        """A draw (chains,) from N(−sd²/2, sd²), sd (chains,)."""

    def centred(self, sd: Array) -> Array:
        """A draw (chains,) from N(0, sd²), sd (chains,)."""

    def vectors(self, sd: float, stage: int) -> Array:
        """Draws (chains, d) from N(0, sd²) for the `stage`-th gradient of the iteration."""


class State(NamedTuple):
    """Where chains stand after an iteration, and what became of its proposal."""

    theta: Array  # (chains, d)
    carried: Array  # (chains, e) what else an algorithm carries from one iteration to the next
    accepted: Array  # (chains,) bool
    diverging: Array  # (chains,) bool: the proposal was not finite or beyond any use


class Draws(NamedTuple):
    """Random numbers of one iteration that have nothing to do with privacy."""

    normal: Array  # (chains, `Needs.normals`)
    uniform: Array  # (chains, `Needs.uniforms`)
    log_uniform: Array  # (chains,) ln u of the acceptance test


@dataclass(frozen=True)
class Needs:
    """What one iteration of one chain consumes; fixed numbers, so that streams never shift."""

    normals: int = 0
    uniforms: int = 0
    words: int = 0  # of 64 random bits, by which rows are drawn
    ratios: int = 1  # log ratios evaluated; 0: there is no acceptance test
    gradients: int = 0  # gradients evaluated
    noise_vectors: int = 0  # drawn for gradients, used or not
    carried: int = 0  # numbers carried along
    halton: bool = False  # uniforms are points of a scrambled Halton sequence


class Algorithm(Protocol):
    """A sampler: a frozen dataclass of hyperparameters (`algorithms/hyperparameters.py`), one a file."""

    draws_version: int  # raised whenever a change alters the draws, so that finished chains are made anew
    note: str  # what must be said wherever its output is shown; "" for the algorithm as it is
    batch_size: int  # rows an iteration looks at; 0: all, or a random number of them

    def needs(self, dimension: int) -> Needs:
        """What one iteration consumes in d dimensions."""

    def releases(self, n: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Events before the first iteration, and of one iteration, on n rows."""

    def first_carried(self, dimension: int, generator: np.random.Generator) -> Array:
        """What one chain carries into its first iteration (e,)."""

    def step(self, state: State, model: Model, private: PrivateData, draws: Draws) -> State:
        """One iteration of every chain."""


#: A parameter beyond this has diverged. The rule looks at θ alone, so rejecting it tells nothing of the rows,
#: and below it the squares and products of the models stay finite.
DIVERGED = 1e30


def has_diverged(theta: Array) -> Array:
    """Whether positions (..., d) are not finite or beyond any use, (...); a public property of θ."""
    diverged: Array = ~(np.abs(theta) < DIVERGED).all(axis=-1)
    return diverged
