"""Queries and answers as bytes: equal to the last bit, as the page has them, and refused if damaged."""

import itertools
import json
import struct
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import plain_client
import wire_cases
from fuzz.cases.messages import fuzzed
from polyurn import (
    LocalAggregator,
    SizeBins,
    answer,
    feature_differences,
    fit,
    fit_paper,
)
from polyurn.errors import InputError, MessageError, ParameterError
from polyurn.model.paper_truths import truth
from polyurn.wire import (
    Batch,
    Expect,
    Part,
    Query,
    Statistics,
    Survey,
    Update,
    check_answer,
    decode_query,
    decode_statistics,
    encode_query,
    encode_statistics,
)
from polyurn.wire.private_grid import STEP
from strategies import counts, mdms_with_zeros

ALL = {**wire_cases.QUERIES, **wire_cases.MORE}
ASKED = {name: encode_query(query) for name, query in ALL.items()}
COUNTS = truth("medium/3").sample(300, rng=0)
BOUNDS = {"n_categories": 10, "max_size": 20}


def same(one, other):
    """Whether two queries are of the same types and numbers, bit by bit."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return (
            one.dtype == other.dtype
            and one.shape == other.shape
            and one.tobytes() == other.tobytes()
        )
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    if hasattr(one, "__dict__"):
        return same(sorted(one.__dict__.items()), sorted(other.__dict__.items()))
    return one == other


# ------------------------------------------------------------------------------------- round trips


@pytest.mark.parametrize("name", ALL)
def test_a_query_is_the_same_after_its_bytes_to_the_last_bit(name):
    again = decode_query(ASKED[name])
    assert same(again, ALL[name])
    assert encode_query(again) == ASKED[name]


@given(mdms_with_zeros(), st.data())
def test_an_answer_is_the_same_after_its_bytes_to_the_last_bit(mdm, data):
    query = Batch((Update(mdm), Part(Update(mdm), 0.0, 0.5)))
    table = data.draw(counts(mdm.n_categories, max_size=mdm.max_size))
    said = answer(query, table, buckets=np.linspace(0, 0.99, len(table)))
    if not np.isfinite(said.to_vector()).all():
        with pytest.raises(InputError, match="finite"):
            encode_statistics(said, query)
        return
    again = decode_statistics(encode_statistics(said, query), query)
    assert again.to_vector().tobytes() == said.to_vector().tobytes()
    assert repr(again) == repr(said)


def test_size_bins_are_written_once_and_are_one_object_again():
    parameters = wire_cases.QUERIES["expect-curvature"].parameters
    query = Batch((Expect(parameters), Part(Expect(parameters), 0.0, 1.0), Expect(parameters)))
    message = encode_query(query)
    assert len(header_of(message)["bins"]) == 1
    one, part, other = decode_query(message).queries
    bins = one.parameters.sizes.bins
    assert bins is part.query.parameters.sizes.bins is other.parameters.sizes.bins
    twin = SizeBins(bins.edges, bins.fine, bins.shares)  # equal, and not the same: answered apart
    apart = decode_query(encode_query(Batch((Survey(4, bins, False), Survey(4, twin, False)))))
    assert apart.queries[0].size_bins is not apart.queries[1].size_bins


class OverTheWire:
    """Encodes and decodes all that crosses, and holds sums to the bounds of as many clients."""

    def __init__(self, counts, rng):
        self._clients = LocalAggregator(counts, rng=rng)
        self.n_clients = self._clients.n_clients
        self.n_bins = []

    def aggregate(self, query, cohort_size):
        message = encode_query(query)
        self.n_bins.append(len(header_of(message)["bins"]))
        mine = decode_query(message)
        sent = encode_statistics(self._clients.aggregate(mine, cohort_size), mine)
        said = decode_statistics(sent, query)
        check_answer(query, said, query.bounds() * (cohort_size or self.n_clients))
        return said


def header_of(message):
    (length,) = struct.unpack_from("<I", message, 8)
    return json.loads(message[12 : 12 + length])


def run_twice(run, counts=COUNTS):
    """What a run gives over the wire and directly, and how many bins its largest message had."""
    wire = OverTheWire(counts, rng=1)
    return run(wire), run(LocalAggregator(counts, rng=1)), max(wire.n_bins)


@pytest.mark.parametrize("cohort_size", [None, 100])
@pytest.mark.parametrize("sizes", ["exact", "binned", "shared"])
def test_a_fit_over_the_wire_is_the_direct_one_to_the_last_bit(sizes, cohort_size):
    settings = {"sizes": sizes, "cohort_size": cohort_size, "max_rounds": 8, "rng": 2}
    there, here, n_bins = run_twice(
        lambda clients: fit(clients, n_components=2, **BOUNDS, **settings)
    )
    assert there.mdm == here.mdm
    assert [r.log_likelihood for r in there.rounds[1:]] == [
        r.log_likelihood for r in here.rounds[1:]
    ]
    assert n_bins == 1


def test_a_fit_that_asks_a_part_of_the_clients_first_is_the_direct_one_to_the_last_bit():
    many = truth("medium/3").sample(8_200, rng=0)
    there, here, _ = run_twice(
        lambda clients: fit(clients, n_components=3, **BOUNDS, max_rounds=5, rng=2), many
    )
    assert there.mdm == here.mdm


def test_a_selection_over_the_wire_is_the_direct_one_to_the_last_bit():
    there, here, _ = run_twice(
        lambda clients: fit(clients, n_components=[1, 2, 3], **BOUNDS, max_rounds=6, rng=2)
    )
    assert there.mdm == here.mdm
    assert [c.log_likelihood for c in there.candidates] == [
        c.log_likelihood for c in here.candidates
    ]


def test_the_papers_fit_over_the_wire_is_the_direct_one_to_the_last_bit():
    there, here, _ = run_twice(
        lambda clients: fit_paper(clients, n_components=3, **BOUNDS, n_rounds=4, size_prior=1.0)
    )
    assert there.mdm == here.mdm


def test_what_to_model_is_the_same_over_the_wire():
    there, here, _ = run_twice(lambda clients: feature_differences(clients, n_labels=2, n_values=5))
    assert there == here


# ------------------------------------------------------------------------------------ test vectors


@pytest.mark.parametrize("name", wire_cases.QUERIES)
def test_every_test_vector_is_what_is_written_today(name):
    query, old, new = (
        wire_cases.QUERIES[name],
        wire_cases.kept(name),
        wire_cases.made(wire_cases.QUERIES[name]),
    )
    assert (new.query, new.counts, new.bucket) == (old.query, old.counts, old.bucket)
    assert (new.features, new.labels) == (old.features, old.labels)
    assert_close(new.answer, old.answer, query)


@pytest.mark.parametrize("name", wire_cases.QUERIES)
def test_a_client_written_from_the_page_alone_gives_the_same_answer(name):
    vector = wire_cases.kept(name)
    said = plain_client.answer(
        vector.query, vector.counts, vector.bucket, vector.features, vector.labels
    )
    assert_close(said, vector.answer, wire_cases.QUERIES[name])


def test_there_are_no_other_test_vectors():
    assert {path.stem for path in wire_cases.VECTORS.iterdir()} == set(wire_cases.QUERIES)


def assert_close(said, expected, query):
    """Kernels differ in the last bits from machine to machine."""
    one, other = (decode_statistics(m, query).to_vector() for m in (said, expected))
    step = STEP if query.unit_norm else 0.0  # a last bit may cut a number off one step lower
    assert (np.abs(one - other) <= 1e-9 * query.bounds() + step).all()


# ---------------------------------------------------------------------------------------- refusals


def remade(name, change, numbers=None):
    """The message of a query with a changed header, and other numbers."""
    header = header_of(ASKED[name])
    change(header)
    return with_header(ASKED[name], header, numbers)


def with_header(message, header, numbers=None):
    (length,) = struct.unpack_from("<I", message, 8)
    text = json.dumps(header).encode()
    payload = message[12 + length :] if numbers is None else np.asarray(numbers, "<f8").tobytes()
    return message[:8] + struct.pack("<I", len(text)) + text + payload


def field(name, value, *path):
    """Sets header[path...][name]."""

    def change(header):
        for step in path:
            header = header[step]
        header[name] = value

    return change


def nest(n):
    def change(header):
        for _ in range(n):
            header["query"] = {"kind": "batch", "queries": [header["query"]]}

    return change


def with_numbers(name, start, *values):
    """The message of a query with other numbers from some place on."""
    message = ASKED[name]
    (length,) = struct.unpack_from("<I", message, 8)
    numbers = np.frombuffer(message, "<f8", offset=12 + length).copy()
    numbers[start : start + len(values)] = values
    return with_header(message, header_of(message), numbers)


def in_a_part(header):
    header["query"] = {"kind": "part", "query": header["query"], "low": 0.0, "high": 1.0}


REFUSED = {
    "bins that are not there": remade("survey", field("size_bins", 1, "query")),
    "negative bins": remade("survey", field("size_bins", -1, "query")),
    "an unknown kind": remade("survey", field("kind", "gossip", "query")),
    "no kind": remade("survey", lambda h: h["query"].pop("kind")),
    "a list for a query": remade("survey", field("query", [])),
    "an unknown field": remade("survey", field("more", 1, "query")),
    "a missing field": remade("survey", lambda h: h["query"].pop("pairs")),
    "1 for true": remade("survey", field("pairs", 1, "query")),
    "true for 1": remade("initialise", field("n_components", True, "query")),
    "a fraction": remade("initialise", field("n_components", 1.5, "query")),
    "too many components": remade("initialise", field("n_components", 2**31, "query")),
    "too much to ask for": remade("initialise", field("n_components", 2**30, "query")),
    "too many pairs": remade("survey-pairs", field("n_categories", 10**6, "query")),
    "one category": remade("survey", field("n_categories", 1, "query")),
    "more rows than numbers": remade("group", field("shape", [2**31 - 1], "query", "offsets")),
    "fewer rows than numbers": remade("group", field("shape", [2], "query", "offsets")),
    "no rows": remade("group", field("shape", [0], "query", "offsets")),
    "another number of rows": remade("group", field("shape", [2, 6], "query", "directions")),
    "another number of axes": remade("group", field("shape", [3, 1], "query", "offsets")),
    "a shape of text": remade("group", field("shape", "3", "query", "offsets")),
    "a negative length": remade("group", field("shape", [-3], "query", "offsets")),
    "numbers before the first": remade("group", field("at", -1, "query", "offsets")),
    "numbers beyond the last": remade("group", field("at", 57, "query", "offsets")),
    "no place": remade("group", lambda h: h["query"]["offsets"].pop("at")),
    "curvature of nobody": remade("expect-curvature", field("curvature", [0, 3], "query")),
    "curvature out of order": remade("expect-curvature", field("curvature", [2, 0], "query")),
    "curvature before the first": remade("expect-curvature", field("curvature", [-1], "query")),
    "an empty batch": remade("nested", lambda h: h["query"].update(queries=[])),
    "no models": remade("score", field("mdms", [], "query")),
    "a model that is none": remade("score", field("mdms", [3], "query")),
    "deeply nested": remade("survey", nest(8)),
    "edges that fall": with_numbers("initialise", 0, 1, 4, 2, 13, 1, 4, 2, 13),
    "edges of fractions": with_numbers("initialise", 0, 1, 2.5, 4, 13, 1, 2.5, 4, 13),
    "edges beyond all sizes": with_numbers("initialise", 0, 1, 2, 4, 1e15, 1, 2, 4, 1e15),
    "a part that ends before it begins": remade("part-outside", field("high", 0.25, "query")),
    "a part beyond 1": remade("part-outside", field("high", 1.5, "query")),
    "NaN in the header": remade("part-outside", field("high", np.nan, "query")),
    "null in the header": remade("part-outside", field("high", None, "query")),
    "NaN": with_numbers("group", 3, np.nan),
    "infinite": with_numbers("group", 3, np.inf),
    "1e300": with_numbers("group", 3, 1e300),
    "weights of 0": with_numbers("update", 0, 0.0, 0.0, 0.0),
    "weights that rise": with_numbers("update", 0, 0.25, 0.25, 0.5),
    "an alpha below all": with_numbers("update", 3, 1e-160),
    "masses below 0": with_numbers("update", 15, -0.5, 1.5),
    "a fine bin too many": remade("update", field("shape", [7], "bins", 0, "fine")),
    "noise inside of a part": remade("noised", in_a_part),
    "numbers of two arrays": remade("group", field("at", 0, "query", "offsets")),
    "numbers of no array": remade("sketch", field("at", 0, "query", "directions")),
    "another trust": remade("noised", field("trust", "blind", "query")),
    "nothing": b"",
    "half a head": ASKED["survey"][:7],
    "another magic word": b"PUXX" + ASKED["survey"][4:],
    "an answer": b"PUAN" + ASKED["survey"][4:],
    "a later version": ASKED["survey"][:4] + struct.pack("<I", 3) + ASKED["survey"][8:],
    "a header beyond the end": ASKED["survey"][:8] + struct.pack("<I", 2**32 - 1) + ASKED["survey"][12:],
    "a byte left over": ASKED["survey"] + b"\0",
    "a number left over": ASKED["survey"] + bytes(8),
    "half a number": ASKED["survey"][:-4],
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_damaged_query_is_refused_in_one_line(name):
    with pytest.raises(InputError) as refused:
        decode_query(REFUSED[name])
    text = str(refused.value)
    assert "expected" in text
    assert "\n" not in text
    assert len(text) < 300


def sealed(text, payload=b""):
    return b"PUQU" + struct.pack("<II", 1, len(text)) + text + payload


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 100_000, b"{" * 1000, b'{"a":' * 50_000, b"[]", b"null", b"7" * 6000, b"\xff\xfe",
        b"NaN", b"",
        b'{"bins":[],"query":NaN,"n_numbers":0}', b'{"bins":[],"bins":[],"query":{},"n_numbers":0}',
        b'{"bins":{},"query":{},"n_numbers":0}', b'{"bins":[1],"query":{},"n_numbers":0}',
        b'{"bins":[],"query":{"kind":["a"]},"n_numbers":0}',
        b'{"bins":[],"query":{"kind":"batch","queries":{}},"n_numbers":0}',
        b'{"bins":[],"query":{"kind":"contrast","n_labels":1e400,"n_values":2},"n_numbers":0}',
        b'{"bins":[],"query":{},"n_numbers":' + b"9" * 5000 + b"}",
        b'{"bins":[],"query":{},"n_numbers":-0}', b'{"bins":[],"query":{},"n_numbers":null}',
    ],
)  # fmt: skip
def test_a_header_that_is_no_header_is_refused(text):
    with pytest.raises(MessageError, match="expected"):
        decode_query(sealed(text))


def test_only_bytes_are_decoded():
    for other in ("text", 3, None, [1, 2]):
        with pytest.raises(InputError, match="bytes"):
            decode_query(other)
    assert same(decode_query(memoryview(ASKED["survey"])), ALL["survey"])
    assert same(decode_query(bytearray(ASKED["survey"])), ALL["survey"])


def test_queries_about_different_categories_are_not_asked_together():
    with pytest.raises(ParameterError, match="same number of categories"):
        Batch((Survey(4, wire_cases.EXACT, False), Survey(5, wire_cases.EXACT, False)))
    twice = Batch((Survey(4, wire_cases.EXACT, False), Survey(4, wire_cases.EXACT, False)))
    header = header_of(encode_query(twice))
    header["query"]["queries"][1]["n_categories"] = 5
    with pytest.raises(ParameterError, match="same number of categories"):
        decode_query(with_header(encode_query(twice), header))


def test_a_query_of_no_known_kind_is_not_sent():
    class Gossip(Survey):
        pass

    with pytest.raises(MessageError, match=r"expected a query of polyurn\.wire"):
        encode_query(Gossip(4, wire_cases.EXACT, False))
    with pytest.raises(MessageError, match="fewer queries"):
        encode_query(Batch((ALL["survey"],) * 20_000))


def test_an_answer_to_another_query_is_refused():
    query, other = ALL["contrast"], ALL["survey"]
    said = wire_cases.made(query).answer
    with pytest.raises(MessageError, match="of kind survey, got one to 'contrast'"):
        decode_statistics(said, other)
    longer = Part(Batch((query, query)), 0.0, 1.0)
    twice = encode_statistics(longer.read(np.zeros(longer.n_numbers)), longer)
    with pytest.raises(InputError, match="expected an answer of 18 numbers"):
        decode_statistics(twice, Part(query, 0.0, 1.0))
    with pytest.raises(InputError):
        decode_statistics(ASKED["contrast"], query)


def test_an_answer_of_a_client_with_probability_zero_is_not_sent():
    impossible = answer(ALL["zeros"], [0, 0, 5, 0])
    with pytest.raises(InputError, match="finite"):
        encode_statistics(impossible, ALL["zeros"])


# ------------------------------------------------------------------------------------------- fuzzed


def outcome(call, *arguments):
    """What a call returned, or our own error; every other one is a failure of the test."""
    try:
        return call(*arguments)
    except InputError as error:
        return error


def check_fuzzed(n, seed):
    rng = np.random.default_rng(seed)
    names = [name for name, _ in zip(itertools.cycle(ASKED), range(n), strict=False)]
    messages = [fuzzed(ASKED[name], rng=rng) for name in names]
    tracemalloc.start()
    try:
        found = [outcome(decode_query, data) for data in messages]
        held, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most - held < 64 * 2**20
    said = {name: wire_cases.made(query).answer for name, query in wire_cases.QUERIES.items()}
    for name, message in itertools.islice(itertools.cycle(said.items()), n // 4):
        found.append(outcome(decode_statistics, fuzzed(message, rng=rng), ALL[name]))
    refused = [str(one) for one in found if isinstance(one, InputError)]
    assert not any("\n" in text for text in refused)
    queries = [one for one in found if isinstance(one, Query)]
    assert len(refused) > n / 4
    assert len(queries) > n / 20
    for query in queries:
        check_can_be_answered(query)


def check_can_be_answered(query):
    """What a decoder lets through is no danger to a client, whatever the parameters have become."""
    assert same(decode_query(encode_query(query)), query)
    if query.n_categories != 4 or query.n_numbers > 10**4:
        return
    said = outcome(lambda: answer(query, wire_cases.HELD, buckets=np.array([0.375]), rng=0))
    if isinstance(said, Statistics) and np.isfinite(said.to_vector()).all():
        check_answer(query, said)


def test_a_few_hundred_fuzzed_messages_are_refused_or_read():
    check_fuzzed(400, seed=1)


@pytest.mark.slow
def test_20_000_fuzzed_messages_are_refused_or_read():
    check_fuzzed(20_000, seed=2)


@pytest.mark.parametrize("filler", [b"[]", b"{}", b'{"a":{}}', b"1.5", b"[" * 400 + b"]" * 400])
def test_no_small_message_takes_more_than_64_mb(filler):
    items = b",".join([filler] * ((2**20 - 100) // (len(filler) + 1)))
    text = b'{"bins":[' + items + b'],"query":{},"n_numbers":0}'
    assert len(text) <= 2**20
    tracemalloc.start()
    try:
        with pytest.raises(InputError):
            decode_query(sealed(text))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 64 * 2**20


def test_names_of_categories_never_cross_the_wire():
    mdm = truth("low/1")
    named = replace(mdm, categories=[f"diagnosis {j}" for j in range(mdm.n_categories)])
    assert encode_query(Update(named)) == encode_query(Update(mdm))
    assert decode_query(encode_query(Update(named))).mdm == mdm
