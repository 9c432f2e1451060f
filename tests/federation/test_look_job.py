"""A look over the nodes of a federation: what it says, what it is charged, and what is refused."""

import numpy as np
import pytest

import polyurn as pu
from played_federations import OnDisk, histograms_of
from polyurn.errors import BudgetError, ParameterError
from polyurn.federation.jobs import JobFolder, LookJob
from polyurn.federation.policy import NodePolicy, Refusal
from polyurn.federation.server_process import perform
from polyurn.model.paper_truths import truth
from polyurn.model.sizes import SizeBins, Sizes
from polyurn.server.describing import Description, describe
from polyurn.server.drift import Drift, drift
from polyurn.storage.documents import read_document
from polyurn.storage.ledger_file import LedgerFile
from polyurn.storage.models import save
from polyurn.wire import BoundedSurvey, Describe, Noised, Shares

GUARANTEE = {"epsilon": 8.0, "delta": 1e-6, "trust": "distributed"}
TRUTH = truth("medium/2")
# Exact questions about sizes of probability zero are refused.
MDM = pu.MDM(TRUTH.weights, TRUTH.alphas, Sizes(SizeBins([1, 21]), [[1.0], [1.0]]))


@pytest.fixture
def here(tmp_path, clock):
    return OnDisk(tmp_path, clock)


def look_job(here, **settings):
    usual = {"federation": str(here.made.path), "command": None}
    return JobFolder.make(here.made.runs, LookJob(**{**usual, **settings}))


def test_what_nodes_say_is_what_their_clients_say_at_one_place(here, tmp_path):
    folder = look_job(here)
    perform(here.exchange, folder)
    found = read_document(Description, folder.result, kind="look")
    counts = np.vstack([histograms_of(20, seed).counts.toarray() for seed in (1, 2, 3)])
    whole = describe(pu.LocalAggregator(counts), n_categories=counts.shape[1], max_size=20)
    assert found.n_clients == whole.n_clients
    np.testing.assert_allclose(
        [one.value for one in found.shares], [one.value for one in whole.shares], atol=1e-7
    )
    save(MDM, tmp_path / "mdm.json")
    folder = look_job(here, mdm=str(tmp_path / "mdm.json"), seed=3)
    perform(here.exchange, folder)
    seen = read_document(Drift, folder.result, kind="look")
    own = drift(pu.LocalAggregator(counts), MDM, rng=3)
    np.testing.assert_allclose(seen.means, own.means, atol=1e-7)
    assert seen.sentence == own.sentence


def test_a_look_with_a_guarantee_is_charged_once_and_refused_beyond_the_budget(here):
    folder = look_job(here, **GUARANTEE)
    perform(here.exchange, folder)
    found = read_document(Description, folder.result, kind="look")
    assert found.guarantee.trust == "distributed"
    assert len(LedgerFile(here.made.ledger).read()) == 2
    n_sent = len(here.exchange.sent)
    with pytest.raises(BudgetError, match="--ledger-epsilon"):
        perform(here.exchange, look_job(here, **GUARANTEE))
    assert len(here.exchange.sent) == n_sent


def test_a_policy_that_does_not_list_it_refuses_it():
    query = Noised(Describe(10, SizeBins.logarithmic(20)), 4.0, "distributed", 3)
    asked = {"secure": True, "max_size": 20, "clients_per_node": 9}
    assert NodePolicy().objection(query, **asked) is None
    only_fits = NodePolicy(questions=("fit", "fit_private"))
    assert only_fits.objection(query, **asked) is Refusal.NOT_APPROVED


def test_no_question_of_another_method_hides_among_shares():
    bins = SizeBins.logarithmic(20)
    with pytest.raises(ParameterError, match="another method"):
        Shares((BoundedSurvey(10, bins), Describe(10, bins)), (0.5, 0.5))
