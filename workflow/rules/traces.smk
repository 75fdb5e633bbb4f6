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
