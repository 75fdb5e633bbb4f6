"""No circle of imports in the whole package, whether at the top or inside functions."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import dpmc

ROOM = Path(dpmc.__file__).parent


def run(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes of a text that can run, without those for type checkers only."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            for other in child.orelse:
                yield from run(other)
        else:
            yield from run(child)


def imported(name: str, text: str, modules: set[str]) -> set[str]:
    """Return those of these modules that a module imports anywhere, with their packages but not its own."""
    found: set[str] = set()
    for node in run(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module is not None
            full = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            found |= {module if module in modules else node.module for module in full.values()}
    packages = {".".join(parts[:k]) for parts in (m.split(".") for m in found) for k in range(1, len(parts))}
    return (found | {package for package in packages if not f"{name}.".startswith(f"{package}.")}) & modules


def texts() -> dict[str, str]:
    """Module -> its text."""
    return {
        ".".join(("dpmc", *file.relative_to(ROOM).with_suffix("").parts)).removesuffix(".__init__"): (
            file.read_text(encoding="utf-8")
        )
        for file in ROOM.rglob("*.py")
    }


def graph(changed: dict[str, str]) -> dict[str, set[str]]:
    """Module -> modules of the package that it imports."""
    return {name: imported(name, text, set(changed)) for name, text in changed.items()}


def test_no_circle_of_imports() -> None:
    found = graph(texts())
    assert "dpmc.privacy.accountants.base" in found["dpmc.privacy.accountants.tight"]
    order = list(TopologicalSorter(found).static_order())
    assert order.index("dpmc.privacy.events") < order.index("dpmc.privacy.accountants.base")
    assert order.index("dpmc.privacy.accountants") < order.index("dpmc.privacy.ledger")
    assert (
        order.index("dpmc.base") < order.index("dpmc.privacy.mechanisms") < order.index("dpmc.sampling.loop")
    )


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("dpmc.privacy.accountants.tight", "from dpmc.privacy import accountants"),
        ("dpmc.models.catalogue", "from dpmc.data import datasets"),
        ("dpmc.studies", "import dpmc.tuning.search"),
    ],
)
def test_a_circle_within_a_function_is_found(module: str, line: str) -> None:
    changed = texts()
    changed[module] += f"\n\ndef late():\n    {line}\n"
    with pytest.raises(CycleError):
        list(TopologicalSorter(graph(changed)).static_order())
