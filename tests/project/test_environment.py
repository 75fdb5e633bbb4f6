"""The descriptions of the environment agree: project file, locks, conda, container, CI, pre-commit."""

import re
import tomllib
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PYTHONS = ["3.11", "3.12", "3.13"]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PROJECT["project"]["optional-dependencies"]
#: Lock -> extras whose packages it has. The later ones are installed on top of the first.
LOCKS = {"": ["workflow", "dev"], "-cluster": ["cluster"], "-docs": ["docs"]}


def by_name(lines: list[str]) -> dict[str, Requirement]:
    requirements = [Requirement(line) for line in lines]
    named = {canonicalize_name(requirement.name): requirement for requirement in requirements}
    assert len(named) == len(requirements), "a package is listed twice"
    return named


def text_of(lock: str) -> str:
    return (ROOT / f"requirements{lock}.lock").read_text()


def locked(lock: str, python: str) -> dict[str, Requirement]:
    """Return what a lock installs on Linux with this Python."""
    environment = {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": "linux"}
    environment |= {"platform_system": "Linux", "platform_machine": "x86_64", "os_name": "posix"}
    lines = re.findall(r"^[a-z].*?(?= \\$)", text_of(lock), re.M)
    return by_name([line for line in lines if not (m := Requirement(line).marker) or m.evaluate(environment)])


def test_conda_lists_the_same_packages_and_bounds() -> None:
    """All packages, those for clusters too; of Python those versions that CI tests."""
    conda: list[str] = []
    for entry in yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]:
        conda += entry["pip"] if isinstance(entry, dict) else [entry]
    listed = by_name(conda)  # raises for an option or a path: a copy of this file is read elsewhere
    assert listed.pop("pip") and str(listed.pop("python").specifier) == "<3.14,>=3.11"
    lists = [PROJECT["project"]["dependencies"], *(EXTRAS[name] for name in ("workflow", "dev", "cluster"))]
    wanted = by_name([line for lines in lists for line in lines])
    assert {name: r.specifier for name, r in listed.items()} == {n: r.specifier for n, r in wanted.items()}


@pytest.mark.parametrize("python", PYTHONS)
def test_locks_have_an_allowed_version_of_every_dependency(python: str) -> None:
    """And of what dpmc is built with, since `pip install --no-build-isolation` finds it there only."""
    first = locked("", python)
    wanted = [*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"]]
    for lock, extras in LOCKS.items():
        added = locked(lock, python) if lock else {}
        assert not first.keys() & added.keys()
        lines = [*wanted, *(line for extra in extras for line in EXTRAS[extra])]
        for requirement in map(Requirement, lines):
            pinned = (first | added)[canonicalize_name(requirement.name)]
            (version,) = pinned.specifier
            assert version.operator == "==" and version.version in requirement.specifier, requirement
            assert requirement.extras <= pinned.extras, requirement


def test_extras_that_installed_packages_require_are_in_the_lock() -> None:
    """`pip install --require-hashes` takes the line of `coverage` for no answer to `coverage[toml]`."""
    pinned = locked("", PYTHONS[0])
    checked = 0
    for distribution in distributions():
        for requirement in map(Requirement, distribution.requires or []):
            name = canonicalize_name(requirement.name)
            needed = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
            if requirement.extras and needed and name in pinned:
                assert requirement.extras <= pinned[name].extras, f"{distribution.name}: {requirement}"
                checked += 1
    assert checked  # pytest-cov requires coverage[toml]


@pytest.mark.parametrize("lock", LOCKS)
def test_locks_have_a_hash_for_every_entry_and_no_address(lock: str) -> None:
    entries = re.findall(r"^[a-z][^\n]*(?:\n    --hash=sha256:[0-9a-f]{64}(?: \\)?)*", text_of(lock), re.M)
    assert entries and [entry for entry in entries if "--hash=" not in entry] == []
    assert re.findall(r"^\s*--(?!hash=)\S+|\w+://\S+|^-\S+| @ \S+", text_of(lock), re.M) == []


def test_version_and_python_versions_agree_in_all_files() -> None:
    from dpmc import __version__

    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == __version__
    python = "Programming Language :: Python :: 3."
    named = [line for line in PROJECT["project"]["classifiers"] if line.startswith(python)]
    assert named == [f"Programming Language :: Python :: {version}" for version in PYTHONS]
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    assert workflow["jobs"]["check"]["strategy"]["matrix"]["python-version"] == PYTHONS
