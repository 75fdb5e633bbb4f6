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

#: The variable that holds the name of a starter's socket. Set and empty: there shall be no starter.
STARTER = "DPMC_STARTER"

#: A starter's answers: one of these at first, and the exit code at the end of what was begun.
BEGUN, REFUSED = b"begun\n", b"refused\n"


def main() -> int:
    """Run the command of the command line; return its exit code."""
    address = os.environ.pop(STARTER, "")
    if address:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
            if _hand_over(connection, address):
                return _wait(connection)
    from dpmc import cli

    return cli.main()


def _hand_over(connection: socket.socket, address: str) -> bool:
    """Whether a starter runs the command; OSError if there is none."""
    if connection.fileno() < 3:  # a standard file is closed: the job would get this in its place
        return False
    request = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ), installation()]).encode()
    connection.connect("\0" + address)
    if not same_user(connection):
        return False
    socket.send_fds(connection, [len(request).to_bytes(4, "big")], [0, 1, 2])
    connection.sendall(request)
    before = signal.getsignal(signal.SIGINT)
    if before != signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda *_: _interrupt(connection))
    begun = _line(connection) == BEGUN
    if not begun:
        signal.signal(signal.SIGINT, before)
    return begun


def _interrupt(connection: socket.socket) -> None:
    """Pass an interrupt on: the job is in a process group of its own, where no terminal reaches it."""
    with contextlib.suppress(OSError):
        connection.send(b"i")


def _wait(connection: socket.socket) -> int:
    """The exit code of a job that was begun."""
    with contextlib.suppress(OSError):
        answer = _line(connection)
        if answer:
            return int(answer)
    print("dpmc: error: the run that started this command has ended", file=sys.stderr)
    return 1


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
