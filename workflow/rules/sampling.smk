# One job makes all ε and seeds of a method on a model, all seeds of a cell (one ε), or one chain, by the setting
# `job` of config/config.yaml. Each chain is a target of its own and is bit-identical for all settings.
from functools import partial

LOGS = {
    "method": "logs/{study}/sampling/{model}/{method}",
    "cell": "logs/{study}/sampling/{model}/{method}/eps-{epsilon}",
    "chain": "logs/{study}/sampling/{model}/{method}/eps-{epsilon}-seed-{seed}",
}
# A job of a cluster reads these rules again, and has other cores than the run: it gets what the run has chosen.
CHOSEN = os.environ.setdefault("DPMC_JOB", "cell" if jobs_at_once() >= MANY_JOBS else "method")
JOB = CHOSEN if config["job"] == "auto" else config["job"]


envvars:
    "DPMC_JOB",


# Outputs cannot depend on wildcards, hence one rule for each model and list of ε. A job of chains without a budget
# makes all methods of an algorithm, because one process for each would take longer to start. `dpmc sample` reads
# method, ε and seeds from the output names: as parameters they would make all chains anew when `job` changes.
for name, study in STUDIES.items():
    for (model, epsilons, algorithm), methods in grids(study).items():
        known = {"study": name, "model": model}
        if JOB == "method":
            known["epsilon"] = epsilons
            if algorithm:
                known["method"] = methods
        if JOB != "chain":
            known["seed"] = range(study.seeds)
        own = () if epsilons == study.model(model).epsilons else ("eps", *epsilons)
        job = expand(
            LOGS[JOB],
            study=name,
            model=model,
            **({"method": algorithm} if "method" in known else {}),
            allow_missing=True,
        )[0]
        chains = expand(CHAIN, **known, allow_missing=True)

        rule:
            """part of a run: chains of this study and model"""
            name:
                "_".join(filter(None, ("sample", name, model, algorithm, *own)))
            input:
                data=f"data/{name}/{model}/{study.model(model).data}.nc",
                hyperparameters=partial(hyperparameters, study, model),
            output:
                chains,
            # `times`: wall and CPU seconds and memory, for the table of run times. As a log, it may be missing.
            log:
                f"{job}.log",
                times=f"{job}.tsv",
            wildcard_constraints:
                method="|".join(methods),
                epsilon="|".join(epsilons),
            priority: partial(sampling_priority, study, model, methods)
            conda:
                ENVIRONMENT
            params:
                study=name,
                model=model,
                settings=partial(sampling_settings, study, model, methods),
                hyperparameters=lambda wildcards, input: (
                    f"--hyperparameters {input.hyperparameters} " if input.hyperparameters else ""
                ),
            message:
                f"Sample {name} {model}, {len(chains)} of its chains: {{wildcards}}"
            shell:
                "dpmc sample --study {params.study} --model {params.model} --data {input.data} "
                "{params.hyperparameters}--checkpoint-seconds $DPMC_CHECKPOINT_SECONDS "
                "--no-summary --times {log.times} --output {output} 2> {log[0]}"
