"""The wheel has everything that the library and its commands need, and works alone."""

import zipfile
from pathlib import Path

import pytest

import pipeline_copy
from pipeline_copy import ROOT


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pipeline_copy.run(ROOT, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder))
    (wheel,) = folder.glob("dpmc-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site-packages")
    return folder / "site-packages"


def run(unpacked: Path, folder: Path, *words: str) -> str:
    """Run Python with the unpacked wheel in an empty folder, with an empty home."""
    for name in ("home", "here"):
        (folder / name).mkdir(exist_ok=True)
    # Nothing is compiled yet, and it need not be fast.
    environment = {"HOME": str(folder / "home"), "PYTHONPATH": str(unpacked), "NUMBA_OPT": "0"}
    return pipeline_copy.run(folder / "here", *words, **environment)


def files(folder: Path) -> set[str]:
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_wheel_has_every_file_of_the_package_studies_tables_and_workflow(unpacked: Path) -> None:
    """A schema or a table that is left out breaks only the installed package, never a checkout."""
    assert files(ROOT / "src") - files(unpacked) == set()
    (commands,) = unpacked.glob("dpmc-*/entry_points.txt")
    assert "dpmc = dpmc.__main__:main" in commands.read_text()
    assert (unpacked / "dpmc/py.typed").exists()  # type checkers read the annotations of an installed dpmc
    shipped = unpacked / "dpmc" / "shipped_files"
    for room in ("config", "data/published", "workflow", "profiles"):
        assert files(shipped / room) == files(ROOT / room)
    assert files(shipped) >= {"Snakefile", "environment.yml", "environment.post-deploy.sh"}


def test_the_library_does_not_need_snakemake(unpacked: Path, tmp_path: Path) -> None:
    program = """
import importlib, pathlib, pkgutil, sys
for name in ("snakemake", "psutil", "pytest", "arviz"):
    sys.modules[name] = None  # whoever imports it gets an ImportError
import dpmc
assert pathlib.Path(dpmc.__file__).parent == pathlib.Path(sys.argv[1])
skipped = ("__main__", "template", "shipped_files")
for module in pkgutil.walk_packages(dpmc.__path__, "dpmc."):
    if not set(skipped) & set(module.name.split(".")):
        importlib.import_module(module.name)
print(len([name for name in sys.modules if name.startswith("dpmc.")]))
"""
    assert int(run(unpacked, tmp_path, "-c", program, str(unpacked / "dpmc"))) > 100


def test_a_chain_of_a_published_study_in_an_empty_folder(unpacked: Path, tmp_path: Path) -> None:
    cell = ("--study", "thesis", "--model", "flat-banana-2d", "--method", "dp-penalty", "--epsilon", "4")
    assert '"tight": 702' in run(unpacked, tmp_path, "-m", "dpmc", "budget", *cell, "--json")
    sample = ("sample", *cell, "--seed", "0", "--iterations", "20", "--output", "chain.nc")
    run(unpacked, tmp_path, "-m", "dpmc", *sample)
    assert (tmp_path / "here" / "chain.nc").stat().st_size > 1000
    table = ("plot", "--study", "thesis", "--figure", "models", "--output", "models.csv")
    run(unpacked, tmp_path, "-m", "dpmc", *table)
    assert "flat-banana-2d" in (tmp_path / "here" / "models.csv").read_text()


def test_a_project_written_by_the_wheel_is_planned(unpacked: Path, tmp_path: Path) -> None:
    run(unpacked, tmp_path, "-m", "dpmc", "init")
    planned = run(unpacked, tmp_path, "-m", "snakemake", "--cores", "1", "--dry-run")
    assert "sample_regression_regression" in planned and "Draw figure coefficients of regression" in planned
