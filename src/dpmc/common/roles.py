"""Facts of a run: what each changes and where it stands, said once, where the fact is declared.

A field of a class that is `declared` is a `fact`, a `part` with facts of its own, or `working` state. A
`derived` property is a fact that follows from others. What keys random numbers, names unfinished files, or
stands in a file is read from these roles by `facts`. `python -m dpmc.releases.facts` prints what each yields.
"""

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING
from enum import Flag, auto
from typing import Any, NamedTuple, TypeVar

from dpmc.common.checks import Check


class Role(Flag):
    """What a fact of a run changes, and where it stands."""

    DRAWS = auto()  # changes the draws of a run, or its noise
    ASKED = auto()  # has its effect by other facts alone, for example by the number of iterations
    FILE = auto()  # an attribute of a chain file
    RELEASE = auto()  # an attribute of a release
    ENTRY = auto()  # a fact of a release in its entry in the ledger of the data set
    PRIVATE = auto()  # a function of the rows: in no release, and in nothing that a release is held against


PUBLIC = Role.DRAWS | Role.ASKED | Role.FILE | Role.RELEASE | Role.ENTRY


class Fact(NamedTuple):
    """The declaration of a fact."""

    role: Role
    name: str = ""  # in files; "": its own
    plain: Callable[[Any], Any] = lambda value: value  # of the value, what stands there; None: no attribute
    check: Check | None = None  # of what stands in a release


_T = TypeVar("_T", bound=type)


def fact(role: Role, *, default: Any = MISSING, default_factory: Any = MISSING, **said: Any) -> Any:
    """Declare a field as a fact; what is `said` of it is as for `Fact`."""
    metadata = {"fact": Fact(role, **said)}
    return dataclasses.field(default=default, default_factory=default_factory, metadata=metadata)


def part(**of_field: Any) -> Any:
    """Declare a field whose value has facts of its own."""
    return dataclasses.field(metadata={"fact": None}, **of_field)


def working(**of_field: Any) -> Any:
    """Declare a field that is no fact: it is made from facts, or holds the state of a computation."""
    return dataclasses.field(metadata={"working": True}, **of_field)


class derived(property):
    """A fact that follows from others: `name = derived(role, lambda run: ...)`; the rest as for `Fact`."""

    def __init__(self, role: Role, get: Callable[[Any], Any], **said: Any) -> None:
        super().__init__(get)
        self.declared = Fact(role, **said)


def declared(cls: _T) -> _T:
    """Check a dataclass: each field has a role, what a release shows a check; else TypeError naming it."""
    for field in dataclasses.fields(cls):
        if not field.metadata.keys() & {"fact", "working"}:
            raise TypeError(f"{cls.__name__}.{field.name}: has no role (dpmc.common.roles)")
    for name, declaration in _declarations(cls):
        if (
            declaration is not None
            and declaration.role & (Role.RELEASE | Role.ENTRY)
            and not declaration.check
        ):
            raise TypeError(f"{cls.__name__}.{name}: stands in a release and has no check")
    return cls


def attributes(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return facts as attributes of a file, mappings as JSON with sorted keys; those of None are left out."""
    return {
        name: json.dumps(value, sort_keys=True) if isinstance(value, Mapping) else value
        for name, value in plain.items()
        if value is not None
    }


def facts(value: Any, role: Role) -> dict[str, Any]:
    """Return name -> plain value of the facts with a role, those of parts among them, in their order."""
    return {fact.name or name: plain for name, fact, plain in _each(value) if fact.role & role}


def public_facts(value: Any) -> dict[str, Any]:
    """Return all facts that are no functions of the rows, by the names of their fields."""
    return {name: plain for name, fact, plain in _each(value) if not fact.role & Role.PRIVATE}


def _each(value: Any) -> Iterator[tuple[str, Fact, Any]]:
    """Yield name, declaration and plain value of each fact, those of parts among them."""
    for name, declaration in _declarations(type(value)):
        if declaration is None:
            yield from _each(getattr(value, name))
        else:
            yield name, declaration, declaration.plain(getattr(value, name))


def checks(cls: type, role: Role) -> dict[str, Check | None]:
    """Return the name of each fact of a class with a role, and what checks it; parts are left out."""
    return {
        declaration.name or name: declaration.check
        for name, declaration in _declarations(cls)
        if declaration is not None and declaration.role & role
    }


def _declarations(cls: type) -> Iterator[tuple[str, Fact | None]]:
    """Yield the name and declaration of each fact of a class, None for a part: fields, then properties."""
    for field in dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ():
        if "fact" in field.metadata:
            yield field.name, field.metadata["fact"]
    for kind in reversed(cls.__mro__):
        for name, value in vars(kind).items():
            if isinstance(value, derived):
                yield name, value.declared
