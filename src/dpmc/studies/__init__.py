"""A study's definition, read from a YAML file and checked before anything runs."""

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
    "study_files",
]
