"""What figures of single chains read: chain files, and the posterior that the chains were to reach."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from dpmc.data.chain_files import read_chain
from dpmc.metrics.cell import second_half
from dpmc.reports.plots.selection import CellKey
from dpmc.studies import Study

Floats = npt.NDArray[np.float64]


def chain_path(results: Path, study: Study, cell: CellKey, seed: int | str) -> Path:
    """Return the chain file of one run; `results` is the folder of all studies' results."""
    model, method, epsilon = cell
    of = study.methods[method].from_study or study.name
    return results / of / "chains" / model / method / f"eps-{epsilon}" / f"seed-{seed}.nc"


def chain_paths(results: Path, study: Study, cell: CellKey) -> list[Path]:
    """Return the chain files of all runs of a cell."""
    return [chain_path(results, study, cell, seed) for seed in range(study.seeds)]


def kept_draws(path: Path) -> Floats:
    """Return the second halves of a run's chains, pooled: (draws, d).

    Raises DpmcError for a file that is missing or not a chain file.
    """
    chain = read_chain(path)
    iterations, thin = int(chain.attrs["iterations"]), int(chain.attrs.get("thin", 1))
    kept = second_half(np.asarray(chain.draws), iterations, thin)
    return np.ascontiguousarray(kept.reshape(-1, kept.shape[-1]))
