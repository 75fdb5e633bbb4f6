"""Printable descriptions of algorithms and hyperparameters, as `dpmc.algorithms()` returns them."""

import sys
from typing import NamedTuple

from dpmc.algorithms import ALGORITHMS, algorithm_class
from dpmc.algorithms.hyperparameters import Hyperparameter, describe


class Entry(NamedTuple):
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


def listing() -> Listing:
    """Return the descriptions of all algorithms by name."""
    entries = Listing()
    for name in ALGORITHMS:
        cls = algorithm_class(name)
        about = (sys.modules[cls.__module__].__doc__ or "").strip().split("\n")[0]
        known = {described.name: described for described in describe(cls, calibrated=False)}
        entries[name] = Entry(name, about, known)
    return entries
