# A study tries all methods of a model in one job, because a trial takes about as long as the start of Python. If it
# searches settings, each method has a job: chains wait for its file, which is a copy of what the search found.
for name, study in STUDIES.items():
    for model, methods in tried_together(study):
        which = [model, *(methods if study.tuning.mode == "search" else [])]

        rule:
            """part of a run: hyperparameters of methods on a model, tried on tuning data"""
            name:
                "_".join(["tuning", name, *which])
            input:
                data=f"data/{name}/{model}/tuning.nc",
                found=partial(search_found, study, model, methods),
            output:
                expand(TUNED, study=name, model=model, method=methods),
            log:
                f"logs/{name}/tuning/{'/'.join(which)}.log",
            benchmark:
                f"logs/{name}/tuning/{'/'.join(which)}.tsv"
            # Before any sampling, as data.
            priority: 15000
            conda:
                ENVIRONMENT
            resources:
                mem_mb=megabytes("tuning"),
                runtime=minutes("tuning"),
            params:
                study=name,
                model=model,
                methods=methods,
                settings=partial(tuning_settings, study, model, methods),
            shell:
                'if [ -n "{input.found}" ]; then cp {input.found} {output} 2> {log}; else '
                "dpmc tune --study {params.study} --model {params.model} --method {params.methods} "
                "--data {input.data} --output {output} 2> {log}; fi"


# `make tune`. The table of trials is not an output, because Snakemake deletes the outputs of a killed job, and the
# search is resumed from this table.
rule search:
    """part of `make tune`: search the hyperparameters of a method on a model"""
    input:
        data="data/{study}/{model}/tuning.nc",
    output:
        SEARCHED,
    log:
        "logs/{study}/search/{model}/{method}.log",
    benchmark:
        "logs/{study}/search/{model}/{method}.tsv"
    # Long searches first: those of algorithms with gradients.
    priority: lambda w: 1000 * algorithm_class(STUDIES[w.study].method(w.method).algorithm).uses_gradients
    conda:
        ENVIRONMENT
    resources:
        mem_mb=megabytes("search"),
        runtime=minutes("search"),
    params:
        settings=search_settings,
        table="results/{study}/search/{model}/{method}.csv",
    shell:
        "dpmc tune --search --study {wildcards.study} --model {wildcards.model} "
        "--method {wildcards.method} --data {input.data} --output {output} "
        "--table {params.table} 2> {log}"


# For readers only. Chains get their iterations from the accountant: if they read this table, a change of any row
# would make all chains anew.
rule budgets:
    """iterations of all cells by accountant, results/<study>/budgets.csv"""
    input:
        all_found,
    output:
        "results/{study}/budgets.csv",
    log:
        "logs/{study}/budgets.log",
    benchmark:
        "logs/{study}/budgets.tsv"
    # Before sampling: half a minute, for which the end of a run would wait.
    priority: 10000
    conda:
        ENVIRONMENT
    resources:
        mem_mb=megabytes("budgets"),
        runtime=minutes("budgets"),
    params:
        settings=budget_settings,
        version=lambda wildcards: sources_version("dpmc.cli.budgets"),
        tuned=lambda wildcards, input: f"--hyperparameters {input}" if input else "",
    message:
        "Compute the iterations that the budgets of {wildcards.study} allow"
    shell:
        "dpmc budgets --study {wildcards.study} {params.tuned} --output {output} 2> {log}"


rule tuned:
    """`make tune`: hyperparameters that the searches found, results/<study>/tuned.yaml"""
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
        "python {input.script:q} {input.found} > {output} 2> {log}"


# The figure of `make tune`.
rule lessons:
    """`make tune`: figure of the searches, figures/<study>/search/lessons.png"""
    input:
        script=f"{SCRIPTS}/lessons.py",
        found=searches,
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
        study=study_digest,
    shell:
        "python {input.script:q} {wildcards.study} {output} {input.found} 2> {log}"
