"""Messages come back as they were sent, and nothing else is taken for one."""

import contextlib
import copy
import functools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyurn.errors import RefusedError, SecureSumError
from polyurn.federation import messages
from polyurn.federation.messages import (
    Advertisement,
    Ask,
    Confirmations,
    MaskedVector,
    Neighbourhood,
    RevealedShares,
    SealedShares,
    Survivors,
    tag_of,
)
from secure_rounds import STAGES, TAKES, Federation

TAG, NODE = bytes(range(16)), 2**64 - 1
KINDS = [
    kind
    for kind in vars(messages).values()
    if isinstance(kind, type)
    and issubclass(kind, messages.Message)
    and kind is not messages.Message
]
IDS = st.integers(0, 2**64 - 1)


def keys(size):
    return st.binary(min_size=size, max_size=size)


ADS = st.builds(Advertisement, keys(32), keys(32), keys(32), st.binary(min_size=1, max_size=256))


def same(message):
    data = message.encode(tag=TAG, node=NODE)
    assert tag_of(data) == TAG
    return type(message).decode(data, tag=TAG, node=NODE) == message


@given(ADS, st.dictionaries(IDS, keys(32), max_size=5), st.dictionaries(IDS, ADS, max_size=5))
def test_keys_come_back_as_they_were_sent(ad, cohort, near):
    assert same(ad)
    assert same(Neighbourhood(3, 4, cohort, near))


@given(
    st.dictionaries(IDS, keys(messages.N_SEALED_BYTES), max_size=5),
    st.dictionaries(IDS, keys(66), max_size=5),
    st.dictionaries(IDS, st.binary(min_size=1, max_size=256), max_size=5),
)
def test_shares_and_signatures_come_back_as_they_were_sent(sealed, shares, signatures):
    assert same(SealedShares(sealed))
    assert same(messages.ForwardedShares(bytes(32), sealed))
    assert same(RevealedShares(shares))
    assert same(Confirmations(signatures))
    assert same(Survivors(tuple(sorted(shares))))


@given(st.lists(IDS, max_size=9))
def test_words_come_back_as_they_were_sent(words):
    array = np.array(words, dtype=np.uint64)
    data = MaskedVector(array).encode(tag=TAG, node=NODE)
    assert (MaskedVector.decode(data, tag=TAG, node=NODE).words == array).all()


def test_every_kind_of_message_has_a_number_of_its_own():
    assert sorted(kind.KIND for kind in KINDS) == list(range(1, 13))


@pytest.mark.parametrize("nodes", [(2, 1), (1, 1)])
def test_ids_that_come_twice_or_out_of_order_are_refused(nodes):
    with pytest.raises(RefusedError, match="not in increasing order"):
        same(Survivors(nodes))


@pytest.mark.parametrize("n_ids", [2**32 - 1, 2**31, 3])
def test_more_ids_than_bytes_are_refused_before_any_memory_is_taken(n_ids):
    data = Survivors((1, 2)).encode(tag=TAG, node=NODE)
    data = data[:30] + n_ids.to_bytes(4, "little") + data[34:]
    tracemalloc.start()
    try:
        with pytest.raises(RefusedError, match="too short"):
            Survivors.decode(data, tag=TAG, node=NODE)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("size", [0, 257, 65535])
def test_a_signature_of_an_odd_length_is_refused(size):
    data = messages.Confirmation(b"s").encode(tag=TAG, node=NODE)
    with pytest.raises(RefusedError, match=f"a signature of {size} bytes"):
        messages.Confirmation.decode(data[:30] + size.to_bytes(2, "little"), tag=TAG, node=NODE)


@pytest.mark.parametrize("data", [None, "text", 5, b"", b"PUSS", bytearray(40), [1]])
def test_what_is_no_row_of_bytes_is_refused(data):
    for read in (lambda: Survivors.decode(data, tag=TAG, node=NODE), lambda: tag_of(data)):
        with pytest.raises(RefusedError, match="it has no header"):
            read()


# ---------------------------------------------------------------------------------------- fuzz


class Walk:
    """A federation that stopped before each stage: what nodes and the server can be asked there."""

    def __init__(self):
        self.federation = Federation(4, n_numbers=3)
        self.saved, self.before = {}, {}
        requests = self.federation.round.invite()
        self.requests, self.replies = {}, {}
        for stage, takes in zip(STAGES, TAKES, strict=True):
            self.saved[stage] = {n: p.save() for n, p in self.federation.participants.items()}
            self.requests[stage] = requests
            replies = {n: self.federation.answer(stage, n, r) for n, r in requests.items()}
            self.before[stage], self.replies[stage] = copy.copy(self.federation.round), replies
            requests = getattr(self.federation.round, takes)(replies)

    def ask_a_node(self, stage, data):
        node = self.federation.nodes[1]
        self.federation.participants[node] = self.federation.resumed(node, self.saved[stage][node])
        return self.federation.answer(stage, node, data)

    def ask_the_server(self, stage, data):
        server = copy.copy(self.before[stage])
        server.refused = {}
        replies = {**self.replies[stage], self.federation.nodes[1]: data}
        return getattr(server, TAKES[STAGES.index(stage)])(replies)


def damaged(data, rng):
    """A message with bytes changed, cut out, put in or doubled; or noise behind a header."""
    data, kind = bytearray(data), rng.integers(7)
    at = int(rng.integers(len(data)))
    if kind == 0:
        data[at] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        del data[at:]
    elif kind == 2:
        data[at:at] = rng.bytes(int(rng.integers(1, 20)))
    elif kind == 3:
        del data[at : at + int(rng.integers(1, 20))]
    elif kind == 4:
        data[30:] = rng.bytes(int(rng.integers(200)))
    elif kind == 5:
        at = min(30, len(data))
        data[at : at + 4] = int(rng.choice([0, 1, 2**16, 2**31, 2**32 - 1])).to_bytes(4, "little")
    else:
        data[at:at] = data[at : at + int(rng.integers(1, 100))]
    return bytes(data)


def fuzz(n_cases, seed):
    """Damaged messages to nodes and to the server: an error of ours, or an answer."""
    walk, rng = Walk(), np.random.default_rng(seed)
    n_refused = 0
    for i in range(n_cases):
        stage = STAGES[i % 5]
        node = walk.federation.nodes[1]
        if i // 5 % 2:
            sent, ask = walk.replies[stage][node], walk.ask_the_server
        else:
            sent, ask = walk.requests[stage][node], walk.ask_a_node
        try:
            ask(stage, damaged(sent, rng))
        except SecureSumError:
            n_refused += 1
    return n_refused


def test_damaged_messages_end_in_an_error_of_ours_or_in_an_answer():
    assert fuzz(500, seed=1) > 200


@pytest.mark.slow
def test_20000_damaged_messages_end_in_an_error_of_ours_or_in_an_answer_within_64_megabytes():
    tracemalloc.start()
    try:
        assert fuzz(20_000, seed=2) > 8000
        assert tracemalloc.get_traced_memory()[1] < 64 * 2**20
    finally:
        tracemalloc.stop()


@functools.cache
def sent_by_kind():
    """Whole messages of each kind, as a round has them."""
    walk = Walk()
    whole = [*walk.requests.values(), *walk.replies.values()]
    return {data[5]: data for each in whole for data in each.values()}


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind.KIND <= 10], ids=lambda kind: kind.__name__
)
def test_20000_damaged_messages_of_each_kind_are_refused_or_read_within_64_megabytes(kind):
    rng, whole = np.random.default_rng(kind.KIND), sent_by_kind()[kind.KIND]
    node, n_refused = int.from_bytes(whole[22:30], "little"), 0
    tracemalloc.start()
    try:
        for i in range(20_000):
            data = whole[:30] + rng.bytes(int(rng.integers(3000))) if i % 5 == 0 else whole
            try:
                message = kind.decode(damaged(data, rng), tag=tag_of(whole), node=node)
            except RefusedError:
                n_refused += 1
            else:
                assert isinstance(message, kind)
        assert tracemalloc.get_traced_memory()[1] < 64 * 2**20
    finally:
        tracemalloc.stop()
    assert n_refused > 5_000


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_noise_behind_a_header_is_refused_or_read(kind):
    rng = np.random.default_rng(kind.KIND)
    header = messages.Invitation().encode(tag=TAG, node=NODE)
    for _ in range(100):
        data = header[:5] + bytes([kind.KIND]) + header[6:] + rng.bytes(int(rng.integers(400)))
        with contextlib.suppress(RefusedError):  # and nothing else
            kind.decode(data, tag=TAG, node=NODE)


def test_what_is_the_same_for_all_nodes_is_encoded_once(monkeypatch):
    n_encoded, pack = 0, messages.pack

    def counted(value):
        nonlocal n_encoded
        n_encoded += 1
        return pack(value)

    monkeypatch.setattr(messages, "pack", counted)
    ask = Ask(5, b"a question to all")
    sent = {node: ask.encode(tag=bytes(16), node=node) for node in range(1, 9)}
    assert n_encoded == 1
    assert all(Ask.decode(data, tag=None, node=node) == ask for node, data in sent.items())
