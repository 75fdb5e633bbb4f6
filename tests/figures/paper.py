"""A made-up study like that of the DP-HMC paper: models, labels, metrics, chain files; results of nothing."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpmc.data import datasets
from dpmc.data.chain_files import COUNTERS, Chains, write_chains
from dpmc.models import Definition
from dpmc.models.banana import Banana
from dpmc.models.catalogue import _CATALOGUE
from dpmc.models.gaussian import Gaussian
from dpmc.privacy import accountants
from dpmc.privacy.ledger import Ledger
from dpmc.reports.plots.chains import chain_paths
from dpmc.reports.plots.selection import CellKey
from dpmc.studies import Study, study_of
from figures.synthetic import Table

BANANA, GAUSS, WIDE = "paper-banana", "paper-gauss", "paper-banana-wide"
EPSILONS = ("2", "4", "6", "8", "10", "12", "15")
BOUNDS = {
    BANANA: ("0.01", "0.05", "0.1", "0.2", "1", "10"),
    GAUSS: ("0.1", "1", "5", "10", "20", "100"),
}
Values = Callable[[str, str, str, str], float | None]  # model, method, epsilon, metric


def catalogue(patch: pytest.MonkeyPatch) -> None:
    """Put small models of the paper's shapes into the catalogue."""

    def banana(prior: float) -> Definition:
        return Definition(Banana(20.0, 0.0, 0.0, np.array([40.0, 50.0]), prior), 2000, None, (0.0, 3.0))

    scales = np.geomspace(0.01, 4.0, 10)
    gauss = Definition(Gaussian(np.diag(1.0 / scales), 1e4, 1e4), 2000, None, (0.0,) * 10)
    made = {BANANA: banana(1000.0), WIDE: banana(1e6), GAUSS: gauss}
    for name, definition in made.items():
        patch.setitem(_CATALOGUE, name, lambda definition=definition: definition)


def paper_study(name: str = "made-up") -> Study:
    """Five methods on three models, two of them as published too, and the clipping experiment."""
    both = (BANANA, GAUSS)
    models: dict[str, Any] = {label: {"epsilons": EPSILONS, "data": "fresh-0"} for label in (*both, WIDE)}
    methods: dict[str, Any] = {label: {"models": (*both, WIDE)} for label in ("dp-hmc", "dp-penalty")}
    methods |= {
        "dp-sgld-published": {"algorithm": "dp-sgld", "models": both, "options": {"drift": "published"}},
        "dp-sgld": {"models": both},
        "dp-sgnht": {"models": both},
        "dp-sgnht-published": {"algorithm": "dp-sgnht", "models": both, "options": {"order": "published"}},
        "dp-mala": {"models": both},
    }
    for model in both:
        label = f"{model}-clipping"
        models[label] = {"model": model, "epsilons": ["inf"], "data": "fresh-0", "iterations": 1000}
        for algorithm in ("rwmh", "hmc"):
            for bound in BOUNDS[model]:
                runs = {"algorithm": algorithm, "models": [label], "options": {"clip": float(bound)}}
                methods[f"{algorithm}-{model}-{bound}"] = runs
    about = {"title": "made up", "delta": "0.1/n", "seeds": 10, "tuning": {"mode": "none"}, "figures": []}
    own = Path(__file__).parents[2] / "config/studies/dp-hmc.yaml"  # whose figures and hyperparameters
    return replace(study_of({**about, "models": models, "methods": methods}, own), name=name)


def table_of(of: Study, values: Values, wide: str = "", spread: float = 0.02) -> pd.DataFrame:
    """Metrics with the given medians; run i of m is (1 + `spread` (i − (m − 1)/2)) times that.

    `wide`: a method with four times the spread.
    """
    seeds = 10
    table = Table()
    per_run = ("mmd", "mean_error", "covariance_error", "ratio_clip_fraction", "gradient_clip_fraction")
    for model, spec in of.models.items():
        for method, how in of.methods.items():
            for epsilon in spec.epsilons if model in how.models else ():
                cell = (model, method, epsilon)
                if (rhat := values(*cell, "rhat_max")) is not None:
                    table.add(*cell, "", "rhat_max", rhat)
                for seed in range(seeds):
                    table.add(*cell, seed, "iterations", 1000)
                    for metric in per_run:
                        if (value := values(*cell, metric)) is not None:
                            factor = 1.0 + (4.0 if method == wide else 1.0) * spread * (
                                seed - 0.5 * (seeds - 1)
                            )
                            table.add(*cell, seed, metric, factor * value)
        for index in range(10):
            table.add(model, "baseline", "", index, "mmd", 0.01 + 0.002 * index)
    frame = table.frame()
    frame["study"] = of.name
    return frame


def plausible(model: str, method: str, epsilon: str, metric: str) -> float | None:
    """Values of about the size that a real study has."""
    algorithm = next((a for a in ("dp-sgld", "dp-sgnht", "dp-mala", "dp-hmc") if method.startswith(a)), "")
    if epsilon == "inf":
        bound = float(method.rsplit("-", 1)[1]) / (1.0 if "gauss" in model else 0.1)
        clipped = 1.0 / (1.0 + bound**1.5)
        size = {"mmd": 0.03 + 0.5 * clipped**2, "mean_error": 0.02 + 0.3 * clipped**2}
        size |= {"ratio_clip_fraction": clipped, "rhat_max": 1.002 + 0.3 * clipped}
        return size.get(metric)
    factor = {"dp-sgld": 1.5, "dp-sgnht": 1.3, "dp-mala": 1.2, "dp-hmc": 0.9}.get(algorithm, 1.0)
    factor *= 1.2 if method.endswith("published") else 1.0
    size = {"mmd": 0.6, "mean_error": 0.3, "covariance_error": 0.2}
    if metric in size:
        return size[metric] * factor / float(epsilon) ** 0.7
    return 0.12 if metric.endswith("fraction") else 1.1


def write_runs(results: Path, of: Study, cell: CellKey, scale: float = 1.0, k: int = 400) -> None:
    """Write the chain files of a cell: exact draws, drawn towards their mean by `scale`."""
    spec = of.models[cell[0]]
    problem = datasets.build(cell[0], spec.model, spec.data, spec.n)
    for seed, path in enumerate(chain_paths(results, of, cell)):
        draws = problem.exact.baselines.reshape(-1, problem.dimension)
        order = np.random.default_rng(seed).integers(len(draws), size=(4, k))
        theta = draws.mean(axis=0) + scale * (draws[order] - draws.mean(axis=0))
        write_chain(path, of, cell, seed, theta)


def write_chain(path: Path, of: Study, cell: CellKey, seed: int, theta: np.ndarray, n: int = 1) -> None:
    """Write a chain file with the draws `theta` (chains, k, d), all of them kept."""
    chains, k, d = theta.shape
    attrs = {
        **{"study": of.name, "model": cell[0], "method": cell[1], "epsilon": cell[2]},
        **{"dataset": "made up", "n": n, "rows_per_evaluation": n},
        **{"iterations": k, "thin": 1, "seed": seed, "status": "ok"},
        **{"ratio_evaluations_per_iteration": 1, "gradient_evaluations_per_iteration": 0},
        "ledger": json.dumps(Ledger(None, accountants.get("tight")).to_json()),
    }
    totals, counts = (dict.fromkeys(COUNTERS[:4], np.zeros(shape, int)) for shape in (chains, (chains, k)))
    write_chains(path, Chains(attrs, np.zeros((chains, d)), theta, totals, counts))
