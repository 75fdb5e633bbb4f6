"""Tables as CSV, Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?")
LONG = 60  # letters: longer texts are broken into lines in LaTeX
HEADS = {"d": "$d$", "n": "$n$", "a": "$a$", "n₀": "$n_0$", "σ₀²": r"$\sigma_0^2$"}  # in LaTeX
LETTERS = {
    **{letter: "\\" + letter for letter in "&%$#_{}"},
    **{"ε": r"$\varepsilon$", "τ": r"$\tau$", "×": r"$\times$", "–": "--", "\\": r"\textbackslash{}"},
}


@dataclass(frozen=True)
class Part:
    """Headings and rows of texts under one title, for readers; "" is an empty entry."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Table:
    """A table: tidy rows for the CSV file, parts for readers.

    `columns`: of the CSV; `rows`: by column; `note`: the table's meaning and how it was measured.
    """

    title: str
    note: str
    columns: Sequence[str]
    rows: Sequence[Mapping[str, str]]
    parts: Sequence[Part]


def csv_text(table: Table) -> str:
    """Return the tidy rows as CSV."""
    import pandas as pd

    rows = pd.DataFrame(list(table.rows), columns=[*table.columns])
    return str(rows.to_csv(index=False, lineterminator="\n"))


def markdown_text(table: Table) -> str:
    """Return the parts as Markdown."""
    lines = [f"# {table.title}", "", table.note]
    for part in table.parts:
        lines += ["", *([f"## {part.title}", ""] if part.title else []), *markdown(part.heads, part.rows)]
    return "\n".join([*lines, ""])


def latex_text(table: Table) -> str:
    """Return the parts as tabulars of the package booktabs, one below the other."""
    lines = [f"% {line}" for line in (table.title, *table.note.splitlines())]
    for part in table.parts:
        lines += ["", *([f"% {part.title}"] if part.title else []), *latex(part.heads, part.rows)]
    return "\n".join([*lines, ""])


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    marks = ["---:" if right else "---" for right in _are_numbers(heads, rows)]
    for cells in (heads, marks, *rows):
        yield "| " + " | ".join(cell.replace("|", r"\|") or "–" for cell in cells) + " |"


def latex(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a LaTeX tabular that needs the package booktabs."""
    longest = [max(map(len, cells)) for cells in zip(heads, *rows, strict=True)]
    texts = sum(length > LONG for length in longest)
    columns = "".join(
        "r" if right else f"p{{{0.6 / texts:.2g}\\textwidth}}" if length > LONG else "l"
        for right, length in zip(_are_numbers(heads, rows), longest, strict=True)
    )
    yield rf"\begin{{tabular}}{{{columns}}}"
    yield r"\toprule"
    yield " & ".join(HEADS.get(head) or latex_cell(head) for head in heads) + r" \\"
    yield r"\midrule"
    yield from (" & ".join(map(latex_cell, row)) + r" \\" for row in rows)
    yield r"\bottomrule"
    yield r"\end{tabular}"


def latex_cell(text: str) -> str:
    """Return a text in LaTeX; numbers with thousands separators and powers of ten; "--" for ""."""
    if not text:
        return "--"
    if not NUMBER.fullmatch(text):
        return "".join(LETTERS.get(letter, letter) for letter in text)
    digits, _, exponent = text.partition("e")
    if exponent:
        factor = "" if digits == "1" else rf"{digits} \cdot "
        return f"${factor}10^{{{int(exponent)}}}$"
    return f"{int(text):,}".replace(",", r"\,") if text.isdigit() else text


def _are_numbers(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[bool]:
    """Return whether all non-empty entries of each column are numbers, which are right-aligned."""
    columns = [[row[k] for row in rows if row[k]] for k in range(len(heads))]
    return [bool(entries) and all(map(NUMBER.fullmatch, entries)) for entries in columns]
