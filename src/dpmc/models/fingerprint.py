"""Fingerprints: digests by which a changed model is noticed, and gets noise of its own.

The fingerprint of a model on some rows covers, first, its values on these rows at a few public positions, to
eight digits: whatever made it another model, a change of these values is seen. Second, for changes that show
at other positions only, the compiled code of its class and of functions that it calls outside installed
packages, with their closures, defaults and globals, and its attributes. Names of the user's classes and
modules, comments and states of random generators do not count.
"""

import copy
import functools
import hashlib
import inspect
import random
import sys
import sysconfig
import types
from pathlib import Path
from typing import Any

import numpy as np

from dpmc.base import Model, NoisySum
from dpmc.common.errors import DpmcError
from dpmc.common.threads import one_blas_thread
from dpmc.evaluators.calls import without_warnings

BITS = 27  #: of a value's mantissa that count: eight digits
PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented))
GENERATORS = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random)
#: Attributes of a class that Python sets, and that say nothing about what it computes.
IGNORED = frozenset(
    """__dict__ __weakref__ __doc__ __module__ __qualname__ __firstlineno__ __static_attributes__
    __annotations__ __annotate__ __annotate_func__ __annotations_cache__ __dataclass_fields__
    __dataclass_params__ __match_args__ __abstractmethods__ __parameters__ __orig_bases__ _abc_impl
    __slots__""".split()
)
_HEAP_TYPE = 1 << 9  # a flag of classes that Python code has made


def digest(*values: object) -> str:
    """Return a SHA-256 hash of Python values, in hexadecimal; equal in any process for equal values."""
    return _Walk().of(values).hex()


@one_blas_thread()
def fingerprint(model: Model, rows: np.ndarray) -> str:
    """Return the fingerprint of a model on rows (n, columns), in hexadecimal.

    It depends on the rows and is no release: it may only key random numbers and name files of this machine.
    Raises DpmcError for a model that is nested too deeply.
    """
    given: Any = getattr(model, "given", model)  # of an adapted model, the user's object
    try:
        return digest(_Walk().of(given), _values(model, rows))
    except RecursionError:
        raise DpmcError("model: its attributes are nested too deeply to recognise the model again") from None


@one_blas_thread()
def public_values(model: Model, columns: int) -> str:
    """Return a digest of the model's values on public rows at public positions, in hexadecimal.

    It is a fact of a release. Attributes of the model do not count, since a model may keep rows there.
    """
    rows = np.abs(np.random.default_rng(0).standard_normal((8, columns)))
    return digest(*(_values(model, table) for table in (np.zeros((2, columns)), np.ones((2, columns)), rows)))


def _values(model: Model, rows: np.ndarray) -> list[Any]:
    """Return the model's values at public positions, each number to `BITS` bits.

    None for a missing method. The error's type where a method fails, since the trial before sampling reports
    errors.
    """
    generator, d = np.random.default_rng(0), int(model.dimension)
    centre = np.asarray(getattr(model, "start", np.zeros(d)), dtype=float)
    positions = [centre, centre + 0.5 * generator.standard_normal(d), 0.5 + generator.random(d)]
    two = np.stack(positions[1:])
    densities = ("log_likelihood", "log_likelihood_gradient")
    calls: list[tuple[str, tuple[Any, ...]]] = [
        *((name, (two[0],)) for name in ("log_prior", "log_prior_gradient")),
        *((name, (two,)) for name in ("gradient_form", "line", "link")),
        *(("ratio_form", (two, two[::-1])), ("statistics", (rows,))),
        *((name, (theta, rows)) for name in densities for theta in positions),
    ]
    if hasattr(model, "summary_count"):
        sums = NoisySum(np.full((2, int(model.summary_count)), 0.5), 10, 1.0, 1.0)
        calls += [("summaries", (rows,)), ("summary_log_likelihood", (two, sums))]
    values: list[Any] = []
    for name, arguments in calls:
        if not hasattr(model, name):
            values.append(None)
            continue
        with without_warnings():
            try:
                # Copies, since a model may change its arguments.
                result = getattr(model, name)(*map(copy.copy, arguments))
                parts = [np.asarray(p, float) for p in (result if isinstance(result, tuple) else (result,))]
            except Exception as error:
                values.append(type(error).__name__)
                continue
            mantissas = [np.frexp(part) for part in parts]
            # Adding 0 makes one zero of two.
            values.append([np.ldexp(np.round(m * 2.0**BITS), e - BITS) + 0.0 for m, e in mantissas])
    return values


class _Walk:
    """A walk through a value and what it refers to."""

    def __init__(self) -> None:
        self.open: list[int] = []  # identities on the way from the first value to this one
        self.known: dict[int, tuple[Any, bytes]] = {}  # identity -> value (which keeps it alive), digest

    def of(self, value: object) -> bytes:
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
        kind = type(value)
        if isinstance(value, np.ndarray | np.generic):
            content = self.of(value.ravel().tolist()) if value.dtype.hasobject else value.tobytes()
            return kind.__name__, str((value.dtype, value.shape)).encode(), content
        if kind in (tuple, list):
            return kind.__name__, *map(self.of, value)
        if kind in (dict, types.MappingProxyType):
            return "dict", *(self.of(part) for pair in value.items() for part in pair)
        if kind in (set, frozenset):
            # A set has no order that is the same in every process; that of a mapping is its own, and counts.
            return "set", *sorted(map(self.of, value))
        if isinstance(value, GENERATORS):
            return ("generator",)
        if isinstance(value, type):
            if _is_installed_class(value):
                return "class", value.__qualname__.encode()
            attributes = {name: part for name, part in vars(value).items() if name not in IGNORED}
            return "class", self.of(attributes), *map(self.of, value.__bases__)
        if isinstance(value, types.ModuleType):
            file = getattr(value, "__file__", None)
            installed = file is None or _is_installed(file)
            return "module", value.__name__.encode() if installed else Path(str(file)).read_bytes()
        if isinstance(value, types.CodeType):
            # Without the names of files and the numbers of lines.
            names = (value.co_names, value.co_varnames, value.co_freevars, value.co_cellvars)
            counts = (value.co_argcount, value.co_kwonlyargcount, value.co_posonlyargcount, value.co_flags)
            return "code", value.co_code, *map(self.of, (names, counts, value.co_consts))
        if isinstance(value, types.FunctionType):
            return "function", *self.function(value)
        if isinstance(value, property | functools.cached_property):
            return "property", self.of(getattr(value, "fget", None) or getattr(value, "func", None))
        return self.instance(value)

    def function(self, function: types.FunctionType) -> list[bytes]:
        """Digest a function: its code, or its name if it is installed, and what it carries."""
        code = function.__code__
        carried = [self.of((function.__defaults__, function.__kwdefaults__, vars(function)))]
        for cell in function.__closure__ or ():
            try:
                carried.append(self.of(cell.cell_contents))
            except ValueError:  # a name that is not bound yet
                carried.append(self.of(...))
        if code.co_filename.startswith("<frozen") or _is_installed(code.co_filename):
            return [function.__qualname__.encode(), *carried]
        names = sorted(_names(code) & function.__globals__.keys())
        return [self.of(code), self.of(names), *(self.of(function.__globals__[n]) for n in names), *carried]

    def instance(self, value: Any) -> tuple[Any, ...]:
        """Digest an instance: what it wraps; else its attributes, or if installed what pickle would store."""
        cls = type(value)
        if not _is_installed_class(cls) or _top(cls) == "dpmc":
            state = object.__getstate__(value)  # attributes; a pair if some are in slots
            parts = state if isinstance(state, tuple) else (state,)
            attributes = {
                name: part
                for held in parts
                for name, part in (held or {}).items()
                if not isinstance(inspect.getattr_static(cls, name, None), functools.cached_property)
            }
            is_container = isinstance(value, tuple | list | dict | set | frozenset)
            return "object", self.of(cls), self.of(list(value)) if is_container else b"", self.of(attributes)
        for wrapped in ("__func__", "py_func", "__wrapped__"):  # methods, numba's functions, decorators
            if inspect.getattr_static(value, wrapped, None) is not None:
                return "wrapped", self.of(getattr(value, wrapped)), self.of(getattr(value, "__self__", None))
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


def _is_installed_class(cls: type) -> bool:
    """Return whether a class counts by its name: it is Python's, dpmc's, or of an installed package."""
    if not cls.__flags__ & _HEAP_TYPE:
        return True
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    if file is None:
        return _top(cls) in sys.stdlib_module_names - {"__main__", "builtins"}  # builtins: made by `exec`
    return _is_installed(file)


@functools.cache
def _is_installed(file: str) -> bool:
    """Return whether a file is part of Python, of an installed package, or of dpmc."""
    paths = sysconfig.get_paths()
    folders = [Path(paths[key]) for key in ("stdlib", "platstdlib", "purelib", "platlib")]
    return any(Path(file).is_relative_to(folder) for folder in (*folders, Path(__file__).parents[1]))


def _names(code: types.CodeType) -> set[str]:
    """Return the names that compiled code and the functions inside it refer to."""
    inner = (const for const in code.co_consts if isinstance(const, types.CodeType))
    return set(code.co_names).union(*map(_names, inner))


def _top(cls: type) -> str:
    return (cls.__module__ or "").partition(".")[0]


def _hash(kind: str, *parts: bytes) -> bytes:
    """Return the SHA-256 hash of parts, each with its length, so that no two lists look alike."""
    sha = hashlib.sha256(kind.encode())
    for part in parts:
        sha.update(len(part).to_bytes(8, "little") + part)
    return sha.digest()
