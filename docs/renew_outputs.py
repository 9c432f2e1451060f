"""What the pages show of outputs and evidence, made again.

    python docs/renew_outputs.py          # the pages with outputs (a minute; extra demo)
    python docs/renew_outputs.py results  # the tables of docs/results.md, from the records

Runs every `$ command` of a page's console blocks, in an empty folder and after the examples above it,
and puts below it what it prints; progress lines are left out, as a terminal does not keep them. Between
the marks of the evidence it puts the tables of experiments/front_door.py. docs/index.md includes the
first screen of README.md. `tests/test_docs.py` runs this and compares. No measurement is repeated here.
"""

import contextlib
import doctest
import importlib
import io
import os
import re
import runpy
import shlex
import sys
import tempfile
import textwrap
from pathlib import Path

from polyurn import cli

ROOT = Path(__file__).parents[1]
PAGES = tuple(ROOT / name for name in ("README.md", "docs/quickstart.md", "docs/guides/feature.md"))
WIDTH = 100
HOME = "/home/me"  # stands for the folder in which the commands ran
EVIDENCE = re.compile(r"(<!-- (evidence|training) -->\n)(.*?)(<!-- end of \2 -->)", re.DOTALL)
TRAINING = re.compile(r"(<!-- tables of (\w+) -->\n)(.*?)(<!-- end of tables -->)", re.DOTALL)
TRAINING_SCRIPTS = (
    "cifar10", "cifar10_cnn", "flights_by_plane", "digits_by_writer", "census", "disjoint",
)  # fmt: skip
SHAPES = re.compile(r"(<!-- shapes -->\n)(.*?)(<!-- end of shapes -->)", re.DOTALL)
LIKENESS = re.compile(r"(<!-- likeness -->\n)(.*?)(<!-- end of likeness -->)", re.DOTALL)
STYLES = re.compile(r"(<!-- styles: (\w+) -->\n)(.*?)(<!-- end of styles -->)", re.DOTALL)
REGRET = re.compile(r"(<!-- regret: ([\w ]+) -->\n)(.*?)(<!-- end of regret -->)", re.DOTALL)
BLOCK = re.compile(r"```(pycon|console)\n(.*?)```\n", re.DOTALL)


def main():
    results = sys.argv[1:] == ["results"]
    for page in [ROOT / "docs" / "results.md"] if results else PAGES:
        text = page.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            if results:
                new = text
                for renew in RESULTS:
                    new = renew(new)
            else:
                new = renewed(text, Path(folder))
        page.write_text(new, encoding="utf-8")
        print(f"{page.relative_to(ROOT)}: {'as it was' if new == text else 'renewed'}")


def renewed(text, folder):
    """A page with its evidence and its outputs made again in an empty folder."""
    last = max(block.end() for block in BLOCK.finditer(text) if block[1] == "console")
    known = {}
    with in_folder(folder):
        walked = BLOCK.sub(lambda block: renewed_block(block, known, folder), text[:last])
    return EVIDENCE.sub(
        lambda found: found[1] + evidence(found[2]) + found[4], walked + text[last:]
    )


def evidence(of):
    """A table of experiments/front_door.py, as a paragraph."""
    front_door = experiment("front_door")
    table = front_door.training_table() if of == "training" else front_door.table()
    return "\n" + "\n".join(table) + "\n\n"


def with_training_tables(text):
    """A page with the tables of the training experiments, from the records that are kept."""
    tables = experiment("training_tables")
    reports = {
        report.name: report for name in TRAINING_SCRIPTS for report in experiment(name).REPORTS
    }

    def block(found):
        report = reports[found[2]]
        if not (tables.RESULTS / report.name / "runs.jsonl").exists():
            return f"{found[1]}\nNot run yet.\n\n{found[4]}"
        lines = [*tables.summary(report), "", f"![{report.title}](pictures/{report.name}.png)"]
        return f"{found[1]}\n" + "\n".join(lines) + f"\n\n{found[4]}"

    return TRAINING.sub(block, text)


def with_likeness_table(text):
    """A page with the table of experiments/populations.py at default settings, from its records."""
    populations = experiment("populations")
    records = [*experiment("front_door").records("populations")]
    names = [name for name in populations.FEDERATIONS if name.endswith(", default")]
    table = populations.likeness_table(names, records, ["energy", "AUC", "log q(c given n)"])
    rows = (row for row in table if "| oracle |" not in row)
    lines = "\n".join(rows).replace(", default |", " |")
    return LIKENESS.sub(lambda found: f"{found[1]}\n{lines}\n\n{found[3]}", text)


def with_shapes(text):
    """A page with the tables of experiments/shapes.py, from its records."""
    shapes = experiment("shapes")
    lines = "\n".join(shapes.summary(shapes.kept_records()))
    return SHAPES.sub(lambda found: f"{found[1]}\n{lines}\n\n{found[3]}", text)


def with_style_tables(text):
    """A page with the tables of the experiments on style, from the records that are kept."""
    made = experiment("style_tables").TABLES

    def block(found):
        return f"{found[1]}\n" + "\n".join(made[found[2]]()).rstrip() + f"\n\n{found[4]}"

    return STYLES.sub(block, text)


def with_regret(text):
    """A page with the tables of experiments/regret.py, from the records that are kept."""
    summary = experiment("regret").summary
    return REGRET.sub(
        lambda found: f"{found[1]}\n" + "\n".join(summary(found[2].split())) + f"\n\n{found[4]}",
        text,
    )


RESULTS = (with_training_tables, with_style_tables, with_likeness_table, with_shapes, with_regret)


def experiment(name):
    """A module of experiments/."""
    sys.path.insert(0, str(ROOT / "experiments"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


def renewed_block(block, known, folder):
    """A block of examples as it is, once they have been run; a block of commands with their outputs."""
    if block[1] == "pycon":
        for example in doctest.DocTestParser().get_examples(block[2]):
            exec(example.source, known)
        return block[0]
    commands = [line[2:] for line in block[2].splitlines() if line.startswith("$ ")]
    shown = [f"$ {command}\n{shown_output(command, folder)}" for command in commands]
    return "```console\n" + "\n".join(shown) + "```\n"


def shown_output(command, folder):
    """What a terminal of some width keeps of what a command prints."""
    lines = output(shlex.split(command)).replace(str(folder.resolve()), HOME).splitlines()
    kept = [line.rstrip() for line in lines if not re.match(r"round \d+[:,] ", line)]
    return "".join(f"{short}\n" for line in kept for short in wrapped(line))


def wrapped(line):
    return textwrap.wrap(line, WIDTH) if len(line) > WIDTH else [line]


def output(words):
    """Run `python FILE` of this repository, or `polyurn COMMAND ...`, in this process."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        if words[0] == "python":
            runpy.run_path(str(ROOT / words[1]), run_name="__main__")
        else:
            run_polyurn(words[1:], printed)
    return printed.getvalue()


def run_polyurn(arguments, printed):
    try:
        cli.main(arguments)
    except SystemExit as ended:
        if ended.code:
            raise RuntimeError(f"polyurn {shlex.join(arguments)}\n{printed.getvalue()}") from ended


@contextlib.contextmanager
def in_folder(folder):
    """Work there, on a terminal of a fixed width and without colours."""
    before, environment = Path.cwd(), dict(os.environ)
    os.chdir(folder)
    os.environ.pop("FORCE_COLOR", None)
    os.environ["COLUMNS"] = str(WIDTH)
    try:
        yield
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ.update(environment)


if __name__ == "__main__":
    main()
