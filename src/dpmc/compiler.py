"""One text, run by Python or compiled: marks what numba may compile, and compiles it when first needed.

Models, evaluators, mechanisms and algorithms are `NamedTuple` classes with ordinary methods. Marked with
`@compilable`, the same text runs in plain Python (any model, easy to debug) and, called from a function
wrapped by `compiled`, as machine code. numba is imported only when something is compiled.

Rules that follow: methods of the same name take the same arguments in every class, and no class has a
field named like another's method. And since numba's own cache does not notice a change in a *called*
function, the cache folder is named after a hash of the whole package: any change compiles afresh.
"""

import hashlib
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

_pending: list[tuple[Any, dict[str, Any]]] = []
_method_signatures: dict[str, inspect.Signature] = {}
_field_names: set[str] = set()

#: Floating-point freedom for sums over rows: reassociation lets them use vector instructions. NaN and
#: infinity keep their meaning. The compiled order of a sum depends on the CPU type alone.
ROW_SUMS = {"fastmath": {"reassoc", "contract", "nsz", "arcp"}, "error_model": "numpy"}


def compilable(target: Any = None, **options: Any) -> Any:
    """Mark a function or a NamedTuple class as compilable; Python goes on running it as it stands."""
    if target is None:
        return lambda marked: compilable(marked, **options)
    _pending.append((target, options))
    return target


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` compiled by numba at its first call, with an on-disk cache."""
    dispatcher: Callable[..., Any] | None = None

    def call(*arguments: Any) -> Any:
        nonlocal dispatcher
        if dispatcher is None:
            _set_cache_folder()
            import numba

            _register_pending()
            dispatcher = numba.njit(cache=True)(function)
        return dispatcher(*arguments)

    call.__doc__ = function.__doc__
    return call


def _set_cache_folder() -> None:
    """Point numba's cache to a folder named after the package's sources, unless the user chose one."""
    if "NUMBA_CACHE_DIR" in os.environ:
        return
    digest = hashlib.sha256()
    package = Path(__file__).parent
    for source in sorted(package.rglob("*.py")):
        digest.update(source.relative_to(package).as_posix().encode() + source.read_bytes())
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = root / "dpmc" / f"numba-{digest.hexdigest()[:16]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return  # a home that cannot be written: numba falls back to a place of its own
    os.environ["NUMBA_CACHE_DIR"] = str(folder)


def _register_pending() -> None:
    from numba.extending import register_jitable

    while _pending:
        target, options = _pending.pop()
        if inspect.isclass(target):
            fields: tuple[str, ...] = vars(target)["_fields"]
            _field_names.update(fields)
            for name, method in vars(target).items():
                if inspect.isfunction(method) and not name.startswith("_"):
                    _register_method(name, method)
        else:
            register_jitable(**options)(target) if options else register_jitable(target)
    clashes = _field_names & set(_method_signatures)
    if clashes:
        raise TypeError(f"{', '.join(sorted(clashes))}: a field of one class and a method of another")


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

    def choose(self: Any, *_: Any) -> Any:
        return getattr(self.instance_class, name)

    choose.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[p.replace(annotation=p.empty) for p in signature.parameters.values()],
        return_annotation=signature.empty,
    )
    for kind in (types.NamedTuple, types.NamedUniTuple):
        overload_method(kind, name, strict=False)(choose)  # type: ignore[call-arg]
