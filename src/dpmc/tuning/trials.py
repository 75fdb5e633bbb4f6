"""The trials of a search of hyperparameters on disk: one row each, written when it is done."""

import csv
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from dpmc.common.errors import DpmcError
from dpmc.common.files import alone, lock_of, replacing, unwritten


@dataclass(frozen=True)
class Trial:
    """One setting and its results; a row of the table."""

    number: int
    stage: str  # search | final
    setting: dict[str, Any]  # the free hyperparameters
    objective: float  # median MMD; above √2 something is wrong, see the constants of `dpmc.tuning.search`
    verdict: str  # ok | given up … | clipped … | too few iterations … | refused … | no MMD for some seeds
    seeds: int
    iterations: int = 0
    mmd: float = math.nan  # median over seeds
    acceptance_rate: float = math.nan
    ratio_clip_fraction: float = math.nan
    gradient_clip_fraction: float = math.nan
    values: list[float] = field(default_factory=list)  # MMD of each seed
    seconds: float = 0.0  # CPU time
    means: list[list[float]] = field(default_factory=list)  # of the draws, of each final seed

    @property
    def feasible(self) -> bool:
        """Return whether the setting may be chosen."""
        return self.verdict == "ok"


COLUMNS = ("search", *(column.name for column in fields(Trial)))  #: `search`: the key of a trial's search
COLUMN_LINE = ",".join(COLUMNS) + "\n"
TEXT_COLUMNS = ("stage", "verdict")  #: columns; all others hold JSON, which keeps every digit of a number


class Trials:
    """The trials of one search: written one by one, read back after a kill.

    `key`: a hash of everything that determines the trials. Those of other searches stay in the file and are
    not read. An incomplete last line, left by a kill, is dropped. Use within `open_table`.
    """

    def __init__(self, path: Path, key: str) -> None:
        self.path, self.key = path, key
        text = path.read_text(errors="replace") if path.is_file() else ""
        if not text.startswith(COLUMN_LINE):
            if not COLUMN_LINE.startswith(text):
                rule = "is no table of trials of this version, and would be overwritten; name another file"
                raise DpmcError(f"{path}: {rule}")
            with replacing(path) as temporary:
                temporary.write_text(COLUMN_LINE)
        # Truncating, unlike rewriting, cannot lose complete lines.
        os.truncate(path, path.read_bytes().rfind(b"\n") + 1)
        self.trials = read_trials(path, key)

    def stage(self, stage: str) -> list[Trial]:
        """Return the trials of a stage."""
        return [trial for trial in self.trials if trial.stage == stage]

    def find(self, stage: str, setting: dict[str, Any]) -> Trial | None:
        """Return the first trial of a setting at a stage, else None."""
        return next((trial for trial in self.stage(stage) if trial.setting == setting), None)

    def add(self, trial: Trial) -> None:
        """Append a trial to the file; raise DpmcError if that fails."""
        values = asdict(trial).items()
        row = [self.key, *(value if name in TEXT_COLUMNS else json.dumps(value) for name, value in values)]
        try:
            with open(self.path, "a", newline="") as file:
                csv.writer(file, lineterminator="\n").writerow(row)
        except OSError as error:
            raise unwritten(self.path, error) from error
        self.trials.append(trial)


@contextmanager
def open_table(path: Path, key: str) -> Iterator[Trials]:
    """Open the table of a search, alone where the file system has locks; raise DpmcError if it is none."""
    # The lock has a file of its own, since the table may be replaced.
    waiting = f"{path}: waiting for another process at work on this search"
    with alone(lock_of(path), waiting, required=False):
        yield Trials(path, key)


def read_trials(path: Path, key: str = "") -> list[Trial]:
    """Read the trials of a search, without a key of all; raise DpmcError for a damaged row."""
    trials = []
    for number, row in enumerate(csv.DictReader(path.read_text(errors="replace").splitlines()), 2):
        if row.pop("search") != key and key:
            continue
        try:
            values: dict[str, Any] = {k: v if k in TEXT_COLUMNS else json.loads(v) for k, v in row.items()}
            trials.append(Trial(**values))
        except (TypeError, ValueError):
            rule = "is damaged; remove it and those after it, or the file"
            raise DpmcError(f"{path}: line {number} {rule}") from None
    return trials
