# One job makes all ε and seeds of a method on a model, all seeds of a cell (one ε), or one chain, by the setting
# `job` of config/config.yaml. Each chain is a target of its own and is bit-identical for all settings.
from functools import partial

from dpmc import models

LOGS = {
    "method": "logs/{study}/sampling/{model}/{method}",
    "cell": "logs/{study}/sampling/{model}/{method}/eps-{epsilon}",
    "chain": "logs/{study}/sampling/{model}/{method}/eps-{epsilon}-seed-{seed}",
}
AUTO = "cell" if config.get("many_cores") else "method"
JOB = AUTO if config["job"] == "auto" else config["job"]


def hyperparameters(study, model, wildcards):
    """Return the tuning file; nothing for untried settings, for which `dpmc sample` reads the pinned ones."""
    if "method" in wildcards.keys() and study.is_tried(model, wildcards.method):
        return TUNED.format(study=study.name, model=model, method=wildcards.method)
    return []


def sampling_settings(study, model, methods, wildcards):
    """Return what determines the draws of a method, or of all that may share a job, besides inputs, ε and seed."""
    settings = ""
    for method in methods if without_budget(study, model, methods[0]) else [wildcards.method]:
        settings += study.sampling_settings(model, method, epsilon="")
        if not study.is_tried(model, method):
            settings += json.dumps(pinned(study, model, method), sort_keys=True)
    return settings


def sampling_priority(study, model, methods, wildcards):
    """Return a priority that runs long jobs first: by gradients, dimension and ε."""
    algorithm = study.method(wildcards.get("method", methods[0])).algorithm
    gradients = any(word in algorithm for word in ("hmc", "mala", "sg"))
    name = study.model(model).model
    # A user's model is a program: planning a run does not run it.
    dimension = 0 if ":" in name else len(models.definition(name).true_theta)
    epsilon = float(wildcards.get("epsilon", 0))
    return 1000 * gradients + 10 * dimension + int(min(epsilon, 100))


def without_budget(study, model, method):
    """Return whether a method runs on a model without privacy and untried, for example with given clip bounds."""
    return study.epsilons(model, method) == ("inf",) and not study.is_tried(model, method)


def grids(study):
    """Return (model, list of ε, algorithm of methods without a budget) -> the methods that the study runs there."""
    found = {}
    for model, method, _ in study.cells():
        algorithm = study.method(method).algorithm if without_budget(study, model, method) else ""
        methods = found.setdefault((model, study.epsilons(model, method), algorithm), [])
        if method not in methods:
            methods.append(method)
    return found


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

        rule:
            name:
                "_".join(filter(None, ("sample", name, model, algorithm, *own)))
            input:
                data=f"data/{name}/{model}/{study.model(model).data}.nc",
                hyperparameters=partial(hyperparameters, study, model),
            output:
                expand(CHAIN, **known, allow_missing=True),
            log:
                f"{job}.log",
            # Wall and CPU seconds and memory, for the table of run times; no result depends on it.
            benchmark:
                f"{job}.tsv"
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
            shell:
                "dpmc sample --study {params.study} --model {params.model} --data {input.data} "
                "{params.hyperparameters}--checkpoint-seconds {config[checkpoint_seconds]} "
                "--no-summary --output {output} 2> {log}"
