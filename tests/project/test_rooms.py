"""Rooms and floors, as the architecture page draws them: imports lead down only, and never in a circle."""

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from dpmc.common.shipped import PACKAGE

PAGE = Path(__file__).parents[2] / "docs/explanation/architecture.md"
OUTSIDE = ("template", "shipped_files", "__init__", "__main__")  # a project's files; doors to the rooms


def texts() -> dict[str, str]:
    """Return the text of each module."""
    return {
        ".".join(("dpmc", *file.relative_to(PACKAGE).with_suffix("").parts)): file.read_text(encoding="utf-8")
        for file in PACKAGE.rglob("*.py")
    }


def graph(changed: dict[str, str]) -> dict[str, set[str]]:
    """Return the modules that each module imports, with their packages but not its own.

    Imports in functions and for type checkers only count, too.
    """
    imports = {}
    known = {name.removesuffix(".__init__") for name in changed}
    for name, text in changed.items():
        names: set[str] = set()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0 and node.module is not None
                full = {f"{node.module}.{alias.name}" for alias in node.names}
                names |= {module if module in known else node.module for module in full}
        packages = {".".join(p[:k]) for p in (m.split(".") for m in names) for k in range(1, len(p))}
        above = {package for package in packages if not f"{name}.".startswith(f"{package}.")}
        imports[name.removesuffix(".__init__")] = (names | above) & known
    return imports


def room(module: str) -> str:
    """Return the room of a module; `reports` has three."""
    parts = module.split(".")[1:]
    return "/".join(parts[:2]) if parts[0] == "reports" else parts[0]


def rooms(changed: dict[str, str]) -> dict[str, set[str]]:
    """Return the rooms that each room imports, also for types only."""
    imports: dict[str, set[str]] = {}
    for name, imported in graph(changed).items():
        if name in ("dpmc", "dpmc.reports") or name.split(".")[1] in OUTSIDE:
            continue
        others = {room(other) for other in imported - {"dpmc", "dpmc.reports"}}
        imports.setdefault(room(name), set()).update(others - {room(name)})
    return imports


def heights() -> dict[str, int]:
    """Return the floor of each room as the architecture page draws it; the lowest is 0."""
    drawn = re.search(r"^```\{code-block\} text\n:name: floors\n\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    assert drawn
    lines = [re.split(r"\s{2,}", line.strip())[0] for line in drawn[1].splitlines() if line.strip()]
    return {name: k for k, line in enumerate(reversed(lines)) for name in re.split(r",\s*", line)}


def test_each_room_stands_one_floor_above_the_highest_that_it_needs() -> None:
    """So a room imports from floors below only, and the picture is made from the code."""
    known, height = rooms(texts()), heights()
    assert set(known) == set(height), "the page names every room, and no other"
    for name, others in known.items():
        assert height[name] == max((height[other] + 1 for other in others), default=0), name


@pytest.mark.parametrize(
    ("module", "line"),
    [("dpmc.evaluators.evaluator_of", "from dpmc.models import banana"), ("dpmc.base", "import dpmc.api")],
)
def test_an_import_of_a_floor_above_is_found(module: str, line: str) -> None:
    changed = texts()
    changed[module] = changed.get(module, "") + f"\n\ndef late():\n    {line}\n"
    known, height = rooms(changed), heights()
    assert any(height[other] > height[room(module)] for other in known[room(module)])


def test_no_circle_of_imports() -> None:
    order = list(TopologicalSorter(graph(texts())).static_order())
    names = ["privacy.events", "privacy.accountants.base", "privacy.ledger", "sampling.loop"]
    assert [name for name in order if name.removeprefix("dpmc.") in names] == [f"dpmc.{n}" for n in names]


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("dpmc.privacy.accountants.gaussian", "from dpmc.privacy import accountants"),
        ("dpmc.models.catalogue", "from dpmc.data import datasets"),
        ("dpmc.studies.__init__", "import dpmc.tuning.search"),
    ],
)
def test_a_circle_within_a_function_is_found(module: str, line: str) -> None:
    changed = texts()
    changed[module] += f"\n\ndef late():\n    {line}\n"
    with pytest.raises(CycleError):
        list(TopologicalSorter(graph(changed)).static_order())
