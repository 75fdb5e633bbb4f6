"""What the commands of the command line do; every function takes the parsed options."""

import argparse
import csv
import hashlib
import itertools
import json
import re
import sys
import time
from pathlib import Path
from typing import Any

from dpmc.errors import DpmcError
from dpmc.randomness import canonical_epsilon
from dpmc.studies import Study, load_study, read_yaml


def data(options: argparse.Namespace) -> None:
    """Write a problem file."""
    study = load_study(options.study)
    _problem(study, options.model, None, options.data, options.rows).write(options.output)


def compile(options: argparse.Namespace) -> None:
    """Compile what a study's cells run, or what evaluation needs; report what and how long."""
    from dpmc import storage, warmup

    study = load_study(options.study)
    if options.metrics:
        reports = [warmup.compile_metrics()]
    else:
        chosen: dict[str, list[tuple[str, str]]] = {}
        methods = options.method or [m for m, spec in study.methods.items() if not spec.from_study]
        for model in options.model or study.models:
            for method in methods:
                name = warmup.combination(study, model, method)
                if ":" in model or model in study.method(method).models:
                    chosen.setdefault(name, []).append((model, method))
        if not chosen:
            raise DpmcError("--model, --method: the study runs none of these methods on these models")
        reports = [warmup.compile_cells(study, name, pairs) for name, pairs in chosen.items()]
    if options.output is None:
        print("\n".join(reports), end="")
        return
    with storage.replacing(options.output) as temporary:
        temporary.write_text("\n".join(reports))


def tune(options: argparse.Namespace) -> None:
    """Write the hyperparameters of one (model, method) with what they gave on tuning data."""
    import yaml

    from dpmc import storage, tuning

    study = load_study(options.study)
    study.own_method(options.method)
    if study.model(options.model).tuning_epsilon == "inf":
        result = tuning.untried(study, options.model, options.method)
    else:
        result = _try_out(study, options)
    with storage.replacing(options.output) as temporary:
        temporary.write_text(yaml.safe_dump(result, sort_keys=False, allow_unicode=True))


def _try_out(study: Study, options: argparse.Namespace) -> dict[str, Any]:
    """What the pinned hyperparameters give on tuning data."""
    from dpmc import tuning

    problem = _problem(study, options.model, options.data, "tuning")
    progress = _progress(f"tune {options.model} {options.method}", options.quiet)
    return tuning.pinned(study, options.model, options.method, problem, progress)


def sample(options: argparse.Namespace) -> None:
    """Run chains; write one file a seed."""
    from dpmc import models, sampling, storage

    study = load_study(options.study)
    models.definition(study.model(options.model).model)
    epsilon = canonical_epsilon(options.epsilon)
    seeds, outputs = _seeds_and_outputs(options.seed, options.output)
    how = study.own_method(options.method)
    values, source = _hyperparameters(study, options)
    need = (max(seeds) + 1) * study.chains
    problem = _problem(study, options.model, options.data, starts=max(need, 20))
    cell = sampling.Cell(
        problem=problem,
        method=options.method,
        algorithm=study.algorithm(options.method, values, problem.dimension, source),
        epsilon=epsilon,
        delta=study.delta_for(problem.n),
        accountant=how.accountant,
        chains=study.chains,
        iterations=_at_least(1, "iterations", options.iterations, how.iterations),
        thin=_at_least(1, "thin", options.thin, how.thin) or 1,
        most_iterations=how.most_iterations,
        most_draws=how.most_draws,
    )
    about = {
        "study": study.name,
        "algorithm": how.algorithm,
        "variant": getattr(cell.algorithm, "variant", ""),
        "hyperparameters": json.dumps(values, sort_keys=True),
        "options": json.dumps(how.options, sort_keys=True),
        "model_id": problem.model_id,
        "chains": study.chains,
    }
    checkpoint = outputs[0].parent / f".checkpoint-{_settings_hash(cell, about, seeds)}.npz"
    name = f"{options.model} {options.method} epsilon {epsilon}" + (
        f" ({about['variant']})" if about["variant"] else ""
    )
    finished = sampling.sample(
        cell, seeds, checkpoint, options.checkpoint_seconds, _progress(name, options.quiet)
    )
    for chains, output in zip(finished, outputs, strict=True):
        chains.attributes.update(about)
        storage.write_chains(output, chains)
    checkpoint.unlink(missing_ok=True)
    if finished[0].attributes["status"] != "ok":
        print(f"dpmc: {name}: {finished[0].attributes['status']}", file=sys.stderr)


def evaluate(options: argparse.Namespace) -> None:
    """Write the metrics of the cells of one model, or of its baselines, as CSV."""
    from dpmc import storage
    from dpmc.metrics import cell

    study = load_study(options.study)
    if options.baselines:
        if options.model is None:
            raise DpmcError("--model: needed with --baselines")
        problem = _problem(study, options.model, options.data)
        rows = cell.baseline_metrics(problem, study=study.name, model=options.model, dataset=problem.dataset)
    else:
        if not options.chains:
            raise DpmcError("--chains: at least one chain file is needed, or --baselines")
        files = map(storage.read_chain, _chain_files(study, options.chains))
        first = next(files)
        problem = _problem(study, first.attrs["model"], options.data)
        if problem.dataset != first.attrs["dataset"]:
            raise DpmcError(
                f"{options.data}: holds the data set {problem.dataset}, "
                f"the chains ran on {first.attrs['dataset']}"
            )
        rows = cell.metrics_of_cells(itertools.chain([first], files), problem)
    with storage.replacing(options.output) as temporary, open(temporary, "w", newline="") as file:
        writer = csv.DictWriter(file, cell.COLUMNS, lineterminator="\n")
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
    figures.plot(options.figure, study, options.metrics, options.published, options.output, options.results)


def budget(options: argparse.Namespace) -> None:
    """Print accountant → iterations, or accountant → epsilon, for those meant for these releases."""
    from dpmc import models
    from dpmc.privacy import accountants
    from dpmc.privacy.events import repeat

    study = load_study(options.study)
    spec = study.model(options.model)
    definition = models.definition(spec.model)
    n = _at_least(1, "n", options.n, spec.n or definition.n)
    if not n:
        raise DpmcError(f"--n: needed, since {options.model} names no number of rows")
    delta = study.delta_for(n) if options.delta is None else options.delta
    values, source = _hyperparameters(study, options)
    algorithm = study.algorithm(options.method, values, len(definition.true_theta), source)
    once, each = (repeat(events, study.chains) for events in algorithm.releases(n))
    answers: dict[str, Any] = {}
    for name, accountant in accountants.ACCOUNTANTS.items():
        if not accountant.is_meant_for(once + each):
            continue
        if options.epsilon is not None:
            epsilon = float(canonical_epsilon(options.epsilon))
            answers[name] = accountant.iterations(once, each, epsilon, delta)
        else:
            k = _at_least(1, "iterations", options.iterations)
            answers[name] = accountant.epsilon(once + repeat(each, k or 0), delta)
    if options.json:
        print(json.dumps({k: "inf" if v == float("inf") else v for k, v in answers.items()}))
        return
    question = (
        f"iterations at epsilon {options.epsilon}"
        if options.epsilon is not None
        else f"epsilon of {options.iterations} iterations"
    )
    print(f"{options.model} {options.method}: {question}, delta {delta:g}, n {n}")
    for name, answer in answers.items():
        print(f"  {name:12s} {answer:.6g}" if isinstance(answer, float) else f"  {name:12s} {answer}")


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
    starts = max(starts, study.seeds * study.chains)
    if file is not None and file.suffix == ".csv":
        file, rows = None, file
    if rows is not None or file is None:
        from dpmc import datasets  # a job reads its data: it need not load what makes them
    if rows is not None:
        return datasets.from_rows(label, spec.model, rows.stem, datasets.read_rows(rows), starts)
    if file is None:
        return datasets.build(label, spec.model, dataset or spec.data, spec.n, starts, spec.start)
    problem = read_problem(file)
    if problem.label != label:
        raise DpmcError(f"{file}: holds data for {problem.label}, not for {label}")
    if spec.n is not None and spec.n != problem.n:
        raise DpmcError(f"{file}: rows: {problem.n}, the study wants n = {spec.n}")
    return problem


def _hyperparameters(study: Study, options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Hyperparameters and where they come from: a file, or the study's published ones."""
    if options.hyperparameters is None:
        return study.published_hyperparameters(options.model, options.method)
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


def _seeds_and_outputs(seeds: list[int] | None, names: list[str]) -> tuple[list[int], list[Path]]:
    """One output per seed: a pattern with {seed}, or as many files as seeds."""
    if seeds is None:
        found = [re.search(r"seed-(\d+)\.nc$", name) for name in names]
        missing = [n for n, match in zip(names, found, strict=True) if match is None]
        if missing:
            raise DpmcError(f"--seed: needed, since the output {missing[0]!r} is not named seed-<n>.nc")
        seeds = [int(match[1]) for match in found if match]
    if min(seeds) < 0 or len(set(seeds)) != len(seeds):
        raise DpmcError(f"--seed: {seeds} must be different whole numbers, at least 0")
    if len(names) == 1 and "{seed}" in names[0]:
        return seeds, [Path(names[0].replace("{seed}", str(seed))) for seed in seeds]
    if len(names) != len(seeds):
        raise DpmcError(
            f'--output: {len(names)} files for {len(seeds)} seeds; give one each, or a name with "{{seed}}"'
        )
    return seeds, [Path(name) for name in names]


def _at_least(least: int, key: str, *values: int | None) -> int | None:
    """The first value that is given; DpmcError if it is below `least`."""
    for value in values:
        if value is not None:
            if value < least:
                raise DpmcError(f"--{key}: {value} must be at least {least}")
            return value
    return None


def _settings_hash(cell: Any, about: dict[str, Any], seeds: list[int]) -> str:
    """A hash of all that decides the draws of a job: the key of its checkpoint."""
    problem = cell.problem
    content = [
        about,
        seeds,
        [problem.label, problem.dataset, cell.method, cell.epsilon, cell.delta, cell.accountant],
        [cell.iterations, cell.most_iterations, cell.thin, cell.most_draws, cell.algorithm.draws_version],
        hashlib.sha256(problem.rows.tobytes() + problem.starts.tobytes()).hexdigest(),
    ]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _progress(name: str, quiet: bool) -> Any:
    """A reporter of progress on standard error: a line that rewrites itself, or one every 10 s."""
    if quiet:
        return None
    began = last = time.monotonic()
    live = sys.stderr.isatty()

    def report(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < (0.2 if live else 10.0) and done < total:
            return
        last = now
        left = (now - began) * (total - done) / done
        text = f"{name}: {done}/{total} iterations, {now - began:.0f} s, about {left:.0f} s left"
        end = "\n" if done == total or not live else ""
        print(("\r\033[K" if live else "") + text, end=end, file=sys.stderr, flush=True)

    return report
