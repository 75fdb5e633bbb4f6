"""Fingerprints: digests by which a changed model is noticed, and gets noise of its own.

The fingerprint of a model covers the compiled code of its class and of the functions that it calls outside
installed packages; their closures, defaults and globals; its attributes; and its values on public dummy rows,
rounded to six digits. Installed packages, this one included, count by the names of what is used of them.
Names of the user's classes and modules, comments, cached properties and states of random generators do not
count.
"""

import functools
import hashlib
import inspect
import sys
import sysconfig
import types
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from dpmc.common.threads import one_blas_thread

DUMMIES = 16  #: rows of each kind
PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented))
GENERATORS = (np.random.Generator, np.random.RandomState, np.random.BitGenerator)
#: Attributes of a class that Python sets, and that say nothing about what it computes.
IGNORED = frozenset(
    """__dict__ __weakref__ __doc__ __module__ __qualname__ __firstlineno__ __static_attributes__
    __annotations__ __annotate__ __annotate_func__ __annotations_cache__ __dataclass_fields__
    __dataclass_params__ __match_args__ __abstractmethods__ __parameters__ __orig_bases__ _abc_impl
    __slots__""".split()
)
_HEAP_TYPE = 1 << 9  # a flag of classes that Python code has made


def digest(*values: Any) -> str:
    """Return a SHA-256 hash of Python values, in hexadecimal; equal in any process for equal values."""
    return _Walk("").of(values).hex()


@one_blas_thread()
def fingerprint(model: Any, columns: int) -> str:
    """Return the fingerprint of a model whose rows have this number of columns, in hexadecimal.

    Reads no private row.
    """
    given = getattr(model, "given", model)  # of an adapted model, the user's object
    package = (getattr(model, "module", "") or type(given).__module__).partition(".")[0]
    return digest(_Walk(package).of(given), _values(model, columns))


def _values(model: Any, columns: int) -> list[Any]:
    """Return the model's rounded values at public positions, on public dummy rows."""
    generator = np.random.default_rng(0)
    normal = generator.standard_normal((DUMMIES, columns))
    kinds: list[Any] = [normal, 0.5 + np.abs(normal), np.round(np.abs(normal)), (normal > 0.0).astype(float)]
    d = int(model.dimension)
    centre = np.asarray(getattr(model, "start", np.zeros(d)), dtype=float)
    positions: list[Any] = [centre, centre + 0.5 * generator.standard_normal(d), 0.5 + generator.random(d)]
    two = np.stack(positions[1:])
    found = [_rounded(model, name, two[0]) for name in ("log_prior", "log_prior_gradient")]
    found += [_rounded(model, name, two) for name in ("gradient_form", "line", "link")]
    found += [_rounded(model, "ratio_form", two, two[::-1])]
    found += [_rounded(model, "statistics", rows) for rows in kinds]
    for name in ("log_likelihood", "log_likelihood_gradient"):
        found += [_rounded(model, name, theta, rows) for theta in positions for rows in kinds]
    return found


def _rounded(model: Any, name: str, *arguments: np.ndarray) -> Any:
    """Return the result of a method to six digits of its largest value.

    The error's type where it fails, since the trial before sampling reports errors; None for no such method.
    """
    if not hasattr(model, name):
        return None
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = getattr(model, name)(*(argument.copy() for argument in arguments))
            parts = [np.asarray(p, float) for p in (result if isinstance(result, tuple) else (result,))]
        except Exception as error:
            return type(error).__name__
        scales = [float(np.abs(part[np.isfinite(part)]).max(initial=1e-300)) for part in parts]
        return [
            (f"{scale:.6g}", np.round(part / scale, 6) + 0.0)  # + 0: one zero, without sign
            for part, scale in zip(parts, scales, strict=True)
        ]


class _Walk:
    """A walk through a value and what it refers to; `own`: a package whose code counts though installed."""

    def __init__(self, own: str) -> None:
        self.own = own
        self.open: list[int] = []  # identities on the way from the first value to this one
        self.known: dict[int, tuple[Any, bytes]] = {}  # identity -> value (which keeps it alive), digest

    def of(self, value: Any) -> bytes:
        """Return the digest of a value; a reference back to a value on the way counts by its depth."""
        if isinstance(value, PLAIN):
            return _hash(type(value).__name__, repr(value).encode())
        if id(value) in self.open:
            return _hash("back", str(self.open.index(id(value))).encode())
        if id(value) not in self.known:
            self.open.append(id(value))
            self.known[id(value)] = value, _hash(*self.parts(value))
            self.open.pop()
        return self.known[id(value)][1]

    def parts(self, value: Any) -> tuple[Any, ...]:
        """Return the kind of a value, then the digests of its parts in an order that does not vary."""
        if isinstance(value, np.ndarray | np.generic) and value.dtype.kind != "O":
            return "array", str((value.dtype.str, value.shape)).encode(), value.tobytes()
        if isinstance(value, np.ndarray):
            return "objects", str(value.shape).encode(), self.of(value.ravel().tolist())
        if isinstance(value, tuple | list):
            return type(value).__name__, *map(self.of, value)
        if isinstance(value, dict | types.MappingProxyType):
            pairs = sorted(((self.of(key), item) for key, item in value.items()), key=lambda pair: pair[0])
            return "dict", *(part for key, item in pairs for part in (key, self.of(item)))
        if isinstance(value, set | frozenset):
            return "set", *sorted(map(self.of, value))
        if isinstance(value, GENERATORS):
            return ("generator",)
        if isinstance(value, type):
            return "class", *self.class_(value)
        if isinstance(value, types.ModuleType):
            return "module", self.module(value)
        if isinstance(value, types.CodeType):
            return "code", *self.code(value)
        if isinstance(value, types.FunctionType):
            return "function", *self.function(value)
        if isinstance(value, property | functools.cached_property):
            return "property", self.of(getattr(value, "fget", None) or getattr(value, "func", None))
        return self.object_(value)

    def code(self, code: types.CodeType) -> list[bytes]:
        """Digest compiled code, without the names of files and the numbers of lines."""
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        counts = (code.co_argcount, code.co_kwonlyargcount, code.co_posonlyargcount)
        return [code.co_code, self.of(names), self.of(counts), self.of(code.co_consts)]

    def function(self, function: types.FunctionType) -> list[bytes]:
        """Digest a function: its code, or its name if it is installed, and what it carries."""
        code, cells = function.__code__, function.__closure__ or ()
        carried = [
            self.of((function.__defaults__, function.__kwdefaults__, vars(function).get("__wrapped__"))),
            *(self.of(_content(cell)) for cell in cells),
        ]
        if code.co_filename.startswith("<frozen") or self.counts_by_name(code.co_filename, function):
            return [function.__qualname__.encode(), *carried]
        names = sorted(_names(code) & function.__globals__.keys())
        return [self.of(code), self.of(names), *(self.of(function.__globals__[n]) for n in names), *carried]

    def class_(self, cls: type) -> list[bytes]:
        """Digest a class: its name if it is installed, else its attributes and bases."""
        if self.is_installed(cls):
            return [cls.__qualname__.encode()]
        attributes = {name: value for name, value in vars(cls).items() if name not in IGNORED}
        return [self.of(attributes), *map(self.of, cls.__bases__)]

    def module(self, module: types.ModuleType) -> bytes:
        """Return the name of an installed module, the text of another one."""
        file = getattr(module, "__file__", None)
        if file is None or self.counts_by_name(file, None):
            return module.__name__.encode()
        return Path(file).read_bytes()

    def object_(self, value: Any) -> tuple[Any, ...]:
        """Digest an instance: what it wraps; else its attributes, or if installed what pickle would store."""
        for wrapped in ("__func__", "py_func", "__wrapped__"):  # methods, numba's functions, decorators
            if inspect.getattr_static(value, wrapped, None) is not None:
                return "wrapped", self.of(getattr(value, wrapped)), self.of(getattr(value, "__self__", None))
        cls = type(value)
        if not self.is_installed(cls) or _top(cls.__module__) == "dpmc":
            return "object", self.of(cls), self.of(_attributes(value))
        if hasattr(cls, "__array__"):  # a data frame, an array of another library
            return "object", self.of(cls), self.of(np.asarray(value))
        try:
            reduced = value.__reduce_ex__(4)
        except Exception:  # cannot be pickled: a lock, an object of another language
            return "object", self.of(cls)
        if isinstance(reduced, str):
            return "object", self.of(cls), reduced.encode()
        stored = [list(part) if hasattr(part, "__next__") else part for part in reduced[1:5]]
        return "object", self.of(cls), self.of(stored)

    def is_installed(self, cls: type) -> bool:
        """Return whether a class counts by its name."""
        if cls.__module__ == "builtins" or not cls.__flags__ & _HEAP_TYPE:
            return not cls.__flags__ & _HEAP_TYPE  # a class made by `exec` says builtins, too
        file = getattr(sys.modules.get(cls.__module__), "__file__", None)
        if file is None:
            return _top(cls.__module__) in sys.stdlib_module_names and cls.__module__ != "__main__"
        return self.counts_by_name(file, cls)

    def counts_by_name(self, file: str, what: Any) -> bool:
        """Return whether code in this file is Python's, dpmc's or of a package other than the model's own."""
        if _top(getattr(what, "__module__", None)) == self.own != "dpmc":
            return False
        return _is_installed(file)


@functools.cache
def _is_installed(file: str) -> bool:
    """Return whether a file is part of Python, of an installed package, or of dpmc."""
    paths = sysconfig.get_paths()
    folders = [Path(paths[key]) for key in ("stdlib", "platstdlib", "purelib", "platlib")]
    return any(Path(file).is_relative_to(folder) for folder in (*folders, Path(__file__).parents[1]))


def _attributes(value: Any) -> dict[str, Any]:
    """Return the attributes of an instance, without cached properties."""
    cls = type(value)
    names = [name for base in cls.__mro__ for name in _slots(base) if hasattr(value, name)]
    found = {**getattr(value, "__dict__", {}), **{name: getattr(value, name) for name in names}}
    cached = functools.cached_property
    return {k: v for k, v in found.items() if not isinstance(inspect.getattr_static(cls, k, None), cached)}


def _slots(cls: type) -> Iterable[str]:
    slots = vars(cls).get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return [name for name in names if name not in ("__dict__", "__weakref__")]


def _names(code: types.CodeType) -> set[str]:
    """Return the names that compiled code and the functions inside it refer to."""
    inner = (const for const in code.co_consts if isinstance(const, types.CodeType))
    return set(code.co_names).union(*map(_names, inner))


def _content(cell: Any) -> Any:
    """Return the content of a closure's cell; ... if it is empty."""
    try:
        return cell.cell_contents
    except ValueError:
        return ...


def _top(module: str | None) -> str:
    return (module or "").partition(".")[0]


def _hash(kind: str, *parts: bytes) -> bytes:
    """Return the SHA-256 hash of parts, each with its length, so that no two lists look alike."""
    found = hashlib.sha256(kind.encode())
    for part in parts:
        found.update(len(part).to_bytes(8, "little"))
        found.update(part)
    return found.digest()
