"""Check the numbers that a page quotes against the result files from which they come.

    python docs/tools/quotes.py docs/results/index.md [page ...] [--results results]

A hidden comment after numbers names their source:

    a median MMD of 0.23, 0.20 and 0.21<!--= metrics mmd tempered-banana-10d dp-hmc 4,5,6 -->

It names a table of `TABLES` and one value for each of the table's key columns; `4,5,6` means several
values, `*` all. Each combination is a cell, and its number is the median of the cell's rows. As many
numbers before the comment are compared, each to the digits that the page gives; in per cent if ` %`
follows them. `over=min`, `max`, `mean` or `median` reduces all numbers to one, `over=range` to two (min
and max), `over=count` to their count (the page may say "five"), `over=ratio` to the geometric mean of the
first half over that of the second. Further words: `column=`: other columns of the table, `a/b` one over
another; `below=`, `least=`: only numbers below, or of at least, this value; `size`: absolute values.
`<!--= text FILE -->` declares that the lines before it are those of a file, `<!-- results of STUDY -->`
to which study the following quotes belong. Quotes of a study without results are skipped and reported.
"""

import argparse
import functools
import itertools
import re
import shlex
import sys
from pathlib import Path
from statistics import fmean, geometric_mean, median
from typing import NamedTuple

import pandas as pd

from dpmc.common.errors import DpmcError
from dpmc.metrics.table import read_table as read_csv
from dpmc.reports.tables.budgets import BUDGET_COLUMNS
from dpmc.studies import load_study, pinned_hyperparameters, read_yaml

#: name -> file, key columns, column of the number
CELL = ("model", "method", "epsilon")
CLIPPING = ("metric", "dimension", "algorithm", "clip_distance", "clip_bound")
TABLES = {
    "metrics": ("metrics.csv", ("metric", *CELL), "value"),
    "budgets": ("budgets.csv", CELL, "iterations"),
    "published": ("published_comparison.csv", ("metric", *CELL), "z"),
    "clipping": ("clipping.csv", CLIPPING, "value"),
    "tight": ("table.csv", ("model", "algorithm", "epsilon"), "tight_mmd"),
    "tuned": ("tuned_table.csv", CELL, "tuned_mmd"),
    "searches": ("tuned.yaml", ("model", "method", "quantity"), "found"),
    "claims": ("claims.yaml", ("claim", "case"), "number"),
    "verdicts": ("claims.yaml", ("verdict",), "claims"),
}
STUDY = re.compile(r"<!-- results of (\S+) -->")
QUOTE = re.compile(r"<!--=\s(.*?)\s-->", re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
OPTION = re.compile(r"(over|column|below|least)=(.*)")
NUMBER = re.compile(r"(?<![\w.])[-−+]?\d[\d,]*(?:\.\d+)?")
COUNTS = "no one two three four five six seven eight nine ten eleven twelve".split()
COUNT = re.compile(rf"{NUMBER.pattern}|\b(?:{'|'.join(COUNTS)})\b", re.IGNORECASE)


class Finding(NamedTuple):
    """A quoted number or text that differs from the results, or (`skipped`) whose results are missing."""

    page: Path
    line: int
    words: str
    skipped: bool = False

    def __str__(self) -> str:
        return f"{self.page}: line {self.line}: {self.words}"


class Missing(DpmcError):
    """A study's results are missing."""


@functools.cache
def read_table(folder: Path, name: str) -> pd.DataFrame:
    """Return a table of a study's results, all columns text."""
    path = folder / TABLES[name][0]
    if name == "searches":  # of a run of `make tune`, else of the gallery, else those that studies use
        config = load_study(folder.name).path.parent.parent
        gallery = config.parent / "docs/gallery" / folder.name / "tuned.yaml"
        settings = config / "hyperparameters" / f"{folder.name}.tuned.yaml"
        path = next((file for file in (path, gallery, settings) if file.is_file()), path)
    if not path.is_file():
        raise Missing(f"{path} is not there")
    if name == "budgets":
        return _by_cell(read_csv(path, BUDGET_COLUMNS, "a table of budgets"))
    if path.suffix == ".csv":
        return pd.read_csv(path, dtype=str, keep_default_na=False)
    content = read_yaml(path)
    if name == "searches":
        return pd.DataFrame(_searches(folder.name, content, path.read_text(encoding="utf-8")))
    if name == "verdicts":
        return pd.DataFrame(content["verdicts"].items(), columns=["verdict", "claims"], dtype=str)
    cases = [(claim["name"], *case.values()) for claim in content["claims"] for case in claim["cases"]]
    table = pd.DataFrame(cases, columns=["claim", *content["claims"][0]["cases"][0]])
    return table.dropna(subset="number").astype(str)


def _by_cell(budgets: pd.DataFrame) -> pd.DataFrame:
    """Return a row per cell, with columns `allowed_<accountant>` and `epsilon_spent_<accountant>`."""
    cell, numbers = [*CELL, "iterations"], ["allowed", "epsilon_spent"]
    table = budgets.pivot(index=cell, columns="accountant", values=numbers)
    table.columns = table.columns.map("_".join)
    return table.reset_index()


def _searches(study: str, found: dict[str, dict[str, dict[str, object]]], text: str) -> list[dict[str, str]]:
    """Return the settings that searches found, beside the pinned ones.

    The median MMDs are in the comment that workflow/scripts/collect_tuned.py puts beside a setting.
    """
    cells = [(method, *cell) for method, models in found.items() for cell in models.items()]
    rows = []
    for (method, model, values), mmds in zip(cells, re.findall(r"}  # (\S+), ([^\s;]+)", text), strict=True):
        pinned = {**pinned_hyperparameters(load_study(study), model, method).values, "mmd": mmds[1]}
        for quantity, value in {**values, "mmd": mmds[0]}.items():
            both = {"found": str(value), "pinned": str(pinned.get(quantity, ""))}
            rows.append({"model": model, "method": method, "quantity": quantity, **both})
    return rows


def numbers_of(folder: Path, words: str) -> list[float]:
    """Return the numbers to which the words of a comment refer.

    Raises DpmcError for words that match nothing, and Missing if there are no results.
    """
    name, *rest = shlex.split(words)
    if name not in TABLES:
        raise DpmcError(f"{name}: no such table; known: text, {', '.join(TABLES)}")
    options = {found[1]: found[2] for word in rest if (found := OPTION.fullmatch(word))}
    keys = [word for word in rest if word != "size" and not OPTION.fullmatch(word)]
    _, columns, value = TABLES[name]
    if len(keys) != len(columns):
        raise DpmcError(f"{words}: {name} asks for {len(columns)} words: {', '.join(columns)}")
    table = read_table(folder, name)
    wanted = [column.split("/") for column in options.get("column", value).split(",")]
    if missing := [column for column in itertools.chain(*wanted) if column not in table]:
        raise DpmcError(f"no column {missing[0]}; there are {', '.join(table)}")

    choices = []  # of values of each key column
    for column, key in zip(columns, keys, strict=True):
        known = table[column].unique()
        choices.append(list(known) if key == "*" else [key] if key in known else key.split(","))
    for column, chosen in zip(columns, choices, strict=True):
        table = table[table[column].isin(chosen)]
    cells = dict(iter(table.groupby(list(columns))))
    values = []
    for cell in itertools.product(*choices):
        if cell in cells:
            for column in wanted:
                top, *bottom = (pd.to_numeric(cells[cell][part], errors="coerce").median() for part in column)
                values.append(float(top / bottom[0] if bottom else top))
        elif "*" not in keys:
            raise DpmcError(f"{' '.join(cell)}: no such row")
    values = [abs(number) for number in values] if "size" in rest else values
    low, high = float(options.get("least", "-inf")), float(options.get("below", "inf"))
    return _over(options.get("over", ""), [number for number in values if low <= number < high], words)


def _over(over: str, values: list[float], words: str) -> list[float]:
    """Reduce values as `over=` requires, or return all of them."""
    if over == "count":
        return [float(len(values))]
    if not values:
        raise DpmcError(f"{words}: no such number")
    if over == "ratio":
        middle, odd = divmod(len(values), 2)
        if odd:
            raise DpmcError(f"{words}: over=ratio asks for an even count of numbers, not {len(values)}")
        return [geometric_mean(values[:middle]) / geometric_mean(values[middle:])]
    ways = {"min": [min(values)], "max": [max(values)], "mean": [fmean(values)], "median": [median(values)]}
    ways |= {"range": [min(values), max(values)], "": values}
    if over not in ways:
        raise DpmcError(f"over={over}: known: count, ratio, {', '.join(filter(None, ways))}")
    return ways[over]


def agrees(written: str, number: float) -> bool:
    """Return whether a number agrees with the written one, to the digits written."""
    plain = written.replace(",", "").replace("−", "-").lower()
    plain = str(COUNTS.index(plain)) if plain in COUNTS else plain
    digits = len(plain.partition(".")[2])
    return abs(float(plain) - number) <= 0.5 * 10.0**-digits + 1e-9


def check_page(page: Path, results: Path) -> tuple[int, list[Finding]]:
    """Return how many numbers and texts of a page were checked, and the findings."""
    text, checked, findings = page.read_text(encoding="utf-8"), 0, []
    for quote in QUOTE.finditer(text):
        before, words = text[: quote.start()], " ".join(quote[1].split())
        place = (page, before.count("\n") + 1)
        studies = STUDY.findall(before)
        try:
            if not studies:
                raise DpmcError(f"{words}: no comment before it says of which study")
            count, wrong = _check(before, words, results / studies[-1])
            checked += count
            findings += [Finding(*place, line) for line in wrong]
        except DpmcError as error:
            findings.append(Finding(*place, str(error), skipped=isinstance(error, Missing)))
    return checked, findings


def _check(before: str, words: str, folder: Path) -> tuple[int, list[str]]:
    """Return how many numbers a comment refers to, and the errors found."""
    if words.startswith("text "):
        path = folder / words.removeprefix("text ")
        if not path.is_file():
            raise Missing(f"{path} is not there")
        same = before.rstrip().endswith(path.read_text(encoding="utf-8").strip())
        return 1, [] if same else [f"the lines before are not those of {path}"]
    numbers = numbers_of(folder, words)
    written = (COUNT if "over=count" in words else NUMBER).findall(COMMENT.sub(" ", before))[-len(numbers) :]
    if len(written) != len(numbers):
        return 0, [f"{words}: asks for {len(numbers)} numbers; fewer stand before it"]
    if re.match(r"\s*%", before.rpartition(written[-1])[2]):
        numbers = [100.0 * number for number in numbers]
    return len(numbers), [
        f"says {shown}, {folder.name} has {number:.6g} ({words})"
        for shown, number in zip(written, numbers, strict=True)
        if not agrees(shown, number)
    ]


def main() -> int:
    """Check pages; return 1 if something is wrong, else 0."""
    parser = argparse.ArgumentParser(description="Check the numbers that pages quote.")
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--results", type=Path, default=Path("results"))
    given = parser.parse_args()
    pages = [check_page(page, given.results) for page in given.pages]
    findings = [finding for _, found in pages for finding in found]
    skipped = [finding for finding in findings if finding.skipped]
    for words in dict.fromkeys(f"{finding.page}: {finding.words}" for finding in skipped):
        print(f"skipped: {words}")
    for finding in findings:
        if not finding.skipped:
            print(finding, file=sys.stderr)
    wrong = len(findings) - len(skipped)
    checked = sum(count for count, _ in pages)
    print(
        f"{checked} quoted numbers checked, {wrong} wrong; {len(skipped)} quotes skipped for want of results"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
