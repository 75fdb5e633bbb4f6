"""Search of hyperparameters: the smallest median MMD at the tuning ε, among settings that clip little.

A *trial* is one setting, run on tuning data with a few seeds. A *search* is a sequence of trials, each
proposed by an optimiser from the earlier ones. Free hyperparameters are searched as factors of the pinned
setting on a log scale; a list of lengths has one factor. Every finished trial is a row of a table, which is
the only state of a search: an interrupted search proposes the same settings again and reads their values from
it.

Settings are run with the same seeds, so that their differences are less random than their values. The best
few and the pinned setting are run again with new seeds, which alone decide. Whether the chosen setting moves
the estimates, as a few clipped rows on one side of the posterior do, is reported and changes no choice.
"""

import hashlib
import json
import math
import operator
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from dpmc import studies
from dpmc.algorithms import algorithm_class
from dpmc.algorithms.hyperparameters import calibrated, read, searched
from dpmc.common import sources
from dpmc.common.draws import diagnostics
from dpmc.common.errors import DpmcError
from dpmc.common.progress import Progress
from dpmc.common.streams import stream
from dpmc.data import datasets
from dpmc.data.chain_files import Chains
from dpmc.data.problem import Problem
from dpmc.metrics.table import CLIP_LIMIT, Row, median_error
from dpmc.models.fingerprint import digest
from dpmc.models.trial import check_starts
from dpmc.sampling.cell import Cell
from dpmc.studies import MissingSettings, SourcedValues, Study, pinned_hyperparameters
from dpmc.tuning.pinned import clip_fraction, medians_of
from dpmc.tuning.trials import COLUMN_LINE, Trial, Trials, open_table

FACTOR = 10.0  #: a hyperparameter is searched within this factor of its pinned value, either way
SPREAD = 0.5  #: sd of ln(factor) of the first settings, drawn around the pinned one
SETTING_DIGITS = 3  #: significant digits of a setting
PILOT_SEEDS = 2  #: number of seeds after which a hopeless setting is given up
LEAST_FINAL_SEEDS = 2  #: of a finalist: a median of fewer has no standard error
FINALISTS = 5  #: number of best trials that must also keep the rule on clipping with other seeds
MOST_FINALISTS = 15  #: largest number of trials run again, besides the pinned setting
HOPELESS = 1.3  #: a pilot is given up if each seed's MMD is this many times that of the best trial
LONGEST = 6.0  #: a setting may cost this many times the pinned one,
LONGEST_BY_GRADIENTS = 3.0  #: or this many if gradients are computed,
CHAIN_ROWS = 3e8  #: or this number of rows used by one chain, if that is more
ITERATION = 5000.0  #: cost of an iteration in rows, in addition to the rows it uses
LEAST_EVALUATED = 20  #: of a chain, so that its second half can be evaluated
MOST_BIAS = 0.5  #: of an estimate, in standard deviations of the posterior of all rows
CHANCE = 0.05  #: probability that chance alone makes one of the parameters seem biased

#: What makes data and chains, whose changes have versions of their own (`dpmc.common.sources`).
VERSIONED_MODULES = (
    "dpmc.algorithms",
    "dpmc.data.chain_files",
    "dpmc.data.datasets",
    "dpmc.data.problem",
    "dpmc.evaluators",
    "dpmc.models",
    "dpmc.sampling",
    "dpmc.studies",
)

#: Objectives of settings that cannot be chosen: above any MMD (at most √2), higher for worse reasons.
IF_REFUSED, IF_TOO_FEW, IF_CLIPPED = 4.0, 3.0, 2.0

OBJECTIVE = operator.attrgetter("objective")  #: of a trial: the best has the least, the first of equal ones


def free_hyperparameters(study: Study, model: str, method: str) -> tuple[str, ...]:
    """Return the hyperparameters that neither the options of a study's method nor an ε per iteration fix.

    Empty without a budget or an exact posterior. Raises DpmcError if the study has no setting for the cell.
    """
    epsilon, how = study.model(model).tuning_epsilon, study.method(method)
    names = [name for name in searched(algorithm_class(how.algorithm)) if name not in how.options]
    exact = hasattr(studies.definition_of(study, model).model, "posterior")
    if not names or not exact or epsilon == "inf" or how.epsilons == ("inf",):
        return ()
    pinned, _ = pinned_hyperparameters(study, model, method)
    n = studies.number_of_rows(study, model)
    decided = {**pinned, **studies.calibrated_values(study, method, pinned, epsilon, n)}
    return tuple(name for name in names if name in pinned and decided[name] == pinned[name])


def searched_pairs(study: Study) -> list[tuple[str, str]]:
    """Return the (model, method) that a study searches: those it tunes that have free hyperparameters."""
    return [
        (model, method)
        for model, method in study.pairs()
        if model in study.tuning.models
        and method in study.tuning.methods
        and free_hyperparameters(study, model, method)
    ]


@dataclass
class Task:
    """What a search is about: its cell, the setting that it starts from, and how to run another one."""

    study: str  # name
    model: str
    method: str
    algorithm: str  # id
    free: tuple[str, ...]  # hyperparameters to search
    pinned: dict[str, Any]  # all hyperparameters to start from
    make: Callable[[dict[str, Any]], Cell[Problem]]  # the cell at the tuning ε with these hyperparameters

    def __post_init__(self) -> None:
        if not self.free:
            raise DpmcError(
                f"{self.model}, {self.method}: nothing to search: no free hyperparameters, budget or exact "
                "draws"
            )
        self.start = {name: self.pinned[name] for name in self.free}
        cell = self.cell(self.start)
        self.problem, self.epsilon = cell.problem, cell.epsilon
        gradients = cell.algorithm.needs(self.problem.dimension).gradients
        self.longest = max((LONGEST_BY_GRADIENTS if gradients else LONGEST) * cost(cell), CHAIN_ROWS)

    def setting(self, logs: Sequence[float]) -> dict[str, Any]:
        """Return the free hyperparameters at these ln(factor), rounded."""
        factors, rules = map(math.exp, logs), searched(algorithm_class(self.algorithm))
        known = zip(self.free, factors, strict=True)
        return {name: _scaled(self.start[name], factor, rules[name].is_whole) for name, factor in known}

    def cell(self, setting: dict[str, Any]) -> Cell[Problem]:
        """Return the cell with these free hyperparameters; all settings have the same random streams."""
        return replace(self.make({**self.pinned, **setting}), streams="names")

    def try_out(
        self, number: int, stage: str, setting: dict[str, Any], seeds: range, best: Trial | None = None
    ) -> Trial:
        """Run a setting with these seeds; in the search, give up after a hopeless pilot."""
        from dpmc.metrics.cell import second_half, seed_metrics
        from dpmc.sampling.loop import sample  # numba is slow to import

        began = time.process_time()
        trial = Trial(number, stage, setting, IF_REFUSED, "", 0)
        # Iterations follow from the accountant: what cannot be chosen is known before any chain runs.
        try:
            cell = self.cell(setting)
            iterations = cell.allowed_iterations()
            cell.queries()  # raises if a guarantee cannot be given
        except DpmcError as error:
            return replace(trial, verdict=f"refused: {error}")
        if iterations < LEAST_EVALUATED:
            objective = IF_TOO_FEW - iterations / LEAST_EVALUATED
            return replace(trial, objective=objective, verdict=f"too few iterations: {iterations}")
        if cost(cell) > self.longest:
            return replace(trial, verdict=f"refused: {iterations} iterations take too long")

        # A finalist is not given up: its seeds decide, so all of them are needed.
        pilot = PILOT_SEEDS if stage == "search" else len(seeds)
        runs: list[Chains] = []
        rows: list[Row] = []
        for part in filter(len, (seeds[:pilot], seeds[pilot:])):
            if runs and hopeless(trial, best):
                trial = replace(trial, verdict=f"given up after {len(runs)} seeds: {trial.verdict}")
                break
            chains = sample(cell, list(part))
            runs += chains
            rows += seed_metrics(chains, self.problem)
            medians = medians_of(rows)
            values = [float(row["value"]) for row in rows if row["metric"] == "mmd"]
            clipped = clip_fraction(medians) or 0.0
            objective, verdict = medians.get("mmd", IF_REFUSED), "ok"
            if len(values) < len(runs):
                objective, verdict = IF_REFUSED, "no MMD for some seeds"
            elif clipped >= CLIP_LIMIT and not cell.algorithm.clips_by_batch:
                objective, verdict = IF_CLIPPED + clipped, f"clipped: {clipped:.3f}"
            measured: dict[str, Any] = {**medians, "iterations": int(medians.get("iterations", 0))}
            trial = Trial(number, stage, setting, objective, verdict, len(runs), values=values, **measured)
        if stage == "final":
            halves = (second_half(run.draws, run.draws.shape[1]) for run in runs)
            trial = replace(trial, means=[half.mean(axis=(0, 1)).tolist() for half in halves])
        return replace(trial, seconds=time.process_time() - began)

    def key(self, seeds: int) -> str:
        """Return a hash of everything that determines the trials of a search, except their number."""
        from dpmc.sampling.run import file_identity

        cell = self.cell(self.start)
        content = [
            [self.study, self.model, self.method, seeds],
            [self.pinned, self.start, file_identity(cell, 0)],
            [FACTOR, SPREAD, SETTING_DIGITS, PILOT_SEEDS, HOPELESS, LEAST_EVALUATED, CLIP_LIMIT],
            [LONGEST, LONGEST_BY_GRADIENTS, CHAIN_ROWS, ITERATION],
            # Changes of what values a trial; `file_identity` covers what makes its data and chains.
            sources.sources_version("dpmc.metrics.cell", "dpmc.tuning.pinned", without=VERSIONED_MODULES),
            [version("optuna"), COLUMN_LINE],
            digest(self.problem.starts, self.problem.exact.reference),
        ]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def task_of_study(study: Study, model: str, method: str, problem: Problem) -> Task:
    """Return the task of a study's cell, which starts from its pinned setting.

    A user's `module:Class` without a pinned setting starts from a first one, all of which is free, and may
    lack exact draws. Raises DpmcError for data used in evaluation, and for missing settings.
    """
    how, epsilon, evaluated = study.method(method), study.model(model).tuning_epsilon, study.model(model).data
    tuning = datasets.tuning_set(evaluated)
    if tuning == evaluated:
        raise DpmcError(
            f"{study.path}: models: {model}: data: {tuning}: a search would use the data of its evaluation"
        )
    if datasets.is_public(problem.dataset) and problem.dataset != tuning:
        raise DpmcError(
            f"--data: {problem.dataset}: a search of {model} takes {tuning}, which no evaluation uses"
        )

    def make(values: dict[str, Any]) -> Cell[Problem]:
        return studies.make_cell(study, problem, method, epsilon, given._replace(values=values))

    try:
        given = pinned_hyperparameters(study, model, method)
        free = free_hyperparameters(study, model, method)
    except MissingSettings:
        if ":" not in model or study.epsilon_kind != "total" or how.options:
            raise
        from dpmc.tuning.first_setting import first_setting  # numba is slow to import

        given = SourcedValues({}, "hyperparameters")  # its source is the place in errors of `make`
        given = given._replace(values=first_setting(how.algorithm, problem, {}, make))
        free = tuple(name for name in searched(algorithm_class(how.algorithm)) if name in given.values)
    return Task(study.name, model, method, how.algorithm, free, given.values, make)


def task_of_cell(cell: Cell[Problem], given: dict[str, Any], kept: dict[str, Any]) -> Task:
    """Return the task of a cell, from hyperparameters `given` or a first setting; `kept` are not searched."""
    from dpmc.tuning.first_setting import first_setting  # numba is slow to import

    def make(values: dict[str, Any]) -> Cell[Problem]:
        cls, about = algorithm_class(cell.method), (cell.delta, cell.problem.n, cell.rows_per_person)
        values = calibrated(cls, values, float(cell.epsilon), *about)
        return replace(cell, algorithm=read(cls, values, "hyperparameters", cell.problem.dimension))

    algorithm, pinned = cell.method, first_setting(cell.method, cell.problem, given, make, kept)
    free = tuple(name for name in searched(algorithm_class(algorithm)) if name in pinned.keys() - kept)
    return Task("", cell.problem.label, algorithm, algorithm, free, pinned, make)


def cost(cell: Cell[Problem]) -> float:
    """Return the cost of one chain in rows used; n per iteration if their number is random."""
    needs = cell.algorithm.needs(cell.problem.dimension)
    rows = cell.algorithm.batch_size or cell.problem.n
    return float(cell.allowed_iterations() * ((needs.ratios + needs.gradients) * rows + ITERATION))


def bias(estimates: np.ndarray, problem: Problem) -> tuple[float, float, str]:
    """Return the largest bias of any parameter, its standard error, and the verdict on the bias.

    `estimates` (runs, d) are means of runs with different seeds. Their mean minus the exact posterior mean is
    given in standard deviations of the posterior of all rows: the statistical error of an estimate without
    privacy. A tempered posterior is wider than that one, by 1/√T if both are normal and the prior is flat.
    The verdict is "ok" unless a bias is above `MOST_BIAS` and too large for chance, by a t test with
    Bonferroni's correction. So a bias that hides in the Monte Carlo error of these few runs is "ok".
    """
    from scipy.stats import t

    mean, variance = problem.exact.posterior_mean, np.diag(problem.exact.posterior_covariance)
    uncertain = np.zeros(problem.dimension)
    if not (np.isfinite(mean).all() and np.isfinite(variance).all()):  # known from draws only
        draws = problem.exact.reference
        mean, variance = draws.mean(axis=0), draws.var(axis=0)
        uncertain = diagnostics(draws[None]).mcse
    runs, d = estimates.shape
    sd = np.sqrt(problem.temperature * variance)
    biases = (estimates.mean(axis=0) - mean) / sd
    errors = np.sqrt(estimates.var(axis=0, ddof=1) / runs + uncertain**2) / sd
    large = np.abs(biases) > np.maximum(MOST_BIAS, t.isf(CHANCE / (2 * d), runs - 1) * errors)
    # The largest of those that are too large; if none is, the largest of all.
    worst = int(np.argmax(np.abs(biases) * (large if large.any() else 1.0)))
    verdict = "ok"
    if large[worst]:
        name = (problem.parameters or [f"theta[{i}]" for i in range(d)])[worst]
        verdict = f"biased: {name} by {biases[worst]:.1f} posterior sd of all rows"
    return float(biases[worst]), float(errors[worst]), verdict


def hopeless(trial: Trial, best: Trial | None) -> bool:
    """Return whether a pilot clips twice too much, or is much worse than the best trial with every seed."""
    if not trial.feasible:
        return trial.objective >= IF_CLIPPED + 2.0 * CLIP_LIMIT
    if best is None:
        return False
    return all(own > HOPELESS * other for own, other in zip(trial.values, best.values, strict=False))


def _scaled(value: Any, factor: float, is_whole: bool) -> Any:
    """Return a value times a factor, rounded unless that is 1; whole stays whole, lists keep proportions."""
    if factor == 1.0:
        return value
    if isinstance(value, list):
        return [_scaled(item, factor, is_whole) for item in value]
    if is_whole:
        return max(1, round(value * factor))
    return float(f"{value * factor:.{SETTING_DIGITS}g}")


def search(
    task: Task, table: Path, trials: int, seeds: int, total: int, progress: Progress | None = None
) -> dict[str, Any]:
    """Search the free hyperparameters of a task; return the chosen setting and its results.

    `table`: CSV file of the trials, from which an interrupted search is resumed. An equal number of `trials`
    gives the same result; a larger one continues the table. `seeds`: runs of a trial; finalists run with the
    other seeds of the `total` for which the data set has start points.

    Raises DpmcError if finalists get too few seeds, and if no setting is feasible.
    """
    if total - seeds < LEAST_FINAL_SEEDS:
        left = max(0, total - seeds)
        raise DpmcError(f"seeds: {seeds} of {total} leaves finalists {left}, must leave {LEAST_FINAL_SEEDS}")
    check_starts(task.problem.model, task.problem.starts[: total * task.cell(task.start).chains])
    with open_table(table, task.key(seeds)) as known:
        _propose_and_try(task, known, trials, seeds, progress)
        finals = _finals(task, known, trials, range(seeds, total), progress)
        return _result(task, known, finals, trials, seeds)


def _propose_and_try(task: Task, known: Trials, trials: int, seeds: int, progress: Progress | None) -> None:
    """Fill the table up to `trials` search trials; pass those already in it to the optimiser again.

    The pinned setting comes first, then random settings around it, then proposals of a tree-structured Parzen
    estimator (Bergstra et al. 2011). All follow from the cell's names and the objectives.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    edge, names = math.log(FACTOR), ("search", task.study, task.model, task.method)
    around = 4 + 3 * len(task.free)
    first = np.clip(SPREAD * stream(*names).standard_normal((around, len(task.free))), -edge, edge)
    first = np.concatenate([np.zeros((1, len(task.free))), first])
    sampler = optuna.samplers.TPESampler(
        seed=int(stream(*names, "sampler").integers(2**31)), multivariate=True, n_startup_trials=len(first)
    )
    optimiser = optuna.create_study(sampler=sampler)
    for logs in first:
        optimiser.enqueue_trial(dict(zip(task.free, map(float, logs), strict=True)))
    space: dict[str, Any] = {name: optuna.distributions.FloatDistribution(-edge, edge) for name in task.free}
    best: Trial | None = None
    for number in range(trials):
        proposal, done = optimiser.ask(space), known.stage("search")
        setting = task.setting([proposal.params[name] for name in task.free])
        if number < len(done):
            trial = done[number]
            if trial.setting != setting:
                raise DpmcError(
                    f"{known.path}: trial {number} is not what the search proposes; remove the file"
                )
        else:
            same = known.find("search", setting)  # rounding gave an earlier setting
            if same:
                trial = replace(same, number=number, seconds=0.0)
            else:
                trial = task.try_out(number, "search", setting, range(seeds), best)
            known.add(trial)
        optimiser.tell(proposal, trial.objective)
        if trial.feasible and (best is None or trial.objective < best.objective):
            best = trial
        if progress is not None:
            word = f"best MMD {best.objective:.4f}" if best else f"none can be chosen yet ({trial.verdict})"
            progress(number + 1, trials, word)


def _finals(task: Task, known: Trials, trials: int, seeds: range, progress: Progress | None) -> list[Trial]:
    """Run the pinned setting and the best trials with `seeds`, until enough of them are feasible."""
    ranked = sorted((t for t in known.stage("search")[:trials] if t.feasible), key=OBJECTIVE)
    # By setting, because rounding may have led to one twice; the first is the best.
    others = {str(t.setting): t.setting for t in ranked if t.setting != task.start}
    settings = [task.start, *others.values()][: 1 + MOST_FINALISTS]
    finals: list[Trial] = []
    for setting in settings:
        # Without the pinned setting, which runs in any case.
        refused = sum(not trial.feasible for trial in finals[1:])
        if len(finals) == 1 + FINALISTS + refused:
            break
        if progress is not None:
            progress(trials, trials, f"finalist {len(finals) + 1} runs with {len(seeds)} other seeds")
        trial = known.find("final", setting)
        if trial is None:
            trial = task.try_out(len(known.trials), "final", setting, seeds)
            known.add(trial)
        finals.append(trial)
    return finals


def _result(task: Task, known: Trials, finals: list[Trial], trials: int, seeds: int) -> dict[str, Any]:
    """Return the results of a search for its file; raise DpmcError if no setting is feasible."""
    tried = known.stage("search")[:trials]
    feasible = [trial for trial in finals if trial.feasible]
    if not feasible:
        failed = finals if any(trial.feasible for trial in tried) else tried
        closest = min(failed, key=OBJECTIVE)
        raise DpmcError(
            f"search: {task.model} {task.method}: none of {len(failed)} settings is feasible; "
            f"the closest, {closest.setting}: {closest.verdict}"
        )
    chosen, pinned = min(feasible, key=OBJECTIVE), finals[0]
    # Within 5 % (in logs) of the edge of the range searched.
    factors = {name: np.ravel(chosen.setting[name])[0] / np.ravel(task.start[name])[0] for name in task.free}
    at_bound = [name for name, x in factors.items() if abs(math.log(x)) > 0.95 * math.log(FACTOR)]
    return {
        "study": task.study,
        "model": task.model,
        "method": task.method,
        "mode": "search",
        "hyperparameters": {**task.pinned, **chosen.setting},
        "pinned": task.pinned,
        "search": {
            "data": task.problem.dataset,
            "algorithm": task.algorithm,
            "dimension": task.problem.dimension,
            "epsilon": task.epsilon,
            "trials": trials,
            "feasible": sum(trial.feasible for trial in tried),
            "seeds": seeds,
            "final_seeds": chosen.seeds,
            "optimiser": f"optuna {version('optuna')}, TPE",
            "free": list(task.free),
            "chosen": _summary(task, chosen, seeds),
            "pinned": _summary(task, pinned, seeds),
            "at_bound": at_bound,
            "cpu_seconds": round(sum(trial.seconds for trial in known.trials), 1),
        },
    }


def _summary(task: Task, trial: Trial, seed: int) -> dict[str, Any]:
    """Return the results of a finalist for the file, without undefined ones.

    `noise_sd`, `ess` and `rhat` are those of one run with `seed`: the median sd of a log ratio's noise in the
    second half, and the worst of any parameter. `ess` is 0 for chains that never moved.
    """
    from dpmc.metrics.cell import convergence, second_half
    from dpmc.sampling.loop import sample

    names = ("mmd", "iterations", "acceptance_rate", "ratio_clip_fraction", "gradient_clip_fraction")
    values = {name: getattr(trial, name) for name in names}
    values["mmd_error"], verdict = median_error(trial.values), trial.verdict
    if trial.seeds:  # it was not refused
        blocks: list[np.ndarray] = []
        (run,) = sample(task.cell(trial.setting), [seed], private_listener=blocks.append)
        sds = np.concatenate(blocks, axis=1)
        late = sds[:, sds.shape[1] // 2 :]
        if (late > 0.0).any():
            values["noise_sd"] = float(np.median(late[late > 0.0]))
        try:
            worst = convergence(second_half(run.draws, run.draws.shape[1]))
            values |= {"ess": round(worst["ess_bulk_min"], 1), "rhat": round(worst["rhat_max"], 3)}
        except ValueError:  # chains that never moved
            values["ess"] = 0.0
    if trial.feasible:
        values["bias"], values["bias_error"], verdict = bias(np.array(trial.means), task.problem)
    return {name: v for name, v in values.items() if not math.isnan(v)} | {"verdict": verdict}


def warnings(result: dict[str, Any]) -> list[str]:
    """Return warnings about the result of a search, to read before spending a budget with it."""
    from dpmc.metrics.summary import ESS_LEAST

    about = result["search"]
    texts = [f"{name} is on the edge of the range searched: start there" for name in about["at_bound"]]
    verdict, ess = about["chosen"]["verdict"], about["chosen"]["ess"]
    if verdict != "ok":
        texts.append(f"{verdict}: try a larger clip bound, or chains that mix better")
    if ess < ESS_LEAST:
        worth = "no chain that moves" if ess == 0.0 else f"{ess:.0f} independent draws"
        texts.append(
            f"a run with what was found is worth {worth}: temper more (a smaller n₀: half, then a quarter), "
            "or take more rows, a larger budget or more trials"
        )
    return texts
