"""Chains of the present code against those of commit b8c4588, of every sampler on every model (`chains.npz`).

Walks and batch algorithms: every decision of a whole chain, and positions to 1e-9 standard deviations.
Samplers with trajectories multiply a difference of rounding, by ten every ten iterations where they are
chaotic: their first positions only. Slow but for a few cells.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from oracle import chains

ROOT = Path(__file__).parents[2]
KNOWN = chains.read()
FEW = (
    "thesis/circle/dp-penalty/1",
    "thesis/circle/dp-hmc/1",
    "thesis/flat-banana-2d/minibatch-penalty/4",
)
CELLS = [pytest.param(cell, marks=() if cell in FEW else (pytest.mark.slow,)) for cell in KNOWN]


@pytest.fixture(scope="module")
def data(tmp_path_factory: Any) -> Path:
    return Path(tmp_path_factory.mktemp("data"))


def has_trajectories(cell: str) -> bool:
    return any(name in cell for name in ("hmc", "mala", "sgld", "sgnht"))


def differences(found: dict[str, Any], known: dict[str, Any], first: int, tolerance: float) -> list[str]:
    """What differs among the first so many iterations of two chains; positions up to `tolerance` sds."""
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


@pytest.mark.parametrize("cell", CELLS)
def test_the_chain_is_the_same(cell: str, data: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(ROOT)
    study, model, method, epsilon = cell.split("/")
    found, known = chains.chain(study, model, method, epsilon, data), KNOWN[cell]
    if has_trajectories(cell):
        assert differences(found, known, first=chains.WHOLE // 2, tolerance=1e-6) == []
    else:
        assert differences(found, known, first=chains.MOST, tolerance=1e-9) == []


def test_a_difference_is_seen() -> None:
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
