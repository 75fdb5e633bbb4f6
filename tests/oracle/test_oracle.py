"""Chains of the present code against those of commit b8c4588, of every sampler on every model (`chains.npz`).

Walks and batch algorithms: every decision of a whole chain by the command line, and positions to 1e-9 sds.
Samplers with trajectories multiply a difference of rounding, by ten every ten iterations where they are
chaotic: 60 single iterations from known positions (`replay.py`). Slow but for a few cells.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from oracle import chains, replay

ROOT = Path(__file__).parents[2]
KNOWN = chains.read()
FEW = (
    "thesis/circle/dp-penalty/1",
    "thesis/circle/dp-hmc/1",
    "thesis/flat-banana-2d/minibatch-penalty/4",
    "dp-hmc/paper-gauss/dp-sgnht/4",
)


def cells(with_trajectories: bool) -> list[Any]:
    """Cells of samplers with trajectories or without, all but a few marked as slow."""
    chosen = [cell for cell in KNOWN if replay.has_trajectories(cell) == with_trajectories]
    return [pytest.param(cell, marks=() if cell in FEW else (pytest.mark.slow,)) for cell in chosen]


@pytest.fixture(scope="module")
def data(tmp_path_factory: Any) -> Path:
    return Path(tmp_path_factory.mktemp("data"))


def differences(found: dict[str, Any], known: dict[str, Any], first: int, tolerance: float) -> list[str]:
    """Return the arrays that differ in the first iterations of two chains (positions: by `tolerance` sds)."""
    wrong = [key for key in ("start", "iteration") if not np.array_equal(found[key], known[key])]
    wrong += [key for key in ABOUT if about_of(found)[key] != about_of(known)[key]]
    early = known["iteration"] <= first
    sd = known["theta"].std(axis=(0, 1)) + 1e-300
    if np.abs((found["theta"] - known["theta"])[:, early] / sd).max(initial=0.0) > tolerance:
        wrong.append("theta")
    decisions = [np.unpackbits(one["accepted"], axis=1)[:, :first] for one in (found, known)]
    if not np.array_equal(*decisions):
        wrong.append("accepted")
    if not np.array_equal(found["clipped"][..., early], known["clipped"][..., early]):
        wrong.append("clipped")
    return wrong


ABOUT = ("epsilon", "iterations", "budget_iterations", "delta", "n", "status", "accountant")


def about_of(one: dict[str, Any]) -> Any:
    return json.loads(str(one["about"]))


@pytest.mark.parametrize("cell", cells(with_trajectories=False))
def test_the_chain_is_the_same(cell: str, data: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(ROOT)
    study, model, method, epsilon = cell.split("/")
    found = chains.chain(study, model, method, epsilon, data)
    assert differences(found, KNOWN[cell], first=chains.MOST, tolerance=1e-9) == []


@pytest.mark.parametrize("cell", cells(with_trajectories=True))
def test_single_iterations_are_the_same(cell: str, monkeypatch: Any) -> None:
    monkeypatch.chdir(ROOT)
    found, about = replay.compare(cell, KNOWN[cell]), about_of(KNOWN[cell])
    assert found.decisions == 0
    assert found.difference < 1e-11
    assert found.clipped <= 1, "a row at the bound may be clipped or not, by rounding"
    assert found.iterations == min(chains.WHOLE if found.how == "single" else replay.FEW, about["iterations"])
    budget = replay.cell_of(*cell.split("/")).budget_iterations
    assert about["budget_iterations"] == ("inf" if budget is None else budget)


def test_a_difference_in_one_iteration_is_detected(monkeypatch: Any) -> None:
    """A position that is wrong by 1e-9 differs itself, and so does the iteration that starts from it."""
    monkeypatch.chdir(ROOT)
    cell = "thesis/circle/dp-hmc/1"
    theta = KNOWN[cell]["theta"].copy()
    theta[0, 5] += 1e-9
    assert replay.compare(cell, {**KNOWN[cell], "theta": theta}).difference > 1e-10
    flipped = KNOWN[cell]["accepted"].copy()
    flipped[0, 3] ^= 1
    assert replay.compare(cell, {**KNOWN[cell], "accepted": flipped}).decisions == 1


def test_a_difference_is_detected() -> None:
    known = KNOWN["thesis/circle/dp-penalty/1"]
    moved = {**known, "theta": known["theta"] + 1e-6}
    assert differences(moved, known, chains.MOST, 1e-9) == ["theta"]
    flipped = known["accepted"].copy()
    flipped[0, 5] ^= 1
    assert differences({**known, "accepted": flipped}, known, chains.MOST, 1e-9) == ["accepted"]
    longer = {**about_of(known), "iterations": 1}
    assert differences({**known, "about": np.array(json.dumps(longer))}, known, 1, 1e-9) == ["iterations"]


def test_every_sampler_is_there() -> None:
    assert len(KNOWN) > 90
    methods = {cell.split("/")[2] for cell in KNOWN}
    wanted = (
        "dp-penalty dp-penalty-guided minibatch-penalty minibatch-penalty-guided dp-barker dp-hmc dp-mala"
    )
    wanted += " dp-sgld dp-sgnht rwmh-1 hmc-1 tuna-mh dp-fast-mh dp-fast-mh-full dp-fast-mh-corrected"
    assert set(wanted.split()) <= methods
