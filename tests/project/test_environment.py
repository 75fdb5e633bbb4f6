"""The descriptions of the environment agree: project file, locks, conda, container, CI."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
PYTHONS = ["3.11", "3.12", "3.13"]

# Not packages that pyproject.toml could name.
CONDA_ONLY = {"python", "pip"}


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.fixture(scope="module")
def direct(project: dict[str, Any]) -> dict[str, Requirement]:
    """Return the requirements of requirements.lock: all but the plugins for clusters."""
    extras = project["project"]["optional-dependencies"]
    return by_name(project["project"]["dependencies"] + extras["workflow"] + extras["dev"])


@pytest.fixture(scope="module")
def lock() -> str:
    return (ROOT / "requirements.lock").read_text()


def by_name(lines: list[str]) -> dict[str, Requirement]:
    requirements = [Requirement(line) for line in lines]
    names = [canonicalize_name(requirement.name) for requirement in requirements]
    assert len(names) == len(set(names)), "a package is listed twice"
    return dict(zip(names, requirements, strict=True))


def locked(lock: str, python: str) -> dict[str, Version]:
    """Return name -> version of the packages that the lock installs on Linux with this Python."""
    environment = {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": "linux",
        "platform_system": "Linux",
        "platform_machine": "x86_64",
        "platform_python_implementation": "CPython",
        "implementation_name": "cpython",
        "os_name": "posix",
    }
    result: dict[str, Version] = {}
    for line in lock.splitlines():
        match = re.fullmatch(r"([a-z][\w.-]*)==([\w.!+-]+)(?: ; ([^\\]+?))?(?: \\)?", line)
        if match and (match[3] is None or Marker(match[3]).evaluate(environment)):
            assert match[1] not in result, f"{match[1]} is locked twice for Python {python}"
            result[match[1]] = Version(match[2])
    return result


def test_conda_lists_the_same_packages_and_bounds(
    project: dict[str, Any], direct: dict[str, Requirement]
) -> None:
    """All packages, those for clusters too; of Python those versions that CI tests."""
    conda: list[str] = []
    for entry in yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]:
        conda += entry["pip"] if isinstance(entry, dict) else [entry]
    listed = by_name(conda)  # raises for an option or a path: a copy of this file is read elsewhere
    newest = int(PYTHONS[-1].removeprefix("3."))
    wanted = SpecifierSet(f"{project['project']['requires-python']},<3.{newest + 1}")
    assert listed["python"].specifier == wanted
    cluster = by_name(project["project"]["optional-dependencies"]["cluster"])
    assert {name: str(r.specifier) for name, r in listed.items() if name not in CONDA_ONLY} == {
        name: str(requirement.specifier) for name, requirement in (direct | cluster).items()
    }


def test_the_container_has_what_the_project_is_built_with_and_the_pipeline_reads(
    project: dict[str, Any],
) -> None:
    first, *others = [
        line
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if not line.startswith(("#", "**/"))
    ]
    copied = {line.removeprefix("!") for line in others}
    assert first == "*" and all(line.startswith("!") for line in others)
    build = project["tool"]["hatch"]["build"]
    needed = {*build["targets"]["wheel"]["force-include"], "src", "profiles", "pyproject.toml"}
    needed |= {project["project"]["readme"], *project["project"]["license-files"], "requirements.lock"}
    assert copied == needed
    assert all((ROOT / name).exists() for name in copied)


@pytest.mark.parametrize("python", PYTHONS)
def test_locks_have_an_allowed_version_of_every_dependency(
    lock: str, project: dict[str, Any], direct: dict[str, Requirement], python: str
) -> None:
    """And of what dpmc is built with, since `pip install --no-build-isolation` finds it there only."""
    first = locked(lock, python)
    wanted = {"": [*direct.values(), *map(Requirement, project["build-system"]["requires"])]}
    for extra in ("cluster", "docs"):
        wanted[extra] = list(by_name(project["project"]["optional-dependencies"][extra]).values())
    for extra, requirements in wanted.items():
        # Further locks are installed on top of the first, without dependencies.
        added = locked((ROOT / f"requirements-{extra}.lock").read_text(), python) if extra else {}
        assert not first.keys() & added.keys()
        versions = first | added
        wrong = [r for r in requirements if versions.get(canonicalize_name(r.name), "0") not in r.specifier]
        assert wrong == []


@pytest.mark.parametrize(("name", "least"), [("", 50), ("-cluster", 3), ("-docs", 20)])
def test_locks_have_a_hash_for_every_entry_and_no_address(name: str, least: int) -> None:
    lock = (ROOT / f"requirements{name}.lock").read_text()
    entries = re.findall(r"^[a-z][^\n]*(?:\n    --hash=sha256:[0-9a-f]{64}(?: \\)?)*", lock, re.M)
    assert len(entries) >= least
    assert [entry for entry in entries if "--hash=" not in entry] == []
    assert re.findall(r"^\s*--(?!hash=)\S+|\w+://\S+|^-\S+| @ \S+", lock, re.M) == []


def test_version_and_python_versions_agree_in_all_files(project: dict[str, Any]) -> None:
    from dpmc import __version__

    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == __version__
    python = "Programming Language :: Python :: 3."
    named = [line for line in project["project"]["classifiers"] if line.startswith(python)]
    assert named == [f"Programming Language :: Python :: {version}" for version in PYTHONS]
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    assert workflow["jobs"]["check"]["strategy"]["matrix"]["python-version"] == PYTHONS
