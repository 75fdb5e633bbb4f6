"""The pipeline in a folder of its own, with the studies of a test in place of the project's."""

import shutil
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]


def copy_pipeline(
    folder: Path,
    studies: dict[str, dict[str, Any]],
    hyperparameters: dict[str, dict[str, Any]] | None = None,
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
