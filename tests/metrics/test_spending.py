"""The ε that chains spent: by the ledger, by tight accounting, and for chains stopped by a cap."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from dpmc.metrics.cell import cell_metrics
from dpmc.metrics.spending import spending, tight_epsilon
from dpmc.privacy import accountants
from dpmc.privacy.events import BarkerQuery, GaussianQuery, SubsampledGaussianQuery, repeat
from dpmc.privacy.ledger import Budget, Ledger
from dpmc.sampling.loop import sample
from kernels.cells import cell

BATCH = SubsampledGaussianQuery("batch log-ratio", 1.5**0.5, 1000, 100_000)
BARKER = BarkerQuery("batch log-ratio", 1300, 100_000)
FULL = GaussianQuery("log-ratio", 30.0)


@dataclass
class Chain:
    """A stand-in for a chain file."""

    attrs: dict[str, Any] = field(default_factory=dict)


def chain(accountant: str, event: Any, count: int, epsilon: float = 3.0, forfeited: int = 0) -> Chain:
    ledger = Ledger(Budget(epsilon, 1e-6), accountants.resolve(accountant, [event]))
    ledger.reserve(repeat([event], count + forfeited))
    ledger.perform(repeat([event], count))
    ledger.forfeit()
    return Chain({"ledger": json.dumps(ledger.to_json())})


def test_the_thesis_s_barker_spends_a_fraction_of_its_claim() -> None:
    values, reasons = spending([chain("thesis", BARKER, 964)])
    assert reasons == []
    assert values["epsilon_spent"] == pytest.approx(3.0, abs=0.01)
    assert values["epsilon_spent_tight"] == pytest.approx(0.0841, abs=2e-4)


def test_tight_is_the_same_where_the_cell_was_accounted_for_tightly() -> None:
    for event, count in ((FULL, 100), (BATCH, 2796)):
        values, _ = spending([chain("tight", event, count)])
        assert values["epsilon_spent_tight"] == values["epsilon_spent"] <= 3.0
    assert values["epsilon_spent"] == pytest.approx(3.0, abs=2e-3)


def test_forfeited_queries_are_spent() -> None:
    for accountant in ("tight", "thesis"):
        values, _ = spending([chain(accountant, FULL, 100, forfeited=100)])
        assert values["epsilon_spent_tight"] == tight_epsilon(repeat([FULL], 200), 1e-6)


def test_queries_without_a_tight_bound_are_reported() -> None:
    values, reasons = spending([chain("rdp", BarkerQuery("batch log-ratio", 20, 2000), 1, 30.0)])
    assert set(values) == {"epsilon_spent"}
    assert len(reasons) == 1 and reasons[0].startswith("epsilon_spent_tight: ")
    assert "BarkerQuery" in reasons[0]
    assert ";" not in reasons[0]  # which would part two reasons


def test_a_chain_stopped_at_the_cap_reports_the_budget_s_iterations() -> None:
    settings = {"epsilon": "20", "iterations": None, "accountant": "tight"}
    free, capped = cell("dp-penalty", **settings), cell("dp-penalty", most_iterations=7, **settings)
    most = free.allowed_iterations()
    assert most > 7 and capped.allowed_iterations() == 7
    (chains,) = sample(capped, [0])
    assert chains.attrs["iterations"] == 7 and chains.attrs["budget_iterations"] == most
    assert chains.attrs["status"] == "ok"
    chains.attrs["study"] = "tests"
    rows = cell_metrics([chains], capped.problem)
    found = {row["metric"]: row["value"] for row in rows}
    assert found["budget_iterations"] == most and found["iterations"] == 7
    assert 0.0 < float(found["epsilon_spent"]) == float(found["epsilon_spent_tight"]) < 15.0
    (whole,) = sample(free, [0])
    assert whole.attrs["budget_iterations"] == whole.attrs["iterations"] == most
    (public,) = sample(cell("rwmh"), [0])
    assert public.attrs["budget_iterations"] == "inf"
