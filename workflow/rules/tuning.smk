rule tuning:
    input:
        data="data/{study}/{model}/tuning.nc",
        compiled=ancient(compiled_sampler),
        compiled_metrics=ancient(COMPILED_METRICS),
    output:
        "results/{study}/tuning/{model}/{method}.yaml",
    log:
        "logs/{study}/tuning/{model}/{method}.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=1000,
        runtime=30,
    params:
        settings=tuning_settings,
    shell:
        "dpmc tune --study {wildcards.study} --model {wildcards.model} --method {wildcards.method} "
        "--data {input.data} --output {output} 2> {log}"
