"""Fingerprints: digests by which a changed model is noticed, and gets noise of its own.

The fingerprint of a model on some rows covers, first, its values on these rows at a few public positions, to
eight digits: whatever made it another model, a change of these values is seen. Second, for changes that show
at other positions only, the text of its class and functions, the closures, defaults and globals of these
functions, and its public attributes. Of what these refer to, plain data, arrays and dataclasses count by
their values, all else by its text, or its name if it is dpmc's or has no text.
"""

import copy
import functools
import hashlib
import inspect
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any

import numpy as np

from dpmc.base import Model
from dpmc.common.errors import DpmcError
from dpmc.common.threads import one_blas_thread
from dpmc.evaluators.calls import without_warnings

SEEN_ROWS = 2**17  #: at which values are computed: statistics are many times as large as their rows
BITS = 27  #: of a value's mantissa that count: eight digits
PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented))


def digest(*values: object) -> str:
    """Return a SHA-256 hash of Python values, in hexadecimal; equal in any process for equal values."""
    return _digest(values).hex()


@one_blas_thread()
def fingerprint(model: Model, rows: np.ndarray) -> str:
    """Return the fingerprint of a model on rows (n, columns), the first `SEEN_ROWS`, in hexadecimal.

    It depends on the rows and is no release: it may only key random numbers and name files of this machine.
    Raises DpmcError for a model whose attributes are nested too deeply, or contain themselves.
    """
    given: Any = getattr(model, "given", model)  # of an adapted model, the user's object
    classes = [each for each in type(given).__mro__ if each is not object and not _is_ours(each)]
    attributes = [_attributes(given), *map(_public, map(vars, classes))]
    carried = [_carried(value) for held in attributes for value in held.values() if inspect.isfunction(value)]
    texts = [_text(each) for each in (type(given), *classes)]
    try:
        return digest(texts, attributes, carried, _values(model, rows[:SEEN_ROWS]))
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
    if hasattr(model, "sigmoid_form"):
        calls.append(("sigmoid_form", (two,)))
    if hasattr(model, "summary_count"):
        calls.append(("summaries", (rows,)))
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


def _attributes(value: Any) -> dict[str, Any]:
    """Return the public attributes that an object itself has, without what it caches."""
    state = object.__getstate__(value)  # a pair if some are in slots
    return {
        name: held
        for part in (state if isinstance(state, tuple) else (state,))
        for name, held in _public(part or {}).items()
        if not isinstance(inspect.getattr_static(type(value), name, None), functools.cached_property)
    }


def _public(named: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in named.items() if not name.startswith("_")}


def _carried(function: Any) -> list[Any]:
    """Return a function's text, its defaults, and what its names of closures and globals refer to."""
    try:
        seen = inspect.getclosurevars(function)
    except ValueError:  # a name that is not bound yet
        return [_text(function), function.__defaults__, function.__kwdefaults__]
    return [_text(function), function.__defaults__, function.__kwdefaults__, seen.nonlocals, seen.globals]


def _text(value: Any) -> str:
    """Return the source text of a class, function or module, else of an object's class; else a name."""
    for thing in (value, type(value)):
        if _is_ours(thing):
            break
        try:
            return inspect.getsource(thing)
        except Exception:  # it is compiled, or was typed in, or its file is gone
            continue
    return str(getattr(value, "__qualname__", type(value).__qualname__))


def _is_ours(value: Any) -> bool:
    """Return whether a class, function or module is part of dpmc, whose texts do not count."""
    module = getattr(value, "__module__", None) or getattr(value, "__name__", "")
    return str(module).partition(".")[0] == "dpmc"


def _digest(value: Any) -> bytes:
    kind = type(value).__name__
    if isinstance(value, PLAIN):
        return _hash(kind, repr(value).encode())
    if isinstance(value, np.ndarray | np.generic):
        content = _digest(value.ravel().tolist()) if value.dtype.hasobject else value.tobytes()
        return _hash(kind, str((value.dtype, value.shape)).encode(), content)
    if isinstance(value, tuple | list):
        return _hash(kind, *map(_digest, value))
    if isinstance(value, Mapping):
        return _hash("dict", *(_digest(part) for pair in value.items() for part in pair))
    if isinstance(value, set | frozenset):  # whose order is not the same in every process
        return _hash("set", *sorted(map(_digest, value)))
    attributes = _attributes(value) if is_dataclass(value) and not isinstance(value, type) else {}
    return _hash("other", _text(value).encode(), _digest(attributes))


def _hash(kind: str, *parts: bytes) -> bytes:
    """Return the SHA-256 hash of parts, each with its length, so that no two lists look alike."""
    sha = hashlib.sha256(kind.encode())
    for part in parts:
        sha.update(len(part).to_bytes(8, "little") + part)
    return sha.digest()
