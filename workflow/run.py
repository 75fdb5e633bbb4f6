"""Run Snakemake for one or more studies, one run at a time, for `make figures`.

    python workflow/run.py [--tune] [--cores N] [--profile NAME] [--config KEY=VALUE] [...] [study ...]

Snakemake locks its folder with a file that survives `kill -9`: the next run stops and requires `--unlock`,
since it cannot distinguish a stale lock from a running process. So this program takes a lock that the kernel
releases with the process (flock), and passes the open file to Snakemake: the lock is held until both have
ended. Jobs do not hold it, because Python closes inherited files in its child processes. The holder of this
lock may remove Snakemake's, unless another Snakemake, started by hand, is running in the folder.

Third-party image data may be unavailable. A first run fetches them, so that the main run leaves out models
whose data are missing and makes everything else; the exit status is then 3.
"""

import argparse
import fcntl
import os
import re
import signal
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

try:
    import yaml

    from dpmc.common.errors import DpmcError
    from dpmc.data import images
    from dpmc.studies import (
        Study,
        load_study,
        pinned_hyperparameters,
        read_settings,
        read_yaml,
        study_files,
    )
    from dpmc.studies.sizes import JOB_NEEDS
except ModuleNotFoundError as missing:
    do = "make install, then .venv/bin/python workflow/run.py"
    sys.exit(f"dpmc: error: {sys.executable} lacks the package {missing.name}: {do}")

ROOT = Path(__file__).resolve().parent.parent
CONFIG, LOCK = Path("config/config.yaml"), Path(".snakemake/dpmc-run.lock")
SNAKEMAKE = [sys.executable, "-m", "snakemake"]
MANY_CELLS = 100  #: of a run of minutes
USAGE, INCOMPLETE = 2, 3  # exit statuses: a mistake in command or study; models without images left out


def main() -> NoReturn:
    """Check what is asked for, take the lock, and run Snakemake; exit 1 or 2 if refused, 3 if incomplete."""
    options, for_snakemake = parse()
    os.chdir(ROOT)
    try:
        studies = studies_of_run(options)
        targets = tuning_targets(studies, options.studies) if options.tune else options.studies
        folder, profile = profile_of(options.profile)
    except (DpmcError, yaml.YAMLError) as error:
        refuse(USAGE, " ".join(str(error).split()))
    absent = set() if any(study.repeated for study in studies) else {"repeated"}
    check_partitions(profile, absent)
    lock, named = take_lock(), " ".join(options.studies)
    note_holder(lock, named, os.getpid())
    clear_stale_lock()

    planned = any(argument in ("-n", "--dry-run", "--dryrun") for argument in for_snakemake)
    command = [*SNAKEMAKE, *for_snakemake, *(["--profile", str(folder)] if folder else [])]
    # On a cluster, `all` would be the cores of this machine; there the profile has the number of jobs.
    if not folder or options.cores != "all":
        command += ["--cores", options.cores]
    # A cluster's run has Snakemake's own log, which names the cluster's jobs.
    if profile.get("executor", "local") == "local" and not (options.verbose or planned):
        command += ["--logger=dpmc", *(["--quiet=all"] if options.quiet else [])]
    if options.config:
        command += ["--config", *options.config]
    # Each job that has started makes Snakemake look for further ones once in this time: with the profile's
    # 2 s, a fifth of a core in a run of an hour. A run does not end before the time has passed.
    if sum(1 for study in studies for _ in study.cells()) > MANY_CELLS:
        command.insert(len(SNAKEMAKE), "--max-jobs-per-timespan=500/10s")

    # One source may fail and another be there. A failure leaves a marker, which `why_unavailable` reads.
    if wanted := images_to_fetch(studies):
        run_to_end([*command, "--keep-going", "--", *wanted], lock, named)
    status = run_to_end([*command, "--", *targets], lock, named)
    specs = [(study.name, spec) for study in studies for spec in study.models.values()]
    left_out = [
        f"{name}: {spec.label}: {why}" for name, spec in specs if (why := images.why_missing(spec.data))
    ]
    for line in left_out:
        print(f"dpmc: left out: {line}", file=sys.stderr)
    if status == 0 and not planned:
        made = targets if options.tune else [f"figures/{'' if name == 'all' else name}" for name in targets]
        print(f"dpmc: made: {' '.join(made)}", file=sys.stderr)
    sys.exit(status or (INCOMPLETE if left_out else 0))


def parse() -> tuple[argparse.Namespace, list[str]]:
    """Return our options, and those for Snakemake."""
    parser = argparse.ArgumentParser(description="Make every figure of one or more studies.")
    add = parser.add_argument
    add("studies", nargs="*", default=["thesis"], help="names of studies, or all (default: thesis)")
    add("--tune", action="store_true", help="search hyperparameters instead of making figures")
    add("--cores", default="all", help="a number, or all (the default)")
    add("--profile", metavar="NAME", help="a folder of profiles/, e.g. slurm (default: none)")
    add("--config", action="append", default=[], metavar="KEY=VALUE", help="a setting of config/config.yaml")
    add("--quiet", action="store_true", help="print only failures and the folder of the figures")
    add("--verbose", action="store_true", help="print Snakemake's own log: every job with its files")
    parser.epilog = "Other options go to Snakemake; write a value with =, as in --retries=1."
    return parser.parse_known_intermixed_args()


def studies_of_run(options: argparse.Namespace) -> list[Study]:
    """Return the studies of a run, with those whose cells they reuse.

    Raises DpmcError for an unknown study, a mistake in any study's file, and missing hyperparameters unless
    the run is to find them (`--tune`).
    """
    given = dict(pair.partition("=")[::2] for pair in options.config).get("studies")
    places = yaml.safe_load(given) if given else read_settings(CONFIG).get("studies")
    files = study_files(places := places or "config/studies")
    for name in options.studies:
        if name not in (known := ["all", *sorted(files)]):
            raise DpmcError(f"no study {name!r} in {places}; known: {', '.join(known)}")
    loaded = {name: load_study(path) for name, path in files.items()}
    asked = sorted(files) if "all" in options.studies else options.studies
    reused = [other for name in asked for other, _ in loaded[name].reused()]
    studies = [loaded[name] for name in dict.fromkeys([*asked, *reused])]
    for study in [] if options.tune else studies:
        for model, method, _ in study.cells():
            pinned_hyperparameters(study, model, method)
    return studies


def tuning_targets(studies: list[Study], asked: list[str]) -> list[str]:
    """Return the files that `--tune` makes; of `all`, studies without searches are left out.

    Raises DpmcError for a study without searches that was asked for by name.
    """
    from dpmc.tuning.search import searched_pairs

    targets = []
    for study in studies:
        if "all" not in asked and study.name not in asked:
            continue  # another takes cells from it
        if searched_pairs(study):
            targets += [f"results/{study.name}/tuned.yaml", f"figures/{study.name}/search/lessons.png"]
        elif study.name in asked:
            why = "no method and model with free hyperparameters, a budget and exact draws"
            mode = "tuning: mode: none, and no methods to search"
            raise DpmcError(f"--tune: {study.name}: {why if study.tuning.methods else mode}")
    return targets


def images_to_fetch(studies: list[Study]) -> list[str]:
    """Return the marks of image sources that are neither here nor known to be missing."""
    needed = {
        Path(f"data/downloads/{pictures.source.name}.found")
        for study in studies
        for spec in study.models.values()
        if (pictures := images.image_set(spec.data)) and images.why_missing(spec.data) is None
    }
    return sorted(str(mark) for mark in needed if not mark.exists())


def run_to_end(command: list[str], lock: int, studies: str) -> int:
    """Run Snakemake, passing it the lock and our signals, and return its exit status."""
    process = subprocess.Popen(command, pass_fds=[lock])
    # Snakemake holds the lock even if this process is killed, and to stop it ends both.
    note_holder(lock, studies, process.pid)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to Snakemake as well
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    return process.wait()


def profile_of(name: str | None) -> tuple[Path | None, dict[str, Any]]:
    """Return a profile's folder, by its name or path, and content.

    Raises DpmcError for a profile that does not exist or whose plugin is not installed.
    """
    if not name:
        return None, {}
    known = sorted(path.parent for path in Path("profiles").glob("*/profile.yaml"))
    folder = next((path for path in known if path.name == name), Path(name))
    file = folder / "profile.yaml"
    if not file.exists():
        raise DpmcError(f"--profile: no profile {name!r}; known: {', '.join(path.name for path in known)}")
    content = read_yaml(file)
    if not isinstance(content, dict):
        raise DpmcError(f"--profile: {file}: must be keys with values, such as executor: slurm")
    executor = content.get("executor", "local")
    plugin = f"snakemake-executor-plugin-{executor}"
    if executor != "local" and find_spec(plugin.replace("-", "_")) is None:
        raise DpmcError(f"--profile: {name} needs {plugin}, which is not installed: make cluster")
    return folder, content


def check_partitions(profile: dict[str, Any], absent: set[str]) -> None:
    """Refuse a Slurm partition that does not exist, or never allows the time: jobs would wait for ever.

    `absent`: kinds of jobs that the run has none of.
    """
    if profile.get("executor") != "slurm":
        return
    try:
        command = ["sinfo", "-h", "-o", "%P %l"]
        said = subprocess.check_output(command, text=True, timeout=30, stderr=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError):
        return  # Slurm says nothing; submitting will
    limits: dict[str, float] = {}
    for name, limit in map(str.split, said.splitlines()):
        # [days-]hours:minutes:seconds or minutes:seconds, else no limit
        parts = zip(reversed(re.findall(r"\d+", limit)), (1 / 60, 1, 60, 1440), strict=False)
        limits[name.rstrip("*")] = sum(int(part) * minutes for part, minutes in parts) or float("inf")
        if name.endswith("*"):
            limits[""] = limits[name.rstrip("*")]  # the default
    asked = profile.get("default-resources") or {}
    names = str(asked.get("slurm_partition") or "").split(",")
    known = ", ".join(sorted(filter(None, limits)))
    for name in names if limits else []:
        if name and name not in limits:
            refuse(1, f"slurm_partition: no partition {name!r}; known: {known}")
    # Slurm chooses among several partitions one that allows the time.
    longest = max(limits.get(name, float("inf")) for name in names)
    kinds = {kind: needs[1] for kind, needs in JOB_NEEDS.items() if kind not in absent}
    rule, minutes = max(kinds.items(), key=lambda item: item[1])  # of the first attempt
    if minutes > longest and "set-resources" not in profile:
        which = f"the partition {names[-1] or 'by default'} allows {longest:.0f}"
        more = "name another slurm_partition, or less time for rules in the profile's set-resources"
        refuse(1, f"runtime: jobs of {rule} ask for {minutes} minutes, {which}; {more}")


def take_lock() -> int:
    """Take the folder's lock, which is held until this process ends; return its file descriptor."""
    try:
        LOCK.parent.mkdir(exist_ok=True)
        lock = os.open(LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        refuse(1, f"cannot write {LOCK} ({error.strerror})")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(lock, 1000, 0).decode(errors="replace").strip()
        refuse(1, f"another run is at work in this folder: {holder}; wait for it or stop it")
    except OSError as error:
        refuse(1, f"cannot lock {LOCK} ({error.strerror}); does this file system support flock?")
    os.set_inheritable(lock, True)  # through exec; never closed on purpose
    return lock


def note_holder(lock: int, studies: str, process: int) -> None:
    """Write who has the lock into its file, for the message of a run that is refused."""
    note = f"{studies}, process {process} on {socket.gethostname()}, since {time.strftime('%F %H:%M')}\n"
    os.ftruncate(lock, 0)
    os.pwrite(lock, note.encode(), 0)


def clear_stale_lock() -> None:
    """Remove Snakemake's own lock if a killed run left it. Call with the lock of `take_lock`."""
    if not any(Path(".snakemake/locks").glob("*.lock")):
        return
    import psutil  # installed with Snakemake; takes 0.05 s to import, and most runs do not need it

    # Snakemake's lock does not name a process, and a `snakemake` typed by hand does not take our lock.
    for process in psutil.process_iter(["cwd", "cmdline"]):
        words = process.info["cmdline"] or []
        # `snakemake …`, `python …/snakemake …`, `python -m snakemake …`
        if process.info["cwd"] == str(ROOT) and "snakemake" in [Path(word).name for word in words[:3]]:
            refuse(1, f"a Snakemake is at work in this folder: process {process.pid} ({' '.join(words)})")
    print("clearing the lock of a run that was killed", file=sys.stderr)
    done = subprocess.run([*SNAKEMAKE, "--unlock", "--cores=1"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.stderr.write(done.stdout + done.stderr)
        refuse(1, "Snakemake could not clear its lock; see its message above")


def refuse(status: int, reason: str) -> NoReturn:
    """Print in one line why nothing was started, and exit."""
    print(f"dpmc: error: {reason}", file=sys.stderr)
    sys.exit(status)


if __name__ == "__main__":
    main()
