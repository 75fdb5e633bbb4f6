"""Files that come with the project are found in a clone and in an installed wheel."""

from pathlib import Path

import pytest

from dpmc.common import shipped as module
from dpmc.common.shipped import shipped

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "parts",
    [
        ("config", "studies", "smoke.yaml"),
        ("config", "hyperparameters"),
        ("data", "published"),
        ("Snakefile",),
    ],
)
def test_shipped_files_of_a_clone_are_in_its_root(parts: tuple[str, ...]) -> None:
    assert shipped(*parts) == ROOT.joinpath(*parts) and shipped(*parts).exists()


def test_shipped_files_of_a_wheel_are_in_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site-packages" / "dpmc"
    (package / "shipped_files" / "config").mkdir(parents=True)
    monkeypatch.setattr(module, "PACKAGE", package)
    assert shipped("config", "studies") == package / "shipped_files" / "config" / "studies"
    assert shipped() == package / "shipped_files"
