"""No paths of a machine and no hosts of registries in any file; the schema of studies."""

import copy
import functools
import json
import operator
import re
import subprocess
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from dpmc.studies.documents import read_yaml

ROOT = Path(__file__).resolve().parents[2]
VALIDATOR = Draft202012Validator(json.loads((ROOT / "config/study.schema.json").read_text()))

# Written in parts, so that this file does not match itself.
FORBIDDEN = re.compile(
    r"(?:^|[^\w.])/(?:home|Users|root|work|tmp|opt|mnt|scratch)/" + r"\w|pypi\." + r"org|"
    r"python" + r"hosted|registry\." + r"npm|deb\." + r"debian|repo\." + r"anaconda"
)


def test_no_path_of_a_machine_and_no_host_of_a_package_registry() -> None:
    faults = [
        "data: /ho" + "me/someone/data.nc",
        'open("/tm' + 'p/chain.nc")',
        "https://py" + "pi.org/simple",
    ]
    assert all(map(FORBIDDEN.search, faults))
    assert not any(map(FORBIDDEN.search, ["results/work/x", "a path/to/tmp", "src/root/x", "../home/x"]))
    # Files that git tracks, or would track if all were added.
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listing = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout, or no git: which files belong to it cannot be told")
    lines = {
        f"{name}:{number}: {line.strip()[:100]}"
        for name in filter(None, listing.split("\0"))
        if (ROOT / name).is_file() and b"\0" not in (content := (ROOT / name).read_bytes())
        for number, line in enumerate(content.decode(errors="replace").splitlines(), 1)
        if FORBIDDEN.search(line)
    }
    assert lines == set()


def test_the_schema_accepts_the_studies() -> None:
    for path in (ROOT / "config/studies").glob("*.yaml"):
        VALIDATOR.validate(read_yaml(path))


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (["delta"], "0.1/m"),
        (["sedes"], 20),
        (["models", "circle", "epsilons"], [-1]),
        (["tuning", "mode"], "serach"),
    ],
)
def test_the_schema_refuses_a_mistake(keys: list[str], value: object) -> None:
    study = copy.deepcopy(read_yaml(ROOT / "config/studies/thesis.yaml"))
    functools.reduce(operator.getitem, keys[:-1], study)[keys[-1]] = value
    assert not VALIDATOR.is_valid(study)
