"""A file of figures: its location, its keys, and one-line refusals."""

from pathlib import Path

import pytest

from dpmc.common.errors import DpmcError
from dpmc.reports import plots
from dpmc.studies import load_study
from dpmc.studies.figures import known_figures

STUDY = """title: own figures
delta: 0.1/n
seeds: 2
tuning: {mode: none}
models:
  circle: {epsilons: [0.5, 1]}
methods:
  dp-penalty: {}
"""
FIGURES = """clipped:
  kind: boxes
  metric: ratio_clip_fraction
  y: {scale: symlog, limits: [0, 1]}
  lines:
    - {at: 0.1, label: target}
  caption: what was clipped
special:
  draw: "own_drawing:draw"
  caption: something else
"""
DRAWING = """from matplotlib.figure import Figure


def draw(given):
    figure = Figure()
    figure.suptitle(given.declared.caption + " of " + given.study.name)
    return figure
"""


def write(folder: Path, old: str = "", new: str = "", figures: str = "") -> Path:
    """A study and its file of figures, one text replaced."""
    assert old in FIGURES
    (folder / "figures").mkdir()
    (folder / "figures/mine.yaml").write_text(FIGURES.replace(old, new) if old else FIGURES)
    (folder / "mine.yaml").write_text(STUDY + figures)
    return folder / "mine.yaml"


def test_a_study_selects_figures_among_its_own_and_those_of_dpmc(tmp_path) -> None:
    study = load_study(write(tmp_path, figures="figures: [special, mmd-easy]\n"))
    assert study.figures == ("special", "mmd-easy")
    assert load_study(study.path).figures == study.figures


def test_an_own_figure_replaces_the_figure_of_the_same_name(tmp_path) -> None:
    study = load_study(write(tmp_path, "clipped:", "comparison:"))
    assert known_figures(study.path)["comparison"].metric == ("ratio_clip_fraction",)
    assert known_figures(Path("none.yaml"))["comparison"].metric == ("mmd", "mean_error")


def test_a_function_beside_the_study_draws(tmp_path) -> None:
    study = load_study(write(tmp_path))
    (tmp_path / "own_drawing.py").write_text(DRAWING)
    metrics = tmp_path / "metrics.csv"
    metrics.write_text("study,model,method,epsilon,seed,metric,value\n")
    plots.plot("special", study, [metrics], [tmp_path / "special.svg"])
    assert "something else of mine" in (tmp_path / "special.svg").read_text()
    assert plots.caption("special", study) == "something else"


KIND, CAPTION = "kind: boxes", "  caption: what was clipped"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (KIND, "kind: violins", "line 2: clipped: kind: 'violins': Input should be 'bounds', 'boxes'"),
        (f"  {KIND}\n", "", "line 1: clipped: needs either kind or draw"),
        ("  metric: ratio_clip_fraction\n", "", "line 1: clipped: kind boxes needs a metric"),
        ("[0, 1]", "[1, 0]", "line 4: clipped: y: limits: [1.0, 0.0] must be two numbers, the smaller first"),
        (KIND, f"{KIND}\n  pairs: {{a: b}}", "line 1: clipped: needs both pairs and beside, or"),
        (KIND, f"{KIND}\n  pairs: {{a: b}}\n  beside: others\n  published: theirs",
         "line 1: clipped: pairs and published exclude each other: both are slim bars"),
        (CAPTION, f"  panels: [{{y: {{scales: log}}}}]\n{CAPTION}",
         "clipped: panels: 0: y: scales: unknown key; known: scale, "),
        ("metric: ratio", "metric: ration", "line 3: clipped: metric: 'ration_clip_fraction' is unknown; "),
        (KIND, f'{KIND}\n  pairs: {{"*-tuned": "*", dp-hmc: dp-penalty}}\n  beside: others',
         "line 3: clipped: pairs: 'dp-hmc' is unknown; known: circle, dp-penalty"),
        ("special:", "run-times:", "line 8: run-times: is the name of a table that dpmc makes; a figure "),
    ],
)  # fmt: skip
def test_a_mistake_is_refused_in_one_line(tmp_path, old, new, message) -> None:
    with pytest.raises(DpmcError) as caught:
        load_study(write(tmp_path, old, new))
    assert str(caught.value).startswith(f"{tmp_path}/figures/mine.yaml: ") and "\n" not in str(caught.value)
    assert message in str(caught.value)
