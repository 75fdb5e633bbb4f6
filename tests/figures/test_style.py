"""Names and looks of methods and models."""

import re
from pathlib import Path

from dpmc.algorithms import ALGORITHMS
from dpmc.reports.plots.style import STYLES, method_styles, model_title
from dpmc.studies import load_study
from figures.synthetic import Method


def test_every_algorithm_has_a_look_of_its_own() -> None:
    assert set(STYLES) >= set(ALGORITHMS)
    for part in ("colour", "marker", "title"):
        assert len({getattr(look, part) for look in STYLES.values()}) == len(STYLES), part


def test_variants_of_an_algorithm_differ() -> None:
    labels = ["dp-hmc", *(f"dp-hmc-{name}" for name in ("reused", "tuned", "b", "c"))]
    looks = method_styles({label: Method("dp-hmc", ()) for label in labels})
    assert looks["dp-hmc"] == STYLES["dp-hmc"] and looks["dp-hmc-reused"].title == "DP-HMC, reuses gradients"
    for part in ("colour", "hatch", "title"):
        assert len({getattr(look, part) for look in looks.values()}) == 5
    assert method_styles({"mine": Method("package:Mine", ())})["mine"].title == "mine"


def test_no_shipped_study_shows_an_id() -> None:
    for file in (Path(__file__).parents[2] / "config/studies").glob("*.yaml"):
        study = load_study(file)
        titles = [look.title for look in method_styles(dict(study.methods)).values()]
        titles += [model_title(label, spec.model) for label, spec in study.models.items()]
        assert not [title for title in titles if re.search("[a-z0-9]-[a-z0-9].*-|_", title)], file
        assert len(set(titles)) == len(titles), file
