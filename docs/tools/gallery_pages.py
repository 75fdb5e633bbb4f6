"""Write the pages of docs/results that show docs/gallery: all figures, all tables, all claims.

python docs/tools/gallery_pages.py
"""

import textwrap
from pathlib import Path

from dpmc.reports import tables
from dpmc.studies import Study, load_study
from dpmc.studies.figures import declared_figure

GALLERY, PAGES = Path("docs/gallery"), Path("docs/results")
#: what a row of a linked table is
ROWS = {
    "models": "a model",
    "hyperparameters": "a hyperparameter of a method on a model, or a noise multiplier that follows",
    "iterations": "a cell and an accountant",
    "run-times": "a sampling job",
    "claims": "a case of a claim",
    "published_comparison": "a published median, ours, and their difference in standard errors",
    "table": "a cell by the thesis's and by tight accounting",
    "tuned_table": "a cell before tuning and tuned",
}
INTRODUCTIONS = {
    "figures": (
        "All figures",
        "Every figure of the studies, as `make figures` drew it last.",
    ),
    "tables": (
        "All tables",
        "Tables of the studies, as `make figures` wrote them: CSV files, whose rows are as follows.",
    ),
    "claims": (
        "All claims",
        "The sentences of the sources that we test, each with its verdict, which `make figures` decides by "
        "the metrics of its run.",
    ),
}


#: what all figures have in common, said once
CONVENTIONS = (
    "ε: total privacy budget, with δ = 0.1/n, unless a caption says otherwise",
    "MMD: of second halves of chains from 1,000 exact posterior draws; lower is better",
    "boxes: quartiles and median over the runs of a cell, whiskers to the last run within 1.5 "
    "interquartile ranges",
    "filled slim bars: published quartiles and medians; hollow ones: our runs of what the legend names",
    "points: medians over runs; upright bars: their quartiles; lines across: without privacy",
    "grey band: exact samples, from the least to the greatest; line in it: their median",
    "k: number of iterations, if below 10",
    "guided: a walk of one component at a time, which keeps its direction until a rejection",
)
LESSONS = "What the searches found"  #: title of the figure that `make tune` draws


def studies() -> list[Study]:
    """Return the studies that have a gallery: the thesis and its variants first, what was tuned last."""
    names = (folder.name for folder in GALLERY.iterdir() if folder.is_dir())
    order = sorted(names, key=lambda name: ("tun" in name, not name.startswith("thesis"), name))
    return [load_study(f"config/studies/{name}.yaml") for name in order]


def sections(page: str, study: Study) -> list[str]:
    """Return what a page shows of a study; [] where its gallery has nothing for it."""
    folder = GALLERY / study.name
    if page == "figures":
        names = [name for name in study.figures if name not in tables.LAYOUTS]
        return [line for name in [*names, "lessons"] for line in figure(study, name)]
    name, how = ("claims", ":start-line: 2") if page == "claims" else ("models", ":heading-offset: 2")
    parts = [included(study.name, name, how)]
    parts = parts if (folder / f"{name}.md").is_file() else []
    files = [name for name in ROWS if page == "tables" and (folder / f"{name}.csv").is_file()]
    links = ", ".join(f"[{name}](../gallery/{study.name}/{name}.csv)" for name in files)
    return [part for part in (*parts, links) if part]


def included(study: str, name: str, how: str) -> str:
    """Return the lines that include a table of a study's gallery."""
    return f"```{{include}} ../gallery/{study}/{name}.md\n{how}\n```"


def made_by(study: Study) -> str:
    """Return the command that makes what a page shows of a study, and the commit at which it was made."""
    commit = (GALLERY / study.name / "commit.txt").read_text().strip()
    return f"`{study.name}` at commit {commit}, {study.seeds} runs of a cell"


def figure(study: Study, name: str) -> list[str]:
    """Return a figure with its title and caption; [] where the gallery does not have it."""
    path = GALLERY / study.name / f"{name}.png"
    if not path.is_file():
        return []
    if name == "lessons":
        title, caption = LESSONS, Path("workflow/report/lessons.rst").read_text(encoding="utf-8")
    else:
        declared = declared_figure(study.path, name)
        title, caption = declared.title or name.replace("-", " "), declared.caption
    below = textwrap.fill(" ".join(caption.split()), 110, break_on_hyphens=False, break_long_words=False)
    file = f"../{path.relative_to('docs')}"
    return [f"### {title}", f"![{name}]({file})", below]  # the heading says what it shows


def text(page: str) -> str:
    """Return a page."""
    title, introduction = INTRODUCTIONS[page]
    parts = [f"# {title}", textwrap.fill(introduction, 110)]
    if page == "tables":
        parts.append("\n".join(f"- `{name}`: {row}" for name, row in ROWS.items()))
    if page == "claims":
        parts.append(tables.LAYOUTS["claims"]["rule"])
    if page == "figures":
        parts.append("\n".join(f"- {words}" for words in CONVENTIONS))
    for study in studies():
        if found := sections(page, study):
            command = [] if page == "tables" else [made_by(study)]
            # what was said of a figure before is not said again
            new = [part for part in found if part.startswith("#") or part not in parts]
            parts += [f"## {study.title}", *command, *new]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    for page in INTRODUCTIONS:
        (PAGES / f"{page}.md").write_text(text(page), encoding="utf-8")
