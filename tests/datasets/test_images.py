"""Two classes of images as rows: the projection against an SVD, its training images, contents of problems."""

import copy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from datasets import images as tiny
from dpmc.common.errors import DpmcError
from dpmc.data import datasets, idx, images, sources
from dpmc.data.histogram import bin_counts
from dpmc.data.problem import read_problem
from dpmc.models.mixture import Mixture

ROOT = Path(__file__).parents[2]


@pytest.fixture
def table(monkeypatch):
    """The table with few rows, so that tiny images are accepted as MNIST."""
    content = copy.deepcopy(sources.source_table())
    content["sets"]["mnist-79"] |= {"train": 240, "test": 60}
    monkeypatch.setattr(sources, "source_table", lambda: content)
    return content


@pytest.fixture
def mine(tmp_path, table, monkeypatch) -> Path:
    """A working folder, with tiny images in the place of a user's own MNIST."""
    tiny.put(tmp_path / "data/downloads/mnist", tiny.pictures(1200, 300))
    (tmp_path / "config").symlink_to(ROOT / "config")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def arrays(folder: Path) -> dict[str, np.ndarray]:
    place = folder / "data/downloads/mnist"
    return {name: idx.parse(idx.content(place / f"{name}.gz"), name) for name in tiny.NAMES}


def expected(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Training rows and norms by numpy's SVD of the pictures themselves, signs aside."""
    files = arrays(folder)
    labels = files["train-labels-idx1-ubyte"]
    x = files["train-images-idx3-ubyte"].reshape(len(labels), -1) / 255.0
    private = np.isin(labels, [7, 9])
    fitted = x[~private]
    axes = np.linalg.svd(fitted - fitted.mean(axis=0), full_matrices=False)[2][:50]
    return (x[private] - fitted.mean(axis=0)) @ axes.T, labels[private]


def test_rows_are_those_of_an_svd(mine):
    train, test = images.build_rows(images.image_set("mnist-79"))
    x, labels = expected(mine)
    norms = np.linalg.norm(x, axis=1, keepdims=True)
    assert train.shape == (240, 51) and test.shape == (60, 51)
    np.testing.assert_array_equal(train[:, 0], labels == 9)
    np.testing.assert_allclose(np.abs(train[:, 1:]), np.abs(x * np.minimum(1.0, 6.0 / norms)), atol=1e-9)


def test_a_private_image_changes_no_other_row(mine):
    before, _ = images.build_rows(images.image_set("mnist-79"))
    files = {name: array.copy() for name, array in arrays(mine).items()}
    first = int(np.flatnonzero(files["train-labels-idx1-ubyte"] == 7)[0])
    files["train-images-idx3-ubyte"][first] = 255 - files["train-images-idx3-ubyte"][first]
    tiny.put(mine / "data/downloads/mnist", {name: idx.dump(array) for name, array in files.items()})
    after, _ = images.build_rows(images.image_set("mnist-79"))
    assert np.count_nonzero((before != after).any(axis=1)) == 1


def test_the_order_of_the_public_pictures_changes_no_bit(mine):
    """Moments are sums of whole numbers: exact in any order."""
    pictures = arrays(mine)["train-images-idx3-ubyte"].reshape(1200, -1)
    shuffled = np.random.default_rng(0).permutation(pictures)
    mean, components = images.principal_components(pictures, 50)
    again = images.principal_components(shuffled, 50)
    assert (mean == again[0]).all() and (components == again[1]).all()
    assert (components.max(axis=0) == np.abs(components).max(axis=0)).all()  # their signs are defined


def test_tuning_pictures_are_of_other_classes_and_in_the_same_projection(mine):
    train, _ = images.build_rows(images.image_set("mnist-79-tuning"))
    labels = arrays(mine)["train-labels-idx1-ubyte"]
    np.testing.assert_array_equal(train[:, 0], labels[np.isin(labels, [3, 8])] == 8)
    assert datasets.tuning_set("mnist-79") == "mnist-79-tuning" and datasets.tuning_set("fresh-1") == "tuning"


def test_without_test_pictures_the_last_rows_of_a_random_order_are_kept_for_testing(mine, table):
    table["sources"]["mnist"]["files"] = dict.fromkeys(tiny.NAMES[:2])
    table["sets"]["mnist-79"] |= {"train": 200, "test": 40}
    train, test = images.build_rows(images.image_set("mnist-79"))
    assert train.shape == (200, 51) and test.shape == (40, 51)
    assert len(np.unique(np.concatenate([train, test])[:, 1])) == 240
    assert 0.2 < test[:, 0].mean() < 0.8  # false alarm: 1e-4, hypergeometric with 40 of 240


def test_problem_with_test_rows_survives_a_file(mine):
    problem = datasets.build("digits", "logistic-mnist", "mnist-79", n=100, starts=30)
    assert (problem.n, problem.dimension, problem.temperature) == (100, 50, 1.0)
    assert problem.starts.shape == (30, 50) and np.abs(problem.starts).max() <= 50**-0.5
    assert np.abs(problem.starts).max() > 0.99 * 50**-0.5  # false alarm: 0.99^1500
    problem.write(mine / "problem.nc")
    again = read_problem(mine / "problem.nc")
    np.testing.assert_array_equal(again.test_rows, problem.test_rows)
    np.testing.assert_array_equal(again.rows, problem.rows)
    assert again.exact.histogram_counts.size == 0


@pytest.mark.parametrize(
    ("model", "name", "n", "words"),
    [
        ("circle", "mnist-79", None, "columns"),
        ("logistic-mnist", "mnist-79", 241, "n: 241 is more than the 240 rows of mnist-79"),
        ("logistic-simulated", "mnist-79", None, "norms up to 6, logistic-simulated takes 5"),
        ("logistic-mnist", "mnist-17", None, "published, tuning, fresh-<number>, or one of fashion-79"),
    ],
)
def test_images_that_do_not_fit_the_model_are_refused(mine, model, name, n, words):
    with pytest.raises(DpmcError) as caught:
        datasets.build("digits", model, name, n)
    assert words in str(caught.value)


def test_the_mixture_s_problem_holds_the_histogram_of_exact_draws(tmp_path):
    problem = datasets.build("mixture", "mixture", "fresh-0", n=2000, starts=3)
    assert isinstance(problem.model, Mixture) and (problem.starts == 0.0).all()
    problem.write(tmp_path / "problem.nc")
    again = read_problem(tmp_path / "problem.nc")
    assert again.exact.histogram_edges.shape == (2, 100) and again.exact.histogram_counts.shape == (99, 99)
    assert again.exact.histogram_counts.sum() == datasets.HISTOGRAM_DRAWS
    counts, dropped = bin_counts(problem.exact.reference, again.exact.histogram_edges)
    assert dropped < 5  # 1000 draws of the same law, of which one in 50,000 lies outside on average
    # Shares of the halves of the grid agree: standard error below 1.6 % each; 6 of them allowed.
    shares = [c[:50].sum() / c.sum() for c in (counts, again.exact.histogram_counts)]
    assert shares[0] == pytest.approx(shares[1], abs=0.1)


def test_the_script_finds_files_and_reports_missing_ones(mine, capfd):
    def fetch(source: str) -> int:
        command = [sys.executable, str(ROOT / "workflow/scripts/fetch_images.py"), source]
        return subprocess.run(command, check=False).returncode

    assert fetch("mnist") == 0
    assert len(capfd.readouterr().out.splitlines()) == 4
    (mine / "data/downloads/mnist/train-images-idx3-ubyte.gz").unlink()
    assert fetch("mnist") == 1
    said = capfd.readouterr().err
    assert said.startswith("dpmc: error: mnist: ") and said.count("\n") == 1
    assert "train-images-idx3-ubyte" in said and "docs/explanation/data.md" in said
    assert images.why_missing("mnist-79") and not images.why_missing("fresh-0")
    assert fetch("cifar") == 1
    assert "'cifar' is unknown" in capfd.readouterr().err
