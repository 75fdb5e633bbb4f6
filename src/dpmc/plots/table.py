"""The table of models (Table 5.1), as CSV and as LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dpmc.errors import DpmcError
from dpmc.outputs import Kind, csv_table, latex_table
from dpmc.plots.frame import private_models
from dpmc.plots.style import model_title

if TYPE_CHECKING:
    from dpmc.studies import Study

COLUMNS = ("model", "name", "d", "n", "n0", "a", "sigma2_0", "sampler_sigma2_0")
HEADINGS = ("Model", "$d$", "$n$", "$n_0$", "$a$", r"$\sigma_0^2$")
HEAD = (r"\begin{tabular}{lrrrrr}", r"\hline", " & ".join(HEADINGS) + r" \\", r"\hline")  #: of the LaTeX


def rows(study: Study) -> list[dict[str, str]]:
    """Return one row of `COLUMNS` per model of the study; "" where a model has no such number.

    `sigma2_0` is the prior variance of the exact posterior, `sampler_sigma2_0` the samplers' where
    it is another. Models of the clipping experiment are left out.
    """
    return [_row(study, label) for label in private_models(study)]


def _row(study: Study, label: str) -> dict[str, str]:
    """Return one model's row."""
    from dpmc import models

    spec = study.models[label]
    definition = models.definition(spec.model)
    model, n0 = definition.model, definition.tempering
    sampler = getattr(model, "prior_variance", None)
    exact = getattr(model, "exact_prior_variance", sampler)
    # A Gaussian is a banana that is not bent.
    a = getattr(model, "a", 0.0 if hasattr(model, "exact_prior_variance") else None)
    values = (n0, a, exact, sampler if sampler != exact else None)
    return dict(
        zip(
            COLUMNS,
            (
                label,
                model_title(label, spec.model).partition(", d =")[0],
                str(int(model.dimension)),
                str(spec.n or definition.n),
                *("" if value is None else f"{value:g}" for value in values),
            ),
            strict=True,
        )
    )


def write(study: Study, outputs: Sequence[Path]) -> None:
    """Write the table into every file of `outputs`, as CSV or LaTeX by the suffix.

    The LaTeX is a plain tabular without packages.

    Raises DpmcError for another suffix; nothing is written then.
    """
    from dpmc.storage import replacing

    makers = {".csv": _csv, ".tex": _tex}
    for output in outputs:
        kind_of_output(output)
    table = rows(study)
    for output in outputs:
        text = makers[output.suffix.lower()](table)
        with replacing(output) as temporary:
            Path(temporary).write_text(text, encoding="utf-8")


def kind_of_output(path: Path) -> Kind:
    """Return the kind of result that the table is in a file of this name.

    Raises DpmcError for a suffix other than .csv and .tex.
    """
    kinds = {".csv": csv_table(COLUMNS), ".tex": latex_table(HEAD)}
    if path.suffix.lower() not in kinds:
        raise DpmcError(f"{path}: a table's file name must end in one of .csv, .tex")
    return kinds[path.suffix.lower()]


def _csv(table: Sequence[dict[str, str]]) -> str:
    """Return the table as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    return text.getvalue()


def _tex(table: Sequence[dict[str, str]]) -> str:
    """Return the table as a LaTeX tabular."""
    lines = list(HEAD)
    for row in table:
        numbers = (row[column] for column in ("d", "n", "n0", "a", "sigma2_0"))
        cells = [_escaped(row["name"]), *(_number(number) for number in numbers)]
        lines.append(" & ".join(cells) + r" \\")
    return "\n".join([*lines, r"\hline", r"\end{tabular}", ""])


def _number(text: str) -> str:
    """Return a number in LaTeX, thousands apart, powers of ten written out; "--" for none."""
    if not text:
        return "--"
    digits, _, exponent = text.partition("e")
    if exponent:
        factor = "" if digits == "1" else rf"{digits} \cdot "
        return f"${factor}10^{{{int(exponent)}}}$"
    return f"{int(text):,}".replace(",", r"\,") if text.isdigit() else text


def _escaped(text: str) -> str:
    """Return text with LaTeX's special characters escaped."""
    return "".join("\\" + letter if letter in "&%$#_{}" else letter for letter in text)
