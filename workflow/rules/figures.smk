from dpmc.figures import chain_files


def figure_chains(wildcards):
    """The chains that a figure shows; none for most."""
    return chain_files(wildcards.figure, STUDIES[wildcards.study], Path("results"))


rule figure:
    input:
        metrics="results/{study}/metrics.csv",
        chains=figure_chains,
        published=collect("data/published/{table}.csv", table=PUBLISHED_TABLES),
    output:
        "figures/{study}/{figure}.pdf",
        report(
            "figures/{study}/{figure}.png",
            caption="../report/figure.rst",
            category="{study}",
            subcategory="figures",
            labels={"figure": "{figure}"},
        ),
    log:
        "logs/{study}/figures/{figure}.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=memory("figure"),
        runtime=minutes("figure"),
    params:
        version=sources_version("figures", "datasets", "models", "privacy", "algorithms"),
        caption=figure_caption,
    shell:
        "dpmc plot --study {wildcards.study} --figure {wildcards.figure} "
        "--metrics {input.metrics} --output {output} 2> {log}"


rule models_table:
    output:
        "figures/{study}/models.csv",
        "figures/{study}/models.tex",
    log:
        "logs/{study}/figures/models.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        version=sources_version("figures", "models"),
    shell:
        "dpmc plot --study {wildcards.study} --figure models --output {output} 2> {log}"
