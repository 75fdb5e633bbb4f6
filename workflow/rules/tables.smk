# Name of the caption in workflow/report -> script, table that it writes, file of the text that it prints.
TABLES = {
    "clipping": ("clipping_table.py", "clipping.csv", None),
    "comparison": ("compare_published.py", "published_comparison.csv", "published_comparison.md"),
    "tight": ("tight_table.py", "table.csv", None),
    "tuned": ("tuned_table.py", "tuned_table.csv", None),
}

for name, (script, table, text) in TABLES.items():

    rule:
        """a comparison, as CSV in results/<study>"""
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
            table=report(
                f"results/{{study}}/{table}",
                caption=f"../report/{name}.rst",
                category="{study}",
                subcategory="tables",
            ),
            text=[f"results/{{study}}/{text}"] if text else [],
        log:
            f"logs/{{study}}/tables/{name}.log",
        localrule: True
        conda:
            ENVIRONMENT
        params:
            version=lambda wildcards, input: sources_version(Path(input.script)),
            study=study_digest,
            published=lambda wildcards, input: [
                os.path.dirname(input.published[0]) for _ in input.published[:1]
            ],
            text=lambda wildcards, output: f"> {output.text}" if output.text else "",
        shell:
            "python {input.script:q} {wildcards.study} {input.metrics} {params.published:q} "
            "{output.table} 2> {log} {params.text}"


rule spending:
    """joint ε of all runs on your own rows, results/<study>/spending.txt"""
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
        study=study_digest,
    message:
        "Compute the joint ε of all runs of {wildcards.study} on your own rows"
    shell:
        "python {input.script:q} {wildcards.study} {input.chains} 2> {log} | tee {output}"
