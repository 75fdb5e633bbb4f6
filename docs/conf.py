"""Configuration of the site: `make docs` builds docs/_build/html."""

import html
import os
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from dpmc import __version__

project = "dpmc"
author = "The dpmc authors"
copyright = "The dpmc authors, MIT licence"
version = release = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",  # [source] beside each name
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "gallery/**.md"]  # results/tables.md and claims.md include those

myst_heading_anchors = 4  # links to headings, as on GitHub
myst_enable_extensions = ["dollarmath"]

# Examples run anew in each build, in a folder of their own; one that fails ends the build.
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True
suppress_warnings = ["myst-nb.lexer"]  # where no example is run, nothing says that it is Python

autodoc_typehints = "none"  # shapes and meanings are in the docstrings, types in the signatures
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
default_role = "literal"  # `name` in a docstring
napoleon_google_docstring = False
copybutton_exclude = ".linenos, .gp, .go"

html_theme = "furo"
html_title = "dpmc"
html_static_path = ["_static"]
html_css_files = ["dpmc.css"]
html_favicon = html_logo = "_static/icon.svg"
html_search_scorer = str(Path(__file__).with_name("search-order.js"))
html_copy_source = False
# GitHub says which repository it builds the site of; nothing else knows its address yet (RELEASING.md).
if repository := os.environ.get("GITHUB_REPOSITORY"):
    address = f"https://github.com/{repository}"
    link = {"name": "Repository", "url": address, "html": "Repository", "class": ""}
    html_theme_options = {"source_repository": address, "source_branch": "main", "source_directory": "docs/"}
    html_theme_options |= {"footer_icons": [link]}


def link_pages(app: Sphinx, what: str, name: str, of: object, options: object, lines: list[str]) -> None:
    """Make links of the pages that a docstring names."""
    lines[:] = [re.sub(r"\bdocs/([\w/-]+)\.md", r":doc:`/\1`", line) for line in lines]


def lay_out(app: Sphinx, page: nodes.document, name: str) -> None:
    """Let pictures be enlarged, and tables with many columns and sentences in them be cards."""
    if app.builder.format != "html":
        return
    for image in list(page.findall(nodes.image)):
        if not isinstance(image.parent, nodes.reference):
            words = html.escape(image.get("alt", "picture"))
            box = f'<label class="enlarge"><input type="checkbox" aria-label="enlarge: {words}">'
            opening, closing = (nodes.raw("", text, format="html") for text in (box, "</label>"))
            image.parent.replace(image, [opening, image.deepcopy(), closing])
    for table in page.findall(nodes.tgroup):
        columns, *rows = [list(row.findall(nodes.entry)) for row in table.findall(nodes.row)]
        sentences = [any(len(shown(row[at])) > 60 for row in rows) for at in range(len(columns))]
        if any(sentences) and len(columns) + sum(sentences) >= 8:
            table.parent["classes"].append("cards")
            for at, column in enumerate(columns):
                kinds = ["sentence"] * sentences[at] + ["first"] * (at == sentences.index(True))
                for row in rows:
                    row[at]["classes"] += kinds
                    row[at].insert(0, nodes.inline("", f"{column.astext()}: ", classes=["column"]))


def shown(cell: nodes.entry) -> str:
    """Return the text of a cell without hidden comments, such as the sources of numbers."""
    texts = (text for text in cell.findall(nodes.Text) if not isinstance(text.parent, nodes.raw))
    return "".join(texts)


def describe(app: Sphinx, name: str, of: str, context: dict[str, Any], page: nodes.document | None) -> None:
    """Give a page its first paragraph as its description, for those who find or share it."""
    if page is not None and (first := next(page.findall(nodes.paragraph), None)):
        words = html.escape(" ".join(first.astext().split()))
        context["metatags"] += f'<meta name="description" content="{words}">'


def setup(app: Sphinx) -> None:
    """Register the above."""
    app.connect("autodoc-process-docstring", link_pages)
    app.connect("doctree-resolved", lay_out)
    app.connect("html-page-context", describe)
