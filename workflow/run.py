"""Run Snakemake for one or more studies, one run at a time: what `make figures` starts.

    python workflow/run.py [--cores N] [--config KEY=VALUE] [other options of Snakemake] [study ...]

Snakemake locks its folder with a file, and a file outlives `kill -9`: the next run stops and asks
for `--unlock`. Whether the file is left over or another run is at work, it cannot tell. So this
program takes a lock that the kernel drops with the process (flock) and becomes Snakemake by exec,
which keeps the open file: the lock lives exactly as long as Snakemake. Jobs do not hold it, for
Python closes inherited files in the processes that it starts. Whoever holds this lock may remove
Snakemake's, unless a Snakemake that was started by itself is at work in the folder.
"""

import argparse
import fcntl
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
LOCK = Path(".snakemake/dpmc-run.lock")
SNAKEMAKE_LOCKS = Path(".snakemake/locks")
SNAKEMAKE = [sys.executable, "-m", "snakemake"]


def main(arguments: list[str] | None = None) -> NoReturn:
    """Take the lock, clear what a killed run left, and become Snakemake; exit 1 or 2 if refused."""
    parser = argparse.ArgumentParser(description="Make every figure of one or more studies.")
    parser.add_argument("studies", nargs="*", default=["thesis"], help="default: thesis")
    parser.add_argument("--cores", default="all", help="a number, or all (the default)")
    parser.add_argument(
        "--config",
        action="append",
        metavar="KEY=VALUE",
        help="as in config/config.yaml; repeatable",
    )
    parser.epilog = "Other options go to Snakemake; write a value with =, as in --profile=NAME."
    options, for_snakemake = parser.parse_known_args(arguments)
    os.chdir(ROOT)
    check_studies(options.studies)
    # The rules call `dpmc`: the one beside this Python, whether or not its environment is active.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    take_lock(" ".join(options.studies))
    clear_stale_locks()
    if options.config:
        for_snakemake += ["--config", *options.config]
    command = [*SNAKEMAKE, "--cores", options.cores, *for_snakemake, "--", *options.studies]
    os.execv(command[0], command)


def check_studies(studies: list[str]) -> None:
    """Refuse an unknown study and a mistake in any study's file, in one line, before anything starts."""
    from dpmc.errors import DpmcError
    from dpmc.studies import load_study

    known = ["all", *sorted(path.stem for path in Path("config/studies").glob("*.yaml"))]
    for study in studies:
        if study not in known:
            refuse(2, f"no study {study!r} in config/studies; known: {', '.join(known)}")
    try:
        for name in known[1:]:
            load_study(name)
    except DpmcError as error:
        refuse(2, str(error))


def take_lock(studies: str) -> None:
    """Hold the folder's lock from here until this process, whatever it has become, ends."""
    LOCK.parent.mkdir(exist_ok=True)
    lock = os.open(LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(lock, 1000, 0).decode(errors="replace").strip()
        refuse(1, f"another run is at work in this folder: {holder}; wait for it or stop it")
    except OSError as error:
        refuse(1, f"cannot lock {LOCK} ({error.strerror}); does this file system know flock?")
    started = time.strftime("%Y-%m-%d %H:%M")
    note = f"{studies}, process {os.getpid()} on {socket.gethostname()}, since {started}\n"
    os.ftruncate(lock, 0)
    os.pwrite(lock, note.encode(), 0)
    os.set_inheritable(lock, True)  # through exec; never closed on purpose


def clear_stale_locks() -> None:
    """Remove Snakemake's own lock if a killed run left one. Needs the lock of `take_lock`."""
    if not any(SNAKEMAKE_LOCKS.glob("*.lock")):
        return
    for process, command in running_snakemakes():
        refuse(1, f"a Snakemake is at work in this folder: process {process} ({command})")
    print("clearing the lock of a run that was killed", file=sys.stderr)
    unlock = subprocess.run(
        [*SNAKEMAKE, "--unlock", "--cores", "1"], capture_output=True, text=True, check=False
    )
    if unlock.returncode != 0:
        sys.stderr.write(unlock.stdout + unlock.stderr)
        refuse(1, "Snakemake could not clear its lock; its reason stands above")


def running_snakemakes() -> list[tuple[int, str]]:
    """Process number and command line of each live Snakemake of this machine in this folder.

    Snakemake's lock names no process, and a `snakemake` typed by hand does not take ours.
    """
    import psutil  # comes with Snakemake; half a tenth of a second that most runs need not pay

    found = []
    for process in psutil.process_iter(["pid", "cwd", "cmdline"]):
        words = process.info["cmdline"] or []
        # `snakemake …`, `python …/snakemake …`, `python -m snakemake …`
        program = [Path(word).name for word in words[:3] if word]
        if "snakemake" in program and process.info["cwd"] == str(ROOT):
            found.append((process.info["pid"], " ".join(words)))
    return found


def refuse(status: int, reason: str) -> NoReturn:
    """Say in one line why nothing was started, and exit."""
    print(f"dpmc: error: {reason}", file=sys.stderr)
    sys.exit(status)


if __name__ == "__main__":
    main()
