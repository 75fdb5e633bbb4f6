"""A study's definition, read from a YAML file and checked before anything runs."""

from dpmc.studies.cells import (
    chain_settings,
    definition_of,
    make_cell,
    number_of_rows,
    read_rows,
    source_version,
)
from dpmc.studies.documents import read_yaml
from dpmc.studies.hyperparameters import (
    Hyperparameters,
    MissingSettings,
    build_algorithm,
    calibrated_values,
    pinned_hyperparameters,
)
from dpmc.studies.loading import PLACES, find_study, load_study, study_files
from dpmc.studies.study import Study, StudyMethod, StudyModel

__all__ = [
    "PLACES",
    "Hyperparameters",
    "MissingSettings",
    "Study",
    "StudyMethod",
    "StudyModel",
    "build_algorithm",
    "calibrated_values",
    "definition_of",
    "find_study",
    "load_study",
    "make_cell",
    "number_of_rows",
    "pinned_hyperparameters",
    "read_rows",
    "read_yaml",
    "chain_settings",
    "source_version",
    "study_files",
]
