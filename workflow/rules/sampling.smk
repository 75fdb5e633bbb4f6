# One job makes all ε and seeds of a method on a model, all seeds of a cell (one ε), or one chain, by the setting
# `job` of config/config.yaml (`dpmc.studies.sizes`). Each chain is a target of its own, determined by its own
# settings, and is bit-identical for all sizes.
# A job of a cluster reads these rules again, and has other cores and files than the run: it gets what the run has
# chosen. Not as parameters, by which all chains would be made anew when it changes.
CHOSEN = os.environ.setdefault("DPMC_JOB", size_of_jobs(jobs_at_once()))
JOB = CHOSEN if config["job"] == "auto" else config["job"]
CHAINS_MADE = os.environ.setdefault("DPMC_MADE", " ".join(chains_made()))
MADE = dict(pair.split("=") for pair in CHAINS_MADE.split())


envvars:
    "DPMC_JOB",
    "DPMC_MADE",


# Outputs cannot depend on wildcards, hence one rule for each model, list of ε and block of seeds. A job of chains
# without a budget makes all methods of an algorithm, because one process for each would take longer to start.
for name, study in STUDIES.items():
    for part, methods in job_parts(study, JOB, partial(made, study)).items():
        known = sampled_together(part, methods)
        job = expand(
            sampling_log(study, part, methods),
            study=name,
            model=part.model,
            **({"method": part.algorithm} if "method" in known else {}),
            allow_missing=True,
        )[0]
        chains = expand(CHAIN, study=name, model=part.model, **known, allow_missing=True)

        rule:
            """part of a run: chains of this study and model"""
            name:
                sampling_name(study, part)
            input:
                data=f"data/{name}/{part.model}/{study.model(part.model).data}.nc",
                hyperparameters=partial(hyperparameters_found, study, part.model),
            output:
                chains,
            # `times`: wall and CPU seconds and memory, for the table of run times. As a log, it may be missing.
            log:
                f"{job}.log",
                times=f"{job}.tsv",
            wildcard_constraints:
                method="|".join(methods),
                epsilon="|".join(part.epsilons),
                seed="|".join(map(str, part.seeds)),
            priority: partial(sampling_priority, study, part.model, methods)
            conda:
                ENVIRONMENT
            resources:
                mem_mb=megabytes("sample"),
                runtime=minutes("sample"),
            params:
                study=name,
                model=part.model,
                settings=partial(sampling_settings, study, part, methods),
                hyperparameters=lambda wildcards, input: (
                    f"--hyperparameters {input.hyperparameters} " if input.hyperparameters else ""
                ),
                runs=partial(sampling_runs, part, methods),
            message:
                f"Sample {name} {part.model}, {len(chains)} of its chains: {{wildcards}}"
            shell:
                "dpmc sample --study {params.study} --model {params.model} --data {input.data} "
                "{params.hyperparameters}--checkpoint-seconds $DPMC_CHECKPOINT_SECONDS "
                "--no-summary --times {log.times} {params.runs:q} 2> {log[0]}"
