"""Who holds what in a sweep, under each seed."""

from dataclasses import replace

import numpy as np
import pytest

from polyurn import IID, MDM, OptunaSearch, Oracle, Partition, Sizes, Styled
from polyurn.errors import FileError
from polyurn.storage.run_log import read_runs
from polyurn.sweeps.sweep_clients import clients_by_seed, in_another_order
from style_cases import plain_style, style_rest
from sweep_cases import BY_LABEL, DATA, shuffled, small_sweep

MIXTURE = MDM([1.0], [[1.0, 2.0, 3.0]], Sizes.constant(20))
TRUE = BY_LABEL.histograms(DATA.labels, 3)


def found(populations, *, seeds=(0, 1), n_clients=None, **options):
    return clients_by_seed(
        populations,
        DATA.labels,
        DATA.features,
        seeds=seeds,
        n_clients=n_clients,
        true="true",
        **options,
    )


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


# --------------------------------------------------------------------------- the noise floor


def held(clients):
    return sorted(points.tolist() for points in clients)


@pytest.mark.parametrize("true", [BY_LABEL, shuffled, MIXTURE], ids=["kept", "function", "drawn"])
def test_again_are_the_true_clients_of_the_seed_in_another_order_for_each(true):
    clients = found({"true": true, "iid": shuffled}, noise_floor=True, n_clients=30)
    for seed in (0, 1):
        assert held(clients["again", seed]) == held(clients["true", seed])
        assert clients["again", seed] != clients["true", seed]
    orders = [[points[0] for points in clients["again", seed]] for seed in (0, 1)]
    assert orders[0] != orders[1]
    assert clients == found({"true": true, "iid": shuffled}, noise_floor=True, n_clients=30)


def test_again_keeps_who_is_who():
    named = Partition.by_owner([f"client {i % 20}" for i in range(400)])
    again = in_another_order(named, 3)
    for name, points in zip(again.ids, again, strict=True):
        assert {f"client {point % 20}" for point in points} == {name}


def test_without_true_clients_or_beside_an_again_of_ones_own_nothing_is_added():
    assert {name for name, _ in found({"iid": shuffled}, noise_floor=True)} == {"iid"}
    own = {"true": BY_LABEL, "again": shuffled}
    assert found(own, noise_floor=True)["again", 1] == shuffled(1)


def test_a_sweep_trains_the_true_clients_again_from_the_same_first_weights():
    done = small_sweep(noise_floor=True, seeds=[0], grid={"local_learning_rate": [1e-9, 0.5]})
    by = {(run.population, run.settings["local_learning_rate"]): run for run in done.runs}
    assert {name for name, _ in by} == {"true", "iid", "again"}
    # Nothing was learned with the smallest rate: the weights are still the first ones.
    assert by["again", 1e-9].loss == pytest.approx(by["true", 1e-9].loss, abs=1e-6)
    assert by["again", 0.5].loss != pytest.approx(by["true", 0.5].loss, abs=1e-6)


def test_a_search_has_a_noise_floor_too_whose_winner_is_tried_on_the_true_clients():
    search = OptunaSearch({"local_learning_rate": {"low": 1e-3, "high": 1.0}}, n_trials=3,
                          pruner="NopPruner")  # fmt: skip
    done = small_sweep(noise_floor=True, seeds=[0], grid=None, optuna=search)
    trials = [run for run in done.runs if run.trial is not None]
    assert sum(run.population == "again" for run in trials) == 3
    best = max(
        (run for run in trials if run.population == "again"), key=lambda r: r.final["accuracy"]
    )
    assert any(run.population == "true" and run.settings == best.settings for run in done.runs)


def test_a_sweep_without_a_noise_floor_is_another_sweep(tmp_path):
    small_sweep(tmp_path, seeds=[0])
    with pytest.raises(FileError, match="differs in noise_floor"):
        small_sweep(tmp_path, seeds=[0], noise_floor=True)


@pytest.mark.parametrize("embedded", [False, True])
def test_clients_of_a_styled_population_hold_points_of_a_style_each(embedded):
    # Points that are trained on say nothing about the style, if it is measured in others.
    embedding = np.random.default_rng(0).normal(size=(len(DATA.labels), 2))
    data = (
        DATA
        if embedded
        else replace(DATA, features=embedding, test_features=embedding[: len(DATA.test_labels)])
    )
    population = Styled(
        IID([1, 1, 1], sizes=[20]), plain_style(n_labels=3), embedding if embedded else None
    )
    found = clients_by_seed(
        {"a": population}, data.labels, data.features, seeds=[0], n_clients=60, true="true"
    )
    assert style_rest(embedding, found["a", 0]) > 2
    assert found["a", 0].report.style is not None
    plain = clients_by_seed(
        {"a": population.population},
        data.labels,
        data.features,
        seeds=[0],
        n_clients=60,
        true="true",
    )
    assert style_rest(embedding, plain["a", 0]) < 1.5
    assert plain["a", 0].report.style is None


def test_the_runs_of_a_styled_population_say_so_in_the_log_too(tmp_path):
    embedding = np.random.default_rng(0).normal(size=(len(DATA.labels), 2))
    plain = IID([1, 1, 1], sizes=[20])
    with_style = Styled(plain, plain_style(n_labels=3), embedding)
    done = small_sweep(
        tmp_path, populations={"a": plain, "b": with_style}, n_clients=9, true="a", seeds=[0]
    )
    for runs in (done.runs, read_runs(tmp_path)):
        assert {(run.population, run.styled) for run in runs} == {("a", False), ("b", True)}
