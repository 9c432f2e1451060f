from dataclasses import replace

import pytest

from polyurn.errors import FileError, ParameterError
from polyurn.privacy.accounting import epsilon_of, sigma_for
from polyurn.privacy.ledger import Charge
from polyurn.privacy.statement import Guarantee, in_words
from polyurn.typed.json_form import from_json, to_json


def test_a_changed_record_costs_as_much_as_a_replaced_client_where_nothing_better_is_proved():
    charges = [Charge("score", 6.0, 32), Charge("score", 8.0, 32)]
    guarantee = Guarantee.of(charges, 1e-6)
    assert guarantee.record_epsilon == epsilon_of([3.0, 4.0], 1e-6)
    assert guarantee.record_epsilon > guarantee.epsilon
    assert "no better" in in_words(guarantee)


def test_a_proved_change_is_counted_release_by_release():
    charges = [Charge("survey", 6.0, 20, change_norm=0.5), Charge("score", 8.0, 32)]
    assert Guarantee.of(charges, 1e-6).record_epsilon == epsilon_of([12.0, 4.0], 1e-6)


def test_epsilon_is_printed_as_it_was_asked_for_and_never_rounded_down():
    asked = Guarantee.of([Charge("score", sigma_for(1.0, 1e-6), 32)], 1e-6)
    assert in_words(asked).startswith("(1, 1e-06)-differentially private for one client, added or")
    more = Guarantee.of([Charge("score", sigma_for(1.0001, 1e-6), 32)], 1e-6)
    assert in_words(more).startswith("(1.01, 1e-06)")


def test_earlier_releases_are_said():
    charges = [Charge("score", 6.0, 32)]
    guarantee = Guarantee.of(charges, 1e-6, earlier=charges)
    assert guarantee.total_epsilon == epsilon_of([6.0, 6.0], 1e-6)
    assert "earlier releases" in in_words(guarantee)
    assert "earlier" not in in_words(Guarantee.of(charges, 1e-6))


@pytest.mark.parametrize(
    ("n_exact", "words"), [(1, "beside 1 exact release,"), (14, "beside 14 exact releases,")]
)
def test_exact_releases_are_said_beside_epsilon(n_exact, words):
    noised = Guarantee.of([Charge("score", 6.0, 32)], 1e-6)
    assert "exact release" not in in_words(noised)
    guarantee = replace(noised, n_exact=n_exact)
    assert f"added or removed, {words} which no ε covers. Trust" in in_words(guarantee)
    assert from_json(Guarantee, to_json(guarantee)) == guarantee


def test_the_weakest_trust_model_of_all_releases_is_the_models():
    charges = [Charge("a", 6.0, 1, "local"), Charge("b", 6.0, 1, "distributed")]
    assert Guarantee.of(charges, 1e-6).trust == "distributed"


def test_no_guarantee_is_said_in_as_many_words():
    assert in_words(None).startswith("no guarantee")
    with pytest.raises(ParameterError, match="no guarantee"):
        Guarantee.of([], 1e-6)


def test_a_guarantee_comes_back_from_its_record():
    guarantee = Guarantee.of([Charge("score", 6.0, 32)], 1e-6)
    assert from_json(Guarantee, to_json(guarantee)) == guarantee
    with pytest.raises(FileError):
        from_json(Guarantee, {**to_json(guarantee), "epsilon": -1.0})
    with pytest.raises(FileError):
        from_json(Guarantee, {**to_json(guarantee), "trust": "nobody"})
