"""One text, run by Python or compiled: marks what numba may compile, and compiles it when first needed.

Models, evaluators, mechanisms and algorithms are `NamedTuple` classes with ordinary methods. Marked with
`@compilable`, the same text runs in plain Python (any model, easy to debug) and, called from a function
wrapped by `compiled`, as machine code. numba is imported only when something is compiled.

Rules that follow: methods of the same name take the same arguments in every class, and no class has a
field named like another's method. And since numba's own cache does not notice a change in a *called*
function, the cache folder is named after a hash of the sources: any change compiles afresh.

In that folder, each function has a folder for each combination of argument types, with a lock. So no two
processes compile the same at a time, and none writes to an index of numba's that another is writing to:
numba reads, changes and replaces it, and of two processes that do so at once, one finds the other's code.
"""

import contextlib
import fcntl
import functools
import hashlib
import inspect
import os
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from types import FunctionType
from typing import Any

#: What no compiled function reaches, so that a change there need not compile anything afresh.
UNCOMPILED = (
    "__main__.py",
    "cli.py",
    "commands.py",
    "comparing.py",
    "datasets",
    "figures",
    "outputs.py",
    "search.py",
    "starter.py",
    "studies.py",
    "summary.py",
    "trials.py",
    "tuning.py",
    "warmup.py",
)

_PACKAGE = Path(__file__).parent

_pending: list[tuple[Any, dict[str, Any]]] = []
_classes_apart: set[type] = set()
_loading_only: list[bool] = []
_method_signatures: dict[str, inspect.Signature] = {}
_field_names: set[str] = set()
_own_sources: dict[Path, str] = {}  # files of a user's own compilable classes, and their hashes

#: Without a second entry for C, which nobody calls: up to a fifth less to compile.
_WITHOUT_C_ENTRY: dict[str, Any] = {"no_cfunc_wrapper": True}

#: Methods may make arrays, whoever calls them (see `UNCOUNTED`): those of a user's model do.
_METHODS: dict[str, Any] = {**_WITHOUT_C_ENTRY, "_nrt": True}

#: For functions that make no arrays: numba counts, atomically, who uses an array and every slice of it, which
#: takes longer than to read a block of two columns. Whoever calls such a function holds its arrays.
UNCOUNTED: dict[str, Any] = {"_nrt": False}

#: Floating-point freedom for sums over rows: reassociation lets them use vector instructions. NaN and
#: infinity keep their meaning. The compiled order of a sum depends on the CPU type alone.
ROW_SUMS = {"fastmath": {"reassoc", "contract", "nsz", "arcp"}, "error_model": "numpy", **UNCOUNTED}


def compilable(target: Any = None, apart: bool = False, **options: Any) -> Any:
    """Mark a function or a NamedTuple class as compilable; Python goes on running it as it stands.

    `apart`, of a class: its methods are long, and many callers share one copy of them where all that they see
    is of this package (`dpmc.linking`).
    """
    if target is None:
        return lambda marked: compilable(marked, apart, **options)
    if apart:
        _classes_apart.add(target)
    _pending.append((target, options))
    return target


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` compiled by numba when first called with arguments of some types, cached on disk."""
    machine_code: dict[Any, Callable[..., Any]] = {}

    def call(*arguments: Any) -> Any:
        import numba

        types = tuple(numba.typeof(argument) for argument in arguments)
        if types not in machine_code:
            _register_pending()
            machine_code[types] = _compile_once(function, types)
        return machine_code[types](*arguments)

    call.__doc__ = function.__doc__
    return call


def prepare() -> None:
    """Do what the first call of a compiled function begins with: import numba, fill its registries."""
    _register_pending()
    sources_hash()
    _fill_registries()


@contextlib.contextmanager
def loading_only() -> Iterator[None]:
    """While it is open, what is not in the cache raises LookupError in place of being compiled."""
    _loading_only.append(True)
    try:
        yield
    finally:
        _loading_only.pop()


@functools.cache
def _fill_registries() -> None:
    """Let numba read what it knows to compile, once a process: four tenths of a second."""
    import numba

    numba.njit(lambda: None, **_WITHOUT_C_ENTRY).compile(())


def _compile_once(function: Callable[..., Any], types: tuple[Any, ...]) -> Callable[..., Any]:
    """Machine code for arguments of these types: from the cache, or compiled while others wait for it."""
    import numba

    config: Any = numba.config
    try:
        names = [function.__module__, function.__qualname__, str(types), *_own_sources.values()]
        folder = cache_folder() / hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]
        folder.mkdir(exist_ok=True)
    except OSError:  # a home that cannot be written: numba finds a place of its own, or has none
        return _compile(function, types)
    known = config.CACHE_DIR
    config.CACHE_DIR = str(folder)
    try:
        with _alone(folder / "lock"):
            return _compile(function, types)
    finally:
        config.CACHE_DIR = known


def _compile(function: Callable[..., Any], types: tuple[Any, ...]) -> Callable[..., Any]:
    """Machine code for arguments of these types, from numba's cache if it is there."""
    import numba

    from dpmc.linking import entries, entries_only, is_cached

    entries.add(function.__qualname__)
    machine_code: Any = numba.njit(cache=True, **_WITHOUT_C_ENTRY)(function)
    if _loading_only and not is_cached(machine_code, types):
        raise LookupError(f"{function.__qualname__}: there is no machine code in the cache")
    with entries_only():
        machine_code.compile(types)
    return machine_code


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold a lock that the kernel drops with the process; none where the file system does not allow it.

    Raises LookupError if another process has it and nothing may be compiled, which it is about to do.
    """
    how = fcntl.LOCK_EX | (fcntl.LOCK_NB if _loading_only else 0)
    with contextlib.ExitStack() as stack:
        try:
            fcntl.flock(stack.enter_context(open(path, "w")), how)
        except BlockingIOError:
            raise LookupError(f"{path}: machine code is being made") from None
        except OSError:
            pass
        yield


def cache_folder() -> Path:
    """The folder for machine code of these very sources, made if it is missing.

    It lies in NUMBA_CACHE_DIR, or else in dpmc of the user's cache folder. Raises OSError if it cannot be
    made.
    """
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    folder = (Path(chosen) if chosen else _own_cache()) / f"numba-{sources_hash()}"
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def _own_cache() -> Path:
    """The folder of this package among the user's caches; OSError for a user without a home."""
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError as error:
        raise OSError(str(error)) from None
    return cache / "dpmc"


@functools.cache
def sources_hash() -> str:
    """A hash of numba's version and of the package's sources, but those that nothing compiled reaches."""
    digest = hashlib.sha256(version("numba").encode())
    for source in _compiled_sources():
        digest.update(source.relative_to(_PACKAGE).as_posix().encode() + source.read_bytes())
    return digest.hexdigest()[:16]


def _compiled_sources() -> list[Path]:
    return [
        source
        for source in sorted(_PACKAGE.rglob("*.py"))
        if source.relative_to(_PACKAGE).parts[0] not in UNCOMPILED
    ]


def _register_pending() -> None:
    from numba.extending import register_jitable

    from dpmc.linking import optimised_alone

    while _pending:
        target, options = _pending.pop()
        if "fastmath" in options:
            optimised_alone.add(target.__qualname__)
        _note_own_source(target)
        if inspect.isclass(target):
            fields: tuple[str, ...] = vars(target)["_fields"]
            _field_names.update(fields)
            for name, method in vars(target).items():
                if inspect.isfunction(method) and not name.startswith("_"):
                    _register_method(name, method)
        else:
            register_jitable(**_WITHOUT_C_ENTRY, **options)(target)
    clashes = _field_names & set(_method_signatures)
    if clashes:
        raise TypeError(f"{', '.join(sorted(clashes))}: a field of one class and a method of another")


def _note_own_source(target: Any) -> None:
    """Remember the file of what a user has marked, for its changes must compile afresh as well."""
    with contextlib.suppress(TypeError, OSError):  # typed at a prompt: there is no file
        source = Path(inspect.getsourcefile(target) or __file__)
        if _PACKAGE not in source.parents:
            _own_sources[source] = hashlib.sha256(source.read_bytes()).hexdigest()


def _is_ours(kind: Any) -> bool:
    """Whether a type's name says what its values' code is: numbers, arrays and classes of this package."""
    from numba import types

    if isinstance(kind, types.BaseTuple):
        parts: Any = kind
        own = not isinstance(kind, types.BaseNamedTuple) or parts.instance_class.__module__.startswith(
            "dpmc."
        )
        return own and all(_is_ours(part) for part in parts)
    return isinstance(kind, types.Number | types.Boolean | types.Array)


@functools.cache
def _named_apart(method: Any) -> Any:
    """The same function by a name that `dpmc.linking` knows."""
    from dpmc.linking import APART

    twin = FunctionType(method.__code__, method.__globals__, method.__name__, method.__defaults__)
    twin.__qualname__ = method.__qualname__ + APART
    twin.__module__ = method.__module__
    return twin


def _register_method(name: str, method: Callable[..., Any]) -> None:
    """Let compiled code call `value.name(…)` for every NamedTuple class that defines it."""
    signature = inspect.signature(method)
    arguments = tuple(signature.parameters)
    if name in _method_signatures:
        known = tuple(_method_signatures[name].parameters)
        if known != arguments:
            raise TypeError(f"method {name} takes {known} in one class and {arguments} in another")
        return
    _method_signatures[name] = signature
    from numba import types
    from numba.extending import overload_method

    def choose(self: Any, *others: Any) -> Any:
        method = getattr(self.instance_class, name)
        if self.instance_class in _classes_apart and all(_is_ours(part) for part in (self, *others)):
            return _named_apart(method)
        return method

    choose.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[p.replace(annotation=p.empty) for p in signature.parameters.values()],
        return_annotation=signature.empty,
    )
    for kind in (types.NamedTuple, types.NamedUniTuple):
        overload_method(kind, name, strict=False, jit_options=_METHODS)(choose)  # type: ignore[call-arg]
