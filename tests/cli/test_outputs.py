"""Outputs never overwrite an input, another output, or a file that dpmc did not make."""

import errno
import os
import re
import resource
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import yaml

from dpmc.cli.main import main
from dpmc.common import files
from dpmc.common.errors import DpmcError
from dpmc.data import datasets

ROOT = Path(__file__).parents[2]
CELL = ("--study", "smoke", "--model", "circle", "--method", "dp-penalty")
SAMPLE = ("sample", *CELL, "--epsilon", "0.5", "--iterations", "8", "--quiet", "--data", "circle.nc")
ROWS = ("sample", *CELL, "--epsilon", "0.5", "--iterations", "8", "--quiet", "--data", "rows.csv")
EVALUATE = ("evaluate", "--study", "smoke", "--data", "circle.nc", "--chains", "seed-0.nc", "seed-1.nc")
TUNE = ("tune", *CELL, "--data", "circle.nc", "--quiet")
SEARCH = (*TUNE, "--search", "--trials", "2", "--seeds", "2")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with the project's config, data and results of most commands."""
    folder = tmp_path_factory.mktemp("made")
    shutil.copytree(ROOT / "config", folder / "config")
    before = Path.cwd()
    os.chdir(folder)
    try:
        datasets.build("circle", "circle", "tuning", n=200).write(folder / "circle.nc")
        np.savetxt("rows.csv", np.linspace(1.0, 2.0, 50))
        Path("own.yaml").write_text("{tau: 4, clip: 0.002, proposal_sd: 0.2}")
        Path("notes.txt").write_text("all my notes")
        for command in (
            (*SAMPLE, "--output", "seed-0.nc", "seed-1.nc"),
            (*EVALUATE, "--output", "metrics.csv"),
            ("trace", *EVALUATE[1:], "--output", "traces.csv"),
            (*TUNE, "--output", "tuned.yaml"),
            ("plot", "--study", "smoke", "--figure", "models", "--output", "m.csv", "m.tex"),
            ("plot", "--study", "smoke", "--figure", "acceptance-easy", "--metrics", "metrics.csv",
             "--output", "f.png", "f.pdf", "f.svg"),
        ):  # fmt: skip
            assert main(command) == 0
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    shutil.copytree(made, tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def refused(capsys, folder: Path, *arguments: str) -> str:
    """Run a command that must be refused in one line, and write, change and remove nothing."""
    before = contents(folder)
    capsys.readouterr()
    try:
        code = main(arguments)
    except SystemExit as stop:
        code = stop.code
    error = capsys.readouterr().err
    assert code == 2, error
    assert error.startswith("dpmc: error: ") and error.count("\n") == 1, error
    assert contents(folder) == before
    return error


#: Commands with the files that they read, one by one.
INPUTS = [
    (ROWS, "rows.csv", "--data"),
    (SAMPLE, "circle.nc", "--data"),
    ((*SAMPLE, "--hyperparameters", "own.yaml"), "own.yaml", "--hyperparameters"),
    (("data", *CELL[:4], "--rows", "rows.csv"), "rows.csv", "--rows"),
    (TUNE, "circle.nc", "--data"),
    (EVALUATE, "seed-1.nc", "--chains"),
    (EVALUATE, "circle.nc", "--data"),
    (("trace", *EVALUATE[1:]), "seed-0.nc", "--chains"),
    (("speed", "--study", "smoke", "--quiet", "--data", "circle.nc"), "circle.nc", "--data"),
    (("plot", "--study", "smoke", "--figure", "models", "--metrics", "m.csv"), "m.csv", "--metrics"),
]


@pytest.mark.parametrize("force", [(), ("--force",)])
@pytest.mark.parametrize("how", ["name", "path", "symlink", "hard link"])
@pytest.mark.parametrize(("command", "name", "option"), INPUTS)
def test_an_input_is_never_written(folder, capsys, command, name, option, how, force):
    output = name
    if how == "path":
        output = f"config/../{name}"
    elif how != "name":
        output = f"link{Path(name).suffix}"
        (os.symlink if how == "symlink" else os.link)(name, output)
    seed = ("--seed", "0") if command[0] == "sample" else ()
    error = refused(capsys, folder, *command, *seed, "--output", output, *force)
    assert f"--output: {output}: " in error and option in error


def test_the_chains_of_a_folder_are_inputs(folder, capsys):
    Path("cell").mkdir()
    for seed in range(2):
        shutil.copy(f"seed-{seed}.nc", f"cell/seed-{seed}.nc")
    command = ("evaluate", "--study", "smoke", "--data", "circle.nc", "--chains", "cell")
    assert "--chains" in refused(capsys, folder, *command, "--output", "cell/seed-1.nc", "--force")


@pytest.mark.parametrize(
    "outputs",
    [("new.nc", "new.nc"), ("new.nc", "config/../new.nc"), ("new.nc", "folder/new.nc"), ("a", "a/b.nc")],
)
def test_two_seeds_never_share_a_file(folder, capsys, outputs):
    os.symlink(".", "folder")
    error = refused(capsys, folder, *SAMPLE, "--seed", "0", "1", "--output", *outputs, "--force")
    assert f"--output: {outputs[1]}: " in error


def test_outputs_of_a_plot_and_a_search_differ(folder, capsys):
    plot = ("plot", "--study", "smoke", "--figure", "models", "--output", "x.csv", "x.tex", "x.csv")
    assert "--output: x.csv: is named twice" in refused(capsys, folder, *plot)
    search = (*SEARCH, "--output", "x.yaml", "--figure")
    error = refused(capsys, folder, *search, "x.png", "--table", "x.png")
    assert "--figure: x.png: is a file of another option too (--table)" in error
    error = refused(capsys, folder, *SEARCH, "--output", "x.yaml", "--table", "circle.nc")
    assert "--table: circle.nc: is a file of another option too (--data)" in error


RESULTS = [
    ((*SAMPLE, "--seed", "0"), "seed-0.nc"),
    (("data", *CELL[:4], "--rows", "rows.csv"), "circle.nc"),
    (TUNE, "tuned.yaml"),
    (EVALUATE, "metrics.csv"),
    (("trace", *EVALUATE[1:]), "traces.csv"),
    (("plot", "--study", "smoke", "--figure", "models"), "m.csv"),
    (("plot", "--study", "smoke", "--figure", "models"), "m.tex"),
    *(
        (
            ("plot", "--study", "smoke", "--figure", "acceptance-easy", "--metrics", "metrics.csv"),
            f"f.{ending}",
        )
        for ending in ("png", "pdf", "svg")
    ),
]


@pytest.mark.parametrize(("command", "name"), RESULTS)
def test_results_are_overwritten_by_force_alone(folder, capsys, command, name):
    assert f"--output: {name}: exists; --force" in refused(capsys, folder, *command, "--output", name)
    before = os.stat(name).st_ino
    assert main((*command, "--output", name, "--force")) == 0
    assert os.stat(name).st_ino != before


@pytest.mark.parametrize(("command", "name"), [*RESULTS, (("speed", "--study", "smoke"), "s.csv"),
                                               (("fetch", "mnist"), "c.txt")])  # fmt: skip
@pytest.mark.parametrize("foreign", ["notes.txt", "rows.csv", "own.yaml", "empty", "other result"])
def test_files_that_dpmc_did_not_make_are_never_overwritten(folder, capsys, command, name, foreign):
    target = f"theirs{Path(name).suffix}"
    if foreign == "other result":  # of another command
        shutil.copy("traces.csv" if name != "traces.csv" else "metrics.csv", target)
    else:
        Path(target).write_bytes(b"" if foreign == "empty" else Path(foreign).read_bytes())
    error = refused(capsys, folder, *command, "--output", target, "--force")
    assert f"--output: {target}: exists and is not" in error


def test_foreign_figures_and_netcdf_files_are_not_overwritten(folder, capsys):
    import netCDF4
    from matplotlib.figure import Figure

    plot = ("plot", "--study", "smoke", "--figure", "acceptance-easy", "--metrics", "metrics.csv")
    for ending in ("png", "pdf", "svg"):
        Figure().savefig(f"theirs.{ending}")
        refused(capsys, folder, *plot, "--output", f"theirs.{ending}", "--force")
    with netCDF4.Dataset("theirs.nc", "w") as file:
        file.schema = 1
    refused(capsys, folder, *SAMPLE, "--seed", "0", "--output", "theirs.nc", "--force")


def test_refusals_come_before_any_computation(folder, capsys, monkeypatch):
    monkeypatch.setattr("dpmc.sampling.loop.sample", lambda *_: pytest.fail("it samples"))
    monkeypatch.setattr("dpmc.data.problem.read_problem", lambda *_: pytest.fail("it reads data"))
    refused(capsys, folder, *SAMPLE, "--output", "new/seed-0.nc", "seed-1.nc")  # the last one exists


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("", "''"),
        ("/", "'/'"),
        ("new/", "'new/'"),
        (".", "'.'"),
        ("config", "config: is a folder"),
        ("..", "is a folder"),
        ("rows.csv/new.nc", "rows.csv is not a folder"),
        ("rows.csv/deeper/new.nc", "rows.csv is not a folder"),
        ("nowhere.nc", "is a link to a missing file"),
    ],
)
def test_impossible_output_paths_are_refused(folder, capsys, output, words):
    os.symlink("gone.nc", "nowhere.nc")
    for command in (
        (*SAMPLE, "--seed", "0"),
        ("data", *CELL[:4]),
        TUNE,
        EVALUATE,
        ("trace", *EVALUATE[1:]),
        ("speed", "--study", "smoke"),
        ("fetch", "mnist"),
    ):
        assert words in refused(capsys, folder, *command, "--output", output)


def test_a_search_resumes_from_its_table_without_force(folder, capsys):
    """A killed search leaves the table of trials only, since settings are written at its end."""
    search = (*SEARCH, "--output", "found.yaml", "--figure", "found.png")
    assert main(search) == 0
    found, trials = yaml.safe_load(Path("found.yaml").read_text()), Path("found.trials.csv").read_text()
    os.remove("found.yaml"), os.remove("found.png")
    assert main(search) == 0  # nothing is tried again
    assert yaml.safe_load(Path("found.yaml").read_text()) == found
    assert Path("found.trials.csv").read_text() == trials
    assert "--output: found.yaml: exists" in refused(capsys, folder, *search)
    assert main((*search, "--force")) == 0


MORTAL = """
import os


class Mortal:
    dimension = 1
    calls = 0

    def log_likelihood(self, theta, rows):
        Mortal.calls += 1
        if os.path.exists("deadly") and Mortal.calls > 4000:
            raise KeyboardInterrupt
        return -0.5 * (rows[:, 0] - theta[0]) ** 2
"""


def test_a_killed_chain_resumes_without_force(folder, monkeypatch):
    """And ends with the bits of one that was not killed."""
    Path("mortal.py").write_text(MORTAL)
    monkeypatch.syspath_prepend(folder)
    chain = ("sample", "--model", "mortal:Mortal", "--method", "dp-penalty", "--epsilon", "4",
             "--data", "rows.csv", "--hyperparameters", "own.yaml", "--quiet",
             "--checkpoint-seconds", "0", "--output")  # fmt: skip
    Path("own.yaml").write_text("{tau: 4, clip: 1, proposal_sd: 0.2}")
    Path("deadly").touch()
    assert main((*chain, "killed/seed-5.nc")) == 130
    assert [path.suffix for path in Path("killed").iterdir()] == [".npz"]
    os.remove("deadly")
    sys.modules.pop("mortal")  # as in a new process: a model that has changed itself is another one
    assert main((*chain, "killed/seed-5.nc")) == 0
    assert [path.name for path in Path("killed").iterdir()] == ["seed-5.nc"]
    sys.modules.pop("mortal")
    assert main((*chain, "whole/seed-5.nc")) == 0
    assert Path("killed/seed-5.nc").read_bytes() == Path("whole/seed-5.nc").read_bytes()


# -- a disk that is full ----------------------------------------------------------------------------------


@contextmanager
def full_disk(size: int = 400):
    """Let no file grow beyond `size` bytes: writing more fails as on a full disk, also in C libraries."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(
    ("command", "written"),
    [
        ((*SAMPLE, "--seed", "0", "1", "--output", "seed-0.nc", "seed-1.nc"), "seed-0.nc"),
        (("data", *CELL[:4], "--rows", "rows.csv", "--output", "circle.nc"), "circle.nc"),
        ((*EVALUATE, "--output", "metrics.csv"), "metrics.csv"),
        ((*TUNE, "--output", "tuned.yaml"), "tuned.yaml"),
        ((*SEARCH, "--output", "tuned.yaml"), "tuned.trials.csv"),
        (("plot", "--study", "smoke", "--figure", "models", "--output", "m.tex"), "m.tex"),
        (("plot", "--study", "smoke", "--figure", "acceptance-easy", "--metrics", "metrics.csv",
          "--output", "f.png"), "f.png"),
        (("plot", "--study", "smoke", "--figure", "acceptance-easy", "--metrics", "metrics.csv",
          "--output", "f.pdf"), "f.pdf"),
        (("budgets", "--study", "smoke", "--output", "budgets.csv"), "budgets.csv"),
    ],
)  # fmt: skip
def test_a_full_disk_is_a_line_that_names_the_file_and_old_files_stay(folder, capsys, command, written):
    before = contents(folder)
    with full_disk(20 if written == "tuned.trials.csv" else 400):
        assert main((*command, "--force")) == 2
    error = capsys.readouterr().err
    lines = [line for line in error.splitlines() if line.startswith("dpmc: error: ")]
    name = r"\.\w+-seed-0\.nc" if command[0] == "sample" else re.escape(written)  # waits for its name
    assert len(lines) == 1 and re.search(rf"{name}: cannot be written \(.+\)", lines[0]), error
    assert "Traceback" not in error
    after = {name: content for name, content in contents(folder).items() if ".lock" not in name}
    assert after == before
    assert main((*command, "--force")) == 0
    assert Path(written).stat().st_size > 20


def test_sampling_goes_on_after_a_full_disk(folder, capsys):
    """The checkpoint that fits is kept, and the chains have the bits of an uninterrupted run."""
    run = (*SAMPLE, "--seed", "0", "--checkpoint-seconds", "0", "--output")
    assert main((*run, "whole.nc", "--iterations", "60")) == 0
    with full_disk(9_000):
        assert main((*run, "broken.nc", "--iterations", "60")) == 2
    assert ".checkpoint-" in (error := capsys.readouterr().err) and "cannot be written" in error
    assert list(folder.glob(".checkpoint-*"))
    assert main((*run, "broken.nc", "--iterations", "60")) == 0
    assert Path("broken.nc").read_bytes() == Path("whole.nc").read_bytes()


def test_a_project_that_does_not_fit_leaves_no_file(tmp_path, capsys):
    with full_disk(3_000):
        assert main(("init", str(tmp_path / "new"))) == 2
    assert f"{tmp_path / 'new'}: cannot be written" in capsys.readouterr().err
    assert not contents(tmp_path)
    assert main(("init", str(tmp_path / "new"))) == 0


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EDQUOT])
def test_every_error_of_writing_names_the_output_and_keeps_the_old_file(tmp_path, monkeypatch, number):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number), *((str(_[0]), None, str(_[1])) if _ else ()))

    refused = pytest.raises(DpmcError, match=rf"a\.txt: cannot be written \({os.strerror(number)}\)")
    with refused, files.replacing(path) as temporary:
        temporary.write_text("new")
        fail()
    monkeypatch.setattr(os, "replace", fail)
    refused = pytest.raises(DpmcError, match=rf"a\.txt: cannot be written \({os.strerror(number)}\)")
    with refused, files.replacing(path) as temporary:
        temporary.write_text("new")
    assert contents(tmp_path) == {str(path): b"old"}
