# Name of the caption in workflow/report -> script, table that it writes, file of the text that it prints, published
# tables that it reads, and whether a study has it.
TABLES = {
    "clipping": (
        *("clipping_table.py", "clipping.csv", [], []),
        lambda study: any("clip" in method.options for method in study.methods.values()),
    ),
    "comparison": (
        *(
            "compare_published.py",
            "published_comparison.csv",
            ["published_comparison.md"],
            PUBLISHED_FILES,
        ),
        lambda study: not PUBLISHED_MODELS.isdisjoint(study.models),
    ),
    "tight": ("tight_table.py", "table.csv", [], [], two_accountings),
    "tuned": ("tuned_table.py", "tuned_table.csv", [], [], tuned_pairs),
}

for name, (script, table, texts, published, _) in TABLES.items():

    rule:
        """a comparison, as CSV in results/<study>"""
        name:
            f"{name}_table"
        input:
            script=f"{SCRIPTS}/{script}",
            metrics="results/{study}/metrics.csv",
            published=published,
        output:
            table=report(
                f"results/{{study}}/{table}",
                caption=f"../report/{name}.rst",
                category="{study}",
                subcategory="tables",
            ),
            text=[f"results/{{study}}/{text}" for text in texts],
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
