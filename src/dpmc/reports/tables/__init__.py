"""Tables of a study: each as tidy CSV; those that people read whole also as Markdown."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmc import studies
from dpmc.common.errors import DpmcError
from dpmc.common.files import check_endings, replacing
from dpmc.common.values import shown
from dpmc.metrics.table import read_metrics, read_table
from dpmc.models import definition
from dpmc.reports.plots.selection import private_models
from dpmc.reports.tables.budgets import BUDGET_COLUMNS, shape_of
from dpmc.studies import Study, read_yaml
from dpmc.studies.whole import own_rows

if TYPE_CHECKING:  # pandas takes half a second
    from pandas import DataFrame

Rows = Iterable[tuple[Any, ...]]

#: name of a table -> its `title`, `columns`, `note` (their meaning, and how they were measured), the `source`
#: among the study's results that it reads, and `headings`, if people read it whole
LAYOUTS: dict[str, dict[str, Any]] = read_yaml(Path(__file__).with_name("tables.yaml"))
#: table -> how its files may end
SUFFIXES = {name: [".csv", ".md"] if "headings" in about else [".csv"] for name, about in LAYOUTS.items()}


def _models(study: Study, results: Path) -> Rows:
    """Yield texts for each model with a budget; "" if a model has no such number.

    `sigma2_0` is the prior variance of the exact posterior, `sampler_sigma2_0` that of the samplers if it
    differs. Models of the clipping experiment are left out.
    """
    from dpmc.reports.plots.style import model_title

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
        yield label, title, str(int(model.dimension)), str(spec.n or known.n), *texts


def _hyperparameters(study: Study, results: Path) -> Rows:
    """Yield texts for each hyperparameter, of the tuning file if there is one, else pinned."""
    for model, method in study.pairs():
        for epsilon, values in _by_epsilon(study, results, model, method).items():
            for name, value in values.items():
                yield model, method, epsilon, name, value


def _by_epsilon(study: Study, results: Path, model: str, method: str) -> dict[str, dict[str, str]]:
    """Return the hyperparameters of a method on a model, by ε; by "" if they are equal at all ε."""
    path = results / study.name / "tuning" / model / f"{method}.yaml"
    if study.is_tried(model, method) and path.is_file():
        given = studies.SourcedValues(read_yaml(path).get("hyperparameters"), str(path))
        if not given.values:
            raise DpmcError(f"{path}: key 'hyperparameters' is missing")
    else:
        given = studies.pinned_hyperparameters(study, model, method)
    (n, dimension), by_epsilon = shape_of(study, model), dict[str, dict[str, str]]()
    for epsilon in study.epsilons(model, method):
        texts = studies.calibrated_values(study, method, given.values, epsilon, n)
        by_epsilon[epsilon] = {name: _value(value) for name, value in texts.items()}
        algorithm = studies.build_algorithm(study, method, given, dimension, epsilon, n)
        for query in itertools.chain(*algorithm.queries(n)):
            for key, words in (("noise_multiplier", ""), ("batch_noise_multiplier", ", batch")):
                if multiplier := getattr(query, key, None):
                    name = f"noise multiplier of {query.name}{words}"
                    by_epsilon[epsilon][name] = f"{multiplier:.4g}"
    first, *others = by_epsilon.values()
    # If ε sets the noise, values at a single ε hold only there.
    decided_by_epsilon = study.epsilon_kind != "total" and not others and "inf" not in by_epsilon
    if all(other == first for other in others) and not decided_by_epsilon:
        by_epsilon = {"": first}
    return by_epsilon


def _value(value: Any) -> str:
    """Format a hyperparameter's value; equal neighbours in a vector once, with their number."""
    if isinstance(value, list):
        counts = [(_value(number), len(list(group))) for number, group in itertools.groupby(value)]
        return ", ".join(text if count == 1 else f"{count} × {text}" for text, count in counts)
    if isinstance(value, float | int) and not isinstance(value, bool):
        return f"{value:.6g}"
    return value if isinstance(value, str) else shown(value)


def _iterations(study: Study, results: Path) -> Rows:
    """Yield texts for each cell and accountant that bounds its queries."""
    budgets = read_table(results / study.name / "budgets.csv", BUDGET_COLUMNS, "a table of budgets")
    for row in budgets.to_dict("records"):
        if row["model"] in study.models and row["method"] in study.methods:
            run = row["iterations"] if row["chosen"] else ""
            name, most = (row["accountant"], row["allowed"]) if row["allowed"] != "inf" else ("", "")
            if name or run:  # without a budget: one row, of no accountant
                yield row["model"], row["method"], name, row["epsilon"], most, run


def _run_times(study: Study, results: Path) -> Rows:
    """Yield a row for each method on a model with measured jobs, in `logs` beside `results`."""
    from dpmc.reports.plots.costs import job_times, methods_of_job

    metrics = own_rows(read_metrics(results / study.name / "metrics.csv"), study)
    iterations = metrics[metrics["metric"] == "iterations"]
    sizes = iterations.groupby(["model", "method"])["value"].agg(["size", "sum"])
    measured = job_times(study, results)
    for (model, job), jobs in measured.groupby(["model", "job"], sort=False):
        methods = methods_of_job(study, model, job, {*measured.loc[measured["model"] == model, "job"]})
        chains, total = sizes[sizes.index.isin([(model, method) for method in methods])].sum().astype(int)
        wall, cpu = (round(float(jobs[name].sum()), 1) for name in ("wall_seconds", "cpu_seconds"))
        yield model, job, len(jobs), chains, total, wall, cpu, round(jobs["peak_mib"].max())


def _repeated(study: Study, results: Path) -> Rows:
    """Yield texts for each cell of repeated runs: means of coverage and scores, else medians."""
    metrics = read_metrics(results / study.name / "repeated.csv")
    for cell, rows in metrics.groupby(["model", "method", "epsilon"], sort=False):
        values = {name: group["value"] for name, group in rows.groupby("metric")}
        numbers = []
        for name in LAYOUTS["repeated"]["columns"][5:]:
            how = "mean" if name.startswith(("coverage", "log_score")) else "median"
            digits = ".0f" if name == "iterations" else ".3g"
            numbers.append(f"{values[name].agg(how):{digits}}" if name in values else "")
        yield *cell, str(rows["seed"].nunique()), str(len(values.get("error_true", ()))), *numbers


CASE_COLUMNS = ("case", "version", "number", "error", "asked", "holds")


def _claims(study: Study, results: Path) -> Iterator[tuple[str, ...]]:
    """Yield texts for each case of each claim; raise DpmcError for missing verdicts."""
    for claim in read_yaml(results / study.name / "claims.yaml")["claims"]:
        about = [str(claim[key]) for key in ("name", *LAYOUTS["claims"]["columns"][1:5])]
        # A claim that cannot be decided here has no case, and one row.
        for case in claim["cases"] or [dict.fromkeys(CASE_COLUMNS)]:
            yield *about, *(_number(case[name]) for name in CASE_COLUMNS)


def _readable_claims(study: Study, results: Path) -> tuple[str, DataFrame]:
    """Return the note with counts of verdicts, and texts for each claim."""
    import pandas as pd

    verdicts, rows = read_yaml(results / study.name / "claims.yaml"), []
    for claim in verdicts["claims"]:
        cases = [case for case in claim["cases"] if case["version"] == claim["version"]]
        own = pd.DataFrame([case for case in cases if case["number"] is not None])
        split, numbers = "", ""
        if len(own):
            split = "/".join(str(sum(one is holds for one in own["holds"])) for holds in (True, False, None))
            # Equal ends of the range are written once.
            numbers = " to ".join(dict.fromkeys(map(_number, (own["number"].min(), own["number"].max()))))
            numbers += f" (±{own['error'].max():.2g})" if own["error"].any() else ""
        others = "; ".join(f"{of}: {_short(found)}" for of, found in claim["versions"].items())
        verdict = _short(claim["verdict"]) + (f" ({others})" if others else "")
        rows.append((str(claim["section"]), claim["claim"], verdict, split, numbers, claim["test"]))
    found = [(number, verdict) for verdict, number in verdicts["verdicts"].items() if number]
    # "8 fail", but "8 cannot be told at this number of runs"
    counts = (f"{number} {word if ' ' in word else word.removesuffix('s')}" for number, word in found)
    chances = [claim["luck"] for claim in verdicts["claims"] if claim["luck"] is not None]
    note = LAYOUTS["claims"]["note"].format(
        source=verdicts["source"], counts=", ".join(counts), all=len(chances), expected=sum(chances)
    )
    return note, pd.DataFrame(rows, columns=LAYOUTS["claims"]["headings"])


def _short(verdict: str) -> str:
    """Return a verdict in few words."""
    return verdict.partition(" at this")[0]


def _number(value: str | float | bool | None) -> str:
    """Return the text of an entry of a case."""
    if value is None or isinstance(value, str):
        return value or ""
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"


#: table -> the function that yields the rows of its CSV file
ROWS_OF_TABLE: dict[str, Callable[[Study, Path], Rows]] = {
    "models": _models,
    "hyperparameters": _hyperparameters,
    "iterations": _iterations,
    "run-times": _run_times,
    "repeated": _repeated,
    "claims": _claims,
}


def make_table(name: str, study: Study, results: Path) -> DataFrame:
    """Return a table as in its CSV file; `results` is the folder of the results of all studies."""
    import pandas as pd

    return pd.DataFrame([*ROWS_OF_TABLE[name](study, results)], columns=LAYOUTS[name]["columns"])


def readable_table(name: str, study: Study, results: Path) -> tuple[str, DataFrame]:
    """Return the note on a table, and the table as people read it."""
    if name == "claims":
        return _readable_claims(study, results)
    made = make_table(name, study, results)
    headings = LAYOUTS[name].get("headings") or {column: column for column in made}
    return LAYOUTS[name]["note"], made[[*headings]].rename(columns=headings)


def table_files(name: str, study: Study, results: Path) -> list[Path]:
    """Return the files that a table needs; what is in `logs` is read if it is there."""
    folder, source = results / study.name, LAYOUTS[name].get("source")
    if name == "hyperparameters":
        tried = [pair for pair in study.pairs() if study.is_tried(*pair)]
        return [folder / "tuning" / model / f"{method}.yaml" for model, method in tried]
    return [folder / source] if source else []


def save_table(name: str, study: Study, outputs: Sequence[Path], results: Path = Path("results")) -> None:
    """Write a table into all `outputs`, .csv or .md, or none; raise DpmcError if results are missing."""
    check_endings(outputs, SUFFIXES[name], f"the table {name}")
    texts = {}
    for output in outputs:
        if output.suffix.lower() == ".md":
            note, made = readable_table(name, study, results)
            texts[output] = f"# {LAYOUTS[name]['title']}\n\n{note}\n\n{markdown(made)}\n"
        else:
            texts[output] = make_table(name, study, results).to_csv(index=False, lineterminator="\n")
    for output, text in texts.items():
        with replacing(output) as temporary:
            Path(temporary).write_text(text, encoding="utf-8")


def markdown(made: DataFrame) -> str:
    """Return a table of texts as Markdown: numbers at the right of their columns, "–" for empty entries."""
    import pandas as pd

    numbers = [pd.to_numeric(made[name][made[name] != ""], errors="coerce").notna().all() for name in made]
    marks = ["---:" if are_numbers else "---" for are_numbers in numbers]
    lines = [list(made), marks, *made.to_numpy().tolist()]
    cells = [[text.replace("|", r"\|") or "–" for text in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)
