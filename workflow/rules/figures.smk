rule figure:
    """a figure, figures/<study>/<figure>.pdf and .png, from the chains that it needs"""
    input:
        metrics=figure_metrics,
        chains=figure_chains,
        published=PUBLISHED_FILES,
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
    benchmark:
        "logs/{study}/figures/{figure}.tsv"
    # Seconds, as many as a Slurm job takes to start Snakemake twice.
    localrule: True
    conda:
        ENVIRONMENT
    params:
        version=figure_version,
        study=study_digest,
        caption=figure_caption,
        declared=figure_declared,
    message:
        "Draw figure {wildcards.figure} of {wildcards.study}"
    shell:
        "dpmc plot --study {wildcards.study} --figure {wildcards.figure} "
        "--metrics {input.metrics} --output {output} 2> {log}"


rule table:
    """a table, figures/<study>/<table>.csv"""
    input:
        lambda wildcards: paper_tables.table_files(
            wildcards.table, STUDIES[wildcards.study], Path("results")
        ),
    output:
        report(
            "figures/{study}/{table}.csv",
            caption="../report/table.rst",
            category="{study}",
            subcategory="tables",
            labels={"table": "{table}"},
        ),
    log:
        "logs/{study}/figures/{table}.log",
    wildcard_constraints:
        table="|".join(paper_tables.LAYOUTS),
    localrule: True
    conda:
        ENVIRONMENT
    params:
        version=lambda wildcards: sources_version("dpmc.cli.plotting"),
        study=study_digest,
        note=lambda wildcards: paper_tables.LAYOUTS[wildcards.table]["note"],
    shell:
        "dpmc plot --study {wildcards.study} --figure {wildcards.table} --output {output} 2> {log}"


# Tables that people read whole.
use rule table as readable_table with:
    output:
        "figures/{study}/{table}.md",
    log:
        "logs/{study}/figures/{table}-md.log",


# All figures with captions, and tables, on one self-contained page.
rule page:
    """all figures and tables of a study on one page, figures/<study>/index.html"""
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
        study=study_digest,
        contents=lambda wildcards: [
            STUDIES[wildcards.study].title,
            *STUDIES[wildcards.study].figures,
        ],
        declared=lambda wildcards: [
            declared_figure(STUDIES[wildcards.study].path, figure).model_dump_json()
            for figure in STUDIES[wildcards.study].figures
            if figure not in paper_tables.LAYOUTS
        ],
        shown=lambda wildcards, input: [
            file for file in input.files if file.endswith((".png", "published_comparison.csv"))
        ],
    shell:
        "python {input.script:q} {wildcards.study} {output} {params.shown} 2> {log}"
