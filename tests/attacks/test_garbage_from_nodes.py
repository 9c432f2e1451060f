"""A node that sends garbage in place of its numbers: it is named, and a sum is right or refused.

Silence, damaged replies, replays and false names, at each stage: tests/federation/test_aggregator.py.
False keys and shares: tests/federation/test_round.py. Over real processes: tests/hostile_node.py.
False numbers within their bounds are no garbage: nobody can tell (docs/threat-model.md).
"""

import numpy as np
import pytest

from federations import STAGES, Federation, at, node_of, opened, question_of, rewrapped
from polyurn import SizeBins
from polyurn.errors import NodesError
from polyurn.federation.messages import MaskedVector, tag_of
from polyurn.wire import Survey, decode_query, encode_statistics

QUERY = Survey(10, SizeBins.exact(20), pairs=False)
HOSTILE = 2
OTHERS = [0, 1, 3, 4, 5]

# ----------------------------------------------------------------------------------- plain answers


def numbers(change):
    """An answer whose numbers were changed, and written as an honest encoder would not."""

    def fault(stage, message, honest):
        reply = honest(stage, message)
        query = decode_query(question_of(message).query)
        body = opened(reply).body
        vector = np.frombuffer(body[-8 * query.n_numbers :], "<f8").copy()
        changed = np.asarray(change(vector), "<f8")
        return rewrapped(reply, body[: -8 * query.n_numbers] + changed.tobytes())

    return fault


def body(change):
    """An answer whose bytes were changed."""

    def fault(stage, message, honest):
        reply = honest(stage, message)
        return rewrapped(reply, change(opened(reply).body))

    return fault


def of_another_question(stage, message, honest):
    """A valid answer, and to another question than was asked."""
    other = Survey(10, SizeBins.exact(20), pairs=True)
    return rewrapped(
        honest(stage, message), encode_statistics(other.read(np.zeros(other.n_numbers)), other)
    )


def one(value, place=0):
    def change(vector):
        vector[place] = value
        return vector

    return change


PLAIN = {
    "NaN": numbers(one(np.nan)),
    "NaN with a payload": numbers(lambda v: np.frombuffer(b"secret!\x7f" * len(v), "<f8")),
    "infinite": numbers(one(np.inf, -1)),
    "minus infinite": numbers(one(-np.inf)),
    "more than a float32": numbers(one(1e200)),
    "beyond its bound": numbers(one(10.001)),
    "all huge": numbers(lambda v: np.full_like(v, 1e149)),
    "one number less": numbers(lambda v: v[:-1]),
    "one number more": numbers(lambda v: np.append(v, 0.0)),
    "a million numbers": numbers(lambda v: np.zeros(10**6)),
    "no numbers": numbers(lambda v: v[:0]),
    "nothing": body(lambda data: b""),
    "one byte": body(lambda data: data[:1]),
    "half": body(lambda data: data[: len(data) // 2]),
    "twice": body(lambda data: data + data),
    "16 MB": body(lambda data: data + bytes(2**24)),
    "another question": of_another_question,
    "none at all": lambda stage, message, honest: 17,
}


@pytest.mark.parametrize("how", PLAIN)
def test_no_garbage_is_added_to_a_plain_sum_and_its_node_is_named(tmp_path, how):
    federation = Federation(tmp_path, 6, 10, faults={HOSTILE: PLAIN[how]})
    clients = federation.aggregator()
    expected = federation.local(OTHERS).aggregate(QUERY, None).to_vector()
    for _ in range(2):
        got = clients.aggregate(QUERY, None)
        np.testing.assert_allclose(got.to_vector(), expected, rtol=1e-13)
    assert list(clients.refused) == [federation.ids[HOSTILE]]
    assert federation.exchange.n_timeouts == 0


# ---------------------------------------------------------------------------------- masked numbers


def masked(change):
    """Masked numbers, as words modulo 2**64, that were changed; the message is one of the protocol."""

    def fault(stage, message, honest):
        reply = honest(stage, message)
        data, node = opened(reply).body, node_of(reply)
        words = MaskedVector.decode(data, tag=None, node=node).words
        changed = np.asarray(change(words.copy()), dtype=np.uint64)
        return rewrapped(reply, MaskedVector(changed).encode(tag=tag_of(data), node=node))

    return at("mask", fault)


def random_words(words):
    return np.random.default_rng(3).integers(0, 2**64, len(words), dtype=np.uint64)


# What is no message of the protocol: the node is left out, and the others are summed.
LEFT_OUT = {
    "no words": masked(lambda words: words[:0]),
    "one word less": masked(lambda words: words[:-1]),
    "one word more": masked(lambda words: np.append(words, words[:1])),
    "a million words": masked(lambda words: np.zeros(10**6)),
    "nothing": at("mask", body(lambda data: b"")),
    "half a word": at("mask", body(lambda data: data[:-4])),
    "twice": at("mask", body(lambda data: data + data)),
    "16 MB": at("mask", body(lambda data: data + bytes(2**24))),
    "plain numbers": at("mask", body(lambda data: np.full(50, np.nan).tobytes())),
}
# What could be masked numbers: the mask of the others does not come off, and nobody can say of whom.
REFUSED = {
    "random words": masked(random_words),
    "zeros": masked(lambda words: words * np.uint64(0)),
    "the words of NaN": masked(lambda w: np.full(len(w), np.nan).view(np.uint64)),
    "all bits": masked(lambda words: np.full(len(words), 2**64 - 1, dtype=np.uint64)),
    "its mask and more than all clients": masked(lambda words: words + np.uint64(2**62)),
    "words in another order": masked(lambda words: words[::-1]),
}


@pytest.mark.parametrize("how", LEFT_OUT)
def test_no_garbage_is_added_to_a_secure_sum_and_its_node_is_named(tmp_path, how):
    federation = Federation(tmp_path, 6, 10, faults={HOSTILE: LEFT_OUT[how]})
    clients = federation.aggregator(secure=True)
    expected = federation.local(OTHERS).aggregate(QUERY, None).to_vector()
    for _ in range(2):
        got = clients.aggregate(QUERY, None)
        np.testing.assert_allclose(got.to_vector(), expected, rtol=0, atol=1e-9)
    assert list(clients.refused) == [federation.ids[HOSTILE]]
    assert clients.traffic.n_attempts == 2


@pytest.mark.parametrize("how", REFUSED)
def test_no_sum_with_garbage_behind_a_mask_is_given_as_one(tmp_path, how):
    """The server cannot tell who it was, and does not guess: no honest node is excluded."""
    federation = Federation(tmp_path, 6, 10, faults={HOSTILE: REFUSED[how]})
    clients = federation.aggregator(secure=True, retries=1)
    with pytest.raises(NodesError, match="the sum is beyond its bounds") as error:
        clients.aggregate(QUERY, None)
    assert "\n" not in str(error.value)
    assert clients.traffic.n_rounds == 0
    assert set(clients.excluded) | set(clients.refused) <= {federation.ids[HOSTILE]}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("size", [0, 1, 31, 2**20])
def test_random_bytes_at_any_stage_spoil_no_sum(tmp_path, stage, size):
    noise = np.random.default_rng(size).bytes(size)
    fault = at(stage, lambda _, message, honest: rewrapped(honest(stage, message), noise))
    federation = Federation(tmp_path, 6, 10, faults={HOSTILE: fault})
    clients = federation.aggregator(secure=True)
    is_in = STAGES.index(stage) > STAGES.index("mask")
    places = range(6) if is_in else OTHERS
    expected = federation.local(places).aggregate(QUERY, None).to_vector()
    got = clients.aggregate(QUERY, None).to_vector()
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-9)
    assert list(clients.refused) == [federation.ids[HOSTILE]]
