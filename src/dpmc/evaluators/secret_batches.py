"""Batches of rows drawn with secret random numbers, uniformly and without replacement."""

import os

import numpy as np


def draw_batch(n: int, size: int) -> np.ndarray:
    """Return `size` different numbers below n (size,), from the operating system's entropy.

    Words are cut to the bits of n − 1 and those of n or more are drawn again, so that all batches are equally
    likely. Of more than half of all rows, those that are left out are drawn.
    """
    if 2 * size > n:
        kept = np.ones(n, np.bool_)
        kept[draw_batch(n, n - size)] = False
        return np.flatnonzero(kept)
    mask, chosen = np.uint64((1 << (n - 1).bit_length()) - 1), np.empty(0, np.int64)
    while len(chosen) < size:
        words = np.frombuffer(os.urandom(8 * (2 * size + 8)), np.uint64) & mask
        drawn = np.concatenate([chosen, words[words < n].astype(np.int64)])
        _, first = np.unique(drawn, return_index=True)
        chosen = drawn[np.sort(first)][:size]
    return chosen
