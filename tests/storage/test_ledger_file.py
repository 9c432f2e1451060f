import json
import os
import signal
import subprocess
import sys

import pytest

from polyurn.errors import BudgetError, FileError, ParameterError
from polyurn.privacy.ledger import Charge, ExactRelease, Renewal
from polyurn.storage.ledger_file import LedgerFile, open_ledger, raised_ledger


@pytest.fixture
def path(tmp_path):
    return tmp_path / "mdm.ledger"


def opened(path, epsilon=1.0, delta=1e-6):
    return open_ledger(path, epsilon=epsilon, delta=delta)


def test_what_was_charged_is_there_in_the_next_process(path):
    opened(path).charge("survey", 9.0, 20, trust="distributed", change_norm=0.9)
    (charge,) = opened(path).charges
    assert (charge.what, charge.sigma, charge.n_numbers) == ("survey", 9.0, 20)
    assert (charge.trust, charge.change_norm) == ("distributed", 0.9)


def test_a_budget_used_up_is_used_up_in_the_next_process(path):
    opened(path).charge("survey", 4.3, 20)
    with pytest.raises(BudgetError):
        opened(path).charge("survey", 4.3, 20)


def test_another_budget_than_the_files_is_refused(path):
    opened(path)
    with pytest.raises(ParameterError, match="expected the ledger's budget, epsilon 1"):
        opened(path, epsilon=2.0)


def test_a_larger_budget_is_a_line_of_the_file_and_what_was_spent_stays_spent(path):
    opened(path).charge("survey", 9.0, 20)
    before = path.read_text()
    ledger = raised_ledger(path, epsilon=2.0, delta=1e-6, first=0.5)
    assert (ledger.budget.epsilon, len(ledger.charges)) == (2.0, 1)
    added = path.read_text().removeprefix(before).splitlines()
    assert [json.loads(line)["budget"]["epsilon"] for line in added] == [2.0]
    assert raised_ledger(path, epsilon=2.0, delta=1e-6, first=0.5).budget.epsilon == 2.0
    assert len(path.read_text().removeprefix(before).splitlines()) == 1


def test_a_budget_that_is_not_given_is_that_of_the_file_or_the_first_one(path, tmp_path):
    assert raised_ledger(path, epsilon=None, delta=1e-6, first=0.5).budget.epsilon == 0.5
    assert raised_ledger(path, epsilon=None, delta=1e-6, first=3.0).budget.epsilon == 0.5
    assert (
        raised_ledger(tmp_path / "other", epsilon=2.0, delta=1e-6, first=0.5).budget.epsilon == 2.0
    )


@pytest.mark.parametrize(
    ("other", "why"),
    [({"epsilon": 0.9}, "raised, never lowered"), ({"delta": 1e-7}, "expected delta 1e-06")],
)
def test_a_budget_is_not_lowered_and_its_delta_stays(path, other, why):
    opened(path)
    with pytest.raises(ParameterError, match=why):
        raised_ledger(path, **{"epsilon": 1.0, "delta": 1e-6, "first": 1.0, **other})
    assert opened(path).budget.epsilon == 1.0


@pytest.mark.parametrize(
    ("renew", "epsilon", "why"),
    [("monthly:0.9", 0.5, "never lowered"), ("monthly:inf", None, "expected a renewal")],
)
def test_a_refused_budget_leaves_the_rule_as_it_was(path, renew, epsilon, why):
    raised_ledger(path, epsilon=1.0, delta=1e-6, first=1.0, renew="monthly:0.2")
    before = path.read_bytes()
    with pytest.raises(ParameterError, match=why):
        raised_ledger(path, epsilon=epsilon, delta=1e-6, first=1.0, renew=renew)
    assert path.read_bytes() == before


def test_a_run_that_names_the_period_alone_does_not_loosen_the_rule(path):
    for first in (0.5, 2.0):
        ledger = raised_ledger(path, epsilon=4.0, delta=1e-6, first=first, renew="monthly")
        assert ledger.budget.renewal == Renewal("monthly", 0.5)


def test_charges_of_before_there_were_rules_count_in_every_month(path):
    opened(path)
    LedgerFile(path).append(Charge("survey", 6.0, 20))
    assert b"when" not in path.read_bytes()
    assert b"renewal" not in path.read_bytes()
    ledger = raised_ledger(path, epsilon=None, delta=1e-6, first=1.0, renew="daily:0.7")
    with pytest.raises(BudgetError, match=r"of 0\.7 for 20"):
        ledger.charge("look", 9.0, 20)


def test_two_who_have_one_ledger_open_share_what_a_period_may_spend(path):
    first, second = (
        raised_ledger(path, epsilon=9.0, delta=1e-6, first=9.0, renew="yearly:1") for _ in range(2)
    )
    first.charge("look", 5.0, 20)
    with pytest.raises(BudgetError, match="of 1 for 20"):
        second.charge("look", 5.0, 20)


def test_nothing_is_ever_rewritten(path):
    ledger = opened(path)
    seen = path.read_bytes()
    for _ in range(3):
        ledger.charge("score", 20.0, 32)
        assert path.read_bytes().startswith(seen)
        seen = path.read_bytes()


def test_a_charge_survives_a_process_that_is_killed_before_the_answer(path):
    code = (
        "import os, signal, sys\n"
        "from polyurn.storage.ledger_file import open_ledger\n"
        "open_ledger(sys.argv[1], epsilon=1.0, delta=1e-6).charge('score', 9.0, 32)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(opened(path).charges) == 1


def test_two_processes_cannot_both_spend_the_last_of_a_budget(path):
    opened(path)
    code = (
        "import sys\n"
        "from polyurn.errors import BudgetError\n"
        "from polyurn.storage.ledger_file import open_ledger\n"
        "ledger = open_ledger(sys.argv[1], epsilon=1.0, delta=1e-6)\n"
        "for _ in range(20):\n"
        "    try:\n"
        "        ledger.charge('score', 13.4, 32)\n"
        "    except BudgetError:\n"
        "        pass\n"
    )
    both = [subprocess.Popen([sys.executable, "-c", code, str(path)]) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    assert len(opened(path).charges) == 10  # 13.4 / sigma_for(1, 1e-6) squared is 10.06


def test_a_last_line_that_was_cut_off_is_a_charge_that_was_never_made(path):
    ledger = opened(path)
    ledger.charge("survey", 9.0, 20)
    whole = path.read_bytes()
    path.write_bytes(whole + whole.splitlines(keepends=True)[-1][:-30])
    again = opened(path)
    assert len(again.charges) == 1
    again.charge("score", 20.0, 32)
    assert [charge.what for charge in opened(path).charges] == ["survey", "score"]


def test_a_last_line_that_lacks_only_its_end_is_a_charge(path):
    opened(path).charge("survey", 9.0, 20)
    path.write_bytes(path.read_bytes()[:-1])
    again = opened(path)
    assert len(again.charges) == 1
    again.charge("score", 20.0, 32)
    assert [charge.what for charge in opened(path).charges] == ["survey", "score"]


def test_no_bit_that_flips_loses_a_charge(path):
    ledger = opened(path)
    ledger.charge("survey", 9.0, 20)
    ledger.charge("score", 20.0, 32)
    whole, charges = path.read_bytes(), ledger.charges
    for place in range(0, len(whole)):
        for bit in (0, 5):
            path.write_bytes(
                whole[:place] + bytes([whole[place] ^ (1 << bit)]) + whole[place + 1 :]
            )
            try:
                assert [*LedgerFile(path).read()][1:] == [*charges]
            except FileError:
                continue


def _flipped(path, number, old, new):
    lines = path.read_bytes().splitlines(keepends=True)
    assert old in lines[number]
    lines[number] = lines[number].replace(old, new)
    path.write_bytes(b"".join(lines))


@pytest.mark.parametrize(("old", "new"), [(b"9.0", b"90.0"), (b"charge", b"budget"), (b"{", b"")])
def test_a_line_that_was_changed_is_refused_in_one_line(path, old, new):
    ledger = opened(path)
    ledger.charge("survey", 9.0, 20)
    ledger.charge("score", 20.0, 32)
    _flipped(path, 2, old, new)
    with pytest.raises(FileError, match=r"line 3, is damaged: .* is not known") as error:
        opened(path)
    assert "\n" not in str(error.value)


def test_a_line_that_was_taken_out_is_noticed(path):
    ledger = opened(path)
    ledger.charge("survey", 9.0, 20)
    ledger.charge("score", 20.0, 32)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2] + lines[3:]))
    with pytest.raises(FileError, match="damaged"):
        opened(path)


def test_another_file_and_a_later_version_are_refused(path):
    path.write_text('{"format": "polyurn.mdm", "version": 3}\n')
    with pytest.raises(FileError, match="not a privacy ledger"):
        opened(path)
    path.write_text(json.dumps({"format": "polyurn.ledger", "version": 4}) + "\n")
    with pytest.raises(FileError, match="newer than 3: upgrade polyurn"):
        opened(path)


@pytest.mark.parametrize("text", [b"my diary", b"3", b'{"a": 1}', b"{'"])
def test_another_file_is_left_as_it_is_even_if_its_only_line_has_no_end(path, text):
    path.write_bytes(text)
    with pytest.raises(FileError, match="is not a privacy ledger"):
        opened(path)
    assert path.read_bytes() == text


def test_a_ledger_is_its_owners(path):
    opened(path)
    assert os.stat(path).st_mode & 0o077 == 0


def test_a_place_that_cannot_be_used_is_refused(tmp_path):
    with pytest.raises(FileError, match="cannot"):
        LedgerFile(tmp_path / "nowhere" / "ledger")
    with pytest.raises(FileError, match="Is a directory"):
        LedgerFile(tmp_path)


# ------------------------------------------------------------------------------- exact releases

EXACT = ExactRelease("survey", 30, "a run", "2026-01-31T12:00:00+00:00")


def test_an_exact_release_is_there_in_the_next_process_and_costs_no_epsilon(path):
    opened(path).charge("survey", 9.0, 20)
    before = opened(path).epsilon_spent
    LedgerFile(path).append(EXACT)
    ledger = opened(path)
    assert (ledger.n_exact, len(ledger.charges), ledger.epsilon_spent) == (1, 1, before)
    assert LedgerFile(path).read()[-1] == EXACT


@pytest.mark.parametrize("epsilon", [None, 2.0])
def test_a_file_of_exact_releases_only_has_no_budget_until_one_is_given(path, epsilon):
    for _ in range(2):
        LedgerFile(path).append(EXACT)
    ledger = raised_ledger(path, epsilon=epsilon, delta=1e-6, first=0.5)
    assert (ledger.budget.epsilon, ledger.n_exact, ledger.charges) == (epsilon or 0.5, 2, ())
    assert raised_ledger(path, epsilon=3.0, delta=1e-6, first=0.5).budget.epsilon == 3.0


def test_a_file_of_exact_releases_is_opened_with_any_budget(path):
    LedgerFile(path).append(EXACT)
    assert opened(path, epsilon=4.0).n_exact == 1
    with pytest.raises(ParameterError, match="expected the ledger's budget, epsilon 4"):
        opened(path, epsilon=1.0)


def test_an_exact_release_that_was_changed_is_damage(path):
    LedgerFile(path).append(EXACT)
    LedgerFile(path).append(EXACT)
    path.write_text(path.read_text().replace("a run", "b run", 1))
    with pytest.raises(FileError, match="line 2, is damaged"):
        opened(path)
