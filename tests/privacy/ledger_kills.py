"""Kill processes that take from a ledger, at random moments or amid a write; print what is left.

`python tests/privacy/ledger_kills.py FOLDER KILLS SEED`: a JSON object a line, with the moment, the state of
the file and its head. A process reports each entry that `take` returned; such an entry must never be lost.
"""

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpmc.privacy import data_ledger
from dpmc.privacy.data_ledger import DataLedger

EPSILON, DELTA = 2.0**-20, 2.0**-60


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def in_the_write(part: float) -> Callable[..., None]:
    """Return a `_write` that dies when this part of the line is written."""

    def write(file: Any, path: Path, data: bytes) -> None:
        file.write(data[: int(part * len(data))])
        die()

    return write


def before_sync(file: Any, path: Path) -> None:
    die()


def after_sync(file: Any, path: Path) -> None:
    os.fsync(file.fileno())
    die()


#: Moment -> name and value of what a process changes before it takes its last entry.
FAULTS: dict[str, tuple[Any, str, Callable[..., None]]] = {
    "nothing written": (data_ledger, "_write", in_the_write(0.0)),
    "one byte written": (data_ledger, "_write", in_the_write(0.004)),
    "half written": (data_ledger, "_write", in_the_write(0.5)),
    "all but the line break": (data_ledger, "_write", in_the_write(0.999)),
    "before fsync": (data_ledger.files, "sync", before_sync),
    "after fsync": (data_ledger.files, "sync", after_sync),
}


def take_until_killed(path: Path, fault: str | None, report: int) -> None:
    """Take entries and report each hash; with a fault two, and a third one with the fault."""
    ledger = DataLedger.open(path)
    for number in range(2 if fault else 10**9):
        os.write(report, ledger.take(EPSILON, DELTA, {"number": number})["hash"].encode())
    if fault:
        setattr(*FAULTS[fault])
        ledger.take(EPSILON, DELTA, {"fault": fault})


def killed(path: Path, fault: str | None, wait: float) -> list[str]:
    """Run a process until it is killed; return the hashes that it reported."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            take_until_killed(path, fault, writer)
        finally:
            os._exit(1)  # never back into the loop below
    os.close(writer)
    if fault is None:
        time.sleep(wait)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, status
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    return [text[k : k + 64] for k in range(0, len(text), 64)]


def main(folder: str, kills: str, seed: str) -> None:
    """Kill and print, each time on the file that the kills before have left."""
    chance, path = random.Random(int(seed)), Path(folder) / "killed.ledger"
    DataLedger.create(path, 1.0, 1e-6)
    for kill in range(int(kills)):
        fault = list(FAULTS)[kill // 2 % len(FAULTS)] if kill % 2 else None
        before = len(DataLedger.open(path).entries)
        returned = killed(path, fault, chance.uniform(0.0, 0.2))
        after = DataLedger.open(path)
        new = [entry["hash"] for entry in after.entries[before:]]
        counts = {"returned": len(returned), "new": len(new), "torn": after.torn}
        kept = new[: len(returned)] == returned
        print(json.dumps({"moment": fault or "random", "kept": kept, **counts, "head": after.head}))


if __name__ == "__main__":
    main(*sys.argv[1:])
