from dpmc import sources
from dpmc.tables import inputs as table_inputs
from dpmc.tables import note as note_of_table


def figure_chains(wildcards):
    """Return the chains that a figure shows; most figures show none."""
    return plots.chain_files(wildcards.figure, STUDIES[wildcards.study], Path("results"))


def figure_caption(wildcards):
    """Return caption and text of a figure; bars are escaped, since they are markup in the report."""
    return plots.caption(wildcards.figure, STUDIES[wildcards.study]).replace("|", r"\|")


def figure_declared(wildcards):
    """Return the declaration of a figure; a change draws it anew."""
    return declared_figure(STUDIES[wildcards.study].path, wildcards.figure).model_dump_json()


def figure_version(wildcards):
    """Return a hash of the sources that draw a figure, also of a function of the user's beside the study."""
    study = STUDIES[wildcards.study]
    own = sources.beside(
        declared_figure(study.path, wildcards.figure).draw or "", study.path.parent
    )
    return sources_version("dpmc.commands.evaluation:plot", *filter(None, [own]))


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
        version=figure_version,
        caption=figure_caption,
        declared=figure_declared,
    shell:
        "dpmc plot --study {wildcards.study} --figure {wildcards.figure} "
        "--metrics {input.metrics} --output {output} 2> {log}"


# Tables for people and papers.
rule table:
    input:
        lambda wildcards: table_inputs(wildcards.table, STUDIES[wildcards.study], Path("results")),
    output:
        report(
            "figures/{study}/{table}.csv",
            caption="../report/table.rst",
            category="{study}",
            subcategory="tables",
            labels={"table": "{table}"},
        ),
        "figures/{study}/{table}.md",
        "figures/{study}/{table}.tex",
    log:
        "logs/{study}/figures/{table}.log",
    wildcard_constraints:
        table="|".join(PAPER_TABLES),
    localrule: True
    conda:
        ENVIRONMENT
    params:
        version=lambda wildcards: sources_version("dpmc.commands.evaluation:_write_table"),
        note=lambda wildcards: note_of_table(wildcards.table),
    shell:
        "dpmc plot --study {wildcards.study} --figure {wildcards.table} --output {output} 2> {log}"


def page_files(wildcards):
    """Return the pictures and tables of a study, and the comparison with published boxes."""
    files = study_files(wildcards.study)
    return [
        file
        for file in files
        if file.endswith((".png", "/published_comparison.csv")) or Path(file).stem in PAPER_TABLES
    ]


# All figures with captions, and tables, on one self-contained page.
rule page:
    input:
        script=f"{SCRIPTS}/page.py",
        files=page_files,
    output:
        "figures/{study}/index.html",
    log:
        "logs/{study}/figures/page.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        version=lambda wildcards, input: sources_version(Path(input.script)),
        declared=lambda wildcards: [
            declared_figure(STUDIES[wildcards.study].path, figure).model_dump_json()
            for figure in STUDIES[wildcards.study].figures
            if figure not in PAPER_TABLES
        ],
        shown=lambda wildcards, input: [
            file for file in input.files if file.endswith((".png", "/published_comparison.csv"))
        ],
    shell:
        "python {input.script} {wildcards.study} {output} {params.shown} 2> {log}"
