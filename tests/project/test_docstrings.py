"""Docstrings of public functions that take or return arrays state a shape."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src/dpmc"
ARRAYS = {"Array", "ArrayLike", "NDArray", "ndarray"}
CLAIMS = "reports/claims"  # its functions are of one kind, which is described once
#: `(n,)`, `(..., d)`, `(...)`, `(chains, d)`, `(k, n + 1)`, "in η's shape"
PART = r"(\.\.\.|[\w|…]{1,11}( [+·−] \w+)?)"
SHAPE = re.compile(rf"\(({PART}(, {PART})+|{PART},|\.\.\.)\)|\bshape\b")


def has_arrays(annotation: ast.expr | None) -> bool:
    """Return whether arrays are among what an annotation names, other than by name or as arguments."""
    named = isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value)
    if annotation is None or named in ("dict", "Mapping", "Callable"):
        return False
    if isinstance(annotation, ast.Name | ast.Attribute):
        return ast.unparse(annotation).rpartition(".")[2] in ARRAYS
    return any(has_arrays(part) for part in ast.iter_child_nodes(annotation) if isinstance(part, ast.expr))


def public_functions(node: ast.Module | ast.ClassDef) -> Iterator[ast.FunctionDef]:
    """Yield the public functions and methods of a module."""
    for part in node.body:
        if isinstance(part, ast.ClassDef | ast.FunctionDef) and not part.name.startswith("_"):
            if isinstance(part, ast.FunctionDef):
                yield part
            else:
                yield from public_functions(part)


def of_arrays() -> dict[str, list[tuple[str, str]]]:
    """Return (place, docstring) of functions that take or return arrays, by name."""
    found: dict[str, list[tuple[str, str]]] = {}
    for path in sorted(set(SOURCES.rglob("*.py")) - set((SOURCES / CLAIMS).iterdir())):
        for function in public_functions(ast.parse(path.read_text(encoding="utf-8"))):
            given = function.args
            annotations = [one.annotation for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
            if any(map(has_arrays, (*annotations, function.returns))):
                place = f"{path.relative_to(SOURCES)}:{function.lineno} {function.name}"
                found.setdefault(function.name, []).append((place, ast.get_docstring(function) or ""))
    return found


def test_docstrings_of_functions_of_arrays_state_a_shape() -> None:
    """A method without a docstring is described where its contract is, as in `dpmc.base`."""
    found = of_arrays()
    assert sum(map(len, found.values())) > 300 and {"log_likelihood", "gradient", "simulate"} <= found.keys()
    silent = [place for of in found.values() for place, text in of if text and not SHAPE.search(text)]
    silent += [of[0][0] for of in found.values() if not any(text for _, text in of)]
    assert silent == []
