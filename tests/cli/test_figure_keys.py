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


def test_a_study_has_all_figures_of_its_file(tmp_path) -> None:
    assert load_study(write(tmp_path)).figures == ("clipped", "special")


def test_a_study_selects_figures_among_its_own_and_those_of_dpmc(tmp_path) -> None:
    study = load_study(write(tmp_path, figures="figures: [special, mmd-easy]\n"))
    assert study.figures == ("special", "mmd-easy")
    assert load_study(study.path).figures == study.figures


def test_an_own_figure_replaces_the_figure_of_the_same_name(tmp_path) -> None:
    study = load_study(write(tmp_path, "clipped:", "comparison:"))
    assert known_figures(study.path)["comparison"].metric == ("ratio_clip_fraction",)
    assert known_figures(Path("none.yaml"))["comparison"].metric == ("mmd", "mean_error")


def test_a_study_without_a_file_of_figures_has_none(tmp_path) -> None:
    path = tmp_path / "bare.yaml"
    path.write_text(STUDY)
    assert load_study(path).figures == ()


def test_a_function_beside_the_study_draws(tmp_path) -> None:
    study = load_study(write(tmp_path))
    (tmp_path / "own_drawing.py").write_text(DRAWING)
    metrics = tmp_path / "metrics.csv"
    metrics.write_text("study,model,method,epsilon,seed,metric,value\n")
    plots.plot("special", study, [metrics], tmp_path, [tmp_path / "special.svg"])
    assert "something else of mine" in (tmp_path / "special.svg").read_text()
    assert plots.caption("special", study) == "something else"


CAPTION = "  caption: what was clipped\n"
BOXES = "kind: boxes"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (BOXES, "kind: violins", "line 2: clipped: kind: 'violins' must be 'boxes', 'bounds'"),
        (BOXES, "kinds: boxes", "line 2: clipped: kinds: unknown key; known: kind, draw, "),
        (f"  {BOXES}\n", "", "line 1: clipped: needs either kind or draw"),
        (BOXES, f'{BOXES}\n  draw: "a:b"', "line 1: clipped: needs either kind or draw"),
        ("  metric: ratio_clip_fraction\n", "", "line 1: clipped: kind boxes needs a metric"),
        ("scale: symlog", "scale: root", "line 4: clipped: y: scale: 'root' must be 'linear', 'log'"),
        ("[0, 1]", "[1, 0]", "line 4: clipped: y: limits: [1, 0] must be two numbers, the smaller first"),
        ("[0, 1]", "[0, true]", "line 4: clipped: y: limits: [0, True] must be two numbers"),
        (BOXES, f"{BOXES}\n  pairs: {{a: b}}", "line 1: clipped: needs both pairs and beside, or"),
        (BOXES, f"{BOXES}\n  pairs: {{a: b}}\n  beside: others\n  published: theirs",
         "line 1: clipped: pairs and published exclude each other: both are slim bars"),
        (BOXES, "kind: maps\n  half_widths: {circle: 0}", "line 3: clipped: half_widths: circle: 0 "),
        (CAPTION, f"  panels: [{{y: {{scales: log}}}}]\n{CAPTION}",
         "clipped: panels: 0: y: scales: unknown key; known: scale, "),
        (CAPTION, f"  panels: [{{x: {{at: 0}}}}]\n{CAPTION}", "panels: 0: x: at: 0 must be greater than 0"),
        ("at: 0.1", "at: low", "lines: 0: at: 'low' must be a number"),
        ("at: 0.1, ", "", "lines: 0: key 'at' is missing"),
        (CAPTION, "", "line 1: clipped: key 'caption' is missing"),
        ("own_drawing:draw", "own_drawing", "line 9: special: draw: 'own_drawing' must match"),
        ("metric: ratio", "metric: ration", "line 3: clipped: metric: 'ration_clip_fraction' is unknown"),
        (BOXES, f"{BOXES}\n  models: [circel]", "line 3: clipped: models: 'circel' is unknown; known: ci"),
        (BOXES, f"{BOXES}\n  methods: [dp]", "line 3: clipped: methods: 'dp' is unknown; known: dp-pen"),
        (BOXES, f'{BOXES}\n  pairs: {{"*-tuned": "*", dp-hmc: dp-penalty}}\n  beside: others',
         "line 3: clipped: pairs: 'dp-hmc' is unknown; known: circle, dp-penalty"),
        ("clipped:", "Clipped:", "line 1: Clipped: 'Clipped' must match"),
        ("special:", "run-times:", "line 8: run-times: is the name of a table that dpmc makes; a figure "),
    ],
)  # fmt: skip
def test_invalid_keys_are_refused_with_a_one_line_message(tmp_path, old, new, message) -> None:
    with pytest.raises(DpmcError) as caught:
        load_study(write(tmp_path, old, new))
    assert str(caught.value).startswith(f"{tmp_path}/figures/mine.yaml: ") and "\n" not in str(caught.value)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        ("none_such:draw", "No module named 'none_such'"),
        ("dpmc.reports.plots.boxes:drew", "has no function drew"),
    ],
)
def test_a_missing_drawing_function_is_refused(tmp_path, draw, message) -> None:
    study = load_study(write(tmp_path, "own_drawing:draw", draw))
    with pytest.raises(DpmcError, match=message):
        plots.applies("special", study)
