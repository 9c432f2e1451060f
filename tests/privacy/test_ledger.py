import pytest

from polyurn.errors import BudgetError, ParameterError
from polyurn.privacy.accounting import sigma_for
from polyurn.privacy.ledger import Charge, PrivacyLedger


def test_a_plan_that_uses_the_whole_budget_fits_into_it():
    sigma = sigma_for(1.0, 1e-6)
    ledger = PrivacyLedger(1.0, 1e-6)
    for _ in range(12):
        ledger.charge("score", sigma * 12**0.5, 32)
    assert ledger.epsilon_spent == pytest.approx(1.0)
    with pytest.raises(BudgetError, match=r"would bring epsilon to 1\.04"):
        ledger.charge("score", sigma * 12**0.5, 32)
    assert len(ledger.charges) == 12


def test_a_second_fit_on_the_same_clients_adds_up():
    ledger = PrivacyLedger(1.0, 1e-6)
    ledger.charge("first fit", 6.0, 10)
    before = ledger.epsilon_spent
    ledger.charge("second fit", 6.0, 10)
    assert before < ledger.epsilon_spent < 2 * before


def test_what_is_left_uses_the_budget_up():
    ledger = PrivacyLedger(1.0, 1e-6)
    ledger.charge("survey", 9.0, 10)
    left = (sigma_for(1.0, 1e-6) ** -2 - 9.0**-2) ** -0.5
    with pytest.raises(BudgetError):
        ledger.charge("more than the rest", left * (1 - 1e-6), 10)
    ledger.charge("the rest", left * (1 + 1e-9), 10)
    assert ledger.epsilon_spent == pytest.approx(1.0)


def test_a_budget_is_raised_by_a_decision_that_is_kept():
    ledger = PrivacyLedger(1.0, 1e-6)
    ledger.charge("survey", 4.3, 10)
    with pytest.raises(BudgetError):
        ledger.charge("survey", 4.3, 10)
    ledger.raise_to(2.0)
    ledger.charge("survey", 4.3, 10)
    assert (ledger.budget.epsilon, len(ledger.charges)) == (2.0, 2)
    with pytest.raises(ParameterError, match="above 2"):
        ledger.raise_to(1.0)


@pytest.mark.parametrize(
    ("sigma", "change_norm"), [(0.0, 1.0), (-1.0, 1.0), (1.0, 0.0), (1.0, 2.1)]
)
def test_a_charge_out_of_range_is_refused(sigma, change_norm):
    with pytest.raises(ParameterError):
        Charge("survey", sigma, 10, change_norm=change_norm)
