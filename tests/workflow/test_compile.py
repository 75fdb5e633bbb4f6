"""Compiling beforehand: after it, no job of sampling, tuning or evaluation compiles anything."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numba
import pytest

from dpmc import compiler, linking, warmup
from dpmc.studies import load_study

ROOT = Path(__file__).parents[2]

#: What a fresh process prints of the part of the package that its compiled functions come from.
LOADED = """
import sys, dpmc.sampling, dpmc.metrics.mmd
from dpmc.algorithms import ALGORITHMS, algorithm_class
[algorithm_class(name) for name in ALGORITHMS]
print(*(name for name in sys.modules if name.startswith("dpmc.")))
"""

#: Sums of clipped gradients by the compiled evaluator, to the last bit.
GRADIENTS = """
import numpy as np
from dpmc import evaluators, models
from dpmc.compiler import compiled

@compiled
def gradients(evaluator, model, theta, bound, sums, counts):
    evaluator.gradient_sums(model, theta, bound, sums, counts)

known = models.definition("flat-banana-10d")
generator = np.random.default_rng(0)
rows = known.model.simulate(generator, np.array(known.true_theta), 3000)
theta = known.true_theta + 0.1 * generator.standard_normal((4, 10))
sums = np.zeros((4, 10))
gradients(evaluators.build(known.model, rows), known.model, theta, 2.0, sums, np.zeros(4, np.int64))
print(sums.tobytes().hex())
"""

#: Functions that a user has compiled by numba itself, called from what is compiled here, and by Python.
OWN = """
from typing import NamedTuple
import numba
from dpmc.compiler import compilable, compiled

@numba.njit
def square(x):
    return x * x

@numba.njit(cache=True)
def itself(x):
    return x

@compilable
def root_free(x):
    assert x >= 0.0, "negative"
    if x > 100.0:
        raise ValueError("large", x)
    return itself(square(x))

@compilable
class Own(NamedTuple):
    scale: float

    def value_at(self, x):
        return self.scale * root_free(x)

@compiled
def one(own, x):
    return own.value_at(x)

@compiled
def two(own, x):
    return own.value_at(x) + own.value_at(x + 1.0)

@numba.njit
def theirs(x):
    return root_free(x) + 1.0

print(one(Own(2.0), 3.0), two(Own(2.0), 3.0), square(4.0), square(5), theirs(6.0), itself(7.0))
for function in (one, two):
    try:
        function(Own(2.0), -1.0)
    except AssertionError as error:
        print(error)
    try:
        function(Own(2.0), 101.0)
    except ValueError as error:
        print(*error.args, sep="_")
"""


#: Functions that share a method that is translated apart, itself a caller of one; the arguments say which are
#: called. One class is as this package's, another a user's.
APART = """
import sys
from typing import NamedTuple
import numpy as np
from dpmc import linking
from dpmc.compiler import compilable, compiled

class Scaled(NamedTuple):
    scale: float

    def root(self, value):
        assert value >= 0.0, "negative"
        return np.sqrt(self.scale * value)

    def root_sum(self, values):
        total = 0.0
        for value in values:
            total += self.root(value)
        return total

class Own(NamedTuple):
    scale: float
    root, root_sum = Scaled.root, Scaled.root_sum

Scaled.__module__ = "dpmc.scaled"
compilable(Scaled, apart=True)
compilable(Own, apart=True)

@compiled
def first(values):
    return Scaled(2.0).root_sum(values)

@compiled
def second(values):
    return Scaled(2.0).root_sum(values) + Scaled(3.0).root_sum(values)

@compiled
def third(values):
    return Scaled(2.0).root_sum(values[::2])

@compiled
def own(values):
    return Own(2.0).root_sum(values)

values = 1.0 / np.arange(1.0, 1000.0)
for name in sys.argv[1:]:
    print(name, globals()[name](values).hex())
    try:
        globals()[name](-values)
    except AssertionError as error:
        print(error)
assert bool(linking._in_memory) == (sys.argv[1:] != ["own"])
"""

#: What must not be translated apart and kept: an address, behind an inner function; an error with a value.
NOT_APART = """
import ctypes, warnings
from typing import NamedTuple
from dpmc.compiler import compilable, compiled

warnings.simplefilter("ignore")  # numba says that it cannot cache an address
lgamma = ctypes.CDLL("libm.so.6").lgamma
lgamma.restype, lgamma.argtypes = ctypes.c_double, [ctypes.c_double]

class Scaled(NamedTuple):
    scale: float

    def log_factorial(self, x):
        return self.scale * lgamma(x + 1.0)

    def checked(self, x):
        if x > 1.0:
            raise ValueError("large", x)
        return x

Scaled.__module__ = "dpmc.scaled"
compilable(Scaled, apart=True)

@compilable
def inner(scaled, x):
    return scaled.log_factorial(x)

@compiled
def address(x):
    return inner(Scaled(1.0), x)

@compiled
def error(x):
    return Scaled(1.0).checked(x)

print(address(1.0))
try:
    error(0.5)
except TypeError as said:
    print(said)
"""

#: A user's model that returns a constant, by a name that another's has too.
NAMESAKE = """
from typing import NamedTuple
from dpmc.compiler import compilable

@compilable
class Model(NamedTuple):
    scale: float

    def ratio(self, theta, proposal, alpha):
        return {} * self.scale
"""

#: A log ratio by each of the models named, in one process.
RATIOS = """
import importlib, sys
import numpy as np
from dpmc.compiler import compiled
from dpmc.evaluators.batch import BatchEvaluator

@compiled
def ratio(evaluator, model, theta, proposal, chosen, ratios):
    evaluator.rows_ratio(model, theta, proposal, chosen, ratios)
    return ratios[0]

evaluator = BatchEvaluator.build(np.arange(10.0)[:, None])
for name in sys.argv[1:]:
    model = importlib.import_module(name).Model(1.0)
    print(ratio(evaluator, model, np.array([2.0]), np.array([3.0]), np.array([1]), np.zeros(1)))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder with the project's studies and a cache of its own for machine code."""
    folder = tmp_path_factory.mktemp("compile")
    shutil.copytree(ROOT / "config", folder / "config")
    return folder


def dpmc(folder: Path, *arguments: str) -> subprocess.Popen:
    settings = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    settings.pop("NUMBA_CACHE_DIR", None)
    command = [sys.executable, "-m", "dpmc", *arguments]
    return subprocess.Popen(command, cwd=folder, env=settings, stdout=subprocess.PIPE, text=True)


def run(folder: Path, *arguments: str) -> str:
    process = dpmc(folder, *arguments)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    return output


def machine_code(folder: Path) -> dict[str, int]:
    """Files of numba's cache and when they were last changed."""
    return {str(path): path.stat().st_mtime_ns for path in folder.glob("cache/**/*.nb[ci]")}


@pytest.mark.parametrize(
    ("model", "method"),
    [("flat-banana-2d", "dp-penalty"), ("flat-banana-2d", "dp-hmc"), ("circle", "dp-penalty")],
)
def test_jobs_find_what_was_compiled(folder, model, method):
    cell = ("--study", "smoke", "--model", model, "--method", method)
    before = machine_code(folder)
    run(folder, "compile", *cell, "--output", "stamp.txt", "--force")
    assert warmup.combination(load_study(ROOT / "config/studies/smoke.yaml"), model, method) in (
        (folder / "stamp.txt").read_text()
    )
    run(folder, "compile", "--study", "smoke", "--metrics", "--output", "metrics.txt", "--force")
    known = machine_code(folder)
    assert len(known) > len(before)
    for name in ("published", "tuning"):
        run(folder, "data", *cell[:4], "--data", name, "--output", f"{model}/{name}.nc", "--force")
    budget = ("--epsilon", "0.5", "--data", f"{model}/published.nc", "--quiet", "--force", "--output")
    run(folder, "sample", *cell, *budget, "one/seed-0.nc")
    run(folder, "sample", *cell, *budget, *(f"all/seed-{seed}.nc" for seed in range(3)))
    run(folder, "tune", *cell, "--data", f"{model}/tuning.nc", "--quiet", "--force", "--output", "tuned.yaml")
    run(folder, "evaluate", "--study", "smoke", "--data", f"{model}/published.nc",
        "--chains", "all/seed-0.nc", "--output", "metrics.csv", "--force")  # fmt: skip
    assert machine_code(folder) == known


def test_two_at_once_compile_once(tmp_path, monkeypatch):
    shutil.copytree(ROOT / "config", tmp_path / "config")
    monkeypatch.setenv("NUMBA_DEBUG_CACHE", "1")
    cell = ("compile", "--study", "smoke", "--model", "circle", "--method", "dp-penalty")
    outputs = [process.communicate(timeout=300)[0] for process in [dpmc(tmp_path, *cell) for _ in range(2)]]
    assert sorted(output.count("data saved") for output in outputs) == [0, 1]
    assert sorted(output.count("data loaded") for output in outputs) == [0, 1]


def test_who_compiled_has_the_bits_of_those_who_find_it(tmp_path, monkeypatch):
    """With the inner functions' own machine code in its memory it had others in the last place."""
    (tmp_path / "gradients.py").write_text(GRADIENTS)  # numba caches functions of files
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    command = [sys.executable, str(tmp_path / "gradients.py")]
    sums = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert any((tmp_path / "cache").rglob("*.nbc"))
    assert sums[0] == sums[1]


def test_functions_of_ones_own_stay_whole(tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text(OWN)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    errors = ["negative", "large_101.0"]
    for _ in ("compiled", "found"):
        said = subprocess.run([sys.executable, str(tmp_path / "own.py")], capture_output=True, text=True)
        assert said.stderr == "" and said.returncode == 0
        assert said.stdout.split() == [
            "18.0",
            "50.0",
            "16.0",
            "25",
            "37.0",
            "7.0",
            *errors,
            *errors,
        ]


def test_what_is_translated_apart_serves_all_who_call_it(tmp_path, monkeypatch):
    """Compiled here, found in the cache as others left it, or both in one process."""
    (tmp_path / "apart.py").write_text(APART)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    said: dict[str, set[str]] = {"first": set(), "second": set(), "third": set(), "own": set()}
    runs = (
        ["first"],
        ["second"],
        ["first", "third"],
        ["second", "first", "third"],
        ["own"],
        ["third", "own"],
    )
    for names in runs:
        command = [sys.executable, str(tmp_path / "apart.py"), *names]
        output = subprocess.run(command, capture_output=True, text=True)
        assert output.stderr == "" and output.returncode == 0
        lines = output.stdout.splitlines()
        assert lines[1::2] == ["negative"] * len(names)
        for name, value in map(str.split, lines[::2]):
            said[name].add(value)
    assert [len(values) for values in said.values()] == [1, 1, 1, 1]
    assert said["own"] == said["first"]


def test_what_the_cache_would_not_keep_is_not_kept(tmp_path, monkeypatch):
    (tmp_path / "not_apart.py").write_text(NOT_APART)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    for _ in range(2):
        command = [sys.executable, str(tmp_path / "not_apart.py")]
        output = subprocess.run(command, capture_output=True, text=True, check=True)
        assert output.stdout.splitlines() == [
            "0.0",
            "Scaled.checked@apart: no errors with values in what is translated apart",
        ]


def test_models_of_the_same_name_are_told_apart(tmp_path, monkeypatch):
    """Compiled in one process each, their functions have the same names but for what no name says."""
    (tmp_path / "one.py").write_text(NAMESAKE.format("1.0"))
    (tmp_path / "two.py").write_text(NAMESAKE.format("2.0"))
    (tmp_path / "ratios.py").write_text(RATIOS)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    for names, ratios in ((["one"], [1.0]), (["two"], [2.0]), (["one", "two"], [1.0, 2.0])):
        command = [sys.executable, str(tmp_path / "ratios.py"), *names]
        output = subprocess.run(command, capture_output=True, text=True, check=True)
        assert [float(line) for line in output.stdout.split()] == ratios


def test_this_numba_has_been_tried():
    """If it is another: see that the times of `dpmc compile` and the test above are well, and note it."""
    assert numba.__version__.startswith(linking.TRIED)


@pytest.mark.parametrize("known", [True, False])
def test_long_vectors_are_asked_for_where_they_slow_nothing_down(known, monkeypatch):
    monkeypatch.setattr(linking, "get_host_cpu_features", lambda: {linking._LONG_VECTORS: known})
    machine_code = numba.njit(lambda x: x + 1.0)
    with linking.entries_only():
        machine_code.compile((numba.float64,))
    assert (linking._TAKE_THEM in machine_code.inspect_llvm((numba.float64,))) is known


def test_what_compiles_nothing_afresh_is_not_compiled():
    """No module whose changes the cache ignores is loaded by the ones that compile."""
    loaded = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    parts = {name.split(".")[1] for name in loaded.stdout.split()}
    assert parts & {"sampling", "evaluators"}
    assert not parts & {name.removesuffix(".py") for name in compiler.UNCOMPILED}


def test_every_cell_has_a_family():
    for path in (ROOT / "config/studies").glob("*.yaml"):
        study = load_study(path)
        found = warmup.families(study)
        assert {pair for pairs in found.values() for pair in pairs} == {
            (model, method) for model, method, _ in study.cells()
        }


def test_families_share_jobs_no_longer_than_the_largest():
    study = load_study(ROOT / "config/studies/thesis.yaml")
    families, jobs = warmup.families(study), warmup.compiled_together(study)
    assert sorted(pair for pairs in jobs.values() for pair in pairs) == sorted(study_pairs(families))
    sizes = [len({warmup.combination(study, *pair) for pair in pairs}) for pairs in jobs.values()]
    assert list(jobs) == ["banana", "gaussian+circle"] and sizes[0] == max(sizes)


@pytest.mark.parametrize(
    ("sizes", "jobs"),
    [
        ({"banana": 5, "gaussian": 3, "circle": 3}, ["banana", "gaussian+circle"]),  # 6 of 11
        ({"banana": 3, "gaussian": 3, "circle": 3, "mixture": 3}, ["banana+gaussian", "circle+mixture"]),
        ({"banana": 3, "gaussian": 3, "own_model.Normal": 9}, ["own_model.Normal", "banana+gaussian"]),
        ({"circle": 1}, ["circle"]),
    ],
)
def test_families_share_jobs_up_to_half_of_all(sizes, jobs, monkeypatch):
    assert list(warmup.compiled_together(study_of(sizes, monkeypatch))) == jobs


def test_a_model_of_ones_own_is_compiled_by_itself(monkeypatch):
    study = study_of({"banana": 2, "own_model.Normal": 1, "circle": 1}, monkeypatch)
    assert list(warmup.compiled_together(study)) == ["banana", "own_model.Normal", "circle"]


def study_of(sizes, monkeypatch):
    """Families with so many combinations each, instead of a study's."""
    pairs = {
        name: [(name.replace(".", ":"), f"method-{i}") for i in range(size)] for name, size in sizes.items()
    }
    labels = [name.replace(".", ":") for name in sizes]
    monkeypatch.setattr(warmup, "families", lambda _: pairs)
    monkeypatch.setattr(warmup, "combination", lambda _, model, method: f"{method}-{model}")
    monkeypatch.setattr(warmup, "family", lambda model: model.replace(":", "."))
    return SimpleNamespace(models={label: SimpleNamespace(model=label) for label in labels})


def study_pairs(families):
    return [pair for pairs in families.values() for pair in pairs]


def test_a_model_of_ones_own_has_its_own_family():
    assert warmup.family("own_model:Normal") == "own_model.Normal"
    assert warmup.family("gauss-30d") == "banana"
    assert warmup.family("correlated-gauss") == "gaussian"


def test_snakemake_has_the_limiter_that_the_workflow_takes_away():
    """Else the lines in the Snakefile do nothing, and nobody would see."""
    import inspect

    from snakemake.scheduling import job_scheduler

    assert "self.job_rate_limiter = (" in inspect.getsource(job_scheduler.JobScheduler.__init__)
    limiter = job_scheduler.JobRateLimiter
    assert isinstance(limiter.max_jobs, property) and isinstance(limiter.timespan, property)
