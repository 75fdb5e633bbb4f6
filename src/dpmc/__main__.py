"""The command `dpmc`: hands over to the starter of a run (starter.py) if there is one, or runs here.

It imports next to nothing, so that handing over is cheap.
"""

import json
import os
import signal
import socket
import sys

#: The variable that holds the address of a run's starter.
STARTER = "DPMC_STARTER"
REFUSED = b"refused"  #: its answer to who needs another Python, or variables that its libraries have not read


def main() -> int:
    """Run the command of the command line; return its exit code."""
    if STARTER in os.environ:
        status = _hand_over(os.environ.pop(STARTER))
        if status is not None:
            return status
    from dpmc import cli

    return cli.main()


def _hand_over(address: str) -> int | None:
    """Let the starter run the command; return its exit code, or None if it has to be run here."""
    request = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ), installation()]).encode()
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(address)
            socket.send_fds(connection, [len(request).to_bytes(4, "big")], [0, 1, 2])
            connection.sendall(request)
        except OSError:  # it has ended, or a standard file is closed
            return None
        # The job gets it too, being in the same process group, and we hear how it ends.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            answer = connection.recv(16)
        except OSError:
            answer = b""
    if answer == REFUSED:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return None
    if not answer:
        print("dpmc: error: the run that started this command has ended", file=sys.stderr)
        return 1
    return int(answer)


def installation() -> list[str]:
    """Which Python this is, and where its dpmc."""
    return [sys.prefix, os.path.dirname(__file__)]


if __name__ == "__main__":
    sys.exit(main())
