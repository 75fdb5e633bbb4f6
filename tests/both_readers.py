"""A table read for an experiment and for a release: what must be the same is compared here."""

import re
import warnings
from typing import Any

import numpy as np

from dpmc.common.errors import DpmcError
from dpmc.data.tables import read_rows


def outcome(*arguments: Any, **options: Any) -> Any:
    """Return the rows, or the message of the error, which is one line; a warning fails."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return read_rows(*arguments, **options)
        except DpmcError as error:
            assert "\n" not in str(error)
            return str(error)


def both(*arguments: Any) -> tuple[Any, str]:
    """Return the rows of a release, with NaN or infinity for odd entries, and the message of an experiment.

    Without odd entries both have the same rows, and the message is "". What a release refuses, an experiment
    refuses in the same words: then both are the message. Else an experiment refuses the first odd entry.
    """
    released, lab = outcome(*arguments, private=True), outcome(*arguments)
    if isinstance(released, str):
        assert lab == released
        return released, released
    odd = np.flatnonzero(~np.isfinite(released).all(axis=1))
    if not len(odd):
        np.testing.assert_array_equal(lab, released)
        return released, ""
    assert isinstance(lab, str)
    place = re.search(r": (row|line) (\d+)", lab)
    assert place and int(place[2]) - (1 if place[1] == "row" else 2) == odd[0], lab
    return released, lab
