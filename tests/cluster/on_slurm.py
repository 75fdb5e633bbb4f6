"""The workflow through profiles/slurm on a real Slurm of one node: `make test-slurm`.

Not collected by `pytest` alone, for it installs and starts services (conftest.py). Where Slurm has an
accounting data base and jobs last, the profile's own settings serve; here the state of jobs comes from
squeue, a second after submitting.
"""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from dpmc.studies.sizes import JOB_NEEDS
from pipeline_copy import REDUCED, SMALL, bits, copy_pipeline, run, snakemake

HERE = "--slurm-status-command=squeue --slurm-init-seconds-before-status-checks=1 --latency-wait=10".split()
ON_SLURM = ("--profile=slurm", *HERE)
#: One model that needs more memory than it first gets, and one that cannot work.
STUMBLING = {
    **SMALL,
    "settings_of": "own",
    "models": {
        name: {
            "model": f"own_model:{name.title()}",
            "data": "fresh-0",
            "epsilons": [1],
            "tuning_epsilon": 1,
            "n": 100,
        }
        for name in ("hungry", "broken")
    },
    "figures": [],
}
OWN_MODEL = '''
import functools
import os
import re
import subprocess
import sys

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@functools.cache
def granted():
    """MB that Slurm grants this job; plenty elsewhere. Says, once, how many threads libraries have."""
    print(*(f"{name}={os.environ.get(name)}" for name in THREADS), file=sys.stderr)
    number = os.environ.get("SLURM_JOB_ID")
    if number is None:
        return 10**6
    told = subprocess.run(["scontrol", "show", "job", number], capture_output=True, text=True, check=True)
    return int(re.search(r"MinMemoryNode=([0-9]+)M", told.stdout)[1])


class Hungry:
    """A normal mean, whose evaluation wants more memory than Slurm grants at first."""

    dimension = 2
    least = 1500  # MB

    def log_likelihood(self, theta, rows):
        if granted() < self.least:
            raise MemoryError(f"{granted()} MB are not enough")
        return -0.5 * ((rows - theta) ** 2).sum(axis=1)

    def simulate(self, generator, theta, n):
        return theta + generator.standard_normal((n, 2))


class Broken(Hungry):
    least = 10**5
'''


@pytest.fixture(scope="session", autouse=True)
def _slurm(slurm: Path) -> None:
    """All tests here need it."""


SNAKEMAKE = ("-m", "snakemake")  # with the profile's number of jobs, not of cores


def submitted(output: str) -> list[str]:
    """Slurm's numbers of the jobs that were submitted."""
    return re.findall(r"has been submitted with SLURM jobid (\d+)", output)


def known_to_slurm(number: str) -> dict[str, str]:
    """Return Slurm's record of a job, finished or not."""
    told = subprocess.run(["scontrol", "show", "job", number], capture_output=True, text=True, check=True)
    return dict(re.findall(r"(\w+)=(\S*)", told.stdout))


def test_a_study_whose_controller_is_killed_is_bit_identical_to_a_local_run(tmp_path):
    local = copy_pipeline(tmp_path / "local", {"reduced": REDUCED})
    run(local, "workflow/run.py", "--cores=2", "reduced")

    folder = copy_pipeline(tmp_path / "cluster", {"reduced": REDUCED})
    command = [sys.executable, "workflow/run.py", *ON_SLURM, "reduced"]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as first:
        seen = ""
        for line in first.stdout:
            seen += line
            if re.search(r"submitted with SLURM.*sample_reduced", line):
                break
        first.kill()
    (number,) = re.findall(r"SLURM jobid (\d+) \(log: .*group_data_data", seen)
    about = known_to_slurm(number)  # of both data sets
    assert (about["NumCPUs"], about["MinMemoryNode"]) == ("1", f"{JOB_NEEDS['data'][0]}M")
    assert about["TimeLimit"] == f"00:{2 * JOB_NEEDS['data'][1]}:00"
    made = {path: path.stat().st_mtime_ns for path in folder.glob("data/reduced/**/*.nc")}
    assert made

    until = time.monotonic() + 300.0
    while (
        subprocess.run(["squeue", "-h"], capture_output=True, check=True).stdout and time.monotonic() < until
    ):
        time.sleep(0.5)
    output = run(folder, "workflow/run.py", *ON_SLURM, "reduced")
    assert not re.search(r"submitted with SLURM.*figure", output)
    again = submitted(output)
    assert again and not set(again) & set(submitted(seen))
    assert {path: path.stat().st_mtime_ns for path in made} == made, "what was finished is made again"
    for number in again:
        about = known_to_slurm(number)
        assert (about["JobState"], about["Partition"]) == ("COMPLETED", "main")
    assert bits(folder) == bits(local)


def test_a_job_that_fails_gets_more_memory_and_is_reported_with_its_log(tmp_path):
    folder = copy_pipeline(tmp_path, {"stumbling": STUMBLING})
    (folder / "own_model.py").write_text(OWN_MODEL)
    values = {"tau": 0.5, "clip": 10, "proposal_sd": 0.05}
    own = {"dp-penalty": {name: dict(values) for name in STUMBLING["models"]}}
    (folder / "config/hyperparameters/own.yaml").write_text(yaml.safe_dump(own))
    tuned = [f"results/stumbling/tuning/{name}/dp-penalty.yaml" for name in STUMBLING["models"]]
    rows = [f"data/stumbling/{name}/fresh-0.nc" for name in STUMBLING["models"]]
    snakemake(folder, "--cores=2", *tuned, *rows)

    chains = [f"results/stumbling/chains/{name}/dp-penalty/eps-1/seed-0.nc" for name in STUMBLING["models"]]
    output = run(folder, *SNAKEMAKE, "--profile", "profiles/slurm", *HERE, "--", *chains, status=1)
    assert [(folder / chain).exists() for chain in chains] == [True, False]

    asked: dict[str, list[int]] = {"hungry": [], "broken": []}
    for number in submitted(output):
        about = known_to_slurm(number)
        model = next(name for name in asked if name in about["StdOut"])
        asked[model].append(int(re.sub(r"\D", "", about["MinMemoryNode"])))
        assert about["TimeLimit"] != "UNLIMITED"
    first = asked["hungry"][0]
    assert asked == {"hungry": [first, 2 * first], "broken": [first, 2 * first, 4 * first]}
    assert "MB are not enough" in output, "the job's log is shown"
    assert list(folder.glob("logs/slurm/**/*.log")), "and Slurm's is kept"
    log = (folder / "logs/stumbling/sampling/hungry/dp-penalty.log").read_text()
    for library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
        assert f"{library}_NUM_THREADS=1" in log


@pytest.mark.parametrize(
    ("partition", "words"),
    [
        ("nowhere", ["no partition 'nowhere'", "known: ", "brief", "main"]),
        ("brief", ["jobs of sample ask for 60 minutes, the partition brief allows 1"]),
    ],
)
def test_a_partition_that_cannot_take_the_jobs_is_refused(tmp_path, partition, words):
    folder = copy_pipeline(tmp_path, {"reduced": REDUCED})
    profile = folder / "profiles/slurm/profile.yaml"
    named = profile.read_text().replace("# slurm_partition: compute", f"slurm_partition: {partition}")
    profile.write_text(named)
    output = run(folder, "workflow/run.py", *ON_SLURM, "reduced", status=1)
    assert not submitted(output) and not (folder / "results").exists()
    assert all(word in output for word in words), output[-4000:]


def test_the_generic_profile_submits_by_the_command_that_it_names(tmp_path):
    folder = copy_pipeline(tmp_path, {"reduced": REDUCED})
    submit = (
        "sbatch --parsable --output=slurm-%j.log -c {threads} --mem={resources.mem_mb} -t {resources.runtime}"
    )
    data = "data/reduced/circle/tuning.nc"
    profile = ("--profile", "profiles/generic", "--seconds-between-status-checks=2")
    output = run(folder, *SNAKEMAKE, *profile, f"--cluster-generic-submit-cmd={submit}", "--", data)
    assert (folder / data).exists()
    (number,) = re.findall(r"external jobid '(\d+)'", output)
    about = known_to_slurm(number)
    assert about["JobState"] == "COMPLETED" and about["TimeLimit"] == f"00:{JOB_NEEDS['data'][1]}:00"


def test_a_study_runs_inside_one_allocation(tmp_path):
    folder = copy_pipeline(tmp_path, {"reduced": REDUCED})
    (folder / ".venv").symlink_to(sys.prefix)
    command = "sbatch --wait --parsable --cpus-per-task=2 workflow/slurm/one_allocation.sh reduced".split()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900, check=False)
    number = done.stdout.strip()
    log = (folder / f"dpmc-{number}.log").read_text()
    assert done.returncode == 0, log[-3000:]
    assert "100%" in log and not submitted(log)
    assert list(folder.glob("results/reduced/metrics.csv"))
