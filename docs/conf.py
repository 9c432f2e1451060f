"""Settings of the documentation: Markdown pages and our own docstrings; nothing is downloaded."""

import polyurn

project = "polyurn"
author = copyright = "The polyurn developers"
version = release = polyurn.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = f"polyurn {version}"
default_role = "code"  # `name` in a docstring is a name

myst_heading_anchors = 3
napoleon_google_docstring = False
napoleon_use_ivar = True  # a dataclass field is described once, under its class
napoleon_use_param = napoleon_use_rtype = False  # types are prose: "int array of shape ..."
autodoc_typehints = "none"  # the docstrings give types together with shapes
autodoc_member_order = "bysource"
