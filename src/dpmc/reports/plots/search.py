"""One search of hyperparameters: the objective over trials and over each of them, and what was clipped."""

import textwrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator

from dpmc.algorithms import algorithm_class
from dpmc.algorithms.hyperparameters import describe
from dpmc.reports.plots import layout, marks, style
from dpmc.studies import Study
from dpmc.tuning.pinned import CLIP_LIMIT
from dpmc.tuning.trials import Trial

COLUMNS = 3
LETTERS = 27  # of a line below a panel
BEST, CHOSEN = "#0072B2", "#D55E00"
DOT: dict[str, Any] = {"linestyle": "none", "marker": ".", "markersize": 4, "color": style.INK}
REFUSED: dict[str, Any] = {"linestyle": "none", "marker": "|", "markersize": 4, "color": style.GREY}
SQUARE: dict[str, Any] = {"linestyle": "none", "marker": "s", "markersize": 5, "mfc": "none", "mec": CHOSEN}
LIMIT: dict[str, Any] = {"linestyle": ":", "linewidth": 0.8, "color": style.GREY}


@style.context()
def draw(trials: list[Trial], result: dict[str, Any], study: Study) -> Figure:
    """Draw the trials of one search; `result` as `dpmc.tuning.search.search` returns it."""
    searched = [trial for trial in trials if trial.stage == "search"][: result["search"]["trials"]]
    names, pinned = result["search"]["free"], result["pinned"]
    setting = {name: result["hyperparameters"][name] for name in names}
    chosen = next(trial for trial in searched if trial.setting == setting)
    figure, (history, *slices, clipping) = layout.panels(len(names) + 2, COLUMNS, 1.9, more=0.7)
    _history(history, searched)
    for one, name in zip(slices, names, strict=True):
        _slice(one, searched, name, _number(pinned[name]), chosen)
        one.set_xlabel(_meaning(study, result["method"], name))
    run = [trial for trial in searched if trial.seeds]
    clipping.plot([trial.number for trial in run], [trial.clip_fraction for trial in run], **DOT)
    clipping.axhline(CLIP_LIMIT, **LIMIT)
    clipping.set(xlabel="trial", ylabel="fraction clipped", ylim=(0, None))
    model = style.model_title(result["model"], study.model(result["model"]).model)
    method = style.method_styles(study.methods)[result["method"]].title
    looks = {
        "a trial; colour: the later, the darker": DOT,
        "best so far": {"color": BEST, "linewidth": 1},
        "chosen": SQUARE,
        "trial that may not be chosen": REFUSED,
        "before the search": marks.REFERENCE,
        "limit of clipping": LIMIT,
    }
    title: dict[str, Any] = {"title": f"search: {method}, {model}", "title_fontsize": 9, "alignment": "left"}
    layout.legend(figure, [(Line2D([], [], **how), text) for text, how in looks.items()], columns=3, **title)
    return figure


def _meaning(study: Study, method: str, name: str) -> str:
    """Return what a hyperparameter is, with its unit, in short lines."""
    described = describe(algorithm_class(study.methods[method].algorithm))
    meanings = {key: meaning for key, meaning, *_ in described}
    return textwrap.fill(meanings.get(name, name.replace("_", " ")), LETTERS)


def _number(value: Any) -> float:
    """Return a hyperparameter as one number: the first of a list, whose proportions are kept."""
    return float(value[0] if isinstance(value, list) else value)


def _history(axes: Axes, trials: list[Trial]) -> None:
    """Draw the objective of each trial, and the best so far."""
    numbers = [trial.number for trial in trials if trial.feasible]
    values = [trial.objective for trial in trials if trial.feasible]
    others = [trial.number for trial in trials if not trial.feasible]
    axes.plot(numbers, values, **DOT)
    axes.step(numbers, np.minimum.accumulate(values), where="post", lw=1, color=BEST)
    axes.plot(others, [1.0] * len(others), **REFUSED, transform=axes.get_xaxis_transform())
    axes.set(xlabel="trial", ylabel="median MMD")


def _slice(axes: Axes, trials: list[Trial], name: str, pinned: float, chosen: Trial) -> None:
    """Draw the objective over one hyperparameter; later trials are darker."""
    feasible = [trial for trial in trials if trial.feasible]
    others = [_number(trial.setting[name]) for trial in trials if not trial.feasible]
    x, y = [_number(trial.setting[name]) for trial in feasible], [trial.objective for trial in feasible]
    numbers = [trial.number for trial in feasible]
    palest = -0.3 * max(numbers, default=1)  # could be seen on white
    axes.scatter(x, y, s=6, c=numbers, cmap="viridis_r", vmin=palest, lw=0)
    axes.plot(others, [1.0] * len(others), **REFUSED, transform=axes.get_xaxis_transform())
    axes.axvline(pinned, **marks.REFERENCE)
    axes.plot([_number(chosen.setting[name])], [chosen.objective], **SQUARE)
    axes.set(xscale="log", ylabel="median MMD")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    layout.plain_numbers(axes.xaxis)
