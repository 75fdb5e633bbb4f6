# Verdicts on the sentences of a study's source.
rule claims_table:
    """verdicts on the claims of a study's source, results/<study>/claims.yaml"""
    input:
        script=f"{SCRIPTS}/claims.py",
        metrics="results/{study}/metrics.csv",
        budgets="results/{study}/budgets.csv",
        published=PUBLISHED_FILES,
        tried=lambda wildcards: tried(STUDIES[wildcards.study]),
        others=lambda wildcards: results_of_others(wildcards.study),
    output:
        report(
            "results/{study}/claims.yaml",
            caption="../report/claims.rst",
            category="{study}",
            subcategory="tables",
        ),
    log:
        "logs/{study}/tables/claims.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        version=lambda wildcards, input: sources_version(
            Path(input.script), shipped("config", "studies", "thesis_figures.py")
        ),
        study=study_digest,
        published=lambda wildcards, input: Path(input.published[0]).parent,
    shell:
        "python {input.script:q} {wildcards.study} {input.metrics} {input.budgets} {params.published:q} "
        "{output} 2> {log}"
