"""Made-up metrics and studies that exercise the drawing; no results of anything."""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from dpmc.metrics.table import METRIC_COLUMNS, typed
from dpmc.reports import plots
from dpmc.reports.plots import style
from dpmc.reports.plots.marks import MEDIAN
from dpmc.studies import Study, load_study, study_of
from dpmc.studies.figures import declared_figure

PUBLISHED = Path(__file__).parents[2] / "data" / "published"
NONE = pd.DataFrame(columns=[*METRIC_COLUMNS])
LEAST = 6.0  #: points, of any text in a figure
THREE = ("dp-penalty", "dp-penalty-guided", "dp-hmc")
EASY = ("flat-banana-2d", "flat-banana-10d", "tempered-banana-2d", "tempered-banana-10d")


def study(
    models: Iterable[str] = EASY, methods: Iterable[str] = THREE, name: str = "made-up", **keys: Any
) -> Study:
    """A study of these models and methods: labels, or label -> keys."""
    own: dict[str, dict[str, dict[str, Any]]] = {
        kind: dict.fromkeys(labels, {}) | (labels if isinstance(labels, dict) else {})
        for kind, labels in (("models", models), ("methods", methods))
    }
    common = {"epsilons": [1, 2, 3, 4, 5, 6], "tuning_epsilon": 4}
    about = {"title": "made up", "delta": "0.1/n", "seeds": 10, "figures": []}
    content = own | {"models": {label: common | given for label, given in own["models"].items()}}
    return study_of(about | content | keys, Path(f"none/{name}.yaml"))


def but(of: Study, model: str, **keys: Any) -> Study:
    """The study with other keys of a model."""
    return replace(of, models={**of.models, model: of.models[model].model_copy(update=keys)})


def write_small(folder: Path) -> Study:
    """Write a study `one` of one published model, with the hyperparameters of the thesis; return it."""
    model = {"epsilons": [1, 2, 3, 4, 5, 6], "tuning_epsilon": 1}
    content = {
        **{"title": "a page & its figures", "delta": "0.1/n", "seeds": 20, "settings_of": "thesis"},
        **{"models": {EASY[0]: model}, "methods": dict.fromkeys(THREE, {})},
        "figures": ["mmd-easy", "models", "hyperparameters"],
    }
    (folder / "config/studies").mkdir(parents=True)
    shutil.copytree(PUBLISHED.parents[1] / "config/hyperparameters", folder / "config/hyperparameters")
    (folder / "config/studies/one.yaml").write_text(yaml.safe_dump(content))
    return load_study(folder / "config/studies/one.yaml")


@dataclass
class Table:
    """Rows under construction."""

    rows: list[tuple[str, ...]] = field(default_factory=list)

    def add(self, *names: object) -> None:
        self.rows.append(("made-up", *map(str, names)))

    def frame(self) -> pd.DataFrame:
        return pd.DataFrame(self.rows, columns=[*METRIC_COLUMNS])


def metrics(
    of: Study,
    iterations: dict[tuple[str, str, str], int] | None = None,
    names: tuple[str, ...] = ("mmd", "ratio_clip_fraction", "mean_error"),
    seeds: int = 20,
) -> pd.DataFrame:
    """Random values for every cell; cells in `iterations` have that few, and no MMD for one."""
    generator, table = np.random.default_rng(5), Table()
    for model in of.models:
        for method, how in of.methods.items():
            if model not in how.models:
                continue
            for epsilon in of.epsilons(model, method):
                k = (iterations or {}).get((model, method, epsilon), 500)
                for seed in range(seeds):
                    table.add(model, method, epsilon, seed, "iterations", k)
                    for name in names:
                        if k <= 1 and name == "mmd":
                            reason = f"mmd: {k} kept draw, needs at least 2 (iterations: {k})"
                            table.add(model, method, epsilon, seed, "status", reason)
                        elif k > 0:
                            value = generator.gamma(4.0, 0.1 / (1.0 if epsilon == "inf" else float(epsilon)))
                            table.add(model, method, epsilon, seed, name, value)
        for index in range(10):
            table.add(model, "baseline", "", index, "mmd", generator.uniform(0.01, 0.03))
    return table.frame()


def draw(
    name: str,
    of: Study,
    table: pd.DataFrame | None = None,
    results: Path = Path("results"),
    **changes: Any,
) -> Figure:
    """A figure that comes with dpmc, of made-up metrics as text; `changes`: to its declared keys."""
    declared = declared_figure(of.path, name).model_copy(update=changes)
    return plots.draw(plots.ToDraw(declared, typed(metrics(of) if table is None else table), of, results))


def legible(figure: Figure, wide: bool) -> None:
    """Check that a figure is as wide as a column or two, and that no text is small or outside."""
    assert figure.get_figwidth() == (style.TWO_COLUMNS if wide else style.COLUMN)
    with style.context():
        figure.draw_without_rendering()
    axis = [axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)]
    ticks = {
        id(text) for its in axis for text in its.get_ticklabels()
    }  # some are beyond the axis, and not drawn
    for text in figure.findobj(Text):
        if text.get_text().strip() and text.get_visible():
            assert text.get_fontsize() >= LEAST, text.get_text()
            place = text.get_window_extent()
            inside = place.x0 >= -1.0 and place.x1 <= figure.bbox.x1 + 1.0
            assert inside or id(text) in ticks, text.get_text()


def medians(axes: Axes) -> list[float]:
    """The medians of the boxes of a panel, from left to right."""
    return _heights(line for line in axes.lines if line.get_label() == MEDIAN)


def bars(axes: Axes) -> list[tuple[float, float, float]]:
    """Quartiles and median of the slim bars of a panel, from left to right."""
    boxes = [p for p in axes.patches if isinstance(p, Rectangle) and p.get_zorder() == 4]
    ticks = _heights(line for line in axes.lines if line.get_zorder() == 5)
    boxes.sort(key=Rectangle.get_x)
    return [(p.get_y(), y, p.get_y() + p.get_height()) for p, y in zip(boxes, ticks, strict=True)]


def _heights(lines: Iterable[Line2D]) -> list[float]:
    return [y for _, y in sorted((float(line.get_xdata()[0]), float(line.get_ydata()[0])) for line in lines)]


def notes(axes: Axes) -> list[str]:
    """What is written in a panel, in alphabetical order."""
    return sorted(text.get_text() for text in axes.texts)


def titles(figure: Figure) -> list[str]:
    return [axes.get_title(loc="left") for axes in figure.axes]


def curves(axes: Axes) -> dict[tuple[str, bool], list[tuple[float, float]]]:
    """(colour, whether it is dashed) -> points of the curves of a panel of lines."""
    lines = [line for line in axes.lines if line.get_linewidth() == 1.1]
    return {(line.get_color(), line.is_dashed()): list(zip(*line.get_data(), strict=True)) for line in lines}
