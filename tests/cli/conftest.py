"""A working folder for commands, and commands that must be refused."""

import csv
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dpmc.cli.main import main
from dpmc.data import datasets

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def circle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small data file of the circle."""
    path = tmp_path_factory.mktemp("data") / "circle.nc"
    datasets.build("circle", "circle", "fresh-0", n=200).write(path)
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, circle: Path) -> Iterator[Path]:
    """The current folder, with the project's config and a small data file `circle.nc`.

    Modules of one's own are of this folder, and forgotten with it.
    """
    shutil.copytree(ROOT / "config", tmp_path / "config")
    shutil.copy(circle, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield tmp_path
    for name in [name for name, module in sys.modules.items() if _is_in(tmp_path, module)]:
        del sys.modules[name]


def _is_in(folder: Path, module: object) -> bool:
    return str(getattr(module, "__file__", "")).startswith(str(folder))


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """A function that runs a command which must end with exit code 2 and one line; it returns the line."""

    def run(*arguments: str) -> str:
        capsys.readouterr()
        assert main(arguments) == 2
        error = capsys.readouterr().err
        assert error.startswith("dpmc: error: ") and error.count("\n") == 1 and len(error) < 1100, error
        return error

    return run


@pytest.fixture
def table() -> Callable[[str], list[dict[str, str]]]:
    """A function that reads a CSV file."""

    def read(path: str) -> list[dict[str, str]]:
        with open(path, encoding="utf-8") as file:
            return list(csv.DictReader(file))

    return read
