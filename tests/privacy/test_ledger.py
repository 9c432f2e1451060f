import pytest

from polyurn.errors import BudgetError, ParameterError
from polyurn.privacy.accounting import sigma_for
from polyurn.privacy.ledger import Budget, Charge, PrivacyLedger, Renewal


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


def clocked(epsilon=2.0, renewal="monthly:1"):
    """A ledger and the list of times that its clock says, the last of them from now on."""
    times = ["2026-01-30T10:00:00+00:00"]
    ledger = PrivacyLedger(epsilon, 1e-6, renewal=Renewal.of(renewal), now=lambda: times[-1])
    return ledger, times


def test_what_a_month_may_spend_renews_and_what_all_months_may_does_not():
    one = sigma_for(1.0, 1e-6)
    ledger, times = clocked(1.6)
    ledger.charge("look", one, 10)
    with pytest.raises(BudgetError, match=r"of 1 for 2026-01 .*wait for the next period"):
        ledger.charge("look", 100.0, 10)
    times.append("2026-02-01T00:00:00+00:00")
    ledger.charge("look", one, 10)
    times.append("2026-03-01T00:00:00+00:00")
    with pytest.raises(BudgetError, match=r"of 1\.6 \(.*raise the budget"):
        ledger.charge("look", one, 10)
    assert [charge.when[:7] for charge in ledger.charges] == ["2026-01", "2026-02"]


def test_a_clock_that_goes_back_begins_no_period_anew():
    ledger, times = clocked()
    ledger.charge("look", sigma_for(1.0, 1e-6), 10)
    times.append("2025-12-31T00:00:00+00:00")
    with pytest.raises(BudgetError, match="for 2026-01"):
        ledger.charge("look", 100.0, 10)


def test_a_renewal_stays_until_another_one_replaces_it_and_counts_older_charges():
    ledger, _ = clocked(renewal=None)
    ledger.charge("look", sigma_for(0.9, 1e-6), 10)
    kept = ledger.entries
    later = {"entries": kept, "now": lambda: "2026-01-31T00:00:00+00:00"}
    with pytest.raises(BudgetError, match=r"of 0\.8 for 2026-01"):
        PrivacyLedger(2.0, 1e-6, renewal=Renewal("monthly", 0.8), **later).charge("look", 50.0, 10)
    again = PrivacyLedger(2.0, 1e-6, **later)
    assert again.budget.renewal == Renewal("monthly", 0.8)
    again.raise_to(3.0)
    assert again.budget == Budget(3.0, 1e-6, Renewal("monthly", 0.8))


def test_several_releases_are_refused_together_before_the_first_is_charged():
    ledger, _ = clocked()
    third = sigma_for(1.0, 1e-6) * 3**0.5
    ledger.check([third] * 3, "3 questions")
    with pytest.raises(BudgetError, match="4 questions would bring epsilon to"):
        ledger.check([third] * 4, "4 questions")
    assert ledger.charges == ()


def test_a_period_alone_keeps_the_rule_that_there_is_however_much_a_run_wants():
    ledger, _ = clocked(renewal="monthly:0.5")
    kept = ledger.entries.read()
    assert Renewal.of("monthly", 2.0, kept) == Renewal("monthly", 0.5)
    assert Renewal.of("monthly:1", 2.0, kept) == Renewal("monthly", 1.0)
    assert Renewal.of("daily", 2.0, kept) == Renewal("daily", 2.0)
    assert Renewal.of("monthly", 2.0) == Renewal("monthly", 2.0)


def test_a_clock_that_was_ahead_for_one_charge_gives_one_period_and_never_more_than_the_whole():
    one = sigma_for(1.0, 1e-6)
    ledger, times = clocked(1.6)
    for when in ("2026-01-30", "2027-01-01"):
        times.append(f"{when}T00:00:00+00:00")
        ledger.charge("look", one, 10)
    times.append("2026-01-31T00:00:00+00:00")
    with pytest.raises(BudgetError, match="for 2027-01"):
        ledger.charge("look", 9.0, 10)
    times.append("2029-01-01T00:00:00+00:00")
    with pytest.raises(BudgetError, match=r"of 1\.6 \("):
        ledger.charge("look", one, 10)


@pytest.mark.parametrize(
    "text",
    [
        "weekly:1", "monthly:", "monthly:x", "monthly:0", "monthly", ":1", "monthly:inf",
        "monthly:nan", "monthly:1e7",
    ],
)  # fmt: skip
def test_a_renewal_that_says_nothing_is_refused(text):
    with pytest.raises(ParameterError, match="expected a renewal"):
        Renewal.of(text)
