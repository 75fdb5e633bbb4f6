"""The inputs: (seed, index) names one, with its mistake and the command that repeats it."""

import functools
import random
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path

from fuzz import mutations
from fuzz.inputs import Case, case, write_template
from fuzz.mutations import Mutation
from fuzz.running import TIME_OUT, Ended, judge

CATEGORIES: dict[str, list[Mutation]] = {
    "command lines": mutations.COMMANDS,
    "studies": mutations.STUDIES,
    "hyperparameters": mutations.HYPERPARAMETERS,
    "models": mutations.MODELS,
    "data files": mutations.DATA_FILES,
    "chain files": mutations.CHAINS,
    "tables": mutations.TABLES,
}
EXPECTED = {True: "has to be taken", False: "has to be refused", None: "may be taken or refused"}


@dataclass(frozen=True)
class Verdict:
    """The result of one input."""

    seed: int
    index: int
    category: str
    mutation: Mutation
    case: Case
    ended: Ended
    faults: list[str]

    def __str__(self) -> str:
        lines = [
            f"input {self.index} of seed {self.seed}: {self.category}: {self.mutation.name}; it "
            + EXPECTED[self.mutation.valid],
            *(f"  WRONG: {fault}" for fault in self.faults),
            f"  dpmc {shlex.join(self.case.argv)}",
        ]
        return "\n".join(lines)


@functools.cache
def order(seed: int) -> list[tuple[str, Mutation]]:
    """All mutations, each category's spread evenly, so that the first 200 hold all kinds."""
    rng = random.Random(f"order {seed}")
    placed = []
    for category, of in CATEGORIES.items():
        for i, mutation in enumerate(rng.sample(of, len(of))):
            placed.append(((i + rng.random()) / len(of), category, mutation))
    return [(category, mutation) for _, category, mutation in sorted(placed, key=lambda one: one[:2])]


def make(seed: int, index: int, template: Path, folder: Path) -> tuple[str, Mutation, Case]:
    """Make an input in a new folder: every mutation comes up in turn, on a command that it applies to."""
    mutations = order(seed)
    category, mutation = mutations[index % len(mutations)]
    rng = random.Random(f"{seed} {index}")
    made = case(template, folder, rng.choice(mutation.commands.split()))
    mutation.change(made, rng)
    return category, mutation, made


@functools.cache
def template() -> Path:
    """Return the folder of valid files, written once per process and removed at its end."""
    place = tempfile.TemporaryDirectory(prefix="fuzz-")
    _kept.append(place)
    return write_template(Path(place.name))


_kept: list[tempfile.TemporaryDirectory[str]] = []


def check(seed: int, index: int, folder: Path, time_out: float = TIME_OUT) -> Verdict:
    """Make an input in a new folder, run it and judge."""
    category, mutation, made = make(seed, index, template(), folder)
    ended, faults = judge(made.argv, folder, made.outputs, mutation.valid, mutation.word, time_out)
    return Verdict(seed, index, category, mutation, made, ended, faults)
