rule evaluate:
    input:
        data=evaluation_data,
        chains=cell_chains,
    output:
        CELL_METRICS,
    log:
        "logs/{study}/evaluation/{model}/{method}/eps-{epsilon}.log",
    # Before sampling: jobs that wait are weighed again at each choice of the scheduler, with a look at
    # all their inputs, and twenty chains a cell made that a quarter of the study's time.
    priority: 10000
    conda:
        ENVIRONMENT
    resources:
        mem_mb=1000,
        runtime=20,
    params:
        version=sources_version("metrics"),
    shell:
        "dpmc evaluate --study {wildcards.study} --data {input.data} --chains {input.chains} "
        "--output {output} 2> {log}"


rule baselines:
    input:
        data=evaluation_data,
    output:
        "results/{study}/metrics/{model}/baseline.csv",
    log:
        "logs/{study}/evaluation/{model}/baseline.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=1000,
        runtime=10,
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
