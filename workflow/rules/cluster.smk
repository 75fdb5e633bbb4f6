# What a run on a cluster must not do in silence: run on this machine because of a typo, or wait for ever in a
# queue that does not exist or allows less time than a job asks for.
import argparse
import subprocess


def named_profile(arguments):
    """What --workflow-profile says on a command line; Snakemake overlooks a profile that is not there."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--workflow-profile")
    return parser.parse_known_args(arguments)[0].workflow_profile


def check_profile(name):
    """Refuse a workflow profile that does not exist."""
    places = [Path(), Path("profiles"), Path(workflow.basedir) / "profiles"]
    if name in (None, "none") or any((place / name).exists() for place in places):
        return
    known = sorted(
        path.parent.name for path in Path(workflow.basedir).glob("profiles/*/profile.yaml")
    )
    raise WorkflowError(f"--workflow-profile: no profile {name!r}; known: {', '.join(known)}")


def check_partitions(jobs):
    """Refuse jobs that Slurm could never start: an unknown partition, more time or cores than it has."""
    limits = partition_limits()
    asked = {
        (str(job.resources.get("slurm_partition") or ""), job.rule.name, job.threads)
        + (job.resources.get("runtime", 0),)
        for job in jobs
        if not job.is_local and not job.is_group()
    }
    for partitions, rule, cores, minutes in sorted(asked) if limits else []:
        names = partitions.split(",")
        for name in names:
            if name and name not in limits:
                known = ", ".join(sorted(filter(None, limits)))
                raise WorkflowError(f"slurm_partition: no partition {name!r}; known: {known}")
        # Of several partitions Slurm takes one that can run the job.
        refusals = [why_never(limits, name, rule, cores, minutes) for name in names]
        if all(refusals):
            raise WorkflowError(refusals[-1])


def why_never(limits, name, rule, cores, minutes):
    """Why a partition, "" for the default one, can never run a job of a rule; None if it can, or nobody knows."""
    if name not in limits:
        return None  # no default: sbatch will say it
    allowed, there = limits[name]
    if minutes > allowed:
        return (
            f"runtime: {rule} asks for {minutes} minutes, the partition {name or 'by default'} allows {allowed:.0f}; name "
            f"another slurm_partition, or less time: --set-resources {rule}:runtime={allowed:.0f}"
        )
    if cores > there:
        return f"threads: {rule} asks for {cores} cores, the nodes there have {there}: --max-threads {there}"
    return None


def partition_limits():
    """Partition -> its time limit in minutes and its nodes' cores, "" for the default one; None if Slurm is silent."""
    try:
        told = subprocess.run(
            ["sinfo", "-h", "-o", "%P %l %c"],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    limits = {}
    for name, limit, cores in map(str.split, told.splitlines()):
        for key in (name.rstrip("*"), *([""] if name.endswith("*") else [])):
            _, known = limits.get(key, (0, 0))
            limits[key] = slurm_minutes(limit), max(known, int(cores.rstrip("+")))
    return limits


def slurm_minutes(limit):
    """Slurm's [days-]hours:minutes:seconds, or minutes:seconds, in minutes; `infinite` and unknown ones are infinite."""
    days, _, clock = limit.rpartition("-")
    try:
        parts = [int(part) for part in clock.split(":")]
        hours, minutes, seconds = [0] * (3 - len(parts)) + parts
        return int(days or 0) * 1440 + hours * 60 + minutes + seconds / 60
    except ValueError:
        return float("inf")


check_profile(named_profile(sys.argv[1:]))
