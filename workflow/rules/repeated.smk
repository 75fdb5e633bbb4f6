# Repeated runs: a method on many data sets of a model, for the coverage of its intervals. Finished runs are kept beside
# the output, which a killed job goes on from.
from dpmc.studies.whole import BASELINE as EXACT_SAMPLES

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


rule repeated:
    """part of a run: a method on many data sets of a model"""
    output:
        REPEATED,
    log:
        "logs/{study}/repeated/{model}/{method}.log",
    benchmark:
        "logs/{study}/repeated/{model}/{method}.tsv"
    conda:
        ENVIRONMENT
    resources:
        mem_mb=megabytes("repeated"),
        runtime=minutes("repeated"),
    params:
        version=lambda wildcards: sources_version("dpmc.cli.repeated", without=VERSIONED_MODULES),
        settings=repeated_settings,
    message:
        "Run {wildcards.method} on the data sets of {wildcards.study} {wildcards.model}"
    shell:
        "dpmc repeated --study {wildcards.study} --model {wildcards.model} --method {wildcards.method} "
        "--output {output} 2> {log}"


rule repeated_table:
    """repeated runs of all methods in one table, results/<study>/repeated.csv"""
    input:
        script=ancient(f"{SCRIPTS}/join_metrics.py"),  # its version counts, not its time
        runs=repeated_runs,
    output:
        "results/{study}/repeated.csv",
    log:
        "logs/{study}/evaluation/repeated.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        version=lambda wildcards, input: sources_version(Path(input.script)),
    shell:
        "python {input.script:q} {wildcards.study} {output} {input.runs} 2> {log}"
