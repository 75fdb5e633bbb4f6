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
    params:
        version=sources_version("comparing.py", "figures"),
    shell:
        "python {input.script} {wildcards.study} {input.metrics} data/published {output.table} "
        "> {output.summary} 2> {log}"


rule tight_table:
    input:
        script="workflow/scripts/tight_table.py",
        metrics="results/{study}/metrics.csv",
    output:
        table=report(
            "results/{study}/table.csv",
            caption="../report/tight.rst",
            category="{study}",
            subcategory="tables",
        ),
        text="results/{study}/table.md",
    log:
        "logs/{study}/tables/tight.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        version=sources_version("comparing.py", "figures"),
    shell:
        "python {input.script} {wildcards.study} {input.metrics} {output.table} > {output.text} 2> {log}"


rule tuned_table:
    input:
        script="workflow/scripts/tuned_table.py",
        metrics="results/{study}/metrics.csv",
    output:
        table=report(
            "results/{study}/tuned_table.csv",
            caption="../report/tuned.rst",
            category="{study}",
            subcategory="tables",
        ),
        text="results/{study}/tuned_table.md",
    log:
        "logs/{study}/tables/tuned.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        version=sources_version("comparing.py", "figures"),
    shell:
        "python {input.script} {wildcards.study} {input.metrics} {output.table} > {output.text} 2> {log}"


rule claims:
    input:
        script="workflow/scripts/claims.py",
        metrics="results/{study}/metrics.csv",
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
        version=sources_version("claims", "figures"),
    shell:
        "python {input.script} {wildcards.study} {input.metrics} {output} > {log} 2>&1"
