"""A cell: what is to be run on which data, with which budget; everything that decides draws but the seed."""

import functools
import json
from dataclasses import dataclass
from typing import Any

from dpmc.errors import DpmcError
from dpmc.privacy import accountants
from dpmc.privacy.events import repeat
from dpmc.privacy.ledger import Budget, BudgetExceeded
from dpmc.problem import Problem

#: Fewer iterations than this give a chain that no second half can be taken from.
LEAST_ITERATIONS = 4


@dataclass(frozen=True)
class Cell:
    """What is to be run: everything that decides the draws, apart from the seed."""

    problem: Problem
    method: str  # label
    algorithm: Any  # an algorithm with its hyperparameters
    epsilon: str  # canonical; "inf" without a budget
    delta: float
    accountant: str  # an accountant or a preset
    chains: int = 1  # chains of one run; they share its budget
    iterations: int | None = None  # of each chain; None: all that the budget allows
    thin: int = 1  # every thin-th draw is kept
    most_draws: int | None = None  # of k > most_draws, every ⌊k/most_draws⌋-th is kept
    most_iterations: int | None = None  # stop there, however much budget is left
    epsilon_kind: str = "total"  # of a run; "per-iteration": no budget, the algorithm is set to keep it

    @property
    def budget(self) -> Budget | None:
        """The (ε, δ) of one run; None without privacy, and where ε is per iteration."""
        if self.epsilon == "inf" or self.epsilon_kind != "total":
            return None
        return Budget(float(self.epsilon), self.delta)

    def releases(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Events of a whole run before its first iteration and per iteration, all chains together."""
        once, each = self.algorithm.releases(self.problem.n)
        return repeat(once, self.chains), repeat(each, self.chains)

    def cost(self, iterations: int, first: bool = True) -> tuple[Any, ...]:
        """Events of so many iterations of a run, `first`: from the first one on."""
        once, each = self.releases()
        return (once if first else ()) + repeat(each, iterations)

    def resolved_accountant(self) -> Any:
        """The accountant that the cell's name or preset means for its releases."""
        once, each = self.releases()
        return accountants.resolve(self.accountant, once + each)

    @functools.cached_property
    def budget_iterations(self) -> int | None:
        """Iterations of each chain that the budget allows; None without a budget."""
        if self.budget is None:
            return None
        once, each = self.releases()
        most: int = self.resolved_accountant().iterations(once, each, self.budget.epsilon, self.budget.delta)
        return most

    def allowed_iterations(self) -> int:
        """Iterations of each chain.

        Raises DpmcError where neither budget nor `iterations` says how many, and BudgetExceeded where
        `iterations` costs more than the budget.
        """
        most = self.budget_iterations
        if most is None:
            if self.iterations is None:
                which = "inf" if self.epsilon == "inf" else self.epsilon_kind
                raise DpmcError(
                    f"iterations: needed when epsilon is {which}, since no budget limits the chain"
                )
            return self.iterations
        if self.iterations is not None and self.iterations > most:
            raise BudgetExceeded(
                f"iterations: {self.iterations} exceeds the budget: epsilon {self.epsilon} allows {most}"
            )
        if self.iterations is not None:
            return self.iterations
        return most if self.most_iterations is None else min(most, self.most_iterations)

    def kept_every(self, iterations: int) -> int:
        """Every how-many-th draw is kept; at least `most_draws` are, and fewer than twice as many."""
        if self.most_draws is None or self.thin > 1:
            return self.thin
        return max(1, iterations // self.most_draws)

    def status(self, iterations: int) -> str:
        """ "ok", or why the chain is too short to be of use."""
        if iterations >= LEAST_ITERATIONS:
            return "ok"
        plural = "" if iterations == 1 else "s"
        return f"budget too small: epsilon {self.epsilon} allows {iterations} iteration{plural}"


def described(
    cell: Cell, values: dict[str, Any], study: str, algorithm: str, options: dict[str, Any]
) -> dict[str, Any]:
    """Attributes of a cell's chain files beside what the sampler knows.

    `values` and `options` are hyperparameters as they were given, `algorithm` its id, `study` a name or "".
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
