"""Pages of docs/reference/algorithms: no algorithm, hyperparameter or accountant of the code is missing."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dpmc.algorithms import ALGORITHMS, algorithm_class
from dpmc.algorithms.hyperparameters import Values, declared, describe, read
from dpmc.privacy.events import NonPrivateRelease
from dpmc.privacy.runs import RunReleases

PAGES = Path(__file__).parents[2] / "docs/reference/algorithms"
#: Some value of each hyperparameter that has no default.
SOME = {
    **dict.fromkeys(("tau", "tau_l", "tau_g", "proposal_sd", "step_size", "mass", "diffusion"), 1.0),
    **dict.fromkeys(("clip", "clip_l", "clip_g"), 1.0),
    **{"steps": 5, "batch_size": 1000, "batch_mean": 10.0, "most_rows": 500, "epsilon": 0.01, "delta": 1e-6},
}


def rows_after(text: str, mark: str) -> list[list[str]]:
    """Cells of the table that follows a line; without its head."""
    table = re.match(r"(?:\|.*\n)+", text.partition(mark + "\n")[2])
    assert table, mark
    lines = table[0].strip().split("\n")[2:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


@cache
def index() -> dict[str, list[str]]:
    """Rows of the index by algorithm."""
    text = (PAGES / "index.md").read_text(encoding="utf-8")
    head = next(line for line in text.split("\n") if line.startswith("| algorithm"))
    return {
        row[0].split("`")[1]: row
        for row in rows_after("\n" + text.replace(head, "THE TABLE\n" + head), "THE TABLE")
    }


def algorithm(name: str) -> Any:
    cls = algorithm_class(name)
    needed = {field.name: SOME[field.name] for field in declared(cls) if field.name in SOME}
    if "variant" in {field.name for field in declared(cls)}:
        needed["variant"] = "corrected"
    if name in ("rwmh", "hmc"):
        needed.pop("clip"), needed.pop("clip_g", None)
    return read(cls, Values(needed, name), 2)


def test_the_index_has_every_algorithm_once() -> None:
    assert tuple(index()) == ALGORITHMS


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_table_of_hyperparameters_is_that_of_the_declarations(name: str) -> None:
    link = re.search(r"\((\S+\.md)\)", index()[name][0])
    assert link
    text = (PAGES / link[1]).read_text(encoding="utf-8")
    rows = rows_after(text, f"<!-- hyperparameters of {name} -->")
    units = [row.pop(1) for row in rows]
    wanted = [[cell.replace("|", r"\|") for cell in entry] for entry in describe(algorithm_class(name))]
    assert rows == [[f"`{key}`", *rest] for key, *rest in wanted]
    assert all(units)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_index_has_needs_and_accountants_of_every_algorithm(name: str) -> None:
    *_, gradient, rows, _, accountants = index()[name]
    made = algorithm(name)
    assert gradient == ("yes" if made.needs(2).gradients else "no")
    if made.public_clip is None:
        evaluations = made.needs(2).gradients + made.needs(2).ratios
        times = f", {evaluations} times" if evaluations > 1 else ""
        # Written with L, which is 5 here.
        assert rows.replace("L + 1", "6").replace("L + 2", "7") == ("b" if made.batch_size else f"n{times}")
    once, each = made.releases(20_000)
    if any(isinstance(event, NonPrivateRelease) for event in (*once, *each)):
        assert accountants == "none, ε = ∞"
    else:
        known = RunReleases(once, each).by_accountant(1e-5, iterations=1)
        assert accountants == ", ".join(f"`{one}`" for one in known)
