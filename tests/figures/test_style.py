"""Names and looks of methods and models."""

import re
from pathlib import Path

from dpmc.reports.plots.style import method_styles, model_title
from dpmc.studies import load_study


def test_no_shipped_study_shows_an_id() -> None:
    for file in (Path(__file__).parents[2] / "config/studies").glob("*.yaml"):
        study = load_study(file)
        titles = [look.title for look in method_styles(dict(study.methods)).values()]
        titles += [model_title(label, spec.model) for label, spec in study.models.items()]
        assert not [title for title in titles if re.search("[a-z0-9]-[a-z0-9].*-|_", title)], file
        assert len(set(titles)) == len(titles), file
