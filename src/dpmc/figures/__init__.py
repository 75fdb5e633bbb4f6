"""Figures: one module a figure, found here by name; Matplotlib is imported only when one is drawn.

A figure module has `NAME`, `CAPTION` (what the reader sees and can learn from it) and
`draw(metrics, study, published) -> matplotlib.figure.Figure`, where `metrics` is the study's tidy
table (study, model, method, epsilon, seed, metric, value), `study` its definition and `published`
the folder of the published results.
A figure that shows chains also has `needs(study)`, the cells (model, method, epsilon) whose chains it
reads, and its `draw` takes a fourth argument, the folder of all studies' results. So does one that reads
tables beside the metrics: `files(study, results)` are their paths. `applies(study)`, if a module has it, says
whether the study, as far as its data are to be had, has anything to show.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from dpmc import stamp
from dpmc.errors import DpmcError
from dpmc.outputs import FIGURE, Kind
from dpmc.randomness import canonical_epsilon
from dpmc.values import decimal, shown

#: name of a figure -> its module
FIGURES: dict[str, str] = {
    "mmd-easy": "dpmc.figures.mmd_easy",
    "clipping-easy": "dpmc.figures.clipping_easy",
    "circle": "dpmc.figures.circle",
    "mmd-hard": "dpmc.figures.mmd_hard",
    "clipping-hard": "dpmc.figures.clipping_hard",
    "acceptance": "dpmc.figures.acceptance",
    "gradient-clipping": "dpmc.figures.gradient_clipping",
    "clipping-effect": "dpmc.figures.clipping_effect",
    "accounting": "dpmc.figures.accounting",
    "posteriors": "dpmc.figures.posteriors",
    "trajectory": "dpmc.figures.trajectory",
    "comparison": "dpmc.figures.comparison",
    "paper-posteriors": "dpmc.figures.paper_posteriors",
    "paper-clipping": "dpmc.figures.paper_clipping",
    "paper-errata": "dpmc.figures.paper_errata",
    "tight-iterations": "dpmc.figures.tight_iterations",
    "tight-spent": "dpmc.figures.tight_spent",
    "tight-mmd": "dpmc.figures.tight_mmd",
    "tight-mmd-spent": "dpmc.figures.tight_mmd_spent",
    "tuned": "dpmc.figures.tuned",
    "tuned-easy": "dpmc.figures.tuned_easy",
    "tuned-hard": "dpmc.figures.tuned_hard",
    "mixture": "dpmc.figures.fast_mixture",
    "density": "dpmc.figures.fast_density",
    "logistic": "dpmc.figures.fast_logistic",
    "variants": "dpmc.figures.fast_variants",
    "equal-budget": "dpmc.figures.fast_equal_budget",
}

#: metrics whose value is a text
TEXT_METRICS = ("status", "variant")

COLUMNS = ("study", "model", "method", "epsilon", "seed", "metric", "value")
FORMATS = ("pdf", "png", "svg")


def load(name: str) -> ModuleType:
    """Return the module of a figure.

    Raises DpmcError for a name that is not in `FIGURES`.
    """
    if name not in FIGURES:
        raise DpmcError(f"figure: {name!r} is unknown, must be one of {', '.join(FIGURES)}")
    return importlib.import_module(FIGURES[name])


def applies(name: str, study: Any) -> bool:
    """Return whether a study, whose models with missing data are left out, can have a figure.

    Raises DpmcError for an unknown figure.
    """
    module = load(name)
    return bool(module.applies(study)) if hasattr(module, "applies") else True


def chain_files(name: str, study: Any, results: Path) -> list[Path]:
    """Return the chain files and tables, beside the metrics, that a figure reads; none for most figures.

    `results` is the folder of all studies' results. Raises DpmcError for an unknown figure, or a study that
    cannot have it.
    """
    from dpmc.figures.chains import files_of

    module = load(name)
    cells = module.needs(study) if hasattr(module, "needs") else []
    tables = module.files(study, results) if hasattr(module, "files") else []
    return [*tables, *(file for cell in cells for file in files_of(results, study, cell))]


def inputs(name: str, study: Any, metrics: Path, published: Path, results: Path) -> list[Path]:
    """Return the files that a figure is drawn from: metrics, published tables, `chain_files`."""
    return [metrics, *published.glob("*.csv"), *chain_files(name, study, results)]


def kind_of_output(name: str, path: Path) -> Kind:
    """Return the kind of result that a figure is in a file of this name.

    Raises DpmcError for an unknown figure, and for a suffix that it is not written by.
    """
    load(name)
    if path.suffix[1:].lower() not in FORMATS:
        endings = ", ".join(f".{ending}" for ending in FORMATS)
        raise DpmcError(f"{path}: a figure's file name must end in one of {endings}")
    return FIGURE


def plot(
    name: str,
    study: Any,
    metrics: Path,
    published: Path,
    outputs: Sequence[Path],
    results: Path = Path("results"),
) -> None:
    """Draw one figure of a study from its metrics file into every file of `outputs`.

    The same metrics, and chains in the folder `results` for a figure that shows them, give the same bytes.
    Raises DpmcError for an unknown figure, a metrics file that cannot be read as one, a chain file that is
    missing, or an output whose suffix is none of .pdf, .png, .svg; nothing is written then.
    """
    module = load(name)
    for output in outputs:
        kind_of_output(name, output)
    table = read_metrics(metrics)
    mark = stamp.digest(inputs(name, study, metrics, published, results))
    from dpmc.figures import style

    chains = (results,) if hasattr(module, "needs") or hasattr(module, "files") else ()
    figure = module.draw(table, study, published, *chains)
    for output in outputs:
        style.save(figure, output, mark)


def read_metrics(path: Path) -> Any:
    """Return a metrics file as a data frame of text, nothing turned into NaN.

    Raises DpmcError for a file that is missing, empty or has other columns.
    """
    import pandas as pd

    if not path.is_file():
        raise DpmcError(f"{path}: no such file")
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (ValueError, pd.errors.ParserError) as error:
        raise DpmcError(f"{path}: not a CSV table of metrics ({error})") from None
    check_columns(table, COLUMNS, path)
    check_numbers(table, "value", path, ~table["metric"].isin(TEXT_METRICS))
    for place, epsilon in enumerate(table["epsilon"]):
        if epsilon and not _is_epsilon(epsilon):
            raise DpmcError(f"{path}: row {place + 1}: epsilon: {shown(epsilon)} is not a number > 0, or inf")
    return table


def check_columns(table: Any, columns: Iterable[str], path: Path) -> None:
    """Raise DpmcError for a column that a table read from `path` lacks, and for rows with too many."""
    columns = tuple(columns)
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise DpmcError(f"{path}: column {missing[0]!r} is missing; needed: {', '.join(columns)}")
    if table.index.nlevels > 1 or table.index.dtype.kind != "i":  # what is too much becomes an index
        raise DpmcError(f"{path}: rows have more columns than the first line")


def check_numbers(table: Any, column: str, path: Path, chosen: Any = slice(None)) -> None:
    """Raise DpmcError for a value of a column, in the chosen rows, that is not a number."""
    for place, text in table[column][chosen].items():
        metric = str(table["metric"][place]) if "metric" in table.columns else column
        try:
            finite = math.isfinite(decimal(str(text))) or metric.startswith("epsilon")  # inf: no guarantee
        except ValueError:
            finite = False
        if not finite:
            raise DpmcError(
                f"{path}: row {place + 1}: {column}: {metric}: {shown(str(text))} is not a number"
            )


@functools.lru_cache(maxsize=1024)  # a table has few, and tens of thousands of rows
def _is_epsilon(text: str) -> bool:
    try:
        canonical_epsilon(text)
    except DpmcError:
        return False
    return True
