"""The envelope of a node's messages: read back as written, and refused in one line otherwise."""

import tracemalloc
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyurn.errors import RefusedError
from polyurn.federation.messages import Ask, Refusal, Reply, tag_of

IDS = st.integers(0, 2**64 - 1)
TAGS = st.binary(min_size=16, max_size=16)


def again(message, tag, node):
    data = message.encode(tag=tag, node=node)
    assert tag_of(data) == tag
    return type(message).decode(data, tag=tag, node=node)


@given(TAGS, IDS, st.integers(0, 2**32 - 1), st.binary(), st.binary())
def test_a_question_is_read_as_it_was_written(tag, node, clients_per_node, query, body):
    ask = Ask(clients_per_node, query, body)
    assert again(ask, tag, node) == ask


@given(TAGS, IDS, st.binary())
def test_an_answer_is_read_as_it_was_written(tag, node, body):
    assert again(Reply(body=body), tag, node) == Reply(body=body)


@given(TAGS, IDS, st.sampled_from(Refusal), st.none() | IDS)
def test_a_refusal_is_read_as_it_was_written(tag, node, refusal, suspect):
    reply = Reply(refusal, suspect)
    assert again(reply, tag, node) == reply


@pytest.mark.parametrize("kind", [Ask, Reply])
@given(st.binary(max_size=80))
def test_other_bytes_are_refused(kind, data):
    with pytest.raises(RefusedError):
        kind.decode(data, tag=None, node=5)


@pytest.mark.parametrize("kind", [Ask, Reply])
@given(data=st.data())
def test_damaged_bytes_are_a_message_or_our_error(kind, data):
    whole = bytearray(
        (Ask(1, b"query", b"body") if kind is Ask else Reply(Refusal.FAILED, suspect=3)).encode(
            tag=bytes(16), node=5
        )
    )
    whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    cut = data.draw(st.integers(0, len(whole)))
    with suppress(RefusedError):
        assert isinstance(kind.decode(bytes(whole[:cut]), tag=None, node=5), kind)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Ask, Reply])
def test_20_000_damaged_messages_are_read_or_our_error_within_64_megabytes(kind):
    rng, n_refused = np.random.default_rng(7), 0
    whole = [
        Ask(1, b"query" * 9, b"body" * 9),
        Reply(body=b"body" * 9),
        Reply(Refusal.FAILED, suspect=3),
    ]
    whole = [message.encode(tag=bytes(16), node=5) for message in whole]
    tracemalloc.start()
    try:
        for i in range(20_000):
            data = bytearray(whole[0] if kind is Ask else whole[1 + i % 2])
            for at in rng.integers(len(data), size=rng.integers(3)):
                data[at] = rng.integers(256)
            data[int(rng.integers(len(data))) :] = rng.bytes(int(rng.integers(60)))
            try:
                assert isinstance(kind.decode(bytes(data), tag=None, node=5), kind)
            except RefusedError:
                n_refused += 1
        assert tracemalloc.get_traced_memory()[1] < 64 * 2**20
    finally:
        tracemalloc.stop()
    assert 5_000 < n_refused < 20_000


def test_a_later_version_is_refused_as_one():
    data = bytearray(Reply().encode(tag=bytes(16), node=5))
    data[4] = 9
    with pytest.raises(RefusedError, match="version 9, expected 1"):
        Reply.decode(bytes(data), tag=None, node=5)


@pytest.mark.parametrize("code", [19, 255])
def test_a_code_that_is_no_refusal_is_refused(code):
    data = bytearray(Reply().encode(tag=bytes(16), node=5))
    data[30] = code
    with pytest.raises(RefusedError, match=f"{code} is not a code of a refusal"):
        Reply.decode(bytes(data), tag=None, node=5)


def test_every_refusal_has_words_of_its_own():
    assert len({refusal.text for refusal in Refusal}) == len(Refusal)


def test_questions_differ_in_their_digest_if_they_differ_in_anything():
    digests = {Ask(n, query).digest for query in (b"a", b"b") for n in (1, 2)}
    assert len(digests) == 4
    assert {len(digest) for digest in digests} == {32}
