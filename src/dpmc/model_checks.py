"""Checks of a model's methods: real numbers of the right shape, each value depending on one row only.

Every sensitivity bound depends on this. So shapes are checked at every call. Before any budget is reserved, a
user's model is called with public dummy rows: all together, all together again, and one by one.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from dpmc.errors import DpmcError
from dpmc.values import shown


class WrongResult(DpmcError):
    """A result of a model's method that has the wrong type or shape."""


LEAST_DUMMIES = 5  #: least number of dummy rows
#: Allowed difference between rows together and one by one, relative to the largest value. A model may compute
#: in single precision.
ROUNDING = 1e-6
STEP = 1e-4  #: of finite differences, for parameters up to 1
TOLERANCE = 1e-3  #: between finite differences and a gradient, relative to the largest of several rows


def real_array(found: Any, shape: tuple[int, ...], where: str) -> np.ndarray:
    """Return `found` as floats if it is an array of real numbers of this shape.

    Raises WrongResult otherwise; its message begins with `where`.
    """
    try:
        array = np.asarray(found)
    except ValueError:  # a list of lists of different lengths
        array = np.asarray(None)
    if array.dtype.kind not in "fiu":
        kind = type(found).__name__ if array.dtype.kind == "O" else f"{array.dtype} numbers"
        raise WrongResult(f"{where}: returned {kind}, must be real numbers of shape {shape}")
    if array.shape != shape:
        raise WrongResult(
            f"{where}: returned shape {array.shape}, must be {shape}{_hint(array.shape, shape)}"
        )
    return array.astype(float, copy=False)


def _hint(found: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    """Return a likely cause of a result that has not one number per row."""
    if len(wanted) != 1:
        return ""
    if found == ():
        return ": one number per row, not their sum"
    if found == wanted * 2:
        return ": a (n, 1) array beside a (n,) one makes (n, n)"
    return ": one number per row" if len(found) == 1 else ": sum over the columns, axis=1"


def _offers(model: Any, method: str) -> bool:
    """Return whether a user's model defines a method itself."""
    offers = getattr(model, "offers", None)  # of `dpmc.models.own.OwnModel`, which supplies missing methods
    return bool(offers(method)) if offers else hasattr(model, method)


def name_of(model: Any) -> str:
    """Return a model's name for messages."""
    return str(getattr(model, "__dict__", {}).get("_name", type(model).__name__))


def log_likelihood(model: Any, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the model's log-likelihood of each row, (n,); raise WrongResult for a wrong shape or type."""
    where = f"model: {name_of(model)}: log_likelihood"
    return real_array(model.log_likelihood(theta, rows), (len(rows),), where)


def log_likelihood_gradient(model: Any, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the gradients of the rows (n, d); raise WrongResult for a wrong shape or type."""
    where = f"model: {name_of(model)}: log_likelihood_gradient"
    return real_array(model.log_likelihood_gradient(theta, rows), (len(rows), len(theta)), where)


def statistics(model: Any, rows: np.ndarray) -> np.ndarray:
    """Return the model's statistics of each row, (n, k); raise WrongResult for a wrong shape or type."""
    found = model.statistics(rows)
    k = np.shape(found)[1] if np.ndim(found) == 2 else 1
    return real_array(found, (len(rows), k), f"model: {name_of(model)}: statistics")


def try_out(model: Any, columns: int, theta: np.ndarray, gradients: bool) -> None:
    """Check a user's model on dummy rows with this number of columns, at a public position θ (d,).

    Gradients are called if they are needed or defined, and compared with finite differences if needed.
    Raises DpmcError if a method returns a wrong result, or if a row's value depends on the other rows or
    changes from call to call. Models of this package are not checked.
    """
    if type(model).__module__.startswith("dpmc.models.") and not hasattr(model, "offers"):
        return
    model.log_prior(theta)
    if gradients or _offers(model, "log_prior_gradient"):
        model.log_prior_gradient(theta)
    _try_forms(model, theta)
    asked: list[tuple[str, Callable[[np.ndarray], np.ndarray]]] = []
    if hasattr(model, "statistics"):
        asked.append(("statistics", lambda rows: statistics(model, rows)))
    if hasattr(model, "log_likelihood"):
        asked.append(("log_likelihood", lambda rows: log_likelihood(model, theta, rows)))
        needed = gradients and not hasattr(model, "statistics")
        if needed or _offers(model, "log_likelihood_gradient"):
            gradient = "log_likelihood_gradient"
            asked.append((gradient, lambda rows: log_likelihood_gradient(model, theta, rows)))
    dummies = _dummies(model, columns, theta)
    for method, ask in asked:
        _try_method(f"model: {name_of(model)}: {method}", ask, dummies)
    if gradients:
        _check_gradients(model, theta, dummies)


def _try_forms(model: Any, theta: np.ndarray) -> None:
    """Raise WrongResult if an affine or softplus form has a wrong shape."""
    two = np.stack([theta, theta])
    forms = {"ratio_form": (two, two), "gradient_form": (two,), "line": (two,), "link": (two,)}
    for method, arguments in forms.items():
        if hasattr(model, "statistics") and hasattr(model, method):
            slopes, offsets = getattr(model, method)(*arguments)
            shape = two.shape if method == "gradient_form" else (2,)
            where = f"model: {name_of(model)}: {method}"
            real_array(offsets, shape, where)
            real_array(slopes, (*shape, np.shape(slopes)[-1]), where)


def gradient_by_form(model: Any, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the gradient of each row's log-likelihood (n, d) by the model's affine form."""
    linear, constant = model.gradient_form(theta[None])
    found: np.ndarray = statistics(model, rows) @ linear[0].T + constant[0]
    return found


def _check_gradients(model: Any, theta: np.ndarray, dummies: list[np.ndarray]) -> None:
    """Compare gradients with finite differences, at a public position θ (d,) and on public rows.

    Raises WrongResult naming the first component that differs.
    """
    if _offers(model, "log_prior_gradient"):
        _compare(
            f"model: {name_of(model)}: log_prior_gradient",
            lambda at: np.atleast_1d(model.log_prior(at)),
            np.asarray(model.log_prior_gradient(theta))[None],
            theta,
        )
    known = {"log_likelihood_gradient": log_likelihood_gradient, "gradient_form": gradient_by_form}
    for method, gradient in known.items():
        for rows in dummies if _offers(model, method) else ():
            differences = functools.partial(_log_likelihood_at, model, rows)
            try:
                _compare(
                    f"model: {name_of(model)}: {method}", differences, gradient(model, theta, rows), theta
                )
            except WrongResult:
                raise
            except Exception:  # made-up rows may be the cause; other failures are found by `_try_method`
                continue


def _log_likelihood_at(model: Any, rows: np.ndarray, theta: np.ndarray) -> np.ndarray:
    return log_likelihood(model, theta, rows)


def _compare(
    where: str, function: Callable[[np.ndarray], np.ndarray], gradient: np.ndarray, theta: np.ndarray
) -> None:
    """Raise WrongResult if `gradient` (m, d) is not that of `function`, θ (d,) -> (m,).

    Central differences are taken with one step and with twice that step. Their difference bounds their error,
    also for single precision and at kinks.
    """
    with np.errstate(all="ignore"):
        for i in range(len(theta)):
            step = np.zeros(len(theta))
            step[i] = STEP * max(1.0, abs(theta[i]))
            near, far = (
                (function(theta + k * step) - function(theta - k * step)) / (2.0 * k * step[i])
                for k in (1, 2)
            )
            known = np.isfinite(near) & np.isfinite(far) & np.isfinite(gradient[:, i])
            if not known.any():
                continue
            size = np.maximum(np.abs(near), np.abs(gradient[:, i]))[known].max()
            error = np.abs(near - far)[known].max()
            differs = known & (np.abs(gradient[:, i] - near) > 10.0 * error + TOLERANCE * size)
            if differs.any():
                row = int(np.flatnonzero(differs)[0])
                raise WrongResult(
                    f"{where}: component {i} is {gradient[row, i]:.6g} at theta = {shown(theta.tolist())}, "
                    f"finite differences give {near[row]:.6g}"
                )


def _dummies(model: Any, columns: int, theta: np.ndarray) -> list[np.ndarray]:
    """Return public rows (m, columns): simulated if the model can, else made up, of several kinds."""
    m = LEAST_DUMMIES
    while m in (len(theta), columns):  # so that swapped axes are detected
        m += 1
    generator = np.random.default_rng(0)
    normal = generator.standard_normal((m, columns))
    made_up = [normal, 0.5 + np.abs(normal), np.arange(m * columns, dtype=float).reshape(m, columns) % 2.0]
    if not hasattr(model, "simulate"):
        return made_up
    simulated = np.asarray(model.simulate(generator, theta, m), dtype=float)
    if simulated.shape != (m, columns):
        raise DpmcError(
            f"model: {name_of(model)}: simulate: returned shape {simulated.shape}, must be {(m, columns)}: "
            "n rows with as many columns as the data"
        )
    return [simulated]


def _try_method(where: str, ask: Callable[[np.ndarray], np.ndarray], dummies: list[np.ndarray]) -> None:
    """Compute all rows together, again, and one by one; raise DpmcError if they differ or all calls fail."""
    failed: list[Exception] = []
    for rows in dummies:
        try:
            with np.errstate(all="ignore"):
                together = ask(rows)
                again = ask(rows.copy())
                alone = np.concatenate([ask(rows[j : j + 1]) for j in range(len(rows))])
        except WrongResult:
            raise
        except Exception as error:  # a user's code may raise anything, and made-up rows may be the reason
            failed.append(error)
            continue
        if not _agree(together, again):
            raise DpmcError(f"{where}: two calls with the same rows differ, must depend only on rows and θ")
        if not _agree(together, alone):
            raise DpmcError(
                f"{where}: the value of a row changes with the other rows, must depend on that row alone "
                "(else no sensitivity bound holds)"
            )
    if len(failed) == len(dummies):
        raise DpmcError(
            f"{where}: failed on dummy rows ({failed[0]}); if only such rows are the cause, give the model "
            "simulate(generator, theta, n), whose rows are then used"
        )


def _agree(one: np.ndarray, other: np.ndarray) -> bool:
    """Return whether two arrays differ only by rounding."""
    with np.errstate(all="ignore"):
        finite = np.abs(one[np.isfinite(one)])
        scale = float(finite.max(initial=0.0))
        return bool(np.allclose(one, other, rtol=ROUNDING, atol=ROUNDING * scale, equal_nan=True))
