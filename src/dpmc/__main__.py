"""The command `dpmc`: hands over to the starter of a run (starter.py) if there is one, or runs here.

It imports next to nothing, so that handing over is cheap: `signal`, `socket` and `json` import enumerations
and patterns, which take as long as Python to begin. The interpreter's own modules beneath them will do.
"""

import _signal  # type: ignore[import-not-found]
import _socket
import os
import sys

#: The variable that holds the name of a starter's socket. Set and empty: there shall be no starter.
STARTER = "DPMC_STARTER"

#: A starter's answers: one of these at first, and the exit code at the end of what was begun.
BEGUN, REFUSED = b"begun\n", b"refused\n"


def main() -> int:
    """Run the command of the command line; return its exit code."""
    address = os.environ.pop(STARTER, "")
    status = _by_starter(address) if address else None
    if status is not None:
        return status
    from dpmc import cli

    return cli.main()


def _by_starter(address: str) -> int | None:
    """The exit code of the command, run by a starter; None if it has to be run here."""
    interrupts: list[int] = []
    begun, answer = False, b""
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    before = _pass_on(connection, interrupts)
    try:
        begun = _hand_over(connection, address, interrupts)
        answer = _line(connection) if begun else b""
    except OSError:
        pass
    finally:
        _signal.signal(_signal.SIGINT, before)
        connection.close()
    if not begun and interrupts:
        print("dpmc: interrupted", file=sys.stderr)
        return 128 + int(_signal.SIGINT)
    if begun and not answer:
        try:
            print("dpmc: error: the run that started this command has ended", file=sys.stderr)
        except OSError:
            pass
        return 1
    return int(answer) if begun else None


def _pass_on(connection: _socket.socket, interrupts: list[int]) -> object:
    """Pass interrupts on: the job is in a process group of its own, where no terminal reaches it.

    Returns what became of them before.
    """
    before = _signal.getsignal(_signal.SIGINT)

    def interrupt(*_: object) -> None:
        interrupts.append(_signal.SIGINT)
        try:
            connection.send(b"i")
        except OSError:
            pass

    if before != _signal.SIG_IGN:
        _signal.signal(_signal.SIGINT, interrupt)
    return before


def _hand_over(connection: _socket.socket, address: str, interrupts: list[int]) -> bool:
    """Whether a starter has begun the command; OSError if there is none."""
    if connection.fileno() < 3:  # a standard file is closed: the job would get this in its place
        return False
    request = packed(sys.argv[1:], os.getcwd(), dict(os.environ), installation())
    connection.connect("\0" + address)
    if not same_user(connection):
        return False
    files = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
    with_files = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)]
    _signal.pthread_sigmask(_signal.SIG_BLOCK, [_signal.SIGINT])  # nothing comes into the middle of a request
    try:
        if interrupts:
            return False
        connection.sendmsg([len(request).to_bytes(4, "big")], with_files)
        connection.sendall(request)
    finally:
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, [_signal.SIGINT])
    return _line(connection) == BEGUN


def packed(arguments: list[str], folder: str, variables: dict[str, str], where: list[str]) -> bytes:
    """A request: what none of these can hold, a byte 0, stands between them."""
    settings = [f"{name}={value}" for name, value in variables.items()]
    parts = [str(len(arguments)), *arguments, folder, str(len(where)), *where, *settings]
    return b"\0".join(os.fsencode(part) for part in parts)


def unpacked(request: bytes) -> tuple[list[str], str, dict[str, str], list[str]]:
    """What was `packed`. Raises ValueError for anything else."""
    parts = [os.fsdecode(part) for part in request.split(b"\0")]
    count, rest = int(parts[0]), parts[1:]
    arguments, rest = rest[:count], rest[count:]
    if len(rest) < 2:
        raise ValueError("a request broke off")
    folder, count, rest = rest[0], int(rest[1]), rest[2:]
    where, settings = rest[:count], rest[count:]
    if not all("=" in setting for setting in settings):
        raise ValueError("a variable has no value")
    return arguments, folder, dict(setting.split("=", 1) for setting in settings), where


def _line(connection: _socket.socket) -> bytes:
    """The next line of an answer; empty if there is none."""
    line = b""
    while not line.endswith(b"\n"):
        byte = connection.recv(1)
        if not byte:
            return b""
        line += byte
    return line


def same_user(connection: _socket.socket) -> bool:
    """Whether the other end is ours: names of sockets without a file are open to all users of a machine."""
    # of three whole numbers, of four bytes each: process, user, group (unix(7))
    about = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    return int.from_bytes(about[4:8], sys.byteorder) == os.getuid()


def installation() -> list[str]:
    """Which Python this is, and where its dpmc."""
    return [sys.prefix, os.path.dirname(__file__)]


if __name__ == "__main__":
    sys.exit(main())
