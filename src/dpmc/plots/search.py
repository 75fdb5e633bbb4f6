"""One search of hyperparameters: the objective over trials and over each of them, and what was clipped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpmc.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dpmc.trials import Trial


def draw(trials: list[Trial], result: dict[str, Any], title: str) -> Figure:
    """Draw the trials of one search; `result` as `dpmc.search.search` returns it."""
    from matplotlib.figure import Figure

    searched = [trial for trial in trials if trial.stage == "search"][: result["search"]["trials"]]
    names, pinned = result["search"]["free"], result["pinned"]
    setting = {name: result["hyperparameters"][name] for name in names}
    chosen = next(trial for trial in searched if trial.setting == setting)
    columns = 3
    rows = -(-(len(names) + 2) // columns)
    figure = Figure(figsize=(style.TEXT_WIDTH, 1.75 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for spare in axes[len(names) + 2 :]:
        spare.remove()
    _history(axes[0], searched)
    for axis, name in zip(axes[1:], names, strict=False):
        _slice(axis, searched, name, _number(pinned[name]), chosen)
    _clipping(axes[len(names) + 1], searched)
    figure.suptitle(title, x=0.01, ha="left", fontsize=9)
    return figure


def _number(value: Any) -> float:
    """A hyperparameter as one number: the first of a list, whose proportions are kept."""
    return float(value[0] if isinstance(value, list) else value)


def _history(axis: Axes, trials: list[Trial]) -> None:
    feasible = [trial for trial in trials if trial.feasible]
    others = [trial.number for trial in trials if not trial.feasible]
    axis.plot([t.number for t in feasible], [t.objective for t in feasible], ".", ms=3, color=style.INK)
    best: list[float] = []
    for trial in feasible:
        best.append(min(trial.objective, best[-1] if best else trial.objective))
    axis.step([t.number for t in feasible], best, where="post", lw=1, color="#0072B2")
    axis.plot(others, [1.0] * len(others), "|", ms=4, color=style.GREY, transform=axis.get_xaxis_transform())
    axis.set(xlabel="trial", ylabel="median MMD", title="objective")


def _slice(axis: Axes, trials: list[Trial], name: str, pinned: float, chosen: Trial) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    feasible = [trial for trial in trials if trial.feasible]
    others = [_number(trial.setting[name]) for trial in trials if not trial.feasible]
    x = [_number(trial.setting[name]) for trial in feasible]
    y = [trial.objective for trial in feasible]
    axis.scatter(x, y, s=6, c=[trial.number for trial in feasible], cmap="viridis_r", lw=0)
    axis.plot(others, [1.0] * len(others), "|", ms=4, color=style.GREY, transform=axis.get_xaxis_transform())
    axis.axvline(pinned, ls="--", lw=0.8, color=style.GREY)
    axis.plot([_number(chosen.setting[name])], [chosen.objective], "s", ms=5, mfc="none", mec="#D55E00")
    axis.set(xscale="log", xlabel=name, title=name)
    axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())


def _clipping(axis: Axes, trials: list[Trial]) -> None:
    from dpmc.tuning import CLIP_LIMIT

    run = [trial for trial in trials if trial.seeds]
    axis.plot(
        [trial.number for trial in run], [trial.clip_fraction for trial in run], ".", ms=3, color=style.INK
    )
    axis.axhline(CLIP_LIMIT, ls=":", lw=0.8, color=style.GREY)
    axis.set(xlabel="trial", ylabel="fraction clipped", title="clipping", ylim=(0, None))
