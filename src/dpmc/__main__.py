"""The command `dpmc`: hands over to the starter of a run (starter.py) if there is one, or runs here.

It imports next to nothing, so that handing over is cheap.
"""

import contextlib
import json
import os
import signal
import socket
import struct
import sys
from collections.abc import Iterator

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
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
        with _passing_on(connection, interrupts):
            begun = _hand_over(connection, address, interrupts)
            answer = _line(connection) if begun else b""
    if not begun and interrupts:
        print("dpmc: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT
    if begun and not answer:
        with contextlib.suppress(OSError):
            print("dpmc: error: the run that started this command has ended", file=sys.stderr)
        return 1
    return int(answer) if begun else None


@contextlib.contextmanager
def _passing_on(connection: socket.socket, interrupts: list[int]) -> Iterator[None]:
    """Pass interrupts on: the job is in a process group of its own, where no terminal reaches it."""
    before = signal.getsignal(signal.SIGINT)

    def interrupt(*_: object) -> None:
        interrupts.append(signal.SIGINT)
        with contextlib.suppress(OSError):
            connection.send(b"i")

    if before != signal.SIG_IGN:
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _hand_over(connection: socket.socket, address: str, interrupts: list[int]) -> bool:
    """Whether a starter has begun the command; OSError if there is none."""
    if connection.fileno() < 3:  # a standard file is closed: the job would get this in its place
        return False
    request = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ), installation()]).encode()
    connection.connect("\0" + address)
    if not same_user(connection):
        return False
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # nothing comes into the middle of a request
    try:
        if interrupts:
            return False
        socket.send_fds(connection, [len(request).to_bytes(4, "big")], [0, 1, 2])
        connection.sendall(request)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    return _line(connection) == BEGUN


def _line(connection: socket.socket) -> bytes:
    """The next line of an answer; empty if there is none."""
    line = b""
    while not line.endswith(b"\n"):
        byte = connection.recv(1)
        if not byte:
            return b""
        line += byte
    return line


def same_user(connection: socket.socket) -> bool:
    """Whether the other end is ours: names of sockets without a file are open to all users of a machine."""
    about = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    user: int = struct.unpack("3i", about)[1]
    return user == os.getuid()


def installation() -> list[str]:
    """Which Python this is, and where its dpmc."""
    return [sys.prefix, os.path.dirname(__file__)]


if __name__ == "__main__":
    sys.exit(main())
