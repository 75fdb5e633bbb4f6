"""The repository has no paths of a machine, no hosts of registries, no large files."""

import copy
import functools
import json
import operator
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from dpmc.studies.documents import read_yaml

ROOT = Path(__file__).resolve().parents[2]
VALIDATOR = Draft202012Validator(json.loads((ROOT / "config/study.schema.json").read_text()))
LARGEST = 1_500_000  # bytes

# Written in parts, so that this file does not match itself.
MACHINE_PATHS = re.compile(r"(?:^|[^\w.])/(?:home|Users|root|work|tmp|opt|mnt|scratch)/" + r"\w", re.M)
REGISTRIES = re.compile(
    r"pypi\." + r"org|python" + r"hosted|registry\." + r"npm|deb\." + r"debian|repo\." + r"anaconda"
)


def tracked() -> list[Path]:
    """Files that git tracks, or would track if all were added; the folder's files without git."""
    try:
        listing = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout, or no git: which files belong to it cannot be told")
    return [ROOT / name for name in listing.split("\0") if name and (ROOT / name).is_file()]


def matches(pattern: re.Pattern[str]) -> Iterator[str]:
    for path in tracked():
        content = path.read_bytes()
        if b"\0" in content:
            continue
        for number, line in enumerate(content.decode(errors="replace").splitlines(), 1):
            if pattern.search(line):
                yield f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"


def test_no_path_of_a_machine() -> None:
    assert list(matches(MACHINE_PATHS)) == []


def test_no_host_of_a_package_registry() -> None:
    assert list(matches(REGISTRIES)) == []


def test_no_large_file() -> None:
    large = {path.name: path.stat().st_size for path in tracked()}
    assert {name: size for name, size in large.items() if size > LARGEST} == {}


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        (MACHINE_PATHS, "data: /ho" + "me/someone/data.nc"),
        (MACHINE_PATHS, 'open("/tm' + 'p/chain.nc")'),
        (REGISTRIES, "--index-url https://py" + "pi.org/simple"),
    ],
)
def test_the_patterns_see_a_fault(pattern: re.Pattern[str], fault: str) -> None:
    assert pattern.search(fault)


@pytest.mark.parametrize("harmless", ["results/work/x", "a path/to/tmp", "src/root/x", "../home/x"])
def test_the_patterns_let_relative_paths_pass(harmless: str) -> None:
    assert not MACHINE_PATHS.search(harmless)


def test_build_products_are_ignored() -> None:
    products = [
        ".venv/bin/python",
        ".snakemake/locks/0.input.lock",
        "data/thesis/circle/published.nc",
        "results/thesis/metrics.csv",
        "figures/thesis/circle.pdf",
        "report.html",
        ".coverage",
        "dist/dpmc.whl",
        "docs/_build/html/index.html",
    ]
    try:
        done = subprocess.run(
            ["git", "check-ignore", "--no-index", *products],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        pytest.skip("no git")
    if done.returncode == 128:
        pytest.skip("not a git checkout")
    assert done.stdout.split() == products


def test_the_page_of_algorithms_is_that_of_their_declarations() -> None:
    from dpmc.algorithms.__main__ import page

    assert (ROOT / "docs/reference/hyperparameters.md").read_text() == page()


def test_the_tables_of_a_studys_keys_are_those_of_their_declarations() -> None:
    from dpmc.studies.__main__ import tables

    assert tables() in (ROOT / "config/README.md").read_text()


def test_the_schema_of_studies_is_that_of_their_declarations() -> None:
    from dpmc.studies.__main__ import study_schema

    assert (ROOT / "config/study.schema.json").read_text() == study_schema()


@pytest.mark.parametrize("path", sorted((ROOT / "config/studies").glob("*.yaml")), ids=lambda path: path.stem)
def test_the_schema_accepts_the_studies(path: Path) -> None:
    VALIDATOR.validate(read_yaml(path))


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (["delta"], 1.0),
        (["delta"], "0.1/m"),
        (["seeds"], "20"),
        (["chains"], None),
        (["sedes"], 20),
        (["label"], "of the resolved study"),
        (["(added)"], "of the resolved study"),
        (["models"], {}),
        (["models", "Circle"], {"epsilons": [1]}),
        (["models", "circle", "epsilons"], [-1]),
        (["models", "circle", "rows_file"], "rows.csv"),
        (["tuning", "mode"], "serach"),
    ],
)
def test_the_schema_refuses_a_mistake(keys: list[str], value: object) -> None:
    study = copy.deepcopy(read_yaml(ROOT / "config/studies/thesis.yaml"))
    functools.reduce(operator.getitem, keys[:-1], study)[keys[-1]] = value
    assert not VALIDATOR.is_valid(study)
