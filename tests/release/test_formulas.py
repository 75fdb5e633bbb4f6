"""Releases of models that are formulas: odd rows say nothing, files are checked, strangers run no code."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import dpmc
from dpmc.privacy.data_ledger import DataLedger
from dpmc.releases import files

BOOK: dict[str, Any] = {
    "fields": [
        {"name": "visits", "type": "integer", "constraints": {"minimum": 0, "maximum": 50}},
        {"name": "age", "type": "number", "constraints": {"minimum": 18, "maximum": 100}},
        {"name": "plan", "type": "string", "constraints": {"enum": ["none", "public"]}},
        {"name": "days", "type": "integer", "constraints": {"minimum": 0, "maximum": 365}},
    ]
}
FORMULA = "visits ~ bs(age, knots=[40], degree=1) * plan + log(days)"
SETTINGS: dict[str, Any] = {
    "noisy-scores": {"iterations": 9},
    "dp-penalty": {"iterations": 5, "hyperparameters": {"tau": 1.0, "clip": 1.0, "proposal_sd": 0.1}},
}


@pytest.mark.parametrize("algorithm", SETTINGS)
def test_a_release_with_odd_rows(algorithm: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = dpmc.PoissonRegression(FORMULA, codebook=BOOK, prior_sd=1)
    ages, plans = np.linspace(18, 100, 300), np.where(np.arange(300) % 3, "none", "public")
    table = pandas.DataFrame({"visits": 1.0, "age": ages, "plan": plans, "days": 5.0})
    table.loc[3, "days"] = 0.0  # whose logarithm is not finite
    table.loc[4, "days"] = 366.0
    table.loc[5, "plan"] = "gold"
    table.loc[6, "age"] = np.nan
    ledger = DataLedger.create(tmp_path / "people.ledger", 10.0, 1e-2)
    given = {"epsilon": 3, "delta": 1e-4, "progress": False, **SETTINGS[algorithm]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        released = dpmc.release(model, table, algorithm, ledger=ledger.path, **given)
    assert np.isfinite(released.posterior.theta.values).all()
    assert released.attrs["description"] == repr(model)
    assert files.check(released) == []
    with pytest.raises(dpmc.DpmcError, match="row 4"):
        dpmc.sample(model, table.drop(index=[4, 5, 6]), algorithm, **given)
    assert not any(capsys.readouterr())


@pytest.mark.parametrize(
    "formula",
    [
        "visits ~ __import__('os').system('touch hacked')",
        "visits ~ bs(age, knots=[].append.__self__)",
        f"visits ~ {'*'.join(['age', 'days', 'plan'] * 30)}",
        f"visits ~ {'(' * 90}age{')**2' * 90}",
    ],
)
def test_a_strangers_formula_runs_nothing(
    formula: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    description = f"PoissonRegression({formula!r}, codebook={BOOK!r})"
    with pytest.raises(dpmc.DpmcError, match="description: "):
        files.known_model(description, "dpmc.models.regression:PoissonRegression")
    assert not list(tmp_path.iterdir())
