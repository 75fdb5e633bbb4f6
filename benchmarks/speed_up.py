"""Measure CPU seconds of one chain, in a job of 20 seeds, compared with the public code of the thesis.

    python benchmarks/speed_up.py [MODEL ...]        # default: all; needs `make install` or the package

A job is a whole `dpmc sample … --seed 0 … 19`: start of Python, imports, machine code from numba's cache,
layout of rows, chains, files. The public code makes one chain per process; its seconds are in
data/published/reference_timings.csv, measured in the same way.
"""

import csv
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from measuring import ROOT, table

from dpmc.studies import load_study

REFERENCE = ROOT / "data" / "published" / "reference_timings.csv"
GOALS = {"median": 150, "least": 30}
STUDY = "thesis"


def cpu_of(*arguments: str) -> float:
    """Return user and system seconds of a dpmc command; raise CalledProcessError if it fails."""
    command = [sys.executable, "-m", "dpmc", *arguments]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise subprocess.CalledProcessError(os.waitstatus_to_exitcode(status), command)
    return used.ru_utime + used.ru_stime


def measure(published: list[dict[str, str]], times: list[float]) -> Iterator[list[Any]]:
    """Yield the row of each published line; append the public code's seconds over ours to `times`."""
    seeds = load_study(STUDY).seeds
    with tempfile.TemporaryDirectory() as folder:
        for line in published:
            common = ["--study", STUDY, "--model", line["model"]]
            data = f"{folder}/{line['model']}.nc"
            if not Path(data).exists():
                cpu_of("data", *common, "--output", data)
            job = ["sample", *common, "--method", line["method"], "--epsilon", line["epsilon"], "--quiet"]
            job += ["--data", data, "--output", f"{folder}/{line['model']}-{line['method']}-{{seed}}.nc"]
            ours = cpu_of(*job, "--seed", *map(str, range(seeds))) / seeds
            theirs = float(line["cpu_seconds"])
            times.append(theirs / ours)
            yield [line["model"], line["method"], line["iterations"], ours, theirs, times[-1]]


def main() -> None:
    """Print a row for each model and method, and the goals."""
    with open(REFERENCE) as file:
        published = list(csv.DictReader(line for line in file if not line.startswith("#")))
    models, times = sys.argv[1:], []
    chosen = [line for line in published if not models or line["model"] in models]
    header = ("model", "method", "iterations", "CPU s a chain", "public code, CPU s", "times less")
    table(header, measure(chosen, times))
    print(f"\ntimes less: median {statistics.median(times):.0f}, least {min(times):.0f}; goals {GOALS}")


if __name__ == "__main__":
    main()
