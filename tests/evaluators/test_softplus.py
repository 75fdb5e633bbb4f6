"""The change of a softplus against extended precision: a few units in the last place, wherever it is."""

from typing import Any

import numpy as np

from dpmc.evaluators import kernels


def tail(z: np.ndarray) -> np.ndarray:
    """ln(1 + e^−|z|) in extended precision."""
    return np.log1p(np.exp(-np.abs(z.astype(np.longdouble))))


def change(old: Any, new: Any, sign: float = 1.0) -> np.ndarray:
    """sign · (softplus(new) − softplus(old)) by the kernel."""
    old, new = np.array(old, dtype=float), np.array(new, dtype=float)
    out = np.zeros(new.shape)
    with np.errstate(all="ignore"):
        kernels.add_softplus_change(old, new, sign, out)
    return out


def test_the_change_of_softplus_is_accurate_for_short_moves() -> None:
    generator = np.random.default_rng(2)
    old = generator.normal(0.0, 12.0, 15_000)
    move = generator.normal(0.0, 1.0, 15_000) * 10.0 ** generator.uniform(-12.0, 0.0, 15_000)
    new = old + move
    step, middle = new.astype(np.longdouble) - old, 0.5 * (new.astype(np.longdouble) + old)
    weight = 1.0 / (1.0 + np.exp(-middle))
    short = np.abs(move) < 1e-5
    slope = step * weight  # by the midpoint rule, relative error step² / 24
    assert (np.abs(change(old, new) - slope)[short] <= 1e-11 * np.abs(slope[short]) + 1e-15)[
        np.abs(old[short]) < 5.0
    ].all()
    linear = np.maximum(new, 0.0).astype(np.longdouble) - np.maximum(old, 0.0)
    wanted = linear + (tail(new) - tail(old))
    scale = np.abs(linear) + tail(old) + tail(new)
    assert (np.abs(change(old, new) - wanted) <= 6e-16 * scale).all()
