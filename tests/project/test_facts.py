"""What is known of an algorithm, a kind of figure or a model stands in one place and nowhere else."""

import ast
import inspect
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpmc.algorithms import ALGORITHMS, algorithm_class
from dpmc.algorithms.hyperparameters import calibrated, searched
from dpmc.base import Algorithm
from dpmc.common.errors import DpmcError
from dpmc.common.shipped import PACKAGE
from dpmc.studies.figures import KINDS
from kernels.cells import some

#: Modules that are about one method: what the thesis drew, and the walk that is a reference without privacy.
OF_ONE_METHOD = {
    "reports/claims/table.py": "dp-hmc",
    "tuning/first_setting.py": "rwmh",
}
WORDS = {word for name in ALGORITHMS for word in (name, *name.split("-"))} | {"sg"}


def named_in(text: str, allowed: str = "") -> Iterator[str]:
    """Yield what a module lists of algorithms: ids, parts of ids that are looked for, classes, calibrations.

    Texts and defaults of functions, which a caller sees, are left out.
    """
    tree = ast.parse(text)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    defaults = {id(part) for node in functions for part in (*node.args.defaults, *node.args.kw_defaults)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in {"calibrate", *ALGORITHMS} - {*allowed.split()}:
            if id(node) not in defaults:
                yield node.value
        elif isinstance(node, ast.Compare):
            sides = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
            yield from (f"{side} in" for side in sides if side in WORDS and "algorithm" in ast.unparse(node))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == "calibrate":
                yield "a calibration"
            elif node.func.attr in ("startswith", "endswith") and "algorithm" in ast.unparse(node.func):
                yield f"an id that {ast.unparse(node)}"
        elif isinstance(node, ast.ImportFrom):
            module = re.fullmatch(
                r"dpmc\.algorithms\.(?!hyperparameters|listing|answers)\w+", node.module or ""
            )
            yield from [module[0]] if module else []


def test_facts_of_algorithms_stand_on_their_classes() -> None:
    found = {}
    for file in PACKAGE.rglob("*.py"):
        place = file.relative_to(PACKAGE).as_posix()
        if not place.startswith("algorithms/"):
            found[place] = [*named_in(file.read_text(encoding="utf-8"), OF_ONE_METHOD.get(place, ""))]
    assert len(found) > 100 and {place: names for place, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "text",
    [
        'FREE = {"dp-penalty": ("tau", "clip")}',
        'CLIP_IS_GIVEN = ("dp-barker",)',
        'gradients = algorithm in ("dp-hmc", "dp-mala")',
        'guided = "guided" in spec.algorithm',
        'batches = spec.algorithm.startswith("minibatch")',
        "from dpmc.algorithms.dp_barker import DPBarker",
        "values = cls.calibrate(values, epsilon, delta, n)",
        'calibrate = getattr(cls, "calibrate", None)',
    ],
)
def test_a_fact_elsewhere_is_found(text: str) -> None:
    assert [*named_in(text)]


def test_the_rules_of_the_pipeline_name_no_algorithm() -> None:
    looked_for = r"\bin (wildcards\.method|algorithm)\b|" + "|".join(f'"{name}"' for name in ALGORITHMS)
    files = [*(Path(__file__).parents[2] / "workflow").rglob("*.smk")]
    assert files and not [file.name for file in files if re.search(looked_for, file.read_text())]


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_class_says_what_it_does(name: str) -> None:
    cls, made = algorithm_class(name), some(name)
    assert cls.asks or cls.uses_gradients == (made.needs(2).gradients > 0)
    own = inspect.getattr_static(cls, "calibrate") is not inspect.getattr_static(Algorithm, "calibrate")
    assert cls.calibrates_run + cls.calibrates_iteration == own
    assert cls.asks <= {event.name for event in made.queries(60).run}
    assert cls.calibrates_run == bool(cls.asks) or cls.is_for_comparison
    # A first setting has these, by their names.
    walk, trajectory = {"tau", "clip", "proposal_sd"}, {"tau_l", "tau_g", "step_size", "clip_l", "clip_g"}
    if cls.first_iterations:
        assert {*searched(cls)} - {"steps"} == (trajectory if cls.uses_gradients else walk)


def test_an_epsilon_per_iteration_is_that_of_a_row() -> None:
    for kind, words in (("total", None), ("per-iteration", "rows_per_person: not with")):
        given = (algorithm_class("dp-penalty"), {}, 1.0, 1e-5, 1000, 2, kind)
        if words:
            with pytest.raises(DpmcError, match=words):
                calibrated(*given)
        else:
            assert calibrated(*given) == {}


DOTS = """
from matplotlib.figure import Figure

from dpmc.reports.plots import reads_nothing as reads

NEEDS_METRIC = False


def applies(study, how):
    return study.name == "mine"


def caption(study, how):
    return [f"Dots: {study.seeds} runs."]


def draw(given):
    return Figure()
"""
STUDY = """title: dots
delta: 0.1/n
seeds: 2
tuning: {mode: none}
models: {circle: {epsilons: [1]}}
methods: {dp-penalty: {}}
"""
USE = """
from pathlib import Path

from dpmc.reports import plots
from dpmc.studies import load_study

study = load_study(Path("mine.yaml"))
plots.plot("few", study, [Path("metrics.csv")], [Path("few.svg")])
print(plots.reads("few", study), plots.applies("few", study), plots.caption("few", study))
"""


def test_a_kind_of_figure_is_one_module(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "src/dpmc", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in ("config", "data"):  # beside the package, as in a clone
        (tmp_path / folder).symlink_to(PACKAGE.parents[1] / folder)
    (tmp_path / "src/dpmc/reports/plots/dots.py").write_text(DOTS)
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures/mine.yaml").write_text("few: {kind: dots, caption: Some.}")
    (tmp_path / "mine.yaml").write_text(STUDY)
    (tmp_path / "metrics.csv").write_text("study,model,method,epsilon,seed,metric,value\n")
    made = subprocess.run(
        [sys.executable, "-c", USE],
        check=False,
        cwd=tmp_path,
        env={"PYTHONPATH": "src"},
        capture_output=True,
        text=True,
    )
    assert (made.stdout, made.stderr) == ("([], []) True Some. Dots: 2 runs.\n", "")
    assert (tmp_path / "few.svg").is_file()


def test_no_module_names_a_kind_of_figure_but_its_own() -> None:
    listed = re.compile(rf"\bkind\b[^\n]*[\"']({'|'.join(KINDS)})[\"']")
    reports = [*(PACKAGE / "reports/plots").glob("*.py"), PACKAGE / "studies/figures.py"]
    assert len(KINDS) == 5 and not [file.name for file in reports if listed.search(file.read_text())]
