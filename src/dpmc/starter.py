"""The starter of a run: a process that has imported what commands need, and forks for each of them.

Most of a short job is importing NumPy, SciPy and numba. A run on this machine calls `launch` (the Snakefile);
each `dpmc` that it starts hands over its arguments, folder, variables and open files (__main__.py), waits and
ends as its command does. Where there is no starter, or it will not do, a command starts by itself and writes
the same.

The starter ends with the process that launched it, whatever ended that, and its jobs end with the starter: it
reads from a pipe whose other end is nobody else's.
"""

import atexit
import contextlib
import ctypes
import functools
import gc
import importlib
import io
import json
import os
import signal
import socket
import subprocess
import sys
import time
import traceback
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from dpmc import algorithms, cli, commands, compiler, errors, studies
from dpmc.__main__ import BEGUN, REFUSED, STARTER, installation, same_user

#: What every command imports, and what each does besides; done before the first job that runs one.
COMMON = (
    "dpmc.commands",
    "dpmc.datasets",
    "dpmc.models",
    "dpmc.storage",
    "jsonschema",
    "netCDF4",
    "resource",
)
IMPORTS = {
    "compile": ("dpmc.warmup", "dpmc.sampling", "dpmc.metrics.mmd", "dpmc.tuning"),
    "tune": ("dpmc.tuning", "dpmc.metrics.cell", "dpmc.sampling"),
    "sample": ("dpmc.sampling", "dpmc.summary"),
    "evaluate": ("dpmc.metrics.cell",),
    "trace": ("dpmc.metrics.traces",),
    "plot": ("dpmc.figures.boxes", "matplotlib.pyplot", "matplotlib.backends.backend_pdf", "seaborn"),
}
_WITH_MACHINE_CODE = ("compile", "tune", "sample", "evaluate", "trace")

#: Variables that libraries read when they are imported: a job that has others must start by itself.
_READ_ON_IMPORT = (
    "NUMBA_",
    "OMP_",
    "OPENBLAS_",
    "MKL_",
    "NPY_",
    "PYTHON",
    "LD_",
    "LC_",
    "LANG",
    "MPL",
    "XDG_",
)
#: What a starter has of those; the rules give jobs the same (workflow/rules/common.smk).
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("NUMBA", "OMP", "OPENBLAS", "MKL")}

#: For glibc: keep the memory of arrays that are dropped; else the kernel takes and clears it each time, a
#: third of what composing loss distributions takes.
_KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": f"{2**25}", "MALLOC_TRIM_THRESHOLD_": f"{2**28}"}

_PATIENCE = 10.0  # seconds for a request, which is written at once
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_LOST_OUTPUT = 120  # Python's exit code when it cannot write at its end what was printed


def launch() -> None:
    """Start a starter for the commands that this process will start: a matter of speed alone.

    On Linux, unless the variable `STARTER` is there.
    """
    if STARTER in os.environ or None in (sys.stdout, sys.stderr):  # jobs would have no streams
        return
    try:
        os.close(os.pidfd_open(os.getpid()))  # not everywhere, nor allowed everywhere
    except (AttributeError, OSError):
        return
    alive, held = os.pipe()  # the latter closes with this process
    try:
        starter, name = _started(alive)
    except OSError:
        os.close(held)
        return
    finally:
        os.close(alive)
    os.environ[STARTER] = name

    def end() -> None:
        os.close(held)
        starter.wait()

    atexit.register(end)  # so that its time counts as ours, and nothing is left behind us


def _started(alive: int) -> tuple[subprocess.Popen[bytes], str]:
    """A starter that listens until `alive` is closed at its other end, and its socket's name."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("")  # Linux finds a name, which is no file's
        listener.listen(128)
        starter = subprocess.Popen(
            [sys.executable, "-P", "-m", "dpmc.starter", str(listener.fileno())],
            stdin=alive,
            env={**os.environ, **ONE_THREAD, **_KEEP_MEMORY},
            pass_fds=[listener.fileno()],
        )
        return starter, listener.getsockname()[1:].decode()


class _Request(NamedTuple):
    """A command, and all that it would have had from the process that asks for it."""

    arguments: list[str]
    folder: str
    variables: dict[str, str]
    files: list[int]
    client: socket.socket  # who asks, and hears how it ends

    def prepare(self) -> None:
        """Import what the command will, read its study, and do what others like it would do again."""
        command = self.arguments[0] if self.arguments else ""
        with contextlib.suppress(Exception):  # the command will have it as well, and say so
            for module in (*COMMON, *IMPORTS.get(command, ())):
                importlib.import_module(module)
            if command in _WITH_MACHINE_CODE:
                compiler.prepare()
            cli.parser()
            if "--study" in self.arguments:
                study = self.arguments[self.arguments.index("--study") + 1]
                if Path(study).exists() and not Path(study).is_file():  # what can be read once is the job's
                    return
                _read_study(study)
                if command in _WITH_MACHINE_CODE:
                    _import_algorithms(study)
            if command == "sample":
                self.prepare_rows()

    def prepare_rows(self) -> None:
        """Read and lay out the rows that a sampling job looks at: jobs on the same data come by the dozen."""
        unheard = io.StringIO()  # what the parser has to say of wrong options, or is asked to
        try:
            with contextlib.redirect_stdout(unheard), contextlib.redirect_stderr(unheard):
                options = cli.parser().parse_args(self.arguments)
            commands.prepare_sample(options, Path(self.folder))
        except SystemExit:
            return
        finally:
            # What was needed on the way is given back, or every job would seem to hold it.
            ctypes.CDLL(None).malloc_trim(0)  # an AttributeError, suppressed as others, where there is none

    def refuse(self) -> None:
        """Let the client run it."""
        with contextlib.suppress(OSError):
            self.client.sendall(REFUSED)
        self.close()
        self.client.close()

    def close(self) -> None:
        """Close the files, which are the job's now."""
        for file in self.files:
            os.close(file)


class _Job(NamedTuple):
    """A process that runs a command."""

    process: int
    ended: int  # a file that can be read once it has ended
    client: socket.socket

    def listen(self) -> bool:
        """Pass on what the client says, an interrupt; False, and the job has to end, if the client has."""
        said = b""
        with contextlib.suppress(OSError):
            said = self.client.recv(16)
        os.kill(self.process, signal.SIGINT if said else signal.SIGTERM)
        return bool(said)

    def report(self) -> None:
        """Tell the client how the job has ended, and forget it."""
        status = os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])
        os.close(self.ended)
        with contextlib.suppress(OSError), self.client:  # which may have been killed
            self.client.sendall(b"%d\n" % (status if status >= 0 else 128 - status))


class Starter:
    """The state of a starter: what it was when it began, and its jobs."""

    def __init__(self, listener: socket.socket) -> None:
        self.listener = listener
        self.process = os.getpid()
        self.variables = dict(os.environ)
        self.sources = _sources()
        self.jobs: list[_Job] = []
        self.left: set[int] = set()  # processes of jobs whose clients have left

    def serve(self) -> list[str]:
        """Fork for every request; return, in a job, its arguments. Exits when the run has ended."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # each client passes its own on
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        while True:
            clients = [job.client for job in self.jobs if job.process not in self.left]
            ready: list[Any] = wait([0, self.listener, *clients, *(job.ended for job in self.jobs)])
            if 0 in ready:
                self.end()
            for job in list(self.jobs):
                if job.ended in ready:
                    self.jobs.remove(job)
                    self.left.discard(job.process)
                    job.report()
                elif job.client in ready and not job.listen():
                    self.left.add(job.process)
            request = self.receive() if self.listener in ready else None
            if request is not None:
                request.prepare()
                gc.freeze()  # or every job would write into, and so copy, all memory that holds objects
                if self.fork(request):
                    return request.arguments

    def end(self) -> NoReturn:
        """End all jobs, and the starter."""
        for job in self.jobs:
            os.kill(job.process, signal.SIGTERM)
        sys.exit()

    def receive(self) -> _Request | None:
        """The next request; None if it broke off, or is refused for this process is not what it needs."""
        files: list[int] = []
        request = None
        try:
            client, _ = self.listener.accept()
        except OSError:  # too many files; jobs that end will close some
            time.sleep(0.1)
            return None
        with contextlib.suppress(OSError, ValueError, TypeError):
            client.settimeout(_PATIENCE)
            try:
                if not same_user(client):
                    return None
                length, files, _, _ = socket.recv_fds(client, 4, 3)
                text = _exactly(client, int.from_bytes(length, "big"))
                arguments, folder, variables, wanted = json.loads(text)
                request = _Request(arguments, folder, variables, files, client)
                client.settimeout(None)
            finally:
                if request is None:
                    client.close()
                    for file in files:
                        os.close(file)
        if request is None or (wanted == installation() and len(files) == 3 and self.serves(variables)):
            return request
        request.refuse()
        return None

    def serves(self, variables: dict[str, str]) -> bool:
        """Whether what a job would import is what was imported here."""
        theirs, ours = (
            {name: value for name, value in some.items() if name.startswith(_READ_ON_IMPORT)}
            for some in (variables, self.variables)
        )
        with contextlib.suppress(OSError):  # of a file that has just been removed
            return theirs == ours and _sources() == self.sources
        return False

    def fork(self, request: _Request) -> bool:
        """Make a job of a request; True in the job. What cannot be forked runs with the client."""
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # until the job can hear it
        try:
            process = os.fork()
        except OSError:
            request.refuse()
            return False
        finally:
            if os.getpid() == self.process:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        if process == 0:
            self.become(request)
            return True
        try:
            self.jobs.append(_Job(process, os.pidfd_open(process), request.client))
        except OSError:  # no more files
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            request.refuse()
            return False
        request.close()
        with contextlib.suppress(OSError):
            request.client.sendall(BEGUN)
        return False

    def become(self, request: _Request) -> None:
        """Turn this process, a fork, into the one that asks."""
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != self.process:
            os._exit(1)  # it ended in between
        os.setpgid(0, 0)  # a terminal's interrupt comes once, by way of the client
        for job in self.jobs:
            job.client.close()
            os.close(job.ended)
        self.listener.close()
        for number, file in enumerate(request.files):
            os.dup2(file, number)
        request.close()
        request.client.close()
        os.chdir(request.folder)
        by_imports = {name: value for name, value in os.environ.items() if name not in self.variables}
        os.environ.clear()
        os.environ.update(by_imports | request.variables)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # blocked until `_run`


@functools.cache
def _read_study(name: str) -> None:
    """Read a study and its settings once; what they hold now need not be parsed again (studies.py)."""
    study = studies.load_study(name)
    for method in study.methods:
        with contextlib.suppress(errors.DpmcError):  # none for this model, found after reading
            study.pinned_hyperparameters(next(iter(study.models)), method)


@functools.cache
def _import_algorithms(name: str) -> None:
    """Import a study's algorithms, with all that they import."""
    for algorithm in {how.algorithm for how in studies.load_study(name).methods.values()}:
        algorithms.algorithm_class(algorithm)


def _exactly(client: socket.socket, size: int) -> bytes:
    """So many bytes, and none of what the client says later; ValueError if there are fewer."""
    text = b""
    while len(text) < size:
        part = client.recv(size - len(text))
        if not part:
            raise ValueError("a request broke off")
        text += part
    return text


def _sources() -> dict[str, tuple[int, int]]:
    """Time and size of all sources: once they change, the key of machine code would not be its sources'."""
    package = Path(__file__).parent
    return {
        str(path): (about.st_mtime_ns, about.st_size)
        for path in package.rglob("*.py")
        for about in [path.stat()]
    }


def _run(arguments: list[str]) -> NoReturn:
    """Run a command and end at once: to take apart all that is imported would be a fifth of a second."""
    status: Any = 1
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        status = cli.main(arguments)
    except SystemExit as leaving:
        status = 0 if leaving.code is None else leaving.code
    except KeyboardInterrupt:  # before the command could hear it
        print("dpmc: interrupted", file=sys.stderr)
        status = 128 + signal.SIGINT
    except BaseException:
        traceback.print_exc()
    if not isinstance(status, int):
        print(status, file=sys.stderr)
        status = 1
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            status = status or _LOST_OUTPUT
    os._exit(status)


def main() -> NoReturn:
    """Be the starter, and in every fork the command that was asked for."""
    with socket.socket(fileno=int(sys.argv[1])) as listener:
        arguments = Starter(listener).serve()
    _run(arguments)


if __name__ == "__main__":
    main()
