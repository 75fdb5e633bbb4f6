"""A study of image data: complete with the images, without them all that does not need them."""

import os
import subprocess
import sys
from pathlib import Path

from datasets import images as tiny
from dpmc.data import images, sources
from pipeline_copy import copy_pipeline

ROOT = Path(__file__).parents[2]

STUDY = {
    "title": "one model with pictures, one without",
    "delta": 1e-5,
    "seeds": 1,
    "settings_of": "pictures",
    "models": {
        "circle": {"data": "fresh-0", "n": 500, "epsilons": ["inf"], "tuning_epsilon": "inf"},
        "fashion": {
            "model": "logistic-fashion",
            "data": "fashion-79",
            "epsilons": ["inf"],
            "tuning_epsilon": "inf",
        },
    },
    "methods": {"rwmh": {"iterations": 50}},
    "figures": ["models"],
}
HYPERPARAMETERS = {"rwmh": {name: {"proposal_sd": 0.01} for name in STUDY["models"]}}
METRICS = "results/pictures/metrics.csv"


def project(folder: Path, client: str) -> Path:
    """A copy of the pipeline with the study, and a package client of its own in place of apt-get."""
    copy_pipeline(folder, {"pictures": STUDY}, {"pictures": HYPERPARAMETERS})
    tiny.program(folder / "bin", "apt-get", client)
    return folder


def run(folder: Path, *arguments: str, program: tuple[str, ...] = ("workflow/run.py",)) -> tuple[int, str]:
    path = os.pathsep.join([str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    result = subprocess.run(
        [sys.executable, *program, "--cores", "1", *arguments],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return result.returncode, result.stdout + result.stderr


def test_missing_pictures_cost_only_the_models_that_need_them(tmp_path):
    installed = Path(sources.table()["sources"]["fashion"]["installed"])
    if installed.exists():
        # Where Debian's package is installed the pictures are there; a source that nobody has stands in.
        STUDY["models"]["fashion"] |= {"model": "logistic-mnist", "data": "mnist-79"}
    source = images.image_set(STUDY["models"]["fashion"]["data"]).source.name
    mark = f"data/downloads/{source}.missing"
    folder = project(tmp_path, "echo called >> $0.calls; echo 'E: no such package' >&2; exit 100")

    status, said = run(folder, "-n", "pictures")
    assert status == (0 if source == "fashion" else 3), said
    assert not (folder / mark).exists() and not (folder / "results").exists()

    status, said = run(folder, "pictures")
    assert status == 3, said
    assert "dpmc: left out: pictures: fashion: " in said and mark in said
    assert (folder / "figures/pictures/models.csv").exists()
    if source == "fashion":
        assert "E: no such package" in (folder / mark).read_text()
        assert (folder / "bin/apt-get.calls").read_text() == "called\n"

    status, said = run(folder, "pictures")  # the mark stands: nothing is tried again, nothing made again
    assert status == 3 and "Nothing to be done" in said, said
    # Everything else was made: chains and metrics of the one model, none of the other.
    status, said = run(folder, "-n", METRICS, program=("-m", "snakemake"))
    assert status == 0 and "pictures: fashion is left out" in said and "Nothing to be done" in said, said
    chains = folder / "results/pictures/chains"
    assert [path.name for path in chains.iterdir()] == ["circle"]
