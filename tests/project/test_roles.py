"""What a run depends on is said where it is declared: no fact without a role, no list beside the roles."""

import ast
from dataclasses import dataclass
from typing import Any

import pytest

from dpmc.common import checks
from dpmc.common.roles import PUBLIC, Role, declared, derived, fact, facts, part, public_facts, working
from dpmc.common.shipped import PACKAGE
from dpmc.releases.facts import DECLARED, MADE, named
from dpmc.studies.keys import CHAINS, RunKeys, key

#: Lists of names that are no lists of facts, and what they are.
OTHERS = {
    "data/chain_files.py": "what a reader needs of a file, with types",
    "data/datasets.py": "arguments of a setting",
    "metrics/cell.py": "what the chains of a cell have in common",
    "metrics/table.py": "columns of a table",
    "metrics/traces.py": "columns of a table",
    "releases/files.py": "what is printed first of a release",
    "results/__init__.py": "what runs that are joined have in common",
    "results/answers.py": "what a posterior says of its answers",
    "tuning/search.py": "the result of a search",
}


def test_a_field_without_a_role_is_refused_when_its_class_is_made() -> None:
    with pytest.raises(TypeError, match="Wrong.second: has no role"):

        @declared
        @dataclass
        class Wrong:
            first: int = fact(Role.DRAWS)
            second: int = 0

    with pytest.raises(TypeError, match="Shown.third: stands in a release and has no check"):

        @declared
        @dataclass
        class Shown:
            third: int = fact(Role.RELEASE)


def test_a_key_that_does_not_say_what_it_changes_is_refused() -> None:
    with pytest.raises(TypeError, match="Wrong.second: does not say what a change makes anew"):

        class Wrong(RunKeys):
            first: int = key("a key", 1, changes=CHAINS)
            second: int = key("another", 2)


def test_facts_are_those_of_parts_and_of_properties() -> None:
    @declared
    @dataclass
    class Inner:
        a: int = fact(Role.FILE | Role.DRAWS, name="alpha")
        state: int = working()

    @declared
    @dataclass
    class Outer:
        inner: Inner = part()
        b: int = fact(Role.RELEASE, check=checks.whole(0))

        c = derived(Role.FILE | Role.PRIVATE, lambda outer: outer.b + 1)

    made = Outer(Inner(1, 5), 2)
    assert facts(made, Role.FILE) == {"alpha": 1, "c": 3} and facts(made, Role.DRAWS) == {"alpha": 1}
    assert public_facts(made) == {"a": 1, "b": 2}


def test_each_role_yields_something_and_names_stand_for_one_fact_of_a_role() -> None:
    for made, role in MADE.items():
        assert named(role), made
    for role in (Role.FILE, Role.RELEASE, Role.ENTRY):
        names = [name for cls in DECLARED for name in _names(cls, role)]
        assert len(names) == len(set(names))


def _names(cls: Any, role: Role) -> list[str]:
    from dpmc.common.roles import checks as checks_of

    return list(checks_of(cls, role))


def test_there_is_no_list_of_facts_beside_the_declarations() -> None:
    """Such a list could lack one: a resumed release once mixed two columns of a table in this way."""
    known, found = set(named(PUBLIC)), set()
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            items = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [])
            names = {item.value for item in items if isinstance(item, ast.Constant)} & known
            if len(names) >= 5:
                found.add(file.relative_to(PACKAGE).as_posix())
    assert found == OTHERS.keys()
