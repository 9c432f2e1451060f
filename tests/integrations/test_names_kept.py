"""What a mixture's categories are called stays with it, from the table to the last file."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import polyurn as pu
from polyurn.errors import CountsError
from polyurn.model.paper_truths import truth
from polyurn.storage.table_files import read_table

NAMES = tuple("abcdefghij")
TABLE = truth("low/1").sample(80, rng=0)
CLIENTS = pu.Histograms(sparse.csr_array(TABLE), np.arange(80), NAMES)
ROUNDS = {"n_components": 1, "n_categories": 10, "max_size": 50}


def private(clients):
    return pu.fit_private(clients, **ROUNDS, epsilon=50.0, delta=1e-4, rng=0)


@pytest.mark.parametrize(
    "learn",
    [
        lambda clients: pu.fit(clients, **ROUNDS, max_rounds=4, rng=0),
        lambda clients: pu.fit_paper(clients, **ROUNDS, n_rounds=2, size_prior=1.0),
        private,
    ],
    ids=["fit", "fit_paper", "fit_private"],
)
def test_a_fit_never_forgets_the_names_of_the_clients_of_an_aggregator(learn):
    assert learn(pu.LocalAggregator(CLIENTS, rng=0)).mdm.categories == NAMES
    kept = pu.ReplayAggregator(pu.LocalAggregator(CLIENTS, rng=0), [])
    assert kept.categories == NAMES
    assert learn(pu.LocalAggregator(TABLE, rng=0)).mdm.categories is None


def test_a_fit_of_a_table_is_compared_with_held_out_clients_by_name():
    split = pu.split_clients(CLIENTS, rng=0)
    mdm = pu.fit(split.fitted, n_components=1, max_size=50, rng=0).mdm
    assert mdm.categories == NAMES
    quick = {"n_folds": 0, "n_splits": 100, "n_bootstrap": 100, "n_directions": 5, "rng": 0}
    populations = {"mdm": mdm, "iid": pu.IID.like(split.fitted), "oracle": pu.Oracle(split.fitted)}
    assert pu.compare(populations, split, **quick)["mdm"].log_likelihood is not None
    with pytest.raises(CountsError, match=r"a, b, .* without names, 0 to 9; .*match='position'"):
        pu.compare(populations, split.held_out.counts, **quick)


def test_clients_that_are_written_are_called_what_the_model_calls_them(tmp_path):
    from polyurn.storage.drawn_clients import write_drawn

    write_drawn(replace(truth("low/1"), categories=NAMES), 20, tmp_path / "drawn")
    (file,) = (tmp_path / "drawn").iterdir()
    assert set(read_table(file)["category"].to_pylist()) <= set(NAMES)


def test_a_sweep_never_trains_on_another_category_in_silence():
    from polyurn.sweeps.sweep_clients import clients_by_seed

    labels = np.arange(200) % 10
    named = {"mdm": replace(truth("low/1"), categories=NAMES)}
    asked = {"seeds": [0], "n_clients": 3, "true": "true"}
    with pytest.raises(CountsError, match=r"mdm: expected the 10 .* a, b.* got the 10 .* 0, 1"):
        clients_by_seed(named, labels, None, **asked)
    by_position = clients_by_seed(named, labels, None, **asked, match="position")
    by_name = clients_by_seed(named, np.take(NAMES, labels), None, **asked)
    assert by_position == by_name


def test_a_report_never_shows_a_category_under_the_name_of_another():
    from polyurn.report.page import report_on

    mdm = replace(truth("low/1"), categories=NAMES)
    turned = pu.Histograms(CLIENTS.counts[:, ::-1], CLIENTS.clients, NAMES[::-1])
    found = report_on(mdm, clients={"true": turned}, rng=0).material
    assert found.clients["true"].sum(axis=0).tolist() == TABLE.sum(axis=0).tolist()
    with pytest.raises(CountsError, match="10 categories without names"):
        report_on(mdm, clients={"true": TABLE})
    assert report_on(mdm, clients={"true": TABLE}, match="position").material.categories == NAMES
