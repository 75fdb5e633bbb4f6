"""Jobs find dpmc in the environments that Snakemake makes. conda is replaced here; CI tries the real one."""

import os
import sys
import sysconfig
from pathlib import Path

import pytest

from pipeline_copy import SMALL, copy_pipeline, run

DATA = "data/small/circle/published.nc"

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
    folder = copy_pipeline(tmp_path / "run", {"small": SMALL})
    conda = tmp_path / "conda" / "bin"
    conda.mkdir(parents=True)
    (conda / "conda").write_text(CONDA)
    (conda / "conda").chmod(0o755)
    (conda / "activate").write_text('export PATH="$1/bin:$PATH" CONDA_PREFIX="$1"\n')
    return folder


def snakemake(folder: Path, *words: str, status: int = 0) -> str:
    path = os.pathsep.join([str(folder.parent / "conda" / "bin"), os.environ["PATH"]])
    command = ("-m", "snakemake", "--cores=1", "--software-deployment-method=conda", *words)
    return run(folder, *command, status=status, PATH=path)


def test_jobs_find_dpmc_in_the_environment_that_snakemake_makes(pipeline: Path) -> None:
    snakemake(pipeline, "--", DATA)
    (used,) = (pipeline / ".snakemake" / "conda").glob("*/used")
    (job,) = [line for line in used.read_text().splitlines() if "dpmc data --" in line]
    assert f"{used.parent}/bin/" in job


def test_without_a_clone_the_reason_is_given(pipeline: Path) -> None:
    rules = pipeline / "workflow/rules/common.smk"
    assert "str(shipped())" in rules.read_text()
    rules.write_text(rules.read_text().replace("str(shipped())", "str(Path())"))  # as of an installed wheel
    assert "works with dpmc installed from a clone only" in snakemake(pipeline, "--", DATA, status=1)
    assert not (pipeline / DATA).exists()
