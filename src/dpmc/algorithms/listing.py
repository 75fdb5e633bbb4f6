"""The algorithms with their hyperparameters as objects that print well: what `dpmc.algorithms()` returns."""

import sys
from dataclasses import dataclass, fields
from typing import NamedTuple

from dpmc.algorithms import ALGORITHMS, algorithm_class
from dpmc.algorithms.hyperparameters import describe


class Hyperparameter(NamedTuple):
    """One hyperparameter: its meaning with its unit, what it must be, and its default ("": none)."""

    name: str
    meaning: str
    rule: str
    default: str

    def __str__(self) -> str:
        default = f", default {self.default}" if self.default else ""
        return f"{self.name:<21} {self.meaning} ({self.rule}{default})"


@dataclass(frozen=True, repr=False)
class Entry:
    """One algorithm: what it does in a line, and its hyperparameters by name."""

    name: str
    about: str
    hyperparameters: dict[str, Hyperparameter]

    def __repr__(self) -> str:
        return "\n    ".join([f"{self.name}: {self.about}", *map(str, self.hyperparameters.values())])


class Listing(dict[str, Entry]):
    """Algorithms by name."""

    def __repr__(self) -> str:
        return "\n\n".join(map(repr, self.values()))


def listing() -> Listing:
    """Return all algorithms, from their declarations."""
    found = Listing()
    for name in ALGORITHMS:
        cls = algorithm_class(name)
        about = (sys.modules[cls.__module__].__doc__ or "").strip().split("\n")[0]
        own = {field.name for field in fields(cls)}  # without those that only an ε per iteration reads
        known = {entry[0]: Hyperparameter(*entry) for entry in describe(cls) if entry[0] in own}
        found[name] = Entry(name, about, known)
    return found
