"""The jobs of finished runs, as tables: what each needed, and what it waited for.

    python benchmarks/jobs.py FOLDER STUDY [FOLDER STUDY ...]

writes results/jobs-<study>.csv beside this file, one line a job. FOLDER is a checkout in which the study was
run by itself, with nothing else on the machine. Wall seconds and what a job waited for are Snakemake's own
notes; memory and CPU time are the kernel's count, which every dpmc command writes at the end of its log.
"""

import base64
import csv
import json
import math
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).resolve().parent / "results"
COLUMNS = ("job", "rule", "name", "seconds", "cpu_seconds", "peak_mb", "priority", "after")


@dataclass
class Job:
    """One job of a run: its rule, what tells it from others of the rule, what it needed."""

    rule: str
    name: str
    seconds: float
    cpu_seconds: float = math.nan
    peak_mb: float = math.nan
    priority: int = 0
    after: list[int] = field(default_factory=list)  # places in the list of the jobs that it waits for


class Used(NamedTuple):
    """What a command has used by its own account, and those it waited for."""

    command: str
    cpu: float  # seconds
    seconds: float
    peak: float  # MB, of its largest process


def of_run(folder: Path, study: str) -> list[Job]:
    """The jobs of a finished run, in the order in which they began. Raises SystemExit if there are none."""
    notes: dict[tuple[str, str], dict] = {}
    maker: dict[str, tuple[str, str]] = {}
    for path, note in _metadata(folder):
        if note.get("starttime") and f"/{study}/" in (log := (note["log"] or [""])[0]):
            notes[note["rule"], log] = note
            maker[path] = note["rule"], log
    if not notes:
        raise SystemExit(f"{folder}: no finished run of {study}; make figures first")
    order = sorted(notes, key=lambda key: notes[key]["starttime"])
    place = {key: number for number, key in enumerate(order)}
    priorities = _priorities(folder)
    jobs = []
    for key in order:
        note = notes[key]
        name = key[1].removeprefix(f"logs/{study}/").removesuffix(".log")
        used = used_by(folder / key[1]) or Used("", math.nan, 0.0, math.nan)
        # Of files that were only touched since (`snakemake --touch`) the note says how long touching took.
        seconds = max(note["endtime"] - note["starttime"], used.seconds)
        job = Job(key[0], name, seconds, used.cpu, used.peak, priorities.get(key[1], 0))
        job.after = sorted({place[maker[file]] for file in note["input"] if file in maker} - {place[key]})
        jobs.append(job)
    return jobs


def _metadata(folder: Path) -> list[tuple[str, dict]]:
    """Snakemake's notes of every file that it made; long names are spread over folders."""
    place = folder / ".snakemake" / "metadata"
    found = []
    for path in place.rglob("*"):
        if path.is_file():
            name = "".join(part.removeprefix("@") for part in path.relative_to(place).parts)
            found.append((base64.b64decode(name).decode(), json.loads(path.read_text())))
    return found


def _priorities(folder: Path) -> dict[str, int]:
    """Log file of a job -> its priority, as Snakemake's own logs print it."""
    found = {}
    for path in (folder / ".snakemake" / "log").glob("*.log"):
        for log, priority in re.findall(
            r"^    log: (\S+).*\n(?:    .*\n)*?    priority: (\d+)$", path.read_text(), re.M
        ):
            found[log] = int(priority)
    return found


def used_by(log: Path) -> Used | None:
    """What the last line of a finished command's log says; None without one."""
    text = log.read_text() if log.exists() else ""
    last = re.search(
        r"^(\w+): ([\d.]+) s CPU in ([\d.]+) s, at most (\d+) MB in a process\n\Z", text, re.MULTILINE
    )
    return Used(last[1], float(last[2]), float(last[3]), float(last[4])) if last else None


def write(study: str, jobs: list[Job]) -> None:
    """The table of a study's jobs."""
    with open(RESULTS / f"jobs-{study}.csv", "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(COLUMNS)
        for number, job in enumerate(jobs):
            used = (f"{value:.2f}" if value == value else "" for value in (job.cpu_seconds, job.peak_mb))
            after = " ".join(map(str, job.after))
            table.writerow([number, job.rule, job.name, f"{job.seconds:.2f}", *used, job.priority, after])


def read(study: str) -> list[Job]:
    """The table of a study's jobs, read."""
    with open(RESULTS / f"jobs-{study}.csv") as file:
        return [
            Job(
                line["rule"],
                line["name"],
                float(line["seconds"]),
                float(line["cpu_seconds"] or "nan"),
                float(line["peak_mb"] or "nan"),
                int(line["priority"]),
                [int(number) for number in line["after"].split()],
            )
            for line in csv.DictReader(file)
        ]


def studies() -> list[str]:
    """The studies whose jobs are in a table."""
    return sorted(path.stem.removeprefix("jobs-") for path in RESULTS.glob("jobs-*.csv"))


def main() -> None:
    """Write tables of the runs that the command line names."""
    words = sys.argv[1:]
    if len(words) % 2:
        raise SystemExit(__doc__)
    for folder, study in zip(words[::2], words[1::2], strict=True):
        jobs = of_run(Path(folder), study)
        write(study, jobs)
        print(f"{study}: {len(jobs)} jobs, {sum(job.seconds for job in jobs):.0f} s")


if __name__ == "__main__":
    main()
