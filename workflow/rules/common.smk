# Studies, checked before anything runs, and the functions that the rules share.
import json
import os
from pathlib import Path

from snakemake.exceptions import WorkflowError

from dpmc.claims import CLAIMS
from dpmc.datasets import DATA_VERSION
from dpmc.errors import DpmcError
from dpmc.figures import endings as figure_endings
from dpmc.figures import load as load_figure
from dpmc.figures.accountings import pairs as two_accountings
from dpmc.studies import load_study, sources_version
from dpmc.warmup import METRICS, combination, combinations

# Snakemake sets the other libraries' thread counts for each job; numba's is its own.
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

try:
    STUDIES = {
        path.stem: load_study(path) for path in sorted(Path("config/studies").glob("*.yaml"))
    }
except DpmcError as error:
    raise WorkflowError(str(error)) from None

RULES = {
    "study": [*STUDIES, "all"],
    "chains_per_job": ["all", "one"],
}
for key, known in RULES.items():
    if config[key] not in known:
        raise WorkflowError(
            f"config/config.yaml: {key}: {config[key]!r} must be one of {', '.join(known)}"
        )
if not isinstance(config["checkpoint_seconds"], (int, float)) or config["checkpoint_seconds"] < 0:
    raise WorkflowError(
        f"config/config.yaml: checkpoint_seconds: {config['checkpoint_seconds']!r} must be a number, at least 0"
    )

CHAIN = "results/{study}/chains/{model}/{method}/eps-{epsilon}/seed-{seed}.nc"
COMPILED = "results/{study}/compiled/{combination}.txt"
COMPILED_METRICS = COMPILED.replace("{combination}", METRICS)
CELL = str(Path(CHAIN).parent)
MODEL_METRICS = "results/{study}/metrics/{model}/chains.csv"
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

with open("data/published/mmd.csv") as table:
    PUBLISHED_MODELS = {line.split(",")[0] for line in table}


wildcard_constraints:
    study="|".join(STUDIES),
    model="[a-z0-9.-]+",
    method="[a-z0-9.-]+",
    combination="[A-Za-z0-9_.-]+",
    dataset="published|tuning|fresh-[0-9]+",
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
    ]


def figure_caption(wildcards):
    """What a figure's own module says of it; bars would be markup in the report's captions."""
    return load_figure(wildcards.figure).CAPTION.replace("|", r"\|")


def evaluation_data(wildcards):
    """The data set on which a model's chains run."""
    spec = STUDIES[wildcards.study].model(wildcards.model)
    return f"data/{wildcards.study}/{wildcards.model}/{spec.data}.nc"


def what_to_compile(wildcards):
    """The options of `dpmc compile` for one combination of algorithm and class of models."""
    if wildcards.combination == METRICS:
        return "--metrics"
    cells = combinations(STUDIES[wildcards.study])[wildcards.combination]
    models, methods = (dict.fromkeys(labels) for labels in zip(*cells))
    return f"--model {' '.join(models)} --method {' '.join(methods)}"


def compiled_sampler(wildcards):
    """The mark that a cell's machine code is in the cache."""
    name = combination(STUDIES[wildcards.study], wildcards.model, wildcards.method)
    return COMPILED.format(study=wildcards.study, combination=name)


def data_settings(wildcards):
    """Everything that decides a data file; a change makes it anew."""
    study = STUDIES[wildcards.study]
    spec = study.model(wildcards.model)
    starts = max(20, study.seeds * study.chains)
    return json.dumps([spec.model, spec.n, spec.start, starts, DATA_VERSION])


def tuning_settings(wildcards):
    """Everything that decides a tuning result; a change tunes anew."""
    study = STUDIES[wildcards.study]
    spec = study.model(wildcards.model)
    values, _ = study.published_hyperparameters(wildcards.model, wildcards.method)
    settings = study.sampling_settings(wildcards.model, wildcards.method, spec.tuning_epsilon)
    return json.dumps([settings, study.tuning_mode, study.tuning_seeds, values], sort_keys=True)


def sampling_settings(wildcards):
    """Everything beside its input files that decides a cell's draws; a change samples anew."""
    return STUDIES[wildcards.study].sampling_settings(
        wildcards.model, wildcards.method, wildcards.epsilon
    )


def sampling_priority(wildcards):
    """Long cells first, so that none is left alone at the end."""
    hmc = "hmc" in wildcards.method
    return int(10 * float(wildcards.epsilon if wildcards.epsilon != "inf" else 100)) + 1000 * hmc


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


def study_metrics(wildcards):
    """The metric files of all models and baselines of a study, and of the models that it takes from others."""
    study = STUDIES[wildcards.study]
    evaluated = dict.fromkeys(model for model, _, _ in study.cells())
    chains = [MODEL_METRICS.format(study=study.name, model=model) for model in evaluated]
    baselines = [
        f"results/{study.name}/metrics/{model}/baseline.csv"
        for model in study.models
        if ":" not in study.models[model].model
    ]
    reused = [MODEL_METRICS.format(study=other, model=model) for other, model in study.reused()]
    return chains + baselines + reused


rule default:
    default_target: True
    input:
        [
            file
            for study in (STUDIES if config["study"] == "all" else [config["study"]])
            for file in study_files(study)
        ],


rule all:
    input:
        [file for study in STUDIES for file in study_files(study)],


for study in STUDIES:

    rule:
        name:
            study
        input:
            study_files(study),
