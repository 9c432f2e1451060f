"""The questions about a tree and about splits are asked over nodes, in secure sums, as any other."""

from dataclasses import replace

import numpy as np
import pytest

from federations import EXACT, Federation
from polyurn import MDM, LocalAggregator, SizeBins, Sizes, Tree, fit
from polyurn.federation.messages import Refusal
from polyurn.model.splits import Laws, Splits
from polyurn.wire import Affinity, Divide

RNG = np.random.default_rng(0)
TREE = Tree.by_share(RNG.dirichlet(np.ones(10)))
BINS = SizeBins.logarithmic(20)


def divide(laws=None, concentrations=None):
    concentrations = RNG.gamma(2.0, size=(2, 9, 2)) if concentrations is None else concentrations
    sizes = Sizes(BINS, np.full((2, BINS.n_bins), 1 / BINS.n_bins))
    return Divide(MDM([0.6, 0.4], None, sizes, splits=Splits(TREE, concentrations, laws)))


QUERIES = {
    "affinity": Affinity(10),
    "divide": divide(),
    "divide with laws": divide(Laws([0, 1, 3, 20], RNG.normal(size=(2, 9, 2, 4)))),
}


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("query", QUERIES.values(), ids=[*QUERIES])
def test_sums_over_nodes_are_those_of_their_clients(tmp_path, query, secure):
    federation = Federation(tmp_path, 4)
    sums = federation.aggregator(secure=secure).aggregate(query, None)
    whole = LocalAggregator(federation.counts, rng=0).aggregate(query, None)
    np.testing.assert_allclose(sums.to_vector(), whole.to_vector(), rtol=1e-6, atol=1e-4)


def test_an_owner_can_refuse_them():
    def objection(query, policy=EXACT, max_size=20):
        return policy.objection(query, secure=True, max_size=max_size, clients_per_node=25)

    for query in QUERIES.values():
        assert objection(query) is None
        assert objection(query, replace(EXACT, allow_exact=False)) is Refusal.PRIVATE_ONLY
        assert objection(query, replace(EXACT, most_numbers=50)) is Refusal.TOO_MANY_NUMBERS
    few = replace(EXACT, most_parameters=30)
    assert objection(QUERIES["divide"], few) is Refusal.TOO_MANY_NUMBERS
    assert objection(QUERIES["divide"], max_size=19) is Refusal.OTHER_SIZE
    beyond = divide(concentrations=np.full((2, 9, 2), 2e6))
    assert objection(beyond) is Refusal.NOT_APPROVED


def test_a_federation_learns_what_its_clients_would_in_this_process(tmp_path):
    federation = Federation(tmp_path, 4)
    bounds = {"n_components": (1, 2), "n_categories": 10, "max_size": 20, "shape": "tree", "rng": 0}
    learned = fit(federation.aggregator(secure=True), **bounds)
    assert learned.mdm.splits is not None
    assert learned.stages[0].kept
    assert learned.mdm.logpmf(federation.counts).mean() == pytest.approx(
        learned.joined[-1], rel=1e-6
    )
