"""What a page knows about styles: checked once, and clients drawn where there is a pool."""

import numpy as np
import pytest

from polyurn.errors import ParameterError
from polyurn.model.paper_truths import truth
from polyurn.report.style import style_section
from polyurn.storage.models import Saved
from polyurn.storage.provenance import Made
from report_material import NAMES, gathered, pool, saved, selection, style, styled, true_clients


def test_a_style_alone_is_enough_for_a_page():
    found = gathered(style=style()).style
    assert found.labels == tuple("0123456789")
    assert (found.pool, found.styled) == (None, None)


@pytest.mark.parametrize(
    "given",
    [
        {"features": pool()[0]},
        {"style": style(), "features": pool()[0]},
        {"style": style(), "labels": pool()[1]},
        {"features": pool()[0], "labels": pool()[1]},
    ],
    ids="+".join,
)
def test_proxy_points_are_features_and_labels_with_a_style(given):
    with pytest.raises(ParameterError, match="together with a style, and only then"):
        gathered(selection().mdm, **given)


def test_points_of_another_shape_are_refused():
    with pytest.raises(ParameterError, match="expected points of 36 features"):
        gathered(**styled(features=np.zeros((900, 5))))


def test_clients_of_the_model_are_drawn_with_the_style_and_hold_its_histograms():
    found = gathered(selection().mdm, **styled()).style
    assert len(found.styled.clients) == 300
    assert found.styled.report.exact
    assert found.styled.style.n_directions == 2


def test_without_a_model_true_clients_lend_their_histograms():
    found = gathered(**styled(clients={"true": true_clients()})).style
    held = found.styled.clients.histograms(found.pool.labels, 10)
    assert sorted(held.tolist()) == sorted(true_clients().tolist())


def test_a_model_of_other_categories_has_no_clients_with_that_style():
    assert gathered(truth("medium/2"), **styled()).style.styled is not None
    found = gathered(**styled(clients={"true": true_clients()[:, :4] + 1})).style
    assert found.styled is None
    assert found.pool is not None


def test_a_pool_without_any_label_of_the_clients_serves_nobody():
    only_nine = np.zeros((4, 10), int)
    only_nine[:, 9] = 3
    features, labels = pool()
    some = labels < 9
    given = styled(features=features[some], labels=labels[some], clients={"true": only_nine})
    assert gathered(**given).style.styled is None


def test_the_page_says_how_many_points_the_pool_lacks():
    features, labels = pool()
    some = labels < 9
    counts = np.full((4, 10), 2)
    given = styled(features=features[some], labels=labels[some], clients={"true": counts})
    material = gathered(**given)
    assert material.style.styled.n_lacking == 8
    facts = dict(style_section(material).facts)
    assert facts["Labels that the pool lacks"] == "8 points of them were left out of these clients."


def test_names_of_labels_are_the_models_else_the_files_else_numbers():
    named = Saved(style(), tuple("abcdefghij"), Made(seed=3))
    assert gathered(style=named).style.labels == tuple("abcdefghij")
    assert gathered(saved(), style=named).style.labels == NAMES
    assert gathered(style=named).style.made.seed == 3
    assert gathered(style=style(), categories=NAMES).style.labels == NAMES


def test_what_else_is_drawn_is_the_same_with_a_style_and_without():
    true = {"true": true_clients()}
    without, with_it = (
        gathered(selection().mdm, clients=true, **given) for given in ({}, styled())
    )
    for name, table in without.clients.items():
        np.testing.assert_array_equal(with_it.clients[name], table)
