MODEL_METRICS = "results/{study}/metrics/{model}/chains.csv"


def study_metrics(wildcards):
    """Return the metric files of a study's models and baselines, and of models reused from other studies."""
    study = STUDIES[wildcards.study]
    chains = [(study.name, model) for model in own_models(study)] + study.reused()
    baselines = [model for model, spec in study.models.items() if ":" not in spec.model]
    return [
        *(MODEL_METRICS.format(study=name, model=model) for name, model in chains),
        *(f"results/{study.name}/metrics/{model}/baseline.csv" for model in baselines),
    ]


# All cells of a model in one job: a chain takes milliseconds, the start of Python half a second.
rule evaluate:
    input:
        data=evaluation_data,
        chains=model_chains,
    output:
        MODEL_METRICS,
    log:
        "logs/{study}/evaluation/{model}/chains.log",
    # Before sampling: at each choice the scheduler checks all inputs of waiting jobs, and these have hundreds.
    priority: 10000
    conda:
        ENVIRONMENT
    params:
        version=lambda wildcards: sources_version("dpmc.commands.evaluation:evaluate"),
        cells=model_cells,
    shell:
        "dpmc evaluate --study {wildcards.study} --data {input.data} --chains {params.cells} "
        "--output {output} 2> {log}"


rule baselines:
    input:
        data=evaluation_data,
    output:
        "results/{study}/metrics/{model}/baseline.csv",
    log:
        "logs/{study}/evaluation/{model}/baseline.log",
    conda:
        ENVIRONMENT
    params:
        version=lambda wildcards: sources_version("dpmc.commands.evaluation:evaluate"),
    shell:
        "dpmc evaluate --study {wildcards.study} --model {wildcards.model} --data {input.data} "
        "--baselines --output {output} 2> {log}"


rule metrics:
    input:
        study_metrics,
    output:
        "results/{study}/metrics.csv",
    log:
        "logs/{study}/evaluation/metrics.log",
    localrule: True
    conda:
        ENVIRONMENT
    shell:
        "awk 'FNR > 1 || NR == 1' {input} > {output} 2> {log}"
