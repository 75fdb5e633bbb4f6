"""What a result depends on is computed from imports: nothing that it runs is missing, little is too much."""

import ast
import io
import itertools
import json
import shutil
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpmc.cli.main import main
from dpmc.common.sources import modules, sources_version
from dpmc.privacy import accountants
from dpmc.privacy.runs import RunQueries
from dpmc.studies import (
    MissingSettings,
    Study,
    build_algorithm,
    chain_settings,
    definition_of,
    load_study,
    number_of_rows,
    pinned_hyperparameters,
    source_version,
)
from dpmc.studies.cells import accountant_versions
from dpmc.tuning import search
from pipeline_copy import ROOT, run

SCRIPTS = ROOT / "workflow/scripts"


@pytest.fixture(autouse=True)
def changing_sources():
    """Sources change under these tests."""
    sources_version.cache_clear()


FILES = {
    "entry.py": """
from typing import TYPE_CHECKING
from pack.near import near
if TYPE_CHECKING:
    from pack.types import Type
""",
    "pack/__init__.py": "",
    "pack/near.py": "from . import table\ndef near():\n    from .late import value\n    return value\n",
    "pack/table.py": 'KIND = "pack.kind:One"\ndef get(x): return f"pack.plots.{x}:draw"\n',
    "pack/plots/__init__.py": "",
    **{f"pack/{name}.py": "x = 1\n" for name in ("late", "kind", "plots/lines", "types")},
}


def written(folder: Path) -> Path:
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("name", "text", "place", "counts"),
    [
        # Imported at the top, in a function, relatively, by a name in a text, by the start of a name.
        ("entry", "\ny = 2\n", None, True),
        ("pack/near", "\ny = 2\n", None, True),
        ("pack/late", "\ny = 2\n", None, True),
        ("pack/kind", "\ny = 2\n", None, True),
        ("pack/plots/lines", "\ny = 2\n", None, True),
        ("pack/types", "y = 2\n", None, False),  # a module for type checkers
        ("pack/late", "# comment\n", None, False),
        ("pack/near", "    'A docstring.'\n", "def near():\n", False),
    ],
)
def test_a_change_counts_if_the_changed_code_is_run(tmp_path, name, text, place, counts) -> None:
    file = written(tmp_path) / f"{name}.py"
    before = sources_version(tmp_path / "entry.py")
    old = file.read_text()
    file.write_text(old.replace(place, place + text) if place else old + text)
    sources_version.cache_clear()
    assert (sources_version(tmp_path / "entry.py") != before) == counts


def test_a_version_does_not_depend_on_the_place(tmp_path) -> None:
    places = [written(tmp_path / name) / "entry.py" for name in "ab"]
    assert sources_version(places[0]) == sources_version(places[1])


def test_a_search_depends_on_what_values_its_trials_and_not_on_what_runs_them() -> None:
    names = modules("dpmc.tuning.search", without=search.VERSIONED_MODULES)
    assert {"dpmc.tuning.search", "dpmc.tuning.trials", "dpmc.metrics.mmd", "dpmc.privacy.events"} <= names
    running = ("algorithms", "evaluators", "sampling", "data.problem", "data.datasets", "models", "reports")
    assert not [name for name in names if f"{name}.".startswith(tuple(f"dpmc.{part}." for part in running))]


# Modules that are really imported.

SMALL: dict[str, Any] = {
    "seeds": 2,
    "models": {"circle": {"epsilons": [0.5], "tuning_epsilon": 0.5, "n": 2000}},
}
SMALL["models"]["flat-banana-2d"] = {"epsilons": [1, 2], "tuning_epsilon": 2, "n": 2000}
RUN = """
import json, runpy, sys
work, record = json.loads(sys.argv[1]), sys.argv[2]
for what, *arguments in work:
    sys.argv = [what, *arguments]
    try:
        (runpy.run_path if what.endswith(".py") else runpy.run_module)(what, run_name="__main__")
    except SystemExit as left:
        assert not left.code, (what, arguments)
json.dump([name for name in sys.modules if name.partition(".")[0] == "dpmc"], open(record, "w"))
"""
#: The front door: it reads options and chooses the command, but computes nothing.
DOOR = {"dpmc.__main__", "dpmc.cli.main", "dpmc.cli.options"}


def blocks() -> Iterator[list[str]]:
    """Yield the tokens of each rule and function of the workflow, in whatever lines they are written."""
    for file in sorted((ROOT / "workflow/rules").glob("*.smk")):
        lines = io.StringIO(file.read_text(encoding="utf-8"))
        tokens = [token for token in tokenize.generate_tokens(lines.readline) if token.string.strip()]
        starts = [i for i, token in enumerate(tokens) if token.start[1] == 0]
        for start, end in itertools.pairwise([*starts, len(tokens)]):
            yield [token.string for token in tokens[start:end]]


def sources_of(rule: str) -> set[str]:
    """Return the modules of the version of a rule, as its file states it; of a script, what it imports."""
    beside = ROOT / "config/studies/thesis_figures.py"  # also followed where the rule says `shipped`
    if rule.endswith(".py"):
        versions = [block for block in blocks() if {"script", "sources_version"} <= set(block)]
        given = [block[block.index("sources_version") :][2:7] for block in versions]
        assert given and all(words == ["Path", "(", "input", ".", "script"] for words in given)
        assert ["shipped" in block for block in versions].count(True) == 1  # of claims
        return modules(SCRIPTS / rule, *([beside] if rule == "claims.py" else []))
    (block,) = (block for block in blocks() if rule in block[1:2])
    named = ast.literal_eval(block[block.index("sources_version") + 2])
    return modules(named, *([beside] if "shipped" in block else []))


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """The smoke study with few rows, with chains and their metrics."""
    folder = tmp_path_factory.mktemp("small")
    smoke = yaml.safe_load((ROOT / "config/studies/smoke.yaml").read_text())
    methods = {name: {**(about or {}), "most_iterations": 40} for name, about in smoke["methods"].items()}
    (folder / "smoke.yaml").write_text(yaml.safe_dump({**smoke, **SMALL, "methods": methods}))
    (folder / "hyperparameters").symlink_to(ROOT / "config/hyperparameters")
    study = load_study(folder / "smoke.yaml")

    def dpmc(command: str, output: str, *words: str) -> None:
        given = [folder / word if word.endswith(".nc") else word for word in words]
        assert (
            main(tuple(map(str, (command, "--study", study.path, *given, "--output", folder / output)))) == 0
        )

    for model in study.models:
        dpmc("data", f"{model}.nc", "--model", model, "--data", "published")
    for model, method, epsilon in study.cells():
        chains = f"results/smoke/chains/{model}/{method}/eps-{epsilon}/seed-{{seed}}.nc"
        cell = ("--model", model, "--method", method, "--epsilon", epsilon, "--seed", "0", "1", "--quiet")
        dpmc("sample", chains, *cell, "--data", f"{model}.nc")
    dpmc("budgets", BUDGETS)
    circle = [str(file.relative_to(folder)) for file in folder.glob("results/smoke/chains/circle/*/*/*.nc")]
    dpmc("evaluate", METRICS, "--quiet", "--data", "circle.nc", "--chains", *sorted(circle))
    shutil.copy(folder / METRICS, folder / "results/smoke/metrics.csv")  # for the table of run times
    return folder


METRICS, BUDGETS = "results/smoke/some.csv", "results/smoke/budgets.csv"
STUDY = ("--study", "smoke.yaml")
CHAINS = [f"results/smoke/chains/circle/dp-penalty/eps-0.5/seed-{seed}.nc" for seed in (0, 1)]
READING = ("--data", "circle.nc", "--chains", *CHAINS)
PUBLISHED = str(ROOT / "data/published")


def plot(study: str, figure: str, ending: str) -> tuple[str, ...]:
    chosen = ("plot", "--study", study, "--figure", figure)
    return (*chosen, "--metrics", METRICS, "--output", f"{figure}{ending}")


WORK: dict[str, list[tuple[str, ...]]] = {
    "evaluate": [("evaluate", *STUDY, *READING, "--baselines", "--output", "metrics.csv")],
    "traces": [("trace", *STUDY, *READING, "--output", "traces.csv")],
    "budgets": [("budgets", *STUDY, "--output", "budgets.csv")],
    "figure_version": [
        *(plot("smoke.yaml", figure, ".png") for figure in ("mmd-easy", "clipping-easy")),
        plot("thesis", "accounting", ".png"),
    ],
    "table": [plot("smoke.yaml", table, ".csv") for table in ("models", "hyperparameters", "iterations")],
    "page.py": [("smoke.yaml", "index.html")],
    "claims.py": [("thesis", METRICS, BUDGETS, PUBLISHED, "claims.yaml")],
    "spending.py": [("smoke.yaml", *CHAINS)],
    "clipping_table.py": [("thesis", METRICS, "clipping.csv")],
    "compare_published.py": [("smoke.yaml", METRICS, PUBLISHED, "comparison.csv")],
    "tight_table.py": [("thesis-tight", METRICS, "tight.csv")],
    "tuned_table.py": [("thesis-tuned", METRICS, "tuned.csv")],
}


@pytest.mark.parametrize("rule", WORK)
def test_what_a_rule_imports_is_among_the_sources_of_its_version(made, rule) -> None:
    """The modules in a process of its own, after the work. Lists written by hand missed dozens."""
    program = str(SCRIPTS / rule) if rule.endswith(".py") else "dpmc"
    record = made / f"{rule}.json"
    run(made, "-c", RUN, json.dumps([(program, *given) for given in WORK[rule]]), str(record))
    names = set(json.loads(record.read_text())) - DOOR
    assert len(names) > 20 and names <= sources_of(rule), names - sources_of(rule)


# Chains follow versions that are raised by hand, of accountants too.


STUDIES = {name: load_study(name) for name in ("thesis", "thesis-tight", "dp-hmc", "dp-fast-mh")}
CELLS = [(name, *cell) for name, study in STUDIES.items() for cell in study.cells()]


def serves(name: str, study: Study, cell: tuple[str, str, str]) -> bool:
    """Is this the accountant of a cell with a budget, or of its noise?"""
    model, method, epsilon = cell
    if epsilon == "inf" and study.epsilon_kind == "total":
        return False
    dimension, n = len(definition_of(study, model).true_theta), number_of_rows(study, model)
    given = pinned_hyperparameters(study, model, method)
    once, each = RunQueries.of(build_algorithm(study, method, given, dimension, epsilon, n), n)
    presets = {study.method(method).accountant, *(["tight"] if study.epsilon_kind != "total" else [])}
    return name in {accountants.resolve(preset, once + each).name for preset in presets}


@pytest.mark.parametrize("name", accountants.ACCOUNTANTS)
def test_a_corrected_accountant_remakes_exactly_the_chains_it_serves(name, monkeypatch) -> None:
    before = [chain_settings(STUDIES[study], *cell) for study, *cell in CELLS]
    monkeypatch.setattr(type(accountants.ACCOUNTANTS[name]), "version", "corrected")
    now = [chain_settings(STUDIES[study], *cell) for study, *cell in CELLS]
    remade = [cell for cell, old, new in zip(CELLS, before, now, strict=True) if old != new]
    served = [(study, *cell) for study, *cell in CELLS if serves(name, STUDIES[study], tuple(cell))]
    assert remade == served
    # `basic` is for peers alone, which none of these studies has.
    assert (
        bool(remade) == any(name in preset.values() for preset in accountants.PRESETS.values())
        or name == "basic"
    )


def own_study(folder: Path, models: dict[str, Any], methods: dict[str, Any], **more: Any) -> Study:
    about = {"title": "mine", "delta": "0.1/n", "seeds": 2, "tuning": {"mode": "none"}, "figures": [], **more}
    (folder / "mine.yaml").write_text(yaml.safe_dump({**about, "models": models, "methods": methods}))
    return load_study(folder / "mine.yaml")


def test_noise_of_an_epsilon_per_iteration_follows_the_tightest_accountant(tmp_path) -> None:
    """Also while hyperparameters are missing: calibration will ask it."""
    models = {"circle": {"epsilons": [0.1], "iterations": 5}}
    methods = {"dp-penalty": {"accountant": "zcdp"}}
    study = own_study(tmp_path, models, methods, epsilon_kind="per-iteration")
    with pytest.raises(MissingSettings):
        pinned_hyperparameters(study, "circle", "dp-penalty")
    assert {"tight", "zcdp"} <= set(accountant_versions(study, "circle", "dp-penalty"))


def test_chains_follow_the_file_of_a_model_of_ones_own(tmp_path) -> None:
    """With the modules beside it that it imports, but neither its comments nor dpmc."""
    (tmp_path / "helper_of_mine.py").write_text("SCALE = 1.0\n")
    model = tmp_path / "model_of_mine.py"
    model.write_text("from dpmc import Model\n\ndef make():\n    import helper_of_mine\n")
    models = {"mine": {"model": "model_of_mine:make", "data": "rows.csv", "epsilons": [1]}}
    (tmp_path / "rows.csv").write_text("x\n1\n2\n")
    study = own_study(tmp_path, models, {"dp-penalty": {"most_iterations": 5}})

    def now() -> str:
        sources_version.cache_clear()
        return chain_settings(study, "mine", "dp-penalty", "1") + source_version(study, "mine")

    assert modules(model, without=("dpmc",)) == {"model_of_mine", "helper_of_mine"}
    first = now()
    model.write_text("# comment\n" + model.read_text())
    assert now() == first
    (tmp_path / "helper_of_mine.py").write_text("SCALE = 2.0\n")
    second = now()
    assert second != first
    model.write_text("not Python:\n")
    assert now() != second
    assert source_version(load_study("smoke"), "circle") == ""
