rule data:
    output:
        "data/{study}/{model}/{dataset}.nc",
    log:
        "logs/{study}/data/{model}-{dataset}.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        settings=data_settings,
    shell:
        "dpmc data --study {wildcards.study} --model {wildcards.model} --data {wildcards.dataset} "
        "--output {output} 2> {log}"
