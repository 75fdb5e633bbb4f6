"""One word for one thing: a public name stands in one module, but for those that are the same on purpose."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from dpmc.common.shipped import PACKAGE

COMMANDS = "a command, and the function of the library that it calls"
DRAWING = "of each kind of figure, as `DEFAULTS` says; `reports.plots` chooses the kind"
PROTOCOLS = "a protocol of `base.py`, and a class with its methods"
RELEASES = "in `releases`, and what it does with a release, a run or a file"
SHARED = {
    **dict.fromkeys("budget fit plan plot posterior release sample summary tune".split(), COMMANDS),
    **dict.fromkeys("NEEDS_METRIC applies caption draw reads".split(), DRAWING),
    **dict.fromkeys("Model Posterior PrivateData".split(), PROTOCOLS),
    **dict.fromkeys("PUBLIC alone entry_of read".split(), RELEASES),
    "checked": "values of one key, and of all hyperparameters",
    "Regression": "of a family, and the class of the example that `dpmc init` writes",
    "Plan": "of widths of intervals, and of the iterations of a release",
    "main": "what a command of the shell calls",
}


def names(node: ast.AST) -> Iterator[str]:
    """Yield what a statement of a module defines; an import defines nothing."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
            yield name
        case ast.Assign(targets=parts) | ast.Tuple(elts=parts) | ast.If(body=parts):
            yield from (name for part in parts for name in names(part))
        case ast.AnnAssign(target=target):
            yield from names(target)


def shared(folder: Path) -> dict[str, list[str]]:
    """Return the public names that stand in several modules, with these."""
    places: dict[str, list[str]] = defaultdict(list)
    for file in sorted(folder.rglob("*.py")):
        nodes = ast.parse(file.read_text(encoding="utf-8")).body
        for name in {name for node in nodes for name in names(node) if not name.startswith("_")}:
            places[name].append(str(file.relative_to(folder)))
    return {name: files for name, files in places.items() if len(files) > 1}


def test_a_public_name_stands_in_one_module() -> None:
    found = shared(PACKAGE)
    assert {name: found[name] for name in found.keys() - SHARED.keys()} == {}, "one name, several things"
    assert SHARED.keys() <= found.keys(), "no longer shared"


def test_a_second_definition_is_found(tmp_path: Path) -> None:
    for name, text in {
        "one": "A, B = 1, 2\n_c = 3\ndef f(): g = 1\nif A:\n    d: int = 4\n",
        "two": "from one import e\nA = B = _c = 1\nclass f: pass\nd = g = 5\n",
        "three": "def e(): pass\nfrom one import A\n",
    }.items():
        (tmp_path / f"{name}.py").write_text(text)
    assert shared(tmp_path) == {name: ["one.py", "two.py"] for name in "ABdf"}
