"""One page of a fit that a person can mail: what was asked, the guarantee, the answer, how to draw again.

For a release it is a function of the release alone.
"""

from __future__ import annotations

import base64
import io
import json
from html import escape
from pathlib import Path
from string import Template
from typing import Any

import yaml

from dpmc.analysis.forest import forest
from dpmc.common.files import given_path, replacing
from dpmc.common.version import __version__

CITE = (
    "dpmc {version}, differentially private Bayesian inference; method: noisy scores, "
    "docs/reference/algorithms/noisy-scores.md."
)
RELEASED = (
    "This answer is (ε = {epsilon:g}, δ = {delta:.2g})-differentially private for one row of {n:,}: whoever "
    "reads it learns almost the same whether any one row is in the table, or is another one. Its intervals "
    "count the noise that this took."
)
OF_THE_LAB = (
    "Computed in the lab with reproducible noise at ε = {epsilon:g}, δ = {delta:.2g}, {n:,} rows: for "
    "research, not for publication. Whoever knows the seed can check a guess of the rows."
)


def write_report(fit: Any, path: str | Path, level: float = 0.9) -> Path:
    """Write the report of a fit as one HTML file; without coefficients besides the intercept, no picture."""
    target, about = given_path(path, "report"), fit.tree.attrs
    summary = fit.summary(level)
    numbers = {key: sum(float(tree.attrs[key]) for tree in fit.trees) for key in ("epsilon", "delta")}
    said = (RELEASED if fit.is_release else OF_THE_LAB).format(**numbers, n=int(about["n"]))
    picture, file = "", io.BytesIO()
    if len(fit.names) > int(fit.model.design.intercept):
        forest(fit, level).savefig(file, format="png", dpi=160, metadata={"Software": None})
        data = base64.b64encode(file.getvalue()).decode()
        picture = f'<img alt="Coefficients with their intervals" src="data:image/png;base64,{data}">'
    named = list(fit.files) or ["answer.nc"]
    book = getattr(fit.model.design, "codebook", None)
    text = Template(Path(__file__).with_name("report.html").read_text(encoding="utf-8")).substitute(
        title=escape(fit.heading[0]),
        guarantee=escape(said),
        table=summary.table_html(),
        labels="\n  ".join(
            f'td:nth-of-type({i})::before {{ content: "{name.replace("_", " ")}"; }}'
            for i, name in enumerate(summary.table, 1)
        ),
        notes="".join(f"<p>{escape(note)}</p>" for note in summary.notes),
        picture=picture,
        asked="".join(
            f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in _facts(fit).items()
        ),
        again=escape(f"import dpmc\nfit = dpmc.Fit({named}, prior_sd=1)\nprint(fit)"),
        codebook=escape(
            "none: the model's arguments say it"
            if book is None
            else yaml.safe_dump(book.only(fit.model.columns), sort_keys=False, allow_unicode=True, width=100)
        ),
        cite=escape(CITE.format(version=__version__)),
    )
    with replacing(target) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return target


def _facts(fit: Any) -> dict[str, str]:
    """Return what was asked of whom, by name."""
    about = fit.tree.attrs
    facts = {"model": type(fit.model).__name__, "rows": f"{int(about['n']):,}"}
    spent = [(float(tree.attrs["epsilon"]), float(tree.attrs["delta"])) for tree in fit.trees]
    facts["budget"] = " and ".join(f"epsilon {epsilon:g}, delta {delta:.3g}" for epsilon, delta in spent)
    facts["prior"] = (
        f"normal around 0, sd {', '.join(f'{x:g}' for x in dict.fromkeys(fit.prior_sd.tolist()))}"
    )
    entries = [
        json.loads(str(tree.attrs["data_ledger"])) for tree in fit.trees if "data_ledger" in tree.attrs
    ]
    for entry in entries:
        number = f"entry {entry['number']} of the ledger"
        facts[number] = f"{entry['id']}, of {entry['ledger']}, head {entry['hash']}"
    return facts
