"""Calls of a model's methods on rows: results are real numbers of the right shape, and nothing is printed.

Every sensitivity bound needs one value for each row. So shapes are checked at every call.
"""

import ctypes
import functools
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import TextIO, cast

import numpy as np
from scipy.special import expit

from dpmc.base import AffineModel, GradientModel, Model, SoftplusModel, SummaryModel
from dpmc.common.errors import DpmcError

LARGEST_VALUE = 1e150  #: of a row, so that its square is finite
MOST_ROWS = 16384  #: rows of one call of `log_likelihood` that sums over all rows, at most


class WrongResult(DpmcError):
    """A result of a model's method that has the wrong type or shape."""


@contextmanager
def without_warnings() -> Iterator[None]:
    """Show no warning of Python or NumPy, whatever the rows: whether one appears may depend on them."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def silent() -> Iterator[None]:
    """Show no warning, and drop what is printed or logged, also by compiled code: it may depend on rows.

    So is what standard streams and C's have in their buffers. What a model writes to a stream of its own, or
    to a notebook's stream that it kept, is not.
    """
    open_closed_streams()
    streams = (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
    flush(*streams)
    kept, disabled = [(number, os.dup(number)) for number in (1, 2)], logging.root.manager.disable
    try:
        with (
            open(os.devnull, "w") as nowhere,
            redirect_stdout(nowhere),
            redirect_stderr(nowhere),
            without_warnings(),
        ):
            logging.disable(sys.maxsize)  # a handler may write to another stream
            for number, _ in kept:
                os.dup2(nowhere.fileno(), number)
            yield
    finally:
        flush(*streams)  # while the descriptors lead nowhere
        logging.disable(disabled)
        for number, copy in kept:
            os.dup2(copy, number)
            os.close(copy)


def open_closed_streams() -> None:
    """Let the descriptors 0, 1 and 2 lead nowhere if they are closed: the next file opened would get one."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number


def flush(*streams: TextIO | None) -> None:
    """Write out the buffers of streams and of C's; skip a stream that cannot be written."""
    for stream in streams:
        with suppress(Exception):
            stream.flush()  # type: ignore[union-attr]
    ctypes.CDLL(None).fflush(None)


def real_array(result: object, shape: tuple[int, ...], where: str) -> np.ndarray:
    """Return `result` as floats if it is an array of real numbers of this shape.

    Raises WrongResult otherwise; its message begins with `where`.
    """
    try:
        array = np.asarray(result)
    except ValueError:  # a list of lists of different lengths
        array = np.asarray(None)
    if array.dtype.kind not in "fiu":
        kind = type(result).__name__ if array.dtype.kind == "O" else f"{array.dtype} numbers"
        raise WrongResult(f"{where}: returned {kind}, must be real numbers of shape {shape}")
    if array.shape != shape:
        hint = ""  # a likely cause of a result that has not one number per row
        if len(shape) == 1:
            hint = ": one number per row" if array.ndim == 1 else ": sum over the columns, axis=1"
            causes = {
                (): ": one number per row, not their sum",
                shape * 2: ": a (n, 1) array beside a (n,) one makes (n, n)",
            }
            hint = causes.get(array.shape, hint)
        raise WrongResult(f"{where}: returned shape {array.shape}, must be {shape}{hint}")
    return array.astype(float, copy=False)


def name_of(model: Model) -> str:
    """Return a model's name for messages."""
    return str(getattr(model, "__dict__", {}).get("_name", type(model).__name__))


def log_likelihood(model: Model, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the model's log-likelihood of each row, (n,); raise WrongResult for a wrong shape or type."""
    where = f"model: {name_of(model)}: log_likelihood"
    return real_array(model.log_likelihood(theta, rows), (len(rows),), where)


def log_likelihood_gradient(model: GradientModel, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the gradients of the rows (n, d); raise WrongResult for a wrong shape or type."""
    where = f"model: {name_of(model)}: log_likelihood_gradient"
    return real_array(model.log_likelihood_gradient(theta, rows), (len(rows), len(theta)), where)


def statistics(model: AffineModel | SoftplusModel, rows: np.ndarray) -> np.ndarray:
    """Return the model's statistics of each row, (n, k); raise WrongResult for a wrong shape or type."""
    result = model.statistics(rows)
    k = np.shape(result)[1] if np.ndim(result) == 2 else 1
    return real_array(result, (len(rows), k), f"model: {name_of(model)}: statistics")


def summaries(model: SummaryModel, rows: np.ndarray) -> np.ndarray:
    """Return the model's summaries of each row, (n, k); raise WrongResult for a wrong shape or type."""
    where = f"model: {name_of(model)}: summaries"
    return real_array(model.summaries(rows), (len(rows), model.summary_count), where)


def gradient_by_form(model: AffineModel, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the gradient of each row's log-likelihood (n, d) by the model's affine form."""
    linear, constant = model.gradient_form(theta[None])
    return statistics(model, rows) @ linear[0].T + constant[0]


def gradient_by_sigmoid(model: SoftplusModel, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the gradient of each row's log-likelihood (n, d) by the sigmoid form of a softplus model."""
    (linear, constant), (slopes, offsets) = model.sigmoid_form(theta[None]), model.link(theta[None])
    t = statistics(model, rows)
    weight = model.sign * expit(t @ slopes[0] + offsets[0])[:, None]
    terms = np.concatenate([weight * t, weight, t], axis=1)[:, : linear.shape[2]]
    return terms @ linear[0].T + constant[0]


def offers(model: Model, method: str) -> bool:
    """Return whether a model has this method.

    The copy of a user's own model has every optional method; its `offers` tells those that the user wrote.
    """
    return bool(getattr(model, "offers", functools.partial(hasattr, model))(method))


def gradient(model: Model, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the gradient of each row's log-likelihood (n, d), by the affine form if the model has one."""
    if offers(model, "gradient_form"):
        return gradient_by_form(cast(AffineModel, model), theta, rows)
    return log_likelihood_gradient(cast(GradientModel, model), theta, rows)
