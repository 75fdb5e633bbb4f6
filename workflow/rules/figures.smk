rule figure:
    input:
        metrics="results/{study}/metrics.csv",
        published=collect(
            "data/published/{table}.csv",
            table=["mmd", "ratio_clip_fraction", "acceptance_rate", "gradient_clip_fraction"],
        ),
    output:
        "figures/{study}/{figure}.pdf",
        "figures/{study}/{figure}.png",
    params:
        version=sources_version("figures"),
    log:
        "logs/{study}/figures/{figure}.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=1000,
        runtime=10,
    shell:
        "dpmc plot --study {wildcards.study} --figure {wildcards.figure} "
        "--metrics {input.metrics} --output {output} 2> {log}"
