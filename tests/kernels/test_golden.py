"""Draws never change unnoticed: a change needs a new `draws_version`, which remakes old chains.

After raising a draws_version, write the new numbers with `python tests/kernels/test_golden.py`.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from dpmc.sampling.loop import Cell, sample
from kernels.cells import HYPERPARAMETERS, PEERS, cell, problem, problem_name

GOLDEN = Path(__file__).with_name("golden.json")
CELLS = {f"{m} on the {problem_name(m)}": cell(m) for m in (*HYPERPARAMETERS, *PEERS)}
CELLS |= {f"{m} on the circle": cell(m, problem("circle")) for m in ("dp-penalty-guided", "dp-hmc")}


def numbers(chosen: Cell) -> list[float]:
    """A few numbers that any change of the draws changes: the last position, and sums over all."""
    run = sample(chosen, [1])[0]
    weights = np.arange(1, run.draws.size + 1).reshape(run.draws.shape) / run.draws.size
    sums = [float((run.draws * weights).sum()), float((run.draws**2).sum())]
    return [*run.draws[0, -1].tolist(), *sums, *(int(total[0]) for total in run.totals.values())]


def difference(name: str, chosen: Cell) -> str:
    """Return the fault of a cell's draws; "" if they are the golden ones of their version."""
    golden = json.loads(GOLDEN.read_text())[name]
    version = chosen.algorithm.draws_version
    same = np.allclose(numbers(chosen), golden["numbers"], rtol=1e-9, atol=1e-9)
    if version != golden["draws_version"]:
        return "golden numbers belong to another draws_version: write them anew"
    return "" if same else f"draws have changed: raise draws_version above {version}"


@pytest.mark.parametrize("name", CELLS)
def test_draws_are_those_of_their_version(name: str) -> None:
    assert difference(name, CELLS[name]) == ""


def test_changed_draws_are_detected() -> None:
    name, chosen = next(iter(CELLS.items()))
    wider = replace(chosen.algorithm, proposal_sd=chosen.algorithm.proposal_sd * (1.0 + 1e-6))
    assert "draws have changed" in difference(name, replace(chosen, algorithm=wider))
    assert "draws have changed" in difference(name, replace(chosen, method="other streams"))


if __name__ == "__main__":
    found = {
        name: {"draws_version": chosen.algorithm.draws_version, "numbers": numbers(chosen)}
        for name, chosen in CELLS.items()
    }
    GOLDEN.write_text(json.dumps(found, indent=1) + "\n")
