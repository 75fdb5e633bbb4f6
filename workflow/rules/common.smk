# Settings and studies, checked before anything runs, and functions that several files of rules share. Studies, data
# and results are in the working directory; published tables and scripts are installed with dpmc.
import argparse
import difflib
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

from dpmc.algorithms import algorithm_class
from dpmc.reports.claims import CLAIMS, other_studies
from dpmc.studies.pairs import tuned_pairs, two_accountings
from dpmc.data import images
from dpmc.common.errors import DpmcError
from dpmc.reports import plots
from dpmc.common.shipped import shipped
from dpmc.studies.figures import declared_figure
from dpmc.common.sources import sources_version
from dpmc.studies import PLACES, load_study, study_files
from dpmc.studies import chain_settings, data_settings, number_of_rows, pinned_hyperparameters
from dpmc.reports import tables as paper_tables
from dpmc.studies.sizes import JOB_NEEDS
from dpmc.studies.targets import check_file, check_target
from dpmc.studies.whole import BASELINE as EXACT_SAMPLES, parts

# Snakemake sets the thread counts of other libraries for each job, but not numba's.
os.environ.setdefault("NUMBA_NUM_THREADS", "1")
# The rules call the `dpmc` and `python` of this environment, even if it is not active.
# DPMC_ROOT is for environment.post-deploy.sh, which installs dpmc in the environments that Snakemake makes.
os.environ |= {
    "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
    "DPMC_ROOT": str(shipped()),
}

# A project that imports this workflow by `module` has its own `config`, in which these keys may be missing.
SETTINGS = {"study": "all", "studies": "config/studies", "job": "auto", "checkpoint_seconds": 20}
RULES, HOME = Path(workflow.current_basedir), Path(workflow.basedir)
IMPORTED = RULES not in (HOME / "workflow/rules", HOME / "rules")

ENVIRONMENT = "../../environment.yml"
PUBLISHED = os.path.relpath(shipped("data", "published"))
SCRIPTS = os.path.relpath(shipped("workflow", "scripts"))
PUBLISHED_FILES = sorted(map(str, Path(PUBLISHED).glob("*.csv")))


def available(study):
    """Return the study without models whose data are unavailable; print each with the reason."""
    why = {label: images.why_missing(spec.data) for label, spec in study.models.items()}
    models = {label: spec for label, spec in study.models.items() if why[label] is None}
    for label in why.keys() - models.keys():
        print(f"{study.name}: {label} is left out: {why[label]}", file=sys.stderr)
    methods = {}
    for label, method in study.methods.items():
        kept = tuple(model for model in method.models if model in models)
        if kept:
            methods[label] = method.model_copy(update={"models": kept})
    return replace(study, models=models, methods=methods)


def refuse(reason):
    """Print a user's mistake in one line, as the commands do, and exit. Snakemake adds a traceback to exceptions."""
    print(f"dpmc: error: {reason}", file=sys.stderr)
    sys.exit(1)


def checked(function, *given):
    """Return what a function of dpmc returns; exit with one line if it raises DpmcError."""
    try:
        return function(*given)
    except DpmcError as error:
        refuse(str(error))


def check_keys():
    """Refuse unknown keys; a project's own Snakefile may have keys for its own rules, but none nearly as ours."""
    if "chains_per_job" in config:
        refuse(
            "config: chains_per_job: is called `job` now, and must be auto, method, cell or chain"
        )
    for key in config.keys() - SETTINGS.keys():
        near = difflib.get_close_matches(key, SETTINGS, 1, 0.75)
        if near or not IMPORTED:
            meant = f"did you mean {near[0]}? " if near else ""
            refuse(f"config: {key}: is unknown; {meant}known: {', '.join(SETTINGS)}")


check_keys()
for key, value in SETTINGS.items():
    config.setdefault(key, value)
STUDY_FILES = checked(study_files, config["studies"])
STUDIES = {name: available(checked(load_study, path)) for name, path in STUDY_FILES.items()}
STUDIES = {name: study for name, study in STUDIES.items() if study.models}
# The commands of the rules find studies by name in these files.
os.environ[PLACES] = os.pathsep.join(map(str, STUDY_FILES.values()))
# Not a parameter of a rule, because a change makes nothing anew.
os.environ |= {"DPMC_CHECKPOINT_SECONDS": str(config["checkpoint_seconds"])}


def check_config():
    """Refuse an impossible setting: of config/config.yaml, of --config, or of a project's own file."""
    for key, known in (
        ("study", [*STUDIES, "all"]),
        ("job", ["auto", "method", "cell", "chain"]),
    ):
        if config[key] not in known:
            refuse(f"config: {key}: {config[key]!r} must be one of {', '.join(known)}")
    seconds = config["checkpoint_seconds"]
    if not isinstance(seconds, (int, float)) or not seconds >= 0:
        refuse(f"config: checkpoint_seconds: {seconds!r} must be a number, at least 0")


def check_workflow_profile():
    """Refuse a workflow profile that does not exist: Snakemake would ignore it and run everything locally."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--workflow-profile", default="none")
    name = parser.parse_known_args()[0].workflow_profile
    profiles = Path(workflow.basedir) / "profiles"
    if name != "none" and not any((place / name).exists() for place in (Path(), profiles)):
        known = sorted(path.parent.name for path in profiles.glob("*/profile.yaml"))
        refuse(f"--workflow-profile: no profile {name!r}; known: {', '.join(known)}")


def check_targets():
    """Refuse misspelt studies, and files of studies that no rule can make; Snakemake finds no rule, or fails."""
    known = {rule.name for rule in workflow.rules}
    outputs = [str(file) for rule in workflow.rules for file in rule.output]
    for before, word in zip(sys.argv, sys.argv[1:]):
        own = IMPORTED and "/" not in word  # it may be a rule that follows
        if not (own or word in known or os.path.exists(word)):
            checked(check_target, os.path.normpath(word), STUDIES)
            if not IMPORTED and before != "--report":  # whose file no rule makes
                checked(check_file, os.path.normpath(word), outputs, STUDIES)


check_config()
check_workflow_profile()


def megabytes(name):
    """Return the function of memory that jobs of a kind ask for."""
    return lambda wildcards, attempt: JOB_NEEDS[name][0] * 2 ** (attempt - 1)


def minutes(name):
    """Return the function of time that jobs of a kind ask for."""
    return lambda wildcards, attempt: JOB_NEEDS[name][1] * 2 ** (attempt - 1)


wildcard_constraints:
    study="|".join(STUDIES),
    model="[a-z0-9.-]+",
    method="[a-z0-9.-]+",
    dataset="[A-Za-z0-9._-]+",
    source="[a-z0-9-]+",
    epsilon="[0-9.]+|inf",
    seed="[0-9]+",
    figure="[a-z0-9-]+",
