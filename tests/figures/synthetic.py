"""Made-up metrics and studies that exercise the drawing; no results of anything."""

import importlib
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from dpmc.metrics.table import COLUMNS, typed
from dpmc.reports import plots
from dpmc.studies.figures import declared_figure

PUBLISHED = Path(__file__).parents[2] / "data" / "published"
THREE = ("dp-penalty", "dp-penalty-guided", "dp-hmc")
SIX = (
    "dp-penalty",
    "dp-penalty-guided",
    "minibatch-penalty",
    "minibatch-penalty-guided",
    "dp-barker",
    "dp-hmc",
)
EASY = ("flat-banana-2d", "flat-banana-10d", "tempered-banana-2d", "tempered-banana-10d")


@dataclass
class Model:
    model: str
    epsilons: tuple[str, ...] = ("1", "2", "3", "4", "5", "6")
    n: int | None = None
    data: str = "published"
    start: str = "perturbed"
    rows_file: Path | None = None
    tuning_epsilon: str = "4"
    settings_of: str = ""


@dataclass
class Method:
    algorithm: str
    models: tuple[str, ...]
    accountant: str = "tight"
    hyperparameters: str = "published"
    settings_of: str = ""
    from_study: str = ""
    most_iterations: int | None = None
    options: dict[str, Any] = field(default_factory=dict)


@dataclass
class Study:
    models: dict[str, Model]
    methods: dict[str, Method]
    name: str = "made-up"
    epsilon_kind: str = "total"
    seeds: int = 10
    settings_of: str = "made-up"
    path: Path = Path("none/made-up.yaml")  # has no figures of its own: those that come with dpmc

    def model(self, label: str) -> Model:
        return self.models[label]

    def method(self, label: str) -> Method:
        return self.methods[label]

    def epsilons(self, model: str, method: str) -> tuple[str, ...]:
        return self.models[model].epsilons


def study(models: tuple[str, ...] = EASY, methods: tuple[str, ...] = THREE) -> Study:
    return Study({m: Model(m) for m in models}, {a: Method(a, models) for a in methods})


@dataclass
class Table:
    """Rows under construction."""

    rows: list[tuple[str, ...]] = field(default_factory=list)

    def add(self, *names: object) -> None:
        self.rows.append(("made-up", *map(str, names)))

    def frame(self) -> pd.DataFrame:
        return pd.DataFrame(self.rows, columns=[*COLUMNS])


def metrics(
    of: Study,
    iterations: dict[tuple[str, str, str], int] | None = None,
    names: tuple[str, ...] = ("mmd", "ratio_clip_fraction", "mean_error"),
    seeds: int = 20,
) -> pd.DataFrame:
    """Random values for every cell; cells in `iterations` have that few, and no MMD for one."""
    generator, table = np.random.default_rng(5), Table()
    for model, spec in of.models.items():
        for method, how in of.methods.items():
            if model not in how.models:
                continue
            for epsilon in spec.epsilons:
                k = (iterations or {}).get((model, method, epsilon), 500)
                for seed in range(seeds):
                    table.add(model, method, epsilon, seed, "iterations", k)
                    for name in names:
                        if k <= 1 and name == "mmd":
                            reason = f"mmd: {k} kept draw, needs at least 2 (iterations: {k})"
                            table.add(model, method, epsilon, seed, "status", reason)
                        elif k > 0:
                            value = generator.gamma(4.0, 0.1 / float(epsilon))
                            table.add(model, method, epsilon, seed, name, value)
        for index in range(10):
            table.add(model, "baseline", "", index, "mmd", generator.uniform(0.01, 0.03))
    return table.frame()


def draw(
    name: str, table: pd.DataFrame, of: Study, published: Path = PUBLISHED, results: Path = Path("results")
) -> Figure:
    """A figure that comes with dpmc, of made-up metrics as text."""
    made: Any = of
    declared = declared_figure(made.path, name)
    table = typed(table) if len(table.columns) else table
    return plots.draw(plots.Given(declared, table, made, published, results))


def module_of(name: str) -> ModuleType:
    """The module that draws a figure of a `module:function`."""
    return importlib.import_module(str(declared_figure(Path("none.yaml"), name).draw).partition(":")[0])
