"""Printable descriptions of algorithms and hyperparameters, as `dpmc.algorithms()` returns them."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from dpmc.algorithms.hyperparameters import describe


class Hyperparameter(NamedTuple):
    """One hyperparameter: its meaning with unit, its rule, and its default ("" if it has none)."""

    name: str
    meaning: str
    rule: str
    default: str

    def __str__(self) -> str:
        default = f", default {self.default}" if self.default else ""
        return f"{self.name:<21} {self.meaning} ({self.rule}{default})"


@dataclass(frozen=True, repr=False)
class Entry:
    """One algorithm: a line about it, and its hyperparameters by name."""

    name: str
    about: str
    hyperparameters: dict[str, Hyperparameter]

    def __repr__(self) -> str:
        return "\n    ".join([f"{self.name}: {self.about}", *map(str, self.hyperparameters.values())])


class Listing(dict[str, Entry]):
    """Algorithms by name."""

    def __repr__(self) -> str:
        return "\n\n".join(map(repr, self.values()))


def listing(classes: Mapping[str, Any]) -> Listing:
    """Return the descriptions of algorithm classes by name."""
    found = Listing()
    for name, cls in classes.items():
        about = (sys.modules[cls.__module__].__doc__ or "").strip().split("\n")[0]
        own = {field.name for field in fields(cls)}  # without those that only `calibrate` reads
        known = {entry[0]: Hyperparameter(*entry) for entry in describe(cls) if entry[0] in own}
        found[name] = Entry(name, about, known)
    return found
