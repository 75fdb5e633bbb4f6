"""How much one sampling job makes, and what jobs ask of a cluster: decided here for all."""

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from dpmc.algorithms import algorithm_class
from dpmc.studies.study import Study

Size = Literal["method", "mixed", "cell", "chain"]  #: mixed: cells of methods that take long, others whole
MANY_JOBS = 16  #: if so many may run at once, a long method is split, so that none waits for the longest
MOST_SEEDS = 20  #: of a job: Snakemake compares each file that it wants with all outputs of a rule
FEW_SEEDS = 10  #: of a cell that takes long

#: rule -> megabytes and minutes that its jobs ask for. The study thesis took at most 734 MB and 4 minutes
#: (sample), 480 and 0.3 (evaluate), 442 and 1 (tune). Four jobs of data, or evaluate, may be one of a cluster
#: (profiles), and ask for the minutes of one that samples.
JOB_NEEDS: dict[str, tuple[int, int]] = {
    "budgets": (500, 20),
    "data": (1000, 15),
    "evaluate": (1000, 15),
    "repeated": (1500, 120),
    "sample": (1000, 60),
    "search": (1000, 60),
    "traces": (1500, 60),
    "tuning": (800, 30),
}

#: (model, method, ε) -> how many of the first seeds have chains
Made = Callable[[str, str, str], int]


class Part(NamedTuple):
    """Chains of a model that share rules of sampling."""

    model: str
    epsilons: tuple[str, ...]
    algorithm: str  # of methods without a budget, which share a job; else ""
    seeds: range
    size: Size  # of its jobs; never mixed


def size_of_jobs(at_once: int) -> Size:
    """Return what a job makes if so many may run at once."""
    return "mixed" if at_once >= MANY_JOBS else "method"


def is_untried(study: Study, model: str, method: str) -> bool:
    """Return whether a method runs on a model without privacy and untried, as with given clip bounds."""
    return study.epsilons(model, method) == ("inf",) and not study.is_tried(model, method)


def is_long(study: Study, model: str, method: str) -> bool:
    """Return whether cells of a method take long: by gradients, and iterations that a budget decides."""
    gradients = algorithm_class(study.method(method).algorithm).uses_gradients
    return gradients and not is_untried(study, model, method)


def job_parts(study: Study, size: Size, made: Made) -> dict[Part, list[str]]:
    """Return the parts that a study runs, with their methods.

    Chains that are there, of the first seeds or of some ε, are parts of their own, and not made anew.
    """
    units: dict[tuple[str, tuple[str, ...], str, str], list[str]] = {}
    for model, method in study.pairs():
        shared = study.method(method).algorithm if is_untried(study, model, method) else ""
        alone = "" if shared else method
        units.setdefault((model, study.epsilons(model, method), shared, alone), []).append(method)
    found: dict[Part, list[str]] = {}
    for (model, epsilons, algorithm, _), methods in units.items():
        there = {e: min(made(model, method, e) for method in methods) for e in epsilons}
        long = is_long(study, model, methods[0])
        own: Size = size if size != "mixed" else "cell" if long else "method"
        most = FEW_SEEDS if own == "cell" and long else MOST_SEEDS
        for done in dict.fromkeys(there.values()):
            alike = tuple(e for e in epsilons if there[e] == done)
            for seeds in _blocks(study.seeds, done, most):
                found.setdefault(Part(model, alike, algorithm, seeds, own), []).extend(methods)
    return found


def _blocks(seeds: int, done: int, most: int) -> Iterator[range]:
    """Yield the seeds of each job, at most `most`; those before `done` are apart from the others."""
    cuts = sorted({*range(0, seeds, most), min(done, seeds), seeds})
    yield from map(range, cuts[:-1], cuts[1:])
