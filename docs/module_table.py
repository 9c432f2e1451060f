"""Write the table of modules in architecture.md again: the first sentence of every docstring.

    python docs/module_table.py

The page's own words are left alone: only what stands between the two markers is replaced.
"""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "polyurn"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- begin modules: written by docs/module_table.py -->", "<!-- end modules -->"


def updated(page: str) -> str:
    """The same page with the table of the modules that there are."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"{PAGE} needs the lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{table()}\n{END}{after}"


def table() -> str:
    """One row per module: rooms in order of name, the modules that stand beside them first."""
    rows = ["| module | what it is |", "|---|---|"]
    for path in sorted(SOURCE.rglob("*.py"), key=_place):
        rows.append(f"| `{path.relative_to(SOURCE).as_posix()}` | {first_sentence(path)} |")
    return "\n".join(rows) + "\n"


def first_sentence(path: Path) -> str:
    """The first sentence of a module's docstring, on one line."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(docstring.partition("\n\n")[0].split())
    found = re.match(r".*?[.?](?= |$)", paragraph)
    if found is None:
        raise SystemExit(f"{path} needs a docstring that begins with a sentence")
    return found[0].replace("|", "\\|")


def _place(path: Path) -> tuple[str, bool, str]:
    """Folder by folder, what a folder says of itself first."""
    folder = path.relative_to(SOURCE).parent.as_posix().removeprefix(".")
    return folder, path.name != "__init__.py", path.name


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
