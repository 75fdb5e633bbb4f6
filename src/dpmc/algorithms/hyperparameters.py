"""Hyperparameters as fields of an algorithm's dataclass, and how they are read, checked and documented.

    tau: float = positive("noise multiplier of a log ratio over √n")

A field's name is its key in studies and hyperparameter files.
"""

import dataclasses
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, Field
from typing import Any, NamedTuple, NoReturn

import numpy as np

from dpmc.common.errors import DpmcError
from dpmc.common.values import MOST, real, shown


class Rule(NamedTuple):
    """The rule that a hyperparameter must satisfy."""

    check: Callable[[Any, int | None], Any]  # (value, d or None) -> value; raises ValueError naming the rule
    words: str  # for documentation
    meaning: str
    when: tuple[str, str] | None  # (key, value): applies only if hyperparameter `key` has that value


def _declared(
    check: Callable[[Any, int | None], Any],
    words: str,
    meaning: str,
    default: Any = MISSING,
    when: tuple[str, str] | None = None,
) -> Any:
    return dataclasses.field(default=default, metadata={"rule": Rule(check, words, meaning, when)})


def positive(
    meaning: str, default: Any = MISSING, infinite: bool = False, when: tuple[str, str] | None = None
) -> Any:
    """Declare a number > 0, finite unless `infinite`."""

    def check(value: Any, _: int | None) -> float:
        number = _in_range(real(value))
        if np.isinf(number) and not infinite:
            raise ValueError("inf must be finite")
        return number

    return _declared(check, "> 0" + (", may be inf" if infinite else ""), meaning, default, when)


def fraction(meaning: str, default: Any = MISSING, below_one: bool = False) -> Any:
    """Declare a number in (0, 1], or in (0, 1) if `below_one`."""

    def check(value: Any, _: int | None) -> float:
        number = _in_range(real(value))
        if number > 1.0:
            raise ValueError(f"{number:g} must be at most 1")
        if below_one and number == 1.0:
            raise ValueError(f"{number} must be less than 1")
        return number

    return _declared(check, "in (0, 1)" if below_one else "in (0, 1]", meaning, default)


def whole(meaning: str) -> Any:
    """Declare a whole number ≥ 1."""

    def check(value: Any, _: int | None) -> int:
        number = real(value)
        if not 1 <= number <= MOST or not number.is_integer():
            raise ValueError(f"{shown(value)} must be a whole number, at least 1 and at most {MOST}")
        return int(number)

    return _declared(check, "whole, at least 1", meaning)


def lengths(meaning: str) -> Any:
    """Declare positive numbers (d,); a scalar is used for every component."""

    def check(value: Any, dimension: int | None) -> np.ndarray:
        items = value if isinstance(value, list | np.ndarray) else [value] * (dimension or 1)
        if dimension is not None and len(items) != dimension:
            raise ValueError(f"has {len(items)} values, the model has {dimension} parameters")
        numbers = np.array([real(item) for item in items])
        if not (np.isfinite(numbers) & (numbers > 0)).all():
            raise ValueError(f"{shown(value)} must be greater than 0 and finite")
        if not ((numbers > 1e-100) & (numbers < 1e100)).all():
            raise ValueError(f"{shown(value)} must be between 1e-100 and 1e100")
        return numbers

    return _declared(check, "> 0, one number or one for each parameter", meaning)


def fixed(value: Any) -> Any:
    """Fix a hyperparameter of the base class at `value`; it can no longer be given."""
    return dataclasses.field(default=value, init=False)


def flag(meaning: str, when: tuple[str, str] | None = None) -> Any:
    """Declare true or false; false if not given."""

    def check(value: Any, _: int | None) -> bool:
        if not isinstance(value, bool):
            raise ValueError(f"{shown(value)} must be true or false")
        return value

    return _declared(check, "true or false", meaning, False, when)


def choice(meaning: str, *known: str) -> Any:
    """Declare one of the `known` words; the first is the default."""

    def check(value: Any, _: int | None) -> str:
        if value not in known:
            raise ValueError(f"{shown(value)} must be one of {', '.join(known)}")
        return str(value)

    return _declared(check, " or ".join(known), meaning, known[0])


def _in_range(number: float) -> float:
    """Return a number > 0 whose square neither overflows nor underflows, or infinity; else ValueError."""
    if not number > 0:
        raise ValueError(f"{number:g} must be greater than 0")
    if np.isfinite(number) and not 1e-100 < number < 1e100:
        raise ValueError(f"{number:g} must be between 1e-100 and 1e100")
    return number


class Values(NamedTuple):
    """Hyperparameters to read, and their sources for error messages."""

    given: dict[str, Any]
    source: str
    options: dict[str, Any] = {}  # override `given`; their source is `options_source`
    options_source: str = ""
    partial: bool = False  # check only the given ones; the others are given later

    def refuse(self, key: str, rule: str) -> NoReturn:
        """Raise DpmcError naming source, key and rule."""
        raise DpmcError(f"{self.options_source if key in self.options else self.source}: {key}: {rule}")


def read(cls: Any, values: Values, dimension: int | None, calibrated: bool = False) -> Any:
    """Return an algorithm with these hyperparameters; None if `values` are partial.

    `dimension` is d, None if not known yet. `calibrated` also allows hyperparameters that only `calibrate`
    reads. Raises DpmcError for a value that is missing, unknown or breaks its rule.
    """
    if not isinstance(values.given, dict):
        raise DpmcError(f"{values.source}: {shown(values.given)} must be a mapping of hyperparameters")
    left = {**values.given, **values.options}
    found: dict[str, Any] = {}
    for field in (*(calibration_fields(cls) if calibrated else ()), *declared(cls)):
        rule: Rule = field.metadata["rule"]
        if rule.when and found[rule.when[0]] != rule.when[1]:
            continue
        if field.name in left:
            try:
                found[field.name] = rule.check(left.pop(field.name), dimension)
            except ValueError as error:
                values.refuse(field.name, str(error))
        elif field.default is not MISSING and not (rule.when and field.default is None):
            found[field.name] = field.default
        elif not values.partial:
            values.refuse(field.name, "missing, and this algorithm needs it")
    for key in left:
        values.refuse(key, "unknown hyperparameter for this algorithm")
    if values.partial:
        return None
    return cls(**{field.name: found[field.name] for field in declared(cls) if field.name in found})


def hyperparameters_in(content: Any, source: str, cell: Mapping[str, str] | None = None) -> dict[str, Any]:
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


def declared(cls: Any) -> list[Field[Any]]:
    """Return the hyperparameters of an algorithm."""
    return [field for field in dataclasses.fields(cls) if field.init]


def describe_missing(cls: Any, given: Collection[str]) -> list[str]:
    """Describe each hyperparameter of an algorithm without default that is not given, for an error."""
    fields = [
        field for field in dataclasses.fields(cls) if field.default is MISSING and field.name not in given
    ]
    rules: list[Rule] = [field.metadata["rule"] for field in fields]
    return [
        f"{field.name} ({rule.meaning}; {rule.words})"
        for field, rule in zip(fields, rules, strict=True)
        if rule.when is None
    ]


def calibration_fields(cls: Any) -> tuple[Field[Any], ...]:
    """Return the hyperparameters that only `calibrate` reads, used if ε is per iteration."""
    extra = getattr(cls, "Calibration", None)
    return dataclasses.fields(extra) if extra else ()


def describe(cls: Any) -> list[tuple[str, str, str, str]]:
    """Return key, meaning, rule and default of each hyperparameter of an algorithm, for documentation."""
    found = []
    for field in (*declared(cls), *calibration_fields(cls)):
        rule: Rule = field.metadata["rule"]
        default = "" if field.default in (MISSING, None) else str(field.default).lower()
        words = rule.words + (f"; only with {rule.when[0]}: {rule.when[1]}" if rule.when else "")
        found.append((field.name, rule.meaning, words, default))
    return found
