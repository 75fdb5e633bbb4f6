# Functions that return inputs, parameters and priorities of rules. In a file of their own, as `snakemake --lint` asks.
import hashlib
import itertools
from contextlib import suppress
from functools import partial

from dpmc import models
from dpmc.common import sources
from dpmc.studies.sizes import Part, is_untried, job_parts, size_of_jobs
from dpmc.tuning.search import VERSIONED_MODULES, searched_pairs
from snakemake.exceptions import WorkflowError

RESULTS = Path("results")
CELL = "results/{study}/chains/{model}/{method}/eps-{epsilon}"
CHAIN = f"{CELL}/seed-{{seed}}.nc"
FOUND = "data/downloads/{source}.found"
TUNED = "results/{study}/tuning/{model}/{method}.yaml"
SEARCHED = "results/{study}/search/{model}/{method}.yaml"

with open(f"{PUBLISHED}/mmd.csv") as table:
    PUBLISHED_MODELS = {line.split(",")[0] for line in table}


def evaluation_data(wildcards):
    """Return the data file on which a model's chains run."""
    spec = STUDIES[wildcards.study].model(wildcards.model)
    return f"data/{wildcards.study}/{wildcards.model}/{spec.data}.nc"


def pinned(study, model, method):
    """Return the hyperparameters of config/hyperparameters."""
    return checked(pinned_hyperparameters, study, model, method)[0]


def model_cells(wildcards):
    """Return the folders of the chains of one model's cells."""
    return [
        CELL.format(study=wildcards.study, model=model, method=method, epsilon=epsilon)
        for model, method, epsilon in STUDIES[wildcards.study].cells()
        if model == wildcards.model
    ]


def evaluated(wildcards):
    """Return the options that name what is evaluated: chains, and exact samples of a model of dpmc."""
    cells = model_cells(wildcards)
    own = ":" in STUDIES[wildcards.study].model(wildcards.model).model
    return [*(["--chains", *cells] if cells else []), *([] if own else ["--baselines"])]


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


def data_source(wildcards):
    """Return the source of a data file: the mark of checked pictures, a file of rows, or nothing."""
    spec = STUDIES[wildcards.study].model(wildcards.model)
    pictures = images.image_set(spec.data)
    own = [spec.rows_file] if spec.rows_file else []
    # Files with pinned checksums do not change: found again, they make nothing anew.
    return [ancient(FOUND.format(source=pictures.source.name))] if pictures else own


def trial_settings(study, model, method):
    """Return everything that determines the trial of a method's hyperparameters, or where a search of them starts."""
    settings = chain_settings(study, model, method, study.model(model).tuning_epsilon)
    values = pinned(study, model, method)
    return json.dumps([settings, study.tuning.mode, study.tuning.seeds, values], sort_keys=True)


def tuning_settings(study, model, methods, wildcards):
    """Return everything that determines what a job of trials writes; a change tries all of its methods anew."""
    return [trial_settings(study, model, method) for method in methods]


def search_settings(wildcards):
    """Return everything that determines a search's result; a change searches anew, more trials continue it."""
    study = STUDIES[wildcards.study]
    version = sources_version("dpmc.tuning.search", without=VERSIONED_MODULES)
    settings = trial_settings(study, wildcards.model, wildcards.method)
    return json.dumps([settings, study.tuning.trials, version])


def searches(wildcards):
    """Return the outputs of a study's searches, one for each model and method with free hyperparameters."""
    study = STUDIES[wildcards.study]
    return [
        SEARCHED.format(study=study.name, model=model, method=method)
        for model, method in checked(searched_pairs, study)
    ]


def search_found(study, model, methods, wildcards):
    """Return the result of a search if the study's settings are searched, else nothing."""
    pair = (model, methods[0])
    searched = study.tuning.mode == "search" and pair in checked(searched_pairs, study)
    return [SEARCHED.format(study=study.name, model=model, method=methods[0])] if searched else []


def tried_together(study):
    """Yield model and methods of each job of trials: all of a model, or one where settings are searched."""
    for model in study.models:
        methods = [m for of, m in study.pairs() if of == model and study.is_tried(model, m)]
        if study.tuning.mode == "search":
            yield from ((model, [method]) for method in methods)
        elif methods:
            yield model, methods


def tried(study):
    """Return the tuning files of all methods and models of a study whose hyperparameters are tried."""
    jobs = tried_together(study)
    return [TUNED.format(study=study.name, model=of, method=m) for of, ms in jobs for m in ms]


def all_found(wildcards):
    """Return the tuning files that chains of a study wait for: those of its searches."""
    study = STUDIES[wildcards.study]
    return tried(study) if study.tuning.mode == "search" else []


def budget_settings(wildcards):
    """Return everything in the study that determines its budgets; a change computes them anew."""
    study = STUDIES[wildcards.study]
    cells = [[chain_settings(study, *cell), pinned(study, *cell[:2])] for cell in study.cells()]
    own = [
        checked(number_of_rows, study, label)
        for label, spec in study.models.items()
        if spec.rows_file
    ]
    return json.dumps([*cells, *own], sort_keys=True)


def study_digest(wildcards):
    """Return a digest of a study and its known hyperparameters: a change draws its figures and tables anew.

    Title and list of figures, which the page alone shows, are left out.
    """
    study, known = STUDIES[wildcards.study], []
    for pair in study.pairs():
        with suppress(DpmcError):  # missing ones may be found by a search
            known.append([*pair, pinned_hyperparameters(study, *pair)[0]])
    content = repr([replace(study, title="", figures=()), known])
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def given_cores():
    """Return the cores that a run may use; 1 if not given, as on a cluster, whose nodes have their own."""
    try:
        return workflow.cores
    except WorkflowError:
        return 1


def jobs_at_once():
    """Return how many jobs may run at once: on cores, or as jobs of a cluster (`--jobs`).

    Of a dry run Snakemake does not say whether it is one on a cluster, and its cores are 1 if not given.
    """
    return max(given_cores(), workflow.nodes or 1)


def chains_made():
    """Yield <study>/<model>/<method>/<epsilon>=<number of the first seeds that have chains>.

    Only of studies that have some of their chains: with all or none there is nothing to tell apart.
    """
    for name, study in STUDIES.items():
        numbers = {}
        for model, method, epsilon in study.cells():
            folder = CELL.format(study=name, model=model, method=method, epsilon=epsilon)
            there = set(os.listdir(folder)) if os.path.isdir(folder) else set()
            number = next(n for n in itertools.count() if f"seed-{n}.nc" not in there)
            numbers[f"{name}/{model}/{method}/{epsilon}"] = min(number, study.seeds)
        if len({*numbers.values(), study.seeds}) > 1 and any(numbers.values()):
            yield from (f"{cell}={number}" for cell, number in numbers.items() if number)


def made(study, *cell):
    """Return how many of the first seeds of a cell (model, method, ε) had chains when the run was planned."""
    return int(MADE.get("{}/{}/{}/{}".format(study.name, *cell), 0))


def sampled_together(part, methods):
    """Return wildcards of chains with their values in one job, by its size."""
    known = {}
    if part.size == "method" and not part.algorithm:
        known["epsilon"] = part.epsilons
    if part.size == "method" and part.algorithm:
        known["method"] = methods  # there is one ε, inf
    if part.size != "chain":
        known["seed"] = part.seeds
    return known


def sampling_log(study, part, methods):
    """Return the path of the log of a sampling job without its ending."""
    which = ["eps-{epsilon}"] if part.size != "method" or part.algorithm else []
    if not which and part.epsilons != study.epsilons(part.model, methods[0]):
        which = [f"eps-{'-'.join(part.epsilons)}"]
    if part.size == "chain":
        which.append("seed-{seed}")
    elif len(part.seeds) < study.seeds:
        which.append(f"seeds-{part.seeds[0]}-{part.seeds[-1]}")
    log = "logs/{study}/sampling/{model}/{method}"
    return os.path.join(log, "-".join(which)) if which else log


def sampling_name(study, part):
    """Return the name of rules of sampling, by study and model, and what is not as for the whole model."""
    seeds = (
        [] if len(part.seeds) == study.seeds else ["seeds", str(part.seeds[0]), str(part.seeds[-1])]
    )
    own = [] if part.epsilons == study.model(part.model).epsilons else ["eps", *part.epsilons]
    size = "cells" if JOB == "mixed" and part.size == "cell" else ""
    return "_".join(
        filter(None, ("sample", study.name, part.model, part.algorithm, *own, *seeds, size))
    )


def sampling_runs(part, methods, wildcards, output):
    """Return the options that name the chains of a job. Snakemake does not compare what is made of outputs."""
    epsilons = [wildcards.epsilon] if "epsilon" in wildcards.keys() else part.epsilons
    seeds = [wildcards.seed] if "seed" in wildcards.keys() else part.seeds
    chosen = [wildcards.method] if "method" in wildcards.keys() else methods
    file = f"{Path(output[0]).parents[2]}/{{method}}/eps-{{epsilon}}/seed-{{seed}}.nc"
    runs = ["--method", *chosen, "--epsilon", *epsilons, "--seed", *map(str, seeds)]
    return [*runs, "--output", file]


def is_found(study, model, method):
    """Return whether the hyperparameters of a method are found by a search."""
    return study.tuning.mode == "search" and study.is_tried(model, method)


def hyperparameters_found(study, model, wildcards):
    """Return the tuning file of a search; `dpmc sample` reads pinned settings, for which no chain waits."""
    if "method" in wildcards.keys() and is_found(study, model, wildcards.method):
        return TUNED.format(study=study.name, model=model, method=wildcards.method)
    return []


def sampling_settings(study, part, methods, wildcards):
    """Return what determines the draws of a method, or of all that may share a job, besides inputs, ε and seed."""
    settings = ""
    for method in methods if part.algorithm else [wildcards.method]:
        settings += chain_settings(study, part.model, method, epsilon="")
        if not is_found(study, part.model, method):
            settings += json.dumps(pinned(study, part.model, method), sort_keys=True)
    return settings


def sampling_priority(study, model, methods, wildcards):
    """Return a priority that runs long jobs first: by gradients, dimension and ε."""
    method = study.method(wildcards.get("method", methods[0]))
    gradients = algorithm_class(method.algorithm).uses_gradients
    name = study.model(model).model
    # A user's model is a program: planning a run does not run it.
    dimension = 0 if ":" in name else len(models.definition(name).true_theta)
    epsilon = float(wildcards.get("epsilon", 0))
    return 1000 * gradients + 10 * dimension + int(min(epsilon, 100))


def metric_files(study, models):
    """Return the metric files of models of a study, of its own and of those whose cells it reuses."""
    return [f"results/{of}/metrics/{label}.csv" for of, label in parts(study) if label in models]


def study_metrics(wildcards):
    """Return the metric files of a study's models and baselines, and of models reused from other studies."""
    study = STUDIES[wildcards.study]
    return metric_files(study, study.models)


def figure_metrics(wildcards):
    """Return the metric files of the models that a figure draws."""
    study = STUDIES[wildcards.study]
    models, _ = checked(plots.reads, wildcards.figure, study)
    return metric_files(study, models)


def figure_chains(wildcards):
    """Return the chains that a figure shows; most figures show none."""
    _, files = checked(plots.reads, wildcards.figure, STUDIES[wildcards.study], RESULTS)
    return files


def figure_caption(wildcards):
    """Return caption and text of a figure; bars are escaped, since they are markup in the report."""
    return plots.caption(wildcards.figure, STUDIES[wildcards.study], long=True).replace("|", r"\|")


def figure_declared(wildcards):
    """Return the declaration of a figure; a change draws it anew."""
    return declared_figure(STUDIES[wildcards.study].path, wildcards.figure).model_dump_json()


def figure_version(wildcards):
    """Return a hash of the sources that draw a figure, also of a function of the user's beside the study."""
    study = STUDIES[wildcards.study]
    drawn = declared_figure(study.path, wildcards.figure).draw or ""
    own = sources.file_beside(drawn, study.path.parent, shipped("config", "studies"))
    return sources_version("dpmc.cli.plotting", *filter(None, [own]))


def study_targets(name):
    """Return all figures and tables of a study."""
    study = STUDIES[name]
    asked = {
        "budgets.csv": own_models(study),
        "metrics.csv": True,
        "spending.txt": own_rows_cells(study),
        "claims.yaml": name in CLAIMS,
        "repeated.csv": study.repeated,
        **{table: applies(study) for _, table, _, _, applies in TABLES.values()},
    }
    figures = [
        f"figures/{name}/{figure}{ending}"
        for figure in study.figures
        if figure in paper_tables.LAYOUTS or plots.applies(figure, study)
        for ending in paper_tables.SUFFIXES.get(figure, (".pdf", ".png"))
    ]
    page = [f"figures/{name}/index.html"] if figures else []
    tables = [f"results/{name}/{table}" for table, has in asked.items() if has]
    return figures + page + tables + tried(study)


def page_files(wildcards):
    """Return the pictures and tables of a study, and the comparison with published boxes."""
    files = study_targets(wildcards.study)
    return [
        file
        for file in files
        if file.endswith((".png", "published_comparison.csv"))
        or Path(file).stem in paper_tables.LAYOUTS
    ]


def all_of(names):
    """Return an input function: the files of studies, each of whose models and rows of the user's can be read.

    It is called when such files are asked for. So `snakemake my-rows.csv` may make missing rows.
    """

    def files(wildcards):
        for study in map(STUDIES.get, names):
            for label, spec in study.models.items():
                if spec.rows_file:
                    checked(number_of_rows, study, label)
        return [file for name in names for file in study_targets(name)]

    return files


def results_of_others(study):
    """Return the metrics of the other studies that decide claims, of those that have been run."""
    files = (f"results/{other}/metrics.csv" for other in checked(other_studies, study))
    return [file for file in files if os.path.isfile(file)]


BASELINE = EXACT_SAMPLES[0]  # the label of exact samples
REPEATED = "results/{study}/repeated/{model}/{method}.csv"


def repeated_settings(wildcards):
    """Return everything that determines a table of repeated runs."""
    of, sets = STUDIES[wildcards.study].repeated[wildcards.model]
    model, method = wildcards.model, wildcards.method
    if method == BASELINE:
        return json.dumps([data_settings(of, model), sets])
    values, epsilons = pinned(of, model, method), of.epsilons(model, method)
    return json.dumps(
        [chain_settings(of, model, method, ""), values, epsilons, sets], sort_keys=True
    )


def repeated_runs(wildcards):
    """Return the tables of a study's repeated runs, and those of exact samples: empty if there are none."""
    name = wildcards.study
    return [
        REPEATED.format(study=name, model=label, method=method)
        for label, (of, _) in STUDIES[name].repeated.items()
        for method in (*of.methods, BASELINE)
    ]
