# All cells of a model in one job: a chain takes milliseconds, the start of Python half a second.
rule evaluate:
    """a model's chains and their metrics, results/<study>/metrics/<model>.csv"""
    input:
        data=evaluation_data,
        chains=model_chains,
    output:
        "results/{study}/metrics/{model}.csv",
    log:
        "logs/{study}/evaluation/{model}.log",
    benchmark:
        "logs/{study}/evaluation/{model}.tsv"
    # Before sampling: at each choice the scheduler checks all inputs of waiting jobs, and these have hundreds.
    priority: 10000
    conda:
        ENVIRONMENT
    resources:
        mem_mb=megabytes("evaluate"),
        runtime=minutes("evaluate"),
    params:
        version=lambda wildcards: sources_version("dpmc.cli.evaluation"),
        evaluated=evaluated,
    message:
        "Compute metrics of all chains of {wildcards.study} {wildcards.model}"
    shell:
        "dpmc evaluate --study {wildcards.study} --model {wildcards.model} --data {input.data} "
        "{params.evaluated} --output {output} 2> {log}"


rule metrics:
    """metrics of all models in one table, results/<study>/metrics.csv"""
    input:
        script=ancient(f"{SCRIPTS}/join_metrics.py"),  # its version counts, not its time
        metrics=study_metrics,
    output:
        "results/{study}/metrics.csv",
    log:
        "logs/{study}/evaluation/metrics.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        version=lambda wildcards, input: sources_version(Path(input.script)),
    shell:
        "python {input.script:q} {wildcards.study} {output} {input.metrics} 2> {log}"
