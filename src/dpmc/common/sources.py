"""What a result depends on: a version of the sources that make it, computed from their imports.

Two kinds of versions decide what Snakemake makes anew:

- Metrics, traces, budgets, tables, claims, figures and pages are cheap. They follow `version` of the command
  or script that makes them: its source and, from there on, that of every module imported, also inside
  functions or by a name in a text.
- Data, tuning files and chains are dear, and a refactoring must not remake them. They follow versions that a
  person raises: `DATA_VERSION`, an algorithm's `draws_version`, an accountant's `version`. So do speeds,
  which are measured by sampling.
- A search is in between: what proposes and values its trials is followed, what runs them is declared.
- A user's model has no declared version: data and chains follow its file.

Comments, docstrings and what only type checkers read count for nothing.
"""

import ast
import functools
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from dpmc.common.shipped import PACKAGE

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

#: A text like "dpmc.reports.tables.models" or "dpmc.algorithms.hmc:HMC" names a module that is loaded later.
NAMED = re.compile(r"(\w+(?:\.\w+)*):\w+|(\w+(?:\.\w+)+)")


class _Source(NamedTuple):
    """One module: the digest of its source, and what it imports.

    An import is a tuple of names, of which the first that is a module is meant: `from a import b` is either
    of the module a.b or of a name in a. "a.*" is all modules directly in a.
    """

    digest: str
    at_once: frozenset[tuple[str, ...]]  # when it is imported
    at_all: frozenset[tuple[str, ...]]  # also later, by its functions


@functools.cache
def version(*roots: str | Path, without: tuple[str, ...] = ()) -> str:
    """Return a digest of the sources of `roots` and of all that they import, see `modules`.

    It does not depend on where the package is installed. Cached: sources do not change under a process.
    """
    digest = hashlib.sha256()
    for name, source in sorted(_walked(roots, without)):
        digest.update(f"{name} {source}\n".encode())
    return digest.hexdigest()[:12]


def modules(*roots: str | Path, without: tuple[str, ...] = ()) -> set[str]:
    """Return the names of the modules that `roots` import, with theirs.

    Roots are modules of the package ("dpmc.tuning.search"), functions of one ("dpmc.tuning.search:search"),
    with what they call in their own module, or files, which may also import modules beside them. The walk
    stops at the modules and packages `without`. Raises OSError for a root that does not exist.
    """
    return {name.partition(":")[0] for name, _ in _walked(roots, without)}


def beside(reference: str, *folders: Path) -> Path | None:
    """Return the file of the module in "module:name" if it is in one of `folders`, which dpmc's are not."""
    module = reference.partition(":")[0]
    return None if module in _package() else _file(module, folders)


def _walked(roots: tuple[str | Path, ...], without: tuple[str, ...]) -> set[tuple[str, str]]:
    """Return the (module, digest) of all that `roots` import, and of the YAML files that these read.

    The package of an imported module is imported, too, but its functions are not called: what they import
    does not count.
    """
    folders = tuple(root.parent for root in roots if isinstance(root, Path))
    todo: list[tuple[str, Path | None, str, bool]] = []  # module, file, function, whether its functions count
    for root in roots:
        module, _, function = (root.stem if isinstance(root, Path) else root).partition(":")
        path = root if isinstance(root, Path) else _file(module, folders)
        if path is None:
            raise FileNotFoundError(f"{module}: no such module")
        todo.append((module, path, function, True))
    sources: set[tuple[str, str]] = set()
    seen: set[tuple[str, str, bool]] = set()
    while todo:
        module, path, function, whole = todo.pop()
        stop = any(f"{module}.".startswith(f"{name}.") for name in without)
        if path is None or stop or (module, function, whole) in seen:
            continue
        seen.add((module, function, whole))
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        text = path.read_bytes()
        source = _read(text, package, function)
        sources.add((f"{module}:{function}" if function else module, source.digest))
        if b"__file__" in text and module in _package():  # it may read tables beside it
            tables = path.parent.glob("*.yaml")
            sources |= {(f"{module}:{file.name}", _digest(file.read_bytes())) for file in tables}
        for names in source.at_all if whole else source.at_once:
            for name in _meant(names, folders):
                # What `dpmc` itself loads late is its interface for others: no module of the package uses it.
                interface = name == PACKAGE.name and module in _package()
                todo.append((name, _file(name, folders), "", not interface))
        parents = (module[: dot.start()] for dot in re.finditer(r"\.", module))
        todo += [(parent, _file(parent, folders), "", False) for parent in parents]
    return sources


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _meant(names: tuple[str, ...], folders: tuple[Path, ...]) -> Iterator[str]:
    """Yield the modules that an import means: none if it is of another package."""
    for name in names:
        package = name.removesuffix(".*")
        file = _file(package, folders)
        if file is not None and package != name:
            inside = [*file.parent.glob("*.py"), *(init.parent for init in file.parent.glob("*/__init__.py"))]
            yield from (f"{package}.{path.stem}" for path in inside if path.stem != "__init__")
        elif file is not None:
            yield name
            return


@functools.cache
def _package() -> dict[str, Path]:
    """Module -> file, for all modules of the package."""
    root = PACKAGE.parent
    names = {file: ".".join(file.relative_to(root).with_suffix("").parts) for file in PACKAGE.rglob("*.py")}
    return {name.removesuffix(".__init__"): file for file, name in names.items()}


def _file(module: str, folders: tuple[Path, ...]) -> Path | None:
    """Return the file of a module of the package, or of one in `folders`; None for any other."""
    if module.partition(".")[0] == PACKAGE.name:
        return _package().get(module)
    path = module.replace(".", "/")
    files = (Path(f"{folder}/{path}{end}") for folder in folders for end in (".py", "/__init__.py"))
    return next((file for file in files if file.is_file()), None)


@functools.lru_cache(maxsize=512)
def _read(text: bytes, package: str, function: str) -> _Source:
    """Parse a module of this text. Of `function`, if not "", only with what it names in its module."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):  # a user's file, which is reported when it is run
        return _Source(_digest(text), frozenset(), frozenset())
    if function:
        tree.body = _used_by(function, tree.body)
    at_once: set[tuple[str, ...]] = set()
    at_all: set[tuple[str, ...]] = set()
    todo: list[tuple[ast.AST, bool]] = [(tree, False)]
    while todo:
        node, late = todo.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            node.body = []
        elif isinstance(node, ast.Module | Definition | ast.If | ast.For | ast.While | ast.With | ast.Try):
            node.body = [part for part in node.body if not _is_text(part)]
        imports = set(_imports(node, package))
        at_all |= imports
        if isinstance(node, ast.Import | ast.ImportFrom) and not late:
            at_once |= imports
        late = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        todo += [(child, late) for child in ast.iter_child_nodes(node)]
    return _Source(_digest(ast.dump(tree).encode()), frozenset(at_once), frozenset(at_all))


def _is_text(statement: ast.stmt) -> bool:
    """Return whether a statement is a docstring, or another constant that does nothing."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _imports(node: ast.AST, package: str) -> Iterator[tuple[str, ...]]:
    """Yield what a node imports, or names in a text for a later import."""
    match node:
        case ast.Import():
            yield from ((alias.name,) for alias in node.names)
        case ast.ImportFrom():
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            yield from ((f"{base}.{alias.name}", base) for alias in node.names)
        case ast.JoinedStr(values=[ast.Constant(value=str(start)), *_]) if start.endswith("."):
            yield (f"{start}*",)  # as in f"dpmc.cli.{name}"
        case ast.Constant(value=str(text)) if named := NAMED.fullmatch(text):
            yield (named[1] or named[2],)


def _used_by(function: str, body: list[ast.stmt]) -> list[ast.stmt]:
    """Return the statements of a module without functions and classes that `function` does not name.

    Those that it names count with what they name, and so on.
    """
    defined = {part.name: part for part in body if isinstance(part, Definition)}
    if function not in defined:
        raise FileNotFoundError(f"{function}: no such function")
    used = {function}
    todo: list[ast.AST] = [defined[function], *(part for part in body if not isinstance(part, Definition))]
    while todo:
        names = {node.id for node in ast.walk(todo.pop()) if isinstance(node, ast.Name)}
        fresh = (names & defined.keys()) - used
        used |= fresh
        todo += [defined[name] for name in fresh]
    return [part for part in body if not isinstance(part, Definition) or part.name in used]
