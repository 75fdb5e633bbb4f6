"""No circle of imports among the modules of privacy/, whether at the top or inside functions."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import dpmc.privacy

ROOM = Path(dpmc.privacy.__file__).parent


def imported(text: str, modules: set[str]) -> set[str]:
    """Which of these modules a text imports anywhere; of a package's name, the package itself."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module is not None
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                found.add(name if name in modules else node.module)
    return found & modules


def graph() -> dict[str, set[str]]:
    """Module -> modules of privacy/ that it imports."""
    texts = {}
    for file in ROOM.rglob("*.py"):
        parts = ("dpmc", "privacy", *file.relative_to(ROOM).with_suffix("").parts)
        texts[".".join(parts).removesuffix(".__init__")] = file.read_text(encoding="utf-8")
    return {name: imported(text, set(texts)) for name, text in texts.items()}


def test_no_circle_of_imports() -> None:
    found = graph()
    assert "dpmc.privacy.accountants.base" in found["dpmc.privacy.accountants.tight"]
    order = list(TopologicalSorter(found).static_order())
    assert order.index("dpmc.privacy.events") < order.index("dpmc.privacy.accountants.base")
    assert order.index("dpmc.privacy.accountants") < order.index("dpmc.privacy.ledger")


def test_a_circle_is_found() -> None:
    """Seeded fault: an accountant that asks the registry, within a function."""
    found = graph()
    text = "def able():\n    from dpmc.privacy import accountants\n    return accountants.ACCOUNTANTS"
    found["dpmc.privacy.accountants.tight"] |= imported(text, set(found))
    with pytest.raises(CycleError):
        list(TopologicalSorter(found).static_order())
