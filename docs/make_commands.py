"""docs/commands.md below its mark: every command, argument and option, as the program describes itself.

    python docs/make_commands.py

What stands above the mark is written by hand. `tests/test_docs.py` compares the page with the program.
"""

from collections.abc import Iterator
from pathlib import Path

import typer

from polyurn.commands.app import app

PAGE = Path(__file__).with_name("commands.md")
MARK = "<!-- made by docs/make_commands.py -->\n"
# The options that nearly every command has, described once.
EVERYWHERE = ("--quiet", "--json", "--seed", "--help")


def main() -> None:
    """Write the page anew."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def page(text: str) -> str:
    """The page with what the program says of itself below the mark."""
    made = "".join(sections(typer.main.get_command(app), "polyurn"))
    return text.partition(MARK)[0] + MARK + made


def sections(command, title: str) -> Iterator[str]:
    """The section of a command, and those of the commands in it."""
    inner = getattr(command, "commands", {})
    if title != "polyurn":
        yield f"\n## {title}\n\n{command.help}\n"
        lines = [line for one in command.params for line in described(one)]
        yield "\n" + "\n".join(lines) + "\n" if lines else ""
        shared = [f"`{name}`" for name in EVERYWHERE if any(name in p.opts for p in command.params)]
        yield f"\nAlso {', '.join(shared)}.\n" if shared else ""
    for name, one in inner.items():
        yield from sections(one, f"{title} {name}")


def described(parameter) -> Iterator[str]:
    """The line of an argument or an option; none for an option that nearly every command has."""
    names = [*parameter.opts, *parameter.secondary_opts]
    if parameter.param_type_name == "argument":
        names = [parameter.metavar or parameter.name.upper()]
    if names[0] not in EVERYWHERE:
        yield f"- {', '.join(f'`{name}`' for name in names)}: {parameter.help}{default(parameter)}"


def default(parameter) -> str:
    """What an option is where it is not given."""
    if parameter.required:
        return " Required."
    unset = parameter.default is None or isinstance(parameter.default, bool)
    return "" if unset else f" Default: `{parameter.default}`."


if __name__ == "__main__":
    main()
