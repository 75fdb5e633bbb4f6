"""Configuration of the site: `make docs` builds docs/_build/html."""

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
    "sphinxcontrib.mermaid",
]
exclude_patterns = ["_build", "gallery/**.md"]  # results/tables.md and claims.md include those

myst_fence_as_directive = ["mermaid"]  # as GitHub writes it
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
html_copy_source = False
