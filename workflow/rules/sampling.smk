# One job makes one chain or all seeds of a cell (config: chains_per_job); each chain is a target of
# its own and has the same bits either way. The seeds are read off the output names, so that they are
# no parameter and switching makes nothing anew. The number of seeds belongs to the study, hence one
# rule a study.
for study in STUDIES:
    seeds = range(STUDIES[study].seeds)

    rule:
        name:
            f"sample_{study}"
        input:
            data=evaluation_data,
            hyperparameters=hyperparameters,
            compiled=ancient(compiled_sampler),
        output:
            (
                CHAIN
                if config["chains_per_job"] == "one"
                else expand(CHAIN, seed=seeds, allow_missing=True)
            ),
        log:
            "logs/{study}/sampling/{model}/{method}/eps-{epsilon}"
            + ("-seed-{seed}" if config["chains_per_job"] == "one" else "")
            + ".log",
        wildcard_constraints:
            study=study,
        priority: sampling_priority
        conda:
            ENVIRONMENT
        resources:
            mem_mb=memory(f"sample_{study}"),
            runtime=minutes(f"sample_{study}"),
        params:
            settings=sampling_settings,
            hyperparameters=lambda wildcards, input: (
                f"--hyperparameters {input.hyperparameters} " if input.hyperparameters else ""
            ),
        shell:
            "dpmc sample --study {wildcards.study} --model {wildcards.model} "
            "--method {wildcards.method} --epsilon {wildcards.epsilon} --data {input.data} "
            "{params.hyperparameters}--checkpoint-seconds {config[checkpoint_seconds]} "
            "--output {output} 2> {log}"
