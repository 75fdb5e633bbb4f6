"""One search of hyperparameters: the objective over trials and over each of them, and what was clipped."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from dpmc.plots import marks, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dpmc.studies import Study
    from dpmc.trials import Trial

COLUMNS = 3
LETTERS = 27  # of a line below a panel
BEST, CHOSEN = "#0072B2", "#D55E00"
DOT: dict[str, Any] = {"linestyle": "none", "marker": ".", "markersize": 4, "color": style.INK}
REFUSED: dict[str, Any] = {"linestyle": "none", "marker": "|", "markersize": 4, "color": style.GREY}
SQUARE: dict[str, Any] = {"linestyle": "none", "marker": "s", "markersize": 5, "mfc": "none", "mec": CHOSEN}
LIMIT: dict[str, Any] = {"linestyle": ":", "linewidth": 0.8, "color": style.GREY}


def draw(trials: list[Trial], result: dict[str, Any], study: Study) -> Figure:
    """Draw the trials of one search; `result` as `dpmc.search.search` returns it."""
    from matplotlib.figure import Figure

    searched = [trial for trial in trials if trial.stage == "search"][: result["search"]["trials"]]
    names, pinned = result["search"]["free"], result["pinned"]
    setting = {name: result["hyperparameters"][name] for name in names}
    chosen = next(trial for trial in searched if trial.setting == setting)
    rows = -(-(len(names) + 2) // COLUMNS)
    with style.context():
        size = (style.TEXT_WIDTH, 1.9 * rows + 0.7)
        figure = Figure(figsize=size, layout="constrained", dpi=100)
        axes = figure.subplots(rows, COLUMNS, squeeze=False).ravel()
        for spare in axes[len(names) + 2 :]:
            spare.remove()
        _history(axes[0], searched)
        for axis, name in zip(axes[1:], names, strict=False):
            _slice(axis, searched, name, _number(pinned[name]), chosen)
            axis.set_xlabel(_meaning(study, result["method"], name))
        _clipping(axes[len(names) + 1], searched)
        model = style.model_title(result["model"], study.model(result["model"]).model)
        method = style.method_styles(dict(study.methods))[result["method"]].title
        _legend(figure, f"search: {method}, {model}")
    return figure


def _meaning(study: Study, method: str, name: str) -> str:
    """Return what a hyperparameter is, with its unit, in short lines."""
    from dpmc.algorithms import algorithm_class
    from dpmc.algorithms.hyperparameters import describe

    meanings = {
        key: meaning for key, meaning, *_ in describe(algorithm_class(study.methods[method].algorithm))
    }
    return textwrap.fill(meanings.get(name, name.replace("_", " ")), LETTERS)


def _number(value: Any) -> float:
    """Return a hyperparameter as one number: the first of a list, whose proportions are kept."""
    return float(value[0] if isinstance(value, list) else value)


def _history(axes: Axes, trials: list[Trial]) -> None:
    """Draw the objective of each trial, and the best so far."""
    feasible = [trial for trial in trials if trial.feasible]
    others = [trial.number for trial in trials if not trial.feasible]
    best: list[float] = []
    for trial in feasible:
        best.append(min(trial.objective, best[-1] if best else trial.objective))
    axes.plot([t.number for t in feasible], [t.objective for t in feasible], **DOT)
    axes.step([t.number for t in feasible], best, where="post", lw=1, color=BEST)
    axes.plot(others, [1.0] * len(others), **REFUSED, transform=axes.get_xaxis_transform())
    axes.set(xlabel="trial", ylabel="median MMD")


def _slice(axes: Axes, trials: list[Trial], name: str, pinned: float, chosen: Trial) -> None:
    """Draw the objective over one hyperparameter; later trials are darker."""
    from matplotlib.ticker import LogLocator

    feasible = [trial for trial in trials if trial.feasible]
    others = [_number(trial.setting[name]) for trial in trials if not trial.feasible]
    x, y = [_number(trial.setting[name]) for trial in feasible], [trial.objective for trial in feasible]
    numbers = [trial.number for trial in feasible]
    axes.scatter(
        x, y, s=6, c=numbers, cmap="viridis_r", vmin=-0.3 * max(numbers, default=1), lw=0
    )  # no pale ones
    axes.plot(others, [1.0] * len(others), **REFUSED, transform=axes.get_xaxis_transform())
    axes.axvline(pinned, **marks.REFERENCE)
    axes.plot([_number(chosen.setting[name])], [chosen.objective], **SQUARE)
    axes.set(xscale="log", ylabel="median MMD")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    marks.plain_numbers(axes.xaxis)


def _clipping(axes: Axes, trials: list[Trial]) -> None:
    """Draw the fraction clipped of each trial that ran, and the limit of the search."""
    from dpmc.tuning import CLIP_LIMIT

    run = [trial for trial in trials if trial.seeds]
    axes.plot([trial.number for trial in run], [trial.clip_fraction for trial in run], **DOT)
    axes.axhline(CLIP_LIMIT, **LIMIT)
    axes.set(xlabel="trial", ylabel="fraction clipped", ylim=(0, None))


def _legend(figure: Figure, title: str) -> None:
    """Explain marks and lines above the panels, below what the search was of."""
    from matplotlib.lines import Line2D

    looks = {
        "a trial; colour: the later, the darker": DOT,
        "best so far": {"color": BEST, "linewidth": 1},
        "chosen": SQUARE,
        "trial that may not be chosen": REFUSED,
        "before the search": marks.REFERENCE,
        "limit of clipping": LIMIT,
    }
    entries = [(Line2D([], [], **look), text) for text, look in looks.items()]
    marks.draw_legend(figure, entries, title=title, title_fontsize=9, alignment="left")
