# Metrics along the chains of a model: all its cells in one job, as their other metrics.
rule traces:
    input:
        data=evaluation_data,
        chains=model_chains,
    output:
        "results/{study}/traces/{model}.csv",
    log:
        "logs/{study}/evaluation/{model}/traces.log",
    # Before sampling, as evaluation.
    priority: 10000
    conda:
        ENVIRONMENT
    resources:
        mem_mb=memory("traces"),
        runtime=minutes("traces"),
    params:
        version=sources_version("metrics", "privacy/accountants"),
        cells=model_cells,
    shell:
        "dpmc trace --study {wildcards.study} --data {input.data} --chains {params.cells} "
        "--output {output} 2> {log}"


# Seconds per iteration, one method after another. It takes all cores so that nothing runs beside it, and differs
# from machine to machine: no other result depends on it.
rule speed:
    input:
        data=speed_data,
        compiled=ancient(speed_compiled),
    output:
        "results/{study}/speed.csv",
    log:
        "logs/{study}/evaluation/speed.log",
    conda:
        ENVIRONMENT
    threads: every_core
    resources:
        mem_mb=memory("speed"),
        runtime=minutes("speed"),
    params:
        cells=speed_settings,
    shell:
        "dpmc speed --study {wildcards.study} --data {input.data} --output {output} 2> {log}"
