def figure_chains(wildcards):
    """The chains that a figure shows; none for most."""
    return plots.chain_files(wildcards.figure, STUDIES[wildcards.study], Path("results"))


def figure_caption(wildcards):
    """Caption and text of a figure as declared; bars would be markup in the report's captions."""
    return plots.caption(wildcards.figure, STUDIES[wildcards.study]).replace("|", r"\|")


def figure_declared(wildcards):
    """All that is declared of a figure: it is drawn anew when that changes."""
    return declared_figure(STUDIES[wildcards.study].path, wildcards.figure).model_dump_json()


rule figure:
    input:
        metrics="results/{study}/metrics.csv",
        chains=figure_chains,
        published=[f"{PUBLISHED}/{table}.csv" for table in PUBLISHED_TABLES],
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
    params:
        version=sources_version("plots", "figures", "datasets", "models", "privacy", "algorithms"),
        caption=figure_caption,
        declared=figure_declared,
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
        version=sources_version("plots", "models"),
    shell:
        "dpmc plot --study {wildcards.study} --figure models --output {output} 2> {log}"
