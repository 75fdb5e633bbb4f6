from dpmc.figures import chain_files
from dpmc.figures import load as load_figure


def figure_chains(wildcards):
    """The chains that a figure shows; none for most."""
    return chain_files(wildcards.figure, STUDIES[wildcards.study], Path("results"))


def figure_caption(wildcards):
    """What a figure's own module says of it; bars would be markup in the report's captions."""
    return load_figure(wildcards.figure).CAPTION.replace("|", r"\|")


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
