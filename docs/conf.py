"""Settings of the documentation: Markdown pages and our own docstrings; nothing is downloaded."""

<<<<<<< HEAD
from pathlib import Path

import typer

import polyurn
from polyurn.commands.app import app as commands
from polyurn.zoo.zoo_page import zoo_page
=======
import polyurn
>>>>>>> 29dcbfa (A front door for three users; pages of commands, results and decisions in a third of the words)

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
suppress_warnings = ["ref.python"]  # "shape (n_clients,)" is prose, whatever else has that name
<<<<<<< HEAD


def setup(app):
    app.connect("source-read", _add_help)
    app.connect("build-finished", _add_zoo_page)


def _add_zoo_page(app, error):
    """The page of `polyurn zoo --page`, beside the others."""
    if error is None and app.builder.format == "html":
        (Path(app.outdir) / "zoo-page.html").write_text(zoo_page(), encoding="utf-8")


def _add_help(app, docname, source):
    """The page help.md ends with what `polyurn COMMAND --help` says, taken from the commands."""
    if docname == "help":
        found = typer.main.get_command(commands).commands
        source[0] += "".join(_command_help(name, command) for name, command in found.items())


def _command_help(name, command):
    """What a command says of itself; of a group, its commands too."""
    lines = [f"\n## {name}\n", command.help, ""]
    for parameter in command.params:
        names = [*parameter.opts, *parameter.secondary_opts]
        if parameter.param_type_name == "argument":
            names = [parameter.metavar or parameter.name.upper()]
        lines.append(
            f"- {', '.join(f'`{n}`' for n in names)}: {parameter.help}{_default(parameter)}"
        )
    inner = getattr(command, "commands", {})
    rest = (_command_help(f"{name} {word}", one) for word, one in inner.items())
    return "\n".join(lines) + "\n" + "".join(rest)


def _default(parameter):
    if parameter.required:
        return " Required."
    unset = parameter.default is None or isinstance(parameter.default, bool)
    return "" if unset else f" By default `{parameter.default}`."
=======
>>>>>>> 29dcbfa (A front door for three users; pages of commands, results and decisions in a third of the words)
