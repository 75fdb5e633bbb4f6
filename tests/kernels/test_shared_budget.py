"""Chains of one run share its budget: four have together what one has; slips are caught."""

from typing import Any

import pytest

from dpmc import sampling
from dpmc.privacy.events import repeat
from kernels import cells, ladder, paper_cells

FORGOTTEN = {
    "the budget of each chain": (
        "return repeat(once, self.chains), repeat(each, self.chains)",
        "return once, each",
    ),
    "one chain too few": ("repeat(each, self.chains)", "repeat(each, max(1, self.chains - 1))"),
}
METHODS = {"dp-penalty": 40.0, "dp-hmc": 60.0, "dp-sgld": 15.0, "dp-sgnht": 20.0, "dp-mala": 60.0}


class Counting:
    """A noise source that counts how often noise was asked for, by chain."""

    asked: dict[int, int]

    def __init__(self, ratio_normals: Any, gradient_normals: Any) -> None:
        self._ratio, self._gradient = ratio_normals, gradient_normals

    def corrected(self, c: int, i: int, sd: float) -> float:
        self.asked[c] = self.asked.get(c, 0) + 1
        return float(sd * self._ratio[c, i] - 0.5 * sd * sd)

    def vector(self, c: int, i: int, stage: int, sd: float, out: Any) -> None:
        self.asked[c] = self.asked.get(c, 0) + 1
        out[:] = sd * self._gradient[c, i, stage]


def told(method: str, chains: int, change: tuple[str, str] | None = None) -> tuple[int, float]:
    """How many noisy answers a run of so many chains really got, and ε of them by the cell's accountant.

    Counted where noise is drawn, not in the ledger. `change` is a piece of the loop's text and what stands
    there instead.
    """
    loop: Any = sampling
    if change is not None:
        names = ladder.mutant("dpmc.sampling", change)
        loop = type("Loop", (), {"Cell": names["Cell"], "sample": staticmethod(names["sample"])})
        space = names
    else:
        space = vars(sampling)
    room = cells if method in cells.HYPERPARAMETERS else paper_cells
    usual = room.cell(method, cells.problem(n=30), iterations=None, epsilon=str(METHODS[method]), delta=1e-3)
    cell = loop.Cell(**{**vars(usual), "chains": chains})
    counting = type("Counting", (Counting,), {"asked": {}})
    kept = {name: space[name] for name in ("LabNoise", "compiled_iterations")}
    space.update({"LabNoise": counting, "compiled_iterations": space["run_iterations"]})
    try:
        loop.sample(cell, [0])
    finally:
        space.update(kept)
    once, each = cell.algorithm.releases(30)
    per_iteration = sum(event.count for event in each)
    answers = sum(counting.asked.values())
    assert set(counting.asked.values()) == {answers // chains}  # every chain as many as the others
    iterations = answers // per_iteration
    assert once == ()
    return iterations, usual.judge().epsilon(repeat(each, iterations), 1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_four_chains_have_the_budget_of_one(method: str) -> None:
    one, spent_by_one = told(method, 1)
    four, spent_by_four = told(method, 4)
    assert one >= 16
    assert one - 4 < four <= one
    assert four % 4 == 0
    assert spent_by_four <= spent_by_one <= METHODS[method]


@pytest.mark.parametrize("method", ["dp-penalty", "dp-sgld"])
@pytest.mark.parametrize("change", FORGOTTEN.values(), ids=FORGOTTEN)
def test_chains_that_each_spend_the_budget_are_caught(method: str, change: tuple[str, str]) -> None:
    one, _ = told(method, 1)
    four, spent = told(method, 4, change)
    assert four > one
    assert spent > METHODS[method]


def test_text_run_anew_without_a_fault_is_not_blamed() -> None:
    same = ("self.chains), repeat(each, self.chains)",) * 2
    assert told("dp-penalty", 4, same) == told("dp-penalty", 4)
