"""Who holds what in a sweep, under each seed."""

import numpy as np
import pytest

from polyurn import IID, MDM, Oracle, Partition, Sizes
from polyurn.sweeps.clients import clients_by_seed
from sweep_cases import BY_LABEL, DATA, shuffled, small_sweep

MIXTURE = MDM([1.0], [[1.0, 2.0, 3.0]], Sizes.constant(20))
TRUE = BY_LABEL.histograms(DATA.labels, 3)


def found(populations, *, seeds=(0, 1), n_clients=None):
    return clients_by_seed(populations, DATA, seeds=seeds, n_clients=n_clients, true="true")


def test_clients_with_their_points_are_the_same_under_every_seed_and_functions_are_asked():
    clients = found({"true": BY_LABEL, "iid": shuffled})
    assert clients["true", 0] is clients["true", 1] is BY_LABEL
    assert clients["iid", 1] == shuffled(1) != clients["iid", 0]


@pytest.mark.parametrize("population", [MIXTURE, IID.like(TRUE), Oracle(TRUE)])
def test_a_population_is_drawn_anew_for_each_seed_as_often_as_there_are_true_clients(population):
    clients = found({"true": BY_LABEL, "a": population, "b": population})
    assert len(clients["a", 0]) == len(BY_LABEL)
    assert clients["a", 0] == found({"true": BY_LABEL, "a": population})["a", 0]
    assert clients["a", 0] != clients["a", 1]
    assert clients["a", 0] != clients["b", 0]
    assert len(found({"a": population}, n_clients=7)["a", 1]) == 7


def test_simulated_clients_hold_points_by_their_labels():
    clients = found({"true": BY_LABEL, "oracle": Oracle(TRUE)}, seeds=[3])["oracle", 3]
    drawn = clients.histograms(DATA.labels, 3)
    assert sorted(drawn.tolist()) == sorted(TRUE.tolist())
    assert not np.array_equal(drawn, TRUE)


def test_a_sweep_takes_populations_beside_the_true_clients():
    true = Partition.by_owner(np.arange(400) % 20)
    done = small_sweep(populations={"true": true, "mdm": MIXTURE, "iid": IID.like(TRUE)}, seeds=[0])
    assert {run.population for run in done.runs} == {"true", "mdm", "iid"}
