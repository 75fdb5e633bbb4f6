# All cells of a model in one job: its chains take milliseconds each, starting Python half a second.
rule evaluate:
    input:
        data=evaluation_data,
        compiled=ancient(COMPILED_METRICS),
        chains=model_chains,
    output:
        MODEL_METRICS,
    log:
        "logs/{study}/evaluation/{model}/chains.log",
    # Before sampling: the scheduler looks at all inputs of the jobs that wait, at each choice anew, and a
    # model has hundreds.
    priority: 10000
    conda:
        ENVIRONMENT
    resources:
        mem_mb=memory("evaluate"),
        runtime=minutes("evaluate"),
    params:
        version=sources_version("metrics", "privacy/accountants"),
        cells=model_cells,
    shell:
        "dpmc evaluate --study {wildcards.study} --data {input.data} --chains {params.cells} "
        "--output {output} 2> {log}"


rule baselines:
    input:
        data=evaluation_data,
        compiled=ancient(COMPILED_METRICS),
    output:
        "results/{study}/metrics/{model}/baseline.csv",
    log:
        "logs/{study}/evaluation/{model}/baseline.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=memory("baselines"),
        runtime=minutes("baselines"),
    params:
        version=sources_version("metrics"),
    shell:
        "dpmc evaluate --study {wildcards.study} --model {wildcards.model} --data {input.data} "
        "--baselines --output {output} 2> {log}"


rule metrics:
    input:
        study_metrics,
    output:
        "results/{study}/metrics.csv",
    log:
        "logs/{study}/evaluation/metrics.log",
    localrule: True
    conda:
        ENVIRONMENT
    shell:
        "awk 'FNR > 1 || NR == 1' {input} > {output} 2> {log}"
