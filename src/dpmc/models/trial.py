"""The trial of a user's model before any budget is reserved: each value must depend on one row only.

Every sensitivity bound depends on this. The model is called at public positions on public dummy rows,
outliers among them: all together, all together again, in halves, a sample of them one by one, in an array
that had other rows before, and as many as the sampler passes at a time.
"""

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import cast

import numpy as np

from dpmc.base import DIFFERENCE_STEP, Model, NoisySum, SummaryModel
from dpmc.common.errors import DpmcError
from dpmc.common.values import shown
from dpmc.evaluators.calls import (
    MOST_ROWS,
    WrongResult,
    gradient_by_form,
    gradient_by_sigmoid,
    log_likelihood,
    log_likelihood_gradient,
    name_of,
    real_array,
    statistics,
    summaries,
    without_warnings,
)
from dpmc.models.own import OwnModel, is_regression_of_ours

LEAST_DUMMIES = 5  #: rows on which gradients are compared with finite differences, at least
DUMMIES, NUMBERS = 1000, 200_000  #: dummy rows of a kind; fewer if they or gradients have more numbers
ALONE = 41  #: every 41st dummy row is also evaluated alone
#: By how much rows in the second half of the dummies are larger than the others, with either sign.
OUTLIERS = (3.0, 10.0, 30.0, 1e2, 1e3, 1e4, 1e6, 1e9, 1e12, 1e15)
#: Share of the dummy rows of some kind whose values must be finite at two positions, else nothing is tried.
LEAST_FINITE = 0.1
#: Allowed difference between rows together and apart, relative to a row's value plus most rows' values. A
#: model may compute in single precision.
ROUNDING = 1e-5
NEAR = 2.0**-50  #: relative difference of positions at which values are equal up to rounding
#: Usual codes of labels and of missing values, which a model may look for in all rows of a call.
CODES = (-1.0, 0.0, 1.0, -9.0, 9.0, -99.0, 99.0, -999.0, 999.0, -9999.0, 9999.0)
SOME = 50  #: components of a gradient that are compared away from the start point, about
TOLERANCE = 1e-3  #: between finite differences and a gradient, relative to the largest of several rows

#: Forms of a gradient, and how it is computed by them; forms at one θ.
BY_FORM = {"gradient_form": gradient_by_form, "sigmoid_form": gradient_by_sigmoid}
OF_ONE_POSITION = (*BY_FORM, "line", "link")

Method = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (θ, rows) -> a value of each row


def try_out(model: Model, shape: tuple[int, int], starts: np.ndarray, gradients: bool) -> None:
    """Check a user's model for rows of this shape (n, columns), at start points (s, d) and near the first.

    Gradients are called if they are needed, or defined and used, and compared with finite differences if
    needed. Raises DpmcError if a method returns a wrong result, if a row's value depends on the other rows or
    changes from call to call, or if there are too few finite values to tell. Models of this package are not
    checked.
    """
    if not isinstance(model, OwnModel):
        if type(model).__module__.startswith("dpmc.models."):
            return
        model = OwnModel(model, type(model).__name__)
    if is_regression_of_ours(model.given):
        return
    start, positions = starts[0], _positions(starts)
    with without_warnings():
        model.log_prior(start)
        if gradients or model.offers("log_prior_gradient"):
            model.log_prior_gradient(start)
        _without_rows(model, [start, start], may_fail=False)
        before = _without_rows(model, positions)
        simulated, made_up, coded = _dummies(model, shape[1], start)

        methods: dict[str, Method] = {"log_likelihood": functools.partial(log_likelihood, model)}
        affine = model.offers("statistics")
        if affine:
            methods["statistics"] = lambda theta, rows: statistics(model, rows)
        if model.offers("summary_count"):
            methods["summaries"] = lambda theta, rows: summaries(cast(SummaryModel, model), rows)
            _try_sums(cast(SummaryModel, model), shape[0])
        used = not model.offers("gradient_form")  # which replaces it
        if gradients and not affine:
            model.needed("log_likelihood_gradient")
        if (gradients and not affine) or (used and model.offers("log_likelihood_gradient")):
            methods["log_likelihood_gradient"] = functools.partial(log_likelihood_gradient, model)
        for name, method in methods.items():
            at = positions[:1] if name in ("statistics", "summaries") else positions
            where = f"model: {name_of(model)}: {name}"
            _try_method(where, method, at, simulated + made_up + coded, min(shape[0], MOST_ROWS))

        for name, values in _without_rows(model, positions).items():
            if _differ(values, before.get(name, values), np.abs(values)):
                raise DpmcError(
                    f"model: {name_of(model)}: {name}: changes once other methods have seen rows, must "
                    "depend on θ alone (else no sensitivity bound holds)"
                )
        few = [rows[: LEAST_DUMMIES + 1] for rows in simulated[:1] or made_up]
        if gradients:
            d = len(start)
            _check_gradients(model, start, few, range(d))
            _check_gradients(model, positions[1], few, range(0, d, 1 + d // SOME))
        if affine and model.offers("ratio_form"):
            _check_ratio_form(model, positions[:2], few)


def check_starts(model: Model, starts: np.ndarray, first: int = 0) -> None:
    """Raise DpmcError for a start point (s, d) whose log prior is not finite; they are numbered from `first`.

    No log ratio is known there, so that a chain would spend its ε and hardly ever move.
    """
    with without_warnings():
        values = [float(model.log_prior(start.copy())) for start in starts]
    for i in np.flatnonzero(~np.isfinite(values))[:1]:
        raise DpmcError(
            f"start: start point {first + i}, {shown(starts[i].tolist())}: log_prior is {values[i]:g}, must "
            "be finite where a chain starts"
        )


def _positions(starts: np.ndarray) -> list[np.ndarray]:
    """Return public positions (d,), all different: start points, and others at random near the first.

    Of the others one keeps the signs, one has larger components only, and two are nearer and farther.
    """
    generator, start = np.random.default_rng(1), starts[0]
    normal = generator.standard_normal((4, len(start)))
    size = 1.0 + np.abs(start)
    near, far = start + 0.1 * size * normal[0], start + size * normal[1]
    others = [start * np.exp(0.2 * normal[2]), start + 0.1 * size * np.abs(normal[3])]
    positions = (start, near, far, *others, starts[-1])
    return list({theta.tobytes(): theta for theta in positions}.values())


@contextmanager
def _failing_elsewhere() -> Iterator[None]:
    """Ignore failures of a user's code, but no WrongResult: made-up rows may be the cause.

    Other failures are found by `_try_method`.
    """
    try:
        yield
    except WrongResult:
        raise
    except Exception:
        return


def _without_rows(
    model: OwnModel, positions: Sequence[np.ndarray], may_fail: bool = True
) -> dict[str, np.ndarray]:
    """Return the values (m,) of the methods that take no rows, without those that fail; forms `may_fail`.

    Raises WrongResult for an affine or softplus form of a wrong shape, which compiled code cannot check.
    """
    theta = np.stack(positions)
    forms = {"ratio_form": (theta, theta[::-1]), **dict.fromkeys(OF_ONE_POSITION, (theta,))}
    values = {}
    for name, arguments in {"log_prior": (theta,), "log_prior_gradient": (theta,), **forms}.items():
        if name in forms and not (model.offers("statistics") and model.offers(name)):
            continue
        # Not everything is defined everywhere, and some models have no gradient of the prior.
        with _failing_elsewhere() if may_fail or name not in forms else nullcontext():
            result = getattr(model, name)(*arguments)
            parts = result if isinstance(result, tuple) else (result,)
            if name in forms:
                slopes, offsets = parts
                shape = theta.shape if name in BY_FORM else (len(theta),)
                where = f"model: {name_of(model)}: {name}"
                real_array(offsets, shape, where)
                real_array(slopes, (*shape, np.shape(slopes)[-1]), where)
            values[name] = np.concatenate([np.ravel(np.asarray(part, dtype=float)) for part in parts])
    return values


def _check_gradients(
    model: OwnModel, theta: np.ndarray, dummies: list[np.ndarray], components: Sequence[int]
) -> None:
    """Compare components of gradients with finite differences, at a public position θ (d,), on public rows.

    Central differences are taken with one step and with twice that step. Their difference bounds their error,
    also for single precision and at kinks. Raises WrongResult naming the first component that differs.
    """
    densities: list[tuple[str, Callable[[np.ndarray], np.ndarray], np.ndarray]] = []
    if model.offers("log_prior_gradient"):
        with _failing_elsewhere():
            prior = lambda at: np.atleast_1d(model.log_prior(at))  # noqa: E731
            densities.append(("log_prior_gradient", prior, model.log_prior_gradient(theta)[None]))
    known = {"log_likelihood_gradient": log_likelihood_gradient, **BY_FORM}
    for (name, gradient), rows in itertools.product(known.items(), dummies):
        with _failing_elsewhere():
            if model.offers(name):
                density = functools.partial(log_likelihood, model, rows=rows)
                densities.append((name, density, gradient(model, theta, rows)))
    for (name, density, slopes), i in itertools.product(densities, components):
        step = np.zeros(len(theta))
        step[i] = DIFFERENCE_STEP * max(1.0, abs(theta[i]))
        with _failing_elsewhere():
            near, far = (
                (density(theta + k * step) - density(theta - k * step)) / (2.0 * k * step[i]) for k in (1, 2)
            )
            finite = np.isfinite(near) & np.isfinite(far) & np.isfinite(slopes[:, i])
            size = np.maximum(np.abs(near), np.abs(slopes[:, i]))[finite].max(initial=0.0)
            error = np.abs(near - far)[finite].max(initial=0.0)
            differs = finite & (np.abs(slopes[:, i] - near) > 10.0 * error + TOLERANCE * size)
            for row in np.flatnonzero(differs)[:1]:
                raise WrongResult(
                    f"model: {name_of(model)}: {name}: component {i} is {slopes[row, i]:.6g} at theta = "
                    f"{shown(theta.tolist())}, finite differences give {near[row]:.6g}"
                )


def _check_ratio_form(model: OwnModel, positions: Sequence[np.ndarray], dummies: list[np.ndarray]) -> None:
    """Raise WrongResult if log ratios by the model's affine form differ from those of its log-likelihood."""
    for rows, theta, proposal in itertools.product(dummies, positions, positions):
        with _failing_elsewhere():
            slopes, offsets = model.ratio_form(theta[None], proposal[None])
            terms = np.column_stack([statistics(model, rows) * slopes[0], np.full(len(rows), offsets[0])])
            densities = np.stack([log_likelihood(model, at, rows) for at in (proposal, theta)])
            ratios, wanted = terms.sum(axis=1), densities[0] - densities[1]
            size = np.abs(terms).sum(axis=1) + np.abs(densities).sum(axis=0)
            known = np.isfinite(ratios) & np.isfinite(wanted)
            for row in np.flatnonzero(known & (np.abs(ratios - wanted) > TOLERANCE * size))[:1]:
                raise WrongResult(
                    f"model: {name_of(model)}: ratio_form: gives {ratios[row]:.6g} from theta = "
                    f"{shown(theta.tolist())} to {shown(proposal.tolist())}, log_likelihood {wanted[row]:.6g}"
                )


def _dummies(
    model: OwnModel, columns: int, theta: np.ndarray
) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
    """Return public rows (m, columns): simulated ones if the model can, made-up ones, and some with codes.

    Rows that the model's `check_rows` refuses are left out, for private rows are never like these.
    """
    m = max(LEAST_DUMMIES, min(DUMMIES, NUMBERS // max(columns, len(theta))))
    while m in (len(theta), columns):  # so that swapped axes are detected
        m += 1
    generator = np.random.default_rng(0)
    normal = generator.standard_normal((m, columns))
    wild, tame = _with_outliers(normal), _with_outliers(normal, 1e3)
    made_up = [
        wild,
        tame,
        0.5 + np.abs(tame),
        generator.random((m, columns)),
        (normal > 0.0).astype(float),
        np.floor(2.0 * np.abs(wild)),
        np.where(generator.random((m, columns)) < 0.5, tame, normal > 0.0),
    ]
    coded = [
        np.where(generator.random((m, columns)) < 0.02, generator.choice(CODES, (m, columns)), usual)
        for usual in (normal, (normal > 0.0).astype(float))
    ]
    simulated: list[np.ndarray] = []
    if model.offers("simulate"):
        rows = np.asarray(model.simulate(np.random.default_rng(0), theta.copy(), m), dtype=float)
        if rows.shape != (m, columns):
            raise DpmcError(
                f"model: {name_of(model)}: simulate: returned shape {rows.shape}, must be {(m, columns)}: "
                "n rows with as many columns as the data"
            )
        simulated = [rows, _with_outliers(rows), _with_outliers(rows, 1e3)]
    if model.offers("check_rows"):
        kinds = (simulated, made_up, coded)
        allowed = [[_allowed(model, rows) for rows in tables] for tables in kinds]
        enough = [[rows for rows in tables if len(rows) >= LEAST_DUMMIES] for tables in allowed]
        if any(enough):
            return enough[0], enough[1], enough[2]
    return simulated, made_up, coded


def _with_outliers(rows: np.ndarray, most: float = np.inf) -> np.ndarray:
    """Return rows (m, columns) some of which, in the second half, are multiples (`OUTLIERS` up to `most`).

    Beside giants, moderate outliers would seem usual to a rule that reads all rows.
    """
    factors = np.array([sign * size for size in OUTLIERS if size <= most for sign in (1.0, -1.0)])
    larger, at = rows.copy(), np.linspace(len(rows) // 2, len(rows) - 1, len(factors)).astype(int)
    larger[at] *= factors[:, None]
    return larger


def _allowed(model: OwnModel, rows: np.ndarray) -> np.ndarray:
    """Return the rows that the model's `check_rows` accepts."""

    def accepts(some: np.ndarray) -> bool:
        try:  # of the user's own object: to put its errors into words takes long
            model.given.check_rows(some.copy())
        except Exception:
            return False
        return True

    return rows if accepts(rows) else rows[[accepts(rows[j : j + 1]) for j in range(len(rows))]]


def _try_sums(model: SummaryModel, n: int) -> None:
    """Draw from `posterior_given` at made-up sums; raise DpmcError if it fails or draws another shape."""
    d, k = int(model.dimension), int(model.summary_count)
    for total in (np.zeros(k), np.full(k, 0.1 * n)):
        drawn = model.posterior_given(NoisySum(total, n, 1.0, 1.0)).at(np.zeros((2, d)), np.full((2, 2), 0.5))
        real_array(drawn, (2, d), f"model: {name_of(model)}: posterior_given: at")


def _try_method(
    where: str, method: Method, positions: Sequence[np.ndarray], dummies: Sequence[np.ndarray], most: int
) -> None:
    """Compute rows together, again, in halves, alone, and `most` at a time; raise DpmcError if they differ.

    Likewise if all calls fail, or if hardly a value is finite at more than one position.
    """
    depends = DpmcError(
        f"{where}: the value of a row changes with the other rows, must depend on that row alone "
        "(else no sensitivity bound holds)"
    )
    advice = "give the model simulate(generator, theta, n), whose rows are then used"
    failed: list[Exception] = []
    finite: dict[int, tuple[np.ndarray, np.ndarray]] = {}  # number of the position -> rows, values
    for rows in dummies:
        # A sample of the rows, and the outliers, are evaluated alone, too.
        largest = np.argsort(np.abs(rows).max(axis=1), kind="stable")[-2 * len(OUTLIERS) :]
        chosen = np.union1d(np.arange(0, len(rows), ALONE if len(rows) > ALONE else 1), largest)
        half = len(rows) // 2
        for p, theta in enumerate(positions):
            # So near that values are equal up to rounding, but no memory of θ takes them for the same.
            nearest, *near = (theta + k * NEAR * (1.0 + np.abs(theta)) for k in (1, 2, 3, 4))
            try:
                together = method(theta, rows)
                if _differ(together, method(nearest, rows), _sizes(rows, together)):  # as at a boundary
                    near = [theta] * 3
                halves = np.concatenate([method(near[0], rows[:half]), method(near[0], rows[half:])])
                alone = np.concatenate([method(near[1], rows[j : j + 1]) for j in chosen])
                turned = method(near[2], rows[::-1])[::-1]  # the last row, an outlier, comes first
                again = method(theta, rows.copy())  # last, so that a memory of other rows shows
                refilled = list(_refilled(method, theta, rows))
            except WrongResult:
                raise
            except Exception as error:  # a user's code may raise anything, and made-up rows may be the reason
                failed.append(error)
                continue
            sizes = _sizes(rows, together)
            if _differ(together, again, sizes):
                raise DpmcError(
                    f"{where}: two calls with the same rows differ, must depend only on rows and θ"
                )
            if not _differ(together, turned, sizes) and any(_differ(together, x, sizes) for x in refilled):
                raise DpmcError(
                    f"{where}: other rows in the same array get the values of those before, must depend only "
                    "on rows and θ: keep nothing by an array's identity or address"
                )
            apart = _differ(together, halves, sizes) or _differ(together, turned, sizes)
            if apart or _differ(together[chosen], alone, sizes[chosen]):
                raise depends
            if np.isfinite(together).reshape(len(rows), -1).all(axis=1).mean() >= LEAST_FINITE:
                finite[p] = rows, together
    if len(failed) == len(dummies) * len(positions):
        raise DpmcError(
            f"{where}: failed on dummy rows ({failed[0]}); if only such rows are the cause, {advice}"
        )
    if len(finite) < min(2, len(positions)):
        at = " but at one position" if finite else ""
        raise DpmcError(
            f"{where}: hardly a value on dummy rows is finite{at}, so that it cannot be tried; {advice} too, "
            "and a start around which they have finite values"
        )
    p = max(finite)  # not the start point, where terms may vanish
    rows, together = finite[p]
    if most > len(rows):
        turn = np.arange(most) % len(rows)
        if _differ(together[turn], method(positions[p], rows[turn]), _sizes(rows, together)[turn]):
            raise depends


def _refilled(method: Method, theta: np.ndarray, rows: np.ndarray) -> Iterator[np.ndarray]:
    """Yield values (m, …) of rows (m, columns) in one array that is filled again, as that of a release is.

    First all rows have other places, then two neighbours have changed theirs, at several places.
    """
    orders = [np.arange(len(rows))[::-1]]
    for place in (len(rows) // 2, len(rows) // 3, len(rows) // 7):
        orders.append(np.r_[:place, place + 1, place, place + 2 : len(rows)])
    for order in orders:
        array = rows.copy()
        method(theta, array)
        array[:] = rows[order]
        yield method(theta, array)[np.argsort(order)]


def _sizes(rows: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return of which size (m,) rounding errors of rows' values are relative to.

    It is the size of the row's own value and of most values, and more for outliers, whose terms may cancel.
    """
    size = np.where(np.isfinite(values), np.abs(values), 0.0).reshape(len(rows), -1).max(axis=1)
    reach = np.abs(rows).max(axis=1)
    far = np.maximum(1.0, (reach / max(10.0 * float(np.median(reach)), 1e-300)) ** 2)
    return size + np.quantile(size, 0.9) * far


def _differ(values: np.ndarray, others: np.ndarray, sizes: np.ndarray) -> bool:
    """Return whether values (m, …) differ by more than rounding relative to `sizes` (m,)."""
    error = np.abs(values - others).reshape(len(sizes), -1)
    same = ((values == others) | (np.isnan(values) & np.isnan(others))).reshape(len(sizes), -1)
    return not (same | (error <= ROUNDING * sizes[:, None])).all()
