"""What is known of an algorithm, a kind of figure or a model stands in one place and nowhere else."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpmc.algorithms import ALGORITHMS, algorithm_class
from dpmc.algorithms.hyperparameters import calibrated, searched
from dpmc.base import Algorithm
from dpmc.common.errors import DpmcError
from dpmc.common.shipped import PACKAGE
from kernels.cells import HYPERPARAMETERS, read

#: Modules that are about one method: what the thesis drew, and the walk that is a reference without privacy.
OF_ONE_METHOD = {
    "reports/plots/maps.py": "dp-hmc",
    "reports/claims/table.py": "dp-hmc",
    "reports/plots/z_scores.py": "dp-penalty minibatch-penalty",
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
            module = re.fullmatch(r"dpmc\.algorithms\.(?!hyperparameters|listing)\w+", node.module or "")
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
    cls, made = algorithm_class(name), read(name, HYPERPARAMETERS[name])
    assert cls.uses_gradients == (made.needs(2).gradients > 0)
    own = inspect.getattr_static(cls, "calibrate") is not inspect.getattr_static(Algorithm, "calibrate")
    assert cls.calibrates_run + cls.calibrates_iteration == own
    assert cls.calibrates_run == any(event.name == "sum" for event in made.releases(60).run)
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
