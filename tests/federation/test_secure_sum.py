"""Every byte that reaches the server in secure sums: what it shows of the clients, and what it cannot.

Whole federations of real nodes, over the messages that a transport carries. Masks are fresh in every
run, so that no seed fixes them: a test fails by chance with a probability of about 1e-7.
"""

import numpy as np
import pytest
from scipy.stats import chi2

from federations import EXACT, Federation, opened
from polyurn import SizeBins, answer
from polyurn.federation.exchange import InProcessExchange
from polyurn.federation.masking import FixedPoint
from polyurn.federation.messages import MaskedVector, tag_of
from polyurn.wire import Batch, Part, Survey, node_bounds

SURVEY = Survey(10, SizeBins.exact(20), pairs=True)
QUERY = Batch((*[SURVEY] * 12, Part(SURVEY, 0.0, 0.5)))  # some 1,500 numbers
N_NODES, N_CLIENTS, PLACE = 5, 3, 2
FALSE_ALARM = 1e-7


class Recorded:
    """One secure sum, with all that crossed; `counts` takes the place of one node's clients."""

    def __init__(self, folder, counts=None):
        folder.mkdir()
        federation = Federation(folder, N_NODES, N_CLIENTS, policy=EXACT)
        if counts is not None:
            federation.counts[federation.rows(PLACE)] = counts
        nodes = {node: federation.node(place) for place, node in enumerate(federation.ids)}
        self.federation, self.replies = federation, {}

        def recorded(node):
            def reply(stage, message):
                self.replies[stage, node] = nodes[node].answer(stage, message)
                return self.replies[stage, node]

            return reply

        federation.exchange = InProcessExchange({node: recorded(node) for node in nodes})
        self.total = federation.aggregator(secure=True).aggregate(QUERY, None).to_vector()

    def words(self, place=PLACE):
        """The masked numbers of one node."""
        node = self.federation.ids[place]
        body = opened(self.replies["mask", node]).body
        return MaskedVector.decode(body, tag=tag_of(body), node=node).words

    def statistics(self, place):
        """What a node would have sent in a plain sum."""
        federation = self.federation
        counts = federation.counts[federation.rows(place)]
        return answer(QUERY, counts, buckets=federation.buckets([place])).to_vector()


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs that differ in the clients of one node."""
    folder = tmp_path_factory.mktemp("recorded")
    other = np.zeros((N_CLIENTS, 10), dtype=int)
    other[:, :3] = [[13, 5, 1], [7, 2, 4], [17, 1, 1]]
    return Recorded(folder / "one"), Recorded(folder / "other", other)


def p_uniform(words):
    """How likely bytes are that are no more uniform than these (chi-square, 256 cells)."""
    cells = np.bincount(np.frombuffer(words.tobytes(), np.uint8), minlength=256)
    return chi2.sf(((cells - cells.mean()) ** 2 / cells.mean()).sum(), 255)


def p_alike(one, other):
    """How likely samples of bytes are that differ no less than these."""
    cells = np.array(
        [np.bincount(np.frombuffer(w.tobytes(), np.uint8), minlength=256) for w in (one, other)]
    )
    expected = cells.sum(axis=0) * cells.sum(axis=1, keepdims=True) / cells.sum()
    return chi2.sf(((cells - expected) ** 2 / np.maximum(expected, 1e-9)).sum(), 255)


def test_the_runs_differ_in_their_sums_and_in_nothing_else_that_the_server_sees(runs):
    one, other = runs
    assert not np.allclose(one.total, other.total)
    assert {key: len(reply) for key, reply in one.replies.items()} == {
        key: len(reply) for key, reply in other.replies.items()
    }
    assert p_alike(one.words(), other.words()) > FALSE_ALARM
    # Neither masks of the two runs, nor of two nodes in one run, have anything in common.
    pairs = [(one.words(), other.words()), *((one.words(), one.words(p)) for p in (0, 1, 3, 4))]
    for words, others in pairs:
        for mixed in (words - others, words + others, words ^ others):
            assert p_uniform(mixed) > FALSE_ALARM
    for run in runs:
        for place in range(N_NODES):
            assert p_uniform(run.words(place)) > FALSE_ALARM


def test_the_same_tests_tell_unmasked_numbers_apart(runs):
    scale = FixedPoint(node_bounds(QUERY, N_CLIENTS), n_summands=N_NODES)
    plain = [scale.encode(run.statistics(PLACE)) for run in runs]
    assert p_alike(*plain) < FALSE_ALARM
    for words in (*plain, plain[1] - plain[0]):
        assert p_uniform(words) < FALSE_ALARM


def test_a_part_of_the_nodes_added_up_is_still_masked(runs):
    """Pairs' masks cancel in a sum; those of other pairs, and each node's own, stay on it."""
    run = runs[0]
    words = [run.words(place) for place in range(N_NODES)]
    together = np.sum(words, axis=0, dtype=np.uint64)
    for i in range(N_NODES):
        assert p_uniform(together - words[i]) > FALSE_ALARM
        for j in range(i):
            assert p_uniform(words[i] + words[j]) > FALSE_ALARM
    assert (
        p_uniform(together) > FALSE_ALARM
    )  # each node's own mask is on it until shares are revealed


def test_no_statistic_of_any_node_is_in_any_byte_that_reached_the_server(runs):
    for run in runs:
        assert {stage for stage, _ in run.replies} == {
            "advertise", "share", "mask", "confirm", "reveal",
        }  # fmt: skip
        received = b"".join(run.replies.values())
        windows = {received[i : i + 8] for i in range(len(received) - 7)}
        assert len(received) > N_NODES * 8 * QUERY.n_numbers
        scale = FixedPoint(node_bounds(QUERY, N_CLIENTS), n_summands=N_NODES)
        for place in range(N_NODES):
            numbers = run.statistics(place)
            words = scale.encode(numbers)
            for form in (numbers.astype("<f8"), numbers.astype(">f8"), words.astype("<u8"),
                         words.astype(">u8")):  # fmt: skip
                # Numbers with many zero bytes, as 1.0 has, are in ids and counts by chance.
                full = {n.tobytes() for n in form if n.tobytes().count(0) < 4}
                assert len(full) >= 5
                assert windows.isdisjoint(full)


def test_names_of_clients_and_their_counts_are_in_no_byte_that_reached_the_server(runs):
    for run in runs:
        received = b"".join(run.replies.values())
        assert b"client" not in received
        for row in run.federation.counts:
            for kind in (np.uint8, "<i4", "<i8", "<f8"):
                assert row.astype(kind).tobytes() not in received
