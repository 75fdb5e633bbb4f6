"""The change of a softplus against extended precision: a few units in the last place, wherever it is."""

import math
from typing import Any

import numpy as np

from dpmc.evaluators import kernels


def tail(z: np.ndarray) -> np.ndarray:
    """ln(1 + e^−|z|) in extended precision."""
    return np.log1p(np.exp(-np.abs(z.astype(np.longdouble))))


def change(old: Any, new: Any, sign: float = 1.0) -> np.ndarray:
    """sign · (softplus(new) − softplus(old)) by the kernel."""
    old, new = np.array(old, dtype=float), np.array(new, dtype=float)
    out, power = np.zeros(new.shape), np.empty(new.shape)
    with np.errstate(all="ignore"):
        kernels.add_softplus_change(old, new, sign, power, power.view(np.int64), out)
    return out


def places() -> np.ndarray:
    """Numbers from −745 to 745, dense where softplus bends and around the changes of an exponent."""
    generator = np.random.default_rng(1)
    steps = math.log(2.0) * (np.arange(-1074, 1075) + 0.5)
    edges = [-745.1, -745.0, 0.0, -0.0, 5e-324, -5e-324, 1e-17, -1e-300, 36.7, -36.7, -708.4, -708.3]
    wide, narrow = generator.uniform(-745.0, 745.0, 5000), generator.normal(0.0, 3.0, 20_000)
    return np.concatenate([wide, narrow, steps, np.nextafter(steps, 0.0), edges])


def test_exponentials_are_right_to_a_few_units_in_the_last_place() -> None:
    z = places()
    found, power = z.copy(), np.empty(z.shape)
    kernels.exponentials(found, power, power.view(np.int64))
    wanted = np.exp(-np.abs(z.astype(np.longdouble)))
    assert (np.abs(found - wanted) <= 5e-16 * wanted + np.longdouble(5e-324)).all()


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


def test_changes_of_softplus_at_infinities_and_nan() -> None:
    inf, nan = np.inf, np.nan
    old = [-inf, inf, -inf, inf, 0.0, nan, 0.0, -nan, nan, -inf, 1e300, -1e300, 0.0]
    new = [-inf, inf, inf, -inf, inf, 0.0, nan, nan, inf, -inf, -1e300, 1e300, 0.0]
    wanted = [0.0, nan, inf, -inf, inf, nan, nan, nan, nan, 0.0, -1e300, 1e300, 0.0]
    np.testing.assert_array_equal(change(old, new), wanted)
    np.testing.assert_array_equal(change(old, new, -1.0), -np.array(wanted))
