"""Print a study's CPU time by command, from the logs of a finished run.

    make figures STUDY=thesis && python benchmarks/pipeline.py thesis [--folder FOLDER] [--cpu SECONDS]

Every dpmc command ends its log with the time and memory it used. `--cpu`: user and system seconds of the
whole run, as printed by `time`; the remainder is Snakemake, shells and scripts.
"""

import argparse
import re
from pathlib import Path

from measuring import ROOT, table

from dpmc.studies import load_study

LAST = re.compile(r"^(\w+): ([\d.]+) s CPU in ([\d.]+) s, at most (\d+) MB in a process\n\Z", re.MULTILINE)


def main() -> None:
    """Print a row for each command, and for each algorithm that was sampled."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study")
    parser.add_argument("--folder", type=Path, default=ROOT, help="where the study was run")
    parser.add_argument("--cpu", type=float, help="CPU seconds of the whole run")
    options = parser.parse_args()
    logs = options.folder / "logs" / options.study
    study = load_study(options.study)
    used: dict[str, list[tuple[float, float, float]]] = {}
    for path in sorted(logs.rglob("*.log")):
        last = LAST.search(path.read_text())
        if last is None:
            continue
        command, *numbers = last.groups()
        names = [command]
        if command == "sample":  # sampling/<model>/<method or algorithm>, and the like for each ε
            name = path.relative_to(logs).with_suffix("").parts[2]
            names.append(f"sample {study.methods[name].algorithm if name in study.methods else name}")
        for name in names:
            used.setdefault(name, []).append(tuple(map(float, numbers)))
    if not used:
        parser.exit(1, f"{logs}: no finished run; make figures first\n")
    total = options.cpu or sum(cpu for name, some in used.items() if " " not in name for cpu, _, _ in some)
    rows = []
    for name, some in sorted(used.items()):
        cpu = sum(one[0] for one in some)
        longest, peak = (max(one[k] for one in some) for k in (1, 2))
        rows.append([name, len(some), cpu, f"{cpu / total:.1%}", longest, peak])
    if options.cpu:
        rest = total - sum(row[2] for row in rows if " " not in row[0])
        rows.append(["all else", "", rest, f"{rest / total:.1%}", "", ""])
    table(("command", "jobs", "CPU s", "of all", "longest, s", "peak MB"), rows)


if __name__ == "__main__":
    main()
