rule clipping_table:
    input:
        script="workflow/scripts/clipping_table.py",
        metrics="results/{study}/metrics.csv",
    output:
        report(
            "results/{study}/clipping.csv",
            caption="../report/clipping.rst",
            category="{study}",
            subcategory="tables",
        ),
    log:
        "logs/{study}/tables/clipping.log",
    localrule: True
    conda:
        ENVIRONMENT
    shell:
        "python {input.script} {wildcards.study} {input.metrics} {output} 2> {log}"


rule comparison:
    input:
        script="workflow/scripts/compare_published.py",
        metrics="results/{study}/metrics.csv",
        published=collect("data/published/{table}.csv", table=PUBLISHED_TABLES),
    output:
        table=report(
            "results/{study}/published_comparison.csv",
            caption="../report/comparison.rst",
            category="{study}",
            subcategory="tables",
        ),
        summary="results/{study}/published_comparison.md",
    log:
        "logs/{study}/tables/comparison.log",
    localrule: True
    conda:
        ENVIRONMENT
    shell:
        "python {input.script} {input.metrics} data/published {output.table} "
        "> {output.summary} 2> {log}"
