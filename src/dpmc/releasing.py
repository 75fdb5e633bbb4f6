"""Python's interface to releases: `dpmc.release` (docs/how-to/publish-a-chain.md)."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from dpmc.algorithms import algorithm_class
from dpmc.algorithms.hyperparameters import calibrated
from dpmc.api import (
    Hyperparameters,
    checked,
    delta_for,
    given_start,
    made_algorithm,
    named_model,
    plain_hyperparameters,
)
from dpmc.common.files import given_path
from dpmc.common.streams import canonical_epsilon
from dpmc.common.values import MOST_CHAINS, STARTS, count

if TYPE_CHECKING:
    import xarray
    from numpy.typing import ArrayLike

P = ParamSpec("P")
T = TypeVar("T")


def interrupted_here(function: Callable[P, T]) -> Callable[P, T]:
    """Let Ctrl-C show no line of `function`: which one it meets may depend on the rows."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except KeyboardInterrupt:
            pass
        raise KeyboardInterrupt  # a new one, outside of `except`: it has no traceback and no context

    return call


@interrupted_here
def release(
    model: object,
    data: object,
    algorithm: str = "dp-penalty",
    *,
    epsilon: float | str,
    delta: float | None = None,
    ledger: str | Path,
    hyperparameters: Hyperparameters = None,
    chains: int = 1,
    iterations: int | None = None,
    thin: int = 1,
    n: int | None = None,
    accountant: str = "tight",
    start: ArrayLike | None = None,
    output: str | Path | None = None,
    progress: bool = True,
) -> xarray.DataTree:
    """Run private chains that may be published; their (ε, δ) is taken from the ledger of the data set.

    Noise and batches are drawn with the operating system's entropy, so no call can be repeated. Apart from
    the draws and their acceptance, what the file of a run without a kill says follows from public facts: the
    number of rows and columns, the model, the arguments, the ledger.

    Parameters
    ----------
    model, algorithm, hyperparameters, chains, iterations, thin, accountant, start
        As in `dpmc.sample`. All of them are public and must not depend on the rows.
    data
        Private rows, as in `dpmc.sample`; a CSV file must begin with a line of names. A row with an entry
        that is missing (and has no fill in the model), no number or beyond 1e150, and one that the model's
        `check_rows` refuses, counts as 0 in every sum. Nothing says that there is one.
    n
        Number of rows, known without looking at them: the first n count, and those that lack count as 0.
        None: that of the rows in `data`, in a CSV file of the lines below the names.
    epsilon, delta
        Budget of all chains together, taken from the ledger as a whole and never returned. δ is below 1/n;
        default 0.1/n. A small part of δ pays for noise that is discrete.
    ledger
        File made by `dpmc ledger init`: one for each data set.
    output
        File to write, NetCDF. If the process is killed, the same call goes on from `OUTPUT.partial`, without
        taking from the ledger again. A spare block of iterations replaces the one under way. The budget pays
        for five of these, about 2.5 % of the iterations, which are left out of the file with or without
        kills; after more kills no file is made, and ε is spent. None: a killed release is lost, and its ε
        spent.
    progress
        Report every tenth of the iterations on standard error.

    Returns
    -------
    xarray.DataTree
        Groups posterior (`theta`: chain, draw, parameter), sample_stats and constant_data: a release, as
        `dpmc check-release` wants it.

    Raises
    ------
    DpmcError
        If an argument is wrong, the budget exceeds what is left in the ledger, `output` exists or cannot be
        written, OpenDP is missing or of another version than 0.16, or the algorithm has no release:
        non-private ones, TunaMH, DP-Fast MH and peers for comparison. Nothing is spent then.
    """
    from dpmc.data import datasets
    from dpmc.data.tables import of_length, read_rows
    from dpmc.evaluators.calls import open_closed_streams
    from dpmc.privacy.data_ledger import DataLedger
    from dpmc.releases import loop as releases
    from dpmc.sampling.cell import Cell, Given

    open_closed_streams()
    chains, thin = checked("chains", count, chains, 1, MOST_CHAINS), checked("thin", count, thin)
    values = plain_hyperparameters(hyperparameters)
    place = None if output is None else given_path(output, "output")
    opened = DataLedger.open(ledger)
    label, name, definition = named_model(model)
    columns, coding = (getattr(definition.model, key, None) for key in ("column_names", "coding"))
    if isinstance(data, str) and datasets.is_public(data):
        rows = datasets.build(label, name, data, definition=definition).rows
    else:
        rows = read_rows(data, columns, coding, private=True)
    rows = of_length(rows, None if n is None else checked("n", count, n))
    table = str(data) if isinstance(data, str | Path) else type(data).__name__
    source = (table, repr(columns), repr(coding))
    problem = datasets.public_setting(label, name, rows.shape, max(chains, STARTS), definition, source)
    if start is not None:
        problem.starts = given_start(start, chains, problem.dimension)
        problem.check("start")
    delta = delta_for(delta, problem.n)
    cls, total = algorithm_class(algorithm), float(canonical_epsilon(epsilon))
    with_noise = calibrated(cls, values, total, delta, problem.n)
    cell = Cell(
        problem=problem,
        method=algorithm,
        algorithm=made_algorithm(algorithm, with_noise, problem.dimension),
        epsilon=canonical_epsilon(epsilon),
        delta=delta,
        accountant=accountant,
        chains=chains,
        iterations=None if iterations is None else checked("iterations", count, iterations),
        thin=thin,
        given=Given(hyperparameters=values, algorithm_id=algorithm),
    )
    report = reporter(f"{label} {algorithm}") if progress else None
    return releases.release(cell, rows, opened, place, report)


def reporter(name: str) -> Any:
    """Return `report(done, total)`, which prints a line for each tenth; it does not depend on time."""
    tenths = 0

    def report(done: int, total: int) -> None:
        nonlocal tenths
        if 10 * done // total > tenths or done == total:
            tenths = 10 * done // total
            print(f"dpmc: release: {name}: {done}/{total} iterations", file=sys.stderr, flush=True)

    return report
