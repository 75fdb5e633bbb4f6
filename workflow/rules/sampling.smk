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


def asked(methods, wildcards):
    """The methods of a job."""
    return [wildcards.method] if "method" in wildcards.keys() else methods


def hyperparameters(study, model, methods, wildcards):
    """What tuning wrote; nothing for cells whose settings are not tried: `dpmc sample` reads the pinned ones."""
    return [
        TUNED.format(study=study.name, model=model, method=method)
        for method in asked(methods, wildcards)
        if study.is_tried(model, method)
    ]


def sampling_settings(study, model, methods, wildcards):
    """Everything beside input files, ε and seed that decides the draws of methods on a model."""
    return "".join(
        study.sampling_settings(model, method, epsilon="")
        + (
            ""
            if study.is_tried(model, method)
            else json.dumps(pinned(study, model, method), sort_keys=True)
        )
        for method in asked(methods, wildcards)
    )


def sampling_priority(study, model, methods, wildcards):
    """Long jobs first, so that none is left alone at the end: by gradients, dimension and ε."""
    algorithm = study.method(asked(methods, wildcards)[0]).algorithm
    gradients = any(word in algorithm for word in ("hmc", "mala", "sg"))
    name = study.model(model).model
    # A model of one's own is a program: planning a run does not run it.
    dimension = 0 if ":" in name else len(models.definition(name).true_theta)
    epsilon = float(wildcards.get("epsilon", 0))
    return 1000 * gradients + 10 * dimension + int(min(epsilon, 100))


def grids(study):
    """(model, its list of ε, algorithm) -> the methods that a study runs there itself.

    An algorithm is named where one job makes all its methods: chains without a budget, for instance with several
    clip bounds, take less time than the start of their process.
    """
    found = {}
    for model, method, _ in study.cells():
        epsilons = study.epsilons(model, method)
        together = JOB == "method" and epsilons == ("inf",)
        algorithm = study.method(method).algorithm if together else ""
        methods = found.setdefault((model, epsilons, algorithm), [])
        if method not in methods:
            methods.append(method)
    return found


# Outputs cannot depend on wildcards, hence a rule for each model and list of ε. `dpmc sample` reads ε and seeds off
# the output names: as parameters they would make all chains anew when `job` changes.
for name, study in STUDIES.items():
    for (model, epsilons, algorithm), methods in grids(study).items():
        known = {"study": name, "model": model}
        if algorithm:
            known["method"] = methods
        if JOB == "method":
            known["epsilon"] = epsilons
        if JOB != "chain":
            known["seed"] = range(study.seeds)

        rule:
            name:
                "_".join(
                    [
                        *("sample", name, model),
                        *([algorithm] if algorithm else []),
                        *([] if epsilons == study.model(model).epsilons else ["eps", *epsilons]),
                    ]
                )
            input:
                data=f"data/{name}/{model}/{study.model(model).data}.nc",
                hyperparameters=partial(hyperparameters, study, model, methods),
            output:
                expand(CHAIN, **known, allow_missing=True),
            log:
                expand(
                    LOGS[JOB],
                    study=name,
                    model=model,
                    **({"method": algorithm} if algorithm else {}),
                    allow_missing=True,
                ),
            wildcard_constraints:
                method="|".join(methods),
                epsilon="|".join(epsilons),
            priority: partial(sampling_priority, study, model, methods)
            conda:
                ENVIRONMENT
            params:
                study=name,
                model=model,
                methods=partial(asked, methods),
                settings=partial(sampling_settings, study, model, methods),
                hyperparameters=lambda wildcards, input: (
                    f"--hyperparameters {input.hyperparameters} " if input.hyperparameters else ""
                ),
            shell:
                "dpmc sample --study {params.study} --model {params.model} "
                "--method {params.methods} --data {input.data} "
                "{params.hyperparameters}--checkpoint-seconds {config[checkpoint_seconds]} "
                "--output {output} 2> {log}"
