"""Compiling beforehand: fills the cache of machine code, so that jobs of sampling and evaluation find it.

What is compiled follows from the types of a loop's arguments: from the classes of algorithm and model, not
from their numbers. Such a combination is named `<algorithm>-<family>`, e.g. dp-hmc-banana. In one process
the combinations of a family take a third of what they take one by one: their algorithms call the same
functions, which are compiled once.
"""

import gc
import itertools
import math
import time
from collections.abc import Iterator
from typing import Any

from dpmc import compiler, models
from dpmc.studies import Study

ROWS = 2000  #: several blocks of rows, so that arrays have the memory layout of a whole data set
METRICS = "metrics"  #: in place of a combination: what evaluation needs


def family(model_id: str) -> str:
    """The class of a catalogue model, e.g. "banana"; a model of one's own is a family by itself."""
    if ":" in model_id:
        return model_id.replace(":", ".")
    return type(models.definition(model_id).model).__name__.lower()


def combination(study: Study, model: str, method: str) -> str:
    """The name of what a cell of a study runs."""
    return f"{study.method(method).algorithm}-{family(study.model(model).model)}"


def families(study: Study) -> dict[str, list[tuple[str, str]]]:
    """The families of models that a study samples itself, with the (model, method) of each."""
    pairs = [(model, method) for model in study.models for method in study.methods]
    found: dict[str, list[tuple[str, str]]] = {}
    for model, method in pairs:
        spec = study.method(method)
        if model in spec.models and not spec.from_study:
            found.setdefault(family(study.model(model).model), []).append((model, method))
    return found


def compiled_together(study: Study) -> dict[str, list[tuple[str, str]]]:
    """Families gathered into jobs, as `families`: they share what does not depend on the model.

    No job has more combinations than the largest family, which by itself takes longest, or half of all those
    of the catalogue, so that two jobs at a time end together. A model of one's own has a job to itself, which
    may fail alone. Names are the families', joined by "+".
    """
    found = families(study)
    sizes = {name: len({combination(study, *pair) for pair in pairs}) for name, pairs in found.items()}
    own = {family(spec.model) for spec in study.models.values() if ":" in spec.model}
    half = sum(size for name, size in sizes.items() if name not in own) / 2
    most = max([*sizes.values(), math.ceil(half)])
    jobs: list[list[str]] = []
    for name in sorted(found, key=lambda name: -sizes[name]):
        with_room = (job for job in jobs if sum(sizes[other] for other in (*job, name)) <= most)
        job = None if name in own else next((job for job in with_room if job[0] not in own), None)
        if job is None:
            jobs.append([name])
        else:
            job.append(name)
    return {"+".join(job): [pair for name in job for pair in found[name]] for job in jobs}


def compile_metrics() -> str:
    """Compile what evaluation and tuning need beside the samplers; say how long it took."""
    from dpmc.metrics import mmd

    began = time.perf_counter()
    mmd.warm()
    return _report(METRICS, began)


def compile_cells(study: Study, name: str, pairs: list[tuple[str, str]]) -> str:
    """Run a few iterations of every (model, method) by the loop that samples; say how long it took.

    Raises DpmcError for missing or wrong hyperparameters, and for a model that cannot make data.
    """
    began = time.perf_counter()
    collects = gc.isenabled()
    gc.disable()  # looking for garbage takes a tenth of the time; there is time for it in between
    try:
        for model, methods in itertools.groupby(sorted(pairs), key=lambda pair: pair[0]):
            _run(study, model, [method for _, method in methods])
    finally:
        if collects:
            gc.enable()
    return _report(name, began)


def _run(study: Study, model: str, methods: list[str]) -> None:
    """A few iterations of each method that differs in its types, with one seed and with two."""
    from dpmc import datasets, sampling

    spec = study.model(model)
    dimension = len(models.definition(spec.model).true_theta)
    different = list(_different(study, model, methods, dimension))
    rows = max(ROWS, *(algorithm.batch_size for _, algorithm in different))
    problem = datasets.build(model, spec.model, "tuning", rows, 2 * study.chains)
    for method, algorithm in different:
        cell = sampling.Cell(
            problem=problem,
            method=method,
            algorithm=algorithm,
            epsilon="inf",
            delta=study.delta_for(rows),
            accountant=study.method(method).accountant,
            chains=study.chains,
            iterations=2,
        )
        for seeds in ([0], [0, 1]):
            sampling.sample(cell, seeds)


def _different(study: Study, model: str, methods: list[str], dimension: int) -> Iterator[tuple[str, Any]]:
    """The methods with their algorithms, without those whose types have been seen."""
    seen = set()
    for method in methods:
        values, source = study.pinned_hyperparameters(model, method)
        epsilon, n = study.epsilons(model, method)[0], _rows_of(study, model)
        algorithm = study.algorithm(method, values, dimension, source, epsilon, n)
        types = (type(algorithm), *(type(value) for value in algorithm))
        if types not in seen:
            seen.add(types)
            yield method, algorithm


def _rows_of(study: Study, model: str) -> int:
    """How many rows a model's data have, as far as study or catalogue know."""
    spec = study.model(model)
    return spec.n or models.definition(spec.model).n or ROWS


def _report(name: str, began: float) -> str:
    import llvmlite.binding

    return (
        f"compiled: {name}\n"
        f"sources: {compiler.sources_hash()}\n"
        f"processor: {llvmlite.binding.get_host_cpu_name()}\n"
        f"seconds: {time.perf_counter() - began:.2f}\n"
    )
