# Studies, checked before anything runs, and the functions that the rules share.
import csv
import json
import math
import os
import sys
from dataclasses import replace
from pathlib import Path

from snakemake.exceptions import WorkflowError

from dpmc.claims import CLAIMS
from dpmc.datasets import DATA_VERSION, DATASET_PATTERN, images
from dpmc.errors import DpmcError
from dpmc.figures import applies as figure_applies
from dpmc.figures import endings as figure_endings
from dpmc.figures import load as load_figure
from dpmc.figures.accountings import pairs as two_accountings
from dpmc.figures.tuned import pairs as published_and_tuned
from dpmc.search import VALUED_BY, searched_pairs
from dpmc.studies import load_study, sources_version
from dpmc.warmup import METRICS, compiled_together, family

# Snakemake sets the other libraries' thread counts for each job; numba's is its own.
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

try:
    STUDIES = {
        path.stem: load_study(path) for path in sorted(Path("config/studies").glob("*.yaml"))
    }
except DpmcError as error:
    raise WorkflowError(str(error)) from None


def leave_out_missing(study):
    """The study without the models whose data are not to be had; says which and why."""
    why = {label: images.missing(spec.data) for label, spec in study.models.items()}
    models = {label: spec for label, spec in study.models.items() if why[label] is None}
    for label in why.keys() - models.keys():
        print(f"{study.name}: {label} is left out: {why[label]}", file=sys.stderr)
    kept = {
        label: tuple(model for model in method.models if model in models)
        for label, method in study.methods.items()
    }
    methods = {
        label: replace(study.methods[label], models=some) for label, some in kept.items() if some
    }
    return replace(study, models=models, methods=methods)


STUDIES = {name: leave_out_missing(study) for name, study in STUDIES.items()}
STUDIES = {name: study for name, study in STUDIES.items() if study.models}

RULES = {
    "study": [*STUDIES, "all"],
    "chains_per_job": ["all", "one"],
}
for key, known in RULES.items():
    if config[key] not in known:
        raise WorkflowError(
            f"config/config.yaml: {key}: {config[key]!r} must be one of {', '.join(known)}"
        )
if (
    not isinstance(config["checkpoint_seconds"], (int, float))
    or not config["checkpoint_seconds"] >= 0
):
    raise WorkflowError(
        f"config/config.yaml: checkpoint_seconds: {config['checkpoint_seconds']!r} must be a number, at least 0"
    )

CHAIN = "results/{study}/chains/{model}/{method}/eps-{epsilon}/seed-{seed}.nc"
COMPILED = "results/{study}/compiled/{families}.txt"
COMPILED_METRICS = COMPILED.replace("{families}", METRICS)
CELL = str(Path(CHAIN).parent)
TUNED = "results/{study}/tuning/{model}/{method}.yaml"
MODEL_METRICS = "results/{study}/metrics/{model}/chains.csv"
FOUND = "data/downloads/{source}.found"
ENVIRONMENT = "../../environment.yml"
PUBLISHED_TABLES = [
    "mmd",
    "ratio_clip_fraction",
    "acceptance_rate",
    "gradient_clip_fraction",
    "accountants",
    "clipping_experiment",
    "clipping_experiment_baselines",
    "hmc_trajectory",
    "posterior_starts",
    "models",
]

# What the jobs of finished runs needed: `python benchmarks/jobs.py`.
with open(Path(workflow.basedir) / "workflow/resources.csv") as table:
    RESOURCES = list(csv.DictReader(table))

with open("data/published/mmd.csv") as table:
    PUBLISHED_MODELS = {line.split(",")[0] for line in table}


wildcard_constraints:
    study="|".join(STUDIES),
    model="[a-z0-9.-]+",
    method="[a-z0-9.-]+",
    families="[A-Za-z0-9_.+-]+",
    dataset=DATASET_PATTERN,
    source="[a-z0-9-]+",
    epsilon="[0-9.]+|inf",
    seed="[0-9]+",
    figure="[a-z0-9-]+",


def study_files(study):
    """All figures and tables of a study."""
    clipping = any("clip" in method.options for method in STUDIES[study].methods.values())
    return [
        *(
            f"figures/{study}/{figure}.{kind}"
            for figure in STUDIES[study].figures
            if figure_applies(figure, STUDIES[study])
            for kind in figure_endings(figure)
        ),
        *(
            [f"results/{study}/published_comparison.csv"]
            if PUBLISHED_MODELS & set(STUDIES[study].models)
            else []
        ),
        *([f"results/{study}/clipping.csv"] if clipping else []),
        *([f"results/{study}/claims.yaml"] if study in CLAIMS else []),
        *([f"results/{study}/table.csv"] if two_accountings(STUDIES[study]) else []),
        *([f"results/{study}/tuned_table.csv"] if published_and_tuned(STUDIES[study]) else []),
    ]


def memory(rule):
    """What a job may hold, in MB: what one of its rule held at most and a half more, twice as much at each retry.

    No less than compiling takes, which a job does that finds no machine code; so much for each of its processes.
    """
    held = max(float(line["mem_mb"]) for line in [*measured(rule), *measured("compile")])

    def asks(wildcards, attempt, threads):
        return 100 * math.ceil(1.5 * held / 100) * threads * 2 ** (attempt - 1)

    return asks


def minutes(rule):
    """What a job may take: four times the longest of its rule and ten minutes at least; twice as long at each retry."""
    took = max(float(line["seconds"]) for line in measured(rule))

    def asks(wildcards, attempt):
        return max(10, math.ceil(4 * took / 60)) * 2 ** (attempt - 1)

    return asks


def measured(rule, method=""):
    """Lines of the table of resources on a rule, and a method; for a rule never measured, on all rules of its kind."""
    sampling = rule.startswith("sample_")
    lines = (
        [line for line in RESOURCES if line["rule"] == rule]
        or [line for line in RESOURCES if sampling and line["rule"].startswith("sample_")]
        or RESOURCES
    )
    return [line for line in lines if line["method"] == method] if method else lines


def every_core(wildcards):
    """All cores of this machine's run; on a cluster one, for there nobody knows them, and each job has its own."""
    return workflow.resource_settings.cores or 1


def figure_caption(wildcards):
    """What a figure's own module says of it; bars would be markup in the report's captions."""
    return load_figure(wildcards.figure).CAPTION.replace("|", r"\|")


def evaluation_data(wildcards):
    """The data set on which a model's chains run."""
    spec = STUDIES[wildcards.study].model(wildcards.model)
    return f"data/{wildcards.study}/{wildcards.model}/{spec.data}.nc"


def what_to_compile(wildcards):
    """The options of `dpmc compile` for all algorithms on some classes of models."""
    if wildcards.families == METRICS:
        return "--metrics"
    cells = compiled_together(STUDIES[wildcards.study])[wildcards.families]
    models, methods = (dict.fromkeys(labels) for labels in zip(*cells))
    return f"--model {' '.join(models)} --method {' '.join(methods)}"


def compiled_sampler(wildcards):
    """The mark that a cell's machine code is in the cache."""
    study = STUDIES[wildcards.study]
    own = family(study.model(wildcards.model).model)
    names = next(names for names in compiled_together(study) if own in names.split("+"))
    return COMPILED.format(study=study.name, families=names)


def data_settings(wildcards):
    """Everything that decides a data file; a change makes it anew."""
    study = STUDIES[wildcards.study]
    spec = study.model(wildcards.model)
    pictures = [spec.data] if images.image_set(spec.data) else []
    return json.dumps([spec.model, spec.n, spec.start, study.start_points, DATA_VERSION, *pictures])


def image_source(wildcards):
    """The mark that the pictures of a model's data set are there and checked; nothing for other data sets."""
    pictures = images.image_set(STUDIES[wildcards.study].model(wildcards.model).data)
    return [FOUND.format(source=pictures.source.name)] if pictures else []


def pinned(wildcards):
    """The hyperparameters that stand in config/hyperparameters."""
    try:
        values, _ = STUDIES[wildcards.study].pinned_hyperparameters(
            wildcards.model, wildcards.method
        )
    except DpmcError as error:
        raise WorkflowError(str(error)) from None
    return values


def tuning_settings(wildcards):
    """Everything that decides a tuning result; a change tunes anew."""
    study = STUDIES[wildcards.study]
    spec = study.model(wildcards.model)
    values = pinned(wildcards)
    settings = study.sampling_settings(wildcards.model, wildcards.method, spec.tuning_epsilon)
    return json.dumps([settings, study.tuning_mode, study.tuning_seeds, values], sort_keys=True)


def search_settings(wildcards):
    """Everything that decides a search's result; a change searches anew, more trials go on from those made."""
    trials = STUDIES[wildcards.study].tuning_trials
    return json.dumps(
        [tuning_settings(wildcards), trials, sources_version("search.py", *VALUED_BY)]
    )


def searches(wildcards):
    """What the searches of a study find: for each model and method that there is something to search for."""
    study = STUDIES[wildcards.study]
    try:
        return [
            f"results/{study.name}/search/{model}/{method}.yaml"
            for model, method in searched_pairs(study)
        ]
    except DpmcError as error:
        raise WorkflowError(str(error)) from None


def searched_data(wildcards):
    """The data on which a study's searches tried their settings."""
    models = dict.fromkeys(Path(found).parent.name for found in searches(wildcards))
    return [f"data/{wildcards.study}/{model}/tuning.nc" for model in models]


def search_found(wildcards):
    """What a search found, in a study whose settings are searched; nothing in others."""
    found = f"results/{wildcards.study}/search/{wildcards.model}/{wildcards.method}.yaml"
    searched = STUDIES[wildcards.study].tuning_mode == "search" and found in searches(wildcards)
    return [found] if searched else []


def tuning_data(wildcards):
    """The data on which settings are tried; in a study that tries none, the chains' own, which are not read."""
    if STUDIES[wildcards.study].tuning_mode == "none":
        return evaluation_data(wildcards)
    return f"data/{wildcards.study}/{wildcards.model}/tuning.nc"


def hyperparameters(wildcards):
    """What tuning wrote; nothing for a cell whose settings are not tried: `dpmc sample` reads the pinned ones."""
    tried = STUDIES[wildcards.study].is_tried(wildcards.model, wildcards.method)
    return [TUNED.format(**wildcards)] if tried else []


def sampling_settings(wildcards):
    """Everything beside its input files that decides a cell's draws; a change samples anew."""
    study = STUDIES[wildcards.study]
    settings = study.sampling_settings(wildcards.model, wildcards.method, wildcards.epsilon)
    if study.is_tried(wildcards.model, wildcards.method):
        return settings
    return settings + json.dumps(pinned(wildcards), sort_keys=True)


def sampling_priority(wildcards):
    """Long cells first, so that none is left alone at the end."""
    hmc = "hmc" in wildcards.method
    return int(10 * float(wildcards.epsilon if wildcards.epsilon != "inf" else 100)) + 1000 * hmc


def search_priority(wildcards):
    """Long searches first: those of trajectories."""
    return 1000 * ("hmc" in wildcards.method)


def model_cells(wildcards):
    """The folders of the chains of one model's cells."""
    return [
        CELL.format(study=wildcards.study, model=model, method=method, epsilon=epsilon)
        for model, method, epsilon in STUDIES[wildcards.study].cells()
        if model == wildcards.model
    ]


def model_chains(wildcards):
    """The chains of one model, all methods, budgets and seeds."""
    seeds = range(STUDIES[wildcards.study].seeds)
    return [f"{cell}/seed-{seed}.nc" for cell in model_cells(wildcards) for seed in seeds]


def own_models(study):
    """The models on which a study runs something itself."""
    return list(dict.fromkeys(model for model, _, _ in study.cells()))


def speed_data(wildcards):
    """The data of all models whose methods are timed."""
    study = STUDIES[wildcards.study]
    return [
        f"data/{study.name}/{model}/{study.model(model).data}.nc" for model in own_models(study)
    ]


def speed_compiled(wildcards):
    """The marks that the machine code of a whole study is in the cache."""
    study = STUDIES[wildcards.study]
    return [COMPILED.format(study=study.name, families=names) for names in compiled_together(study)]


def speed_settings(wildcards):
    """What is timed; a change times anew."""
    study = STUDIES[wildcards.study]
    return [study.sampling_settings(*cell) for cell in study.cells()]


def study_metrics(wildcards):
    """The metric files of all models and baselines of a study, and of the models that it takes from others."""
    study = STUDIES[wildcards.study]
    chains = [MODEL_METRICS.format(study=study.name, model=model) for model in own_models(study)]
    baselines = [
        f"results/{study.name}/metrics/{model}/baseline.csv"
        for model in study.models
        if ":" not in study.models[model].model
    ]
    reused = [MODEL_METRICS.format(study=other, model=model) for other, model in study.reused()]
    return chains + baselines + reused


rule all:
    input:
        [file for study in STUDIES for file in study_files(study)],


for study in STUDIES:

    rule:
        name:
            study
        input:
            study_files(study),
