"""A look over the nodes of a federation: what it says, what it is charged, and what is refused."""

import numpy as np
import pytest

import polyurn as pu
from played_federations import OnDisk, histograms_of, records_of
from polyurn.errors import BudgetError, FileError, ParameterError, PolyurnError
from polyurn.federation.folder import bucket_key
from polyurn.federation.jobs import JobFolder, LookJob
from polyurn.federation.owned_node import ledger_key
from polyurn.federation.policy import NodePolicy, Refusal, read_policy
from polyurn.federation.server_process import perform
from polyurn.model.paper_truths import truth
from polyurn.model.sizes import SizeBins, Sizes
from polyurn.privacy.ledger import Renewal
from polyurn.server.describing import (
    ColumnDescription,
    Description,
    describe,
    describe_column,
)
from polyurn.server.drift import Drift, drift
from polyurn.server.feature_choice import FeatureChoice
from polyurn.storage.documents import read_document
from polyurn.storage.ledger_file import LedgerFile
from polyurn.storage.models import save
from polyurn.wire import (
    BoundedSurvey,
    Contrast,
    Describe,
    Noised,
    RecordColumn,
    Scaled,
    Shares,
    Spread,
)

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


@pytest.fixture
def with_records(tmp_path, clock):
    """Nodes that hold records, and all of them at one place."""
    whole, parts = records_of(3)
    names = tuple(f"x{i}" for i in range(whole.n_features))
    return OnDisk(tmp_path, clock, held=parts, features=names), whole, names


def test_a_column_of_the_nodes_is_that_of_their_clients_at_one_place(with_records):
    here, whole, names = with_records
    folder = look_job(here, column=names[1], n_bins=4)
    perform(here.exchange, folder)
    found = read_document(ColumnDescription, folder.result, kind="look")
    options = {"features": names, "n_categories": 10, "n_bins": 4}
    own = describe_column(pu.LocalAggregator(whole), names[1], **options)
    assert (found.edges, found.n_rounds) == (own.edges, own.n_rounds)
    folder = look_job(here, column=names[1], **GUARANTEE)
    perform(here.exchange, folder)
    noised = read_document(ColumnDescription, folder.result, kind="look")
    assert noised.guarantee.n_rounds == noised.n_rounds


def test_features_of_the_nodes_are_measured_with_noise_and_without(with_records):
    here, whole, names = with_records
    n = whole.n_features
    columns = {names[0]: RecordColumn(0, n, [0.0]), names[1]: RecordColumn(1, n, [-0.5, 0.5])}
    folder = look_job(here, columns=columns, label="digit")
    perform(here.exchange, folder)
    found = read_document(FeatureChoice, folder.result, kind="look")
    assert [*found.differences] == [*columns]
    assert found.differences[names[0]].n_clients == whole.n_clients
    assert "digit" in found.recommendation.sentence
    folder = look_job(here, columns=columns, label="digit", **GUARANTEE)
    perform(here.exchange, folder)
    noised = read_document(FeatureChoice, folder.result, kind="look")
    assert (noised.guarantee.n_rounds, noised.guarantee.trust) == (2, "distributed")


def test_a_renewing_budget_refuses_a_look_before_anybody_is_asked(here):
    perform(here.exchange, look_job(here, **GUARANTEE, ledger_epsilon=40.0, renew="yearly:9"))
    n_sent = len(here.exchange.sent)
    with pytest.raises(BudgetError, match=r"of 9 for .*wait for the next period$"):
        perform(here.exchange, look_job(here, **GUARANTEE))
    assert len(here.exchange.sent) == n_sent


def test_questions_about_records_need_the_owners_consent():
    column = RecordColumn(0, 5, np.array([0.0]))
    asked = {"secure": True, "max_size": 20, "clients_per_node": 9}
    for query in (Spread(10, column), Scaled(Contrast(10, 2, column))):
        noised = Noised(query, 4.0, "distributed", 3)
        assert NodePolicy().objection(noised, **asked) is None
        assert NodePolicy().objection(query, **asked) is Refusal.PRIVATE_ONLY
        others = NodePolicy(questions=("fit", "describe", "fit_style"))
        assert others.objection(noised, **asked) is Refusal.NOT_APPROVED


def test_an_owners_budget_renews_by_the_policy(tmp_path, clock):
    here = OnDisk(tmp_path, clock, policy='most_epsilon = 9.0\nrenew = "yearly:4"')
    budget = {**GUARANTEE, "epsilon": 3.0, "ledger_epsilon": 20.0}
    perform(here.exchange, look_job(here, **budget))
    home = here.made.node("node-1")
    (allowed, charge) = LedgerFile(
        home / "privacy.ledger", key=ledger_key(bucket_key(home / "bucket.key"))
    ).read()
    assert (allowed.epsilon, allowed.renewal) == (9.0, Renewal("yearly", 4.0))
    assert charge.when
    with pytest.raises(PolyurnError):
        perform(here.exchange, look_job(here, **budget))


def test_a_renewal_that_is_none_is_one_line_of_the_policy(tmp_path):
    (tmp_path / "policy.toml").write_text('renew = "weekly:1"')
    with pytest.raises(
        FileError, match=r"expected a renewal as monthly:0\.5, daily:0\.1 or yearly:2"
    ):
        read_policy(tmp_path / "policy.toml")
