"""The models of a study (Table 5.1)."""

from pathlib import Path

import pandas as pd

from dpmc.models import definition
from dpmc.reports.plots.selection import private_models
from dpmc.reports.plots.style import model_title
from dpmc.studies import Study

TITLE = "Models"
COLUMNS = ("model", "name", "d", "n", "n0", "a", "sigma2_0", "sampler_sigma2_0")
HEADS = {"name": "Model", "d": "d", "n": "n", "n0": "n₀", "a": "a", "sigma2_0": "σ₀²"}
NOTE = (
    "Dimension d, number of rows n, tempering n₀ (the log-likelihood is multiplied by n₀/n; none: by 1),\n"
    "the parameter a of the model (how bent a banana is; how thin the circle's ring) and the prior variance\n"
    "σ₀² of every component (the circle has a flat prior). Table 5.1 of the thesis. Its code gives the\n"
    "samplers of the correlated Gaussian a prior of standard deviation 100 and compares them with the\n"
    "posterior under a prior of variance 100; with 200,000 rows the two cannot be told apart."
)


def table(study: Study, results: Path) -> pd.DataFrame:
    """Return a row of texts for each model with a budget; "" if a model has no such number.

    `sigma2_0` is the prior variance of the exact posterior, `sampler_sigma2_0` that of the samplers if it
    differs. Models of the clipping experiment are left out.
    """
    rows = []
    for label in private_models(study):
        spec = study.models[label]
        known = definition(spec.model)
        model = known.model
        sampler = getattr(model, "prior_variance", None)
        exact = getattr(model, "exact_prior_variance", sampler)
        # A Gaussian is a banana with a = 0.
        a = getattr(model, "a", 0.0 if hasattr(model, "exact_prior_variance") else None)
        numbers = (known.tempering, a, exact, sampler if sampler != exact else None)
        texts = ("" if number is None else f"{number:g}" for number in numbers)
        title = model_title(label, spec.model).partition(", d =")[0]
        rows.append((label, title, str(int(model.dimension)), str(spec.n or known.n), *texts))
    return pd.DataFrame(rows, columns=[*COLUMNS])


def readable(study: Study, results: Path) -> tuple[str, pd.DataFrame]:
    """Return the note and the table with the thesis's symbols."""
    return NOTE, table(study, results)[[*HEADS]].rename(columns=HEADS)
