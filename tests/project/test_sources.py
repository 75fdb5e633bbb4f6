"""What a result depends on is computed from imports: nothing that it runs is missing, little is too much."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpmc.cli.main import main
from dpmc.common import sources
from dpmc.common.sources import modules, version
from dpmc.privacy import accountants
from dpmc.studies import Study, load_study
from dpmc.tuning import search

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "workflow/scripts"


@pytest.fixture(autouse=True)
def changing_sources():
    """Sources change under these tests."""
    version.cache_clear()


FILES = {
    "entry.py": '''"""Text."""
from typing import TYPE_CHECKING

from pack.near import near
if TYPE_CHECKING:
    from pack.types import Type

def main():
    """Text."""
    return near()
''',
    "pack/__init__.py": "def lazy():\n    from pack import unused\n",
    "pack/near.py": "from . import table\ndef near():\n    from .deep.late import value\n    return value\n",
    "pack/table.py": 'KINDS = {"one": "pack.kinds.one:One"}\ndef get(x): return f"pack.plots.{x}:draw"\n',
    "pack/deep/__init__.py": "",
    "pack/deep/late.py": "value = 1\n",
    "pack/kinds/__init__.py": "",
    "pack/kinds/one.py": "class One:\n    '''Text.'''\n",
    "pack/plots/__init__.py": "",
    "pack/plots/lines.py": "x = 1\n",
    "pack/types.py": "x = 1\n",
    "pack/unused.py": "x = 1\n",
}


def written(folder: Path) -> Path:
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return written(tmp_path)


def versions(package: Path, name: str, edit: Callable[[str], str]) -> tuple[str, str]:
    """Return the versions of entry.py before and after an edit of a file's text."""
    before = version(package / "entry.py")
    (package / name).write_text(edit((package / name).read_text()))
    version.cache_clear()
    return before, version(package / "entry.py")


@pytest.mark.parametrize(
    "name",
    ["entry", *(f"pack/{name}" for name in ("__init__", "near", "deep/late", "kinds/one", "plots/lines"))],
)
def test_a_change_of_a_module_that_is_imported_counts(package, name) -> None:
    """Also of one imported in a function, relatively, by a name in a text, or by the start of a name."""
    before, after = versions(package, f"{name}.py", lambda text: text + "\ny = 2\n")
    assert before != after


@pytest.mark.parametrize(
    ("name", "edit"),
    [
        ("types", lambda text: text + "y = 2\n"),  # a module for type checkers
        ("unused", lambda text: text + "y = 2\n"),  # that only a function of the package's __init__ imports
        *(("deep/late", lambda text, end=end: text + end) for end in ("# comment\n", "\n\n", "'Below.'\n")),
        ("near", lambda text: text.replace("def near():\n", "def near():\n    'A docstring.'\n")),
    ],
)
def test_modules_that_are_not_run_comments_and_docstrings_do_not_count(package, name, edit) -> None:
    before, after = versions(package, f"pack/{name}.py", edit)
    assert before == after


def test_a_version_does_not_depend_on_the_place(package, tmp_path) -> None:
    other = written(tmp_path / "elsewhere")
    assert version(package / "entry.py") == version(other / "entry.py")


def test_only_what_a_function_names_counts(tmp_path) -> None:
    texts = ["def a():\n    return b()\n", "def b():\n    import first\n", "def c():\n    import second\n"]
    tree = sources.ast.parse("x = 1\n" + "".join(texts))
    assert sources.ast.unparse(sources.ast.Module(sources._used_by("a", tree.body), [])).count("import") == 1
    with pytest.raises(OSError, match="no such function"):
        version("dpmc.tuning.search:none")
    with pytest.raises(OSError, match="no such module"):
        version("dpmc.none")


def test_files_that_a_module_reads_beside_itself_count() -> None:
    names = {name for name, _ in sources._walked((SCRIPTS / "claims.py",), ())}
    assert {"dpmc.reports.claims:thesis.yaml", "dpmc.data.sources:sources.yaml"} <= names


# What each rule depends on.

EVERYTHING = {name for name in sources._package() if "shipped_files" not in name}


def below(*packages: str) -> set[str]:
    return {name for name in EVERYTHING if f"{name}.".startswith(tuple(f"dpmc.{one}." for one in packages))}


def test_a_search_depends_on_what_values_its_trials_and_not_on_what_runs_them() -> None:
    found = modules("dpmc.tuning.search", without=search.DECLARED)
    tuning = below("tuning") - below("tuning.first_setting", "tuning.reach")
    assert tuning | below("metrics.cell", "metrics.mmd", "metrics.statistics", "privacy.events") <= found
    running = ("algorithms", "evaluators", "sampling", "data.problem", "data.datasets", "models")
    assert not found & below(*running, "reports")


# Modules that are really imported.

SMALL: dict[str, Any] = {
    "seeds": 2,
    "models": {
        "flat-banana-2d": {"epsilons": [1, 2], "tuning_epsilon": 2, "n": 2000},
        "circle": {"epsilons": [0.5], "tuning_epsilon": 0.5, "n": 2000},
    },
}
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
DOOR = {"dpmc.__main__", "dpmc.cli.main", "dpmc.cli.options", "dpmc.cli.arguments"}


RULES = [
    block
    for file in sorted((ROOT / "workflow/rules").glob("*.smk"))
    for block in re.split(r"^(?=rule |def |for )", file.read_text(), flags=re.M)
]


def sources_of(rule: str) -> set[str]:
    """Return the modules of the version of a rule, as its file states it; of a script, what it imports."""
    if rule.endswith(".py"):
        return modules(SCRIPTS / rule)
    (block,) = (block for block in RULES if block.startswith((f"rule {rule}:", f"def {rule}(")))
    stated = re.search(r'version\("([\w.:]+)"', block)
    assert stated, rule
    return modules(stated[1])


def test_every_rule_with_a_script_has_the_version_of_its_imports() -> None:
    blocks = [block for block in RULES if re.search(r"\bscript=", block)]
    assert len(blocks) == 6, "claims, page, spending, tables, searches: collected and drawn"
    for block in blocks:
        assert "version=lambda wildcards, input: sources_version(Path(input.script))," in block


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """The smoke study with few rows, with chains and their metrics."""
    folder = tmp_path_factory.mktemp("small")
    smoke = yaml.safe_load((ROOT / "config/studies/smoke.yaml").read_text())
    methods = {name: {**(about or {}), "most_iterations": 40} for name, about in smoke["methods"].items()}
    (folder / "smoke.yaml").write_text(yaml.safe_dump({**smoke, **SMALL, "methods": methods}))
    (folder / "hyperparameters").symlink_to(ROOT / "config/hyperparameters")
    study = load_study(folder / "smoke.yaml")
    given = ("--study", str(study.path), "--quiet")
    for model in study.models:
        data = folder / f"{model}.nc"
        assert main(("data", *given[:2], "--model", model, "--data", "published", "--output", str(data))) == 0
    for model, method, epsilon in study.cells():
        cell = folder / f"results/smoke/chains/{model}/{method}/eps-{epsilon}"
        about = ("--model", model, "--method", method, "--epsilon", epsilon)
        outputs = [str(cell / f"seed-{seed}.nc") for seed in range(2)]
        data = folder / f"{model}.nc"
        assert main(("sample", *given, *about, "--data", str(data), "--output", *outputs)) == 0
    (folder / "results/smoke").mkdir(exist_ok=True)
    assert main(("budgets", *given[:2], "--output", str(folder / BUDGETS))) == 0
    chains = sorted(map(str, folder.glob("results/smoke/chains/circle/*/*/*.nc")))
    reading = ("--data", str(folder / "circle.nc"), "--chains", *chains)
    assert main(("evaluate", *given, *reading, "--output", str(folder / METRICS))) == 0
    return folder


METRICS, BUDGETS = "results/smoke/metrics.csv", "results/smoke/budgets.csv"
STUDY = ("--study", "smoke.yaml")
CHAINS = [f"results/smoke/chains/circle/dp-penalty/eps-0.5/seed-{seed}.nc" for seed in (0, 1)]
READING = ("--data", "circle.nc", "--chains", *CHAINS)
DRAWN = ("--metrics", METRICS, "--published", str(ROOT / "data/published"), "--results", "results")
PUBLISHED = str(ROOT / "data/published")


def plot(study: str, figure: str, ending: str) -> tuple[str, ...]:
    return ("plot", "--study", study, "--figure", figure, *DRAWN, "--output", f"{figure}{ending}")


WORK: dict[str, list[tuple[str, ...]]] = {
    "evaluate": [("evaluate", *STUDY, *READING, "--output", "chains.csv")],
    "baselines": [
        ("evaluate", *STUDY, "--model", "circle", *READING[:2], "--baselines", "--output", "baselines.csv")
    ],
    "traces": [("trace", *STUDY, *READING, "--output", "traces.csv")],
    "budgets": [("budgets", *STUDY, "--output", "budgets.csv")],
    "figure_version": [
        *(plot("smoke.yaml", figure, ".png") for figure in ("mmd-easy", "clipping-easy")),
        plot("thesis", "accounting", ".png"),
    ],
    "table": [plot("smoke.yaml", table, ".csv") for table in ("models", "hyperparameters", "iterations")],
    "page.py": [("smoke.yaml", "index.html")],
    "claims.py": [("thesis", METRICS, BUDGETS, "claims.yaml")],
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
    work = json.dumps([(program, *arguments) for arguments in WORK[rule]])
    command = [sys.executable, "-c", RUN, work, str(record)]
    done = subprocess.run(command, cwd=made, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    names = set(json.loads(record.read_text())) - DOOR
    assert len(names) > 20 and names <= sources_of(rule), names - sources_of(rule)


# Chains follow versions that are raised by hand, of accountants too.


def settings(*names: str) -> dict[tuple[str, ...], str]:
    """(Study, model, method, ε) -> what determines the chains."""
    studies = [load_study(ROOT / f"config/studies/{name}.yaml") for name in names]
    return {
        (study.name, *cell): study.sampling_settings(*cell) for study in studies for cell in study.cells()
    }


def serves(name: str, study: Study, cell: tuple[str, str, str]) -> bool:
    """Is this the accountant of a cell with a budget, or of its noise?"""
    model, method, epsilon = cell
    values, source = study.pinned_hyperparameters(model, method)
    about, n = study.definition(model), study.number_of_rows(model)
    if epsilon == "inf" and study.epsilon_kind == "total":
        return False
    algorithm = study.algorithm(method, values, len(about.true_theta), source, epsilon, n)
    once, each = algorithm.releases(n)
    presets = {study.method(method).accountant, *(["tight"] if study.epsilon_kind != "total" else [])}
    return name in {accountants.resolve(preset, once + each).name for preset in presets}


@pytest.mark.parametrize("name", accountants.ACCOUNTANTS)
def test_a_corrected_accountant_remakes_exactly_the_chains_it_serves(name, monkeypatch) -> None:
    studies = ("thesis", "thesis-tight", "dp-hmc", "dp-fast-mh")
    before = settings(*studies)
    monkeypatch.setattr(type(accountants.ACCOUNTANTS[name]), "version", "corrected")
    remade = {cell for cell, now in settings(*studies).items() if now != before[cell]}
    served = {
        (study.name, *cell)
        for study in (load_study(ROOT / f"config/studies/{name}.yaml") for name in studies)
        for cell in study.cells()
        if serves(name, study, cell)
    }
    assert remade == served
    assert bool(remade) == (name != "zcdp"), "which no preset selects"


def test_without_hyperparameters_all_accountants_of_the_preset_count(tmp_path) -> None:
    thesis = yaml.safe_load((ROOT / "config/studies/thesis.yaml").read_text())
    models = {"circle": {"epsilons": [1], "tuning_epsilon": 1}}
    methods = {"dp-penalty": {"accountant": "thesis"}, "dp-hmc": {"accountant": "tight"}, "dp-mala": {}}
    content = {"title": "mine", "delta": thesis["delta"], "seeds": 2, "models": models, "methods": methods}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({**content, "figures": []}))
    study = load_study(tmp_path / "mine.yaml")
    assert study.accountants("circle", "dp-penalty") == accountants.versions("thesis")
    assert set(accountants.versions("thesis")) == {"fast-mh-pld", "rdp", "replace-pld", "tight"}
    assert accountants.versions("zcdp") == {"zcdp": accountants.get("zcdp").version}


def test_chains_follow_the_file_of_a_model_of_ones_own(tmp_path) -> None:
    """With the modules beside it that it imports, but neither its comments nor dpmc."""
    (tmp_path / "helper_of_mine.py").write_text("SCALE = 1.0\n")
    model = tmp_path / "model_of_mine.py"
    model.write_text("from dpmc import Model\n\ndef make():\n    import helper_of_mine\n")
    models = {"mine": {"model": "model_of_mine:make", "data": "rows.csv", "epsilons": [1]}}
    about = {"title": "mine", "delta": "0.1/n", "seeds": 2, "tuning": {"mode": "none"}, "figures": []}
    content = {**about, "models": models, "methods": {"dp-penalty": {"most_iterations": 5}}}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(content))
    (tmp_path / "rows.csv").write_text("x\n1\n2\n")
    study = load_study(tmp_path / "mine.yaml")

    def now() -> str:
        version.cache_clear()
        return study.sampling_settings("mine", "dp-penalty", "1") + study.source_version("mine")

    assert modules(model, without=("dpmc",)) == {"model_of_mine", "helper_of_mine"}
    first = now()
    model.write_text("# comment\n" + model.read_text())
    assert now() == first
    (tmp_path / "helper_of_mine.py").write_text("SCALE = 2.0\n")
    second = now()
    assert second != first
    model.write_text("not Python:\n")
    assert now() != second
    assert load_study("smoke").source_version("circle") == ""
