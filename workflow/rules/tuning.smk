# One job tries all methods of a model: a trial takes less time than the start of Python. Outputs cannot depend on
# wildcards, hence one rule for each study and model.
for name, study in STUDIES.items():
    for model, methods in pinned_trials(study).items():

        rule:
            """part of a run: pinned hyperparameters of the methods on a model, tried on tuning data"""
            name:
                f"tuning_{name}_{model}"
            input:
                data=f"data/{name}/{model}/tuning.nc",
            output:
                expand(TUNED, study=name, model=model, method=methods),
            log:
                f"logs/{name}/tuning/{model}.log",
            # Before any sampling, as data.
            priority: 15000
            conda:
                ENVIRONMENT
            params:
                study=name,
                model=model,
                methods=methods,
                settings=partial(tuning_settings, study, model, methods),
            message:
                f"Try hyperparameters of {name} {model}"
            shell:
                "dpmc tune --study {params.study} --model {params.model} --method {params.methods} "
                "--data {input.data} --output {output} 2> {log}"


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
    # Long searches first: those of algorithms with trajectories.
    priority: lambda wildcards: 1000 * ("hmc" in wildcards.method)
    conda:
        ENVIRONMENT
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
        tried,
    output:
        "results/{study}/budgets.csv",
    log:
        "logs/{study}/budgets.log",
    # Before sampling: half a minute, for which the end of a run would wait.
    priority: 10000
    conda:
        ENVIRONMENT
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
        "python {input.script} {input.found} > {output} 2> {log}"


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
    shell:
        "python {input.script} {wildcards.study} {output} {input.found} 2> {log}"
