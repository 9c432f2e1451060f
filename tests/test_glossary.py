"""docs/glossary.md is the arbiter: the words that it rules out are in no name of the package."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

import polyurn

SOURCE = Path(polyurn.__file__).parent
GLOSSARY = (Path(__file__).parents[1] / "docs" / "glossary.md").read_text(encoding="utf-8")
RULED_OUT = {
    word
    for row in re.findall(
        r"^\| ([a-z, ]+) \|", GLOSSARY.split("do not use\n")[1], flags=re.MULTILINE
    )
    for word in row.split(", ")
} - {"not"}


OTHERS = {"ThreadPoolExecutor", "ProcessPoolExecutor", "MaxPool2d"}  # names of other libraries


def names(tree):
    """Every name that a module defines or uses."""
    for node in ast.walk(tree):
        for field in ("id", "attr", "name", "arg"):
            name = getattr(node, field, None)
            if isinstance(name, str) and name not in OTHERS:
                yield name


def parts(name):
    """The words of a name: `n_told_SoFar` has n, told, so and far."""
    return [part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]


@pytest.mark.parametrize(
    "path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE))
)
def test_no_name_has_a_word_that_the_glossary_rules_out(path):
    found = {n for n in names(ast.parse(path.read_text())) if RULED_OUT & set(parts(n))}
    assert found == set()


def test_the_glossary_rules_words_out():
    assert len(RULED_OUT) > 10
    assert RULED_OUT & set(parts("n_told_SoFar")) == {"told"}


def test_no_two_modules_or_classes_share_a_name():
    """But for a command, whose module is called like the command (`commands/fit.py`)."""
    classes, modules = Counter(), Counter()
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        classes.update(
            n.name for n in tree.body if isinstance(n, ast.ClassDef) and n.name[0] != "_"
        )
        if path.stem != "__init__" and path.relative_to(SOURCE).parts[0] != "commands":
            modules[path.stem] += 1
    assert [name for name, n in (classes + modules).items() if n > 1] == []


def test_every_word_has_one_line():
    words = re.findall(r"^\| ([^|]+) \|", GLOSSARY, flags=re.MULTILINE)
    twice = [word for word, n in Counter(words).items() if n > 1 and word not in {"word", "---"}]
    assert twice == []
