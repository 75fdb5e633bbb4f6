"""A docstring of a public function or method that takes or returns arrays states a shape."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from dpmc.common.shipped import PACKAGE

ARRAYS = re.compile(r"\b(ndarray|Array|Floats|Words|Bytes|Key)\b")  # NumPy's, and names that modules give it
OTHERS = re.compile(r"\b(dict|Mapping|Callable)\[.*\]")  # of arrays, each of which has a shape of its own
LENGTH = r"[\w.…]+( ?[*+−·-] ?\w+)*"
SHAPE = re.compile(rf"\({LENGTH},( {LENGTH},?)*\)|\(\.\.\.\)|\bshapes?\b")  # (n, d), (k,), (...), or the word
KINDS = "reports/claims/kinds.py"  # its functions return one kind of array, which its own docstring describes


def of_arrays(nodes: list[ast.stmt], within: str) -> Iterator[tuple[str, str]]:
    """Yield public functions, methods and properties whose annotations have arrays, with their docstrings."""
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name, args=args, returns=returned) if not name.startswith("_"):
                taken = [one.annotation for one in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
                words = (ast.unparse(one) for one in (*taken, returned) if one)
                if any(ARRAYS.search(OTHERS.sub("", one)) for one in words):
                    yield f"{within}.{name}", ast.get_docstring(node) or ""
            case ast.ClassDef(name=name, body=body) if not name.startswith("_"):
                yield from of_arrays(body, f"{within}.{name}")


def without_shape(folder: Path) -> list[str]:
    """Return those without a shape. One without a docstring has that of a method of its name elsewhere."""
    found: dict[str, str] = {}
    for file in sorted({*folder.rglob("*.py")} - {PACKAGE / KINDS}):
        path = ".".join(file.relative_to(folder).with_suffix("").parts)
        found |= of_arrays(ast.parse(file.read_text(encoding="utf-8")).body, path)
    stated = {name.rpartition(".")[2] for name, text in found.items() if SHAPE.search(text)}
    documented = {name for name, text in found.items() if text or name.rpartition(".")[2] not in stated}
    return [name for name in found if name in documented and not SHAPE.search(found[name])]


def test_docstrings_of_functions_of_arrays_state_shapes() -> None:
    assert without_shape(PACKAGE) == []
    kinds = ast.parse((PACKAGE / KINDS).read_text(encoding="utf-8"))
    assert SHAPE.search(ast.get_docstring(kinds) or ""), "the kinds of numbers of claims"


def test_a_docstring_without_a_shape_is_found(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(
        'def f(x: Array) -> None:\n    "Take x (see g, which is better)."\n'
        'def g(x: Array) -> None:\n    "Take x (n, d)."\n'
        'def h(x: dict[str, Array]) -> None:\n    "Take x."\n'
        'class A:\n    def g(self) -> Array: ...\n    def k(self) -> "Array": ...\n'
        "    def _f(self) -> Array: ...\n"
    )
    assert without_shape(tmp_path) == ["one.f", "one.A.k"]
