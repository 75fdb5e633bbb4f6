"""How many threads are inside a lock at once."""

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager


def most_inside(enter: Callable[[], AbstractContextManager[None]]) -> int:
    """Return the largest number of threads that were inside at once, of eight that enter three times each.

    Who comes again finds no file, while others wait for the one that was removed.
    """
    inside, most = [0], [0]

    def one() -> None:
        for _ in range(3):
            with enter():
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                time.sleep(0.005)
                inside[0] -= 1

    threads = [threading.Thread(target=one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return most[0]
