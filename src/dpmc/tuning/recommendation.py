"""Which method is worth its ε: predictions from simulated twins of the data. No private row is read."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from dpmc.algorithms import ALGORITHMS, algorithm_class
from dpmc.algorithms.hyperparameters import calibrated, read
from dpmc.common.errors import DpmcError
from dpmc.common.logs import LOGGER
from dpmc.common.progress import live_line
from dpmc.common.streams import canonical_epsilon
from dpmc.data.problem import Problem
from dpmc.metrics.cell import second_half_of
from dpmc.models.trial import check_starts
from dpmc.sampling.cell import LEAST_ITERATIONS, Cell
from dpmc.sampling.loop import sample
from dpmc.tuning.first_setting import SDS, Widths, first_setting, without_privacy

MOST_TWIN_ITERATIONS = 20_000  #: of a chain on a twin, to bound the time
LEAST_COVERAGE = 0.7  #: of 90 % intervals; below it a method is not recommended
PRIOR_SHARE = 0.5  #: of the width of the prior's intervals, where the model says its sd; from it on, rejected
#: Of the width without privacy. A chain that has not moved enough is narrower, and starts near θ.
LEAST_WIDTH, MOST_WIDENED = 0.9, 10.0
#: Among which the least is looked for at which a method is not refused.
TRIED_EPSILONS = [
    m * 10.0**k for k in (-2, -1, 0, 1) for m in (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
]


class Prediction(NamedTuple):
    """What a method gives on twins; without privacy error and width are about 1."""

    method: str
    hyperparameters: dict[str, Any] = {}  # without the noise that follows from ε
    error: float = np.nan  # root mean square of (mean − θ)/sd, sd of the posterior without privacy
    width: float = np.nan  # of 90 % intervals, over those without privacy; mean
    coverage: float = np.nan  # share of 90 % intervals that contain θ
    of_prior: float = np.nan  # width over that of the prior, mean; NaN if unknown
    obstacle: str = ""  # why the method cannot be used, and what would do; numbers are NaN then
    half_widths: Mapping[str, float] = {}  # of the 90 % interval of draws by parameter, in its units; mean

    @property
    def is_worth_it(self) -> bool:
        """Return whether its intervals hold and tell enough."""
        return not self.obstacle and not self.reasons

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return why the method is rejected: intervals miss the truth too often, are too wide or narrow."""
        found = []
        if not self.coverage >= LEAST_COVERAGE:
            found.append(f"only {self.coverage:.0%} of intervals contain the truth")
        if not LEAST_WIDTH <= self.width < MOST_WIDENED:
            found.append(f"intervals {self.width:.2g} times as wide as without privacy")
        if self.of_prior >= PRIOR_SHARE:
            found.append(f"intervals {self.of_prior:.0%} as wide as the prior's")
        return tuple(found)

    def __str__(self) -> str:
        if self.obstacle:
            return f"{self.method:<17} {self.obstacle}"
        prior = "" if np.isnan(self.of_prior) else f", {self.of_prior:.0%} of the prior's"
        rejected = f"rejected ({'; '.join(self.reasons)}): " if self.reasons else ""
        each = ", ".join(f"{name} {width:.2g}" for name, width in self.half_widths.items())
        text = (
            f"{rejected}error {self.error:.1f} sd, 90 % intervals {self.width:.1f} times as wide as without "
        )
        text += f"privacy{prior}, {self.coverage:.0%} contain the truth"
        return f"{self.method:<17} {text}" + (f"; half of an interval: {each}" if each else "")


class Recommendation(NamedTuple):
    """The method to use, "none" if none is worth it; predictions of those tried, and what they assume."""

    method: str
    predictions: tuple[Prediction, ...]
    notes: tuple[str, ...] = ()

    def hyperparameters_of(self, algorithm: str) -> dict[str, Any]:
        """Return the hyperparameters of the recommended method; raise DpmcError unless it is `algorithm`."""
        if self.method == "none" or self.method != algorithm:
            one = "no method" if self.method == "none" else self.method
            raise DpmcError(f"hyperparameters: dpmc.recommend names {one}, not {algorithm}; print it for why")
        return next(one.hyperparameters for one in self.predictions if one.method == algorithm)

    def __repr__(self) -> str:
        return "\n".join([f"recommended: {self.method}", *map(str, self.predictions), *self.notes])


def recommend(
    problems: list[Problem], cell: Cell[Problem], methods: Sequence[str] | None, progress: bool
) -> Recommendation:
    """Try `methods`, by default those that ask once, then chains if none is worth it, on simulated rows."""
    for problem in problems:
        check_starts(problem.model, problem.starts[:1])
        problem.tried = problems[0].tried  # it is one model
    known = [name for name in ALGORITHMS if vars(algorithm_class(name)).get("is_recommended")]
    if wrong := [name for name in methods or () if name not in known]:
        raise DpmcError(f"methods: {wrong[0]} must be one of {', '.join(known)}")
    without = [without_privacy(problem) for problem in problems]
    chains = [name for name in known if not algorithm_class(name).calibrates_run]
    found, worth = list[Prediction](), list[Prediction]()
    for some in [methods] if methods else [[name for name in known if name not in chains], chains]:
        if not worth:
            found += [predicted(replace(cell, method=name), problems, without, progress) for name in some]
            worth = [one for one in found if one.is_worth_it]
    best = min(worth, key=lambda one: one.error).method if worth else "none"
    return Recommendation(best, tuple(found), notes(problems))


def notes(problems: list[Problem]) -> tuple[str, ...]:
    """Return what the numbers mean and assume, as lines."""
    said = ["error: in sds of the posterior without privacy; half of an interval: in the parameter's units"]
    if not problems[0].true_theta.any():
        said.append("true_theta is 0 for all parameters, the default: rows are simulated at it")
    beyond = [one.model.beyond_norm(one.rows) for one in problems if hasattr(one.model, "beyond_norm")]
    if beyond and beyond[0] is not None:
        said.append(f"norm: {np.mean(beyond):.1%} of simulated rows are longer and shortened")
    return tuple(said)


def predicted(cell: Cell[Any], twins: list[Problem], without: list[Widths], progress: bool) -> Prediction:
    """Return what a cell's method gives on the twins, with hyperparameters that the first twin suggests."""
    first, method, cls = twins[0], cell.method, cast(Any, algorithm_class(cell.method))
    values, chains, shown = dict[str, Any](), [], progress and not cls.calibrates_run

    def make(values: dict[str, Any]) -> Cell[Problem]:
        return replace(cell, algorithm=read(cls, values, "recommend", first.dimension))

    def allowed(epsilon: float) -> Cell[Problem]:
        noisy = calibrated(cls, values, epsilon, cell.delta, first.n, cell.rows_per_person)
        made = replace(make(noisy), epsilon=canonical_epsilon(epsilon))
        made.algorithm.check(first.model, first.n)
        if made.allowed_iterations() < LEAST_ITERATIONS:
            raise DpmcError("the budget allows too few iterations")
        return made

    try:
        if cls.calibrates_run:
            values = cls.first_values(first.model, first.rows)
        else:
            if shown:
                LOGGER.info("recommend: tries %s on %d simulated data sets", method, len(twins))
            values = first_setting(method, first, {}, make)
        made = allowed(float(cell.epsilon))
        for k, problem in enumerate(twins, 1):
            report = live_line(f"recommend {method}, twin {k} of {len(twins)}") if shown else None
            (chain,) = sample(replace(made, problem=problem), [0], progress=report)
            chains.append(second_half_of(chain).reshape(-1, first.dimension))
    except DpmcError as error:
        text = str(error).removeprefix(f"{method}: ")
        return Prediction(method, obstacle=text + advice(allowed, float(cell.epsilon)))
    return Prediction(method, values, **judged(first, chains, without))


def advice(allowed: Callable[[float], object], epsilon: float) -> str:
    """Return the ε at which a method is not refused, as a clause; "" if it is not, or always, refused."""
    for tried in (epsilon, *(one for one in TRIED_EPSILONS if one > epsilon)):
        with suppress(DpmcError):
            allowed(tried)
            return f"; epsilon {tried:g} would do" if tried > epsilon else ""
    return ""


def judged(problem: Problem, draws: list[np.ndarray], without: list[Widths]) -> dict[str, Any]:
    """Return the numbers of a prediction from draws (m, d) on each twin of a problem."""
    (sd, wide), truth = map(np.array, zip(*without, strict=True)), problem.true_theta
    means = np.array([one.mean(axis=0) for one in draws])  # (twins, d)
    low, high = np.stack([np.quantile(one, [0.05, 0.95], axis=0) for one in draws], axis=1)
    prior_sd = np.asarray(getattr(problem.model, "prior_sd", np.nan), dtype=float)
    names = problem.parameters or [f"theta[{i}]" for i in range(problem.dimension)]
    return {
        "error": float(np.sqrt(np.mean(((means - truth) / sd) ** 2))),
        "width": float(np.mean((high - low) / wide)),
        "coverage": float(np.mean((low <= truth) & (truth <= high))),
        "of_prior": float(np.mean((high - low) / (SDS * prior_sd))),
        "half_widths": dict(zip(names, np.mean(0.5 * (high - low), axis=0).tolist(), strict=True)),
    }
