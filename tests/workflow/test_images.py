"""A study of image data: complete with the images, without them all that does not need them."""

import os

from datasets import images as tiny
from pipeline_copy import SMALL, copy_pipeline, make_figures, snakemake

STUDY = {
    **SMALL,
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
}
HYPERPARAMETERS = {"rwmh": {name: {"proposal_sd": 0.01} for name in STUDY["models"]}}


def test_missing_pictures_cost_only_the_models_that_need_them(tmp_path):
    mark = "data/downloads/fashion.missing"
    folder = copy_pipeline(tmp_path, {"pictures": STUDY}, {"pictures": HYPERPARAMETERS})
    client = "echo called >> $0.calls; echo 'E: no such package' >&2; exit 100"
    tiny.program(folder / "bin", "apt-get", client)
    path = f"{folder / 'bin'}:{os.environ['PATH']}"

    make_figures(folder, "-n", "pictures", PATH=path)
    assert not (folder / mark).exists() and not (folder / "results").exists()

    printed = make_figures(folder, "pictures", status=3, PATH=path)
    assert "dpmc: left out: pictures: fashion: " in printed and mark in printed
    assert (folder / "figures/pictures/models.csv").exists()
    assert "E: no such package" in (folder / mark).read_text()
    assert (folder / "bin/apt-get.calls").read_text() == "called\n"

    # The mark stands: nothing is tried again, nothing made again.
    assert "Nothing to be done" in make_figures(folder, "pictures", status=3, PATH=path)
    # Everything else was made: chains and metrics of the one model, none of the other.
    printed = snakemake(folder, "-n", "results/pictures/metrics.csv", PATH=path)
    assert "pictures: fashion is left out" in printed and "Nothing to be done" in printed
    assert [cells.name for cells in folder.glob("results/pictures/chains/*")] == ["circle"]
