"""One look per method: distinguishable in colour, with colour blindness, and in grey."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from dpmc.reports.plots.style import (
    STYLES,
    contrast_with_black,
    median_colour,
    method_styles,
    model_title,
)
from dpmc.studies import load_study
from figures.synthetic import SIX, Method

ALGORITHMS = (
    "rwmh hmc dp-penalty dp-penalty-guided minibatch-penalty minibatch-penalty-guided dp-barker "
    "dp-hmc dp-mala dp-sgld dp-sgnht mh barker tuna-mh dp-fast-mh dp-fast-mh-full"
).split()
TOGETHER = {
    "thesis": SIX,
    "clipping experiment": ("rwmh", "hmc"),
    "DP-HMC paper": ("dp-hmc", "dp-penalty", "dp-sgld", "dp-sgnht", "dp-mala"),
    "DP-Fast MH paper": (
        *("dp-penalty", "dp-barker", "dp-fast-mh", "dp-fast-mh-full"),
        *("mh", "barker", "tuna-mh"),
    ),
}
# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
VISION = {
    "normal": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


def cie_lab(colour: str, vision: str) -> np.ndarray:
    """CIE L*a*b* (D65) of a colour as seen with a kind of vision."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.asarray(VISION[vision]) @ linear, 0.0, 1.0)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    ratio = np.asarray(to_xyz) @ seen / np.array([0.9505, 1.0, 1.089])
    f = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16.0 / 116.0)
    return np.array([116.0 * f[1] - 16.0, 500.0 * (f[0] - f[1]), 200.0 * (f[1] - f[2])])


def test_every_algorithm_has_a_look_of_its_own() -> None:
    assert sorted(STYLES) == sorted(ALGORITHMS)
    for part in ("colour", "marker", "title"):
        assert len({getattr(look, part) for look in STYLES.values()}) == len(STYLES), part


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("group", TOGETHER)
def test_colours_that_share_a_figure_are_told_apart(group: str, vision: str) -> None:
    for one, other in itertools.combinations(TOGETHER[group], 2):
        first, second = (cie_lab(STYLES[name].colour, vision) for name in (one, other))
        assert np.linalg.norm(first - second) > 11.0, (one, other)


def test_the_measure_of_colours_detects_a_bad_pair() -> None:
    red, green = (cie_lab(c, "deuteranopia") for c in ("#B05A3C", "#7A7A32"))
    assert np.linalg.norm(red - green) < 11.0
    assert np.linalg.norm(cie_lab("#B05A3C", "normal") - cie_lab("#7A7A32", "normal")) > 30.0


def test_variants_of_an_algorithm_differ_in_style() -> None:
    labels = {"dp-hmc": "dp-hmc", "dp-hmc-reused": "dp-hmc", "dp-hmc-other": "dp-hmc"}
    styles = method_styles({label: Method(a, ()) for label, a in labels.items()})
    assert styles["dp-hmc"] == STYLES["dp-hmc"]
    assert styles["dp-hmc-reused"].title == "DP-HMC, reuses gradients"
    assert len({(look.colour, look.hatch) for look in styles.values()}) == 3


@pytest.mark.parametrize("algorithm", [name for name in ALGORITHMS if name not in ("mh", "barker")])
def test_four_variants_and_their_algorithm_are_told_apart(algorithm: str) -> None:
    """Those of the darkest and the palest colours are less apart; their hatches differ too."""
    labels = [algorithm, *(f"{algorithm}-{name}" for name in "abcd")]
    looks = method_styles({label: Method(algorithm, ()) for label in labels})
    least = 8.0 if algorithm in ("hmc", "dp-sgld", "dp-mala", "tuna-mh", "dp-fast-mh-full") else 11.0
    for vision in VISION:
        for one, other in itertools.combinations(looks.values(), 2):
            first, second = (cie_lab(look.colour, vision) for look in (one, other))
            assert np.linalg.norm(first - second) > least, (vision, one, other)
    assert len({look.hatch for look in looks.values()}) == 5


def test_no_shipped_study_shows_an_id() -> None:
    for file in (Path(__file__).parents[2] / "config/studies").glob("*.yaml"):
        study = load_study(file)
        titles = [look.title for look in method_styles(dict(study.methods)).values()]
        titles += [model_title(label, spec.model) for label, spec in study.models.items()]
        assert not [title for title in titles if re.search("[a-z0-9]-[a-z0-9].*-|_", title)], file
        assert len(set(titles)) == len(titles), file


def test_contrast() -> None:
    assert contrast_with_black("#FFFFFF") == pytest.approx(21.0)
    assert contrast_with_black("#000000") == pytest.approx(1.0)
    for look in STYLES.values():
        black = contrast_with_black(look.colour)
        contrast = black if median_colour(look.colour) == "#000000" else 21.0 / black
        assert contrast >= 3.0, look.title
    assert median_colour(STYLES["dp-mala"].colour) == "#FFFFFF"


def test_an_unknown_algorithm_is_drawn_too() -> None:
    assert method_styles({"mine": Method("package:Mine", ())})["mine"].title == "mine"
