"""Weighted metrics: a test whose classes are as frequent as the clients'."""

import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from polyurn import FedAvg, Partition, train, weighted
from polyurn.errors import ParameterError
from polyurn.sweeps.trainable import function_fingerprint
from polyurn.training.losses import accuracy, cross_entropy
from training_cases import tabular


@given(st.lists(st.integers(1, 9), min_size=2, max_size=5), st.integers(0, 2**16))
def test_a_weighted_metric_is_the_metric_on_a_resampled_test(to, seed):
    rng = np.random.default_rng(seed)
    n_classes = len(to)
    labels = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, 8)])
    outputs = torch.tensor(rng.normal(size=(len(labels), n_classes)))
    # Each point as often as makes the classes' frequencies those of `to`, without chance.
    n_of = np.bincount(labels)
    repeats = np.array(to)[labels] * np.lcm.reduce(n_of) // n_of[labels]
    resampled = np.repeat(np.arange(len(labels)), repeats)
    for metric in (accuracy, cross_entropy):
        values = weighted(metric, to=to, of=labels)(outputs, torch.tensor(labels))
        expected = metric(outputs[resampled], torch.tensor(labels[resampled])).mean()
        assert values.mean() == pytest.approx(float(expected))


def test_weighting_to_the_tests_own_classes_changes_nothing():
    labels = np.array([0, 2, 2, 1])
    assert weighted(accuracy, to=np.bincount(labels), of=labels).weights == (1.0, 1.0, 1.0)


def test_counts_and_probabilities_say_the_same():
    of = [0, 0, 1]
    assert weighted(accuracy, to=[3, 1], of=of) == weighted(accuracy, to=[0.75, 0.25], of=of)


@pytest.mark.parametrize("engine", ["workers", "batched"])
def test_both_engines_take_a_weighted_metric(engine):
    data = tabular()
    to = [5, 1, 1]
    n_of = np.bincount(data.test_labels)
    clients = Partition.by_owner(np.arange(400) % 10)
    fair = weighted(accuracy, to=to, of=data.test_labels)
    by_class = {
        f"class {j}": weighted(accuracy, to=np.eye(3)[j], of=data.test_labels) for j in range(3)
    }
    run = train(
        FedAvg(n_rounds=3, cohort_size=5), "softmax", data, clients, seed=0, engine=engine,
        n_workers=1, metrics={"accuracy": accuracy, "fair": fair, **by_class},
    )  # fmt: skip
    each = [run.final[f"class {j}"] for j in range(3)]
    assert run.final["fair"] == pytest.approx(np.average(each, weights=to), abs=1e-6)
    assert run.final["accuracy"] == pytest.approx(np.average(each, weights=n_of), abs=1e-6)


def test_a_weighted_metric_travels_and_is_known_by_its_metric_and_weights():
    one = weighted(accuracy, to=[1, 3], of=[0, 1])
    assert pickle.loads(pickle.dumps(one)) == one
    others = [
        weighted(accuracy, to=[1, 2], of=[0, 1]),
        weighted(cross_entropy, to=[1, 3], of=[0, 1]),
    ]
    prints = {function_fingerprint(metric) for metric in (one, *others, accuracy)}
    assert len(prints) == 4
    assert function_fingerprint(one) == function_fingerprint(pickle.loads(pickle.dumps(one)))


@pytest.mark.parametrize(
    ("to", "of", "message"),
    [
        ([1, 0, 2], [0, 0, 1], "every class that the clients hold, got none of class 2; test on"),
        (
            [1],
            [0, 0, 1],
            "a frequency for each class of the test, got 1 of them and the test label 1",
        ),
        ([0, 0], [0, 1], "not all of them 0"),
        ([1, -1], [0, 1], "counts or probabilities"),
        ([[1, 2]], [0, 1], r"shape \(n_classes,\), got shape \(1, 2\)"),
        ([1, 2], [0.5, 1], "got 0.5 at position 0"),
        ([1, 2], [], "the labels of test points, got none"),
    ],
)
def test_frequencies_that_cannot_be_weighted_to_are_refused(to, of, message):
    with pytest.raises(ParameterError, match=message):
        weighted(accuracy, to=to, of=np.array(of, dtype=None if of else int))
