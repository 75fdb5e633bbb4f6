"""The command that writes a new project."""

import argparse
import os
import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from dpmc.common.errors import DpmcError
from dpmc.common.files import unwritten
from dpmc.common.shipped import PACKAGE, shipped

TEMPLATE = PACKAGE / "template"
PROFILES = ("slurm/profile.yaml", "generic/profile.yaml")  #: of clusters, as in a clone
DATA = Path("measurements.csv")
EXAMPLE_ROWS = 2000
INTERCEPT, SLOPE = 0.3, 0.8  #: with which the rows are simulated; README.md of the template names them


def init(options: argparse.Namespace) -> None:
    """Write the template and simulated data; raise DpmcError, leaving no file, if one exists or fails."""
    folder: Path = options.folder
    found = [path for path in TEMPLATE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    sources = {path.relative_to(TEMPLATE): path for path in found}
    sources |= {Path("profiles", name): shipped("profiles", name) for name in PROFILES}
    parts = sorted(sources)
    for part in (*parts, DATA):
        if os.path.lexists(folder / part):
            raise DpmcError(f"{folder / part}: exists; dpmc init overwrites nothing, name a new folder")
    try:
        for part in parts:
            (folder / part).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(sources[part], folder / part)
        readme = folder / "README.md"
        readme.write_text(readme.read_text().format(seed=options.seed, n=EXAMPLE_ROWS))
        generator = np.random.default_rng(options.seed)
        x = generator.standard_normal(EXAMPLE_ROWS)
        y = INTERCEPT + SLOPE * x + generator.standard_normal(EXAMPLE_ROWS)
        np.savetxt(folder / DATA, np.column_stack([x, y]), "%.6g", ",", header="x,y", comments="")
    except OSError as error:  # for example a full disk
        for part in (*parts, DATA):
            (folder / part).unlink(missing_ok=True)
        raise unwritten(folder, error) from error
    if not options.quiet:
        print(f"{folder}: a project with simulated data; its README.md names the commands")
        if find_spec("snakemake") is None:
            print("for its Snakefile: pip install 'dpmc-….whl[workflow]'")
