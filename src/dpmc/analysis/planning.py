"""`dpmc.plan`: how wide intervals will be, from simulated tables. No private row is read."""

from __future__ import annotations

import math
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from dpmc.algorithms import ALGORITHMS, algorithm_class, with_fact
from dpmc.algorithms.hyperparameters import calibrated, read
from dpmc.analysis.fitting import model_of
from dpmc.analysis.plan import Plan, Prediction
from dpmc.api import delta_for, named_model
from dpmc.common.errors import DpmcError
from dpmc.common.progress import live_line
from dpmc.common.streams import canonical_epsilon, stream
from dpmc.common.values import MOST_ROWS_PER_PERSON, STARTS, array, checked, count, shown
from dpmc.data import datasets
from dpmc.data.problem import Exact, Problem
from dpmc.metrics.cell import second_half_of
from dpmc.models.regression import Regression
from dpmc.models.trial import check_starts
from dpmc.sampling.cell import LEAST_ITERATIONS, Cell
from dpmc.sampling.loop import sample
from dpmc.tuning.first_setting import first_setting, without_privacy

if TYPE_CHECKING:
    from pathlib import Path

    from dpmc.base import Question
    from dpmc.models import Definition
    from dpmc.models.codebook import Codebook

TWINS = 3  #: simulated tables
MOST_TWIN_ROWS = 10_000  #: that are simulated of a table; each stands for equally many of its rows
RESIDUAL_SD = "residual sd"
TWIN_DRAWS = 4000  #: of a posterior, of which widths are taken
BESIDES = 1.0  #: seconds of a fit besides its sums
MOST_TWIN_ITERATIONS = 20_000  #: of a chain, to bound the time
LEAST_WIDTH = 0.9  #: of that without privacy; a chain below it has not moved enough, and says nothing
PRIOR_SHARE = 0.5  #: of the prior's sd; from it on the prior decides an interval
#: Among which the least is looked for at which a method is not refused.
TRIED_EPSILONS = [
    m * 10.0**k for k in (-2, -1, 0, 1) for m in (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
]
#: η of a mean outcome, by support of a family.
LINKS = {"counts": math.log, "binary": lambda share: math.log(share / (1.0 - share))}


def plan(
    model: object,
    codebook: Codebook | Mapping[str, Any] | str | Path | None = None,
    *,
    family: str = "linear",
    n: int | Sequence[int] | None = None,
    epsilon: float | str | Sequence[float | str],
    delta: float | None = None,
    guess: Mapping[str, float] | None = None,
    methods: str | Sequence[str] | None = None,
    rows_per_person: int = 1,
    progress: bool = True,
    **options: Any,
) -> Plan:
    """Predict how wide 90 % intervals will be at each n and ε, on simulated rows. No private row is read.

    Parameters
    ----------
    model
        A formula, with `codebook`, `family` and `options` as in `dpmc.fit`; or a model as in `dpmc.sample`,
        which has `simulate(generator, theta, n)`.
    n
        Number of rows, one or several; None: the model's `n`.
    epsilon, delta, rows_per_person
        Budgets, one or several; as in `dpmc.fit`. δ is by default 0.1/n.
    guess
        Public guesses of parameters by name, in the model's units, for the others its `true_theta`, by
        default 0. Of a regression with a codebook the intercept's follows from the outcome's `centre` or
        `share`.
    methods
        None: the method that asks once and answers for this model. Chains are tried if they are named here,
        such as "dp-penalty", with hyperparameters that one simulated table suggests: that takes minutes.
    progress
        Show which chains are tried on standard error.

    Raises
    ------
    DpmcError
        If the model cannot simulate rows, or an argument is wrong.
    """
    if isinstance(model, str) and "~" in model:
        if codebook is None:
            raise DpmcError(f"codebook: needed by the formula {shown(model)}")
        model = model_of(model, codebook, family, **options)
    elif codebook is not None or options:
        raise DpmcError(f"{next(iter(options), 'codebook')}: only with a formula; the model has its own")
    label, name, definition = named_model(model)
    definition = replace(definition, true_theta=_guessed(definition, guess or {}))
    sizes = [checked("n", count, one) for one in _several(definition.n or None if n is None else n)]
    budgets = [canonical_epsilon(one) for one in _several(epsilon)]
    if not sizes or not budgets or "inf" in budgets:
        raise DpmcError("n, epsilon: needed, numbers of rows and finite budgets")
    names = _named(methods)
    person = checked("rows_per_person", count, rows_per_person, 1, MOST_ROWS_PER_PERSON)
    has_chains = any(not algorithm_class(each).asks for each in names)
    found: list[Prediction] = []
    for rows in sizes:
        twins = Twins.of(label, name, definition, rows, rows if has_chains else min(rows, MOST_TWIN_ROWS))
        for total in budgets:
            cell = Cell(
                problem=twins.problems[0],
                method="",
                algorithm=None,  # type: ignore[arg-type]  # each method has its own
                epsilon=total,
                delta=delta_for(delta, rows),
                accountant="tight",
                most_iterations=MOST_TWIN_ITERATIONS,
                rows_per_person=person,
                streams="names",
            )
            found += [
                twins.predicted(replace(cell, method=each), progress) for each in names or [twins.suited]
            ]
    return Plan(twins.model, tuple(found), twins.notes)


@dataclass
class Twins:
    """Simulated tables of n rows, asked in the place of private data.

    Each has m rows that stand for n/m rows of a table, which is a table of n rows, too: its sums are those
    of m rows times n/m. Their noise is that of n rows.
    """

    problems: list[Problem]  # temperatures are those of m rows that count as n
    n: int
    temperature: float  # of n rows
    generator: np.random.Generator = field(default_factory=np.random.default_rng)  # of noise
    seconds: float = 0.0  # of a method on one table of n rows, about

    @classmethod
    def of(cls, label: str, name: str, definition: Definition, n: int, m: int) -> Twins:
        """Simulate m rows of each table of n, of a model."""
        temperature = definition.temperature(n)
        simulated = definition if m == n else replace(definition, tempering=None)
        problems: list[Problem] = []
        for k in range(TWINS):
            made = datasets.build(label, name, f"fresh-{k}", m, STARTS, definition=simulated)
            if m < n:
                of_n = replace(made, temperature=temperature * n / m, exact=Exact.unknown(made.dimension))
                made = datasets.with_exact(of_n)
            check_starts(made.model, made.starts[:1])
            problems.append(made)
            made.tried = problems[0].tried  # it is one model
        return cls(problems, n, temperature)

    @property
    def runs(self) -> int:
        """Return the number of tables, as of `PrivateData`."""
        return len(self.problems)

    def answers(self, questions: Sequence[Question]) -> np.ndarray:
        """Return the noisy numbers (tables, N) of a question to each table, in units of their noise."""
        began, pairs = time.process_time(), zip(questions, self.problems, strict=True)
        totals = [one.total(problem.rows) * (self.n / len(problem.rows)) for one, problem in pairs]
        self.seconds += (time.process_time() - began) * self.n / len(self.problems[0].rows) / self.runs
        return np.array([total + self.generator.standard_normal(len(total)) for total in totals])

    @cached_property
    def model(self) -> Any:
        """Return the user's model."""
        return getattr(self.problems[0].model, "given", self.problems[0].model)

    @cached_property
    def suited(self) -> str:
        """Return the method that asks once and answers for this model; raise DpmcError if there is none."""
        first = self.problems[0]
        for name in with_fact("is_planned"):
            with suppress(DpmcError):
                cast(Any, algorithm_class(name)).first_values(first.model, first.rows)
                return name
        raise DpmcError(
            f"model: {first.label}: none of {', '.join(with_fact('is_planned'))} answers for it; methods="
            '"simulated-scores" may, methods="dp-penalty" tries chains, which takes minutes'
        )

    @cached_property
    def without_privacy(self) -> np.ndarray:
        """Return half widths (d,) of 90 % intervals without privacy, in the table's units."""
        pairs = enumerate(self.problems)
        return self.widths([without_privacy(one, drawing(k), TWIN_DRAWS) for k, one in pairs])

    def widths(self, draws: list[np.ndarray]) -> np.ndarray:
        """Return half widths of 90 % intervals of draws (m, d) on each table, in the table's units; mean."""
        matrix, shift = self.units
        own = [one @ matrix.T + shift for one in draws]
        for one in own if self.names[-1] == RESIDUAL_SD else ():
            one[:, -1] = np.exp(one[:, -1])
        sides = [np.quantile(one, [0.05, 0.95], axis=0) for one in own]
        return np.asarray(np.mean([0.5 * (high - low) for low, high in sides], axis=0))

    @cached_property
    def units(self) -> tuple[np.ndarray, np.ndarray]:
        """Return A (d, d), b (d,): A θ + b are in the table's units, or θ itself where it has none."""
        with suppress(DpmcError, AttributeError):
            return cast(tuple[np.ndarray, np.ndarray], self.model.own_units())
        return np.eye(self.problems[0].dimension), np.zeros(self.problems[0].dimension)

    def predicted(self, cell: Cell[Problem], progress: bool) -> Prediction:
        """Return what a cell's method gives, with hyperparameters that the first table suggests."""
        cls, first, values = cast(Any, algorithm_class(cell.method)), self.problems[0], dict[str, Any]()

        def make(values: dict[str, Any]) -> Cell[Problem]:
            return replace(cell, algorithm=read(cls, values, "plan", first.dimension))

        def allowed(epsilon: float) -> Cell[Problem]:
            noisy = calibrated(cls, values, epsilon, cell.delta, self.n, cell.rows_per_person)
            made = replace(make(noisy), epsilon=canonical_epsilon(epsilon))
            made.algorithm.check(first.model, self.n, self.temperature)
            if made.allowed_iterations() < LEAST_ITERATIONS:
                raise DpmcError("the budget allows too few iterations")
            return made

        about = Prediction(self.n, float(cell.epsilon), cell.method)
        try:
            if cls.asks:
                values = cls.first_values(first.model, first.rows)
            else:
                values = first_setting(cell.method, first, {}, make)
            made, self.seconds = allowed(about.epsilon), BESIDES
            draws = self.asked(made.algorithm) if cls.asks else self.sampled(made, progress)
        except DpmcError as error:
            text = str(error).removeprefix(f"{cell.method}: ") + advice(allowed, about.epsilon)
            return about._replace(obstacle=text)
        return self.judged(about._replace(hyperparameters=values, seconds=self.seconds), draws)

    def asked(self, algorithm: Any) -> list[np.ndarray]:
        """Return draws (m, d) from the posterior given the answers of each table."""
        # Equal noise at each ε, and equal draws without privacy: widths then differ by ε alone.
        model, self.generator = self.problems[0].model, stream("plan", str(self.n))
        answers = algorithm.ask(model, self)
        posteriors = [algorithm.posterior(one, model, self.n, self.temperature) for one in answers]
        return [one.draws(drawing(k), TWIN_DRAWS) for k, one in enumerate(posteriors)]

    def sampled(self, cell: Cell[Problem], progress: bool) -> list[np.ndarray]:
        """Return draws (m, d) of chains on each table."""
        found = []
        for k, problem in enumerate(self.problems, 1):
            report = live_line(f"plan {cell.method}, table {k} of {self.runs}") if progress else None
            began = time.process_time()
            (chain,) = sample(replace(cell, problem=problem), [0], progress=report)
            self.seconds += (time.process_time() - began) / self.runs
            found.append(second_half_of(chain).reshape(-1, problem.dimension))
        return found

    def judged(self, about: Prediction, draws: list[np.ndarray]) -> Prediction:
        """Return a prediction with the widths of draws (m, d) on each table."""
        names, widths, without = self.names, self.widths(draws), self.without_privacy
        if not algorithm_class(about.method).asks and (widths / without).mean() < LEAST_WIDTH:
            times = f"intervals {(widths / without).mean():.2g} times as wide as without privacy"
            return about._replace(obstacle=f"chains have moved too little to say more: {times}")
        sds = np.mean([one.std(axis=0) for one in draws], axis=0)
        by_prior = sds >= PRIOR_SHARE * np.asarray(getattr(self.model, "prior_sd", np.inf), float)
        return about._replace(
            half_widths=dict(zip(names, widths.tolist(), strict=True)),
            without_privacy=dict(zip(names, without.tolist(), strict=True)),
            by_prior=tuple(name for name, is_so in zip(names, by_prior, strict=True) if is_so),
        )

    @cached_property
    def names(self) -> list[str]:
        """Return the names of what has a width."""
        first = self.problems[0]
        names = list(first.parameters or (f"theta[{i}]" for i in range(first.dimension)))
        is_sd = isinstance(self.model, Regression) and names[-1] == "log_sd"
        return [*names[:-1], RESIDUAL_SD] if is_sd else names

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what the numbers assume, as lines."""
        first, theta = self.problems[0], self.problems[0].true_theta
        pairs = zip(first.parameters or self.names, theta, strict=True)
        values = "".join(f"{name} = {value:.3g}, " for name, value in pairs if value)
        said = [
            f"assumes: {values}parameters {'else ' if values else ''}0; guess= or true_theta say otherwise"
        ]
        if isinstance(self.model, Regression):
            said += [
                "assumes: predictors as declared, independent; a rare level or 0/1 column has wide intervals"
            ]
            if self.names[-1] == RESIDUAL_SD:
                sd = math.exp((self.units[0] @ theta + self.units[1])[-1])
                said += [f"assumes: residual sd {sd:.3g}; half widths are about proportional to it"]
            said += [self.model.caution] if self.model.caution else []
            if (beyond := self.model.design.beyond_norm(first.rows)) is not None:
                said += [f"norm: {np.mean(beyond):.1%} of simulated rows are longer and shortened"]
        return tuple(said)


def drawing(table: int) -> np.random.Generator:
    """Return the generator of a table's posterior draws."""
    return stream("plan", "draws", str(table))


def advice(allowed: Callable[[float], object], epsilon: float) -> str:
    """Return the ε at which a method is not refused, as a clause; "" if it is not, or always, refused."""

    def is_allowed(tried: float) -> bool:
        with suppress(DpmcError):
            allowed(tried)
            return True
        return False

    larger = [tried for tried in TRIED_EPSILONS if tried > epsilon]
    place = bisect_left(larger, True, key=is_allowed)
    return "" if is_allowed(epsilon) or place == len(larger) else f"; epsilon {larger[place]:g} would do"


def _several(value: Any) -> tuple[Any, ...]:
    """Return one value, or several, as a tuple; None is none."""
    if value is None:
        return ()
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else (value,)


def _named(methods: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the methods that are named; raise DpmcError for one that cannot be tried."""
    names = _several(methods)
    known = [
        name for name in ALGORITHMS if algorithm_class(name).asks or algorithm_class(name).first_iterations
    ]
    if wrong := [name for name in names if name not in known]:
        raise DpmcError(f"methods: {shown(wrong[0])} must be one of {', '.join(known)}")
    return names


def _guessed(definition: Definition, guess: Mapping[str, float]) -> tuple[float, ...]:
    """Return the parameters at which rows are simulated; raise DpmcError for an unknown name."""
    theta, model = (
        list(definition.true_theta),
        cast(Any, getattr(definition.model, "given", definition.model)),
    )
    names = list(getattr(model, "parameters", ())) or [f"theta[{i}]" for i in range(len(theta))]
    book = model.design.codebook if isinstance(model, Regression) else None
    if book is not None and not any(theta) and model.design.intercept and model.family.support in LINKS:
        outcome = book.field(model.columns[0])
        mean = outcome.share if outcome.type == "boolean" else outcome.centre
        theta[0] = 0.0 if mean is None else LINKS[model.family.support](mean)
    for name, value in guess.items():
        if name not in names:
            raise DpmcError(f"guess: {shown(name)} must be one of {', '.join(names)}")
        theta[names.index(name)] = float(array([value], (1,), f"guess: {name}")[0])
    return tuple(theta)
