"""Hyperparameters by search: the least median MMD at the tuning ε, among settings that clip little.

A *trial* is one setting, tried on tuning data with a few seeds; a *search* is a sequence of trials, each
proposed by an optimiser that knows the ones before. Free hyperparameters are searched as factors of the
pinned setting, on a log scale; a list of lengths has one factor. Every trial is a row of a table as soon as
it is done, and the table is all that a search remembers: one that was killed proposes the same settings again
and finds their values in it.

Settings are tried with the same seeds, hence the same noise, so that differences between them are less
random than their values. The best few are tried again with seeds that no trial has seen, beside the pinned
setting, and those seeds alone decide.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from dpmc import datasets
from dpmc.algorithms import FREE
from dpmc.comparing import median_error
from dpmc.errors import DpmcError
from dpmc.randomness import stream
from dpmc.studies import MissingSettings, Study, sources_version
from dpmc.trials import Table, Trial, open_table
from dpmc.tuning import CLIP_LIMIT, clip_fraction, medians_of

if TYPE_CHECKING:
    from dpmc.problem import Problem

#: Whose clip bound follows from the batch: the rule on clipping does not apply.
CLIP_IS_GIVEN = ("dp-barker",)
WHOLE_NUMBERS = ("steps", "batch_size")

FACTOR = 10.0  #: a hyperparameter is searched within this factor of its pinned value, either way
SPREAD = 0.5  #: sd of ln(factor) of the first settings, drawn around the pinned one
DIGITS = 3  #: significant digits of a setting; what is tried is what is written down
PILOT_SEEDS = 2  #: a hopeless setting is given up after so many seeds
LEAST_FINAL_SEEDS = 2  #: of a finalist: a median of fewer has no standard error
FINALISTS = 5  #: so many of the best trials have to keep the rule on clipping with other seeds as well
MOST_FINALISTS = 15  #: so many are tried again at most, beside the pinned setting
HOPELESS = 1.3  #: a pilot is given up where each seed's MMD is so many times that of the best trial
LONGEST = 6.0  #: a setting may cost this many times the pinned one,
LONGEST_BY_GRADIENTS = 3.0  #: or this many, where gradients are computed,
MOST_ROWS = 3e8  #: or so many rows looked at by one chain, where that is more
ITERATION = 5000.0  #: rows that an iteration costs beside those it looks at
LEAST_ITERATIONS = 20  #: of a chain: a second half worth its name

#: Sources that a trial's value comes from beside the sampler, whose changes have versions of their own.
VALUED_BY = ("metrics", "privacy/accountants")

#: Objectives of settings that are no candidates, all above any MMD (at most √2), the worse the higher.
REFUSED, TOO_FEW, CLIPPED = 4.0, 3.0, 2.0


def free_hyperparameters(study: Study, model: str, method: str) -> tuple[str, ...]:
    """What a search may choose for a study's cell; () where there is nothing to search, or to search by.

    What the method's label fixes by an option, or an ε per iteration decides, is not free. Without a budget
    to tune at, or exact draws to compare chains with, nothing is.

    Raises DpmcError where the study has no setting for the cell.
    """
    spec, how, about = study.model(model), study.method(method), study.definition(model)
    names = [name for name in FREE.get(how.algorithm, ()) if name not in how.options]
    private = spec.tuning_epsilon != "inf" and how.epsilons != ("inf",)
    if not names or not private or not hasattr(about.model, "posterior"):
        return ()
    pinned, _ = study.pinned_hyperparameters(model, method)
    decided = study.settings(method, pinned, spec.tuning_epsilon, study.number_of_rows(model))
    kept = {**pinned, **decided}
    return tuple(name for name in names if name in pinned and kept[name] == pinned[name])


def searched_pairs(study: Study) -> list[tuple[str, str]]:
    """The (model, method) that a study's searches are about: what it tunes, where there is a choice.

    Raises DpmcError where the study has no setting for one of them.
    """
    pairs = dict.fromkeys((model, method) for model, method, _ in study.cells())
    return [
        (model, method)
        for model, method in pairs
        if model in study.tuning_models
        and method in study.tuning_methods
        and free_hyperparameters(study, model, method)
    ]


class Asking(Protocol):
    """Whose hyperparameters are searched: a study, or a model given in Python (`first_setting.OneCell`)."""

    @property
    def name(self) -> str:
        """Keys random numbers."""

    def model(self, label: str) -> Any:
        """What has a `tuning_epsilon`."""

    def method(self, label: str) -> Any:
        """What has an `algorithm`."""

    def pinned_hyperparameters(self, model: str, method: str) -> tuple[dict[str, Any], str]:
        """The setting that the search begins with, and where it stands."""

    def cell(self, problem: Problem, method: str, epsilon: str, values: dict[str, Any], source: str) -> Any:
        """What runs with these hyperparameters."""

    def sampling_settings(self, model: str, method: str, epsilon: str) -> str:
        """What decides the draws beside hyperparameters and data."""


class Bench:
    """Where settings of one (study, model, method) are tried: tuning data, seeds, the pinned setting.

    `free`: what is searched, if it does not follow from a study.
    """

    def __init__(
        self, study: Asking, model: str, method: str, problem: Problem, free: tuple[str, ...] | None = None
    ) -> None:
        self.study, self.model, self.method, self.problem = study, model, method, problem
        self.pinned, self.source = study.pinned_hyperparameters(model, method)
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

    def setting(self, logs: Sequence[float]) -> dict[str, Any]:
        """The free hyperparameters at ln(factor) each, rounded."""
        return {
            name: _scaled(name, self.start[name], math.exp(x))
            for name, x in zip(self.free, logs, strict=True)
        }

    def cell(self, setting: dict[str, Any]) -> Any:
        """The cell at the tuning ε with these free hyperparameters."""
        epsilon = self.study.model(self.model).tuning_epsilon
        return self.study.cell(self.problem, self.method, epsilon, {**self.pinned, **setting}, self.source)

    def cost(self, cell: Any) -> float:
        """What one chain costs, in rows looked at; all n an iteration where their number is random."""
        rows, needs = (
            cell.algorithm.batch_size or self.problem.n,
            cell.algorithm.needs(self.problem.dimension),
        )
        return float(cell.allowed_iterations() * ((needs.ratios + needs.gradients) * rows + ITERATION))

    def run(self, cell: Any, seeds: Sequence[int]) -> list[dict[str, Any]]:
        """The metric rows of these seeds' chains."""
        from dpmc.metrics.cell import seed_metrics
        from dpmc.storage import ChainFile

        runs = self.sample(cell, seeds)
        return seed_metrics([ChainFile.of(run, {"study": self.study.name}) for run in runs], self.problem)

    def sample(self, cell: Any, seeds: Sequence[int], private_listener: Any = None) -> list[Any]:
        """The chains of these seeds."""
        from dpmc.sampling import sample  # numba is slow to import

        return sample(cell, list(seeds), private_listener=private_listener)

    def one_run(self, setting: dict[str, Any], seed: int) -> dict[str, float]:
        """What one run says of a setting, by name: `noise_sd`, the median sd of the noise of a log ratio in
        its second half, and `ess` and `rhat`, the worst of any parameter. Those that are not defined are left
        out.
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
        """The cell of a setting, and objective and verdict if it need not be run at all.

        Iterations follow from the accountant, so that these verdicts cost no chain.
        """
        try:
            cell = self.cell(setting)
            iterations = cell.allowed_iterations()
            cell.releases()  # says where a guarantee cannot be given
        except DpmcError as error:
            return None, REFUSED, f"refused: {str(error).removeprefix(self.source)}"
        if iterations < LEAST_ITERATIONS:
            return cell, TOO_FEW - iterations / LEAST_ITERATIONS, f"too few iterations: {iterations}"
        if self.cost(cell) > self.longest:
            return cell, REFUSED, f"refused: {iterations} iterations take too long"
        return cell, 0.0, "ok"

    def try_out(self, number: int, setting: dict[str, Any], seeds: int, best: Trial | None) -> Trial:
        """Try a setting with the first `seeds` seeds; give up after a pilot that leaves no hope."""
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
        """Try a finalist with seeds of its own."""
        began = time.process_time()
        cell, objective, verdict = self.refusal(setting)
        if verdict != "ok":
            return Trial(number, "final", setting, objective, verdict, 0)
        trial = self.judge(number, "final", setting, self.run(cell, seeds), len(seeds))
        return replace(trial, seconds=time.process_time() - began)

    def judge(
        self, number: int, stage: str, setting: dict[str, Any], rows: list[dict[str, Any]], seeds: int
    ) -> Trial:
        """The trial whose chains have these metrics."""
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


def _hopeless(trial: Trial, best: Trial | None) -> bool:
    """Whether a pilot clips twice too much, or is much worse than the best trial with every seed."""
    if not trial.feasible:
        return trial.objective >= CLIPPED + 2.0 * CLIP_LIMIT
    if best is None:
        return False
    return all(own > HOPELESS * other for own, other in zip(trial.values, best.values, strict=False))


def _scaled(name: str, value: Any, factor: float) -> Any:
    """A hyperparameter times a factor: a whole number stays one, a list keeps its proportions.

    Rounded, but for the factor 1: the pinned setting is tried to its last digit.
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
    """Search the free hyperparameters of one cell; return the chosen setting and what is known of it.

    Parameters
    ----------
    problem : tuning data, with exact draws to compare with; a model of one's own may lack them where no file
        has hyperparameters for it.
    table : CSV file of the trials; a search that was killed goes on from it.
    trials : settings to try. The same number gives the same answer; a larger one goes on from the table.
    seeds : runs of a trial, each of as many chains as the study's; finalists have the other seeds that the
        data set has start points for.
    begin : where to begin for a model of one's own that no file has hyperparameters for.

    Raises DpmcError where there is nothing to search, for data that chains are evaluated on, for
    hyperparameters that are missing, and where no setting is feasible.
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
    """Search what is free on a bench; `search` has the rest. `total`: seeds that have start points."""
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
    """Raises DpmcError for data of ours other than the model's tuning data: chains are evaluated on them."""
    evaluated = study.model(model).data
    tuning = datasets.tuning_set(evaluated)
    if tuning == evaluated:
        raise DpmcError(
            f"{study.path}: models: {model}: data: {tuning}: a search would see what it is judged on"
        )
    if datasets.is_public(dataset) and dataset != tuning:
        raise DpmcError(f"--data: {dataset}: a search of {model} takes {tuning}, which no evaluation uses")


def _propose_and_try(bench: Bench, known: Table, trials: int, seeds: int, progress: Progress | None) -> None:
    """Fill the table up to `trials` search trials; those that are in it are told to the optimiser again."""
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
            same = next((t for t in done if t.setting == setting), None)  # rounding met a setting again
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
    """Number, ln(factors) and a function to tell the objective, trial by trial: the optimiser's side.

    The pinned setting comes first, then settings around it at random, then what a tree-structured Parzen
    estimator (Bergstra et al. 2011) proposes. All of it follows from the cell's names and what was told.
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
    """Try the pinned setting and the best trials again, with `seeds`, until enough of them are feasible."""
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
    """What is written down of a search."""
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
    """What is written down of a finalist; `seed` is one that no trial of the search proper has seen."""
    names = ("mmd", "iterations", "acceptance_rate", "ratio_clip_fraction", "gradient_clip_fraction")
    values = {name: getattr(trial, name) for name in names}
    values |= {"mmd_error": median_error(trial.values), **bench.one_run(trial.setting, seed)}
    return {name: v for name, v in values.items() if not math.isnan(v)} | {"verdict": trial.verdict}


def warnings(found: dict[str, Any]) -> list[str]:
    """What a user should know of the answer of a search before spending a budget with it."""
    from dpmc.summary import ESS_LEAST

    about = found["search"]
    said = [f"{name} lies on the edge of what was searched: begin there" for name in about["at_bound"]]
    ess = about["chosen"].get("ess")
    if ess is None or ess < ESS_LEAST:
        worth = "no chain that moves" if ess is None else f"{ess:.0f} independent draws"
        said.append(
            f"a run with what was found is worth {worth}: more trials, more rows, a larger budget, or less "
            "of the likelihood (tempering) may help"
        )
    return said


def _at_bound(pinned: Any, value: Any) -> bool:
    """Whether a hyperparameter lies within 5 % (in logs) of the edge of what was searched."""
    one, other = (item[0] if isinstance(item, list) else item for item in (value, pinned))
    return abs(math.log(one / other)) > 0.95 * math.log(FACTOR)


def _key(bench: Bench, seeds: int) -> str:
    """A hash of all that decides the trials of a search, but for their number."""
    from importlib.metadata import version

    epsilon = bench.study.model(bench.model).tuning_epsilon
    problem = bench.problem
    content = [
        [bench.study.name, bench.model, bench.method],
        bench.study.sampling_settings(bench.model, bench.method, epsilon),
        [bench.pinned, bench.start, seeds, problem.dataset, version("optuna"), sources_version(*VALUED_BY)],
        [FACTOR, SPREAD, DIGITS, PILOT_SEEDS, HOPELESS, LEAST_ITERATIONS, CLIP_LIMIT],
        [LONGEST, LONGEST_BY_GRADIENTS, MOST_ROWS, ITERATION],
        *(
            hashlib.sha256(array.tobytes()).hexdigest()
            for array in (problem.rows, problem.starts, problem.reference)
        ),
    ]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
