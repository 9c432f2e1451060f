"""Every tuned number stands in one frozen value, and there are few of them."""

import ast
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest

import polyurn.server.search
from polyurn.server.fit_settings import DEFAULT, Policy

FOLDER = Path(polyurn.server.search.__file__).parent
MODULES = [FOLDER / f"{name}.py" for name in ("search", "sampled", "starts")]


def numbers(path):
    """Numeric constants in a module's own assignments, those of functions and classes left out."""
    for statement in ast.parse(path.read_text()).body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            for node in ast.walk(statement.value):
                if isinstance(node, ast.Constant) and type(node.value) in (int, float):
                    yield node.value


def test_a_policy_is_frozen():
    with pytest.raises(FrozenInstanceError):
        DEFAULT.starts = 1
    assert Policy() == DEFAULT
    assert hash(Policy()) == hash(DEFAULT)


def test_a_policy_has_at_most_18_fields():
    assert len(fields(Policy)) <= 18


def test_the_search_has_at_most_12_numbers_besides_and_30_in_all():
    besides = [number for path in MODULES for number in numbers(path)]
    assert len(besides) <= 12
    assert len(besides) + len(fields(Policy)) <= 30


def test_the_search_has_at_most_900_lines():
    assert sum(len(path.read_text().splitlines()) for path in MODULES) <= 900
