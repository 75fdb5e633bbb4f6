# Metrics along the chains of a model, all cells in one job as in rule evaluate.
rule traces:
    """metrics along a model's chains, results/<study>/traces/<model>.csv"""
    input:
        data=evaluation_data,
        chains=model_chains,
    output:
        "results/{study}/traces/{model}.csv",
    log:
        "logs/{study}/evaluation/{model}/traces.log",
    benchmark:
        "logs/{study}/evaluation/{model}/traces.tsv"
    # Before sampling, as in rule evaluate.
    priority: 10000
    conda:
        ENVIRONMENT
    resources:
        mem_mb=megabytes("traces"),
        runtime=minutes("traces"),
    params:
        version=lambda wildcards: sources_version("dpmc.cli.evaluation"),
        cells=model_cells,
    message:
        "Compute metrics along all chains of {wildcards.study} {wildcards.model}"
    shell:
        "dpmc trace --study {wildcards.study} --data {input.data} --chains {params.cells} "
        "--output {output} 2> {log}"
<<<<<<< HEAD
=======


# Seconds per iteration, one method after another. The job takes all cores, so that nothing else runs. The numbers
# depend on the machine, and no other result depends on them.
rule speed:
    """measured seconds per iteration, results/<study>/speed.csv"""
    input:
        data=lambda wildcards: [
            f"data/{wildcards.study}/{model}/{STUDIES[wildcards.study].model(model).data}.nc"
            for model in own_models(STUDIES[wildcards.study])
        ],
    output:
        "results/{study}/speed.csv",
    log:
        "logs/{study}/evaluation/speed.log",
    benchmark:
        "logs/{study}/evaluation/speed.tsv"
    conda:
        ENVIRONMENT
    threads: given_cores()
    resources:
        mem_mb=megabytes("speed"),
        runtime=minutes("speed"),
    params:
        cells=lambda wildcards: [
            chain_settings(STUDIES[wildcards.study], *cell)
            for cell in STUDIES[wildcards.study].cells()
        ],
    shell:
        "dpmc speed --study {wildcards.study} --data {input.data} --output {output} 2> {log}"
>>>>>>> pipe
