"""The fit under differential privacy: what it spends, what it asks, and what comes back."""

import numpy as np
import pytest

from polyurn import MDM, LocalAggregator, Sizes, fit_private
from polyurn.errors import BudgetError, ParameterError
from polyurn.model.paper_truths import truth
from polyurn.model.sizes import SizeBins
from polyurn.privacy.accounting import epsilon_of
from polyurn.privacy.ledger import PrivacyLedger
from polyurn.privacy.private_aggregator import PrivateAggregator
from polyurn.server.private.plan import Plan
from polyurn.wire import Bounded

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
BOUNDS = {"n_categories": 10, "max_size": 20}


def seeded(seed):
    rng = np.random.default_rng(seed)
    return lambda n, scale: np.rint(rng.standard_normal(n) * scale).astype(np.int64)


class Asked:
    """An aggregator without a number of clients that remembers what it was asked."""

    def __init__(self, counts):
        self._inner, self.queries = LocalAggregator(counts, rng=0), []

    def aggregate(self, query, cohort_size):
        self.queries.append(query)
        assert cohort_size is None
        return self._inner.aggregate(query, cohort_size)


@pytest.fixture(scope="module")
def done():
    known = truth("medium/3")
    clients, ledger = Asked(known.sample(10_000, rng=0)), PrivacyLedger(2.0, 1e-6)
    fit = fit_private(
        clients, n_components=3, **BUDGET, **BOUNDS, ledger=ledger, noise=seeded(1), rng=2
    )
    return known, clients, ledger, fit


def test_known_parameters_come_back(done):
    """Of twenty seeds none was beyond 0.005."""
    known, _, _, fit = done
    fresh = known.sample(50_000, rng=3)
    gap = (known.logpmf_given_size(fresh) - fit.mdm.logpmf_given_size(fresh)).mean()
    assert -0.001 < gap < 0.01
    assert np.abs(fit.mdm.weights - known.weights).max() < 0.04


def test_what_is_spent_is_what_was_asked_for_and_all_of_it_is_in_the_ledger(done):
    _, _, ledger, fit = done
    assert fit.guarantee.epsilon == pytest.approx(1.0, abs=1e-6)
    assert ledger.epsilon_spent == pytest.approx(1.0, abs=1e-6)
    assert epsilon_of([c.sigma for c in ledger.charges], 1e-6) <= 1.0 + 1e-6
    assert [c.n_numbers for c in ledger.charges] == [r.n_numbers for r in fit.rounds]


def test_at_most_twelve_rounds_and_every_question_is_bounded(done):
    _, clients, _, fit = done
    assert fit.n_rounds == len(clients.queries) <= 12
    assert all(isinstance(query, Bounded) for query in clients.queries)
    assert all(query.max_size == 20 for query in clients.queries)


def test_the_number_of_clients_is_a_noised_one(done):
    _, _, _, fit = done
    (told,) = {r.n_clients for r in fit.rounds}
    assert 9_000 < told < 11_000
    assert told != 10_000


def test_a_second_fit_on_the_same_ledger_is_refused_before_anybody_is_asked():
    clients, ledger = Asked(truth("low/1").sample(500, rng=0)), PrivacyLedger(**BUDGET)
    settings = {"n_components": 1, **BUDGET, **BOUNDS, "ledger": ledger, "noise": seeded(0)}
    fit_private(clients, **settings)
    n_asked = len(clients.queries)
    with pytest.raises(BudgetError, match="not asked"):
        fit_private(clients, **settings)
    assert len(clients.queries) == n_asked


def test_a_second_fit_on_a_larger_ledger_says_what_both_spent():
    clients, ledger = Asked(truth("low/1").sample(500, rng=0)), PrivacyLedger(4.0, 1e-6)
    settings = {"n_components": 1, **BUDGET, **BOUNDS, "ledger": ledger, "noise": seeded(0)}
    first, second = fit_private(clients, **settings), fit_private(clients, **settings)
    assert first.guarantee.total_epsilon == pytest.approx(1.0, abs=1e-6)
    assert second.guarantee.total_epsilon > 1.3
    assert second.guarantee.epsilon == pytest.approx(1.0, abs=1e-6)


def test_a_private_aggregator_is_used_with_its_own_ledger():
    ledger = PrivacyLedger(**BUDGET)
    clients = LocalAggregator(truth("low/1").sample(500, rng=0))
    layer = PrivateAggregator(clients, ledger=ledger, noise=seeded(0))
    fit_private(layer, n_components=1, **BUDGET, **BOUNDS)
    assert ledger.epsilon_spent == pytest.approx(1.0, abs=1e-6)


def test_the_noise_does_not_come_from_the_seed():
    clients = LocalAggregator(truth("low/1").sample(500, rng=0))
    settings = {"n_components": 1, **BUDGET, **BOUNDS, "rng": 1}
    one, other = fit_private(clients, **settings), fit_private(clients, **settings)
    assert one.mdm != other.mdm


def test_the_same_noise_and_seed_give_the_same_fit():
    clients = LocalAggregator(truth("low/1").sample(500, rng=0))
    settings = {"n_components": 1, **BUDGET, **BOUNDS, "rng": 1}
    one, other = (fit_private(clients, **settings, noise=seeded(5)) for _ in range(2))
    assert one.mdm == other.mdm


@pytest.mark.parametrize("n_components", [1, 2])
@pytest.mark.parametrize(
    "counts",
    [
        np.array([[1, 0]]),
        np.full((3, 2), 7),
        np.tile([[5, 0], [0, 5]], (20, 1)),
        np.eye(30, dtype=int)[:, :12] + np.array([1] + [0] * 11),
    ],
    ids=["one client", "alike", "corners", "sparse"],
)
def test_clients_that_noise_drowns_still_give_a_model(counts, n_components):
    """What little there is to learn is no reason to fail: an error would be a release of its own."""
    fit = fit_private(
        LocalAggregator(counts), epsilon=0.1, delta=1e-6, n_components=n_components,
        n_categories=counts.shape[1], max_size=20, noise=seeded(0), rng=0,
    )  # fmt: skip
    assert np.isfinite(fit.mdm.alphas).all()
    assert fit.mdm.weights.sum() == pytest.approx(1)


def test_components_have_sizes_of_their_own():
    bins = SizeBins([1, 6, 21, 51])
    known = MDM(
        [0.6, 0.4],
        [[9.0, 1.0, 1.0], [1.0, 2.0, 9.0]],
        Sizes(bins, [[0.1, 0.8, 0.1], [0.05, 0.15, 0.8]]),
    )
    clients = LocalAggregator(known.sample(20_000, rng=0))
    asked = {"epsilon": 2.0, "delta": 1e-6, "n_categories": 3, "max_size": 50, "rng": 1}
    fit = fit_private(clients, n_components=2, sizes=bins, noise=seeded(2), **asked)
    assert np.abs(fit.mdm.sizes.masses - known.sizes.masses).max() < 0.06
    few, plan = LocalAggregator(known.sample(500, rng=0)), Plan(n_simulated=(500, 500))
    shared = fit_private(few, n_components=2, sizes="shared", noise=seeded(2), plan=plan, **asked)
    assert np.array_equal(shared.mdm.sizes.masses[0], shared.mdm.sizes.masses[1])


@pytest.mark.parametrize("n_components", [1, 2])
def test_no_client_that_was_fitted_is_impossible(n_components):
    """Sizes that noise hid had probability 0: 30 % of these clients."""
    rng = np.random.default_rng(0)
    counts = rng.multinomial(rng.integers(5, 60, 300), [0.5, 0.2, 0.1, 0.1, 0.1])
    fit = fit_private(
        LocalAggregator(counts), n_components=n_components, n_categories=5, max_size=60,
        plan=Plan(n_simulated=(500, 500)), noise=seeded(1), rng=2, **BUDGET,
    )  # fmt: skip
    assert np.isfinite(fit.mdm.logpmf(counts)).all()
    assert (fit.mdm.sizes.masses > 0).all()


def test_sizes_that_are_mostly_noise_are_said_with_what_would_be_enough():
    def stopped(n_clients, epsilon):
        clients = LocalAggregator(truth("low/1").sample(n_clients, rng=0))
        budget = {"epsilon": epsilon, "delta": 1e-6, "n_components": 1, **BOUNDS}
        return fit_private(clients, noise=seeded(0), rng=0, **budget).stopped

    few = stopped(150, 1.0)
    assert "sizes is mostly noise" in few
    needed = int(few.split("at least ")[1].split(" clients")[0])
    assert 150 < needed < 1_000
    epsilon = float(few.split("epsilon of ")[1].split(",")[0])
    assert epsilon > 1
    assert "noise" not in stopped(2 * needed, 1.0)
    assert "noise" not in stopped(150, 2 * epsilon)


def test_bins_that_do_not_end_at_max_size_are_refused():
    clients = LocalAggregator([[1, 1]])
    with pytest.raises(ParameterError, match="end at max_size 9"):
        fit_private(
            clients, n_components=1, n_categories=2, max_size=9, sizes=SizeBins.exact(4), **BUDGET
        )
