"""A question of one's own, declared in three places, is asked over nodes like any other.

Below are all three: its class and its answer's (`wire/`), a function of the clients (`client/`), and a
row of the table in `client/answers.py`. Codec, checks, bounds, secure sums, policy and log follow.
"""

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import pytest

from federations import EXACT, Federation
from polyurn import answer
from polyurn.client import answers
from polyurn.errors import InputError, MessageError, ParameterError
from polyurn.federation import node
from polyurn.federation.messages import Refusal
from polyurn.typed.declared import AtLeast, Floats, Shape
from polyurn.wire import Batch, Part, Query, Statistics, decode_query, encode_query
from polyurn.wire.query import check_answer


@dataclass(frozen=True, eq=False, repr=False)
class HoldersStatistics(Statistics):
    """Answer to `Holders`. `holders`: 1 where the client has enough points of a category."""

    n_clients: float
    holders: Annotated[Floats, Shape("C")]
    points: Annotated[Floats, Shape("C")]


@dataclass(frozen=True, eq=False)
class Holders(Query[HoldersStatistics]):
    """How many clients have at least so many points of each category, and how many points are these?"""

    answer_type = HoldersStatistics

    n_categories: int
    max_size: Annotated[int, AtLeast(1)]
    fewest: Annotated[int, AtLeast(1)] = 1

    def largest(self):
        return {"points": self.max_size}


def answer_holders(query, cohort):
    counts = cohort.counts().toarray()
    holds = counts >= query.fewest
    return HoldersStatistics(len(cohort), holds.sum(axis=0), (counts * holds).sum(axis=0))


@pytest.fixture(autouse=True)
def declared(monkeypatch):
    """The row of the table, and the name that `kind="holders"` would have given; for a test each."""
    monkeypatch.setattr(Holders, "kind", "holders")
    monkeypatch.setitem(Query.KINDS, "holders", Holders)
    monkeypatch.setitem(answers._ANSWERS, Holders, answer_holders)


QUERY = Holders(10, 20, 2)


def expected(counts):
    holds = counts >= 2
    return [len(counts), *holds.sum(axis=0), *np.where(holds, counts, 0).sum(axis=0)]


@pytest.mark.parametrize("secure", [False, True])
def test_it_is_summed_over_nodes(tmp_path, secure):
    federation = Federation(tmp_path, 4)
    nodes = federation.aggregator(secure=secure)
    sums = nodes.aggregate(QUERY, None)
    assert isinstance(sums, HoldersStatistics)
    np.testing.assert_allclose(sums.to_vector(), expected(federation.counts), atol=1e-9)
    assert [one.kind for one in nodes.traffic.rounds] == ["holders"]
    assert "| holders |" in federation.log(0).read_text()


def test_it_is_asked_of_parts_and_beside_others(tmp_path):
    federation = Federation(tmp_path, 4)
    both = Batch((QUERY, Part(QUERY, 0.0, 0.5), Part(QUERY, 0.5, 1.0)))
    whole, low, high = federation.aggregator().aggregate(both, None).answers
    np.testing.assert_array_equal((low + high).to_vector(), whole.to_vector())
    assert both.text == "batch of 3 holders"


def test_it_crosses_as_bytes_and_is_checked_where_they_are_read():
    again = decode_query(encode_query(QUERY))
    assert (again.n_categories, again.max_size, again.fewest) == (10, 20, 2)
    with pytest.raises(ParameterError, match="fewest of at least 1, got 0"):
        decode_query(encode_query(QUERY).replace(b'"fewest":2', b'"fewest":0'))
    with pytest.raises(MessageError, match="n_categories, max_size, fewest"):
        decode_query(encode_query(QUERY).replace(b'"fewest":2', b'"newest":2'))


def test_no_client_sends_more_than_its_bounds():
    assert QUERY.bounds().round(6).tolist() == [1.0] * 11 + [20.0] * 10
    client = answer(QUERY, [[20] + [0] * 9])
    check_answer(QUERY, client)
    with pytest.raises(InputError):
        check_answer(QUERY, client + client)


def test_a_policy_knows_its_size_and_its_numbers():
    def objection(policy, max_size=20):
        return policy.objection(QUERY, secure=True, max_size=max_size, clients_per_node=25)

    assert objection(EXACT, max_size=19) is Refusal.OTHER_SIZE
    assert objection(replace(EXACT, most_numbers=20)) is Refusal.TOO_MANY_NUMBERS
    assert objection(EXACT) is None


@pytest.mark.parametrize("secure", [False, True])
def test_each_node_decodes_it_once_a_round(tmp_path, monkeypatch, secure):
    decoded = []

    def counting(data):
        decoded.append(data)
        return decode_query(data)

    monkeypatch.setattr(node, "decode_query", counting)
    Federation(tmp_path, 4).aggregator(secure=secure).aggregate(QUERY, None)
    assert len(decoded) == 4
