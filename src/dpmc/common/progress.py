"""Progress: a line on a terminal, else messages of the logger "dpmc"."""

import sys
import time
from collections.abc import Callable

from dpmc.common.logs import LOGGER

#: Called with what is done, the total, and if it has one, a word about the state.
Progress = Callable[..., None]


def live_line(name: str, what: str = "iterations") -> Progress:
    """Return `report(done, total, word="")` of `what`: one line on a terminal, else a message every 10 s."""
    began = last = time.monotonic()
    live = sys.stderr.isatty()

    def report(done: int, total: int, word: str = "") -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < (0.2 if live else 10.0) and done < total:
            return
        last = now
        left = (now - began) * (total - done) / done
        text = f"{name}: {done}/{total} {what}, {now - began:.0f} s, about {left:.0f} s left"
        text += f", {word}" if word else ""
        if live:
            print("\r\033[K" + ("" if done == total else text), end="", file=sys.stderr, flush=True)
        if done == total or not live:
            LOGGER.info("%s", text)

    return report
