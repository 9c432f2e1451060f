"""Exceptions of ours: one tree, and each comes back from another process as it was raised."""

import copy
import pickle

import joblib
import pytest

from polyurn.errors import FileError, MissingDependencyError, PolyurnError, RowError, ShortfallError

NAMED = ShortfallError("{} are short", [0, 1], missing=[2, 3], names=["cat", "dog"])
WITH_MORE = {
    ShortfallError: NAMED,
    RowError: RowError("got -3", 7, after="; drop it"),
    MissingDependencyError: MissingDependencyError("torch", "train", "training"),
}


def tree(kind=PolyurnError):
    yield kind
    for child in kind.__subclasses__():
        yield from tree(child)


EVERY_ERROR = [WITH_MORE.get(kind) or kind("one line") for kind in dict.fromkeys(tree())]


def fail(error):
    raise error


@pytest.mark.parametrize("error", EVERY_ERROR, ids=lambda error: type(error).__name__)
def test_every_error_of_the_tree_is_the_same_after_a_pickle(error):
    for back in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(back) is type(error)
        assert str(back) == str(error)


def test_an_error_with_categories_can_be_named_after_a_pickle():
    numbered = ShortfallError("{} are short", [0, 1], missing=[2, 3])
    assert str(pickle.loads(pickle.dumps(numbered)).named(["cat", "dog"])) == str(NAMED)
    assert str(NAMED) == "2 of category cat, 3 of category dog are short"


@pytest.mark.parametrize("error", [NAMED, WITH_MORE[MissingDependencyError]], ids=str)
def test_an_error_of_a_worker_arrives_and_does_not_break_the_pool(error):
    with joblib.Parallel(n_jobs=2) as pool:
        with pytest.raises(type(error), match=str(error).split("[")[0]):
            pool(joblib.delayed(fail)(error) for _ in range(2))
        assert pool(joblib.delayed(abs)(n) for n in (-1, -2)) == [1, 2]


def test_file_errors_are_still_those_of_python():
    assert issubclass(FileError, OSError)
    assert issubclass(MissingDependencyError, ImportError)
