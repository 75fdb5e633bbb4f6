"""Jobs find dpmc in the environments that Snakemake makes. conda is replaced here; CI tries the real one."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from pipeline_copy import copy_pipeline

STUDY: dict[str, Any] = {
    "title": "one model",
    "delta": "0.1/n",
    "seeds": 1,
    "settings_of": "thesis",
    "models": {"circle": {"epsilons": [1], "tuning_epsilon": 1, "n": 500}},
    "methods": {"dp-penalty": {}},
    "figures": [],
}

# Like conda, it resolves paths of `pip:` from the folder of the file that it is given. The environment gets
# the packages of this one by a path, which leaves out dpmc: that is an editable installation.
CONDA = f"""#!{sys.executable}
import json, sys, venv
from pathlib import Path

import yaml

given = sys.argv[1:]
if given == ["--version"]:
    print("conda 25.1.0")
elif given == ["info", "--json"]:
    print(json.dumps({{"conda_prefix": str(Path(__file__).parents[1]), "platform": "linux-64"}}))
elif given[0] == "clean":
    pass
elif given[0] == "config":
    print(json.dumps({{"get": {{"channel_priority": "strict"}}}}))
else:
    assert given[:2] == ["env", "create"], given
    file, prefix = (Path(given[given.index(name) + 1]) for name in ("--file", "--prefix"))
    for entry in yaml.safe_load(file.read_text())["dependencies"]:
        for line in entry["pip"] if isinstance(entry, dict) else ():
            place = file.parent / line.split()[-1]
            if line.startswith(("-e", "--editable")) and not (place / "pyproject.toml").exists():
                sys.exit(f"{{line}}: no project in {{file.parent}}")
    venv.create(prefix, symlinks=True)
    (folder,) = prefix.glob("lib/python*/site-packages")
    (folder / "others.pth").write_text({sysconfig.get_path("purelib")!r})
    used = f"import sys; open({{str(prefix / 'used')!r}}, 'a').write(' '.join(sys.orig_argv) + chr(10))"
    (folder / "sitecustomize.py").write_text(used)
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    folder = copy_pipeline(tmp_path / "run", {"small": STUDY})
    conda = tmp_path / "conda" / "bin"
    conda.mkdir(parents=True)
    (conda / "conda").write_text(CONDA)
    (conda / "conda").chmod(0o755)
    (conda / "activate").write_text('export PATH="$1/bin:$PATH" CONDA_PREFIX="$1"\n')
    return folder


def snakemake(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder.parent / "conda" / "bin"), os.environ["PATH"]])
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--software-deployment-method", "conda"]
    return subprocess.run(
        [*command, *arguments],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_jobs_find_dpmc_in_the_environment_that_snakemake_makes(pipeline: Path) -> None:
    done = snakemake(pipeline, "--", "data/small/circle/published.nc")
    assert done.returncode == 0, done.stderr
    (used,) = (pipeline / ".snakemake" / "conda").glob("*/used")
    (job,) = [line for line in used.read_text().splitlines() if "dpmc data --" in line]
    assert f"{used.parent}/bin/" in job


def test_without_a_clone_the_reason_is_given(pipeline: Path) -> None:
    rules = pipeline / "workflow/rules/common.smk"
    assert "str(shipped())" in rules.read_text()
    rules.write_text(rules.read_text().replace("str(shipped())", "str(Path())"))  # as of an installed wheel
    done = snakemake(pipeline, "--", "data/small/circle/published.nc")
    assert done.returncode == 1
    assert "works with dpmc installed from a clone only" in done.stderr
    assert not (pipeline / "data/small").exists()
