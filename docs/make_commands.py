"""docs/commands.md below its mark: every command, argument and option, as the program describes itself.

    python docs/make_commands.py

What stands above the mark is written by hand. `tests/test_docs.py` compares the page with the program.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import typer

from polyurn.commands.app import app

PAGE = Path(__file__).with_name("commands.md")
MARK = "<!-- made by docs/make_commands.py -->\n"
# The options that nearly every command has, described once.
EVERYWHERE = ("--quiet", "--json", "--seed", "--help")
# Options that come together, and the name that the page has for them.
TOGETHER = {
    "*columns*": ("--client", "--category", "--count", "--drop-missing"),
    "*guarantee*": ("--epsilon", "--delta", "--ledger-epsilon"),
    "*asking nodes*": ("DIR", "--trust", "--no-privacy", "--plain", "--terms"),
}
# An option that so many commands describe in the same words is described once, before them.
SEVERAL = 2


def main() -> None:
    """Write the page anew."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def page(text: str) -> str:
    """The page with what the program says of itself below the mark."""
    root = typer.main.get_command(app)
    lines = Counter(line for one in every(root) for line in described(one).values())
    shared = {line for line, n in lines.items() if n >= SEVERAL}
    once = "\n".join(line for line in lines if line in shared)
    made = "".join(sections(root, "polyurn", shared))
    return f"{text.partition(MARK)[0]}{MARK}\n## Options of several commands\n\n{once}\n{made}"


def every(command) -> Iterator:
    """A command, and those in it."""
    yield command
    for one in getattr(command, "commands", {}).values():
        yield from every(one)


def sections(command, title: str, shared: set[str]) -> Iterator[str]:
    """The section of a command, and those of the commands in it."""
    if title != "polyurn":
        lines = described(command)
        own = "\n".join(line for line in lines.values() if line not in shared)
        also = [name for name, several in TOGETHER.items() if set(several) <= {*lines}]
        yield f"\n## {title}\n\n{introduced(command)}\n"
        yield f"\n{own}\n" if own else ""
        yield f"\nAlso {', '.join(also)}.\n" if also else ""
    for name, one in getattr(command, "commands", {}).items():
        yield from sections(one, f"{title} {name}", shared)


def introduced(command) -> str:
    """What a command does, in a sentence, and its first example with options. `--help` has more."""
    first, *more = command.help.split("\n\n")
    example = next((part for part in more if part.startswith("Example")), "").partition("`,")
    shown = example[0].replace("Examples:", "Example:") + "`" * bool(example[1])
    return f"{first}\n\n{shown}" if " -" in shown else first


def described(command) -> dict[str, str]:
    """The line of each argument and option, but for those that nearly every command has."""
    found = {}
    for parameter in command.params:
        names = [*parameter.opts, *parameter.secondary_opts]
        if parameter.param_type_name == "argument":
            names = [parameter.metavar or parameter.name.upper()]
        if names[0] not in EVERYWHERE:
            found[names[0]] = f"- {', '.join(f'`{name}`' for name in names)}: {short(parameter)}"
    return found


def short(parameter) -> str:
    """The first sentence of its help, without the default, which `--help` shows."""
    first = re.split(r"(?<=\.) |[;,] (?=default|by default)(?![^(]*\))", parameter.help)[0]
    return first if first.endswith(".") else f"{first}."


if __name__ == "__main__":
    main()
