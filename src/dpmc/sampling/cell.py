"""A cell: data, algorithm and budget of a run; everything but the seed that determines the draws."""

import functools
import json
from dataclasses import dataclass
from typing import Any

from dpmc.base import Algorithm
from dpmc.common.errors import DpmcError
from dpmc.data.problem import Problem
from dpmc.privacy.accountants import Accountant
from dpmc.privacy.accountants.persons import for_persons
from dpmc.privacy.ledger import Budget, BudgetExceeded
from dpmc.privacy.runs import RunReleases

#: A chain with fewer iterations has too short a second half to evaluate.
LEAST_ITERATIONS = 4
FREE = "spent before the first iteration"  #: what ε is if iterations release nothing


def iterations_within(most: int | None, asked: int | None, cap: int | None, epsilon: str, kind: str) -> int:
    """Return the iterations of each chain: `asked` if given, else all that the budget and `cap` allow.

    `most` is what the budget of `epsilon` allows; None without a budget. Raises DpmcError if neither `most`
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


@dataclass(frozen=True)
class Cell:
    """Everything that determines the draws of a run, except the seed."""

    problem: Problem
    method: str  # label
    algorithm: Algorithm
    epsilon: str  # canonical; "inf" without a budget
    delta: float
    accountant: str  # an accountant or a preset
    chains: int = 1  # chains of one run; they share its budget
    iterations: int | None = None  # of each chain; None: all that the budget allows
    thin: int = 1  # every thin-th draw is kept
    most_draws: int | None = None  # of k > most_draws, every ⌊k/most_draws⌋-th is kept
    most_iterations: int | None = None  # stop there even if budget is left
    epsilon_kind: str = "total"  # of a run; "per-iteration": no budget, the algorithm is calibrated to it
    rows_per_person: int = 1  # the budget is that of a person with up to this number of rows
    streams: str = "auto"  # what keys the random streams: "content", "names", or "auto" (`run.stream_names`)

    def __post_init__(self) -> None:
        if self.rows_per_person > 1 and self.epsilon_kind != "total":
            raise DpmcError("rows_per_person: not with an epsilon per iteration, which is that of a row")

    @property
    def budget(self) -> Budget | None:
        """Return the (ε, δ) of one run; None without privacy, and if ε is per iteration."""
        if self.epsilon == "inf" or self.epsilon_kind != "total":
            return None
        return Budget(float(self.epsilon), self.delta)

    def releases(self) -> RunReleases:
        """Return the releases of a run, all chains together."""
        return RunReleases.of(self.algorithm, self.problem.n, self.chains)

    def resolved_accountant(self) -> Accountant:
        """Return the accountant that the cell's name or preset selects for its releases."""
        return for_persons(self.releases().accountant(self.accountant), self.rows_per_person)

    @functools.cached_property
    def budget_iterations(self) -> int | None:
        """Return the iterations of each chain that the budget allows.

        None without a budget, and if iterations release nothing.
        """
        if self.budget is None or not self.releases().each:
            return None
        accountant, budget = self.resolved_accountant(), self.budget
        return self.releases().iterations(accountant, budget.epsilon, budget.delta)

    def allowed_iterations(self) -> int:
        """Return the iterations of each chain.

        Raises DpmcError if there is neither a budget nor `iterations`, and BudgetExceeded if `iterations`
        costs more than the budget.
        """
        kind = self.epsilon_kind if self.releases().each else FREE
        return iterations_within(
            self.budget_iterations, self.iterations, self.most_iterations, self.epsilon, kind
        )

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


def described(
    cell: Cell, values: dict[str, Any], study: str, algorithm: str, options: dict[str, Any]
) -> dict[str, Any]:
    """Return attributes of a cell's chain files that the sampler does not set.

    `values` and `options` are hyperparameters as given, `algorithm` its id, `study` a name or "".
    """
    problem = cell.problem
    return {
        "study": study,
        "algorithm": algorithm,
        "variant": cell.algorithm.note,
        "hyperparameters": json.dumps(values, sort_keys=True),
        "options": json.dumps(options, sort_keys=True),
        "model_id": problem.model_id,
        "chains": cell.chains,
        **({"caveat": problem.caveat} if problem.caveat else {}),
    }
