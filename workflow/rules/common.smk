# Settings and studies, checked before anything runs, and functions that several files of rules share. Studies, data
# and results are in the working directory; published tables and scripts are installed with dpmc.
import argparse
import json
import os
import sys
from pathlib import Path

from dpmc.claims import CLAIMS
from dpmc.comparing import tuned_pairs, two_accountings
from dpmc.datasets import images
from dpmc.errors import DpmcError
from dpmc import plots
from dpmc.shipped import shipped
from dpmc.studies.figures import declared_figure
from dpmc.sources import version as sources_version
from dpmc.studies import PLACES, load_study, study_files
from dpmc.tables import TABLES as PAPER_TABLES

# Snakemake sets the thread counts of other libraries for each job, but not numba's.
os.environ.setdefault("NUMBA_NUM_THREADS", "1")
# The rules call the `dpmc` and `python` of this environment, even if it is not active.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

# A project that imports this workflow by `module` has its own `config`, in which these keys may be missing.
for key, value in {"study": "all", "job": "auto", "checkpoint_seconds": 20}.items():
    config.setdefault(key, value)

CELL = "results/{study}/chains/{model}/{method}/eps-{epsilon}"
CHAIN = CELL + "/seed-{seed}.nc"
ENVIRONMENT = "../../environment.yml"
# For environment.post-deploy.sh, which installs dpmc in the environments that Snakemake makes of that file.
os.environ["DPMC_ROOT"] = str(shipped())
PUBLISHED = os.path.relpath(shipped("data", "published"))
SCRIPTS = os.path.relpath(shipped("workflow", "scripts"))
PUBLISHED_TABLES = [
    "mmd",
    "ratio_clip_fraction",
    "acceptance_rate",
    "gradient_clip_fraction",
    "mean_error",
    "accountants",
    "clipping_experiment",
    "clipping_experiment_baselines",
    "hmc_trajectory",
    "posterior_starts",
    "models",
]


def available(study):
    """Return the study without models whose data are unavailable; print each with the reason."""
    why = {label: images.missing(spec.data) for label, spec in study.models.items()}
    models = {label: spec for label, spec in study.models.items() if why[label] is None}
    for label in why.keys() - models.keys():
        print(f"{study.name}: {label} is left out: {why[label]}", file=sys.stderr)
    methods = {}
    for label, method in study.methods.items():
        kept = tuple(model for model in method.models if model in models)
        if kept:
            methods[label] = method.model_copy(update={"models": kept})
    return study.model_copy(update={"models": models, "methods": methods})


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


STUDY_FILES = checked(study_files, config.get("studies", "config/studies"))
STUDIES = {name: available(checked(load_study, path)) for name, path in STUDY_FILES.items()}
STUDIES = {name: study for name, study in STUDIES.items() if study.models}
# The commands of the rules find studies by name in these files.
os.environ[PLACES] = os.pathsep.join(map(str, STUDY_FILES.values()))


def check_config():
    """Refuse a setting that is unknown or impossible: of config/config.yaml, of --config, or of a project's own file."""
    if "chains_per_job" in config:
        refuse(
            "config: chains_per_job: is called `job` now, and must be auto, method, cell or chain"
        )
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


check_config()
check_workflow_profile()


wildcard_constraints:
    study="|".join(STUDIES),
    model="[a-z0-9.-]+",
    method="[a-z0-9.-]+",
    dataset="[A-Za-z0-9._-]+",
    source="[a-z0-9-]+",
    epsilon="[0-9.]+|inf",
    seed="[0-9]+",
    figure="[a-z0-9-]+",


def evaluation_data(wildcards):
    """Return the data file on which a model's chains run."""
    spec = STUDIES[wildcards.study].model(wildcards.model)
    return f"data/{wildcards.study}/{wildcards.model}/{spec.data}.nc"


def pinned(study, model, method):
    """Return the hyperparameters of config/hyperparameters."""
    return checked(study.pinned_hyperparameters, model, method)[0]


def model_cells(wildcards):
    """Return the folders of the chains of one model's cells."""
    return [
        CELL.format(study=wildcards.study, model=model, method=method, epsilon=epsilon)
        for model, method, epsilon in STUDIES[wildcards.study].cells()
        if model == wildcards.model
    ]


def model_chains(wildcards):
    """Return the chains of one model: all methods, budgets and seeds."""
    seeds = range(STUDIES[wildcards.study].seeds)
    return [f"{cell}/seed-{seed}.nc" for cell in model_cells(wildcards) for seed in seeds]


def own_models(study):
    """Return the models on which a study runs chains itself."""
    return list(dict.fromkeys(model for model, _, _ in study.cells()))


def own_rows_cells(study):
    """Return the folders of all chains on the user's own rows."""
    return [
        CELL.format(study=study.name, model=model, method=method, epsilon=epsilon)
        for model, method, epsilon in study.cells()
        if study.model(model).rows_file
    ]


with open(f"{PUBLISHED}/mmd.csv") as table:
    PUBLISHED_MODELS = {line.split(",")[0] for line in table}


def study_files(name):
    """Return all figures and tables of a study."""
    study = STUDIES[name]
    tables = {
        "budgets.csv": own_models(study),
        "metrics.csv": not study.figures and own_models(study),
        "spending.txt": own_rows_cells(study),
        "published_comparison.csv": PUBLISHED_MODELS & set(study.models),
        "clipping.csv": any("clip" in method.options for method in study.methods.values()),
        "claims.yaml": name in CLAIMS,
        "table.csv": two_accountings(study),
        "tuned_table.csv": tuned_pairs(study),
    }
    figures = [
        f"figures/{name}/{figure}.{ending}"
        for figure in study.figures
        if figure in PAPER_TABLES or plots.applies(figure, study)
        for ending in (("csv", "md", "tex") if figure in PAPER_TABLES else ("pdf", "png"))
    ]
    page = [f"figures/{name}/index.html"] if figures else []
    return figures + page + [f"results/{name}/{table}" for table, asked in tables.items() if asked]


def all_of(names):
    """Return an input function: the files of studies, each of whose models and rows of the user's can be read.

    It is called when such files are asked for. So `snakemake my-rows.csv` may make missing rows.
    """

    def files(wildcards):
        for study in map(STUDIES.get, names):
            for label, spec in study.models.items():
                if spec.rows_file:
                    checked(study.number_of_rows, label)
        return [file for name in names for file in study_files(name)]

    return files


rule all:
    input:
        all_of(STUDIES),


for study in STUDIES:

    rule:
        name:
            study
        input:
            all_of([study]),
