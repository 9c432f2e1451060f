"""Runs with a guarantee, over nodes that are played: what is charged, and what is refused."""

import sys

import numpy as np
import pytest

from federation_jobs import job_of
from played_federations import OnDisk, histograms_of, records_of
from polyurn.errors import (
    BudgetError,
    FileError,
    MissingDependencyError,
    NodesError,
    ParameterError,
)
from polyurn.federation.folder import bucket_key
from polyurn.federation.owned_node import ledger_key
from polyurn.federation.server_process import perform, reporters
from polyurn.model.style import Style
from polyurn.privacy.accounting import epsilon_of
from polyurn.privacy.ledger import ExactRelease
from polyurn.storage.ledger_file import LedgerFile
from polyurn.storage.models import load_saved

GUARANTEE = {"epsilon": 1.0, "delta": 1e-6, "trust": "distributed", "components": (1,)}


@pytest.fixture
def here(tmp_path, clock):
    return OnDisk(tmp_path, clock)


def charges(place):
    """Of the federation's ledger, or a node's, whose checksums are keyed."""
    secret = place.parent / "bucket.key"
    key = ledger_key(bucket_key(secret)) if secret.exists() else b""
    return LedgerFile(place, key=key).read()[1:]


def asked_of(here, number):
    """Every kind of question that a node has sent numbers for."""
    log = (here.made.node(f"node-{number}") / "questions.log").read_text().splitlines()
    return {line.split(" | ")[2] for line in log if " mask " in line or " plain " in line}


def test_a_private_fit_is_charged_before_and_says_what_it_guarantees(here):
    folder = here.job(**GUARANTEE)
    perform(here.exchange, folder)
    saved = load_saved(folder.result)
    guarantee = saved.provenance.privacy.guarantee
    assert (round(guarantee.epsilon, 6), guarantee.delta) == (1.0, 1e-6)
    assert guarantee.trust == "distributed"
    assert "differentially private for one client" in saved.provenance.privacy_in_words
    spent = charges(here.made.ledger)
    assert len(spent) == guarantee.n_rounds == saved.provenance.fit.n_rounds
    assert epsilon_of([charge.sigma for charge in spent], 1e-6) == pytest.approx(1.0)
    assert {charge.trust for charge in spent} == {"distributed"}


def test_nodes_are_asked_for_nothing_but_sums_with_noise_of_their_own(here):
    perform(here.exchange, here.job(**GUARANTEE))
    assert {kind.split()[0] for number in (1, 2, 3) for kind in asked_of(here, number)} == {
        "noised"
    }


def test_a_private_choice_of_k_is_charged_once_for_all_k(here):
    folder = here.job(**{**GUARANTEE, "components": (1, 2), "selects": True})
    perform(here.exchange, folder)
    provenance = load_saved(folder.result).provenance
    assert provenance.privacy.guarantee.epsilon == pytest.approx(1.0)
    assert [one["n_components"] for one in provenance.more["candidates"]] == [1, 2]
    assert provenance.fit.candidates == ()


@pytest.mark.parametrize(
    ("secure", "trust"), [(True, "central"), (True, "local"), (False, "central"), (False, "local")]
)
def test_whoever_adds_the_noise_is_named(tmp_path, clock, secure, trust):
    here = OnDisk(tmp_path, clock, policy="secure_only = false\n")
    folder = here.job(**{**GUARANTEE, "secure": secure, "trust": trust})
    perform(here.exchange, folder)
    assert load_saved(folder.result).provenance.privacy.guarantee.trust == trust


def exact_releases(place):
    return [entry for entry in LedgerFile(place).read() if isinstance(entry, ExactRelease)]


def test_a_run_without_a_guarantee_says_so_and_its_exact_releases_are_in_the_ledger(here):
    folder = here.job()
    perform(here.exchange, folder)
    saved = load_saved(folder.result)
    assert saved.provenance.privacy_in_words.startswith("no guarantee")
    entries = LedgerFile(here.made.ledger).read()
    assert entries == exact_releases(here.made.ledger)
    rounds = saved.provenance.traffic.rounds
    assert [one.what for one in entries] == [one.kind for one in rounds]
    assert [one.n_numbers for one in entries] == [one.n_numbers for one in rounds]
    assert len({one.run for one in entries}) == 1


def test_a_guarantee_after_an_exact_run_says_that_no_epsilon_covers_that(here):
    perform(here.exchange, here.job())
    n_exact = len(exact_releases(here.made.ledger))
    folder = here.job(**GUARANTEE)
    perform(here.exchange, folder)
    privacy = load_saved(folder.result).provenance.privacy
    assert privacy.guarantee.n_exact == n_exact > 1
    assert privacy.guarantee.epsilon == pytest.approx(1.0)
    assert f"beside {n_exact} exact releases, which no ε covers" in privacy.statement


def test_a_node_is_asked_nothing_exact_that_the_ledger_does_not_have(here):
    asked = []
    here.exchange.before = lambda: asked.append(len(exact_releases(here.made.ledger)))
    perform(here.exchange, here.job())
    assert asked == [1 + i // 5 for i in range(len(asked))]  # five stages of each secure sum


def test_an_exact_run_that_goes_on_is_one_run_and_enters_no_round_twice(here, tmp_path):
    job = {"checkpoint": str(tmp_path / "rounds")}
    back = cut_after(here.exchange, 2)
    with pytest.raises(ConnectionError):
        perform(here.exchange, here.job(**job))
    back()
    assert len(exact_releases(here.made.ledger)) == 3  # the third was asked, and has no answer
    folder = here.job(**job)
    perform(here.exchange, folder)
    entries = exact_releases(here.made.ledger)
    assert len({one.run for one in entries}) == 1
    assert len(entries) == load_saved(folder.result).provenance.fit.n_rounds + 1


def test_an_exact_run_over_a_damaged_ledger_asks_nobody(here):
    perform(here.exchange, here.job())
    text, n_sent = here.made.ledger.read_text(), len(here.exchange.sent)
    here.made.ledger.write_text(text.replace("survey", "sorvey", 1))
    with pytest.raises(FileError, match="line 2, is damaged"):
        perform(here.exchange, here.job())
    assert len(here.exchange.sent) == n_sent


def test_a_run_that_the_ledger_cannot_pay_to_its_end_asks_nobody(here):
    perform(here.exchange, here.job(**GUARANTEE))
    n_sent, spent = len(here.exchange.sent), charges(here.made.ledger)
    with pytest.raises(BudgetError, match=r"epsilon to 1\.1\d* of 1 .*--ledger-epsilon"):
        perform(here.exchange, here.job(**{**GUARANTEE, "epsilon": 0.5}))
    assert (len(here.exchange.sent), charges(here.made.ledger)) == (n_sent, spent)


def test_a_raised_budget_pays_a_second_run_and_both_are_counted(here):
    perform(here.exchange, here.job(**GUARANTEE))
    folder = here.job(**{**GUARANTEE, "epsilon": 0.5, "ledger_epsilon": 2.0})
    perform(here.exchange, folder)
    guarantee = load_saved(folder.result).provenance.privacy.guarantee
    assert guarantee.epsilon == pytest.approx(0.5)
    assert guarantee.total_epsilon > 1.0
    with pytest.raises(ParameterError, match="never lowered"):
        perform(here.exchange, here.job(**{**GUARANTEE, "ledger_epsilon": 1.5}))
    with pytest.raises(ParameterError, match="expected delta 1e-06"):
        perform(here.exchange, here.job(**{**GUARANTEE, "delta": 1e-7}))


def cut_after(exchange, n_rounds):
    """The server is gone after so many secure sums; call what is returned, and it is back."""
    n_stages = 0

    def fail_later():
        nonlocal n_stages
        n_stages += 1
        if n_stages > 5 * n_rounds:
            raise ConnectionError("no server")

    def back():
        exchange.before = lambda: None

    exchange.before = fail_later
    return back


def test_a_run_that_goes_on_knows_what_it_spent_before_it_was_cut_off(here, tmp_path):
    job = {**GUARANTEE, "checkpoint": str(tmp_path / "rounds")}
    back = cut_after(here.exchange, 2)
    with pytest.raises(ConnectionError):
        perform(here.exchange, here.job(**job))
    back()
    assert len(charges(here.made.ledger)) == 3
    with pytest.raises(BudgetError, match=r"it was not asked.*--ledger-epsilon"):
        perform(here.exchange, here.job(**job))  # the third round would be charged a second time
    assert len(charges(here.made.ledger)) == 3
    folder = here.job(**job, ledger_epsilon=2.0)
    perform(here.exchange, folder)
    spent = charges(here.made.ledger)
    guarantee = load_saved(folder.result).provenance.privacy.guarantee
    spent = [entry for entry in spent if hasattr(entry, "run")]
    assert len({charge.run for charge in spent}) == 1
    assert guarantee.n_rounds == len(spent) == 5
    assert guarantee.epsilon == guarantee.total_epsilon > 1.0


def test_rounds_that_another_ledger_was_charged_for_are_not_gone_on_from(here, tmp_path):
    job = {**GUARANTEE, "checkpoint": str(tmp_path / "rounds")}
    back = cut_after(here.exchange, 2)
    with pytest.raises(ConnectionError):
        perform(here.exchange, here.job(**job))
    back()
    here.made.ledger.unlink()
    with pytest.raises(FileError, match=r"has 0 charges of the run .* 2 rounds"):
        perform(here.exchange, here.job(**job))


def test_a_sum_over_too_few_nodes_has_no_answer_and_is_charged(tmp_path, clock):
    here = OnDisk(tmp_path, clock, n_nodes=4, n_clients=5)
    for node in list(here.nodes.values())[:2]:
        node.answer = None  # connected, and silent
    with pytest.raises(NodesError):
        perform(here.exchange, here.job(**GUARANTEE, ledger_epsilon=9.0, retries=0))
    assert len(charges(here.made.ledger)) == 1


def test_a_round_that_is_begun_again_may_use_the_budget_up(tmp_path, clock):
    here = OnDisk(tmp_path, clock, n_clients=5)
    here.nodes[1].fails = True

    def recover():
        here.nodes[1].fails = not here.exchange.sent

    here.exchange.before = recover
    with pytest.raises(BudgetError, match="or raise the budget with --ledger-epsilon"):
        perform(here.exchange, here.job(**GUARANTEE))
    assert [charge.what for charge in charges(here.made.ledger)][:2] == ["bounded_survey"] * 2


def test_before_the_first_private_round_nodes_have_time_to_come(here):
    late = here.nodes[3]
    late.is_there = False

    def come():
        late.is_there = True

    here.exchange.clock.on_sleep = come
    perform(here.exchange, here.job(**GUARANTEE))
    assert asked_of(here, 3)


def test_owners_who_demand_noise_keep_an_account_of_their_own(tmp_path, clock):
    here = OnDisk(tmp_path, clock, policy="most_epsilon = 1.2\ndelta = 1e-6\n")
    perform(here.exchange, here.job(**GUARANTEE))
    own = [charges(here.made.node(f"node-{i}") / "privacy.ledger") for i in (1, 2, 3)]
    server = [charge.sigma for charge in charges(here.made.ledger)]
    for account in own:
        np.testing.assert_allclose([charge.sigma for charge in account], server)
    with pytest.raises(NodesError, match="refused: node-1, node-2, node-3") as error:
        perform(here.exchange, here.job(**GUARANTEE, ledger_epsilon=9.0, retries=0))
    assert "most_epsilon in its policy.toml allows); they refuse it again until" in str(error.value)


@pytest.mark.parametrize("policy", ["allow_exact = false\n"])
@pytest.mark.parametrize("settings", [{}, {**GUARANTEE, "trust": "central"}])
def test_owners_who_demand_noise_do_not_take_a_servers_word_for_it(
    tmp_path, clock, policy, settings
):
    here = OnDisk(tmp_path, clock, policy=policy, n_clients=5)
    with pytest.raises(NodesError, match="refused: node-1, node-2, node-3"):
        perform(here.exchange, here.job(**settings, retries=0))


def test_central_noise_that_cannot_be_drawn_is_said_before_anything_is_charged(here, monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp", None)
    with pytest.raises(MissingDependencyError, match="central noise needs opendp"):
        perform(here.exchange, here.job(**{**GUARANTEE, "trust": "central"}))
    assert charges(here.made.ledger) == []


def test_on_a_ring_a_node_counts_its_neighbourhood_only():
    n_reporters, n_colluding = reporters(400, job_of("fed"))
    assert 2 < n_colluding < n_reporters < 0.7 * 400


def test_too_few_reporters_for_so_many_who_may_collude_is_said():
    with pytest.raises(ParameterError, match=r"at least 6 of 20 nodes.*larger min_fraction"):
        reporters(20, job_of("fed", min_fraction=0.1))


# ------------------------------------------------------------------------------------------- styles

# With so much budget the noise is small beside sixty clients.
STYLE = {"epsilon": 200.0, "delta": 1e-6, "trust": "distributed"}


@pytest.fixture
def with_records(tmp_path, clock):
    return OnDisk(tmp_path, clock, held=records_of(3)[1])


def test_a_private_style_is_charged_once_and_says_what_it_guarantees(with_records):
    here = with_records
    folder = here.style_job(**STYLE)
    perform(here.exchange, folder)
    saved = load_saved(folder.result, Style)
    guarantee = saved.provenance.privacy.guarantee
    assert guarantee.epsilon == pytest.approx(200.0)
    assert (guarantee.n_rounds, guarantee.trust) == (1, "distributed")
    (charge,) = charges(here.made.ledger)
    assert (charge.what, charge.trust) == ("bounded_style", "distributed")
    assert asked_of(here, 2) == {"noised bounded_style"}
    assert saved.model.n_clients == pytest.approx(60, abs=2)


def test_a_style_and_a_mixture_are_charged_to_the_same_ledger(with_records):
    here = with_records
    perform(here.exchange, here.job(**GUARANTEE, ledger_epsilon=210.0))
    n_sent = len(here.exchange.sent)
    with pytest.raises(BudgetError, match=r"epsilon to .* of 210 .*it was not asked"):
        perform(here.exchange, here.style_job(**{**STYLE, "epsilon": 210.0}))
    assert len(here.exchange.sent) == n_sent
    folder = here.style_job(**STYLE)
    perform(here.exchange, folder)
    guarantee = load_saved(folder.result, Style).provenance.privacy.guarantee
    assert guarantee.epsilon == pytest.approx(200.0)
    assert guarantee.total_epsilon > 200.0


def test_a_private_style_after_an_exact_one_says_that_no_epsilon_covers_that(with_records):
    here = with_records
    perform(here.exchange, here.style_job())
    (release,) = exact_releases(here.made.ledger)
    assert release.what == "style_moments"
    folder = here.style_job(**STYLE)
    perform(here.exchange, folder)
    said = load_saved(folder.result, Style).provenance.privacy_in_words
    assert "beside 1 exact release, which no ε covers" in said


def test_a_second_style_beyond_the_budget_asks_nobody(with_records):
    here = with_records
    perform(here.exchange, here.style_job(**STYLE))
    n_sent = len(here.exchange.sent)
    with pytest.raises(BudgetError, match=r"it was not asked: raise .* with --ledger-epsilon$"):
        perform(here.exchange, here.style_job(**STYLE))  # no noise would help
    assert len(here.exchange.sent) == n_sent
    assert len(charges(here.made.ledger)) == 1


def test_a_style_that_too_many_nodes_refuse_is_not_asked_and_charged_again(tmp_path, clock):
    _, parts = records_of(2)
    here = OnDisk(tmp_path, clock, held=[*parts, histograms_of(20, 3)])
    with pytest.raises(NodesError, match=r"no sum .*refused: node-3 \(it has histograms"):
        perform(here.exchange, here.style_job(**STYLE, ledger_epsilon=900.0))
    assert len(charges(here.made.ledger)) == 1


def test_a_style_that_the_budget_does_not_allow_to_begin_again_says_why_there_was_no_sum(
    with_records,
):
    here = with_records
    here.nodes[3].fails = True
    with pytest.raises(BudgetError) as error:
        perform(here.exchange, here.style_job(**STYLE))
    said = str(error.value)
    assert said.startswith("no sum: ")
    assert "refused: node-3 (the transport says that it failed); begun again, bounded_style" in said
    assert said.endswith("raise the budget with --ledger-epsilon")


@pytest.mark.parametrize("trust", ["central", "local"])
def test_whoever_adds_the_noise_of_a_style_is_named(with_records, trust):
    folder = with_records.style_job(**{**STYLE, "epsilon": 2000.0, "trust": trust})
    perform(with_records.exchange, folder)
    assert load_saved(folder.result, Style).provenance.privacy.guarantee.trust == trust


def test_owners_who_demand_noise_are_asked_for_their_style_on_the_same_account(tmp_path, clock):
    policy = "allow_exact = false\nmost_epsilon = 250.0\ndelta = 1e-6\n"
    here = OnDisk(tmp_path, clock, policy=policy, held=records_of(3)[1])
    with pytest.raises(
        NodesError, match=r"refused: node-1, node-2, node-3 \(it answers only with its own noise"
    ):
        perform(here.exchange, here.style_job(retries=0))
    perform(here.exchange, here.style_job(**STYLE))
    own = charges(here.made.node("node-1") / "privacy.ledger")
    assert [charge.what for charge in own] == ["noised bounded_style"]
    spent = "it would cost more privacy than most_epsilon in its policy.toml allows"
    with pytest.raises(NodesError, match=rf"refused: node-1, node-2, node-3 \({spent}\)"):
        perform(here.exchange, here.style_job(**STYLE, ledger_epsilon=900.0, retries=0))


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        ("most_numbers = 15\n", "the question has or asks for too many numbers"),
        ("rounds_per_day = 0\n", "it was asked too often in a day"),
        ("allow_exact = false\n", "it answers only with its own noise: --epsilon, or join with"),
    ],
)
def test_a_policy_holds_for_questions_about_style_too(tmp_path, clock, policy, why):
    here = OnDisk(tmp_path, clock, policy=policy, held=records_of(3)[1])
    with pytest.raises(NodesError, match=rf"refused: node-1, node-2, node-3 \({why}"):
        perform(here.exchange, here.style_job(retries=0))
