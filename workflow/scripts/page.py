"""Write a self-contained page of a study: figures with captions, tables, comparison with published results.

    python workflow/scripts/page.py <study> page.html <figure>.png ... [published_comparison.csv]

Tables are those listed in the study; their numbers are read from the folder results.
"""

import base64
import html
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from dpmc.common.shipped import shipped
from dpmc.common.version import __version__
from dpmc.reports import plots, tables
from dpmc.reports.plots.style import method_styles, metric_title, model_title
from dpmc.studies import Study, load_study
from dpmc.studies.figures import declared_figure

LIMIT = 3.0  # standard errors within which medians are said to agree
LONG = 50  # rows; a table with more is folded
STYLE = """
:root { color-scheme: light dark; --ink: #222; --pale: #444; --paper: #fff; }
@media (prefers-color-scheme: dark) { :root { --ink: #ddd; --pale: #bbb; --paper: #181818; }
  a { color: #8bf; } }
body { font: 16px/1.5 sans-serif; color: var(--ink); background: var(--paper); overflow-wrap: anywhere;
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 3rem; border-top: 1px solid #888; padding-top: 1rem; }
figure { margin: 1rem 0; } img { max-width: 100%; height: auto; background: #fff; cursor: zoom-in; }
label input { position: absolute; opacity: 0; } input:focus-visible + img { outline: 3px solid #48f; }
input:checked + img { position: fixed; inset: 0; z-index: 1; width: 100%; height: 100%; object-fit: contain;
  cursor: zoom-out; }
figcaption, .note { color: var(--pale); font-size: 0.9rem; }
.wide { overflow-x: auto; overflow-wrap: normal; }
table { border-collapse: collapse; font-size: 0.85rem; margin: 0.5rem 0 1rem; }
th, td { padding: 0.15rem 0.6rem; text-align: left; } thead tr { border-bottom: 1px solid var(--ink); }
summary { cursor: pointer; }
"""


Section = tuple[str, str, str]  # its anchor for the list of contents, title and HTML


def figure_section(picture: Path, study: Study) -> Section:
    """Return a figure with its caption, and the longer text to unfold."""
    declared, caption = declared_figure(study.path, picture.stem), plots.caption(picture.stem, study)
    title = declared.title or picture.stem.replace("-", " ")
    data = base64.b64encode(picture.read_bytes()).decode()
    words = html.escape(f"{title}: {caption.partition('. ')[0]}")  # for those who do not see it
    enlarge = (
        f'<input type="checkbox" aria-label="enlarge {html.escape(title)}">'  # by click or space, no script
    )
    image = f'<label>{enlarge}<img alt="{words}" src="data:image/png;base64,{data}"></label>'
    files = f'<a href="{picture.stem}.pdf">{picture.stem}.pdf</a>'
    below = f"<figcaption>{html.escape(caption)} {files}</figcaption>"
    if declared.text:
        below += f'<details class="note"><summary>more</summary>{html.escape(declared.text)}</details>'
    return (picture.stem, title, f"<figure>{image}{below}</figure>")


def table_section(name: str, study: Study) -> Section:
    """Return a table of the study with its note, as people read it if it has such a form."""
    title, (note, table) = (
        tables.LAYOUTS[name]["title"],
        tables.readable_table(name, study, Path("results")),
    )
    above = f'<p class="note">{html.escape(note)} <a href="{name}.csv">{name}.csv</a></p>'
    return (name, title, above + html_table(table, f"{len(table)} rows" if len(table) > LONG else ""))


def comparison_section(table: pd.DataFrame, study: Study) -> Section:
    """Return the comparison of medians with the published ones: numbers that agree, then all by metric."""
    titles = {method: style.title for method, style in method_styles(dict(study.methods)).items()}
    agree = table["z"].abs() <= LIMIT
    groups = table.assign(agree=agree, square=table["z"] ** 2).groupby("metric", sort=False)
    counts = groups.agg({"z": "size", "agree": "sum", "square": "mean"}).reset_index()
    counts["metric"], counts["square"] = counts["metric"].map(metric_title), counts["square"] ** 0.5
    counts.columns = [
        *("metric", "published boxes", f"within {LIMIT:g} standard errors", "root mean square of z"),
    ]
    runs = table["chains"].min()
    few = f"<p>With {runs} runs of a cell this tests the pipeline, not the results.</p>" if runs < 10 else ""
    body = (
        few + f"<p>{agree.sum()} of {len(table)} medians agree within {LIMIT:g} standard errors.</p>"
        "<p>z: our median less the published one, over the error of this difference. Of independent normal z "
        "one in 370 is beyond 3; with few runs z is rougher.</p>"
    ) + html_table(counts)
    # The largest differences first, as a reader looks for what does not agree.
    cells = table.sort_values("z", key=abs, ascending=False).drop(columns="chains")
    cells["model"] = [model_title(model, study.models[model].model) for model in cells["model"]]
    cells["method"] = cells["method"].map(titles)
    for metric, part in cells.groupby("metric", sort=False):
        body += html_table(part.drop(columns="metric"), f"{metric_title(str(metric))}, all cells")
    return ("published", "Medians over chains against the published ones", body)


def html_table(table: pd.DataFrame, folded: str = "") -> str:
    """Return a table that scrolls by itself, to unfold under the words `folded` if there are any."""
    with pd.option_context("display.max_colwidth", None):  # pandas cuts long texts otherwise
        shown = table.to_html(index=False, border=0, float_format="{:.4g}".format)
    wide = f'<div class="wide">{shown}</div>'
    return f"<details><summary>{html.escape(folded)}</summary>{wide}</details>" if folded else wide


def page(study: Study, sections: Sequence[Section]) -> str:
    """Return the whole page as HTML."""
    titled = [(anchor, html.escape(title), body) for anchor, title, body in sections]
    contents = "".join(f'<li><a href="#{anchor}">{title}</a></li>\n' for anchor, title, _ in titled)
    body = "\n".join(f'<h2 id="{anchor}">{title}</h2>\n{body}' for anchor, title, body in titled)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{html.escape(study.title)}</title>"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head>\n<body><h1>{html.escape(study.title)}</h1>\n"
        f'<p class="note">Each cell (model, method, ε) has {study.seeds} independent runs. '
        f"Study {study.name}, made by {made_by()} on {time.strftime('%Y-%m-%d')}.</p>\n"
        f"<nav><ol>\n{contents}</ol></nav>\n{body}\n</body></html>\n"
    )


def made_by() -> str:
    """Return "dpmc <version>", with the commit of a clone, and whether its files differ from it."""
    try:
        git = ["git", "-C", str(shipped()), "describe", "--always", "--dirty", "--exclude=*"]
        said = subprocess.run(git, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return f"dpmc {__version__}"
    cloned = said.returncode == 0 and shipped(".git").exists()
    return f"dpmc {__version__}" + (f", commit {said.stdout.strip()}" if cloned else "")


if __name__ == "__main__":
    study, output, files = load_study(sys.argv[1]), Path(sys.argv[2]), list(map(Path, sys.argv[3:]))
    sections = [figure_section(file, study) for file in files if file.suffix == ".png"]
    compared = [pd.read_csv(file, dtype={"epsilon": str}) for file in files if file.suffix == ".csv"]
    # A study named as a published one may have none of the published cells.
    sections += [comparison_section(table, study) for table in compared if len(table)]
    sections += [table_section(name, study) for name in study.figures if name in tables.LAYOUTS]
    output.write_text(page(study, sections), encoding="utf-8")
