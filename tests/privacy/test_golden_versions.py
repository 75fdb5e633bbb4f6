"""Results of accountants never change unnoticed: a change needs a new `version`, which remakes old chains.

For a new accountant, and after raising a version: `python tests/privacy/test_golden_versions.py` writes them.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from dpmc.privacy.accountants import ACCOUNTANTS, Accountant
from dpmc.privacy.events import (
    ApproximateQuery,
    BarkerQuery,
    GaussianQuery,
    Query,
    SubsampledGaussianQuery,
    repeat,
)
from dpmc.privacy.fast_mh import corrected_query

GOLDEN = Path(__file__).with_name("golden_versions.json")
DELTA, EPSILONS = 1e-6, (0.5, 4.0)
RUNS: dict[str, tuple[Query, ...]] = {
    "all rows": (GaussianQuery("ratio", 300.0), GaussianQuery("gradient", 150.0, 5)),
    "batches": (SubsampledGaussianQuery("batch ratio", 1.2, 500, 100_000),),
    "Barker": (BarkerQuery("batch ratio", 1000, 100_000),),
    "others": (ApproximateQuery("count", 0.001, 1e-12),),
    "Fast MH": (corrected_query("test", 0.05, 1e-6, 50_000),),
    "Fast MH on batches": (corrected_query("test", 0.05, 1e-6, 50_000, 2500),),
}


def numbers(accountant: Accountant) -> dict[str, list[float]]:
    """Return the iterations that each ε allows, and ln ε of 100 iterations, of every run it is meant for."""
    return {
        name: [
            *(accountant.iterations((), events, epsilon, DELTA) for epsilon in EPSILONS),
            float(np.log(accountant.epsilon(repeat(events, 100), DELTA))),
        ]
        for name, events in RUNS.items()
        if accountant.is_meant_for(events)
    }


def difference(accountant: Accountant) -> str:
    """Return the fault of an accountant's results; "" if they are the golden ones of its version."""
    golden = json.loads(GOLDEN.read_text()).get(accountant.name)
    if golden is None or accountant.version != golden["version"]:
        return "missing, or of another version: python tests/privacy/test_golden_versions.py writes them"
    found = numbers(accountant)
    same = found.keys() == golden["numbers"].keys() and all(
        np.allclose(found[name], golden["numbers"][name], rtol=1e-6) for name in found
    )
    return "" if same else f"results have changed: raise version above {accountant.version}"


@pytest.mark.parametrize("name", ACCOUNTANTS)
def test_results_are_those_of_their_version(name: str) -> None:
    assert numbers(ACCOUNTANTS[name]) and difference(ACCOUNTANTS[name]) == ""


def test_a_changed_result_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    tight = ACCOUNTANTS["tight"]
    monkeypatch.setattr(type(tight), "iterations", lambda self, *_: 1)
    assert "results have changed" in difference(tight)
    monkeypatch.setattr(type(tight), "version", "corrected")
    assert "of another version" in difference(tight)


if __name__ == "__main__":
    found = {
        name: {"version": accountant.version, "numbers": numbers(accountant)}
        for name, accountant in ACCOUNTANTS.items()
    }
    GOLDEN.write_text(json.dumps(found, indent=1) + "\n")
