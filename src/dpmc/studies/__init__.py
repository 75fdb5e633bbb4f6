"""A study's definition, read from a YAML file and checked before anything runs."""

import hashlib
from pathlib import Path

from dpmc.studies.documents import read_yaml
from dpmc.studies.keys import MethodSpec, ModelSpec
from dpmc.studies.loading import PLACES, find_study, load_study, study_files
from dpmc.studies.study import MissingSettings, Study

__all__ = [
    "PLACES",
    "MethodSpec",
    "MissingSettings",
    "ModelSpec",
    "Study",
    "find_study",
    "load_study",
    "read_yaml",
    "sources_version",
    "study_files",
]


def sources_version(*rooms: str) -> str:
    """Return a hash of the sources in `rooms`, modules or folders of the package.

    As a parameter of a rule it makes Snakemake repeat steps after a change of the code.
    Raises OSError for a room that does not exist.
    """
    digest = hashlib.sha256()
    for room in rooms:
        place = Path(__file__).parents[1] / room
        inside = [file for file in place.rglob("*") if file.suffix in (".py", ".yaml")]
        for source in sorted(inside) if place.is_dir() else [place]:
            digest.update(source.read_bytes())
    return digest.hexdigest()[:12]
