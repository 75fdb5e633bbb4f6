"""Which method is worth its ε: predictions from simulated twins of the data. No private row is read."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from dpmc.algorithms import ALGORITHMS, algorithm_class
from dpmc.algorithms.hyperparameters import calibrated, read
from dpmc.base import SummaryModel
from dpmc.common.draws import diagnostics, for_all_rows
from dpmc.common.errors import DpmcError
from dpmc.data.chain_files import Chains
from dpmc.data.problem import Problem
from dpmc.metrics.cell import fractions
from dpmc.models.trial import check_starts
from dpmc.sampling.cell import LEAST_ITERATIONS, Cell
from dpmc.sampling.loop import sample
from dpmc.tuning.first_setting import first_setting, reference_draws, scales

DEFAULT_ITERATIONS = 4000  #: of a method whose iterations are free
ROWS_KEPT = 0.995  #: share of simulated rows that the clip bound of a noisy sum does not clip
MOST_TWIN_ITERATIONS = 20_000  #: of a chain on a twin, to bound the time
LEAST_COVERAGE = 0.7  #: of 90 % intervals; below it a method is not recommended
#: A method is worth it if its intervals are narrower than this share of the prior's, where the model says its
#: sd, and than this multiple of those without privacy.
PRIOR_SHARE, MOST_WIDENED = 0.5, 10.0
#: Noise and clipping widen a posterior. Narrower draws are those of a chain that has not moved enough, and it
#: has a small error because it starts near θ.
LEAST_WIDTH = 0.9


class Prediction(NamedTuple):
    """What a method gives on twins; without privacy error and width are about 1.

    Chains start near θ, so a chain that hardly moves has a small error: its coverage shows it.
    """

    method: str
    hyperparameters: dict[str, Any] = {}  # of noisy statistics without the noise, which follows from ε
    error: float = np.nan  # root mean square of (mean − θ)/sd, sd of the posterior without privacy
    width: float = np.nan  # of 90 % intervals, over those without privacy; mean
    coverage: float = np.nan  # share of 90 % intervals that contain θ
    of_prior: float = np.nan  # width over that of the prior, mean; NaN if unknown
    obstacle: str = ""  # why the method cannot be used; numbers are NaN then
    clipped: float = np.nan  # share of simulated rows that the clip bound binds, of evaluations; mean
    half_widths: Mapping[str, float] = {}  # of the 90 % interval by parameter, in its units; mean

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
        return (
            f"{self.method:<17} {rejected}error {self.error:.1f} sd, 90 % intervals {self.width:.1f} times "
            f"as wide as without privacy{prior}, {self.coverage:.0%} contain the truth, "
            f"{self.clipped:.1%} of rows clipped" + (f"; half of an interval: {each}" if each else "")
        )


class Recommendation(NamedTuple):
    """The method to use, "none" if none is worth it, the predictions of all, and what they assume."""

    method: str
    predictions: tuple[Prediction, ...]
    notes: tuple[str, ...] = ()

    def hyperparameters_of(self, algorithm: str) -> dict[str, Any]:
        """Return the hyperparameters of the recommended method; raise DpmcError unless it is `algorithm`."""
        if self.method == "none" or self.method != algorithm:
            one = "no method" if self.method == "none" else self.method
            raise DpmcError(
                f"hyperparameters: dpmc.recommend names {one}, not {algorithm}; those that it tried are in "
                "its `predictions`"
            )
        return next(one.hyperparameters for one in self.predictions if one.method == algorithm)

    def __repr__(self) -> str:
        return "\n".join([f"recommended: {self.method}", *map(str, self.predictions), *self.notes])


def recommend(
    problems: list[Problem], epsilon: str, delta: float, rows_per_person: int = 1
) -> Recommendation:
    """Return predictions on twins, problems with simulated rows, and the best method that is worth it."""
    for problem in problems:
        check_starts(problem.model, problem.starts[:1])
        problem.exact = replace(problem.exact, reference=reference_draws(problem, scales(problem)))
    # By a class's own attributes, so that a variant is not compared because its base is.
    known = {name: cls for name in ALGORITHMS if vars(cls := algorithm_class(name)).get("is_recommended")}
    methods = sorted(known, key=lambda name: not known[name].calibrates_run)  # first those of the noise by ε
    found = tuple(prediction_of(method, problems, epsilon, delta, rows_per_person) for method in methods)
    worth = [prediction for prediction in found if prediction.is_worth_it]
    best = min(worth, key=lambda prediction: prediction.error).method if worth else "none"
    return Recommendation(best, found, notes(problems))


def notes(problems: list[Problem]) -> tuple[str, ...]:
    """Return what the numbers mean and assume, as lines."""
    said = [
        "error: root mean square, in sds of the posterior without privacy; "
        "the prior's: of its 90 % interval; half of an interval: in the parameter's units"
    ]
    model = problems[0].model
    if not problems[0].true_theta.any():
        said.append("true_theta is 0 for all parameters, the default: rows are simulated at it")
    beyond = [model.beyond_norm(problem.rows) for problem in problems if hasattr(model, "beyond_norm")]
    if beyond and beyond[0] is not None:
        said.append(
            f"norm: {np.mean(beyond):.1%} of simulated rows are longer and shortened: not counted above"
        )
    return tuple(said)


def prediction_of(
    method: str, problems: list[Problem], epsilon: str, delta: float, rows_per_person: int = 1
) -> Prediction:
    """Return what a method gives on the twins, with hyperparameters that the first twin suggests."""
    first = problems[0]
    cell = Cell(first, method, None, epsilon, delta, "tight", streams="names")  # type: ignore[arg-type]
    cell = replace(cell, most_iterations=MOST_TWIN_ITERATIONS, rows_per_person=rows_per_person)
    cls = algorithm_class(method)

    def make(values: dict[str, Any]) -> Cell[Problem]:
        return replace(cell, algorithm=read(cls, values, "recommend", first.dimension))

    try:
        values = clip_of_sum(first) if cls.calibrates_run else first_setting(method, first, {}, make)
        made = make(calibrated(cls, values, float(epsilon), delta, first.n, rows_per_person))
        if not made.queries().each:
            made = replace(made, iterations=DEFAULT_ITERATIONS)
        made.algorithm.check(first.model)
        if made.allowed_iterations() < LEAST_ITERATIONS:
            raise DpmcError("the budget allows too few iterations")
        chains = [sample(replace(made, problem=problem), [0])[0] for problem in problems]
    except DpmcError as error:
        return Prediction(method, obstacle=str(error))
    late = [one.draws[:, one.draws.shape[1] // 2 :] for one in chains]
    found = judged(method, values, problems, late, cls.calibrates_run)
    bound = values["clip"] if cls.calibrates_run else None
    shares = [clipped_share(*pair, bound) for pair in zip(chains, problems, strict=True)]
    return found._replace(clipped=float(np.mean(shares)))


def clipped_share(chain: Chains, problem: Problem, bound: float | None) -> float:
    """Return the share of rows clipped: in a chain (ratios or gradients, the larger), or at a bound."""
    if bound is not None:
        return float((norms(problem) > bound).mean())
    found = fractions(chain, int(chain.attrs["iterations"]))
    return max(found.get(f"{name}_clip_fraction", 0.0) for name in ("ratio", "gradient"))


def norms(problem: Problem) -> np.ndarray:
    """Return the norms of the summaries (n,) of a problem's rows."""
    summaries = cast(SummaryModel, problem.model).summaries(problem.rows)
    return np.sqrt((summaries**2).sum(axis=1))


def clip_of_sum(problem: Problem) -> dict[str, Any]:
    """Return the clip bound that few simulated rows exceed; the noise follows from the budget."""
    if not hasattr(problem.model, "summary_count"):
        raise DpmcError("needs an exponential family with as many statistics as parameters")
    return {"clip": float(f"{np.quantile(norms(problem), ROWS_KEPT):.3g}")}


def judged(
    method: str, values: dict[str, Any], problems: list[Problem], draws: list[np.ndarray], of_sum: bool
) -> Prediction:
    """Return the prediction from draws (chains, m, d) on each twin; `of_sum`: given a noisy sum of rows."""
    errors, widths, covered, of_prior, halves = [], [], [], [], []
    for problem, chain in zip(problems, draws, strict=True):
        flat, truth = chain.reshape(-1, problem.dimension), problem.true_theta
        low, high = np.quantile(flat, [0.05, 0.95], axis=0)
        bounds = np.quantile(problem.exact.reference, [0.05, 0.95], axis=0)
        errors.append((flat.mean(axis=0) - truth) / problem.exact.reference.std(axis=0))
        widths.append((high - low) / (bounds[1] - bounds[0]))
        covered.append((low <= truth) & (truth <= high))
        prior_sd = np.asarray(getattr(problem.model, "prior_sd", np.nan), dtype=float)
        of_prior.append((high - low) / (2.0 * 1.645 * prior_sd) * np.ones(problem.dimension))
        unknown = of_sum and problem.temperature < 1.0  # a sum's noise is not tempered
        halves.append(0.5 * (high - low) * (np.nan if unknown else untempered(problem, chain)))
    error = float(np.sqrt(np.mean(np.square(errors))))
    width, coverage, share = (float(np.mean(part)) for part in (widths, covered, of_prior))
    names = problems[0].parameters or [f"theta[{i}]" for i in range(problems[0].dimension)]
    each = dict(zip(names, np.mean(halves, axis=0).tolist(), strict=True))
    return Prediction(method, values, error, width, coverage, share, half_widths=each)


def untempered(problem: Problem, draws: np.ndarray) -> Any:
    """Return by what `dpmc.summary` multiplies the width of draws (chains, m, d): 1, or (d,) if tempered."""
    if problem.temperature == 1.0:
        return 1.0
    try:
        narrow = for_all_rows(draws, problem.temperature, diagnostics(draws).mcse)
    except ValueError:  # too few draws
        return np.nan
    with np.errstate(divide="ignore", invalid="ignore"):  # a chain that never moved
        return narrow.std(axis=(0, 1)) / draws.std(axis=(0, 1))
