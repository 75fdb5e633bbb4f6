"""CPU seconds of one chain, in a job of 20 seeds typed into a shell, against the public code of the thesis.

    python benchmarks/speed_up.py [MODEL ...]        # default: all; wants `make install` or the package

A job is `dpmc sample … --seed 0 … 19` with everything that belongs to it: start of Python, imports, machine
code out of numba's cache, layout of rows, chains, files. The public code makes one chain a process; its
seconds are in data/published/reference_timings.csv, measured in the same way.
"""

import csv
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from measuring import ROOT, table

from dpmc.studies import load_study

REFERENCE = ROOT / "data" / "published" / "reference_timings.csv"
GOALS = {"median": 150, "least": 30}
STUDY = "thesis"


def cpu_of(*arguments: str) -> float:
    """User and system seconds of a dpmc command. Raises CalledProcessError if it fails."""
    command = [sys.executable, "-m", "dpmc", *arguments]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise subprocess.CalledProcessError(os.waitstatus_to_exitcode(status), command)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Print a row for each model and method, and how the goals are met."""
    with open(REFERENCE) as file:
        published = list(csv.DictReader(line for line in file if not line.startswith("#")))
    models = sys.argv[1:] or list(dict.fromkeys(line["model"] for line in published))
    seeds, rows = load_study(STUDY).seeds, []
    with tempfile.TemporaryDirectory() as folder:
        for model in models:
            data = f"{folder}/{model}.nc"
            cpu_of("data", "--study", STUDY, "--model", model, "--output", data)
            for line in (line for line in published if line["model"] == model):
                job = ["sample", "--study", STUDY, "--model", model, "--method", line["method"]]
                job += ["--epsilon", line["epsilon"], "--data", data, "--force", "--quiet", "--seed"]
                job += [*map(str, range(seeds)), "--output", f"{folder}/seed-{{seed}}.nc"]
                ours, theirs = cpu_of(*job) / seeds, float(line["cpu_seconds"])
                rows.append([model, line["method"], int(line["iterations"]), ours, theirs, theirs / ours])
                for chain in Path(folder).glob("seed-*.nc"):
                    chain.unlink()
    table(("model", "method", "iterations", "CPU s a chain", "public code, CPU s", "times less"), rows)
    times = [row[-1] for row in rows]
    print(f"\ntimes less: median {statistics.median(times):.0f}, least {min(times):.0f}; goals {GOALS}")


if __name__ == "__main__":
    main()
