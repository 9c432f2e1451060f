"""The zoo's models and cards, and models laid over somebody's labels."""

import re
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

import polyurn as pu
from polyurn.errors import FileError, ParameterError, PolyurnError
from polyurn.storage.models import ZOO_FOLDER
from polyurn.zoo.cards import FEW_CLIENTS, MOST_AUC


def test_there_are_at_least_twenty_federations_of_300_clients():
    cards = [pu.zoo.card(name) for name in pu.zoo.names()]
    assert sum(card.n_clients >= FEW_CLIENTS for card in cards) >= 20
    for card in cards:
        few = any("Few clients" in sentence for sentence in card.warnings)
        assert few == (card.n_clients < FEW_CLIENTS)


@pytest.mark.parametrize("name", pu.zoo.names())
def test_a_card_is_that_of_its_model(name):
    card, mdm = pu.zoo.card(name), pu.zoo.load(name)
    assert (card.name, card.n_categories, card.n_components) == (
        name,
        mdm.n_categories,
        mdm.n_components,
    )
    assert mdm.max_size == card.sizes[2]
    assert len(mdm.categories) == card.n_categories
    assert mdm.mean().sum() == pytest.approx(card.n_points / card.n_clients, rel=0.1)
    assert all((card.client, card.category, card.source, card.date, card.licence, card.command))


@pytest.mark.parametrize("name", pu.zoo.names())
def test_a_model_whose_clients_can_be_told_from_true_ones_says_so(name):
    card = pu.zoo.card(name)
    told = [s for s in card.warnings if "from true ones:" in s]
    assert bool(told) != card.passes
    assert card.likeness["mdm"].auc.value <= MOST_AUC or any("AUC" in s for s in told)


def test_simulated_clients_of_fifteen_federations_are_as_near_as_true_ones():
    """By the energy ratio of true clients, and by a classifier's AUC of at most 0.60."""
    assert sum(pu.zoo.card(name).passes for name in pu.zoo.names()) >= 15


def test_all_models_and_cards_take_less_than_two_megabytes_of_a_wheel():
    """Each file is compressed by itself, as in a wheel."""
    files = ZOO_FOLDER.rglob("*.json")
    assert sum(len(zlib.compress(file.read_bytes())) for file in files) < 2_000_000


def test_importing_the_package_does_not_load_the_zoo():
    code = "import sys, polyurn; print(any('zoo' in name for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_model_of_the_zoo_is_opened_where_a_file_is():
    assert pu.load("zoo:lecturers") == pu.zoo.load("lecturers")


@pytest.mark.parametrize(
    ("name", "words"), [("celeba_hare", "did you mean celeba_hair"), ("x", "polyurn zoo")]
)
def test_an_unknown_name_is_one_line_with_what_there_is(name, words):
    for opened in (pu.zoo.load, pu.zoo.card, lambda name: pu.load(f"zoo:{name}")):
        with pytest.raises(FileError, match=words):
            opened(name)


def test_the_names_of_the_zoo_are_listed():
    assert dir(pu.zoo) == ["card", "like", "load", "names", "nearest"]


def test_a_relabelled_federation_is_shown_on_a_line_with_its_labels_and_size():
    shown = repr(pu.zoo.like("rodents", ["x", "y", "z"], mean_size=30))
    assert shown.startswith("Relabelled(n_categories=3 (x, y, z), mean_size=30, mdm=MDM(")
    assert "\n" not in shown
    assert repr(pu.zoo.like("rodents", [0, 1])).startswith("Relabelled(n_categories=2, mean_size=")


def test_labels_may_be_numbers_or_texts():
    by_number = pu.zoo.like("flights", [0, 1, 2, 2, 2, 1])
    by_name = pu.zoo.like("flights", ["x", "y", "z", "z", "z", "y"])
    assert by_number.categories is None
    assert by_name.categories == ("x", "y", "z")
    assert np.array_equal(by_number.alphas, by_name.alphas)
    assert np.argsort(by_number.mean()).tolist() == [0, 1, 2]


def test_a_dataset_is_cut_by_its_own_labels():
    labels = np.repeat(["cat", "dog", "bird"], 200)
    mdm = pu.zoo.like("celeba_hair", labels, mean_size=50)
    parts = pu.partition(labels, mdm, n_clients=400, rng=0)
    assert len(parts) == 400
    assert parts.sizes.mean() == pytest.approx(50, rel=0.05)


@pytest.mark.parametrize(
    "labels",
    [[], [[1, 2]], [-1, 2], [0.5, 1.0], [None, "a"], [1, 10**12], ["a", "a"], 3, object(), None],
)
def test_labels_that_are_none_are_refused(labels):
    with pytest.raises(ParameterError):
        pu.zoo.like("flights", labels)


@pytest.mark.parametrize("given", [None, 3, "x", [[-1, 2]], [[1, 2]], object()])
def test_clients_that_are_none_are_refused(given):
    with pytest.raises(PolyurnError):
        pu.zoo.nearest(given)


def test_missing_values_do_not_become_a_label_in_silence():
    with pytest.raises(ParameterError, match="an empty text at position 1"):
        pu.zoo.like("rodents", ["ant", "", "bee"])
    with pytest.warns(UserWarning, match="taken as labels, and not as missing values: NA"):
        pu.zoo.like("rodents", ["ant", "NA", "bee"])


def test_no_federation_lacks_a_rule_that_the_page_does_not_name():
    page = Path(__file__).parents[2].joinpath("docs", "which-partition.md").read_text("utf-8")
    sentence = re.search(r"entropy\. Not for ([^.]*), whose models", page)[1]
    lacking = [name for name in pu.zoo.names() if pu.zoo.load(name).splits is not None]
    assert re.findall("`([a-z_]+)`", sentence) == lacking
    for name in lacking:
        with pytest.raises(ParameterError, match="cannot be given your labels' shares"):
            pu.zoo.like(name, ["ant", "bee", "bee"], match="marginal")
    pu.zoo.like("celeba_hair", ["ant", "bee", "bee"], match="marginal")
