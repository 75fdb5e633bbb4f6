"""Draws for the figures that show chains, not numbers made of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from dpmc.studies import Study

Floats = npt.NDArray[np.float64]
Cell = tuple[str, str, str]  # model, method, epsilon


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
    from dpmc.metrics.cell import second_half
    from dpmc.storage import read_chain

    chain = read_chain(path)
    iterations, thin = int(chain.attrs["iterations"]), int(chain.attrs.get("thin", 1))
    kept = second_half(np.asarray(chain.draws), iterations, thin)
    return np.ascontiguousarray(kept.reshape(-1, kept.shape[-1]))
