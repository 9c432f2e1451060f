"""The pages of the notebooks: what is in examples/notebooks, run, with what it prints and its pictures.

    python docs/make_notebooks.py [NAME]  # all: three minutes; extras test

A notebook is a script whose cells begin with `# %%`, as editors and Jupytext know them.
`tests/test_notebooks.py` runs each and compares the page but for what was printed.
"""

import ast
import contextlib
import io
import re
import sys
import tempfile
from pathlib import Path

from PIL import Image

from polyurn.report.page import figure_of
from polyurn.report.parts import Figure

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted((ROOT / "examples" / "notebooks").glob("*.py"))
PAGES, PICTURES = ROOT / "docs" / "notebooks", ROOT / "docs" / "pictures" / "notebooks"
_CELL = re.compile(r"^# %%(.*)\n", re.MULTILINE)
_OUTPUT = re.compile(r"\n```text\n.*?```\n", re.DOTALL)


def main():
    for script in SCRIPTS:
        if sys.argv[1:] in ([], [script.stem]):
            page = run(script, PICTURES)
            (PAGES / f"{script.stem}.md").write_text(page, encoding="utf-8")
            print(f"docs/notebooks/{script.stem}.md: {len(page.split())} words")


def run(script, pictures):
    """The page of a script, run in an empty folder; its pictures are written to `pictures`."""
    known, parts = {"__name__": "__main__"}, []
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for kind, source in cells(script.read_text(encoding="utf-8")):
            if kind == "text":
                parts.append(source)
                continue
            parts.append(f"```python\n{source}\n```")
            shown, figure = output(source, known)
            if figure is not None:
                name = f"{script.stem}-{len(parts)}.png"
                figure.save(name)
                Image.open(name).convert("RGB").quantize(64).save(pictures / name, optimize=True)
                parts.append(f"![{figure.title}](../pictures/notebooks/{name})")
            elif shown:
                parts.append(f"```text\n{shown}\n```")
    where = f"This page is `examples/notebooks/{script.name}`, as it ran."
    return "\n\n".join([parts[0], where, *parts[1:]]) + "\n"


def cells(script):
    """Texts and code of a script, in their order."""
    pieces = _CELL.split(script)[1:]
    for head, body in zip(pieces[::2], pieces[1::2], strict=True):
        if "[markdown]" in head:
            lines = body.strip().splitlines()
            yield "text", "\n".join(line.removeprefix("#").removeprefix(" ") for line in lines)
        else:
            yield "code", body.strip()


def output(source, known):
    """What a cell prints, and the figure of its last value; that of a result is its own."""
    tree, last = ast.parse(source), None
    if isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), known)
        value = None if last is None else eval(compile(last, "cell", "eval"), known)
        if value is None:
            return printed.getvalue().rstrip(), None
        with contextlib.suppress(TypeError):
            return "", value if isinstance(value, Figure) else figure_of(value)
        print(value)
    return printed.getvalue().rstrip(), None


def without_outputs(page):
    """The page but for what its cells printed."""
    return _OUTPUT.sub("", page)


if __name__ == "__main__":
    main()
