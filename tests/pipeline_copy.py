"""The pipeline in a folder of its own, with the studies of a test in place of the project's, and its runs."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]

#: A study that is made within seconds; tests change what they are about.
SMALL: dict[str, Any] = {
    "title": "one cell",
    "delta": "0.1/n",
    "seeds": 2,
    "settings_of": "thesis",
    "tuning": {"seeds": 2},
    "models": {"circle": {"epsilons": [0.5], "tuning_epsilon": 0.5, "n": 2_000}},
    "methods": {"dp-penalty": {}},
    "figures": ["models"],
}
#: Three methods with figures, of which runs are killed, moved to a cluster and done in smaller jobs.
REDUCED: dict[str, Any] = {
    **SMALL,
    "seeds": 3,
    "models": {"circle": {"epsilons": [0.3, 0.5], "tuning_epsilon": 0.5, "n": 20_000}},
    "methods": {"dp-penalty": {}, "dp-penalty-guided": {}, "dp-hmc": {}},
    "figures": ["circle"],
}


def copy_pipeline(
    folder: Path,
    studies: dict[str, dict[str, Any]],
    hyperparameters: dict[str, dict[str, Any]] | None = None,
    /,
    **config: object,
) -> Path:
    """Copy the files that a run needs into `folder`, made if missing, and return it.

    `studies`: name -> content; the first is what a bare `snakemake` makes. `hyperparameters`: likewise, in
    place of the project's. `config`: what differs from the project's config/config.yaml.
    """
    folder.mkdir(exist_ok=True)
    for name in ("Snakefile", "environment.yml", "environment.post-deploy.sh"):
        shutil.copy(ROOT / name, folder / name)
    for name in ("workflow", "profiles", "data/published"):
        shutil.copytree(ROOT / name, folder / name)
    if hyperparameters is None:
        shutil.copytree(ROOT / "config/hyperparameters", folder / "config/hyperparameters")
    for room, files in (("studies", studies), ("hyperparameters", hyperparameters or {})):
        (folder / "config" / room).mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / "config" / room / f"{name}.yaml").write_text(yaml.safe_dump(content))
    settings = yaml.safe_load((ROOT / "config/config.yaml").read_text())
    settings |= {"study": next(iter(studies)), **config}
    (folder / "config/config.yaml").write_text(yaml.safe_dump(settings))
    return folder


def run(folder: Path, *words: str, status: int = 0, **environment: str) -> str:
    """Run Python in a folder, with the commands of its environment; return all that it prints."""
    path = os.pathsep.join([str(Path(sys.executable).parent), environment.pop("PATH", os.environ["PATH"])])
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, **environment, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1500,
        check=False,
    )
    assert done.returncode == status, done.stdout[-5000:]
    return done.stdout


def snakemake(folder: Path, *words: str, status: int = 0, **environment: str) -> str:
    """Run Snakemake on one core, unless `words` say otherwise."""
    return run(folder, "-m", "snakemake", "--cores=1", *words, status=status, **environment)


def make_figures(folder: Path, *words: str, status: int = 0, **environment: str) -> str:
    """Run workflow/run.py, as `make figures` does, on one core unless `words` say otherwise."""
    return run(folder, "workflow/run.py", "--cores=1", *words, status=status, **environment)


def bits(folder: Path) -> dict[str, str]:
    """Return a checksum of everything that a run makes, but run times."""
    made = [file for ending in ("nc", "csv", "yaml") for file in folder.glob(f"results/**/*.{ending}")]
    made += folder.glob("figures/**/*.p*")
    assert made
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in made}
