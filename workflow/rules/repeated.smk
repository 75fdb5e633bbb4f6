# Repeated runs: a method on many data sets of a model, for the coverage of its intervals. Finished runs are kept beside
# the output, which a killed job goes on from.
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
