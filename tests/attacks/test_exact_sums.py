"""Why exact sums are an owner's opt-in: no range of parameters keeps a sum about many clients."""

from dataclasses import replace

import numpy as np

from polyurn import MDM, SizeBins, Sizes, answer
from polyurn.federation.messages import Refusal
from polyurn.federation.policy import NodePolicy
from polyurn.wire import Expect, Parameters

C, SIZE, K = 6, 20, 250
BINS = SizeBins([1, SIZE + 1])


def question(seed):
    """Components that are almost multinomials with random shares, as components of fits may be."""
    shares = np.clip(np.random.default_rng(seed).dirichlet(np.full(C, 0.6), size=K), 1e-4, None)
    alphas = 9e5 * shares / shares.sum(axis=1, keepdims=True)
    return Expect(Parameters(np.full(K, 1 / K), alphas, Sizes(BINS, np.ones((K, 1)))))


def test_questions_that_an_opt_in_allows_read_whole_histograms_which_nobody_else_is_asked():
    alphas = np.random.default_rng(0).uniform(0.3, 3, size=(2, C))
    truth = MDM([0.6, 0.4], alphas, Sizes.constant(SIZE, n_components=2))
    clients = truth.sample(800, rng=1)
    declared = {"secure": True, "max_size": SIZE, "clients_per_node": 100}
    everybody, read = {tuple(row) for row in clients.tolist()}, set()
    for seed in range(40):
        query = question(seed)
        assert replace(NodePolicy(), allow_exact=True).objection(query, **declared) is None
        assert NodePolicy().objection(query, **declared) is Refusal.PRIVATE_ONLY
        sums = answer(query, clients)
        for k in np.flatnonzero(np.abs(sums.size_counts.sum(axis=1) - 1) < 0.05):
            found = tuple(np.rint(sums.tables[k]).astype(int).tolist())
            if found in everybody:
                read.add(found)
    assert len(read) >= 5
