"""Which method is worth its ε: predictions from simulated twins of the data. No private row is read."""

from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from dpmc.algorithms import algorithm_class
from dpmc.algorithms.hyperparameters import read
from dpmc.base import SummaryModel
from dpmc.common.errors import DpmcError
from dpmc.data.chain_files import Chains
from dpmc.data.problem import Problem
from dpmc.metrics.cell import fractions
from dpmc.sampling.cell import LEAST_ITERATIONS, Cell
from dpmc.sampling.loop import sample
from dpmc.tuning.first_setting import first_setting, reference_draws, scales

CANDIDATES = ("noisy-statistics", "dp-penalty", "dp-hmc")
ITERATIONS = 4000  #: of noisy statistics, whose iterations are free
UNCLIPPED = 0.995  #: share of simulated rows that the clip bound of noisy statistics does not clip
MOST_ITERATIONS = 20_000  #: of a chain on a twin, to bound the time
LEAST_COVERAGE = 0.7  #: of 90 % intervals; below it a method is not recommended
#: A method is worth it if its intervals are narrower than this share of the prior's, where the model says its
#: sd, and than this multiple of those without privacy.
PRIOR_SHARE, MOST_WIDENED = 0.5, 10.0


class Prediction(NamedTuple):
    """What a method gives on twins; without privacy error and width are about 1.

    Chains start near θ, so a chain that hardly moves has a small error: its coverage shows it.
    """

    method: str
    hyperparameters: dict[str, Any] = {}
    error: float = np.nan  # root mean square of (mean − θ)/sd, sd of the posterior without privacy
    width: float = np.nan  # of 90 % intervals, over those without privacy; mean
    coverage: float = np.nan  # share of 90 % intervals that contain θ
    of_prior: float = np.nan  # width over that of the prior, mean; NaN if unknown
    obstacle: str = ""  # why the method cannot be used; numbers are NaN then
    clipped: float = np.nan  # share of simulated rows that the clip bound binds, of evaluations; mean

    @property
    def is_worth_it(self) -> bool:
        """Return whether its intervals hold and tell enough."""
        informative = self.width < MOST_WIDENED and not self.of_prior >= PRIOR_SHARE
        return not self.obstacle and informative and self.coverage >= LEAST_COVERAGE

    def __str__(self) -> str:
        if self.obstacle:
            return f"{self.method:<17} {self.obstacle}"
        prior = "" if np.isnan(self.of_prior) else f", {self.of_prior:.0%} of the prior's"
        return (
            f"{self.method:<17} error {self.error:.1f} sd, 90 % intervals {self.width:.1f} times as wide as "
            f"without privacy{prior}, {self.coverage:.0%} contain the truth, "
            f"{self.clipped:.1%} of rows clipped"
        )


class Recommendation(NamedTuple):
    """The method to use, "none" if none is worth it, and the predictions of all."""

    method: str
    predictions: tuple[Prediction, ...]

    def __repr__(self) -> str:
        return "\n".join([f"recommended: {self.method}", *map(str, self.predictions)])


def recommend(problems: list[Problem], epsilon: str, delta: float) -> Recommendation:
    """Return predictions on twins, problems with simulated rows, and the best method that is worth it."""
    for problem in problems:
        problem.reference = reference_draws(problem, scales(problem))
    found = tuple(predict(method, problems, epsilon, delta) for method in CANDIDATES)
    worth = [prediction for prediction in found if prediction.is_worth_it]
    best = min(worth, key=lambda prediction: prediction.error).method if worth else "none"
    return Recommendation(best, found)


def predict(method: str, problems: list[Problem], epsilon: str, delta: float) -> Prediction:
    """Return what a method gives on the twins, with hyperparameters that the first twin suggests."""
    first = problems[0]
    cell = Cell(first, method, None, epsilon, delta, "tight", streams="names")  # type: ignore[arg-type]
    cell = replace(cell, most_iterations=MOST_ITERATIONS)

    def make(values: dict[str, Any]) -> Cell:
        return replace(cell, algorithm=read(algorithm_class(method), values, "recommend", first.dimension))

    try:
        if method == "noisy-statistics":
            values = noisy_statistics(first, float(epsilon), delta)
            made = replace(make(values), iterations=ITERATIONS)
        else:
            values = first_setting(method, first, {}, make)
            made = make(values)
        made.algorithm.check(first.model)
        if made.allowed_iterations() < LEAST_ITERATIONS:
            raise DpmcError("the budget allows too few iterations")
        chains = [sample(replace(made, problem=problem), [0])[0] for problem in problems]
    except DpmcError as error:
        return Prediction(method, obstacle=str(error))
    found = judged(method, values, problems, [one.draws[:, one.draws.shape[1] // 2 :] for one in chains])
    bound = values["clip"] if method == "noisy-statistics" else None
    shares = [clipped_share(*pair, bound) for pair in zip(chains, problems, strict=True)]
    return found._replace(clipped=float(np.mean(shares)))


def clipped_share(chain: Chains, problem: Problem, bound: float | None) -> float:
    """Return the share of a twin's rows that are clipped: in a chain, or summaries at a bound if given.

    Of ratios and gradients the larger share counts.
    """
    if bound is not None:
        return float((norms(problem) > bound).mean())
    found = fractions(chain, int(chain.attrs["iterations"]))
    return max(found.get(f"{name}_clip_fraction", 0.0) for name in ("ratio", "gradient"))


def norms(problem: Problem) -> np.ndarray:
    """Return the norms of the summaries (n,) of a problem's rows."""
    summaries = cast(SummaryModel, problem.model).summaries(problem.rows)
    return np.sqrt((summaries**2).sum(axis=1))


def noisy_statistics(problem: Problem, epsilon: float, delta: float) -> dict[str, Any]:
    """Return the clip bound that few simulated rows exceed, with the noise of the budget."""
    cls = algorithm_class("noisy-statistics")
    if not hasattr(problem.model, "summaries"):
        raise DpmcError("needs a regression, or an exponential family with as many statistics as parameters")
    clip = float(f"{np.quantile(norms(problem), UNCLIPPED):.3g}")
    return cls.calibrate({"clip": clip}, epsilon, delta, problem.n)  # type: ignore[attr-defined]


def judged(
    method: str, values: dict[str, Any], problems: list[Problem], draws: list[np.ndarray]
) -> Prediction:
    """Return the prediction from draws (chains, m, d) on each twin."""
    errors, widths, covered, of_prior = [], [], [], []
    for problem, chain in zip(problems, draws, strict=True):
        flat, truth = chain.reshape(-1, problem.dimension), problem.true_theta
        low, high = np.quantile(flat, [0.05, 0.95], axis=0)
        bounds = np.quantile(problem.reference, [0.05, 0.95], axis=0)
        errors.append((flat.mean(axis=0) - truth) / problem.reference.std(axis=0))
        widths.append((high - low) / (bounds[1] - bounds[0]))
        covered.append((low <= truth) & (truth <= high))
        prior_sd = np.asarray(getattr(problem.model, "prior_sd", np.nan), dtype=float)
        of_prior.append((high - low) / (2.0 * 1.645 * prior_sd) * np.ones(problem.dimension))
    error = float(np.sqrt(np.mean(np.square(errors))))
    width, coverage, share = (float(np.mean(part)) for part in (widths, covered, of_prior))
    return Prediction(method, values, error, width, coverage, share)
