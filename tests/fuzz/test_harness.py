import numpy as np
import pytest

from fuzz.case import Case
from fuzz.defective import CASE, DEFECTIVE, refuses, works
from fuzz.harness import run
from polyurn.errors import ParameterError


@pytest.mark.parametrize("main", [works, refuses])
def test_a_command_that_works_or_refuses_as_it_should_has_no_defect(main):
    assert run(CASE, main=main).defects == ()


@pytest.mark.parametrize(
    ("main", "what"), DEFECTIVE.items(), ids=lambda x: getattr(x, "__name__", x)
)
def test_every_class_of_defect_is_found(main, what):
    assert what in [defect.what for defect in run(CASE, main=main).defects]


def test_a_command_that_takes_too_long_is_found():
    assert [defect.what for defect in run(CASE, main=works, seconds=-1.0).defects] == ["slow"]


def test_a_command_that_takes_too_much_memory_is_found():
    def greedy(arguments):
        kept.append(np.ones(2**24))
        works(arguments)

    kept = []
    found = run(CASE, main=greedy, n_bytes=-1).defects
    assert [defect.what for defect in found] == ["memory"]


def test_a_call_may_be_refused_by_our_own_errors_only():
    def ours():
        raise ParameterError("expected a number, got 'x'")

    def not_ours():
        raise TypeError("unsupported operand")

    def silent():
        raise ParameterError("no")

    assert run(Case(call=ours)).defects == ()
    assert [defect.what for defect in run(Case(call=not_ours)).defects] == ["traceback"]
    assert [defect.what for defect in run(Case(call=silent)).defects] == ["message"]


def test_text_that_a_terminal_cannot_show_is_found():
    case = Case(("show",), encoding="ascii")
    found = run(case, main=lambda arguments: print("α")).defects  # noqa: T201
    assert [defect.what for defect in found] == ["traceback"]


def test_a_case_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    run(CASE, main=works)
    assert list(tmp_path.iterdir()) == []
