from dpmc.search import searched_pairs, sources_of_search

TUNED = "results/{study}/tuning/{model}/{method}.yaml"
SEARCHED = "results/{study}/search/{model}/{method}.yaml"


def tuning_settings(wildcards):
    """Return everything that determines a tuning result; a change tunes anew."""
    study = STUDIES[wildcards.study]
    spec = study.model(wildcards.model)
    settings = study.sampling_settings(wildcards.model, wildcards.method, spec.tuning_epsilon)
    values = pinned(study, wildcards.model, wildcards.method)
    return json.dumps([settings, study.tuning.mode, study.tuning.seeds, values], sort_keys=True)


def search_settings(wildcards):
    """Return everything that determines a search's result; a change searches anew, more trials continue it."""
    trials = STUDIES[wildcards.study].tuning.trials
    return json.dumps([tuning_settings(wildcards), trials, sources_of_search()])


def searches(wildcards):
    """Return the outputs of a study's searches, one for each model and method with free hyperparameters."""
    study = STUDIES[wildcards.study]
    return [
        SEARCHED.format(study=study.name, model=model, method=method)
        for model, method in checked(searched_pairs, study)
    ]


def searched_data(wildcards):
    """Return the data on which a study's searches try settings."""
    models = dict.fromkeys(Path(found).parent.name for found in searches(wildcards))
    return [f"data/{wildcards.study}/{model}/tuning.nc" for model in models]


def search_found(wildcards):
    """Return the result of a search if the study's settings are searched, else nothing."""
    found = SEARCHED.format(**wildcards)
    searched = STUDIES[wildcards.study].tuning.mode == "search" and found in searches(wildcards)
    return [found] if searched else []


rule tuning:
    input:
        data="data/{study}/{model}/tuning.nc",
        found=search_found,
    output:
        TUNED,
    log:
        "logs/{study}/tuning/{model}/{method}.log",
    # Before any sampling, as data.
    priority: 15000
    conda:
        ENVIRONMENT
    params:
        settings=tuning_settings,
    # In mode `search` the setting is the one found; otherwise the pinned one is tried.
    shell:
        'if [ -n "{input.found}" ]; then cp {input.found} {output} 2> {log}; else '
        "dpmc tune --study {wildcards.study} --model {wildcards.model} --method {wildcards.method} "
        "--data {input.data} --output {output} 2> {log}; fi"


# `make tune`. The table of trials is not an output, because Snakemake deletes the outputs of a killed job, and the
# search is resumed from this table.
rule search:
    input:
        data="data/{study}/{model}/tuning.nc",
    output:
        found=SEARCHED,
        figure=report(
            "figures/{study}/search/{model}-{method}.png",
            caption="../report/search.rst",
            category="{study}",
            subcategory="searches",
            labels={"model": "{model}", "method": "{method}"},
        ),
    log:
        "logs/{study}/search/{model}/{method}.log",
    # Long searches first: those of algorithms with trajectories.
    priority: lambda wildcards: 1000 * ("hmc" in wildcards.method)
    conda:
        ENVIRONMENT
    params:
        settings=search_settings,
        table="results/{study}/search/{model}/{method}.csv",
    shell:
        "dpmc tune --search --study {wildcards.study} --model {wildcards.model} "
        "--method {wildcards.method} --data {input.data} --output {output.found} "
        "--table {params.table} --figure {output.figure} 2> {log}"


def tried(wildcards):
    """Return the tuning files of all methods and models of a study whose hyperparameters are tried."""
    study = STUDIES[wildcards.study]
    files = [
        TUNED.format(study=study.name, model=model, method=method)
        for model, method, _ in study.cells()
        if study.is_tried(model, method)
    ]
    return list(dict.fromkeys(files))


def budget_settings(wildcards):
    """Return everything in the study that determines its budgets; a change computes them anew."""
    study = STUDIES[wildcards.study]
    cells = [[study.sampling_settings(*cell), pinned(study, *cell[:2])] for cell in study.cells()]
    own = [
        checked(study.number_of_rows, label)
        for label, spec in study.models.items()
        if spec.rows_file
    ]
    return json.dumps([*cells, *own], sort_keys=True)


# For readers only. Chains get their iterations from the accountant: if they read this table, a change of any row
# would make all chains anew.
rule budgets:
    input:
        tried,
    output:
        "results/{study}/budgets.csv",
    log:
        "logs/{study}/budgets.log",
    conda:
        ENVIRONMENT
    params:
        settings=budget_settings,
        version=lambda wildcards: sources_version("dpmc.commands.budgets:budgets"),
        tuned=lambda wildcards, input: f"--hyperparameters {input}" if input else "",
    shell:
        "dpmc budgets --study {wildcards.study} {params.tuned} --output {output} 2> {log}"


rule tuned:
    input:
        script=f"{SCRIPTS}/collect_tuned.py",
        found=searches,
    output:
        "results/{study}/tuned.yaml",
    log:
        "logs/{study}/search/tuned.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        version=lambda wildcards, input: sources_version(Path(input.script)),
    shell:
        "python {input.script} {input.found} > {output} 2> {log}"


# The figure of `make tune`.
rule lessons:
    input:
        script=f"{SCRIPTS}/lessons.py",
        found=searches,
        data=searched_data,
    output:
        report(
            "figures/{study}/search/lessons.png",
            caption="../report/lessons.rst",
            category="{study}",
            subcategory="searches",
            labels={"model": "all", "method": "all"},
        ),
    log:
        "logs/{study}/search/lessons.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        version=lambda wildcards, input: sources_version(Path(input.script)),
    shell:
        "python {input.script} {wildcards.study} {output} {input.found} 2> {log}"
