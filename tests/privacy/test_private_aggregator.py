import numpy as np
import pytest

from polyurn import Journal, LocalAggregator, ReplayAggregator, SizeBins, fit_private, open_ledger
from polyurn.errors import BudgetError, FileError, InputError, NodesError, ParameterError
from polyurn.model.paper_truths import truth
from polyurn.privacy.accounting import epsilon_of
from polyurn.privacy.ledger import PrivacyLedger
from polyurn.privacy.private_aggregator import ExactAggregator, PrivateAggregator
from polyurn.storage.ledger_file import LedgerFile
from polyurn.wire import Noised, Survey
from private_questions import AskShares, Clients

VECTORS = np.random.default_rng(0).normal(size=(50, 4)) / 3
COUNTS = truth("medium/1").sample(60, rng=0)
SURVEY = Survey(10, SizeBins.exact(20), pairs=False)


def private(clients=None, *, epsilon=1.0, **options):
    ledger = PrivacyLedger(epsilon, 1e-6)
    return PrivateAggregator(clients or Clients(VECTORS), ledger=ledger, **options)


def test_a_release_is_the_sum_plus_noise_of_the_size_that_was_asked_for():
    asked = Noised(AskShares(4), 20.0)
    clients = Clients(VECTORS)
    exact = clients.aggregate(asked.query, None).shares
    aggregator = private(clients, epsilon=1e3)
    released = np.array([aggregator.aggregate(asked, None).shares for _ in range(500)]) - exact
    # 5 standard errors of 2,000 draws: a false alarm in a million.
    assert abs(released.std() / 20.0 - 1) < 5 / np.sqrt(2 * 2000)
    assert abs(released.mean()) < 5 * 20.0 / np.sqrt(2000)


def test_every_release_is_charged_with_its_noise_its_numbers_and_its_trust_model():
    aggregator = private()
    aggregator.aggregate(Noised(AskShares(4), 20.0), None)
    (charge,) = aggregator.ledger.charges
    assert (charge.what, charge.sigma, charge.n_numbers) == (AskShares(4).text, 20.0, 4)
    assert (charge.trust, charge.change_norm) == ("central", 2.0)


def test_nobody_is_asked_what_the_budget_does_not_allow():
    clients = Clients(VECTORS)
    with pytest.raises(BudgetError, match="it was not asked"):
        private(clients).aggregate(Noised(AskShares(4), 1.0), None)
    assert clients.asked == []


def test_a_round_that_fails_stays_charged_and_is_charged_again():
    class Failing(Clients):
        def aggregate(self, query, cohort_size):
            raise NodesError("nobody is there")

    aggregator = private(Failing(VECTORS))
    for _ in range(2):
        with pytest.raises(NodesError):
            aggregator.aggregate(Noised(AskShares(4), 20.0), None)
    assert len(aggregator.ledger.charges) == 2


def test_a_round_that_is_begun_again_inside_is_charged_each_time():
    class Retrying(Clients):
        def retried(self, query, cohort_size, *, before):
            for _ in range(3):
                before()
            return self.aggregate(query, cohort_size)

    aggregator = private(Retrying(VECTORS))
    aggregator.aggregate(Noised(AskShares(4), 20.0), None)
    assert len(aggregator.ledger.charges) == 3


def test_a_recorded_round_is_not_charged_again_and_one_without_an_answer_is():
    class Killed(Clients):
        n_left = 2

        def aggregate(self, query, cohort_size):
            self.n_left -= 1
            if self.n_left < 0:
                raise KeyboardInterrupt
            return super().aggregate(query, cohort_size)

    kept, ledger, asked = [], PrivacyLedger(1.0, 1e-6), Noised(AskShares(4), 20.0)
    ledger.charge("another fit", 20.0, 4)
    private_one = PrivateAggregator(Killed(VECTORS), ledger=ledger, run="fit 2")
    first = ReplayAggregator(private_one, kept)
    answers = [first.aggregate(asked, None).shares for _ in range(2)]
    with pytest.raises(KeyboardInterrupt):
        first.aggregate(asked, None)
    assert len(ledger.charges) == 4

    going_on = PrivateAggregator(Clients(VECTORS), ledger=ledger, run="fit 2")
    again = ReplayAggregator(going_on, kept)
    replayed = [again.aggregate(asked, None).shares for _ in range(2)]
    assert np.array_equal(answers, replayed)
    assert len(ledger.charges) == 4
    again.aggregate(asked, None)
    assert len(ledger.charges) == 5
    guarantee = again.guarantee()
    assert guarantee.epsilon == epsilon_of([20.0] * 4, 1e-6)
    assert guarantee.total_epsilon == epsilon_of([20.0] * 5, 1e-6)


def test_a_question_without_noise_is_refused():
    with pytest.raises(ParameterError, match="no sums without noise"):
        private().aggregate(AskShares(4), None)


def test_a_cohort_of_some_clients_is_refused():
    with pytest.raises(ParameterError, match="cohort_size None"):
        private().aggregate(Noised(AskShares(4), 20.0), 10)


def test_a_sum_of_vectors_that_did_not_pass_the_gate_is_refused():
    clients = Clients(VECTORS, gate=lambda vectors: vectors)
    with pytest.raises(InputError, match="unit_rows"):
        private(clients).aggregate(Noised(AskShares(4), 20.0), None)


def test_how_many_clients_there_are_is_not_said():
    aggregator = private()
    assert not hasattr(aggregator, "n_clients")
    assert "50" not in repr(aggregator)


def test_clients_are_asked_to_add_noise_themselves_unless_the_server_does():
    clients = Clients(VECTORS)
    private(clients, trust="local").aggregate(Noised(AskShares(4), 20.0), None)
    private(clients, trust="distributed", n_reporters=6, n_colluding=2).aggregate(
        Noised(AskShares(4), 20.0), None
    )
    local, distributed = clients.asked
    assert (local.trust, local.share) == ("local", 20.0)
    assert (distributed.trust, distributed.n_reporters) == ("distributed", 6)
    assert distributed.share == 10.0  # four honest shares of a variance of 400


def test_distributed_noise_of_a_single_node_is_refused():
    with pytest.raises(ParameterError, match="n_reporters"):
        private(trust="distributed", n_reporters=3, n_colluding=2)


def test_a_private_fit_that_was_killed_goes_on_and_pays_twice_for_the_lost_round(tmp_path):
    counts = truth("medium/1").sample(800, rng=0)
    bounds = {"n_components": 1, "n_categories": 10, "max_size": 20, "rng": 1}

    class Killed(LocalAggregator):
        n_left = 2

        def aggregate(self, query, cohort_size):
            self.n_left -= 1
            if self.n_left < 0:
                raise KeyboardInterrupt
            return super().aggregate(query, cohort_size)

    def going(clients):
        ledger = open_ledger(tmp_path / "ledger", epsilon=2.0, delta=1e-6)
        private = PrivateAggregator(clients, ledger=ledger, run="the fit")
        return ReplayAggregator(private, Journal(tmp_path / "rounds", {"seed": 1}))

    with pytest.raises(KeyboardInterrupt):
        fit_private(going(Killed(counts)), epsilon=1.0, delta=1e-6, **bounds)
    done = fit_private(going(LocalAggregator(counts)), epsilon=1.0, delta=1e-6, **bounds)
    charges = open_ledger(tmp_path / "ledger", epsilon=2.0, delta=1e-6).charges
    assert done.n_rounds == 4
    assert [charge.run for charge in charges] == ["the fit"] * 5
    assert charges[2].sigma == charges[3].sigma  # the round whose answer never came
    assert done.guarantee.n_rounds == 5
    assert 1.0 < done.guarantee.epsilon < 2.0


# ------------------------------------------------------------------------------- exact releases


@pytest.fixture
def place(tmp_path):
    return tmp_path / "ledger"


def test_an_exact_sum_is_in_the_ledger_before_it_is_asked_for(place):
    class Looking(Clients):
        def aggregate(self, query, cohort_size):
            assert len(LedgerFile(place).read()) == len(self.asked) + 1
            return super().aggregate(query, cohort_size)

    exact = ExactAggregator(Looking(VECTORS), LedgerFile(place), run="fit 1")
    sums = [exact.aggregate(AskShares(4), None).shares for _ in range(2)]
    np.testing.assert_array_equal(sums[0], Clients(VECTORS).aggregate(AskShares(4), None).shares)
    entries = LedgerFile(place).read()
    assert {(one.what, one.n_numbers, one.run) for one in entries} == {
        (AskShares(4).text, 4, "fit 1")
    }


def test_a_question_that_cannot_be_entered_is_not_asked(place):
    clients, entries = Clients(VECTORS), LedgerFile(place)
    place.unlink()
    place.mkdir()
    with pytest.raises(FileError):
        ExactAggregator(clients, entries).aggregate(AskShares(4), None)
    assert clients.asked == []


def test_an_exact_round_that_is_begun_again_inside_is_entered_each_time(place):
    class Retrying(Clients):
        def retried(self, query, cohort_size, *, before):
            for _ in range(3):
                before()
            return self.aggregate(query, cohort_size)

    ExactAggregator(Retrying(VECTORS), LedgerFile(place)).aggregate(AskShares(4), None)
    assert len(LedgerFile(place).read()) == 3


def test_a_recorded_exact_round_is_not_entered_again(place):
    kept = []
    for n_rounds in (2, 3):
        exact = ExactAggregator(LocalAggregator(COUNTS, rng=0), LedgerFile(place))
        clients = ReplayAggregator(exact, kept)
        assert clients.n_clients == 60
        sums = [clients.aggregate(SURVEY, 10).to_vector() for _ in range(n_rounds)]
    assert len(LedgerFile(place).read()) == 3
    whole = LocalAggregator(COUNTS, rng=0)
    np.testing.assert_array_equal(sums, [whole.aggregate(SURVEY, 10).to_vector() for _ in range(3)])


def test_a_guarantee_knows_of_exact_releases_before_and_between(place):
    exact = ExactAggregator(Clients(VECTORS), LedgerFile(place))
    exact.aggregate(AskShares(4), None)
    ledger = open_ledger(place, epsilon=1.0, delta=1e-6)
    noised = PrivateAggregator(Clients(VECTORS), ledger=ledger)
    noised.aggregate(Noised(AskShares(4), 20.0), None)
    assert noised.guarantee().n_exact == 1
    exact.aggregate(AskShares(4), None)
    guarantee = noised.guarantee()
    assert (guarantee.n_exact, guarantee.n_rounds) == (2, 1)
    assert guarantee.epsilon == epsilon_of([20.0], 1e-6)
