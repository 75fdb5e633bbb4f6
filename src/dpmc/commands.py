"""What the commands of the command line do; every function takes the parsed options."""

import argparse
import csv
import dataclasses
import itertools
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpmc import outputs
from dpmc.errors import DpmcError
from dpmc.outputs import Output
from dpmc.progress import reporter
from dpmc.randomness import canonical_epsilon
from dpmc.studies import Study, load_study, read_yaml
from dpmc.values import MOST_CHAINS, MOST_STARTS


def data(options: argparse.Namespace) -> None:
    """Write a problem file."""
    _check_output(options, outputs.PROBLEM, [("--rows", options.rows)])
    study = load_study(options.study)
    _problem(study, options.model, None, options.data, options.rows).write(options.output)


def fetch(options: argparse.Namespace) -> None:
    """Find or fetch the files of a source of image data; write their checksums."""
    from dpmc import storage
    from dpmc.datasets import sources

    source = sources.source(options.source)
    _check_output(options, outputs.checksums(source.files))
    checksums = sources.fetch(source)
    if options.output is None:
        print(checksums, end="")
        return
    with storage.replacing(options.output) as temporary:
        temporary.write_text(checksums)


def tune(options: argparse.Namespace) -> None:
    """Write the hyperparameters of one (model, method) with what they gave on tuning data."""
    import yaml

    from dpmc import storage, tuning

    study = load_study(options.study)
    study.own_method(options.method)
    for name in ("trials", "seeds", "table", "figure"):
        if getattr(options, name) is not None and not options.search:
            raise DpmcError(f"--{name}: only with --search")
    table = options.table or options.output.with_suffix(".trials.csv")
    written = [Output("--output", options.output, outputs.HYPERPARAMETERS)]
    if options.search:
        written.append(Output("--table", table, outputs.STATE))
    if options.figure is not None:
        written.append(Output("--figure", options.figure, outputs.FIGURE))
    outputs.check(written, [("--data", options.data)], options.force)
    if options.search:
        result = _search(study, options, table)
    elif not study.is_tried(options.model, options.method):
        result = tuning.untried(study, options.model, options.method)
    else:
        problem = _tuning_problem(study, options)
        progress = _progress(f"tune {options.model} {options.method}", options.quiet)
        result = tuning.pinned(study, options.model, options.method, problem, progress)
    with storage.replacing(options.output) as temporary:
        temporary.write_text(yaml.safe_dump(result, sort_keys=False, allow_unicode=True))


def _search(study: Study, options: argparse.Namespace, table: Path) -> dict[str, Any]:
    """What a search of hyperparameters finds; its figure is drawn if one is asked for."""
    from dpmc import search
    from dpmc.figures import FORMATS

    if study.model(options.model).tuning_epsilon == "inf":
        raise DpmcError(f"--search: {options.model} has no budget to tune at: its tuning_epsilon is inf")
    if options.figure and options.figure.suffix[1:].lower() not in FORMATS:
        raise DpmcError(f"--figure: {options.figure}: must end in .{', .'.join(FORMATS)}")
    problem = _tuning_problem(study, options)
    name = f"search {options.model} {options.method}"
    result = search.search(
        study,
        options.model,
        options.method,
        problem,
        table,
        trials=_at_least(1, "trials", options.trials, study.tuning.trials) or 1,
        seeds=_at_least(1, "seeds", options.seeds, study.tuning.seeds) or 1,
        progress=_progress(name, options.quiet, "trials"),
    )
    for parameter in result["search"]["at_bound"]:
        print(f"dpmc: warning: {name}: {parameter} lies on the edge of what was searched", file=sys.stderr)
    if options.figure:
        _draw_search(table, result, options.figure)
    return result


def _draw_search(table: Path, result: dict[str, Any], output: Path) -> None:
    """Write the figure of a search."""
    from dpmc import trials
    from dpmc.figures import search as figure
    from dpmc.figures import style

    with style.context():
        drawn = figure.draw(trials.read(table), result, f"{result['model']}: {result['method']}")
    style.save(drawn, output)


def _tuning_problem(study: Study, options: argparse.Namespace) -> Any:
    """The problem to tune on.

    Raises DpmcError for rows that may be private, unless an option says what becomes of them.
    """
    from dpmc import datasets

    problem = _problem(study, options.model, options.data, "tuning")
    if datasets.is_public(problem.dataset) or options.rows_are_public:
        return problem
    warning = (
        f"{options.data}: hyperparameters chosen on private rows tell of them, and no epsilon covers that; "
    )
    if not options.leak_private_rows_into_hyperparameters:
        raise DpmcError(
            warning + "tune on generated rows (no --data), or say --rows-are-public, "
            "or --leak-private-rows-into-hyperparameters"
        )
    print(f"dpmc: warning: {warning}as you said", file=sys.stderr)
    return problem


def sample(options: argparse.Namespace) -> None:
    """Run chains; write one file a run, and say on standard error how the chains went."""
    from dpmc import jobs, models

    study = _study_as_asked(options)
    runs = [(one, *_runs_and_outputs(one.epsilon, one.seed, one.output)) for one in _each_method(options)]
    for one, *_ in runs:
        study.own_method(one.method)
    inputs = [("--data", options.data), ("--hyperparameters", options.hyperparameters)]
    written = [Output("--output", file, outputs.CHAINS) for *_, files in runs for file in files.values()]
    outputs.check(written, inputs, options.force)
    models.definition(study.model(options.model).model)
    starts = (max(seed for _, _, seeds, _ in runs for seed in seeds) + 1) * study.chains
    problem = _problem(study, options.model, options.data, starts=max(starts, 20))
    several = [
        (one, job)
        for one, epsilons, seeds, files in runs
        for job in _jobs(one, study, problem, epsilons, seeds, files)
    ]
    _say_what_runs_cost([cell for _, job in several for cell in job.cells], len(runs[0][2]))
    for one, job in several:
        name = " ".join([one.model, one.method, "epsilon", *(cell.epsilon for cell in job.cells)])
        jobs.run(job, options.checkpoint_seconds, _progress(name, options.quiet))
    jobs.finish([job for _, job in several])
    for _, epsilons, seeds, files in runs:
        for epsilon in epsilons:
            _say_how_it_went([files[epsilon, seed] for seed in seeds], options.quiet)


def _each_method(options: argparse.Namespace) -> list[argparse.Namespace]:
    """The options of each method alone, with its outputs; methods that are not given are read off these."""
    if options.method is not None:
        return [options]
    where = r"(?:^|/)([^/]+)/eps-[^/]+/[^/]+$"
    names: dict[str, list[str]] = {}
    found = _read_off(options.output, where, "--method", "not in a folder <method>/eps-<epsilon>")
    for method, name in zip(found, options.output, strict=True):
        names.setdefault(method, []).append(name)
    return [
        argparse.Namespace(**{**vars(options), "method": method, "output": some})
        for method, some in names.items()
    ]


def _jobs(
    options: argparse.Namespace,
    study: Study,
    problem: Any,
    epsilons: list[str],
    seeds: list[int],
    files: dict[tuple[str, int], Path],
) -> list[Any]:
    """The jobs of `sample`: one, or where ε is per iteration one for all ε with the same hyperparameters."""
    from dpmc import jobs
    from dpmc.cell import described

    how = study.own_method(options.method)
    values, source = _hyperparameters(study, options)
    given: dict[str, Any] = {
        name: value
        for name in ("iterations", "thin")
        if (value := _at_least(1, name, getattr(options, name))) is not None
    }
    alike: dict[str, list[Any]] = {}
    about = {}
    for epsilon in epsilons:
        cell = dataclasses.replace(study.cell(problem, options.method, epsilon, values, source), **given)
        about[epsilon] = described(cell, values, study.name, how.algorithm, how.options)
        if study.epsilon_kind != "total":
            calibrated = study.settings(options.method, values, epsilon, problem.n)
            about[epsilon]["calibrated"] = json.dumps(calibrated, sort_keys=True)
        alike.setdefault(about[epsilon].get("calibrated", ""), []).append(cell)
    return [jobs.Job(cells, seeds, about, files) for cells in alike.values()]


def _say_how_it_went(files: list[Path], quiet: bool) -> None:
    """Say how the finished runs of a cell went; if `quiet`, only that the budget was too small."""
    from dpmc import storage, summary

    runs = [storage.read_chain(file) for file in files[: 1 if quiet else None]]
    about = runs[0].attrs
    if about["status"] != "ok":
        variant = f" ({about['variant']})" if about["variant"] else ""
        name = f"{about['model']} {about['method']} epsilon {about['epsilon']}{variant}"
        print(f"dpmc: {name}: {about['status']}", file=sys.stderr)
    if not quiet:
        print(*summary.lines(runs), sep="\n", file=sys.stderr)


def _say_what_runs_cost(cells: list[Any], seeds: int) -> None:
    """Say what all runs on data that may be somebody's cost together, where there are several."""
    from dpmc import datasets
    from dpmc.privacy.events import repeat
    from dpmc.summary import rounded_up

    private = [cell for cell in cells if cell.epsilon != "inf"]
    if len(private) * seeds < 2 or datasets.is_public(private[0].problem.dataset):
        return
    accountant, delta = private[0].resolved_accountant(), private[0].delta
    runs = [cell.cost(cell.allowed_iterations()) for cell in private]
    try:
        each_of = [accountant.epsilon(run, delta) for run in runs]
        together = accountant.epsilon([event for run in runs for event in repeat(run, seeds)], delta)
    except DpmcError:  # the accountant cannot bound them
        each_of, together = [float("inf")], float("inf")
    kinds = "epsilons" if len({cell.method for cell in private}) == 1 else "epsilons and methods"
    at = f" at each of {len(private)} {kinds}" if len(private) > 1 else ""
    hint = f"; the chains of one seed (--chains {seeds}) share one budget" if seeds > 1 else ""
    print(
        f"dpmc: warning: {private[0].problem.dataset}: {seeds} seeds{at} "
        f"spend epsilon {', '.join(map(rounded_up, each_of))} each, "
        f"together {rounded_up(together)}, at delta {delta:.3g}{hint}",
        file=sys.stderr,
    )


def evaluate(options: argparse.Namespace) -> None:
    """Write the metrics of the cells of one model, or of its baselines, as CSV."""
    from dpmc.metrics import cell

    study = load_study(options.study)
    _check_output(options, outputs.csv_table(cell.COLUMNS), _evaluated(study, options))
    if options.baselines:
        if options.model is None:
            raise DpmcError("--model: needed with --baselines")
        problem = _problem(study, options.model, options.data)
        rows = cell.baseline_metrics(problem, study=study.name, model=options.model, dataset=problem.dataset)
    else:
        if not options.chains:
            raise DpmcError("--chains: at least one chain file is needed, or --baselines")
        rows = cell.metrics_of_cells(*_chains_and_problem(study, options))
    _write_table(options.output, cell.COLUMNS, rows)


def trace(options: argparse.Namespace) -> None:
    """Write metrics along the chains of the cells of one model as CSV."""
    from dpmc.metrics import traces

    study = load_study(options.study)
    _check_output(options, outputs.csv_table(traces.COLUMNS), _evaluated(study, options))
    _write_table(options.output, traces.COLUMNS, traces.traces(*_chains_and_problem(study, options)))


def speed(options: argparse.Namespace) -> None:
    """Measure seconds per iteration of the cells of a study, one after another; write them as CSV."""
    from dpmc import models
    from dpmc.metrics import speed

    _check_output(options, outputs.csv_table(speed.COLUMNS), [("--data", file) for file in options.data])
    study = load_study(options.study)
    files = {path.parent.name: path for path in options.data}
    shown = files or study.models
    chosen: dict[tuple[str, str], str] = {}
    for model, method, epsilon in study.cells():
        wanted = epsilon == study.model(model).tuning_epsilon
        if model in shown and (wanted or (model, method) not in chosen):
            chosen[model, method] = epsilon
    rows = []
    for model, cells in itertools.groupby(chosen.items(), key=lambda item: item[0][0]):
        models.definition(study.model(model).model)
        problem = _problem(study, model, files.get(model))
        for (_, method), epsilon in cells:
            values, source = study.pinned_hyperparameters(model, method)
            cell = study.cell(problem, method, epsilon, values, source)
            iterations, seconds = speed.seconds_per_iteration(cell)
            values_of_row = (study.name, model, method, epsilon, iterations, seconds)
            rows.append(dict(zip(speed.COLUMNS, values_of_row, strict=True)))
            if not options.quiet:
                print(f"{model} {method}: {1e6 * seconds:.1f} microseconds", file=sys.stderr, flush=True)
    _write_table(options.output, speed.COLUMNS, rows)


def _chains_and_problem(study: Study, options: argparse.Namespace) -> tuple[Any, Any]:
    """The chain files that `--chains` names, read one by one, and the problem on which they ran.

    Raises DpmcError for no chains, and for chains of another data set.
    """
    from dpmc import storage

    if not options.chains:
        raise DpmcError("--chains: at least one chain file is needed")
    files = map(storage.read_chain, _chain_files(study, options.chains))
    first = next(files)
    problem = _problem(study, first.attrs["model"], options.data)
    if problem.dataset != first.attrs["dataset"]:
        raise DpmcError(
            f"{options.data}: holds the data set {problem.dataset}, "
            f"the chains ran on {first.attrs['dataset']}"
        )
    return itertools.chain([first], files), problem


def _check_output(
    options: argparse.Namespace, kind: outputs.Kind, inputs: Sequence[tuple[str, Path | None]] = ()
) -> None:
    """Refuse an `--output` that would destroy something; see `outputs.check`."""
    if options.output is not None:
        outputs.check([Output("--output", options.output, kind)], inputs, options.force)


def _evaluated(study: Study, options: argparse.Namespace) -> list[tuple[str, Path | None]]:
    """The files that `evaluate` and `trace` read, each with its option."""
    chains = _chain_files(study, options.chains)
    return [("--data", options.data), *(("--chains", file) for file in chains)]


def _write_table(output: Path, columns: tuple[str, ...], rows: Any) -> None:
    """Write rows, mappings with these keys, as CSV."""
    from dpmc import storage

    with storage.replacing(output) as temporary, open(temporary, "w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _chain_files(study: Study, names: list[Path]) -> list[Path]:
    """Chain files, and of a folder, which holds one cell, those of the study's seeds."""
    return [
        file
        for name in names
        for file in ([name / f"seed-{seed}.nc" for seed in range(study.seeds)] if name.is_dir() else [name])
    ]


def plot(options: argparse.Namespace) -> None:
    """Draw one figure into every file given."""
    from dpmc import figures

    study = load_study(options.study)
    if options.metrics is None and options.figure not in figures.TABLES:
        raise DpmcError(f"--metrics: needed to draw {options.figure}")
    written = [
        Output("--output", output, figures.kind_of_output(options.figure, output))
        for output in options.output
    ]
    read = figures.chain_files(options.figure, study, options.results)
    inputs = [("--metrics", options.metrics), *(("--results", file) for file in read)]
    outputs.check(written, inputs, options.force)
    figures.plot(options.figure, study, options.metrics, options.published, options.output, options.results)


def budget(options: argparse.Namespace) -> None:
    """Print accountant → iterations, or accountant → epsilon, for those meant for these releases.

    Where ε is per iteration, it sets the noise, and what iterations cost in total is printed.
    """
    from dpmc import budgets, models
    from dpmc.privacy.events import repeat

    study = _study_as_asked(options)
    kept, k = _what_to_budget(study, options)
    spec = study.model(options.model)
    definition = models.definition(spec.model)
    n = _at_least(1, "n", options.n) or study.number_of_rows(options.model)
    if not n:
        raise DpmcError(f"--n: needed, since {options.model} names no number of rows")
    delta = study.delta_for(n)
    values, source = _hyperparameters(study, options)
    algorithm = study.algorithm(options.method, values, len(definition.true_theta), source, kept, n)
    once, each = (repeat(events, study.chains) for events in algorithm.releases(n))
    total = None if k else float(canonical_epsilon(options.epsilon))
    answers = budgets.answers(once, each, delta, epsilon=total, iterations=k)
    if options.json:
        print(json.dumps({k: "inf" if v == float("inf") else v for k, v in answers.items()}))
        return
    question = f"iterations at epsilon {options.epsilon}" if k is None else f"epsilon of {k} iterations"
    if study.epsilon_kind != "total":
        question += f" of {kept} each"
    print(f"{options.model} {options.method}: {question}, delta {delta:g}, n {n}")
    for name, answer in answers.items():
        print(f"  {name:12s} {answer:.6g}" if isinstance(answer, float) else f"  {name:12s} {answer}")


def budgets(options: argparse.Namespace) -> None:
    """Write a study's table of budgets."""
    from dpmc import budgets

    study = load_study(options.study)
    files = [("--hyperparameters", file) for file in options.hyperparameters]
    _check_output(options, outputs.csv_table(budgets.COLUMNS), files)
    tuned = {}
    for file in options.hyperparameters:
        content = read_yaml(file)
        try:
            tuned[content["model"], content["method"]] = content["hyperparameters"]
        except (KeyError, TypeError):
            raise DpmcError(f"{file}: must be a file written by dpmc tune") from None
    budgets.write(study, options.output, tuned)


def _what_to_budget(study: Study, options: argparse.Namespace) -> tuple[str, int | None]:
    """The ε that an iteration keeps, "inf" where none is set; and the iterations whose cost is asked for."""
    k = _at_least(1, "iterations", options.iterations)
    if study.epsilon_kind == "total":
        if (options.epsilon is None) == (k is None):
            raise DpmcError("--epsilon, --iterations: give one of them")
        return "inf", k
    if options.epsilon is None:
        raise DpmcError(f"--epsilon: needed, it is per iteration in the study {study.name}")
    k = k or study.iterations(options.model, options.method)
    if k is None:
        raise DpmcError("--iterations: needed, the study does not say how many")
    return canonical_epsilon(options.epsilon), k


def _study_as_asked(options: argparse.Namespace) -> Study:
    """The study, with the number of chains and the δ of the command line in place of its own.

    Raises DpmcError for an impossible number of either.
    """
    study = load_study(options.study)
    delta, chains = options.delta, _at_least(1, "chains", options.chains, study.chains)
    if delta is not None and not 0.0 < delta < 1.0:
        raise DpmcError(f"--delta: {delta} must be between 0 and 1, both excluded")
    if options.chains is not None and options.chains > MOST_CHAINS:
        raise DpmcError(f"--chains: {options.chains} must be at most {MOST_CHAINS}")
    return study.model_copy(
        update={"chains": chains or study.chains, "delta": study.delta if delta is None else delta}
    )


def _problem(
    study: Study,
    label: str,
    file: Path | None,
    dataset: str | None = None,
    rows: Path | None = None,
    starts: int = 20,
) -> Any:
    """The problem of a model: from a file, from a user's rows, or generated as the study says."""
    from dpmc.problem import read_problem

    spec = study.model(label)
    starts = max(starts, study.start_points)
    if file is not None and file.suffix in (".csv", ".parquet"):
        file, rows = None, file
    elif file is None and rows is None and dataset in (None, spec.data):
        rows = spec.rows_file
    if rows is not None or file is None:
        from dpmc import datasets, models  # a job reads its data: it need not load what makes them
    if rows is not None:
        definition = models.definition(spec.model)
        problem = datasets.from_rows(
            label, spec.model, rows.stem, study.read_rows(label, rows), starts, str(rows), definition
        )
        if spec.start == "true":
            problem.starts[:] = problem.true_theta
        return problem
    if file is None:
        name = datasets.tuning_set(spec.data) if dataset == "tuning" else dataset or spec.data
        n = study.number_of_rows(label) if spec.rows_file else spec.n
        return datasets.build(label, spec.model, name, n, starts, spec.start)
    problem = read_problem(file)
    for kind, held, wanted in (("label", problem.label, label), ("model", problem.model_id, spec.model)):
        if held != wanted:
            raise DpmcError(f"{file}: {kind}: holds data for {held}, not for {wanted}")
    if spec.n is not None and spec.n != problem.n:
        raise DpmcError(f"{file}: rows: {problem.n}, the study wants n = {spec.n}")
    return problem


def _hyperparameters(study: Study, options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Hyperparameters and where they come from: a file, or the study's published ones."""
    if options.hyperparameters is None:
        return study.pinned_hyperparameters(options.model, options.method)
    path = options.hyperparameters
    content = read_yaml(path)
    if isinstance(content, dict) and "hyperparameters" in content:
        for key, wanted in (("model", options.model), ("method", options.method)):
            if content.get(key, wanted) != wanted:
                raise DpmcError(f"{path}: {key}: {content[key]!r} is not {wanted!r}")
        content = content["hyperparameters"]
    if not isinstance(content, dict):
        raise DpmcError(f"{path}: must be a mapping of hyperparameters")
    return content, str(path)


def _runs_and_outputs(
    epsilons: list[str] | None, seeds: list[int] | None, names: list[str]
) -> tuple[list[str], list[int], dict[tuple[str, int], Path]]:
    """Every ε and seed, and the file of each (ε, seed).

    The names are a pattern with {epsilon} and {seed}, or files, ε by ε. ε and seeds that are not given are
    read off the files' names, eps-<epsilon>/seed-<seed>.nc.
    """
    read: list[tuple[str | None, int | None]] = [(None, None)] * len(names)
    if epsilons is None:
        texts = _read_off(names, r"(?:^|/)eps-([^/]+)/[^/]+$", "--epsilon", "not in a folder eps-<epsilon>")
        read = [(canonical_epsilon(text), None) for text in texts]
        epsilons = list(dict.fromkeys(epsilon for epsilon, _ in read if epsilon))
    epsilons = [canonical_epsilon(epsilon) for epsilon in epsilons]
    if len(set(epsilons)) != len(epsilons):
        raise DpmcError(f"--epsilon: {' '.join(epsilons)} must be different")
    if seeds is None:
        texts = _read_off(names, r"seed-([0-9]{1,9})\.nc$", "--seed", "not named seed-<n>.nc")
        read = [(epsilon, int(text)) for (epsilon, _), text in zip(read, texts, strict=True)]
        seeds = list(dict.fromkeys(seed for _, seed in read if seed is not None))
    if min(seeds) < 0 or len(set(seeds)) != len(seeds):
        raise DpmcError(f"--seed: {seeds} must be different whole numbers, at least 0")
    if max(seeds) >= MOST_STARTS:  # every seed below the largest has its start point made
        raise DpmcError(f"--seed: {max(seeds)} must be below {MOST_STARTS}")
    runs = list(itertools.product(epsilons, seeds))
    if len(names) == 1 and ("{seed}" in names[0] or "{epsilon}" in names[0]):
        names = [names[0].replace("{epsilon}", e).replace("{seed}", str(seed)) for e, seed in runs]
        read = [(None, None)] * len(names)
    if len(names) != len(runs):
        wanted = f"{len(seeds)} seeds" + (f" at {len(epsilons)} epsilons" if len(epsilons) > 1 else "")
        pattern = '"{epsilon}" and "{seed}"' if len(epsilons) > 1 else '"{seed}"'
        raise DpmcError(f"--output: {len(names)} files for {wanted}; give one each, or a name with {pattern}")
    for name, (epsilon, seed), found in zip(names, runs, read, strict=True):
        if found[0] not in (None, epsilon) or found[1] not in (None, seed):
            raise DpmcError(f"--output: {name}: stands where epsilon {epsilon}, seed {seed} is expected")
    return epsilons, seeds, dict(zip(runs, map(Path, names), strict=True))


def _read_off(names: list[str], pattern: str, option: str, otherwise: str) -> list[str]:
    """What a pattern finds in each output's name."""
    found = [re.search(pattern, name) for name in names]
    for name, match in zip(names, found, strict=True):
        if match is None:
            raise DpmcError(f"{option}: needed, since the output {name!r} is {otherwise}")
    return [match[1] for match in found if match]


def _at_least(least: int, key: str, *values: int | None) -> int | None:
    """The first value that is given; DpmcError if it is below `least`."""
    for value in values:
        if value is not None:
            if value < least:
                raise DpmcError(f"--{key}: {value} must be at least {least}")
            return value
    return None


def _progress(name: str, quiet: bool, what: str = "iterations") -> Any:
    """A reporter of progress, unless it is to be quiet."""
    return None if quiet else reporter(name, what)
