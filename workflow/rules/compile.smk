# Machine code of all algorithms on a class of models, or on some: in one job, for they have most of it in
# common. What comes out lies in the cache that all jobs share; the file here only says that it was put there. When the
# sources have changed since, or the cache was emptied, jobs compile for themselves, one algorithm at a time.
# (Were this rule run again, Snakemake would overlook in that run that others, which take the file as
# `ancient`, are out of date.)
rule compile:
    output:
        "results/{study}/compiled/{families}.txt",
    log:
        "logs/{study}/compiled/{families}.log",
    # Everything else waits for it.
    priority: 20000
    conda:
        ENVIRONMENT
    resources:
        mem_mb=memory("compile"),
        runtime=minutes("compile"),
    params:
        what=what_to_compile,
    shell:
        "dpmc compile --study {wildcards.study} {params.what} --output {output} 2> {log}"
