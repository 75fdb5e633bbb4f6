"""Hyperparameters as fields of an algorithm's dataclass: declared once, then read, checked and described.

    tau: float = positive("noise multiplier of a log ratio over √n")

A field's name is its key in studies and hyperparameter files.
"""

import dataclasses
import difflib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field
from typing import Any, NamedTuple

import numpy as np

from dpmc.base import Algorithm, Values
from dpmc.common.errors import DpmcError
from dpmc.common.values import MOST, count, real, shown

#: Between these a number's square neither overflows nor underflows.
LEAST, LARGEST = 1e-100, 1e100
When = tuple[str, str] | None  #: (key, value): applies only if hyperparameter `key` has that value


class KeyRule(NamedTuple):
    """What a hyperparameter is, and the rule that it must satisfy."""

    meaning: str
    words: str  # the rule
    check: Callable[[Any], Any]  # returns the value to use; raises ValueError naming the rule
    when: When = None
    searched: bool = False  # `dpmc tune` searches it; others keep their pinned values
    is_whole: bool = False


def _declared(rule: KeyRule, default: object = MISSING) -> Any:
    return dataclasses.field(default=default, metadata={"rule": rule})


def _number(value: object, most: float = LARGEST, words: str = "greater than 0") -> float:
    number = real(value)
    if not (LEAST < number <= most):
        raise ValueError(f"{shown(value)} must be {words} (and from {LEAST:g} to {most:g})")
    return number


def positive(
    meaning: str, default: object = MISSING, infinite: bool = False, when: When = None, searched: bool = False
) -> Any:
    """Declare a number > 0, finite unless `infinite`."""

    def check(value: object) -> float:
        return np.inf if infinite and real(value) == np.inf else _number(value)

    words = "> 0, may be inf" if infinite else "> 0"
    return _declared(KeyRule(meaning, words, check, when, searched), default)


def fraction(meaning: str, default: object = MISSING, below_one: bool = False, most: float = 1.0) -> Any:
    """Declare a number in (0, `most`], or in (0, 1) if `below_one`."""
    words = "in (0, 1)" if below_one else f"in (0, {most:g}]"
    # The largest double below 1: one comparison, <=, serves both intervals.
    most = np.nextafter(1.0, 0.0) if below_one else most
    return _declared(KeyRule(meaning, words, lambda value: _number(value, most, words)), default)


def integer(meaning: str, default: object = MISSING, searched: bool = False, most: int = MOST) -> Any:
    """Declare a whole number from 1 to `most`."""

    def check(value: object) -> int:
        number = real(value)
        # What is not whole goes on unchanged: `count` shows it in its error.
        return count(int(number) if number.is_integer() else value, most=most)

    words = "whole, at least 1" + ("" if most == MOST else f", at most {most}")
    return _declared(KeyRule(meaning, words, check, searched=searched, is_whole=True), default)


def lengths(meaning: str, searched: bool = False) -> Any:
    """Declare positive numbers (d,); one number is used for every component."""

    def check(value: object) -> np.ndarray:
        items = value if isinstance(value, list | np.ndarray) else [value]
        return np.array([_number(item) for item in items])

    return _declared(KeyRule(meaning, "> 0, one number or a list", check, searched=searched))


def numbers(meaning: str, default: object = MISSING) -> Any:
    """Declare a tuple of finite numbers."""

    def check(value: object) -> tuple[float, ...]:
        items = value if isinstance(value, list | tuple | np.ndarray) else [value]
        found = tuple(map(real, items))
        if not found or not np.isfinite(found).all():
            raise ValueError(f"{shown(value)} must be one finite number or a list of them")
        return found

    return _declared(KeyRule(meaning, "finite, one number or a list", check), default)


def choice(meaning: str, *known: str, or_range: bool = False) -> Any:
    """Declare one of the `known` words, the first by default; `or_range`: or a pair of numbers, 0 < a < b."""
    pair = "two numbers [a, b], 0 < a < b"

    def check(value: object) -> str | tuple[float, float]:
        if isinstance(value, str) and value in known:
            return str(value)
        if not or_range:
            raise ValueError(f"{shown(value)} must be one of {', '.join(known)}")
        items = list(value) if isinstance(value, list | tuple | np.ndarray) else []
        if len(items) != 2 or not 0.0 < real(items[0]) < real(items[1]):
            raise ValueError(f"{shown(value)} must be {' or '.join(known)}, or {pair}")
        return _number(items[0]), _number(items[1])

    words = " or ".join([*known, pair] if or_range else known)
    return _declared(KeyRule(meaning, words, check), known[0])


def flag(meaning: str, when: When = None) -> Any:
    """Declare true or false; false if not given."""

    def check(value: object) -> bool:
        if not isinstance(value, bool):
            raise ValueError(f"{shown(value)} must be true or false")
        return value

    return _declared(KeyRule(meaning, "true or false", check, when), False)


def fixed(value: object) -> Any:
    """Fix a hyperparameter of the base class at `value`; it can no longer be given."""
    return dataclasses.field(default=value, init=False)


def read(cls: type[Algorithm], values: Mapping[str, Any], source: str, dimension: int | None) -> Algorithm:
    """Return an algorithm with these hyperparameters; `dimension` is d, None if not known yet.

    Raises DpmcError naming `source` for a value that is missing, unknown or breaks its rule.
    """
    return cls(**checked(cls, values, source, dimension))


def checked(
    cls: type[Algorithm],
    values: Mapping[str, Any],
    source: str,
    dimension: int | None,
    elsewhere: Mapping[str, str] | None = None,
    partial: bool = False,
    calibrated: bool = False,
) -> dict[str, Any]:
    """Return hyperparameters as they are used, with defaults; raise DpmcError as `read` does.

    Errors name for a key of `elsewhere` its place there. `partial`: others are given later, so that none is
    missing. `calibrated` also allows hyperparameters that only `calibrate` reads.
    """

    def wrong(key: str, rule: str) -> DpmcError:
        return DpmcError(f"{(elsewhere or {}).get(key, source)}: {key}: {rule}")

    left, ready, known = dict(values), dict[str, Any](), _fields(cls, calibrated)
    for key in values:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            words = f": did you mean {near[0]}?" if near else f"; it has {', '.join(known)}"
            raise wrong(key, f"unknown hyperparameter for this algorithm{words}")
    for key, field in known.items():
        rule: KeyRule = field.metadata["rule"]
        # `when` names a field declared earlier and with a default, so `ready` has it.
        if rule.when and ready[rule.when[0]] != rule.when[1]:
            continue
        if key in left:
            try:
                ready[key] = rule.check(left.pop(key))
            except ValueError as error:
                raise wrong(key, str(error)) from None
        elif field.default is not MISSING and not (rule.when and field.default is None):
            ready[key] = field.default
        elif not partial:
            raise wrong(key, "missing, and this algorithm needs it")
        numbers = ready.get(key)
        if isinstance(numbers, np.ndarray) and dimension is not None:
            numbers = np.repeat(numbers, dimension) if np.ndim(values[key]) == 0 else numbers
            if len(numbers) != dimension:
                raise wrong(key, f"has {len(numbers)} values, the model has {dimension} parameters")
            ready[key] = numbers
    for key in left:
        raise wrong(key, "unknown hyperparameter for this algorithm")
    return ready


def _fields(cls: type[Algorithm], calibrated: bool) -> dict[str, Field[Any]]:
    """Return the hyperparameters of an algorithm by name; `calibrated`: with those of `calibrate`."""
    own = {field.name: field for field in dataclasses.fields(cls) if field.init}
    return own | cls.calibration if calibrated else own


def searched(cls: type[Algorithm]) -> dict[str, KeyRule]:
    """Return the hyperparameters of an algorithm that are searched, last those that not all variants have."""
    rules = {name: field.metadata["rule"] for name, field in _fields(cls, calibrated=True).items()}
    return {n: rules[n] for n in sorted(rules, key=lambda n: rules[n].when is not None) if rules[n].searched}


def is_calibrated(cls: type[Algorithm], epsilon: float, kind: str = "total") -> bool:
    """Return whether ε, of a run or an iteration by `kind`, decides hyperparameters of an algorithm."""
    return epsilon < np.inf and (cls.calibrates_run if kind == "total" else cls.calibrates_iteration)


def calibrated(
    cls: type[Algorithm],
    values: Mapping[str, Any],
    epsilon: float,
    delta: float,
    n: int,
    per_person: int = 1,
    kind: str = "total",
) -> Values:
    """Return hyperparameters with those that (ε, δ) decides on n rows; as given if it decides none.

    (ε, δ) is that of a run or, with `kind` "per-iteration", of one iteration, and of a person with up to
    `per_person` rows. Raises DpmcError if no hyperparameters keep it.
    """
    if per_person > 1 and kind != "total":
        raise DpmcError("rows_per_person: not with an epsilon per iteration, which is that of a row")
    known = dict(values)
    if is_calibrated(cls, epsilon, kind):  # before `calibrate` computes with them
        checked(cls, known, "hyperparameters", None, partial=True, calibrated=True)
    return cls.calibrate(known, epsilon, delta, n, per_person) if is_calibrated(cls, epsilon, kind) else known


def hyperparameters_in(content: object, source: str, cell: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return hyperparameters from a mapping of them, or from a result of `tune`, which names its cell.

    Raises DpmcError if `content` is no mapping, or a result for another cell ("model" and "method").
    """
    if isinstance(content, Mapping) and "hyperparameters" in content:
        for key, wanted in (cell or {}).items():
            if content.get(key, wanted) != wanted:
                raise DpmcError(f"{source}: {key}: {content[key]!r} is not {wanted!r}")
        content = content["hyperparameters"]
    if not isinstance(content, Mapping):
        raise DpmcError(f"{source}: {shown(content)} must be a mapping of hyperparameters")
    return dict(content)


class Hyperparameter(NamedTuple):
    """One hyperparameter: its meaning with unit, its rule, and its default ("" if it has none)."""

    name: str
    meaning: str
    rule: str
    default: str

    def __str__(self) -> str:
        default = f", default {self.default}" if self.default else ""
        return f"{self.name:<21} {self.meaning} ({self.rule}{default})"


def describe(cls: type[Algorithm], calibrated: bool = True) -> list[Hyperparameter]:
    """Describe the hyperparameters of an algorithm; `calibrated`: also those that only `calibrate` reads."""
    described = []
    for key, field in _fields(cls, calibrated).items():
        rule: KeyRule = field.metadata["rule"]
        default = "" if field.default in (MISSING, None) else str(field.default).lower()
        words = rule.words + (f"; only with {rule.when[0]}: {rule.when[1]}" if rule.when else "")
        described.append(Hyperparameter(key, rule.meaning, words, default))
    return described


def not_given(cls: type[Algorithm], given: Mapping[str, Any]) -> list[str]:
    """Describe each hyperparameter of an algorithm without default that is not given, for an error."""
    return [
        f"{key} ({field.metadata['rule'].meaning}; {field.metadata['rule'].words})"
        for key, field in _fields(cls, calibrated=False).items()
        if field.default is MISSING and key not in given
    ]
