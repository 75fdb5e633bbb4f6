"""Outputs never overwrite an input or another output, and an earlier file only with `--force`."""

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
from dpmc.data import datasets

ROOT = Path(__file__).parents[2]
CELL = ("--study", "smoke", "--model", "circle", "--method", "dp-penalty")
SAMPLE = ("sample", *CELL, "--epsilon", "0.5", "--iterations", "8", "--quiet", "--data", "circle.nc")
DATA = ("data", *CELL[:4], "--rows", "rows.csv")
EVALUATE = ("evaluate", "--study", "smoke", "--data", "circle.nc", "--chains", "seed-0.nc", "seed-1.nc")
TUNE = ("tune", *CELL, "--data", "circle.nc", "--quiet")
SEARCH = (*TUNE, "--search", "--trials", "2", "--seeds", "2")
TABLE = ("plot", "--study", "smoke", "--figure", "models")
FIGURE = ("plot", "--study", "smoke", "--figure", "acceptance-easy", "--metrics", "metrics.csv")


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
            (*SAMPLE, "--seed", "0", "1", "--output", "seed-{seed}.nc"),
            (*EVALUATE, "--output", "metrics.csv"),
            ("trace", *EVALUATE[1:], "--output", "traces.csv"),
            (*TUNE, "--output", "tuned.yaml"),
            (*TABLE, "--output", "m.csv", "m.md"),
            (*FIGURE, "--output", "f.png", "f.pdf", "f.svg"),
        ):
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


@pytest.fixture
def unchanged(folder, refused):
    """A function that runs a command which must be refused and write, change and remove nothing."""

    def run(*arguments: str) -> str:
        before = contents(folder)
        error = refused(*arguments)
        assert contents(folder) == before
        return error

    return run


#: Commands with the files that they read, one by one.
INPUTS = [
    ((*SAMPLE, "--seed", "0"), "circle.nc", "--data"),
    ((*SAMPLE, "--seed", "0", "--data", "rows.csv"), "rows.csv", "--data"),
    ((*SAMPLE, "--seed", "0", "--hyperparameters", "own.yaml"), "own.yaml", "--hyperparameters"),
    (DATA, "rows.csv", "--rows"),
    (TUNE, "circle.nc", "--data"),
    (EVALUATE, "seed-1.nc", "--chains"),
    (EVALUATE, "circle.nc", "--data"),
    (("trace", *EVALUATE[1:]), "seed-0.nc", "--chains"),
    ((*TABLE, "--metrics", "m.csv"), "m.csv", "--metrics"),
]


@pytest.mark.parametrize("link", [None, os.symlink, os.link])
@pytest.mark.parametrize(("command", "name", "option"), INPUTS)
def test_an_input_is_never_written(unchanged, command, name, option, link):
    output = name
    if link:
        output = f"link{Path(name).suffix}"
        link(name, output)
    error = unchanged(*command, "--output", output, "--force")
    assert f"--output: {output}: " in error and option in error


def test_the_chains_of_a_folder_are_inputs(unchanged):
    Path("cell").mkdir()
    for seed in range(2):
        shutil.copy(f"seed-{seed}.nc", f"cell/seed-{seed}.nc")
    command = ("evaluate", "--study", "smoke", "--data", "circle.nc", "--chains", "cell")
    assert "--chains" in unchanged(*command, "--output", "cell/seed-1.nc", "--force")


def test_two_seeds_never_share_a_file(unchanged):
    os.symlink("new-0.nc", "new-1.nc")
    Path("new-0.nc").touch()
    for name, twice in (("new.nc", "new.nc"), ("new-{seed}.nc", "new-1.nc")):
        error = unchanged(*SAMPLE, "--seed", "0", "1", "--output", name, "--force")
        assert f"--output: {twice}: is named twice" in error


def test_outputs_of_a_plot_and_a_search_differ(unchanged):
    assert "--output: x.csv: is named twice" in unchanged(*TABLE, "--output", "x.csv", "x.md", "x.csv")
    search = (*SEARCH, "--output", "x.yaml")
    for options in (("--table", "x.yaml"), ("--table", "circle.nc")):
        assert f"{options[1]}: is a file of another option too" in unchanged(*search, *options)


RESULTS = [
    ((*SAMPLE, "--seed", "0"), "seed-0.nc"),
    (DATA, "circle.nc"),
    (TUNE, "tuned.yaml"),
    (EVALUATE, "metrics.csv"),
    (("trace", *EVALUATE[1:]), "traces.csv"),
    (TABLE, "m.csv"),
    (TABLE, "m.md"),
    *((FIGURE, f"f.{ending}") for ending in ("png", "pdf", "svg")),
]


@pytest.mark.parametrize(("command", "name"), RESULTS)
def test_results_are_overwritten_by_force_alone(unchanged, command, name):
    assert f"--output: {name}: exists; --force" in unchanged(*command, "--output", name)
    before = os.stat(name).st_ino
    assert main((*command, "--output", name, "--force")) == 0
    assert os.stat(name).st_ino != before


def test_refusals_come_before_any_computation(unchanged, monkeypatch):
    monkeypatch.setattr("dpmc.sampling.loop.sample", lambda *_: pytest.fail("it samples"))
    monkeypatch.setattr("dpmc.data.problem.read_problem", lambda *_: pytest.fail("it reads data"))
    unchanged(*SAMPLE, "--seed", "2", "1", "--output", "seed-{seed}.nc")  # the last one exists


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("", "''"),
        ("new/", "'new/'"),
        ("config", "config: is a folder"),
        ("rows.csv/deeper/new.nc", "rows.csv is not a folder"),
        ("nowhere.nc", "is a link to a missing file"),
    ],
)
def test_impossible_output_paths_are_refused(unchanged, output, words):
    os.symlink("gone.nc", "nowhere.nc")
    assert words in unchanged(*SAMPLE, "--seed", "0", "--output", output)


def test_a_search_resumes_from_its_table_without_force(unchanged):
    """A killed search leaves the table of trials only, since settings are written at its end."""
    search = (*SEARCH, "--output", "found.yaml")
    assert main(search) == 0
    found, trials = yaml.safe_load(Path("found.yaml").read_text()), Path("found.trials.csv").read_text()
    os.remove("found.yaml")
    assert main(search) == 0  # nothing is tried again
    assert yaml.safe_load(Path("found.yaml").read_text()) == found
    assert Path("found.trials.csv").read_text() == trials
    assert "--output: found.yaml: exists" in unchanged(*search)
    assert main((*search, "--force")) == 0


# -- a disk that is full ----------------------------------------------------------------------------------


@contextmanager
def full_disk(size: int = 400):
    """Let no file grow beyond `size` bytes: writing more fails as on a full disk, also in C libraries."""
    before, bytecode = resource.getrlimit(resource.RLIMIT_FSIZE), sys.dont_write_bytecode
    # Python would keep the cut-off bytecode of a module first imported here, for all later processes.
    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        sys.dont_write_bytecode = bytecode


@pytest.mark.parametrize(
    ("command", "written"),
    [
        ((*SAMPLE, "--seed", "0", "1", "--output", "seed-{seed}.nc"), "seed-0.nc"),
        *(
            ((*command, "--output", name), name)
            for command, name in RESULTS[1:]
            if "m.csv" != name != "traces.csv"
        ),
        ((*SEARCH, "--output", "tuned.yaml"), "tuned.trials.csv"),
        (("budgets", "--study", "smoke", "--output", "budgets.csv"), "budgets.csv"),
    ],
)
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
