"""The trials of a search of hyperparameters, on disk: one row each, as soon as it is done."""

from __future__ import annotations

import csv
import fcntl
import json
import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import IO, Any

from dpmc.errors import DpmcError

BEGINNING = "# trials of "


@dataclass(frozen=True)
class Trial:
    """One setting and what came of it; a row of the table."""

    number: int
    stage: str  # search | final
    setting: dict[str, Any]  # the free hyperparameters
    objective: float  # median MMD; above √2 something is wrong, see the constants of `dpmc.search`
    verdict: str  # ok | given up … | clipped … | too few iterations … | refused … | no MMD for some seeds
    seeds: int
    iterations: int = 0
    mmd: float = math.nan  # median over seeds
    acceptance_rate: float = math.nan
    ratio_clip_fraction: float = math.nan
    gradient_clip_fraction: float = math.nan
    values: list[float] = field(default_factory=list)  # MMD of each seed
    seconds: float = 0.0  # CPU time

    @property
    def feasible(self) -> bool:
        """Whether the setting may be chosen."""
        return self.verdict == "ok"

    @property
    def clip_fraction(self) -> float:
        """Fraction of clipped log ratios; of gradients, where no ratio is asked for; NaN where none ran."""
        ratios = self.ratio_clip_fraction
        return self.gradient_clip_fraction if math.isnan(ratios) else ratios


COLUMNS = ",".join(column.name for column in fields(Trial)) + "\n"


class Table:
    """The trials of one search: written one by one, read back after a kill.

    The first line names what they belong to, by a hash of all that decides them (`key`). The trials of
    another search are set aside under its key, as <name>.<key>.old, and taken up again when that search
    is; a last line that a kill cut off is dropped. Use within `open_table`.
    """

    def __init__(self, path: Path, key: str) -> None:
        self.path = path
        self.set_aside: Path | None = None  #: where the trials of another search went
        self.trials: list[Trial] = []
        head = f"{BEGINNING}{key}\n{COLUMNS}"
        text = _text(path) if path.exists() else ""
        if not text.startswith(head):
            self._make_room(text)
            before = self._aside(key)
            text = _text(before) if before.exists() else ""
            if text.startswith(head):
                before.replace(path)
            else:
                text = head
                path.write_text(head)
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            os.truncate(path, len(whole.encode()))  # nothing is written again, so nothing can be lost
        self.trials = read(path)

    def _make_room(self, text: str) -> None:
        """Set aside what the file holds, if it holds trials; refuse a file that is something else."""
        if text and not text.startswith(BEGINNING) and not BEGINNING.startswith(text):
            raise DpmcError(
                f"{self.path}: is no table of trials, and would be overwritten; name another file"
            )
        if text.count("\n") > 2:
            self.set_aside = self._aside(text.partition("\n")[0].removeprefix(BEGINNING))
            self.path.replace(self.set_aside)

    def _aside(self, key: str) -> Path:
        """Where the trials of the search with this key wait for it."""
        return self.path.with_name(f"{self.path.name}.{key if key.isalnum() else 'other'}.old")

    def searched(self) -> list[Trial]:
        """The trials of the search proper, without those of finalists."""
        return [trial for trial in self.trials if trial.stage == "search"]

    def find(self, stage: str, setting: dict[str, Any]) -> Trial | None:
        """The trial of this setting at this stage, if there was one."""
        return next((t for t in self.trials if t.stage == stage and t.setting == setting), None)

    def add(self, trial: Trial) -> None:
        """Append a trial; it outlives the process when this returns."""
        with open(self.path, "a", newline="") as file:
            csv.writer(file, lineterminator="\n").writerow(_to_row(trial))
        self.trials.append(trial)


@contextmanager
def open_table(path: Path, key: str) -> Iterator[Table]:
    """The table of a search, for this process alone: another one that wants it waits.

    Raises DpmcError for a file that is no such table, or is damaged, and where no file can be locked.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_name(f".{path.name}.lock"), "w") as file:  # beside it: the table may be set aside
        try:
            _lock(file, path)
        except OSError as error:
            raise DpmcError(
                f"{path}: cannot be locked ({error.strerror}); name a --table elsewhere"
            ) from None
        yield Table(path, key)


def _lock(file: IO[str], path: Path) -> None:
    """Lock a file; say so if that takes waiting."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"dpmc: {path}: waiting for another process at work on this search", file=sys.stderr)
        fcntl.flock(file, fcntl.LOCK_EX)


def read(path: Path) -> list[Trial]:
    """The trials of a table on disk.

    Raises DpmcError for a row that cannot be read.
    """
    lines = [line for line in _text(path).splitlines() if not line.startswith("#")]
    trials = []
    for number, row in enumerate(csv.DictReader(lines), 3):
        try:
            trials.append(_from_row(row))
        except (TypeError, ValueError):
            raise DpmcError(
                f"{path}: line {number} is damaged; remove it and those after it, or the file"
            ) from None
    return trials


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except UnicodeDecodeError:
        raise DpmcError(f"{path}: is no table of trials") from None


def _to_row(trial: Trial) -> list[str]:
    """A trial as text; numbers in full, so that reading gives the same bits."""
    return [
        json.dumps(value) if isinstance(value, dict | list) else str(value)
        for value in asdict(trial).values()
    ]


def _from_row(row: dict[str, str]) -> Trial:
    kinds: dict[str, Callable[[str], Any]] = {
        **{name: int for name in ("number", "seeds", "iterations")},
        **{name: str for name in ("stage", "verdict")},
        **{name: json.loads for name in ("setting", "values")},
    }
    return Trial(**{name: kinds.get(name, float)(text) for name, text in row.items()})
