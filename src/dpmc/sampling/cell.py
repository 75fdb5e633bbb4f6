"""A cell: data, algorithm and budget of a run; everything but the seed that determines the draws."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from dpmc.base import Algorithm, Needs
from dpmc.common import checks
from dpmc.common.errors import DpmcError
from dpmc.common.roles import Role, declared, derived, fact, part
from dpmc.common.values import MOST_CHAINS
from dpmc.data.problem import Setting
from dpmc.privacy.accountants import ACCOUNTANTS, Accountant
from dpmc.privacy.accountants.persons import for_persons
from dpmc.privacy.ledger import Budget, BudgetExceeded
from dpmc.privacy.runs import RunQueries

#: A chain with fewer iterations has too short a second half to evaluate.
LEAST_ITERATIONS = 4
FREE = "spent before the first iteration"  #: what ε is if iterations ask nothing


def iterations_within(most: int | None, asked: int | None, cap: int | None, epsilon: str, kind: str) -> int:
    """Return the iterations of each chain: `asked` if given, else all that the budget and `cap` allow.

    `most` is what the budget of `epsilon` allows; None without a limit. Raises DpmcError if neither `most`
    nor `asked` is given, and BudgetExceeded if `asked` costs more than the budget.
    """
    if most is None and asked is None:
        which = "inf" if epsilon == "inf" else kind
        raise DpmcError(f"iterations: needed when epsilon is {which}, since no budget limits the chain")
    if most is not None and asked is not None and asked > most:
        raise BudgetExceeded(f"iterations: {asked} exceeds the budget: epsilon {epsilon} allows {most}")
    if asked is not None:
        return asked
    return min(limit for limit in (most, cap) if limit is not None)


DRAWS, ASKED, FILE, RELEASE = Role.DRAWS, Role.ASKED, Role.FILE, Role.RELEASE
ACCOUNTANT = checks.text("|".join(ACCOUNTANTS), "an accountant of dpmc")
ByName = Mapping[str, Any]
_P = TypeVar("_P", bound=Setting, covariant=True)  #: a setting; in the lab with its rows


@declared
@dataclass(frozen=True)
class Given:
    """What a user gave of an algorithm, as it was given; the cell's `algorithm` is made of it."""

    hyperparameters: ByName = fact(FILE | RELEASE | Role.ENTRY, check=checks.mapping, default_factory=dict)
    algorithm_id: str = fact(FILE, name="algorithm", default="")
    options: ByName = fact(FILE, default_factory=dict)  # of a method, which override hyperparameters
    study: str = fact(FILE, default="")  # its name
    calibrated: ByName | None = fact(FILE, default=None)  # all of them, if ε sets the noise


@declared
@dataclass(frozen=True)
class Cell(Generic[_P]):
    """Everything that determines the draws of a run, except the seed."""

    problem: _P = part()
    method: str = fact(FILE | RELEASE | Role.ENTRY, check=checks.label)  # label
    algorithm: Algorithm = fact(DRAWS)
    epsilon: str = fact(DRAWS | FILE | RELEASE, check=checks.epsilon)  # canonical; "inf" without a budget
    delta: float = fact(DRAWS | FILE | RELEASE, check=checks.double(1.0))
    accountant: str = fact(ASKED)  # an accountant or a preset
    chains: int = fact(DRAWS | FILE | RELEASE | Role.ENTRY, check=checks.whole(1, MOST_CHAINS), default=1)
    """Chains of one run; they share its budget."""
    iterations: int | None = fact(Role.ENTRY, check=lambda k: k is None or checks.whole(0)(k), default=None)
    """Iterations of each chain; None: all that the budget allows."""
    thin: int = fact(ASKED, default=1)  # every thin-th draw is kept
    most_draws: int | None = fact(ASKED, default=None)  # of k > most_draws, every ⌊k/most_draws⌋-th is kept
    most_iterations: int | None = fact(ASKED, default=None)  # stop there even if budget is left
    epsilon_kind: str = fact(DRAWS | FILE, default="total")
    """ε of a run; "per-iteration": no budget, the algorithm is calibrated to it."""
    rows_per_person: int = fact(DRAWS | FILE, plain=lambda m: m if m > 1 else None, default=1)
    """The budget is that of a person with up to this number of rows."""
    streams: str = fact(ASKED, default="auto")
    """What keys the random streams: "content", "names", or "auto" (`run.stream_names`)."""
    given: Given = part(default_factory=Given)

    def __post_init__(self) -> None:
        if self.rows_per_person > 1 and self.epsilon_kind != "total":
            raise DpmcError("rows_per_person: not with an epsilon per iteration, which is that of a row")

    @property
    def budget(self) -> Budget | None:
        """Return the (ε, δ) of one run; None without privacy, and if ε is per iteration."""
        if self.epsilon == "inf" or self.epsilon_kind != "total":
            return None
        return Budget(float(self.epsilon), self.delta)

    def queries(self) -> RunQueries:
        """Return the queries of a run, all chains together."""
        return RunQueries.of(self.algorithm, self.problem.n, self.chains)

    def resolved_accountant(self) -> Accountant:
        """Return the accountant that the cell's name or preset selects for its queries."""
        return for_persons(self.queries().accountant(self.accountant), self.rows_per_person)

    @functools.cached_property
    def budget_iterations(self) -> int | None:
        """Return the iterations of each chain in the budget; None without one, or if they ask nothing."""
        if self.budget is None or not self.queries().each:
            return None
        accountant, budget = self.resolved_accountant(), self.budget
        return self.queries().iterations(accountant, budget.epsilon, budget.delta)

    def allowed_iterations(self) -> int:
        """Return the iterations of each chain; DpmcError without any, BudgetExceeded for too many."""
        kind = self.epsilon_kind if self.queries().each else FREE
        asked = self.iterations or self.algorithm.default_iterations or None
        return iterations_within(self.budget_iterations, asked, self.most_iterations, self.epsilon, kind)

    iterations_made = derived(DRAWS, lambda cell: cell.allowed_iterations())
    accountant_name = derived(
        FILE | RELEASE | Role.ENTRY,
        lambda cell: cell.resolved_accountant().name,
        name="accountant",
        check=ACCOUNTANT,
    )
    accountant_version = derived(
        DRAWS, lambda cell: [cell.accountant_name, cell.resolved_accountant().version]
    )
    draws_version = derived(DRAWS | FILE, lambda cell: cell.algorithm.draws_version)
    variant = derived(FILE, lambda cell: cell.algorithm.note)  # "" for the default one
    most_of_budget = derived(
        FILE,
        lambda cell: cell.budget_iterations,
        name="budget_iterations",
        plain=lambda most: "inf" if most is None else most,
    )
    rows_per_evaluation = derived(FILE, lambda cell: cell.algorithm.batch_size or cell.problem.n)
    ratio_evaluations_per_iteration = derived(FILE, lambda cell: cell.needs.ratios)
    gradient_evaluations_per_iteration = derived(FILE, lambda cell: cell.needs.gradients)

    @property
    def needs(self) -> Needs:
        """Return what an iteration of the algorithm consumes on this problem."""
        return self.algorithm.needs(self.problem.dimension)

    def kept_every(self, iterations: int) -> int:
        """Return k if every k-th draw is kept: `thin`, or so that at most twice `most_draws` are kept.

        Raises DpmcError if the budget would be spent and no draw kept.
        """
        if 0 < iterations < self.thin:
            raise DpmcError(
                f"thin: {self.thin} must be at most {iterations}, the iterations of a chain; no draw would "
                f"be kept ({self.problem.label} {self.method} epsilon {self.epsilon})"
            )
        if self.most_draws is None or self.thin > 1:
            return self.thin
        return max(1, iterations // self.most_draws)

    def require_enough(self) -> None:
        """Raise DpmcError if the budget allows too few iterations to evaluate, unless they were asked for."""
        most = self.budget_iterations
        if self.iterations is None and most is not None and most < LEAST_ITERATIONS:
            fewer = " or fewer chains" if self.chains > 1 else ""
            raise DpmcError(f"{self.status(most)}; more noise in each (hyperparameters){fewer} buys more")

    def status(self, iterations: int) -> str:
        """Return "ok", or the reason why the chain is too short to evaluate."""
        if iterations >= LEAST_ITERATIONS:
            return "ok"
        plural = "" if iterations == 1 else "s"
        if self.iterations is not None:
            return f"too short: {iterations} iteration{plural} asked for"
        return f"budget too small: epsilon {self.epsilon} allows {iterations} iteration{plural}"
