rule tuning:
    input:
        data=tuning_data,
        found=search_found,
        compiled=ancient(compiled_sampler),
        compiled_metrics=ancient(COMPILED_METRICS),
    output:
        TUNED,
    log:
        "logs/{study}/tuning/{model}/{method}.log",
    # Before any sampling, as data.
    priority: 15000
    conda:
        ENVIRONMENT
    resources:
        mem_mb=memory("tuning"),
        runtime=minutes("tuning"),
    params:
        settings=tuning_settings,
    # In mode `search` what was found is the setting; otherwise the pinned one is tried.
    shell:
        'if [ -n "{input.found}" ]; then cp {input.found} {output} 2> {log}; else '
        "dpmc tune --study {wildcards.study} --model {wildcards.model} --method {wildcards.method} "
        "--data {input.data} --output {output} 2> {log}; fi"


# `make tune`. The table of trials is no output: Snakemake would delete it when a job is killed, and the search
# goes on from it.
rule search:
    input:
        data="data/{study}/{model}/tuning.nc",
        compiled=ancient(compiled_sampler),
        compiled_metrics=ancient(COMPILED_METRICS),
    output:
        found="results/{study}/search/{model}/{method}.yaml",
        figure=report(
            "figures/{study}/search/{model}-{method}.png",
            caption="../report/search.rst",
            category="{study}",
            subcategory="searches",
            labels={"model": "{model}", "method": "{method}"},
        ),
    log:
        "logs/{study}/search/{model}/{method}.log",
    priority: search_priority
    conda:
        ENVIRONMENT
    resources:
        mem_mb=memory("tuning"),
        runtime=120,
    params:
        settings=search_settings,
        table="results/{study}/search/{model}/{method}.csv",
    shell:
        "dpmc tune --search --study {wildcards.study} --model {wildcards.model} "
        "--method {wildcards.method} --data {input.data} --output {output.found} "
        "--table {params.table} --figure {output.figure} 2> {log}"


rule tuned:
    input:
        script="workflow/scripts/collect_tuned.py",
        found=searches,
    output:
        "results/{study}/tuned.yaml",
    log:
        "logs/{study}/search/tuned.log",
    localrule: True
    conda:
        ENVIRONMENT
    shell:
        "python {input.script} {input.found} > {output} 2> {log}"


# What `make tune` asks for beside the settings.
rule lessons:
    input:
        script="workflow/scripts/lessons.py",
        found=searches,
        data=searched_data,
    output:
        report(
            "figures/{study}/search/lessons.png",
            caption="../report/lessons.rst",
            category="{study}",
            subcategory="searches",
            labels={"model": "all", "method": "all"},
        ),
    log:
        "logs/{study}/search/lessons.log",
    localrule: True
    conda:
        ENVIRONMENT
    params:
        version=sources_version("figures/lessons.py", "figures/style.py"),
    shell:
        "python {input.script} {wildcards.study} {output} {input.found} 2> {log}"
