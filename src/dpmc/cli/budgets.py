"""Commands that print what a budget allows and what iterations cost."""

import argparse
import json

from dpmc.cli import outputs
from dpmc.cli.given import hyperparameters_of, study_as_asked, write_table
from dpmc.common.errors import DpmcError
from dpmc.common.streams import canonical_epsilon
from dpmc.privacy.runs import RunQueries, with_multiplier
from dpmc.reports.tables import budgets as table
from dpmc.studies import build_algorithm, definition_of, load_study, number_of_rows, read_yaml


def budget(options: argparse.Namespace) -> None:
    """Print the iterations that ε allows, or the ε that they cost together, by accountant."""
    study = study_as_asked(options)
    each = "inf" if options.epsilon is None else canonical_epsilon(options.epsilon)
    k = options.iterations
    if study.epsilon_kind == "total":
        if (options.epsilon is None) == (k is None):
            raise DpmcError("--epsilon, --iterations: give one of them")
    elif options.epsilon is None:
        raise DpmcError(f"--epsilon: needed, it is per iteration in the study {study.name}")
    else:  # ε of each iteration sets the noise; the question is what k of them cost together
        k = k or study.iterations(options.model, options.method)
        if k is None:
            raise DpmcError("--iterations: needed, the study does not say how many")
    definition = definition_of(study, options.model)
    n = options.n or number_of_rows(study, options.model)
    if not n:
        raise DpmcError(f"--n: needed, since {options.model} names no number of rows")
    delta = study.delta_for(n)
    given = hyperparameters_of(study, options.model, options.method, options.hyperparameters)
    algorithm = build_algorithm(study, options.method, given, len(definition.true_theta), each, n)
    total = None if k else float(canonical_epsilon(options.epsilon))
    queries = RunQueries.of(algorithm, n, study.chains)
    answers = queries.by_accountant(delta, epsilon=total, iterations=k, rows_per_person=study.rows_per_person)
    if total is not None:
        answers = with_multiplier(algorithm, answers)
    if options.json:
        print(json.dumps({k: "inf" if v == float("inf") else v for k, v in answers.items()}))
        return
    question = f"iterations at epsilon {options.epsilon}" if k is None else f"epsilon of {k} iterations"
    if study.epsilon_kind != "total":
        question += f" of {each} each"
    print(f"{options.model} {options.method}: {question}, delta {delta:g}, n {n}")
    for name, answer in answers.items():
        print(f"  {name:12s} {answer:.6g}" if isinstance(answer, float) else f"  {name:12s} {answer}")


def budgets(options: argparse.Namespace) -> None:
    """Write a study's table of budgets."""
    study = load_study(options.study)
    inputs = [("--hyperparameters", file) for file in options.hyperparameters]
    outputs.check_outputs(options, inputs)
    tuned = {}
    for file in options.hyperparameters:
        content = read_yaml(file)
        try:
            tuned[content["model"], content["method"]] = content["hyperparameters"]
        except (KeyError, TypeError):
            raise DpmcError(f"{file}: must be a file written by dpmc tune") from None
    write_table(options.output, table.BUDGET_COLUMNS, table.rows(study, tuned))
