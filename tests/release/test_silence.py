"""What a model writes about a row, and where an interrupt meets a release, is not shown."""

import ctypes
import io
import logging
import os
import subprocess
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmc.evaluators.calls import silent
from dpmc.privacy.data_ledger import DataLedger
from dpmc.releases import files as release_files

KEPT = """
import ctypes, sys
out, err = sys.stdout, sys.stderr
from dpmc.releases import files as release_files
from dpmc.evaluators.calls import silent
print("before")
ctypes.CDLL(None).printf(b"before\\n")
with silent():
    print("odd row", file=out)
    err.write("odd row")
    sys.__stdout__.write("odd row")
    ctypes.CDLL(None).printf(b"odd row\\n")
print("after")
"""

#: A release that notes the result in a file, because its standard streams may be closed.
RELEASE = """
import sys, numpy as np, dpmc
model = dpmc.LinearRegression("y", ["x"], tempering=20)
given = {"tau": 2.0, "clip": 1.0, "proposal_sd": [0.1, 0.1]}
tree = dpmc.release(model, np.zeros((60, 2)), epsilon=4, delta=1e-3, ledger="people.ledger",
    hyperparameters=given, iterations=4, output="release.nc", progress=False)
open("done", "w").write(str(tree.attrs["iterations"]))
"""


def test_buffers_are_emptied_before_the_streams_come_back(tmp_path: Path) -> None:
    buffered = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    with open(tmp_path / "out", "w") as out, open(tmp_path / "err", "w") as err:
        subprocess.run([sys.executable, "-c", KEPT], stdout=out, stderr=err, env=buffered, check=True)
    assert sorted((tmp_path / "out").read_text().split()) == ["after", "before", "before"]
    assert (tmp_path / "err").read_text() == ""


def test_handlers_of_other_streams_get_no_record_and_the_level_comes_back() -> None:
    stream, logger = io.StringIO(), logging.getLogger("of a model")
    logger.addHandler(handler := logging.StreamHandler(stream))
    logging.disable(logging.DEBUG)
    try:
        with silent():
            logger.critical("odd row")
            logger.log(10**6, "odd row")
        assert stream.getvalue() == ""
        logger.warning("after")
        logger.debug("hidden as before")
        assert stream.getvalue() == "after\n"
    finally:
        logging.disable(logging.NOTSET)
        logger.removeHandler(handler)


def test_streams_that_cannot_be_flushed_are_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    for stream in (None, closed, object()):
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", stream)
            patch.setattr(sys, "stderr", stream)
            with silent():
                ctypes.CDLL(None).printf(b"odd row\n")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_release_with_closed_streams_is_made(closed: str, ledger: DataLedger, tmp_path: Path) -> None:
    command = f'exec "$0" -c "$1" {closed}'
    subprocess.run(["sh", "-c", command, sys.executable, RELEASE], cwd=tmp_path, check=True)
    assert (tmp_path / "done").read_text() == "4"
    assert len(DataLedger.open(ledger.path).entries) == 1


class Failing:
    """A model that is interrupted at a row of 55, and at one of 77 after it failed on the block with it."""

    dimension, columns = 2, ("y", "x")

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        if (rows[:, 0] == 77.0).all():  # the row alone
            raise KeyboardInterrupt
        if (rows[:, 0] == 77.0).any():
            raise ValueError("odd row")
        if (rows[:, 0] == 55.0).any():
            raise KeyboardInterrupt
        return -0.5 * (rows[:, 0] - theta[0] - theta[1] * rows[:, 1]) ** 2


class Strict:
    """A model that asks NumPy and Python for errors, as one does to find a mistake."""

    dimension = 1

    def log_likelihood(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        np.seterr(all="raise")
        warnings.simplefilter("error")
        return -0.5 * (rows[:, 1] - theta[0] * rows[:, 0]) ** 2

    def check_rows(self, rows: np.ndarray) -> None:
        np.seterr(all="raise")
        warnings.simplefilter("error")

    def log_prior(self, theta: np.ndarray) -> float:
        return -0.5 * float((theta**2).sum())


def test_errors_that_a_model_asks_for_end_with_its_call(make: Any) -> None:
    rows = np.random.default_rng(1).standard_normal((60, 2))
    odd = rows.copy()
    odd[7] = 1e150, -1e150
    values = {"tau": 2.0, "clip": 1e-3, "proposal_sd": [0.1]}
    state = np.geterr()
    for data in (rows, odd):
        tree = make(data=data, model=Strict(), start=[[0.0]], hyperparameters=values)
        assert release_files.check(tree) == []
    assert np.geterr() == state


def test_an_interrupt_shows_nothing_of_where_it_was(make: Any) -> None:
    seen = []
    for odd in (55.0, 77.0):
        rows = np.random.default_rng(0).standard_normal((60, 2))
        rows[3, 0] = odd
        with pytest.raises(KeyboardInterrupt) as caught:
            make(rows, Failing())
        assert caught.value.__context__ is None and caught.value.__cause__ is None
        frames = traceback.extract_tb(caught.value.__traceback__)
        seen.append([(frame.filename, frame.name, frame.lineno) for frame in frames])
    assert seen[0] == seen[1] and seen[0][-1][1] == "call"
