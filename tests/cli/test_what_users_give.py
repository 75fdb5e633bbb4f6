"""Values that cannot be right stop every command with one line that names file, key, value and rule."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import netCDF4
import numpy as np
import pytest
import xarray
import yaml

from dpmc.cli.main import main
from dpmc.data import datasets

ROOT = Path(__file__).parents[2]
INT23 = "9" * 23


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the project's config and a small data set of the circle, as the current one."""
    shutil.copytree(ROOT / "config", tmp_path / "config")
    monkeypatch.chdir(tmp_path)
    # Modules of one's own are of this folder, and forgotten with it.
    monkeypatch.setattr(sys, "path", sys.path.copy())
    datasets.build("circle", "circle", "fresh-0", n=50).write(tmp_path / "circle.nc")
    (tmp_path / "rows.csv").write_text("0.5\n1.5\n-0.3\n0.2\n1.0\n")
    (tmp_path / "mine.yaml").write_text("{tau: 1, clip: 1, proposal_sd: 0.1}")
    yield tmp_path
    sys.modules.pop("mine", None)


def fails(capsys, *arguments: str) -> str:
    """Run a command that must end with exit code 2 and one line on standard error; return that line."""
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("dpmc: error: ") and error.count("\n") == 1 and len(error) < 1100, error
    return error


def names(error: str, words: tuple[str, ...]) -> None:
    for word in words:
        assert word in error, error


SAMPLE = ("sample", "--model", "circle", "--method", "dp-hmc", "--data", "circle.nc", "--quiet")
FREE = (*SAMPLE, "--epsilon", "inf", "--iterations", "5", "--seed", "0", "--output", "c.nc")
BUDGET = ("budget", "--model", "circle", "--method", "dp-hmc")
OWN = (
    *("sample", "--model", "mine:Model", "--method", "dp-penalty", "--hyperparameters", "mine.yaml"),
    *("--epsilon", "inf", "--iterations", "5", "--seed", "0", "--output", "c.nc", "--quiet"),
)


# -- numbers of the command line --------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["٣", "1_0", " 3", "1e400", "9" * 400, "0x10", "", "1:30", "1.", "½"])
@pytest.mark.parametrize("option", ["epsilon", "seed", "iterations", "thin", "checkpoint-seconds"])
def test_numbers_are_plain(folder, capsys, option, value):
    if value == "1." and option in ("epsilon", "checkpoint-seconds"):
        return  # a number
    assert option in fails(capsys, *FREE, f"--{option}={value}")
    assert not (folder / "c.nc").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        (*FREE, "--seed", INT23),
        (*FREE, "--iterations", INT23),
        (*FREE, "--thin", INT23),
        (*BUDGET, "--iterations", INT23),
        (*BUDGET, "--epsilon", "1", "--n", INT23),
        ("tune", *BUDGET[1:], "--search", "--output", "t.yaml", "--trials", INT23),
        (*FREE, "--checkpoint-seconds", "-1"),
        (*FREE, "--checkpoint-seconds", "nan"),
    ],
)
def test_numbers_have_a_range(folder, capsys, arguments):
    names(fails(capsys, *arguments), (arguments[-2],))


def test_a_seed_above_the_limit_is_refused(folder, capsys):
    arguments = tuple(argument for argument in FREE if argument not in ("--data", "circle.nc"))
    names(fails(capsys, *arguments, "--seed", "999999999"), ("--seed: 999999999", "must be below 1000000"))


@pytest.mark.parametrize("value", ["٣", "1_0", "1_000", "0x10", "1:30", "'٣'", INT23 * 20, "2020-01-01"])
@pytest.mark.parametrize("key", ["tau", "clip", "proposal_sd"])
def test_numbers_of_hyperparameters_are_plain(folder, capsys, key, value):
    text = "\n".join(f"{name}: {value if name == key else 0.1}" for name in ("tau", "clip", "proposal_sd"))
    Path("own.yaml").write_text(text)
    arguments = ("budget", "--model", "circle", "--method", "dp-penalty", "--hyperparameters", "own.yaml")
    names(fails(capsys, *arguments, "--epsilon", "1"), ("own.yaml", key))


# -- YAML -------------------------------------------------------------------------------------------------

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[" * 3000, "YAML"),
        ("[" * 3000 + "]" * 3000, "nested"),
        ("{a: " * 3000 + "1" + "}" * 3000, "nested"),
        ("".join(" " * level + "a:\n" for level in range(3000)), "nested"),
        (BOMB, "100000 values"),
        ("&a [*a]", "nested"),
        ("a:\n\tb: 1", "line 2"),
        ("a: 1\na: 2", "'a' stands twice"),
        ("? [1]\n: 2", "text"),
        ("1: 2", "key 1 must be a text"),
        ("tau: " + "9" * 5000, "must be a whole number"),
        ("tau: !!int '1_0'", "'1_0'"),
        ("a: \0", "YAML"),
        (b"\x89PNG\r\n\x1a\n\0\xff", "YAML"),
        ("", "mapping"),
        ("~", "mapping"),
        ("a: 1\n---\nb: 2", "YAML"),
    ],
)
def test_yaml(folder, capsys, text, word):
    content = text if isinstance(text, bytes) else text.encode()
    for path in (
        Path("own.yaml"),
        Path("config/hyperparameters/thesis.yaml"),
        Path("config/studies/own.yaml"),
    ):
        path.write_bytes(content)
    for arguments, file in (
        (("--study", "own"), "own.yaml"),
        (("--study", "smoke"), "thesis.yaml"),  # whose hyperparameters are those
        (("--study", "dp-hmc", "--hyperparameters", "own.yaml", "--model", "paper-gauss"), "own.yaml"),
    ):
        error = fails(capsys, *BUDGET, "--epsilon", "1", *arguments)
        assert file in error
        if arguments[1] == "dp-hmc":
            assert word in error


# -- studies ----------------------------------------------------------------------------------------------


def model(**values):
    return lambda study: study["models"]["circle"].update(values)


def method(name, **values):
    return lambda study: study["methods"].setdefault(name, {}).update(values)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (method("dp-hmc", options={"stepz": 3}), ("dp-hmc: options: stepz", "unknown")),
        (method("dp-hmc", options={"steps": "many"}), ("options: steps", "'many'")),
        (method("dp-hmc", options={"steps": 2.5}), ("options: steps", "2.5", "whole number")),
        (method("dp-hmc", options={"mass": [1, 2, 3]}), ("options: mass", "3 values", "2 parameters")),
        (method("dp-hmc", options={"tau_l": -1}), ("options: tau_l", "-1", "greater than 0")),
        (method("dp-hmc", options={"reuse_gradients": "yes please"}), ("reuse_gradients", "true or false")),
        (method("dp-hmc", options={"jitter": "sobol"}), ("jitter", "'sobol'", "halton")),
        (method("dp-hmc", options=[1]), ("options", "mapping")),
        (method("dp-hmc", settings_of="nope"), ("methods: dp-hmc: settings_of: 'nope'", "known")),
        (model(settings_of="nope"), ("models: circle: settings_of: 'nope'", "known")),
        (lambda s: s.update(settings_of="nope"), ("settings_of: 'nope'", "no file", "nope.yaml")),
        (model(epsilons=["inf"]), ("circle: iterations: missing", "epsilon = inf")),
        (method("dp-hmc", epsilons=["inf"]), ("iterations: missing", "dp-hmc")),
        (lambda s: s.update(chains=10**9), ("chains", "1000000000", "at most 100000")),
        (lambda s: s.update(seeds=10**9), ("seeds", "1000000000", "at most 100000")),
        (lambda s: s.update(seeds=10**5, chains=10**5), ("seeds, chains", "10000000000 start points")),
        (lambda s: s.update(seeds=2.0), ("seeds", "2.0", "integer")),
        (lambda s: s.update(seeds=True), ("seeds", "True", "integer")),
        (model(n=int(INT23)), ("circle: n", "at most 1000000000")),
        (model(iterations=int(INT23)), ("circle: iterations", "at most 1000000000")),
        (method("dp-hmc", thin=int(INT23)), ("dp-hmc: thin", "at most 1000000000")),
        (lambda s: s.update(delta=float("nan")), ("delta", "nan", "(0, 1)")),
        (lambda s: s.update(delta="1.2.3/n"), ("delta", "'1.2.3'")),
        (lambda s: s.update(delta="0/n"), ("delta: 0/n", "greater than 0 and less than 1/n")),
        (lambda s: s.update(delta="1/n"), ("delta: 1/n", "greater than 0 and less than 1/n")),
        (
            lambda s: (s.update(delta=1e-5), s["models"]["circle"].update(n=100_000)),
            ("line ", "delta: 1e-05 for n = 100000", "less than 1/n = 1e-05"),
        ),
        (model(epsilons=["٣"]), ("circle: epsilons", "'٣'")),
        (model(epsilons=[float("nan")]), ("circle: epsilons", "nan")),
        (model(epsilons=[1, 1.0]), ("circle: epsilons: 1 stands twice",)),
        (model(tuning_epsilon=10**400), ("circle: tuning_epsilon", "too large")),
        (lambda s: s["models"].update({1: {}}), ("key 1", "text")),
    ],
)
def test_a_study_is_checked_when_it_is_read(folder, capsys, change, words):
    path = Path("config/studies/thesis.yaml")
    study = yaml.safe_load(path.read_text())
    change(study)
    path.write_text(yaml.safe_dump(study, sort_keys=False))
    names(fails(capsys, *BUDGET, "--epsilon", "1"), ("thesis.yaml", *words))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"steps": 2.5}, ("circle: steps", "2.5", "whole number")),
        ({"steps": INT23}, ("circle: steps", "at most 1000000000")),
        ({"unknown": 1}, ("circle: unknown", "unknown hyperparameter")),
        ([1], ("dp-hmc: circle", "mapping")),
    ],
)
def test_hyperparameters_are_checked_with_the_study(folder, capsys, values, words):
    """Those of other methods too: a run would find them hours later."""
    path = Path("config/hyperparameters/thesis.yaml")
    known = yaml.safe_load(path.read_text())
    known["dp-hmc"]["circle"] = (
        {**known["dp-hmc"]["circle"], **values} if isinstance(values, dict) else values
    )
    path.write_text(yaml.safe_dump(known))
    arguments = ("budget", "--model", "circle", "--method", "dp-penalty", "--epsilon", "1")
    names(fails(capsys, *arguments), ("hyperparameters/thesis.yaml", *words))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"calibration": "none"}, ("options: calibration", "'none'", "classical, exact")),
        ({"clip": "wide"}, ("options: clip", "'wide'")),
    ],
)
def test_options_where_epsilon_is_per_iteration(folder, capsys, options, words):
    path = Path("config/studies/dp-fast-mh.yaml")
    study = yaml.safe_load(path.read_text())
    study["methods"]["dp-penalty"] = {"options": options}
    path.write_text(yaml.safe_dump(study))
    arguments = ("budget", "--study", "dp-fast-mh", "--model", "mixture", "--method", "dp-fast-mh")
    names(fails(capsys, *arguments, "--epsilon", "0.05"), ("dp-fast-mh.yaml", *words))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("reuse_gradients: true", "reuse_gradients: 3", ("dp-hmc-reused: options: reuse_gradients", "3")),
        ("  dp-penalty: {}", "  dp-penalty: {}\n  tuna-mh: {}", ("tuna-mh", "missing")),
    ],
)
def test_a_run_with_an_invalid_study_stops_before_any_job(tmp_path, old, new, words):
    """By `workflow/run.py`, which works in its own folder."""
    for name in ("config", "workflow"):
        shutil.copytree(ROOT / name, tmp_path / name)
    path = tmp_path / "config/studies/smoke.yaml"
    path.write_text(path.read_text().replace(old, new))
    done = subprocess.run(
        [sys.executable, "workflow/run.py", "smoke"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    names(done.stderr, words)


# -- models of one's own ----------------------------------------------------------------------------------

MODEL = """import numpy as np
class Model:
    dimension = 1
    n = 30
    true_theta = [0.0]
    def log_likelihood(self, theta, rows):
        return -0.5 * ((rows - theta) ** 2).sum(axis=1)
    def simulate(self, generator, theta, n):
        return generator.normal(theta, 1.0, (n, 1))
"""
POSTERIOR = """
class Posterior:
    def draws(self, generator, n): return generator.normal(0.0, 1.0, (n, 1))
    def mean(self): return [0.0]
    def covariance(self): return [[1.0]]
"""


def own_model(folder: Path, text: str) -> None:
    (folder / "mine.py").write_text(text)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("dimension = '2'", ("dimension", "'2'", "whole number")),
        ("dimension = 0", ("dimension", "0", "at least 1")),
        ("dimension = -1", ("dimension", "-1")),
        ("dimension = 2.5", ("dimension", "2.5")),
        ("dimension = True", ("dimension", "True")),
        ("dimension = None", ("dimension", "None")),
        ("dimension = 10**12", ("dimension", "at most 10000")),
        ("dimension = np.array([1])", ("dimension", "array")),
        ("dimension = property(lambda self: 1 / 0)", ("ZeroDivisionError", "mine.py line 10")),
        ("n = -1", ("n: -1", "at least 1")),
        ("n = 2.5", ("n: 2.5",)),
        (f"n = {INT23}", ("n: 999", "at most 1000000000")),
        ("columns = 'two'", ("columns", "'two'")),
        ("tempering = 0", ("tempering: 0", "greater than 0")),
        ("tempering = -1.0", ("tempering: -1",)),
        ("tempering = float('nan')", ("tempering: nan",)),
        ("tempering = float('inf')", ("tempering: inf", "finite")),
        ("tempering = [1]", ("tempering: [1]",)),
        ("true_theta = [0.0, 1.0]", ("true_theta", "(2,)", "(1,)")),
        ("true_theta = 'abc'", ("true_theta", "'abc'")),
        ("true_theta = [float('nan')]", ("true_theta", "NaN")),
        ("true_theta = None", ("true_theta", "None")),
        ("parameters = ('a', 'b')", ("parameters: ('a', 'b')", "1 different names")),
        ("parameters = 'a'", ("parameters: 'a'", "tuple or list")),
        ("parameters = ['']", ("parameters: ['']",)),
        ("def parameters(self): return ['a']", ("parameters", "1 different names")),
        ("start = [0.0, 1.0]", ("start", "(2,)", "(1,)")),
        ("start = 'abc'", ("start", "'abc'")),
        ("posterior = 3", ("posterior: 3", "method")),
        ("simulate = 3", ("simulate: 3", "method")),
        ("log_prior = 3", ("log_prior: 3", "method")),
        ("log_likelihood = None", ("log_likelihood: None", "method")),
        ("def __init__(self): raise RuntimeError('no')", ("cannot be loaded", "RuntimeError: no", "line 10")),
        ("def __init__(self): import sys; sys.exit(0)", ("cannot be loaded", "SystemExit: 0")),
        ("def __init__(self, a): pass", ("cannot be loaded", "'a'")),
        ("def log_prior(self, theta): return float('nan')", ("log_prior", "nan", "start point 0")),
        ("def log_prior(self, theta): return np.inf", ("log_prior", "inf", "start point 0")),
        ("def log_prior(self, theta): return theta.x", ("log_prior failed", "AttributeError", "line 10")),
        ("def log_prior(self, theta): import sys; sys.exit(0)", ("log_prior failed", "SystemExit")),
        (
            "def log_likelihood(self, theta, rows): 1 / 0",
            ("log_likelihood failed", "ZeroDivision", "line 10"),
        ),
        ("def log_likelihood(self, theta, rows): raise KeyError('x')", ("log_likelihood", "KeyError: 'x'")),
        (
            "def log_likelihood(self, *_): return self.log_likelihood(*_)",
            ("log_likelihood", "RecursionError"),
        ),
        (
            "def log_likelihood(self, theta, rows): import sys; sys.exit(0)",
            ("log_likelihood", "SystemExit: 0"),
        ),
        ("def log_likelihood(self, theta): return 0", ("log_likelihood failed", "TypeError")),
        ("def simulate(self, generator, theta, n): return None", ("simulate: rows", "None")),
        ("def simulate(self, generator, theta, n): return np.zeros(n)", ("simulate: rows", "(30,)")),
        ("def simulate(self, generator, theta, n): return np.zeros((3, 1))", ("simulate: rows", "(3, 1)")),
        ("def simulate(self, generator, theta, n): raise OSError('x')", ("simulate failed", "OSError: x")),
        ("def posterior(self, rows, temperature): return None", ("posterior: None", "draws")),
        ("def posterior(self, rows, temperature): return [1, 2]", ("posterior: [1, 2]", "draws")),
        ("def posterior(self, rows, temperature): 1 / 0", ("posterior failed", "ZeroDivisionError")),
    ],
)
def test_a_model_of_ones_own(folder, capsys, line, words):
    own_model(folder, f"{MODEL}    {line}\n")
    names(fails(capsys, *OWN), ("mine:Model", *words))
    assert not (folder / "c.nc").exists()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("def draws(self, generator, n): return None", ("draws", "None")),
        ("def draws(self, generator, n): return np.zeros((n, 2))", ("draws", "(1000, 2)")),
        (
            "def draws(self, generator, n): raise ValueError('p')",
            ("draws failed", "ValueError: p", "line 15"),
        ),
        ("def mean(self): return 'x'", ("mean", "'x'")),
        ("def mean(self): return [0, 0]", ("mean", "(2,)")),
        ("def covariance(self): return 1.0", ("covariance", "()", "(1, 1)")),
    ],
)
def test_the_posterior_of_ones_own_model(folder, capsys, line, words):
    text = f"{MODEL}    def posterior(self, rows, temperature): return Posterior()\n{POSTERIOR}    {line}\n"
    own_model(folder, text.replace("\n\nclass", "\nclass"))
    names(fails(capsys, *OWN), ("mine:Model", *words))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("raise RuntimeError('no')", ("RuntimeError: no", "mine.py line 1")),
        ("import sys; sys.exit(0)", ("SystemExit: 0", "mine.py line 1")),
        ("raise KeyError('x')", ("KeyError: 'x'",)),
        ("def f(): f()\nf()", ("RecursionError",)),
        ("x = = 1", ("SyntaxError", "line 1")),
        ("import nothere", ("nothere",)),
        ("Model = 3", ("not callable",)),
        ("Model = lambda: None", ("no dimension",)),
        ("Model = lambda: [1, 2]", ("no dimension",)),
        ("", ("Model",)),
    ],
)
def test_a_module_of_ones_own(folder, capsys, text, words):
    own_model(folder, text)
    names(fails(capsys, *OWN, "--data", "rows.csv"), ("mine:Model", *words))


def test_a_correct_model_is_accepted(folder):
    own_model(folder, MODEL + "    def posterior(self, rows, temperature): return Posterior()\n" + POSTERIOR)
    assert main(OWN) == 0
    assert main((*OWN, "--data", "rows.csv", "--force")) == 0


def test_names_of_parameters_label_the_draws(folder):
    own_model(folder, f"{MODEL}    parameters = ['slope']\n")
    assert main(OWN) == 0
    with xarray.open_datatree("c.nc") as tree:
        assert tree["posterior/parameter"].values.tolist() == ["slope"]


# -- rows, data files -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("no rows",)),
        ("x\n", ("no rows",)),
        ("1.0x\n2\n", ("line 1", "'1.0x'")),
        ("1_0\n2\n", ("line 1", "'1_0'")),
        ("٣\n2\n", ("line 1", "'٣'")),
        ("-\n2\n", ("line 1", "'-'")),
        ("1,5\n2\n", ("line 2: column 2 is missing",)),
        ("x,y\n1\n", ("line 2: column y is missing",)),
        ("1\n2,3\n", ("line 2", "Expected 1", "saw 2")),
        ("1\n1_0\n", ("line 2", "'1_0'")),
        ("1\n٣\n", ("line 2", "'٣'")),
        ("1\n\0\n", ("line 2",)),
        ("1\n2\x0c3\n", ("line 2",)),
        ("1\nnan\n", ("line 2: column 1: 'nan' is not a number",)),
        ("1\n" + "9" * 200_000 + "\n", ("line 2", "is not a number")),
        ("1\n" + "9" * 400 + "\n", ("line 2: column 1", "is not a number")),
        ("1\n" + "x" * 2_000, ("line 2", "'xxx")),
        ("1.2.3\n2\n", ("line 1", "'1.2.3'", "neither a number nor")),
        ("x,12a\n1,2\n", ("line 1", "'12a'", "neither a number nor")),
        ("x,y,x\n1,2,3\n", ("same name, x",)),
        ("x;y\n1;2\n", ("line 1: 'x;y'", "separated by commas")),
        ("1\t2\n", ("line 1", "separated by commas")),
        ("1,2\n3,\n", ("line 2", "column 2 is missing")),
        (",,\n1,2,3\n", ("line 1", "column 1 is missing")),
        ('1\n"2\n3\n4\n', ("not CSV", "row 1")),
        ("x\ny\n1\n", ("line 2", "'y'")),
        (b"\xff\xfe1\0\n\0", ("UTF-8",)),
    ],
)
def test_rows(folder, capsys, text, words):
    own_model(folder, MODEL)
    Path("own.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    error = fails(capsys, *OWN, "--data", "own.csv")
    names(error, ("own.csv", *words))


@pytest.mark.parametrize(
    "text", ["\ufeff1\n2\n", "\ufeffx\n1\n2\n", "x\n1\n2\n", '"x"\n 1\n2 \r\n', "1\n2", "1\r2\r"]
)
def test_correct_rows_are_read(folder, text):
    path = folder / "own.csv"
    path.write_text(text, encoding="utf-8", newline="")
    assert datasets.read_rows(path).tolist() == [[1.0], [2.0]]


def damage(path: str, change) -> None:
    with netCDF4.Dataset(path, "a") as file:
        change(file)


def attribute(name, value):
    return lambda file: file.setncattr(name, value)


def without(name):
    return lambda file: file.delncattr(name)


def instead(name, values):
    """A variable in place of another."""

    def change(file):
        group, _, own = name.rpartition("/")
        place = file[group] if group else file
        place.renameVariable(own, "before")
        dims = tuple(f"axis_{axis}" for axis in range(values.ndim))
        for dim, size in zip(dims, values.shape, strict=True):
            place.createDimension(dim, size)
        kind = str if values.dtype == object else values.dtype
        place.createVariable(own, kind, dims)[:] = values

    return change


WORDS = np.array(["a", "b"], object)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (attribute("temperature", -1.0), ("temperature", "-1", "greater than 0")),
        (attribute("temperature", 0.0), ("temperature", "0")),
        (attribute("temperature", np.nan), ("temperature", "nan")),
        (attribute("temperature", np.inf), ("temperature", "inf", "at most 1")),
        (attribute("temperature", 333.0), ("temperature: 333", "at most 1")),
        (attribute("temperature", "warm"), ("temperature", "'warm'")),
        (attribute("temperature", [1.0, 2.0]), ("temperature",)),
        (attribute("label", 3), ("label", "3", "text")),
        (attribute("model", 3), ("model", "3", "text")),
        (attribute("model", "narrow-banana"), ("model", "narrow-banana", "circle")),
        (attribute("dataset", 3), ("dataset", "3", "text")),
        (attribute("caveat", 3), ("caveat", "3", "text")),
        (attribute("schema", 3), ("schema", "3", "1 or 2")),
        (without("schema"), ("schema",)),
        (instead("rows", WORDS), ("rows", "numbers")),
        (instead("rows", np.array(1.0)), ("rows", "shape ()")),
        (instead("true_theta", np.zeros(3)), ("true_theta", "(3,)", "(2,)")),
        (instead("posterior_covariance", np.zeros(2)), ("posterior_covariance", "(2, 2)")),
    ],
)
def test_a_damaged_data_file(folder, capsys, change, words):
    damage("circle.nc", change)
    names(fails(capsys, *FREE), ("circle.nc", *words))


# -- chain files ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    """A chain of the circle with a budget."""
    path = tmp_path_factory.mktemp("chain")
    datasets.build("circle", "circle", "fresh-0", n=50).write(path / "circle.nc")
    arguments = ("--epsilon", "4", "--seed", "0", "--output", str(path / "c.nc"), "--quiet")
    arguments += ("--study", str(ROOT / "config/studies/thesis.yaml"), "--data", str(path / "circle.nc"))
    assert main(("sample", "--model", "circle", "--method", "dp-hmc", *arguments)) == 0
    return path / "c.nc"


def ledger(**values):
    def change(file):
        file.ledger = json.dumps({**json.loads(file.ledger), **values})

    return change


READ = (
    "study",
    "model",
    "method",
    "epsilon",
    "dataset",
    "status",
    "seed",
    "iterations",
    "n",
    "ledger",
    "schema",
)


@pytest.mark.parametrize("command", ["evaluate", "trace"])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        *((without(name), (name,)) for name in READ),
        (attribute("schema", 3), ("schema: 3", "must be 1 or 2")),
        (attribute("model", 3), ("model: 3", "text")),
        (attribute("study", [1.0, 2.0]), ("study", "text")),
        (attribute("epsilon", "four"), ("epsilon", "'four'")),
        (attribute("seed", "x"), ("seed: 'x'", "whole number")),
        (attribute("iterations", -1), ("iterations: -1", "at least 0")),
        (attribute("iterations", 7), ("theta", "7 iterations")),
        (attribute("thin", 0), ("thin: 0", "at least 1")),
        (attribute("thin", np.nan), ("thin: nan",)),
        (attribute("ratio_evaluations_per_iteration", "x"), ("ratio_evaluations_per_iteration: 'x'",)),
        (attribute("budget_iterations", "x"), ("budget_iterations: 'x'",)),
        (attribute("ledger", "x"), ("ledger", "damaged")),
        (attribute("ledger", "[" * 100_000), ("ledger", "damaged")),
        (ledger(performed=[{}]), ("ledger", "damaged")),
        (ledger(forfeited=None), ("ledger", "damaged")),
        (ledger(accountant="x"), ("ledger", "damaged")),
        (ledger(epsilon_spent="x"), ("ledger", "'x'")),
        (ledger(budget={"epsilon": 4}), ("ledger", "delta")),
        (instead("posterior/theta", np.array(1.0)), ("theta", "()")),
        (instead("posterior/theta", WORDS), ("numbers",)),
        (instead("constant_data/theta_0", np.zeros(3)), ("theta_0", "(3,)")),
        (lambda file: file.renameGroup("posterior", "prior"), ("posterior",)),
        (lambda file: file["sample_stats"].setncattr("accepted_total", "x"), ("accepted_total", "'x'")),
        (lambda file: file["sample_stats"].delncattr("accepted_total"), ("accepted_total",)),
    ],
)
def test_a_damaged_chain_file(folder, chain, capsys, command, change, words):
    shutil.copy(chain, "c.nc")
    damage("c.nc", change)
    error = fails(capsys, command, "--chains", "c.nc", "--data", "circle.nc", "--output", "o.csv")
    names(error, ("c.nc", *words))
    assert not Path("o.csv").exists()


@pytest.mark.parametrize("name", ["circle.nc", "rows.csv", "config", "nothing.nc"])
@pytest.mark.parametrize("command", ["evaluate", "trace"])
def test_files_that_are_no_chains(folder, capsys, command, name):
    error = fails(capsys, command, "--chains", name, "--data", "circle.nc", "--output", "o.csv")
    assert name in error


# -- tables of metrics ------------------------------------------------------------------------------------

HEAD = "study,model,method,epsilon,seed,metric,value\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("metrics.csv",)),
        (HEAD.replace("seed", "sed"), ("'seed'", "missing")),
        (f"{HEAD}thesis,circle,dp-hmc,4,0,mmd,nan\n", ("row 1", "mmd", "'nan'")),
        (f"{HEAD}thesis,circle,dp-hmc,4,0,mmd,inf\n", ("row 1", "mmd", "'inf'")),
        (f"{HEAD}thesis,circle,dp-hmc,4,0,mmd,big\n", ("row 1", "mmd", "'big'")),
        (f"{HEAD}thesis,circle,dp-hmc,4,0,mmd,\n", ("row 1", "mmd", "''")),
        (f"{HEAD}thesis,circle,dp-hmc,4,0,mmd,1_0\n", ("row 1", "'1_0'")),
        (f"{HEAD}thesis,circle,dp-hmc,four,0,mmd,1\n", ("row 1", "epsilon", "'four'")),
        (f"{HEAD}thesis,circle,dp-hmc,4,0,iterations,x\n", ("row 1", "iterations", "'x'")),
        (f"{HEAD}a,b\n", ("row 1", "''")),
        (f"{HEAD}a,b,c,d,e,f,g,h,i\n", ("more columns",)),
        (HEAD.encode() + b"\xff,\xfe\n", ("CSV",)),
    ],
)
def test_a_table_of_metrics(folder, capsys, text, words):
    Path("metrics.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    for figure in ("circle", "mmd-easy", "comparison"):
        error = fails(capsys, "plot", "--figure", figure, "--metrics", "metrics.csv", "--output", "f.svg")
        names(error, ("metrics.csv", *words))
    assert not Path("f.svg").exists()


@pytest.mark.parametrize("output", ["", "/", ".", "config", "/dev/null/x", "/proc/x/y", "x" * 300])
def test_outputs_that_cannot_be_written(folder, capsys, output):
    Path("metrics.csv").write_text(HEAD)
    own_model(folder, MODEL)
    ending = (".svg",) if output and output not in ("/", ".", "config") else ("",)
    fails(capsys, "plot", "--figure", "circle", "--metrics", "metrics.csv", "--output", output + ending[0])
    fails(capsys, "data", "--model", "mine:Model", "--rows", "rows.csv", "--output", output)
    fails(capsys, "evaluate", "--model", "circle", "--baselines", "--data", "circle.nc", "--output", output)
