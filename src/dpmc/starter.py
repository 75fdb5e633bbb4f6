"""The starter of a run: a process that has imported what commands need, and forks for each of them.

Most of a short job is importing NumPy, SciPy and numba. A run on this machine calls `launch` (the Snakefile);
each `dpmc` that it starts hands over its arguments, folder, variables and open files (__main__.py), waits and
ends as its command does. Nothing else changes: where there is no starter, or it will not do, a command starts
by itself.

The starter ends with the process that launched it, whatever ended that, and its jobs end with the starter: it
reads from a pipe whose other end is nobody else's.
"""

import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from dpmc import compiler
from dpmc.__main__ import REFUSED, STARTER, installation

#: What every command imports, and what each does besides; done before the first job that runs one.
COMMON = ("dpmc.commands", "dpmc.datasets", "dpmc.models", "dpmc.storage", "jsonschema", "netCDF4")
IMPORTS = {
    "compile": ("dpmc.warmup", "dpmc.sampling", "dpmc.metrics.mmd"),
    "tune": ("dpmc.tuning", "arviz_stats.base"),
    "sample": ("dpmc.sampling",),
    "evaluate": ("dpmc.metrics.cell", "arviz_stats.base"),
    "trace": ("dpmc.metrics.traces", "arviz_stats.base"),
    "plot": ("dpmc.figures.boxes", "matplotlib.pyplot", "matplotlib.backends.backend_pdf", "seaborn"),
}
_WITH_MACHINE_CODE = ("compile", "tune", "sample", "evaluate", "trace")

#: Variables that libraries read when they are imported: a job that has others must start by itself.
_READ_ON_IMPORT = ("NUMBA_", "OMP_", "OPENBLAS_", "MKL_", "PYTHON", "LD_", "MPL")
_ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("NUMBA", "OMP", "OPENBLAS", "MKL")}

#: For glibc: keep the memory of arrays that are dropped. Otherwise the kernel takes and clears it each time, a
#: third of what composing loss distributions takes.
_KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": f"{2**25}", "MALLOC_TRIM_THRESHOLD_": f"{2**28}"}

_PATIENCE = 10.0  # seconds for a request, which is written at once
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def launch() -> None:
    """Start a starter for the commands that this process will start (on Linux): a matter of speed alone."""
    if not hasattr(os, "pidfd_open"):
        return
    address = f"{tempfile.mkdtemp(prefix='dpmc-')}/starter"
    alive, held = os.pipe()  # the latter closes with this process
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(128)
        starter = subprocess.Popen(
            [sys.executable, "-P", "-m", "dpmc.starter", str(listener.fileno())],
            stdin=alive,
            env={**os.environ, **_ONE_THREAD, **_KEEP_MEMORY},
            pass_fds=[listener.fileno()],
        )
    os.close(alive)
    os.environ[STARTER] = address

    def end() -> None:
        os.close(held)
        starter.wait()
        shutil.rmtree(Path(address).parent, ignore_errors=True)  # if it was killed

    atexit.register(end)  # so that its time counts as ours, and nothing is left behind us


class _Request(NamedTuple):
    """A command, and all that it would have had from the process that asks for it."""

    arguments: list[str]
    folder: str
    variables: dict[str, str]
    files: list[int]
    client: socket.socket  # who asks, and hears how it ends

    def prepare(self) -> None:
        """Import what the command will."""
        command = self.arguments[0] if self.arguments else ""
        with contextlib.suppress(Exception):  # the command will have it as well, and say so
            for module in (*COMMON, *IMPORTS.get(command, ())):
                importlib.import_module(module)
            if command in _WITH_MACHINE_CODE:
                compiler.prepare()

    def become(self) -> list[str]:
        """Turn this process into the one that asks; return the command's arguments."""
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        for number, file in enumerate(self.files):
            os.dup2(file, number)
        self.close()
        self.client.close()
        os.chdir(self.folder)
        os.environ.clear()
        os.environ.update(self.variables)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return self.arguments

    def close(self) -> None:
        """Close the files, which are the job's now."""
        for file in self.files:
            os.close(file)


class _Job(NamedTuple):
    """A process that runs a command."""

    process: int
    ended: int  # a file that can be read once it has ended
    client: socket.socket

    def report(self) -> None:
        """Tell the client how the job has ended, and forget it."""
        status = os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])
        os.close(self.ended)
        with contextlib.suppress(OSError), self.client:  # which may have been killed
            self.client.sendall(b"%d" % (status if status >= 0 else 128 - status))


def _receive(listener: socket.socket) -> _Request | None:
    """The next request; None if it broke off or if this process is not what it needs, and it is told so."""
    client, _ = listener.accept()
    client.settimeout(_PATIENCE)
    files: list[int] = []
    try:
        length, files, _, _ = socket.recv_fds(client, 4, 3)
        with client.makefile("rb") as stream:
            text = stream.read(int.from_bytes(length, "big"))
        arguments, folder, variables, wanted = json.loads(text)
        if wanted == installation() and _decisive(variables) == _decisive(dict(os.environ)):
            client.settimeout(None)
            return _Request(arguments, folder, variables, files, client)
        client.sendall(REFUSED)
    except (OSError, ValueError):
        pass
    for file in files:
        os.close(file)
    client.close()
    return None


def _decisive(variables: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if name.startswith(_READ_ON_IMPORT)}


def _serve(listener: socket.socket) -> list[str]:
    """Fork for every request; return, in a job, its arguments. Exits when the run has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    jobs: list[_Job] = []
    while True:
        ready: list[Any] = wait([0, listener, *(job.ended for job in jobs), *(job.client for job in jobs)])
        for job in list(jobs):
            if job.ended in ready:
                jobs.remove(job)
                job.report()
            elif 0 in ready or job.client in ready:  # nothing is written there: it was closed
                os.kill(job.process, signal.SIGTERM)
        if 0 in ready:
            sys.exit()
        request = _receive(listener) if listener in ready else None
        if request is None:
            continue
        request.prepare()
        gc.freeze()  # or every job would write into, and so copy, all memory that holds objects
        process = os.fork()
        if process == 0:
            for job in jobs:
                job.client.close()
                os.close(job.ended)
            return request.become()
        request.close()
        jobs.append(_Job(process, os.pidfd_open(process), request.client))


def main() -> NoReturn:
    """Be the starter, and in every fork the command that was asked for."""
    from dpmc import cli

    with socket.socket(fileno=int(sys.argv[1])) as listener:
        address = Path(listener.getsockname())
        try:
            arguments = _serve(listener)
        except SystemExit:
            shutil.rmtree(address.parent, ignore_errors=True)
            raise
    sys.exit(cli.main(arguments))


if __name__ == "__main__":
    main()
