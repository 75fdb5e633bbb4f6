"""One search of hyperparameters: the objective over trials and over each of them, and what was clipped."""

import textwrap
from typing import Any

import numpy as np
from matplotlib.figure import Figure
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
    names = result["search"]["free"]
    setting = {name: result["hyperparameters"][name] for name in names}
    chosen = next(trial for trial in searched if trial.setting == setting)
    feasible = [trial for trial in searched if trial.feasible]
    others = [trial for trial in searched if not trial.feasible]
    numbers, objectives = [trial.number for trial in feasible], [trial.objective for trial in feasible]
    algorithm = algorithm_class(study.methods[result["method"]].algorithm)
    palest = -0.3 * max(numbers, default=1)  # could be seen on white
    meanings = {key: meaning for key, meaning, *_ in describe(algorithm)}

    figure, (history, *slices, clipping) = layout.panels(len(names) + 2, COLUMNS, 1.9)
    history.plot(numbers, objectives, **DOT)
    history.step(numbers, np.minimum.accumulate(objectives), where="post", lw=1, color=BEST)
    at_top = {**REFUSED, "transform": history.get_xaxis_transform()}
    history.plot([trial.number for trial in others], [1.0] * len(others), **at_top)
    history.set(xlabel="trial", ylabel="median MMD")
    for axes, name in zip(slices, names, strict=True):
        values = [_number(trial.setting[name]) for trial in feasible]
        axes.scatter(values, objectives, s=6, c=numbers, cmap="viridis_r", vmin=palest, lw=0)
        at_top = {**REFUSED, "transform": axes.get_xaxis_transform()}
        axes.plot([_number(trial.setting[name]) for trial in others], [1.0] * len(others), **at_top)
        axes.axvline(_number(result["pinned"][name]), **marks.REFERENCE)
        axes.plot([_number(chosen.setting[name])], [chosen.objective], **SQUARE)
        meaning = textwrap.fill(meanings[name], LETTERS)
        axes.set(xscale="log", xlabel=meaning, ylabel="median MMD")
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
        layout.plain_numbers(axes.xaxis)
    run = [trial for trial in searched if trial.seeds]
    clipping.plot([trial.number for trial in run], [trial.clip_fraction for trial in run], **DOT)
    clipping.axhline(CLIP_LIMIT, **LIMIT)
    clipping.set(xlabel="trial", ylabel="fraction clipped", ylim=(0, None))
    entries = {
        "a trial; colour: the later, the darker": DOT,
        "best so far": {"color": BEST, "linewidth": 1},
        "chosen": SQUARE,
        "trial that may not be chosen": REFUSED,
        "before the search": marks.REFERENCE,
        "limit of clipping": LIMIT,
    }
    model = style.model_title(result["model"], study.model(result["model"]).model)
    method = style.method_styles(study.methods)[result["method"]].title
    title: dict[str, Any] = {"title": f"search: {method}, {model}", "title_fontsize": 9, "alignment": "left"}
    layout.legend(figure, entries, columns=3, **title)
    return figure


def _number(value: float | list[float]) -> float:
    """Return a hyperparameter as one number: the first of a list, whose proportions are kept."""
    return float(value[0] if isinstance(value, list) else value)
