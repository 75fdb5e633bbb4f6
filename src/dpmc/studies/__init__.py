"""A study's definition, read from a YAML file and checked before anything runs."""

from dpmc.studies.cells import chain_settings as chain_settings
from dpmc.studies.cells import data_settings as data_settings
from dpmc.studies.cells import definition_of as definition_of
from dpmc.studies.cells import make_cell as make_cell
from dpmc.studies.cells import number_of_rows as number_of_rows
from dpmc.studies.cells import problem_of as problem_of
from dpmc.studies.cells import read_model_rows as read_model_rows
from dpmc.studies.cells import source_version as source_version
from dpmc.studies.documents import read_settings as read_settings
from dpmc.studies.documents import read_yaml as read_yaml
from dpmc.studies.hyperparameters import MissingSettings as MissingSettings
from dpmc.studies.hyperparameters import SourcedValues as SourcedValues
from dpmc.studies.hyperparameters import build_algorithm as build_algorithm
from dpmc.studies.hyperparameters import calibrated_values as calibrated_values
from dpmc.studies.hyperparameters import pinned_hyperparameters as pinned_hyperparameters
from dpmc.studies.loading import PLACES as PLACES
from dpmc.studies.loading import find_study as find_study
from dpmc.studies.loading import load_study as load_study
from dpmc.studies.loading import study_files as study_files
from dpmc.studies.loading import study_of as study_of
from dpmc.studies.study import Study as Study
