"""Chains of one run share its budget: four have together what one has; faults are detected."""

from typing import Any

import pytest

from dpmc.privacy.events import repeat
from dpmc.privacy.noise import LabNoise
from dpmc.privacy.runs import RunQueries
from dpmc.sampling import loop
from kernels import cells
from kernels.ladder import Fault, sown

CELL = "dpmc.sampling.cell"
FORGOTTEN = {
    "the budget of each chain": Fault("queries", "RunQueries.of(A, B, self.chains)", "RunQueries.of(A, B)"),
    "one chain too few": Fault("queries", "self.chains", "max(1, self.chains - 1)"),
}
METHODS = {"dp-penalty": 40.0, "dp-hmc": 60.0, "dp-sgld": 15.0, "dp-sgnht": 20.0, "dp-mala": 60.0}


def spent(method: str, chains: int, monkeypatch: Any) -> tuple[int, float]:
    """Return the number of iterations whose noisy answers a run of `chains` chains got, and their ε.

    Answers are counted where noise is drawn, not in the ledger; ε is by the cell's accountant.
    """
    answers = []

    def counted(name: str) -> Any:
        draw = getattr(LabNoise, name)

        def call(self: Any, *arguments: Any) -> Any:
            answer = draw(self, *arguments)
            answers.append(len(answer))
            return answer

        return call

    with monkeypatch.context() as patch:
        for name in ("corrected", "vectors"):
            patch.setattr(LabNoise, name, counted(name))
        fields = {"iterations": None, "epsilon": str(METHODS[method]), "delta": 1e-3, "chains": chains}
        cell = cells.cell(method, cells.problem(n=30), **fields)
        loop.sample(cell, [0])
    once, each = RunQueries.of(cell.algorithm, 30)
    assert once == () and set(answers) == {chains}
    iterations = sum(answers) // sum(event.count for event in each)
    return iterations, cell.resolved_accountant().epsilon(repeat(each, iterations), 1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_four_chains_have_the_budget_of_one(method: str, monkeypatch: Any) -> None:
    one, spent_by_one = spent(method, 1, monkeypatch)
    four, spent_by_four = spent(method, 4, monkeypatch)
    assert one >= 16
    assert one - 4 < four <= one
    assert four % 4 == 0
    assert spent_by_four <= spent_by_one <= METHODS[method]


@pytest.mark.parametrize("method", ["dp-penalty", "dp-sgld"])
@pytest.mark.parametrize("fault", FORGOTTEN.values(), ids=FORGOTTEN)
def test_the_fault_that_each_chain_spends_the_budget_is_detected(
    method: str, fault: Fault, monkeypatch: Any
) -> None:
    one, _ = spent(method, 1, monkeypatch)
    with sown(CELL, fault):
        four, epsilon = spent(method, 4, monkeypatch)
    assert four > one
    assert epsilon > METHODS[method]
