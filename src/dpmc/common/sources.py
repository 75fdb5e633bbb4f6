"""What a result depends on: a version of the sources that make it, computed from their imports.

By it Snakemake makes cheap things anew: metrics, tables, figures and pages follow the source of the command
or script that makes them, and of every module imported from there on, also inside functions or by a name in a
text. Data, tuning files and chains are dear: they follow versions that a person raises (`DATA_VERSION`,
`draws_version`, an accountant's `version`) and the file of a user's model. Of a search, what proposes and
values its trials is followed. Comments, docstrings and what only type checkers read count for nothing.
"""

import ast
import functools
import hashlib
import itertools
import re
from collections.abc import Iterator
from importlib.util import resolve_name
from pathlib import Path

from dpmc.common.shipped import PACKAGE

CODEBOOKS = (".yaml", ".yml", ".json")  #: ends of the names of files that a text of a user's module names
#: A text like "dpmc.reports.tables.models" or "dpmc.algorithms.hmc:HMC" names a module that is loaded later.
MODULE_IN_TEXT = re.compile(r"(\w+(?:\.\w+)*):\w+|(\w+(?:\.\w+)+)")


@functools.cache
def sources_version(*roots: str | Path, without: tuple[str, ...] = ()) -> str:
    """Return a digest of the sources of `roots` and of all that they import, see `modules`.

    It does not depend on where the package is installed. Cached: sources do not change under a process.
    """
    lines = sorted(f"{name} {source}\n" for name, source in _walked(roots, without).items())
    return _digest("".join(lines).encode())[:12]


def modules(*roots: str | Path, without: tuple[str, ...] = ()) -> set[str]:
    """Return the names of the modules that `roots` (modules or files) import, and theirs, but `without`."""
    return {name.partition(":")[0] for name in _walked(roots, without)}


def file_beside(reference: str, *folders: Path) -> Path | None:
    """Return the file of the module in "module:name" if it is in one of `folders`, which dpmc's are not."""
    module = reference.partition(":")[0]
    return None if module.partition(".")[0] == PACKAGE.name else _file(module, folders)


def _walked(roots: tuple[str | Path, ...], without: tuple[str, ...]) -> dict[str, str]:
    """Return module -> digest of all that `roots` import, and of the YAML and JSON files that these read."""
    folders = tuple(root.parent for root in roots if isinstance(root, Path))
    todo = [(r.stem, r) if isinstance(r, Path) else (r, _file(r, folders)) for r in roots]
    if missing := [module for module, path in todo if path is None]:
        raise FileNotFoundError(f"{missing[0]}: no such module")
    sources: dict[str, str] = {}
    while todo:
        module, path = todo.pop()
        stop = f"{module}.".startswith(tuple(f"{name}." for name in without))
        if path is None or stop or module in sources:
            continue
        text, package = path.read_bytes(), module if path.name == "__init__.py" else module.rpartition(".")[0]
        sources[module], imports = _read(text, package)
        if b"__file__" in text and path.is_relative_to(PACKAGE):  # it may read tables beside it
            tables = path.parent.glob("*.yaml")
            sources |= {f"{module}:{file.name}": _digest(file.read_bytes()) for file in tables}
        if not path.is_relative_to(PACKAGE):  # a user's module may name its codebook
            named = [path.parent / name for name in imports if name.endswith(CODEBOOKS)]
            sources |= {
                f"{module}:{file.name}": _digest(file.read_bytes()) for file in named if file.is_file()
            }
        # What `dpmc` itself loads is its interface for others: no module of the package uses it.
        if module == PACKAGE.name:
            continue
        for name in imports:
            names = itertools.accumulate(name.split("."), "{}.{}".format)  # its packages are imported, too
            todo += [(part, _file(part, folders)) for part in names if part not in sources]
            if name.endswith(".*") and (init := _file(name[:-2], folders)):
                todo += [(f"{name[:-2]}.{file.stem}", file) for file in init.parent.glob("[!_]*.py")]
    return sources


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _file(module: str, folders: tuple[Path, ...]) -> Path | None:
    """Return the file of a module of the package, or of one in `folders`; None for any other."""
    return _of_package(module) if module.partition(".")[0] == PACKAGE.name else _beside(module, folders)


@functools.cache  # its files do not change under a process
def _of_package(module: str) -> Path | None:
    return _beside(module, (PACKAGE.parent,))


def _beside(module: str, folders: tuple[Path, ...]) -> Path | None:
    path = module.replace(".", "/")
    files = (folder / f"{path}{end}" for folder in folders for end in (".py", "/__init__.py"))
    return next((file for file in files if file.is_file()), None)


@functools.lru_cache(maxsize=512)
def _read(text: bytes, package: str) -> tuple[str, frozenset[str]]:
    """Return the digest of a module's text, and the names that it imports, of modules and of others."""
    try:
        tree = ast.parse(text)
        nodes: list[ast.AST] = [tree]
        for node in nodes:  # grows: each node is followed by its children
            if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
                node.body = []
            elif isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                # Without docstrings, and other constants that do nothing.
                node.body = [
                    part
                    for part in node.body
                    if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))
                ]
            nodes.extend(ast.iter_child_nodes(node))
        imports = frozenset(name for node in nodes for name in _imports(node, package))
    except (SyntaxError, ValueError, ImportError):  # a user's file, which is reported when it is run
        return _digest(text), frozenset()
    return _digest(ast.dump(tree).encode()), imports


def _imports(node: ast.AST, package: str) -> Iterator[str]:
    """Yield what a node imports, or names in a text for a later import; "a.*": all modules directly in a."""
    match node:
        case ast.Import():
            yield from (alias.name for alias in node.names)
        case ast.ImportFrom():
            base = resolve_name("." * node.level + (node.module or ""), package)
            yield from (f"{base}.{alias.name}" for alias in node.names)
        case ast.JoinedStr(values=[ast.Constant(value=str(start)), *_]) if start.endswith("."):
            yield f"{start}*"  # as in f"dpmc.cli.{name}"
        case ast.Constant(value=str(text)) if named := MODULE_IN_TEXT.fullmatch(text):
            yield named[1] or named[2]
        case ast.Constant(value=str(text)) if text.endswith(CODEBOOKS):
            yield text
