# Name of the caption in workflow/report -> script, table that it writes, file of the text that it prints.
TABLES = {
    "clipping": ("clipping_table.py", "clipping.csv", None),
    "comparison": ("compare_published.py", "published_comparison.csv", "published_comparison.md"),
    "tight": ("tight_table.py", "table.csv", "table.md"),
    "tuned": ("tuned_table.py", "tuned_table.csv", "tuned_table.md"),
}

for name, (script, table, text) in TABLES.items():

    rule:
        name:
            f"{name}_table"
        input:
            script=f"{SCRIPTS}/{script}",
            metrics="results/{study}/metrics.csv",
            published=(
                [f"{PUBLISHED}/{table}.csv" for table in PUBLISHED_TABLES]
                if name == "comparison"
                else []
            ),
        output:
            report(
                f"results/{{study}}/{table}",
                caption=f"../report/{name}.rst",
                category="{study}",
                subcategory="tables",
            ),
            *([f"results/{{study}}/{text}"] if text else []),
        log:
            f"logs/{{study}}/tables/{name}.log",
        localrule: True
        conda:
            ENVIRONMENT
        params:
            version=lambda wildcards, input: sources_version(Path(input.script)),
            published=PUBLISHED if name == "comparison" else "",
            text=f"results/{{study}}/{text}" if text else "/dev/null",
        shell:
            "python {input.script} {wildcards.study} {input.metrics} {params.published} {output[0]} "
            "> {params.text} 2> {log}"


rule spending:
    input:
        script=f"{SCRIPTS}/spending.py",
        chains=lambda wildcards: [
            f"{cell}/seed-{seed}.nc"
            for cell in own_rows_cells(STUDIES[wildcards.study])
            for seed in range(STUDIES[wildcards.study].seeds)
        ],
    output:
        "results/{study}/spending.txt",
    log:
        "logs/{study}/tables/spending.log",
    # Last, so that its output is at the end.
    priority: -1
    localrule: True
    conda:
        ENVIRONMENT
    params:
        version=lambda wildcards, input: sources_version(Path(input.script)),
    shell:
        "python {input.script} {wildcards.study} {input.chains} 2> {log} | tee {output}"
