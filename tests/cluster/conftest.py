"""A real Slurm of one node on this machine, for as long as the tests of this folder run.

It installs Debian's slurm-wlm and munge where they are missing, so it wants a container or a machine to
throw away, and root. It touches no Slurm that is configured already.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

#: The place where Slurm looks by itself. A job's step does: Snakemake removes SLURM_CONF before it.
CONFIGURATION = Path("/etc/slurm/slurm.conf")
MUNGE = Path("/run/munge")
PROGRAMS = {"slurm-wlm": ("slurmctld", "slurmd", "sbatch", "squeue", "scontrol"), "munge": ("munged",)}
MARK = "# dpmc: one node for tests\n"

#: Without the accounting data base nothing but squeue knows of finished jobs: MinJobAge keeps them there.
SETTINGS = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SchedulerParameters=batch_sched_delay=0,sched_interval=5
MinJobAge=3600
KillWait=5
EnforcePartLimits=ALL
{node} NodeAddr=127.0.0.1 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
PartitionName=brief Nodes=ALL MaxTime=1 State=UP
"""


@pytest.fixture(scope="session")
def slurm() -> Iterator[Path]:
    """Slurm is up, with the partitions `main` and `brief` (one minute); the folder of its logs."""
    if os.geteuid() != 0:
        pytest.exit("test-slurm: needs root, to install and start Slurm", returncode=3)
    if CONFIGURATION.exists() and not CONFIGURATION.read_text().startswith(MARK):
        pytest.exit(f"test-slurm: {CONFIGURATION} exists, and a Slurm in use is left alone", returncode=3)
    for package, programs in PROGRAMS.items():
        if not all(map(shutil.which, programs)):
            install(package)
    folder = Path(tempfile.mkdtemp(prefix="dpmc-slurm-"))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: what was started is stopped
    try:
        with munged():
            start(folder)
            yield folder
    finally:
        stop(folder)
        CONFIGURATION.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)


def install(package: str) -> None:
    """Debian's package, or the end with a message."""
    if not shutil.which("apt-get"):
        pytest.exit(f"test-slurm: {package} is missing, and there is no apt-get to install it", returncode=3)
    apt = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "install", "-qq", "--no-install-recommends", package]
    for _ in range(2):
        done = subprocess.run(command, env=apt, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return
        subprocess.run(["apt-get", "update", "-qq"], env=apt, capture_output=True, check=False)
    pytest.exit(f"test-slurm: apt-get cannot install {package}: {done.stderr.strip()[-300:]}", returncode=3)


@contextlib.contextmanager
def munged() -> Iterator[None]:
    """The daemon that signs Slurm's messages; one that runs already is used and left running."""
    if running(MUNGE / "munged.pid"):
        yield
        return
    MUNGE.mkdir(mode=0o755, exist_ok=True)
    shutil.chown(MUNGE, "munge", "munge")
    subprocess.run(["runuser", "-u", "munge", "--", "munged"], check=True)
    try:
        yield
    finally:
        end(MUNGE / "munged.pid")


def start(folder: Path) -> None:
    """Controller and node, idle within half a minute."""
    for name in ("state", "spool"):
        (folder / name).mkdir()
    described = subprocess.run(["slurmd", "-C"], capture_output=True, text=True, check=True).stdout
    settings = SETTINGS.format(
        host=socket.gethostname().split(".")[0], folder=folder, node=described.split("\n")[0]
    )
    CONFIGURATION.parent.mkdir(exist_ok=True)
    CONFIGURATION.write_text(MARK + settings)
    for daemon in ("slurmctld", "slurmd"):
        subprocess.run([daemon], check=True, capture_output=True)
    until = time.monotonic() + 30.0
    while "idle" not in ask("sinfo", "-h", "-o", "%T"):
        if time.monotonic() > until:
            logs = "".join(path.read_text()[-2000:] for path in folder.glob("*.log"))
            pytest.exit(f"test-slurm: the node is not idle after 30 s\n{logs}", returncode=3)
        time.sleep(0.2)


def stop(folder: Path) -> None:
    """End the jobs, then the daemons that were started here, and nothing else."""
    if running(folder / "slurmctld.pid"):
        for partition in ("main", "brief"):
            subprocess.run(
                ["scancel", f"--partition={partition}"], check=False, capture_output=True, timeout=30
            )
        until = time.monotonic() + 30.0
        while ask("squeue", "-h") and time.monotonic() < until:
            time.sleep(0.2)
    for daemon in ("slurmd", "slurmctld"):
        end(folder / f"{daemon}.pid")


def running(pid_file: Path) -> bool:
    """Return whether the process of a pid file is alive."""
    return pid_file.exists() and psutil.pid_exists(int(pid_file.read_text()))


def end(pid_file: Path) -> None:
    """End the process of a pid file and wait for it."""
    if not running(pid_file):
        return
    process = psutil.Process(int(pid_file.read_text()))
    with contextlib.suppress(psutil.NoSuchProcess):
        process.terminate()
        process.wait(timeout=20)


def ask(*command: str) -> str:
    """Return the output of a Slurm command."""
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=30).stdout
