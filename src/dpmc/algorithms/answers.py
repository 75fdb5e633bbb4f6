"""Answers: methods that ask once a run, after which their noisy answers are data.

A chain pays for each of its iterations. An answer pays for its queries alone: the posterior given what was
answered costs nothing more, for as many draws as one likes, and later for other priors (`dpmc.posterior`).
What was asked and answered is a group of the file.
"""

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dpmc.algorithms.acceptance import settle
from dpmc.algorithms.dp_penalty import exact_multiplier
from dpmc.algorithms.hyperparameters import positive
from dpmc.base import FREE_DRAWS, Algorithm, Draws, Model, Needs, Posterior, PrivateData, State, Values

Answered = Mapping[str, np.ndarray]  #: what was asked and answered, by name
ArraysOf = Mapping[str, tuple[str, ...]]  #: dimensions by name
BEYOND_ROUNDING = 1.0 + 1e-12  #: more than the rounding errors of a sum of costs


class About(NamedTuple):
    """What is known besides several answers about the same rows."""

    n: int
    temperature: float
    model: Any  # with its prior; None unless a posterior `needs_model`
    prior_sd: np.ndarray | None  # (d,) of a normal prior around 0, in place of the answers' own


def of_rounds(fields: Sequence[str], vectors: Sequence[str], matrices: Sequence[str]) -> ArraysOf:
    """Return the dimensions of arrays that have an entry for each round; those left are of numbers."""
    axes = dict.fromkeys(vectors, ("coefficient",)) | dict.fromkeys(
        matrices, ("coefficient", "other_coefficient")
    )
    return MappingProxyType({name: ("round", *axes.get(name, ())) for name in fields})


def stacked(rounds: Sequence[Any]) -> dict[str, np.ndarray]:
    """Return rounds, tuples of one type, as arrays by name with a leading axis of rounds."""
    return {name: np.array([getattr(one, name) for one in rounds]) for name in type(rounds[0])._fields}


def multiplier_of_each(epsilon: float, delta: float, per_person: int, queries: float = 1.0) -> float:
    """Return the least noise multiplier of Gaussian queries that are (ε, δ)-DP together, for a person."""
    return per_person * exact_multiplier(epsilon, delta) * BEYOND_ROUNDING * math.sqrt(queries)


@dataclass(frozen=True, kw_only=True)
class Answer(Algorithm):
    """A method whose draws are independent, given the noisy answers of one run, which its chains share."""

    noise_multiplier: float = positive("noise sd over sensitivity of all queries; by default the budget's")

    calibrates_run = True
    default_iterations = FREE_DRAWS
    is_of_regressions: ClassVar[bool] = False  #: whether it answers for regressions, with normal coefficients
    is_planned: ClassVar[bool] = False  #: whether `dpmc.plan` looks whether it answers for a model
    needs_model: ClassVar[bool] = False  #: whether a posterior needs more of the model than the answer has
    _posteriors: dict[bytes, Posterior] = field(init=False, repr=False, compare=False, default_factory=dict)

    @classmethod
    def calibrate(cls, values: Values, epsilon: float, delta: float, n: int, per_person: int = 1) -> Values:
        """Return the hyperparameters `values` with the least noise such that the run is (ε, δ)-DP.

        The m = `per_person` rows of a person move an answer by m times as much as one row.
        """
        return {"noise_multiplier": multiplier_of_each(epsilon, delta, per_person), **values}

    @classmethod
    def first_values(cls, model: Model, rows: np.ndarray) -> Values:
        """Return the hyperparameters without default that simulated rows (n, columns) suggest.

        Raises DpmcError for a model that the method cannot answer for.
        """
        return {}

    def needs(self, dimension: int) -> Needs:
        """Return what a draw consumes."""
        return Needs(normals=dimension, uniforms=2, ratios=0)

    @abstractmethod
    def sizes(self, model: Model) -> dict[str, int]:
        """Return the sizes of the dimensions of `arrays`."""

    @abstractmethod
    def ask(self, model: Model, private: PrivateData) -> list[Answered]:
        """Return what was asked and answered, for each run."""

    @abstractmethod
    def posterior(self, answered: Answered, model: Model, n: int, temperature: float) -> Posterior:
        """Return the posterior given an answer: public computation on it."""

    @classmethod
    def given_all(cls, answers: Sequence[Answered], about: About) -> Posterior:
        """Return the posterior given several answers about the same rows, of a method that knows it."""
        raise NotImplementedError

    @classmethod
    def covariance_without_noise(
        cls, answers: Sequence[Answered], prior_sd: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the covariance of coefficients (p, p) that the rows would have given without noise.

        Also returns H (p, p): it is not known for combinations v of coefficients with v·Hv > 0. Both follow
        from the answers, so that they may be published with them; `prior_sd` as in `About`.
        """
        raise NotImplementedError

    def prepare(
        self, theta: np.ndarray, model: Model, private: PrivateData, generators: Sequence[np.random.Generator]
    ) -> np.ndarray:
        """Ask; return the arrays of each chain's answer, raveled and joined (chains, e)."""
        answers = self.ask(model, private)
        flat = np.array([np.concatenate([np.ravel(one[name]) for name in self.arrays]) for one in answers])
        return flat.repeat(len(theta) // len(flat), axis=0)

    def answered(self, carried: np.ndarray, model: Model) -> dict[str, np.ndarray]:
        """Return the arrays of an answer by name from what a chain carries (e,)."""
        sizes = self.sizes(model)
        shapes = [tuple(sizes[dim] for dim in dims) for dims in self.arrays.values()]
        parts = np.split(carried, np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1])
        return {
            name: part.reshape(shape) for name, part, shape in zip(self.arrays, parts, shapes, strict=True)
        }

    def group(self, carried: np.ndarray, model: Model) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
        return {name: (self.arrays[name], array) for name, array in self.answered(carried, model).items()}

    def step(self, state: State, model: Model, private: PrivateData, draws: Draws) -> State:
        """Draw from each chain's posterior, independently of where it is."""
        theta = np.empty(state.theta.shape)
        for c, carried in enumerate(state.carried):
            key = carried.tobytes()
            if key not in self._posteriors:
                answered = self.answered(carried, model)
                self._posteriors[key] = self.posterior(answered, model, private.n, private.temperature)
            theta[c] = self._posteriors[key].at(draws.normal[c : c + 1], draws.uniform[c : c + 1])[0]
        return settle(state, theta, np.ones(len(theta), np.bool_))
