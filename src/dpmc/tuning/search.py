"""Search of hyperparameters: the smallest median MMD at the tuning ε, among settings that clip little.

A *trial* is one setting, run on tuning data with a few seeds. A *search* is a sequence of trials, each
proposed by an optimiser from the earlier ones. Free hyperparameters are searched as factors of the pinned
setting on a log scale; a list of lengths has one factor. Every finished trial is a row of a table, which is
the only state of a search: an interrupted search proposes the same settings again and reads their values from
it.

Settings are run with the same seeds, hence the same noise, so that their differences are less random than
their values. The best few and the pinned setting are run again with new seeds, and only those seeds decide.
Their chains also show whether the chosen setting moves the estimates: a few clipped rows, all on one side of
the posterior, may move a mean by many standard errors. This is reported, and does not change the choice.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from dpmc.algorithms import FREE
from dpmc.common import sources
from dpmc.common.errors import DpmcError
from dpmc.common.streams import stream
from dpmc.data import datasets
from dpmc.metrics.statistics import median_error
from dpmc.studies import (
    Hyperparameters,
    MissingSettings,
    Study,
    calibrated_values,
    chain_settings,
    definition_of,
    make_cell,
    number_of_rows,
    pinned_hyperparameters,
)
from dpmc.tuning.pinned import CLIP_LIMIT, clip_fraction, medians_of
from dpmc.tuning.trials import Table, Trial, open_table

if TYPE_CHECKING:
    from dpmc.data.problem import Problem

#: Algorithms whose clip bound follows from the batch: the rule on clipping does not apply.
CLIP_IS_GIVEN = ("dp-barker",)
WHOLE_NUMBERS = ("steps", "batch_size")

FACTOR = 10.0  #: a hyperparameter is searched within this factor of its pinned value, either way
SPREAD = 0.5  #: sd of ln(factor) of the first settings, drawn around the pinned one
DIGITS = 3  #: significant digits of a setting
PILOT_SEEDS = 2  #: number of seeds after which a hopeless setting is given up
LEAST_FINAL_SEEDS = 2  #: of a finalist: a median of fewer has no standard error
FINALISTS = 5  #: number of best trials that must also keep the rule on clipping with other seeds
MOST_FINALISTS = 15  #: largest number of trials run again, besides the pinned setting
HOPELESS = 1.3  #: a pilot is given up if each seed's MMD is this many times that of the best trial
LONGEST = 6.0  #: a setting may cost this many times the pinned one,
LONGEST_BY_GRADIENTS = 3.0  #: or this many if gradients are computed,
MOST_ROWS = 3e8  #: or this number of rows used by one chain, if that is more
ITERATION = 5000.0  #: cost of an iteration in rows, in addition to the rows it uses
LEAST_ITERATIONS = 20  #: of a chain, so that its second half can be evaluated
MOST_BIAS = 0.5  #: of an estimate, in standard deviations of the posterior of all rows
CHANCE = 0.05  #: probability that chance alone makes one of the parameters seem biased

#: What makes data and chains, whose changes have versions of their own (`dpmc.common.sources`).
DECLARED = (
    *("dpmc.algorithms", "dpmc.data.datasets", "dpmc.evaluators", "dpmc.models"),
    *("dpmc.sampling.loop", "dpmc.studies"),
)

#: Objectives of settings that cannot be chosen: above any MMD (at most √2), higher for worse reasons.
REFUSED, TOO_FEW, CLIPPED = 4.0, 3.0, 2.0


def free_hyperparameters(study: Study, model: str, method: str) -> tuple[str, ...]:
    """Return the hyperparameters that a search may choose for a study's cell.

    Hyperparameters fixed by the method's options or by an ε per iteration are not free. Empty if there are no
    free hyperparameters, no budget or no exact posterior.

    Raises DpmcError if the study has no setting for the cell.
    """
    spec, how, about = study.model(model), study.method(method), definition_of(study, model)
    names = [name for name in FREE.get(how.algorithm, ()) if name not in how.options]
    private = spec.tuning_epsilon != "inf" and how.epsilons != ("inf",)
    if not names or not private or not hasattr(about.model, "posterior"):
        return ()
    pinned, _ = pinned_hyperparameters(study, model, method)
    decided = calibrated_values(study, method, pinned, spec.tuning_epsilon, number_of_rows(study, model))
    kept = {**pinned, **decided}
    return tuple(name for name in names if name in pinned and kept[name] == pinned[name])


def searched_pairs(study: Study) -> list[tuple[str, str]]:
    """Return the (model, method) that a study searches: those it tunes that have free hyperparameters.

    Raises DpmcError if the study has no setting for one of them.
    """
    pairs = dict.fromkeys((model, method) for model, method, _ in study.cells())
    return [
        (model, method)
        for model, method in pairs
        if model in study.tuning.models
        and method in study.tuning.methods
        and free_hyperparameters(study, model, method)
    ]


class Asking(Protocol):
    """The interface of a study for searches; also of `first_setting.OneCell`, for a model given in Python."""

    @property
    def name(self) -> str:
        """Return the name that keys random streams."""

    def model(self, label: str) -> Any:
        """Return an object with the model's `tuning_epsilon`."""

    def method(self, label: str) -> Any:
        """Return an object with the method's `algorithm`."""

    def pinned_hyperparameters(self, model: str, method: str) -> tuple[dict[str, Any], str]:
        """Return the hyperparameters that the search starts from, and their source."""

    def cell(self, problem: Problem, method: str, epsilon: str, values: dict[str, Any], source: str) -> Any:
        """Return the cell with these hyperparameters."""

    def sampling_settings(self, model: str, method: str, epsilon: str) -> str:
        """Return what determines the draws besides hyperparameters and data."""


@dataclass(frozen=True)
class OfStudy:
    """A study, asked as `Asking`."""

    study: Study

    @property
    def name(self) -> str:
        """Return the study's name."""
        return self.study.name

    def model(self, label: str) -> Any:
        """Return the model of a label."""
        return self.study.model(label)

    def method(self, label: str) -> Any:
        """Return the method of a label."""
        return self.study.method(label)

    def pinned_hyperparameters(self, model: str, method: str) -> tuple[dict[str, Any], str]:
        """Return the pinned hyperparameters."""
        return pinned_hyperparameters(self.study, model, method)

    def cell(self, problem: Problem, method: str, epsilon: str, values: dict[str, Any], source: str) -> Any:
        """Return the cell with these hyperparameters."""
        return make_cell(self.study, problem, method, epsilon, Hyperparameters(values, source))

    def sampling_settings(self, model: str, method: str, epsilon: str) -> str:
        """Return what determines the chains."""
        return chain_settings(self.study, model, method, epsilon)


class Bench:
    """Trial runs of settings of one (study, model, method): tuning data, pinned setting and limits.

    `free`: the hyperparameters to search, if they do not follow from a study.
    """

    def __init__(
        self,
        study: Study | Asking,
        model: str,
        method: str,
        problem: Problem,
        free: tuple[str, ...] | None = None,
    ) -> None:
        asked = OfStudy(study) if isinstance(study, Study) else study
        self.study, self.model, self.method, self.problem = asked, model, method, problem
        self.pinned, self.source = asked.pinned_hyperparameters(model, method)
        self.free = free_hyperparameters(study, model, method) if isinstance(study, Study) else free or ()
        if not self.free:
            raise DpmcError(
                f"{model}, {method}: nothing to search: no free hyperparameters, budget or exact draws"
            )
        algorithm = study.method(method).algorithm
        self.clip_limit = math.inf if algorithm in CLIP_IS_GIVEN else CLIP_LIMIT
        self.start = {name: self.pinned[name] for name in self.free}
        pinned = self.cell(self.start)
        times = LONGEST_BY_GRADIENTS if pinned.algorithm.needs(problem.dimension).gradients else LONGEST
        self.longest = max(times * self.cost(pinned), MOST_ROWS)
        self._estimates: dict[str, np.ndarray] = {}  # of the finalists that this process ran

    def setting(self, logs: Sequence[float]) -> dict[str, Any]:
        """Return the free hyperparameters at these ln(factor), rounded."""
        return {
            name: _scaled(name, self.start[name], math.exp(x))
            for name, x in zip(self.free, logs, strict=True)
        }

    def cell(self, setting: dict[str, Any]) -> Any:
        """Return the cell at the tuning ε with these free hyperparameters; all have equal random numbers."""
        epsilon, values = self.study.model(self.model).tuning_epsilon, {**self.pinned, **setting}
        return replace(
            self.study.cell(self.problem, self.method, epsilon, values, self.source), streams="names"
        )

    def cost(self, cell: Any) -> float:
        """Return the cost of one chain in rows used; n per iteration if their number is random."""
        rows, needs = (
            cell.algorithm.batch_size or self.problem.n,
            cell.algorithm.needs(self.problem.dimension),
        )
        return float(cell.allowed_iterations() * ((needs.ratios + needs.gradients) * rows + ITERATION))

    def run(self, cell: Any, seeds: Sequence[int]) -> list[dict[str, Any]]:
        """Run these seeds' chains; return their metric rows."""
        return self.metric_rows(self.sample(cell, seeds))

    def metric_rows(self, runs: list[Any]) -> list[dict[str, Any]]:
        """Return the metric rows of finished runs."""
        from dpmc.data.chain_files import ChainFile
        from dpmc.metrics.cell import seed_metrics

        return seed_metrics([ChainFile.of(run, {"study": self.study.name}) for run in runs], self.problem)

    def sample(self, cell: Any, seeds: Sequence[int], private_listener: Any = None) -> list[Any]:
        """Run and return the chains of these seeds."""
        from dpmc.sampling.loop import sample  # numba is slow to import

        return sample(cell, list(seeds), private_listener=private_listener)

    def one_run(self, setting: dict[str, Any], seed: int) -> dict[str, float]:
        """Run one seed of a setting; return its diagnostics by name, without undefined ones.

        `noise_sd` is the median sd of a log ratio's noise in the second half, `ess` and `rhat` are the worst
        of any parameter.
        """
        from dpmc.metrics.cell import convergence, second_half

        cell, _, verdict = self.refusal(setting)
        if verdict != "ok":
            return {}
        blocks: list[np.ndarray] = []
        (run,) = self.sample(cell, [seed], blocks.append)
        found = {}
        sds = np.concatenate(blocks, axis=1)
        late = sds[:, sds.shape[1] // 2 :]
        if (late > 0.0).any():
            found["noise_sd"] = float(np.median(late[late > 0.0]))
        try:
            worst = convergence(second_half(run.draws, run.draws.shape[1]))
        except ValueError:  # chains that never moved have none
            return found
        return {**found, "ess": round(worst.ess_bulk_min, 1), "rhat": round(worst.rhat_max, 3)}

    def refusal(self, setting: dict[str, Any]) -> tuple[Any, float, str]:
        """Return the cell of a setting, and objective and verdict if it cannot be chosen; else 0.0 and "ok".

        Iterations follow from the accountant, so that this needs no chains.
        """
        try:
            cell = self.cell(setting)
            iterations = cell.allowed_iterations()
            cell.releases()  # raises if a guarantee cannot be given
        except DpmcError as error:
            return None, REFUSED, f"refused: {str(error).removeprefix(self.source)}"
        if iterations < LEAST_ITERATIONS:
            return cell, TOO_FEW - iterations / LEAST_ITERATIONS, f"too few iterations: {iterations}"
        if self.cost(cell) > self.longest:
            return cell, REFUSED, f"refused: {iterations} iterations take too long"
        return cell, 0.0, "ok"

    def try_out(self, number: int, setting: dict[str, Any], seeds: int, best: Trial | None) -> Trial:
        """Run a setting with the first `seeds` seeds; give up after a hopeless pilot."""
        began = time.process_time()
        cell, objective, verdict = self.refusal(setting)
        if verdict != "ok":
            return Trial(number, "search", setting, objective, verdict, 0)
        pilot = min(PILOT_SEEDS, seeds)
        rows = self.run(cell, range(pilot))
        trial = self.judge(number, "search", setting, rows, pilot)
        if seeds > pilot and not _hopeless(trial, best):
            rows += self.run(cell, range(pilot, seeds))
            trial = self.judge(number, "search", setting, rows, seeds)
        elif seeds > pilot:
            trial = replace(trial, verdict=f"given up after {pilot} seeds: {trial.verdict}")
        return replace(trial, seconds=time.process_time() - began)

    def decide(self, number: int, setting: dict[str, Any], seeds: range) -> Trial:
        """Run a finalist with the final seeds."""
        began = time.process_time()
        cell, objective, verdict = self.refusal(setting)
        if verdict != "ok":
            return Trial(number, "final", setting, objective, verdict, 0)
        runs = self.sample(cell, seeds)
        self._estimates[str(setting)] = _means(runs)
        trial = self.judge(number, "final", setting, self.metric_rows(runs), len(seeds))
        return replace(trial, seconds=time.process_time() - began)

    def estimates(self, setting: dict[str, Any], seeds: range) -> np.ndarray:
        """Return the posterior mean as each final run estimates it, (runs, d).

        Runs again what another process ran: the table of trials has only the distances.
        """
        if str(setting) not in self._estimates:
            self._estimates[str(setting)] = _means(self.sample(self.cell(setting), seeds))
        return self._estimates[str(setting)]

    def judge(
        self, number: int, stage: str, setting: dict[str, Any], rows: list[dict[str, Any]], seeds: int
    ) -> Trial:
        """Return the trial of chains with these metrics."""
        medians = medians_of(rows)
        values = [float(row["value"]) for row in rows if row["metric"] == "mmd"]
        clipped = clip_fraction(medians) or 0.0
        objective, verdict = medians.get("mmd", REFUSED), "ok"
        if len(values) < seeds:
            objective, verdict = REFUSED, "no MMD for some seeds"
        elif clipped >= self.clip_limit:
            objective, verdict = CLIPPED + clipped, f"clipped: {clipped:.3f}"
        found = {name: float(value) for name, value in medians.items() if name != "iterations"}
        iterations = int(medians.get("iterations", 0))
        return Trial(number, stage, setting, objective, verdict, seeds, iterations, values=values, **found)


def _means(runs: list[Any]) -> np.ndarray:
    """Return the mean of the draws of each run that are evaluated, (runs, d)."""
    from dpmc.metrics.cell import second_half

    return np.stack([second_half(run.draws, run.draws.shape[1]).mean(axis=(0, 1)) for run in runs])


def bias(estimates: np.ndarray, problem: Problem) -> tuple[float, float, str]:
    """Return the largest bias of any parameter, its standard error, and the verdict on the bias.

    `estimates` (runs, d) are means of runs with different seeds. Their mean minus the exact posterior mean is
    given in standard deviations of the posterior of all rows: the statistical error of an estimate without
    privacy. A tempered posterior is wider than that one, by 1/√T if both are normal. The verdict is "ok"
    unless a bias is above `MOST_BIAS` and too large for chance, by a t test with Bonferroni's correction. So
    a bias that hides in the Monte Carlo error of these few runs is "ok".
    """
    from arviz_stats.base import array_stats  # slow to import
    from scipy.stats import t

    mean, variance = problem.posterior_mean, np.diag(problem.posterior_covariance)
    uncertain = np.zeros(problem.dimension)
    if not (np.isfinite(mean).all() and np.isfinite(variance).all()):  # known from draws only
        draws = problem.reference
        mean, variance = draws.mean(axis=0), draws.var(axis=0)
        uncertain = array_stats.mcse(np.ascontiguousarray(draws.T[:, None, :]), method="mean")
    runs, d = estimates.shape
    sd = np.sqrt(problem.temperature * variance)
    biases = (estimates.mean(axis=0) - mean) / sd
    errors = np.sqrt(estimates.var(axis=0, ddof=1) / runs + uncertain**2) / sd
    large = np.abs(biases) > np.maximum(MOST_BIAS, t.isf(CHANCE / (2 * d), runs - 1) * errors)
    worst = int(np.argmax(np.abs(biases) * (large if large.any() else 1.0)))
    verdict = "ok"
    if large[worst]:
        name = (problem.parameters or [f"theta[{i}]" for i in range(d)])[worst]
        verdict = f"biased: {name} by {biases[worst]:.1f} posterior sd of all rows"
    return float(biases[worst]), float(errors[worst]), verdict


def _hopeless(trial: Trial, best: Trial | None) -> bool:
    """Return whether a pilot clips twice too much, or is much worse than the best trial with every seed."""
    if not trial.feasible:
        return trial.objective >= CLIPPED + 2.0 * CLIP_LIMIT
    if best is None:
        return False
    return all(own > HOPELESS * other for own, other in zip(trial.values, best.values, strict=False))


def _scaled(name: str, value: Any, factor: float) -> Any:
    """Return a hyperparameter times a factor; whole numbers stay whole, lists keep their proportions.

    The result is rounded, except for factor 1, so that the pinned setting is tried exactly.
    """
    if factor == 1.0:
        return value
    if isinstance(value, list):
        return [_scaled(name, item, factor) for item in value]
    if name in WHOLE_NUMBERS:
        return max(1, round(value * factor))
    return float(f"{value * factor:.{DIGITS}g}")


Progress = Callable[[int, int, str], None]


def search(
    study: Study,
    model: str,
    method: str,
    problem: Problem,
    table: Path,
    *,
    trials: int,
    seeds: int,
    begin: Callable[[Study, str, str, Problem], Bench] | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Search the free hyperparameters of one cell; return the chosen setting and its results.

    Parameters
    ----------
    problem
        Tuning data with exact draws; a user's model without a file of hyperparameters may lack them.
    table
        CSV file of the trials; an interrupted search is resumed from it.
    trials
        Number of settings to try. An equal number gives the same result; a larger one continues the table.
    seeds
        Runs of a trial, each with the study's number of chains. Finalists run with the other seeds for which
        the data set has start points.
    begin
        Function that returns the start of a search for a user's model without a file of hyperparameters.

    Raises
    ------
    DpmcError
        If there is nothing to search, for data used in evaluation, for missing hyperparameters, and if no
        setting is feasible.
    """
    _check_data(study, model, problem.dataset)
    try:
        bench = Bench(study, model, method, problem)
    except MissingSettings:
        own = ":" in model and study.epsilon_kind == "total" and not study.method(method).options
        if begin is None or not own:
            raise
        bench = begin(study, model, method, problem)
    return searched(bench, table, trials, seeds, len(problem.starts) // study.chains, progress)


def searched(
    bench: Bench, table: Path, trials: int, seeds: int, total: int, progress: Progress | None = None
) -> dict[str, Any]:
    """Search the free hyperparameters of a bench, as `search`. `total`: number of seeds with start points."""
    if total - seeds < LEAST_FINAL_SEEDS:
        left = max(0, total - seeds)
        raise DpmcError(f"seeds: {seeds} of {total} leaves finalists {left}, must leave {LEAST_FINAL_SEEDS}")
    with open_table(table, _key(bench, seeds)) as known:
        if known.set_aside:
            print(f"dpmc: {table}: trials of another search, now {known.set_aside}", file=sys.stderr)
        _propose_and_try(bench, known, trials, seeds, progress)
        finals = _finals(bench, known, trials, range(seeds, total), progress)
        return _result(bench, known, finals, trials, seeds)


def _check_data(study: Study, model: str, dataset: str) -> None:
    """Raise DpmcError for a data set of dpmc other than the model's tuning data: it is used in evaluation."""
    evaluated = study.model(model).data
    tuning = datasets.tuning_set(evaluated)
    if tuning == evaluated:
        raise DpmcError(
            f"{study.path}: models: {model}: data: {tuning}: a search would use the data of its evaluation"
        )
    if datasets.is_public(dataset) and dataset != tuning:
        raise DpmcError(f"--data: {dataset}: a search of {model} takes {tuning}, which no evaluation uses")


def _propose_and_try(bench: Bench, known: Table, trials: int, seeds: int, progress: Progress | None) -> None:
    """Fill the table up to `trials` search trials; pass those already in it to the optimiser again."""
    for number, logs, tell in _proposals(bench, trials):
        setting, done = bench.setting(logs), known.searched()
        best = min((t for t in done[:number] if t.feasible), key=lambda t: t.objective, default=None)
        if number < len(done):
            trial = done[number]
            if trial.setting != setting:
                raise DpmcError(
                    f"{known.path}: trial {number} is not what the search proposes; remove the file"
                )
        else:
            same = next((t for t in done if t.setting == setting), None)  # rounding gave an earlier setting
            same = replace(same, number=number, seconds=0.0) if same else None
            trial = same or bench.try_out(number, setting, seeds, best)
            known.add(trial)
        tell(trial.objective)
        if trial.feasible and (best is None or trial.objective < best.objective):
            best = trial
        if progress is not None:
            word = f"best MMD {best.objective:.4f}" if best else f"none can be chosen yet ({trial.verdict})"
            progress(number + 1, trials, word)


def _proposals(bench: Bench, trials: int) -> Iterator[tuple[int, list[float], Callable[[float], Any]]]:
    """Yield number, ln(factors) and a function that takes the objective, trial by trial.

    The pinned setting comes first, then random settings around it, then proposals of a tree-structured Parzen
    estimator (Bergstra et al. 2011). All follow from the cell's names and the objectives.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    free, edge = bench.free, math.log(FACTOR)
    names = ("search", bench.study.name, bench.model, bench.method)
    generator = stream(*names)
    around = 4 + 3 * len(free)
    first = np.clip(SPREAD * generator.standard_normal((around, len(free))), -edge, edge)
    first = np.concatenate([np.zeros((1, len(free))), first])
    sampler = optuna.samplers.TPESampler(
        seed=int(stream(*names, "sampler").integers(2**31)), multivariate=True, n_startup_trials=len(first)
    )
    ours = optuna.create_study(sampler=sampler)
    for logs in first:
        ours.enqueue_trial(dict(zip(free, map(float, logs), strict=True)))
    space: dict[str, Any] = {name: optuna.distributions.FloatDistribution(-edge, edge) for name in free}
    for number in range(trials):
        proposal = ours.ask(space)
        yield number, [proposal.params[name] for name in free], functools.partial(ours.tell, proposal)


def _finals(bench: Bench, known: Table, trials: int, seeds: range, progress: Progress | None) -> list[Trial]:
    """Run the pinned setting and the best trials with `seeds`, until enough of them are feasible."""
    full = sorted((t for t in known.searched()[:trials] if t.feasible), key=lambda t: (t.objective, t.number))
    others = {str(t.setting): t.setting for t in full if t.setting != bench.start}
    settings = [bench.start, *others.values()][: 1 + MOST_FINALISTS]
    finals: list[Trial] = []
    for setting in settings:
        refused = sum(not trial.feasible for trial in finals[1:])
        if len(finals) == 1 + FINALISTS + refused:
            break
        if progress is not None:
            of = min(len(settings), 1 + FINALISTS + refused)
            word = f"finalist {len(finals) + 1} of {of} runs with {len(seeds)} other seeds"
            best = min((trial.objective for trial in finals if trial.feasible), default=None)
            progress(trials, trials, word + (f", best MMD {best:.4f}" if best is not None else ""))
        found = known.find("final", setting)
        if found is None:
            found = bench.decide(len(known.trials), setting, seeds)
            known.add(found)
        finals.append(found)
    return finals


def _result(bench: Bench, known: Table, finals: list[Trial], trials: int, seeds: int) -> dict[str, Any]:
    """Return the results of a search for its file; raise DpmcError if no setting is feasible."""
    from importlib.metadata import version

    candidates = [trial for trial in finals if trial.feasible]
    if not candidates:
        searched = known.searched()[:trials]
        tried = finals if any(trial.feasible for trial in searched) else searched
        closest = min(tried, key=lambda t: t.objective)
        raise DpmcError(
            f"search: {bench.model} {bench.method}: none of {len(tried)} settings is feasible; "
            f"the closest, {closest.setting}: {closest.verdict}"
        )
    chosen = min(candidates, key=lambda t: (t.objective, t.number))
    pinned = next(trial for trial in finals if trial.setting == bench.start)
    at_bound = [name for name in bench.free if _at_bound(bench.start[name], chosen.setting[name])]
    return {
        "study": bench.study.name,
        "model": bench.model,
        "method": bench.method,
        "mode": "search",
        "hyperparameters": {**bench.pinned, **chosen.setting},
        "pinned": bench.pinned,
        "search": {
            "data": bench.problem.dataset,
            "algorithm": bench.study.method(bench.method).algorithm,
            "dimension": bench.problem.dimension,
            "epsilon": bench.study.model(bench.model).tuning_epsilon,
            "trials": trials,
            "feasible": sum(t.feasible for t in known.searched()[:trials]),
            "seeds": seeds,
            "final_seeds": chosen.seeds,
            "optimiser": f"optuna {version('optuna')}, TPE",
            "free": list(bench.free),
            "chosen": _summary(bench, chosen, seeds),
            "pinned": _summary(bench, pinned, seeds),
            "at_bound": at_bound,
            "cpu_seconds": round(sum(t.seconds for t in known.trials), 1),
        },
    }


def _summary(bench: Bench, trial: Trial, seed: int) -> dict[str, Any]:
    """Return the results of a finalist for the file; `seed` is the first that no trial of the search used."""
    names = ("mmd", "iterations", "acceptance_rate", "ratio_clip_fraction", "gradient_clip_fraction")
    values = {name: getattr(trial, name) for name in names}
    values |= {"mmd_error": median_error(trial.values), **bench.one_run(trial.setting, seed)}
    verdict = trial.verdict
    if trial.feasible:
        estimates = bench.estimates(trial.setting, range(seed, seed + trial.seeds))
        values["bias"], values["bias_error"], verdict = bias(estimates, bench.problem)
    return {name: v for name, v in values.items() if not math.isnan(v)} | {"verdict": verdict}


def warnings(found: dict[str, Any]) -> list[str]:
    """Return warnings about the result of a search, to read before spending a budget with it."""
    from dpmc.metrics.summary import ESS_LEAST

    about = found["search"]
    said = [f"{name} is on the edge of the range searched: start there" for name in about["at_bound"]]
    verdict = about["chosen"]["verdict"]
    if verdict != "ok":
        said.append(f"{verdict}: try a larger clip bound, or chains that mix better")
    ess = about["chosen"].get("ess")
    if ess is None or ess < ESS_LEAST:
        worth = "no chain that moves" if ess is None else f"{ess:.0f} independent draws"
        said.append(
            f"a run with what was found is worth {worth}: temper more (a smaller n₀: half, then a quarter), "
            "or take more rows, a larger budget or more trials"
        )
    return said


def _at_bound(pinned: Any, value: Any) -> bool:
    """Return whether a hyperparameter is within 5 % (in logs) of the edge of the range searched."""
    one, other = (item[0] if isinstance(item, list) else item for item in (value, pinned))
    return abs(math.log(one / other)) > 0.95 * math.log(FACTOR)


def sources_of_values() -> str:
    """Return a hash of the sources that determine a trial's value, besides its data and chains."""
    return sources.version("dpmc.metrics.cell", "dpmc.tuning.pinned", without=DECLARED)


def sources_of_search() -> str:
    """Return a hash of the sources that determine a search: how trials are proposed, valued and chosen."""
    return sources.version("dpmc.tuning.search", without=DECLARED)


def _key(bench: Bench, seeds: int) -> str:
    """Return a hash of everything that determines the trials of a search, except their number."""
    from importlib.metadata import version

    epsilon = bench.study.model(bench.model).tuning_epsilon
    problem = bench.problem
    content = [
        [bench.study.name, bench.model, bench.method],
        bench.study.sampling_settings(bench.model, bench.method, epsilon),
        [bench.pinned, bench.start, seeds, problem.dataset, version("optuna"), sources_of_values()],
        [FACTOR, SPREAD, DIGITS, PILOT_SEEDS, HOPELESS, LEAST_ITERATIONS, CLIP_LIMIT],
        [LONGEST, LONGEST_BY_GRADIENTS, MOST_ROWS, ITERATION],
        *(
            hashlib.sha256(array.tobytes()).hexdigest()
            for array in (problem.rows, problem.starts, problem.reference)
        ),
    ]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
