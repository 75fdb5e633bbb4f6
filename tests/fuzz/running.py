"""Run one command in a child process, which may hang, crash or use much memory, and check its end."""

import functools
import hashlib
import importlib
import multiprocessing
import os
import pkgutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import dpmc
from dpmc.cli import main as cli

TIME_OUT = 30.0  #: seconds; an input takes less than one
MEMORY = 2**31  #: bytes that a command may ask for on top of what the process has


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int | None  # the exit code, −signal, or None after a time-out
    errors: str  # its standard error
    printed: str  # its standard output


def run(argv: Sequence[str], folder: Path, time_out: float = TIME_OUT) -> Ended:
    """Run `dpmc.cli.main` in a folder, in a process forked from this one."""
    _import_all()
    with tempfile.TemporaryDirectory() as place:
        streams = [Path(place, name) for name in ("printed", "errors")]
        with warnings.catch_warnings(action="ignore"):  # of Python, that other threads are not forked
            child = multiprocessing.get_context("fork").Process(target=_work, args=(argv, folder, streams))
            child.start()
        child.join(time_out)
        code = child.exitcode
        if child.pid is not None and code is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.join()
        printed, errors = (
            stream.read_bytes().decode(errors="replace") if stream.exists() else "" for stream in streams
        )
    return Ended(code, errors, printed)


@functools.cache
def _import_all() -> None:
    """Import what commands import, once for all children."""
    names = [module.name for module in pkgutil.walk_packages(dpmc.__path__, "dpmc.")]
    late = ["matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg", "pandas"]
    for name in [*names, *late]:
        if not name.endswith("__main__"):
            importlib.import_module(name)


def _work(argv: Sequence[str], folder: Path, streams: Sequence[Path]) -> None:
    os.setpgid(0, 0)
    _limit_memory()
    os.chdir(folder)
    sys.dont_write_bytecode = True
    for descriptor, stream in enumerate(streams, 1):
        os.dup2(os.open(stream, os.O_WRONLY | os.O_CREAT), descriptor)
    sys.stdout = open(1, "w", closefd=False, encoding="utf-8")  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False, encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
    _warn_as_usual()
    code: object = 1
    try:
        code = cli.main(list(argv))
    except SystemExit as stop:
        code = 0 if stop.code is None else stop.code
    except BaseException:
        traceback.print_exc()
    if not isinstance(code, int):  # as the interpreter has it
        print(code, file=sys.stderr)
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code & 0xFF)


def _limit_memory() -> None:
    """Make a command that asks for too much fail by itself, not the machine."""
    import resource

    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * os.sysconf("SC_PAGE_SIZE") + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _warn_as_usual() -> None:
    """Warnings as in a process of its own: pytest collects them."""
    warnings.resetwarnings()
    for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
        warnings.simplefilter("ignore", category)
    warnings.showwarning = lambda message, category, name, line, file=None, text=None: print(
        warnings.formatwarning(message, category, name, line, text), end="", file=sys.stderr
    )


def judge(
    argv: Sequence[str],
    folder: Path,
    outputs: Sequence[str],
    valid: bool | None,
    word: str = "",
    time_out: float = TIME_OUT,
) -> tuple[Ended, list[str]]:
    """Run a command; return how it ended, and the faults found.

    `valid`: whether the input is; None where it may be either, so that only the manner counts. A refusal has
    exit code 2 and one line, which holds `word`, writes none of `outputs`, and no command changes a file
    other than them.
    """
    before = hashes(folder)
    ended = run(argv, folder, time_out)
    faults = []
    if ended.code is None:
        faults.append(f"still running after {time_out:g} s")
    elif ended.code < 0:
        faults.append(f"killed by {signal.Signals(-ended.code).name}")
    if "Traceback" in ended.errors:
        faults.append(f"traceback: {ended.errors.strip().splitlines()[-1][:200]}")
    if ended.code == 0:
        if valid is False:
            faults.append("accepted, though it is invalid")
        faults += [f"exit code 0 without {name}" for name in outputs if not (folder / name).is_file()]
    elif not faults:
        faults += _manner(ended, word if valid is False else "")
        if valid:
            faults.append(f"refused, though it is valid: {ended.errors.strip()[:200]}")
    mine = set(outputs) if ended.code == 0 else set()
    after = hashes(folder)
    faults += [
        f"changed or lost {name}" for name in before if name not in mine and after.get(name) != before[name]
    ]
    if ended.code != 0:
        faults += [f"failed, but wrote {name}" for name in outputs if name in after and name not in before]
    return ended, faults


def _manner(ended: Ended, word: str) -> list[str]:
    """Return the faults of a refusal."""
    faults = [] if ended.code == 2 else [f"exit code {ended.code} in place of 2"]
    lines = ended.errors.splitlines()
    if len(lines) != 1 or not ended.errors.endswith("\n"):
        faults.append(f"{len(lines)} lines on standard error: {ended.errors[:200]!r}")
    elif not lines[0].startswith("dpmc: error: "):
        faults.append(f"an error that does not begin as one: {lines[0][:200]!r}")
    elif word.lower() not in lines[0].lower():
        faults.append(f"the error does not say {word!r}: {lines[0][:200]!r}")
    return faults


def hashes(folder: Path) -> dict[str, str]:
    """Return a hash of each file of a folder, by name."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
