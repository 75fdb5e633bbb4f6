"""Check the numbers that a page quotes against the result files from which they come.

    python workflow/scripts/quotes.py docs/results/index.md [page ...] [--results results]

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
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dpmc.common.errors import DpmcError
from dpmc.studies.documents import read_yaml
from dpmc.studies.loading import load_study

if TYPE_CHECKING:
    from pandas import DataFrame, Series

#: name -> file, key columns, column of the number
TABLES = {
    "metrics": ("metrics.csv", ("metric", "model", "method", "epsilon"), "value"),
    "budgets": ("budgets.csv", ("model", "method", "epsilon"), "iterations"),
    "published": ("published_comparison.csv", ("metric", "model", "method", "epsilon"), "z"),
    "clipping": (
        "clipping.csv",
        ("metric", "dimension", "algorithm", "clip_distance", "clip_bound"),
        "value",
    ),
    "tight": ("table.csv", ("model", "algorithm", "epsilon"), "tight_mmd"),
    "tuned": ("tuned_table.csv", ("model", "method", "epsilon"), "tuned_mmd"),
    "searches": ("tuned.yaml", ("model", "method", "quantity"), "found"),
    "claims": ("claims.yaml", ("claim", "case"), "number"),
    "verdicts": ("claims.yaml", ("verdict",), "claims"),
}
STUDY = re.compile(r"<!-- results of (\S+) -->")
QUOTE = re.compile(r"<!--=\s(.*?)\s-->", re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])[-−+]?\d[\d,]*(?:\.\d+)?")
COUNTS = "no one two three four five six seven eight nine ten eleven twelve".split()
COUNT = re.compile(rf"{NUMBER.pattern}|\b(?:{'|'.join(COUNTS)})\b", re.IGNORECASE)
PERCENT = re.compile(r"\s*%")


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


@functools.lru_cache(maxsize=32)
def read_table(folder: Path, name: str) -> "DataFrame":
    """Return a table of a study's results, all columns text."""
    import pandas as pd

    if name == "searches":
        return pd.DataFrame(_searches(folder))
    path = folder / TABLES[name][0]
    if not path.is_file():
        raise Missing(f"{path} is not there")
    if path.suffix == ".csv":
        return pd.read_csv(path, dtype=str, keep_default_na=False)
    verdicts = read_yaml(path)
    if name == "verdicts":
        return pd.DataFrame([{"verdict": key, "claims": str(n)} for key, n in verdicts["verdicts"].items()])
    return pd.DataFrame(
        {"claim": claim["name"], **{key: str(value) for key, value in case.items()}}
        for claim in verdicts["claims"]
        for case in claim["cases"]
        if case["number"] is not None
    )


def _searches(folder: Path) -> list[dict[str, str]]:
    """Return settings and MMDs that searches of a study found, beside the pinned ones.

    They are those of this run of `make tune`, else those in config/hyperparameters. In both files, written by
    workflow/scripts/collect_tuned.py, the MMDs are in the comment beside a setting: found, then pinned.
    """
    study = load_study(folder.name)
    committed = study.path.parent.parent / "hyperparameters" / f"{folder.name}.tuned.yaml"
    paths = [path for path in (folder / TABLES["searches"][0], committed) if path.is_file()]
    if not paths:
        raise Missing(f"{folder / TABLES['searches'][0]} is not there")
    cells = [(method, *cell) for method, found in read_yaml(paths[0]).items() for cell in found.items()]
    medians = re.findall(r"}  # (\S+), ([^\s;]+)", paths[0].read_text(encoding="utf-8"))
    rows = []
    for (method, model, found), (mmd, mmd_before) in zip(cells, medians, strict=True):
        pinned = {**study.pinned_hyperparameters(model, method)[0], "mmd": mmd_before}
        for quantity, value in {**found, "mmd": mmd}.items():
            values = {"found": str(value), "pinned": str(pinned.get(quantity, ""))}
            rows.append({"model": model, "method": method, "quantity": quantity, **values})
    return rows


def numbers_of(folder: Path, words: str) -> list[float]:
    """Return the numbers to which the words of a comment refer.

    Raises DpmcError for words that match nothing, and Missing if there are no results.
    """
    name, *rest = re.findall(r'(?:"[^"]*"|[^\s"])+', words)
    if name not in TABLES:
        raise DpmcError(f"{name}: no such table; known: text, {', '.join(TABLES)}")
    options = dict(word.split("=", 1) for word in rest if re.match(r"(over|column|below|least)=", word))
    keys = [word.strip('"') for word in rest if word != "size" and word.split("=")[0] not in options]
    _, columns, value = TABLES[name]
    if len(keys) != len(columns):
        raise DpmcError(f"{words}: {name} asks for {len(columns)} words: {', '.join(columns)}")
    wanted = options.get("column", value).split(",")
    values = list(_cells(folder, name, keys, wanted))
    if "size" in rest:
        values = [abs(one) for one in values]
    low, high = float(options.get("least", "-inf")), float(options.get("below", "inf"))
    return _over(options.get("over", ""), [one for one in values if low <= one < high], words)


def _cells(folder: Path, name: str, keys: list[str], wanted: list[str]) -> Iterator[float]:
    """Yield the numbers of every cell, in the order of the keys, column by column."""
    table, places = read_table(folder, name), _places(folder, name)
    if missing := [one for column in wanted for one in column.split("/") if one not in table.columns]:
        raise DpmcError(f"no column {missing[0]}; there are {', '.join(table.columns)}")
    columns = TABLES[name][1]
    for cell in itertools.product(*(_choices(table[c], key) for c, key in zip(columns, keys, strict=True))):
        if cell in places:
            for column in wanted:
                top, *bottom = (_number_of(table[one].to_numpy()[places[cell]]) for one in column.split("/"))
                yield top / bottom[0] if bottom else top
        elif "*" not in keys:
            raise DpmcError(f"{' '.join(cell)}: no such row")


@functools.lru_cache(maxsize=32)
def _places(folder: Path, name: str) -> dict[tuple[str, ...], list[int]]:
    """Map each cell to the indices of its rows in a table."""
    table = read_table(folder, name)
    places: dict[tuple[str, ...], list[int]] = {}
    for place, cell in enumerate(zip(*(table[column] for column in TABLES[name][1]), strict=True)):
        places.setdefault(cell, []).append(place)
    return places


def _choices(column: "Series[str]", key: str) -> list[str]:
    """Return the values of a column that a key selects."""
    if key == "*":
        return list(dict.fromkeys(column))
    return [key] if key in set(column) else key.split(",")


def _number_of(texts: Iterable[str]) -> float:
    """Return the median of a cell's rows; NaN for none."""
    from statistics import median

    values = [float(one) for one in texts if one not in ("", "none")]
    return median(values) if values else float("nan")


def _over(over: str, values: list[float], words: str) -> list[float]:
    """Reduce values as `over=` requires, or return all of them."""
    from statistics import fmean, geometric_mean, median

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


def quoted(before: str, count: int, pattern: re.Pattern[str]) -> list[str]:
    """Return the last `count` numbers of the text before a comment, as written; [] for fewer."""
    found = pattern.findall(COMMENT.sub(" ", before))
    return found[-count:] if len(found) >= count else []


def agrees(written: str, number: float, percent: bool) -> bool:
    """Return whether a number agrees with the written one, to the digits written."""
    plain = written.replace(",", "").replace("−", "-").lower()
    plain = str(COUNTS.index(plain)) if plain in COUNTS else plain
    digits = len(plain.partition(".")[2])
    return abs(float(plain) - number * (100.0 if percent else 1.0)) <= 0.5 * 10.0**-digits + 1e-9


def check_page(page: Path, results: Path) -> tuple[int, list[Finding]]:
    """Return how many numbers and texts of a page were checked, and the findings."""
    text, checked, findings = page.read_text(encoding="utf-8"), 0, []
    for quote in QUOTE.finditer(text):
        line, words = text.count("\n", 0, quote.start()) + 1, " ".join(quote[1].split())
        studies = STUDY.findall(text, 0, quote.start())
        try:
            if not studies:
                raise DpmcError(f"{words}: no comment before it says of which study")
            count, wrong = _check(text[: quote.start()], words, results / studies[-1])
            checked += count
            findings += [Finding(page, line, one) for one in wrong]
        except Missing as missing:
            findings.append(Finding(page, line, str(missing), skipped=True))
        except DpmcError as error:
            findings.append(Finding(page, line, str(error)))
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
    written = quoted(before, len(numbers), COUNT if "over=count" in words else NUMBER)
    if len(written) != len(numbers):
        return 0, [f"{words}: asks for {len(numbers)} numbers; fewer stand before it"]
    last = before.rpartition(written[-1])[2]
    percent = PERCENT.match(last) is not None
    return len(numbers), [
        f"says {shown}, {folder.name} has {number * (100 if percent else 1):.6g} ({words})"
        for shown, number in zip(written, numbers, strict=True)
        if not agrees(shown, number, percent)
    ]


def main() -> int:
    """Check pages; return 1 if something is wrong, else 0."""
    parser = argparse.ArgumentParser(description="Check the numbers that pages quote.")
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--results", type=Path, default=Path("results"))
    given = parser.parse_args()
    checked = 0
    findings: list[Finding] = []
    for page in given.pages:
        count, found = check_page(page, given.results)
        checked, findings = checked + count, findings + found
    skipped = [one for one in findings if one.skipped]
    for words in dict.fromkeys(f"{one.page}: {one.words}" for one in skipped):
        print(f"skipped: {words}")
    for one in findings:
        if not one.skipped:
            print(one, file=sys.stderr)
    wrong = len(findings) - len(skipped)
    print(
        f"{checked} quoted numbers checked, {wrong} wrong; {len(skipped)} quotes skipped for want of results"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
