"""Rooms and floors: a room imports from floors below it only, as the architecture page draws it."""

import ast
import re
from pathlib import Path

import pytest

from dpmc.common.shipped import PACKAGE

PAGE = Path(__file__).parents[2] / "docs/explanation/architecture.md"
OUTSIDE = ("template", "shipped_files", "__init__", "__main__")  # a project's files; doors to the rooms


def rooms() -> dict[str, set[str]]:
    """Room -> the rooms that its modules import, also late and for types only."""
    found: dict[str, set[str]] = {}
    for file in PACKAGE.rglob("*.py"):
        parts = file.relative_to(PACKAGE).with_suffix("").parts
        if parts[0] in OUTSIDE or parts == ("reports", "__init__"):
            continue
        names = found.setdefault(room(parts), set())
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dpmc":
                names |= {room((*str(node.module).split(".")[1:], alias.name)) for alias in node.names}
            elif isinstance(node, ast.Import):
                names |= {room(tuple(a.name.split(".")[1:])) for a in node.names if a.name[:5] == "dpmc."}
    return {name: others - {name} for name, others in found.items()}


def room(parts: tuple[str, ...]) -> str:
    """Return the room of a module; `reports` has three, and a name of a room is the room."""
    return "/".join(parts[:2]) if parts[0] == "reports" else parts[0]


def floors() -> list[list[str]]:
    """Return the rooms by floor, the lowest first, as the architecture page draws them."""
    drawn = re.search(r"^```\{code-block\} text\n:name: floors\n\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    assert drawn
    lines = [re.split(r"\s{2,}", line.strip())[0] for line in drawn[1].splitlines() if line.strip()]
    return [re.split(r",\s*", line) for line in reversed(lines)]


def test_rooms_import_from_floors_below_only() -> None:
    known, height = rooms(), {name: k for k, floor in enumerate(floors()) for name in floor}
    assert set(known) == set(height), "the page names every room, and no other"
    back = {
        (name, other) for name, others in known.items() for other in others if height[other] >= height[name]
    }
    assert not back


def test_no_floor_could_be_lower() -> None:
    """Each room stands one floor above the highest that it needs: the picture is made from the code."""
    known, height = rooms(), {name: k for k, floor in enumerate(floors()) for name in floor}
    for name, others in known.items():
        assert height[name] == max((height[other] + 1 for other in others), default=0), name


@pytest.mark.parametrize(
    ("place", "line"), [("evaluators", "from dpmc.models import banana"), ("base", "import dpmc.api")]
)
def test_an_import_of_a_floor_above_is_found(place: str, line: str, tmp_path: Path, monkeypatch) -> None:
    package = tmp_path / "dpmc"
    (package / place).mkdir(parents=True)
    (package / place / "late.py").write_text(f"def late():\n    {line}\n")
    monkeypatch.setitem(globals(), "PACKAGE", package)
    ((_, others),) = rooms().items()
    height = {name: k for k, floor in enumerate(floors()) for name in floor}
    assert all(height[other] > height[place] for other in others) and others
