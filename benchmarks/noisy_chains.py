"""Search the setting of a chain on twins, data sets that are simulated for it: no other rows are read."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from noisy_questions import Data, Question, data_set, judged

from dpmc.algorithms import algorithm_class
from dpmc.algorithms.hyperparameters import read
from dpmc.common.errors import DpmcError
from dpmc.common.streams import canonical_epsilon
from dpmc.data import datasets
from dpmc.metrics.cell import second_half_of
from dpmc.models.own import given_model
from dpmc.sampling.cell import LEAST_ITERATIONS, Cell
from dpmc.sampling.loop import sample
from dpmc.tuning.first_setting import first_setting
from dpmc.tuning.recommendation import LEAST_COVERAGE

CHAINS = ("dp-penalty", "dp-penalty-guided", "dp-hmc")
TEMPERING = (1.0, 1 / 4, 1 / 16, 1 / 64)  #: n₀/n
CLIPS = (1.5, 2.5)  #: times the first setting's clip bound, which clips 2 % of the log ratios
NOISIER = (0.5, 1.4)  #: times its noise multipliers: 4 times fewer, 2 times more iterations
BATCH, MANY = 0.2, 50_000  #: share of the rows in a batch of minibatch-penalty, tried from this many rows on
FIRST_TWINS, FINAL_TWINS, FINALISTS = 2, 4, 3  #: first ones: half as many from that many rows on
FIRST_COVERAGE = 0.5  #: of a setting's 90 % intervals on the first twins; on the others `LEAST_COVERAGE`
MOST_ITERATIONS = 10_000


class Setting(NamedTuple):
    """A chain's algorithm, n₀/n and hyperparameters."""

    method: str
    share: float
    values: dict[str, Any]


def cell_of(question: Question, share: float, data: Data, epsilon: float) -> Cell:
    """Return the cell of a chain on these rows, tempered to n₀ = share n; without algorithm and method."""
    model = question.model(None if share == 1.0 else share * question.n)
    name, definition = given_model(model)
    problem = datasets.from_rows(question.regression, name, "rows", data.rows, 1, definition=definition)
    none: Any = None
    return Cell(
        problem,
        "",
        none,
        canonical_epsilon(epsilon),
        question.delta,
        "tight",
        most_iterations=MOST_ITERATIONS,
    )


def with_algorithm(cell: Cell, method: str, values: dict[str, Any]) -> Cell:
    algorithm = read(algorithm_class(method), values, "grid", cell.problem.dimension)
    return replace(cell, method=method, algorithm=algorithm)


def run(question: Question, setting: Setting, data: Data, epsilon: float) -> np.ndarray:
    """Return the second half of a chain's draws (m, d)."""
    cell = with_algorithm(cell_of(question, setting.share, data, epsilon), setting.method, setting.values)
    if cell.allowed_iterations() < LEAST_ITERATIONS:
        raise DpmcError("the budget allows too few iterations")
    (chain,) = sample(cell, [0])
    return second_half_of(chain)[0]


def proposed(question: Question, setting: Setting, twin: Data, epsilon: float, **factors: float) -> Setting:
    """Return the first setting of `dpmc.tune` on a twin, for a setting's method and temperature.

    `factors`: the setting's hyperparameters whose names begin so are multiplied by them; steps follow.
    """
    cell = cell_of(question, setting.share, twin, epsilon)
    # The posterior of the twin's rows, tempered, is nearly normal: enough for the clip bounds.
    normal = question.generator(3).standard_normal((200, question.d))
    spread = twin.fit.error / np.sqrt(setting.share) * normal
    cell.problem.exact = replace(cell.problem.exact, reference=twin.fit.estimate + spread)

    def make(values: dict[str, Any]) -> Cell:
        return with_algorithm(cell, setting.method, values)

    kept = {key: value for key, value in setting.values.items() if key.startswith(("tau", "clip"))}
    for begin, factor in factors.items():
        kept |= {key: factor * value for key, value in kept.items() if key.startswith(begin)}
    return setting._replace(values=first_setting(setting.method, cell.problem, {}, make, kept))


def in_batches(question: Question, setting: Setting) -> Setting:
    """Return minibatch-penalty with steps, clip bound and about the privacy of a setting of dp-penalty."""
    values, b = setting.values, round(BATCH * question.n)
    tau = (BATCH * values["tau"]) ** 2 * question.n
    batches = {"tau": tau, "batch_size": b, "clip": values["clip"], "sensitivity": "tight"}
    return Setting("minibatch-penalty", setting.share, {**batches, "proposal_sd": values["proposal_sd"]})


def ranked(
    question: Question, settings: list[Setting], twins: list[Data], epsilon: float, least: float
) -> list[tuple[tuple[bool, float], Setting]]:
    """Return scores and settings, best first: the least error of those whose intervals cover the truth."""
    scores = []
    for setting in settings:
        try:
            found = judged([run(question, setting, twin, epsilon) for twin in twins], twins)
            scores.append((found["coverage"] < least, found["error"]))
        except DpmcError:
            scores.append((True, np.inf))
    return sorted(zip(scores, settings, strict=True), key=lambda pair: pair[0])


def searched(question: Question, epsilon: float) -> Setting:
    """Return the best setting on twins, which are none of the data sets: simulated rows alone.

    On the first twins: first settings of three algorithms at four temperatures; larger clip bounds for the
    best three; then fewer and more iterations for the best three, and batches where there are many rows. The
    best three of all these are run on the other twins, which decide.
    """
    first = FIRST_TWINS if question.n < MANY else FIRST_TWINS // 2
    twins = [data_set(question, -1 - twin) for twin in range(FIRST_TWINS + FINAL_TWINS)]
    few, others = twins[:first], twins[FIRST_TWINS:]
    settings = [
        proposed(question, Setting(method, share, {}), few[0], epsilon)
        for method in CHAINS
        for share in TEMPERING
    ]
    tried = ranked(question, settings, few, epsilon, FIRST_COVERAGE)
    for name, factors in (("clip", CLIPS), ("tau", NOISIER)):
        best = [setting for _, setting in tried[:FINALISTS]]
        further = [
            proposed(question, one, few[0], epsilon, **{name: factor}) for one in best for factor in factors
        ]
        if name == "tau" and question.n >= MANY:
            further.append(in_batches(question, next(one for _, one in tried if one.method == "dp-penalty")))
        tried += ranked(question, further, few, epsilon, FIRST_COVERAGE)
        tried.sort(key=lambda pair: pair[0])
    finalists = [setting for _, setting in tried[:FINALISTS]]
    return ranked(question, finalists, others, epsilon, LEAST_COVERAGE)[0][1]
