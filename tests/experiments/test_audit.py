"""Audits of the package's own releases, and of mechanisms that are broken on purpose."""

import math

import numpy as np
import pytest
from audit import audit, in_blocks

from polyurn.privacy.accounting import sigma_for
from polyurn.privacy.ledger import PrivacyLedger
from polyurn.privacy.noise import discrete_gaussian
from polyurn.privacy.private_aggregator import PrivateAggregator
from polyurn.wire import Noised
from private_questions import AskShares, Clients

OTHERS = np.random.default_rng(0).normal(size=(40, 4)) / 3
CANARY = np.array([[0.0, 3.0, 0.0, 4.0]])  # of norm 5, clipped to 1
DELTA, SHARES = 1e-5, (0.2, 0.3, 0.5)


def seeded(seed):
    """Gaussian noise in whole steps that a test can repeat."""
    rng = np.random.default_rng(seed)
    return in_blocks(lambda n, scale: np.rint(rng.normal(0.0, scale, n)).astype(np.int64))


def audited(epsilon, noise, *, n_runs, confidence=0.95, gate=None):
    """Three rounds that use up a budget of epsilon, on clients with and without a canary."""
    sigma = sigma_for(epsilon, DELTA)
    rounds = [Noised(AskShares(4), sigma / math.sqrt(share)) for share in SHARES]
    options = {} if gate is None else {"gate": gate}

    def private(clients):
        ledger = PrivacyLedger(epsilon, DELTA)
        return PrivateAggregator(clients, ledger=ledger, noise=noise)

    return audit(
        private,
        rounds,
        without=Clients(OTHERS),
        with_canary=Clients(np.vstack([OTHERS, CANARY]), **options),
        delta=DELTA,
        n_runs=n_runs,
        confidence=confidence,
    )


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_20_000_runs_of_three_rounds_show_more_than_half_of_the_claim_and_not_more_than_it(epsilon):
    found = audited(epsilon, seeded(1), n_runs=20_000)
    assert found.claimed == pytest.approx(epsilon)
    assert epsilon / 2 < found.found <= epsilon
    assert not found.refuted


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_so_do_20_000_runs_with_the_noise_of_the_library(epsilon):
    """A confidence at which chance refutes a right claim once in a million times."""
    found = audited(epsilon, in_blocks(discrete_gaussian), n_runs=20_000, confidence=1 - 1e-6)
    assert epsilon / 2 < found.found <= epsilon


def test_a_right_claim_is_not_refuted():
    found = audited(4.0, seeded(2), n_runs=1000)
    assert 2.0 < found.found <= 4.0


def test_noise_that_is_halved_is_caught():
    whole = seeded(3)
    found = audited(1.0, lambda n, scale: whole(n, scale / 2), n_runs=2000)
    assert found.refuted
    assert found.found > 1.5


def test_a_clip_that_was_forgotten_is_caught():
    def unclipped(vectors):
        return np.trunc(vectors * 2**28) / 2**28

    found = audited(1.0, seeded(4), n_runs=1000, gate=unclipped)
    assert found.refuted
    assert found.found > 3.0


def test_noise_that_is_the_same_each_time_is_caught():
    def constant(n, scale):
        return np.rint(np.random.default_rng(0).normal(0.0, scale, n)).astype(np.int64)

    assert audited(1.0, constant, n_runs=200).refuted


def test_blocks_of_noise_hand_out_every_draw_once():
    drawn = []

    def counting(n, scale):
        drawn.append(np.arange(n) + 10**6 * len(drawn))
        return drawn[-1]

    draw = in_blocks(counting)
    handed_out = np.concatenate([draw(n, 1.0) for n in (3, 5000, 12_000, 40_000, 1)])
    assert len(np.unique(handed_out)) == len(handed_out)
