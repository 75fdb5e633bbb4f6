# One job makes all ε and seeds of a method on a model, all seeds of a cell (one ε), or one chain: the setting
# `job` of config/config.yaml. Each chain is a target of its own and has the same bits whatever made it.
from functools import partial

from dpmc import models

LOGS = {
    "method": "logs/{study}/sampling/{model}/{method}.log",
    "cell": "logs/{study}/sampling/{model}/{method}/eps-{epsilon}.log",
    "chain": "logs/{study}/sampling/{model}/{method}/eps-{epsilon}-seed-{seed}.log",
}
JOB = "method" if config["job"] == "auto" else config["job"]


def hyperparameters(study, model, wildcards):
    """What tuning wrote; nothing for a cell whose settings are not tried: `dpmc sample` reads the pinned ones."""
    if not study.is_tried(model, wildcards.method):
        return []
    return TUNED.format(study=study.name, model=model, method=wildcards.method)


def sampling_settings(study, model, wildcards):
    """Everything beside input files, ε and seed that decides the draws of a method on a model."""
    settings = study.sampling_settings(model, wildcards.method, epsilon="")
    if study.is_tried(model, wildcards.method):
        return settings
    return settings + json.dumps(pinned(study, model, wildcards.method), sort_keys=True)


def sampling_priority(study, model, wildcards):
    """Long jobs first, so that none is left alone at the end: by gradients, dimension and ε."""
    algorithm = study.method(wildcards.method).algorithm
    gradients = any(word in algorithm for word in ("hmc", "mala", "sg"))
    name = study.model(model).model
    # A model of one's own is a program: planning a run does not run it.
    dimension = 0 if ":" in name else len(models.definition(name).true_theta)
    epsilon = float(wildcards.get("epsilon", 0))
    return 1000 * gradients + 10 * dimension + int(min(epsilon, 100))


def grids(study):
    """(model, its list of ε) -> the methods that a study runs there itself."""
    found = {}
    for model, method, _ in study.cells():
        methods = found.setdefault((model, study.epsilons(model, method)), [])
        if method not in methods:
            methods.append(method)
    return found


# Outputs cannot depend on wildcards, hence a rule for each model and list of ε. `dpmc sample` reads ε and seeds off
# the output names: as parameters they would make all chains anew when `job` changes.
for name, study in STUDIES.items():
    for (model, epsilons), methods in grids(study).items():
        known = {"study": name, "model": model}
        if JOB == "method":
            known["epsilon"] = epsilons
        if JOB != "chain":
            known["seed"] = range(study.seeds)

        rule:
            name:
                f"sample_{name}_{model}"
                + ("" if epsilons == study.model(model).epsilons else f"_eps-{'-'.join(epsilons)}")
            input:
                data=f"data/{name}/{model}/{study.model(model).data}.nc",
                hyperparameters=partial(hyperparameters, study, model),
            output:
                expand(CHAIN, **known, allow_missing=True),
            log:
                expand(LOGS[JOB], study=name, model=model, allow_missing=True),
            wildcard_constraints:
                method="|".join(methods),
                epsilon="|".join(epsilons),
            priority: partial(sampling_priority, study, model)
            conda:
                ENVIRONMENT
            params:
                study=name,
                model=model,
                settings=partial(sampling_settings, study, model),
                hyperparameters=lambda wildcards, input: (
                    f"--hyperparameters {input.hyperparameters} " if input.hyperparameters else ""
                ),
            shell:
                "dpmc sample --study {params.study} --model {params.model} "
                "--method {wildcards.method} --data {input.data} "
                "{params.hyperparameters}--checkpoint-seconds {config[checkpoint_seconds]} "
                "--output {output} 2> {log}"
