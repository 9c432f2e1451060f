"""Settings of the documentation: Markdown pages and our own docstrings; nothing is downloaded."""

from pathlib import Path

import polyurn
from polyurn.zoo.zoo_page import zoo_page

project = "polyurn"
author = copyright = "The polyurn developers"
version = release = polyurn.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = f"polyurn {version}"
html_static_path = ["_static"]
templates_path = ["_templates"]
html_logo = html_favicon = "_static/logo.svg"
default_role = "code"  # `name` in a docstring is a name

myst_heading_anchors = 3
napoleon_google_docstring = False
napoleon_use_ivar = True  # a dataclass field is described once, under its class
napoleon_use_param = napoleon_use_rtype = False  # types are prose: "int array of shape ..."
autodoc_typehints = "none"  # the docstrings give types together with shapes
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
suppress_warnings = ["ref.python"]  # "shape (n_clients,)" is prose, whatever else has that name


def setup(app):
    app.connect("build-finished", _add_zoo_page)


def _add_zoo_page(app, error):
    """The page of `polyurn zoo --page`, beside the others."""
    if error is None and app.builder.format == "html":
        (Path(app.outdir) / "zoo-page.html").write_text(zoo_page(), encoding="utf-8")
