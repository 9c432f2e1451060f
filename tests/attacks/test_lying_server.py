"""Questions of a server that lies: none gets anything from a node that its owner did not allow."""

import secrets
from dataclasses import replace

import numpy as np
import pytest

from federations import Federation, aggregator_of, opened
from polyurn import SizeBins, Sizes
from polyurn.errors import InputError, NodesError
from polyurn.federation.messages import Ask, Invitation, Refusal
from polyurn.federation.policy import NodePolicy
from polyurn.model.scores import Mixture
from polyurn.storage.ledger_file import open_ledger
from polyurn.wire import (
    BoundedSurvey,
    Expect,
    Group,
    Initialise,
    Noised,
    Parameters,
    Survey,
    WhitenedScore,
    encode_query,
)

SURVEY = BoundedSurvey(10, SizeBins.exact(20))
# An owner's policy as `init` writes it, but for parts, and the strictest that the guide describes.
OWNERS = NodePolicy()
STRICT = NodePolicy(least_noise=50.0, most_epsilon=0.1)


def federation_of(folder, policy, n_nodes=4, n_clients=25, **options):
    """Nodes with owners' ledgers."""

    class WithLedgers(Federation):
        def node(self, place, **options):
            ledger = open_ledger(
                folder / f"{place}.ledger", epsilon=policy.most_epsilon, delta=policy.delta
            )
            return super().node(place, ledger=ledger, **options)

    return WithLedgers(folder, n_nodes, n_clients, policy=policy, **options)


def outcome(federation, query, *, place=0, stage="advertise", clients_per_node=None):
    """A node's refusal of a question as bytes; None if it takes part."""
    data = query if isinstance(query, bytes) else encode_query(query)
    node = federation.ids[place]
    body = Invitation().encode(tag=secrets.token_bytes(16), node=node)
    declared = federation.n_clients if clients_per_node is None else clients_per_node
    ask = Ask(declared, data, body if stage == "advertise" else b"")
    reply = federation.nodes[node].answer(stage, ask.encode(tag=secrets.token_bytes(16), node=node))
    return opened(reply).refusal


# ----------------------------------------------------------------- x1: noise that the server divides


def test_no_server_divides_the_noise_that_each_client_adds(tmp_path):
    """Noise for sums over 2**31 reporters was a 46,341st of what the ledger counted."""
    federation = federation_of(tmp_path, STRICT)
    honest = encode_query(Noised(SURVEY, 1000.0, "local"))
    lie = honest.replace(b'"n_reporters":1', b'"n_reporters":2147483647')
    assert lie != honest
    assert outcome(federation, lie) is Refusal.UNREADABLE
    assert outcome(federation, honest) is None


def test_what_a_ledger_counts_is_the_noise_that_is_added(tmp_path):
    federation = federation_of(tmp_path, STRICT)
    clients = federation.aggregator(secure=True)
    released = [
        clients.aggregate(Noised(SURVEY, 1000.0, "local"), None).to_vector() for _ in range(3)
    ]
    (charged,) = {charge.sigma for charge in open_ledger(
        tmp_path / "0.ledger", epsilon=0.1, delta=1e-6).charges}  # fmt: skip
    assert charged == 1000.0
    # 100 clients add 1000 each: the sum itself does not show. 5 standard errors of 96 draws.
    added = np.concatenate(released)
    assert abs(added.std() / (1000.0 * 10) - 1) < 5 / np.sqrt(2 * added.size)


def test_a_share_of_noise_too_small_for_its_sum_is_refused(tmp_path):
    federation = federation_of(tmp_path, OWNERS)
    lie = Noised(SURVEY, 1000.0, "distributed", n_reporters=2**31 - 1)
    clients = federation.aggregator(secure=True, retries=0)
    with pytest.raises(NodesError):
        clients.aggregate(lie, None)


# ------------------------------------------------- x2, x4b: refusals that would depend on the clients


@pytest.mark.parametrize("n_clients", [24, 25])
def test_no_number_that_a_server_says_is_compared_with_that_of_the_clients(tmp_path, n_clients):
    """Bisection found it in 16 messages. 25 are declared, whoever has fewer."""
    federation = federation_of(tmp_path, OWNERS, 1, n_clients)
    federation.nodes = {federation.ids[0]: federation.node(0, clients_per_node=25)}
    query = Noised(SURVEY, 100.0, "distributed", n_reporters=3)
    seen = [outcome(federation, query, clients_per_node=n) for n in (1, 23, 24, 25, 26, 2**16)]
    wrong = Refusal.OTHER_CLIENTS
    assert seen == [wrong, wrong, wrong, None, wrong, wrong]


@pytest.mark.parametrize("n_clients", [2, 20, 24, 25])
def test_no_scale_of_noise_tells_how_many_clients_add_it(tmp_path, n_clients):
    """2**19 is the largest that the sum's whole numbers have room for: √n times that of one client."""
    policy = replace(OWNERS, secure_only=False)
    federation = federation_of(tmp_path, policy, 1, n_clients)
    federation.nodes = {federation.ids[0]: federation.node(0, clients_per_node=25)}
    seen = [
        outcome(
            federation, Noised(SURVEY, 2.0**19 / np.sqrt(n), "local"), stage="plain",
            clients_per_node=25,
        )
        for n in (2.5, 20.5, 24.5, 25.5)
    ]  # fmt: skip
    assert seen == [Refusal.TOO_LITTLE_NOISE] * 3 + [None]


# ------------------------------------------------------------ x4a: memory that depends on the clients


def test_no_number_of_components_exhausts_the_memory_of_a_node_with_a_large_client(tmp_path):
    mixture = Mixture(np.full(60_000, 1 / 60_000), np.ones((60_000, 10)))
    whitener = np.zeros((mixture.n_coordinates, 1))
    federation = federation_of(tmp_path, OWNERS, 1)
    asked = Noised(WhitenedScore(mixture, whitener, 1.0, 20), 5e5, "distributed", n_reporters=2)
    assert outcome(federation, asked) is Refusal.TOO_MANY_NUMBERS
    assert outcome(federation, bytes(OWNERS.most_bytes + 1)) is Refusal.TOO_MANY_NUMBERS


# --------------------------------------------------------- x5, x6: exact sums that are about one client


def test_no_group_of_one_client_is_read_off_unless_its_owner_allows_exact_sums(tmp_path):
    rng = np.random.default_rng(0)
    prototypes = rng.dirichlet(np.full(10, 0.6), size=2400)
    directions = np.column_stack([2 * prototypes, np.zeros((2400, 2))])
    singling_out = Group(directions, -(prototypes**2).sum(axis=1), SizeBins([1, 21]))
    federation = federation_of(tmp_path, OWNERS)
    assert outcome(federation, singling_out) is Refusal.PRIVATE_ONLY
    allowed = replace(OWNERS, allow_exact=True)
    (tmp_path / "allowed").mkdir()
    federation = federation_of(tmp_path / "allowed", allowed)
    assert outcome(federation, singling_out) is Refusal.TOO_MANY_NUMBERS


def test_no_difference_of_two_exact_sums_is_the_histogram_of_a_phone(tmp_path):
    federation = federation_of(tmp_path, OWNERS, 4, 1)
    assert outcome(federation, Survey(10, SizeBins.exact(20), pairs=False)) is Refusal.PRIVATE_ONLY
    with pytest.raises(InputError, match="at least 20 clients"):
        federation.node(0, policy=replace(OWNERS, allow_exact=True))


# --------------------------------------------------------------------------------- what is not asked


def test_no_question_of_a_method_that_no_owner_has_allowed_is_answered(tmp_path):
    federation = federation_of(tmp_path, OWNERS)
    assert outcome(federation, Initialise(2, 10, SizeBins.exact(20))) is Refusal.NOT_APPROVED


def test_no_size_but_the_declared_one_is_asked_about(tmp_path):
    """The largest client could be found, one max_size after the other."""
    federation = federation_of(tmp_path, OWNERS)
    for size in (1, 19, 21, 10**6):
        query = Noised(BoundedSurvey(10, SizeBins([1, size + 1])), 100.0, "distributed", 3)
        assert outcome(federation, query) is Refusal.OTHER_SIZE


def test_no_parameters_make_a_node_fail_only_where_a_client_is(tmp_path):
    allowed = replace(OWNERS, allow_exact=True)
    federation = federation_of(tmp_path, allowed)
    sizes = Sizes(SizeBins([1, 20, 21]), [[1.0, 0.0]])  # nobody has 20 points
    assert (
        outcome(federation, Expect(Parameters(np.ones(1), np.ones((1, 10)), sizes)))
        is Refusal.NOT_APPROVED
    )


def test_no_cohort_of_fewer_nodes_than_the_owner_wants_is_summed(tmp_path):
    federation = federation_of(tmp_path, replace(OWNERS, fewest=4))
    clients = aggregator_of(
        federation.exchange, secure=True, roster=federation.roster, retries=0,
        clients_per_node=25,
    )  # fmt: skip
    with pytest.raises(NodesError):
        clients.aggregate(Noised(SURVEY, 100.0, "distributed", n_reporters=3), 3)
