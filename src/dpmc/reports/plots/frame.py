"""What figures draw beside the metrics: published boxes, models and methods shown, files of chains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dpmc.common.errors import DpmcError
from dpmc.common.streams import canonical_epsilon
from dpmc.metrics.table import Results
from dpmc.reports.plots import style
from dpmc.studies import Study

Floats = npt.NDArray[np.float64]
Cell = tuple[str, str, str]  # model, method, epsilon


def check_metrics(results: Results, metrics: Iterable[str]) -> None:
    """Raise DpmcError for a metric that no chain of the study has and whose name is unknown."""
    known = {cell[3] for cell in results.numbers}
    for metric in metrics:  # one of dpmc's own may lack values where no chain is long enough
        if known and metric not in known | style.METRIC_TITLES.keys():
            there = ", ".join(sorted(known))
            raise DpmcError(f"metric: {metric!r} has no values in this study; there are {there}")


@contextmanager
def published_table(path: Path, of: str) -> Iterator[None]:
    """Turn what goes wrong while a published table is read into one line that names it."""
    try:
        yield
    except (KeyError, OSError, TypeError, ValueError) as error:
        raise DpmcError(f"{path}: not a table of published {of} ({error!r})") from None


@dataclass(frozen=True)
class Quartiles:
    """Quartiles of a published box plot, or of values drawn as slim as one."""

    q1: float
    median: float
    q3: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Quartiles:
        """Return the quartiles of values."""
        return cls(*np.quantile(values, [0.25, 0.5, 0.75]).tolist())


def read_published(folder: Path, metric: str, study: Study) -> dict[Cell, Quartiles]:
    """Return cell -> published box, for what the study runs as published.

    A label that is not published, or runs with another number of rows, has no box to compare with.

    Raises DpmcError for a file that is not a table of boxes.
    """
    import pandas as pd

    path = folder / f"{metric}.csv"
    if not path.is_file() or study.epsilon_kind != "total":
        return {}
    with published_table(path, "boxes"):
        table = pd.read_csv(path, dtype={"epsilon": str})
        boxes = table[table["statistic"].isin(("q1", "median", "q3"))]
        cells = ["model", "method", "epsilon"]
        boxes = boxes.pivot_table("value", cells, "statistic", aggfunc="first", sort=False)
        rows = pd.read_csv(folder / "models.csv", index_col="model")["n"]
        return {
            (model, method, canonical_epsilon(epsilon)): Quartiles(float(q1), float(median), float(q3))
            for (model, method, epsilon), q1, median, q3 in boxes[["q1", "median", "q3"]].itertuples()
            if model in study.models and study.models[model].n in (None, rows[model])
        }


def models_of(study: Study, ids: Sequence[str]) -> list[str]:
    """Return the study's labels of the given models, by label or catalogue id, in the order of `ids`.

    All for no ids. Models that run without privacy only (the clipping experiment) are left out: these
    figures have a budget on their axis. Raises DpmcError when there is none.
    """
    labels = selected(study, ids, private_models(study))
    if not labels:
        raise DpmcError(
            f"study {study.name}: none of its models belongs to this figure, which shows {', '.join(ids)}"
        )
    return labels


def selected(study: Study, ids: Sequence[str], labels: list[str]) -> list[str]:
    """Return those of a study's model labels that are given by label or catalogue id; all for no ids."""
    found = [label for wanted in ids for label in labels if wanted in (label, study.models[label].model)]
    return list(dict.fromkeys(found)) if ids else labels


def methods_of(study: Study, ids: Sequence[str], models: Sequence[str]) -> list[str]:
    """Return the study's labels of the given methods, by label or algorithm, that run on some of the models.

    All for no ids, in the study's order. Raises DpmcError when there is none.
    """
    wanted = ids or tuple(study.methods)
    found = [
        label
        for one in wanted
        for label, spec in study.methods.items()
        if (label == one or (one not in study.methods and spec.algorithm == one))
        and set(models).intersection(spec.models)
    ]
    if not found:
        raise DpmcError(f"study {study.name}: {', '.join(wanted)} runs on none of the models of this figure")
    return found


def private_models(study: Study) -> list[str]:
    """Return the study's model labels that have a finite budget."""
    return [label for label, spec in study.models.items() if set(spec.epsilons) != {"inf"}]


def path_of(results: Path, study: Study, cell: Cell, seed: int | str) -> Path:
    """Return the chain file of one run; `results` is the folder of all studies' results."""
    model, method, epsilon = cell
    of = study.methods[method].from_study or study.name
    return results / of / "chains" / model / method / f"eps-{epsilon}" / f"seed-{seed}.nc"


def files_of(results: Path, study: Study, cell: Cell) -> list[Path]:
    """Return the chain files of all runs of a cell."""
    return [path_of(results, study, cell, seed) for seed in range(study.seeds)]


def kept_draws(path: Path) -> Floats:
    """Return the second halves of a run's chains, pooled: (draws, d).

    Raises DpmcError for a file that is missing or not a chain file.
    """
    from dpmc.data.chain_files import read_chain
    from dpmc.metrics.cell import second_half

    chain = read_chain(path)
    iterations, thin = int(chain.attrs["iterations"]), int(chain.attrs.get("thin", 1))
    kept = second_half(np.asarray(chain.draws), iterations, thin)
    return np.ascontiguousarray(kept.reshape(-1, kept.shape[-1]))
