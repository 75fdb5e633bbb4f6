"""The trials of a search of hyperparameters on disk: one row each, written when it is done."""

import csv
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from dpmc.common.errors import DpmcError
from dpmc.common.files import lock, replacing, sibling, unwritten

KEY_PREFIX = "# trials of "


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


COLUMN_LINE = ",".join(column.name for column in fields(Trial)) + "\n"
TEXT_COLUMNS = ("stage", "verdict")  #: columns; all others hold JSON, which keeps every digit of a number


class Trials:
    """The trials of one search: written one by one, read back after a kill.

    The first line has a hash of everything that determines the trials (`key`). Trials of another search are
    moved to <name>.<key>.old, with the key of that search, and moved back when it is run again. An incomplete
    last line, left by a kill, is dropped. Use within `open_table`.
    """

    def __init__(self, path: Path, key: str) -> None:
        self.path = path
        self.set_aside: Path | None = None  #: file to which trials of another search were moved
        head = f"{KEY_PREFIX}{key}\n{COLUMN_LINE}"
        text = path.read_text(errors="replace") if path.is_file() else ""
        if path.exists() and not path.is_file():
            raise DpmcError(f"{path}: is not a regular file; name another one")
        if not text.startswith(head):
            if not KEY_PREFIX.startswith(text[: len(KEY_PREFIX)]):
                raise DpmcError(f"{path}: is no table of trials, and would be overwritten; name another file")
            # A table without trials need not be kept.
            if text.count("\n") > 2:
                self.set_aside = path.replace(self._aside(text.partition("\n")[0].removeprefix(KEY_PREFIX)))
            if self._aside(key).exists():
                self._aside(key).replace(path)
            else:
                with replacing(path) as temporary:
                    temporary.write_text(head)
        # Truncating, unlike rewriting, cannot lose complete lines.
        os.truncate(path, path.read_bytes().rfind(b"\n") + 1)
        self.trials = read_trials(path)

    def _aside(self, key: str) -> Path:
        """Return the file to which trials of the search with this key are moved."""
        return sibling(self.path, f".{key if key.isalnum() else 'other'}.old")

    def stage(self, stage: str) -> list[Trial]:
        """Return the trials of a stage."""
        return [trial for trial in self.trials if trial.stage == stage]

    def find(self, stage: str, setting: dict[str, Any]) -> Trial | None:
        """Return the first trial of a setting at a stage, else None."""
        return next((trial for trial in self.stage(stage) if trial.setting == setting), None)

    def add(self, trial: Trial) -> None:
        """Append a trial to the file.

        Raises DpmcError if that fails; an incomplete line is dropped when the search goes on.
        """
        row = [value if name in TEXT_COLUMNS else json.dumps(value) for name, value in asdict(trial).items()]
        try:
            with open(self.path, "a", newline="") as file:
                csv.writer(file, lineterminator="\n").writerow(row)
        except OSError as error:
            raise unwritten(self.path, error) from error
        self.trials.append(trial)


@contextmanager
def open_table(path: Path, key: str) -> Iterator[Trials]:
    """Open the table of a search; another process that opens it waits, if the file system has locks.

    Raises DpmcError if the file is not such a table or is damaged.
    """
    # The lock has a file of its own, since the table may be moved.
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        opened = open(sibling(path, ".lock", "."), "w")  # noqa: SIM115 - closed below
    except OSError as error:
        raise unwritten(path, error) from error
    with opened as file:
        with suppress(OSError):
            lock(file, f"{path}: waiting for another process at work on this search")
        yield Trials(path, key)


def read_trials(path: Path) -> list[Trial]:
    """Read the trials of a table on disk; raise DpmcError for a row that cannot be read."""
    lines = [line for line in path.read_text(errors="replace").splitlines() if not line.startswith("#")]
    trials = []
    # From 3: the key and the names of the columns are lines 1 and 2.
    for number, row in enumerate(csv.DictReader(lines), 3):
        try:
            values: dict[str, Any] = {k: v if k in TEXT_COLUMNS else json.loads(v) for k, v in row.items()}
            trials.append(Trial(**values))
        except (TypeError, ValueError):
            rule = "is damaged; remove it and those after it, or the file"
            raise DpmcError(f"{path}: line {number} {rule}") from None
    return trials
