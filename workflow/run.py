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
from typing import TYPE_CHECKING, Any, NoReturn

import yaml

if TYPE_CHECKING:
    from dpmc.studies import Study

ROOT = Path(__file__).resolve().parent.parent
LOCK = Path(".snakemake/dpmc-run.lock")
SNAKEMAKE_LOCKS = Path(".snakemake/locks")
SNAKEMAKE = [sys.executable, "-m", "snakemake"]
INCOMPLETE = 3  # exit status of a run that left out models without image data


def main(arguments: list[str] | None = None) -> NoReturn:
    """Take the lock, clear a stale lock of Snakemake, and run Snakemake; exit 1 or 2 if refused.

    Exit 3 after a run that left out models whose data are unavailable.
    """
    options, for_snakemake = parse(arguments)
    os.chdir(ROOT)
    studies = check_studies(options.studies, options.tune, study_places(options.config))
    targets = tuning_targets(studies, options.studies) if options.tune else options.studies
    folder, profile = known_profile(options.profile) if options.profile else (None, {})
    check_partitions(profile)
    lock = take_lock(" ".join(options.studies))
    clear_stale_locks()
    command = snakemake_command(options, for_snakemake, folder, profile)
    left_out = look_for_images(studies, command, lock)
    status = run_to_end([*command, *targets], lock)
    for line in left_out:
        print(f"dpmc: left out: {line}", file=sys.stderr)
    if status == 0 and not is_planned(for_snakemake):
        made = targets if options.tune else [f"figures/{'' if name == 'all' else name}" for name in targets]
        print(f"dpmc: made: {' '.join(made)}", file=sys.stderr)
    sys.exit(status or (INCOMPLETE if left_out else 0))


def parse(arguments: list[str] | None) -> tuple[argparse.Namespace, list[str]]:
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
    return parser.parse_known_intermixed_args(arguments)


def is_planned(for_snakemake: list[str]) -> bool:
    """Return whether this is a dry run of Snakemake."""
    return any(argument in ("-n", "--dry-run", "--dryrun") for argument in for_snakemake)


def snakemake_command(
    options: argparse.Namespace, for_snakemake: list[str], folder: Path | None, profile: dict[str, Any]
) -> list[str]:
    """Return the command without targets."""
    command = [*SNAKEMAKE, *for_snakemake, *(["--profile", str(folder)] if folder else [])]
    cluster = profile.get("executor", "local") != "local"
    # On a cluster, `all` would be the cores of this machine; there the profile has the number of jobs.
    if not folder or options.cores != "all":
        command += ["--cores", options.cores]
    # A cluster's run has Snakemake's own log, which names the cluster's jobs.
    if not (cluster or options.verbose or is_planned(for_snakemake)):
        command += ["--logger=dpmc", *(["--quiet=all"] if options.quiet else [])]
    return [*command, *(["--config", *options.config] if options.config else []), "--"]


def tuning_targets(studies: "list[Study]", asked: list[str]) -> list[str]:
    """Return the files that `--tune` makes for the studies; refuse a study without searches.

    With `all`, studies without searches are left out.
    """
    from dpmc.common.errors import DpmcError
    from dpmc.tuning.search import searched_pairs

    wanted = [study for study in studies if "all" in asked or study.name in asked]
    try:
        searched = [study.name for study in wanted if searched_pairs(study)]
    except DpmcError as error:
        refuse(2, str(error))
    for study in wanted:
        if study.name not in searched and "all" not in asked:
            why = "no method and model with free hyperparameters, a budget and exact draws"
            mode = "tuning: mode: none, and no methods to search"
            refuse(2, f"--tune: {study.name}: {why if study.tuning_methods else mode}")
    forms = ("results/{}/tuned.yaml", "figures/{}/search/lessons.png")
    return [form.format(name) for name in searched for form in forms]


def look_for_images(studies: "list[Study]", command: list[str], lock: int) -> list[str]:
    """Fetch the image data that studies need; return a line for each model whose data are missing."""
    from dpmc.data import images

    specs = [(study.name, spec) for study in studies for spec in study.models.values()]
    needed = {
        f"data/downloads/{pictures.source.name}.found"
        for _, spec in specs
        if (pictures := images.image_set(spec.data)) and images.missing(spec.data) is None
    }
    asked = sorted(mark for mark in needed if not Path(mark).exists())
    if asked:
        # Other sources may succeed if one fails. A failure leaves a marker, which is read below.
        run_to_end([*command[:-1], "--keep-going", "--", *asked], lock)
    return [f"{name}: {spec.label}: {why}" for name, spec in specs if (why := images.missing(spec.data))]


def run_to_end(command: list[str], lock: int) -> int:
    """Run Snakemake, passing it the lock and our signals, and return its exit status."""
    process = subprocess.Popen(command, pass_fds=[lock])
    signals: dict[int, Any] = {
        signal.SIGINT: signal.SIG_IGN,  # a terminal sends it to Snakemake as well
        signal.SIGTERM: lambda *_: process.terminate(),
    }
    before = {number: signal.signal(number, action) for number, action in signals.items()}
    status = process.wait()
    for number, action in before.items():
        signal.signal(number, action)
    return status


def study_places(config: list[str]) -> Any:
    """Return files and folders of studies: `studies` of the command line, else of config/config.yaml."""
    from dpmc.common.errors import DpmcError
    from dpmc.studies import read_yaml

    given = dict(pair.partition("=")[::2] for pair in config).get("studies")
    try:
        found = (
            yaml.safe_load(given) if given else (read_yaml(Path("config/config.yaml")) or {}).get("studies")
        )
    except (DpmcError, AttributeError, yaml.YAMLError) as error:
        refuse(2, " ".join(str(error).split()))
    return found or "config/studies"


def check_studies(studies: list[str], tune: bool, places: Any) -> "list[Study]":
    """Return the studies of a run, with those whose cells they reuse; `places` has all studies.

    Before anything starts, refuses in one line an unknown study, a mistake in any study's file, and missing
    hyperparameters unless the run is to `tune` them.
    """
    from dpmc.common.errors import DpmcError
    from dpmc.studies import load_study, study_files

    try:
        files = study_files(places)
        known = ["all", *sorted(files)]
        for study in studies:
            if study not in known:
                refuse(2, f"no study {study!r} in {places}; known: {', '.join(known)}")
        loaded = {name: load_study(path) for name, path in files.items()}
    except DpmcError as error:
        refuse(2, str(error))
    asked = known[1:] if "all" in studies else studies
    others = [other for name in asked for other, _ in loaded[name].reused()]
    needed = [loaded[name] for name in dict.fromkeys([*asked, *others])]
    try:
        for one in [] if tune else needed:
            for model, method, _ in one.cells():
                one.pinned_hyperparameters(model, method)
    except DpmcError as error:
        refuse(2, str(error))
    return needed


def known_profile(name: str) -> tuple[Path, dict[str, Any]]:
    """Return a profile's folder, by its name or path, and content.

    Refuses a profile that does not exist or whose plugin is not installed.
    """
    known = sorted(path.parent for path in Path("profiles").glob("*/profile.yaml"))
    folder = next((path for path in (*known, Path(name)) if name in (path.name, str(path))), Path(name))
    file = folder / "profile.yaml"
    if not file.exists():
        refuse(2, f"--profile: no profile {name!r}; known: {', '.join(path.name for path in known)}")
    try:
        content: dict[str, Any] = yaml.safe_load(file.read_text()) or {}
        executor = content.get("executor", "local")
    except (yaml.YAMLError, AttributeError) as error:
        refuse(2, f"--profile: {file}: is not a profile: {' '.join(str(error).split())}")
    plugin = f"snakemake_executor_plugin_{executor.replace('-', '_')}"
    if executor != "local" and find_spec(plugin) is None:
        refuse(2, f"--profile: {name} needs {plugin.replace('_', '-')}, which is not installed: make cluster")
    return folder, content


def check_partitions(profile: dict[str, Any]) -> None:
    """Refuse a Slurm partition that does not exist or never allows the time of the jobs."""
    asked = profile.get("default-resources") or {}
    names = str(asked.get("slurm_partition") or "").split(",")
    limits = partition_limits() if profile.get("executor") == "slurm" else {}
    known = ", ".join(sorted(filter(None, limits)))
    for name in names if limits else []:
        if name and name not in limits:
            refuse(1, f"slurm_partition: no partition {name!r}; known: {known}")
    # Slurm chooses among several partitions one that allows the time.
    longest = max(limits.get(name, float("inf")) for name in names)
    minutes = re.match(r"\d+", str(asked.get("runtime", "")))  # of the first attempt
    if minutes and int(minutes[0]) > longest:
        refuse(
            1,
            f"runtime: jobs ask for {minutes[0]} minutes, the partition {names[-1] or 'by default'} allows "
            f"{longest:.0f}; name another slurm_partition, or less time in the profile's default-resources",
        )


def partition_limits() -> dict[str, float]:
    """Return partition -> time limit in minutes, "" for the default one; empty if Slurm reports none."""
    command = ["sinfo", "-h", "-o", "%P %l"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    limits = {}
    for name, limit in map(str.split, told.splitlines()):
        limits[name.rstrip("*")] = slurm_minutes(limit)
        if name.endswith("*"):
            limits[""] = slurm_minutes(limit)
    return limits


def slurm_minutes(limit: str) -> float:
    """Convert Slurm's [days-]hours:minutes:seconds or minutes:seconds to minutes; else infinite."""
    days, _, clock = limit.rpartition("-")
    try:
        parts = [int(part) for part in clock.split(":")]
        hours, minutes, seconds = [0] * (3 - len(parts)) + parts
        return int(days or 0) * 1440 + hours * 60 + minutes + seconds / 60
    except ValueError:
        return float("inf")


def take_lock(studies: str) -> int:
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
    started = time.strftime("%Y-%m-%d %H:%M")
    note = f"{studies}, process {os.getpid()} on {socket.gethostname()}, since {started}\n"
    os.ftruncate(lock, 0)
    os.pwrite(lock, note.encode(), 0)
    os.set_inheritable(lock, True)  # through exec; never closed on purpose
    return lock


def clear_stale_locks() -> None:
    """Remove Snakemake's own lock if a killed run left it. Call with the lock of `take_lock`."""
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
        refuse(1, "Snakemake could not clear its lock; see its message above")


def running_snakemakes() -> list[tuple[int, str]]:
    """Return process id and command line of each running Snakemake of this machine in this folder.

    Snakemake's lock does not name a process, and a `snakemake` typed by hand does not take our lock.
    """
    import psutil  # installed with Snakemake; takes 0.05 s to import, and most runs do not need it

    found = []
    for process in psutil.process_iter(["pid", "cwd", "cmdline"]):
        words = process.info["cmdline"] or []
        # `snakemake …`, `python …/snakemake …`, `python -m snakemake …`
        if process.info["cwd"] == str(ROOT) and "snakemake" in [Path(word).name for word in words[:3]]:
            found.append((process.info["pid"], " ".join(words)))
    return found


def refuse(status: int, reason: str) -> NoReturn:
    """Print in one line why nothing was started, and exit."""
    print(f"dpmc: error: {reason}", file=sys.stderr)
    sys.exit(status)


if __name__ == "__main__":
    main()
