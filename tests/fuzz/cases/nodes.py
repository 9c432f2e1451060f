"""Hostile questions as bytes, to two nodes that differ in one client: the same comes back from both.

One client more, the largest that may be, with a category that nobody else has: if a refusal, a failure
or the length of an answer shows it, a server can find out about any client. An answer is given to what
the owner's policy allows and nothing else.
"""

import atexit
import functools
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

import wire_cases
from federations import EXACT, opened
from fuzz.case import Case, chance, one_of
from fuzz.cases.messages import fuzzed
from polyurn import Records, SizeBins, Sizes
from polyurn.errors import InputError
from polyurn.federation.keys import Roster, SigningKey
from polyurn.federation.messages import Ask, Reply
from polyurn.federation.node import Node
from polyurn.federation.node_log import NodeLogFile
from polyurn.federation.policy import NodePolicy
from polyurn.model.scores import Mixture
from polyurn.wire import (
    Contrast,
    Differences,
    Expect,
    Group,
    Noised,
    Parameters,
    RecordColumn,
    Scaled,
    Score,
    SizeMembership,
    Sketch,
    Spread,
    WhitenedScore,
    decode_query,
    encode_query,
)

MAX_SIZE, CLIENTS_PER_NODE = 12, 9
# Of owners who allow sums with noise only, and any of the questions.
_POLICIES = {
    "noise only": NodePolicy(secure_only=False, most_epsilon=0.0, rounds_per_day=10**6),
    "exact": replace(EXACT, secure_only=False, narrowest_part=0.0, rounds_per_day=10**6),
}


def cases(rng: np.random.Generator) -> Case:
    """A question that somebody has tampered with."""
    owner = one_of(rng, [*_POLICIES])
    name = one_of(rng, [*wire_cases.QUERIES, *_EXTREME])
    query = _EXTREME[name](rng) if name in _EXTREME else wire_cases.QUERIES[name]
    if query.unit_norm and chance(rng, 0.7):
        query = Noised(query, float(10.0 ** rng.uniform(-2, 7)))
    whole = chance(rng, 0.8 if name in _EXTREME else 0.2)
    data = encode_query(query) if whole else fuzzed(encode_query(query), rng=rng)
    declared = CLIENTS_PER_NODE if chance(rng, 0.9) else int(rng.integers(2**32))
    return Case(
        call=lambda: _asked(owner, data, declared), title=f"{name} of {owner}, {data.hex()}"
    )


def _alphas(rng: np.random.Generator, k: int) -> np.ndarray:
    alphas = 10.0 ** rng.uniform(*one_of(rng, ((-150, -100), (-9, 6), (5, 12), (100, 149))), (k, 4))
    return np.where(rng.random((k, 4)) < one_of(rng, (0.0, 0.3)), alphas.max(), alphas)


def _mixture(rng: np.random.Generator) -> Mixture:
    k = int(rng.integers(1, 40))
    return Mixture(
        rng.dirichlet(np.full(k, one_of(rng, (0.05, 1.0, 50.0)))) + 1e-300, _alphas(rng, k)
    )


def _parameters(rng: np.random.Generator) -> Parameters:
    k, bins = int(rng.integers(1, 9)), SizeBins([1, int(rng.integers(2, MAX_SIZE)), MAX_SIZE + 1])
    masses = rng.dirichlet(np.full(2, one_of(rng, (1e-3, 1.0))), size=k)
    return Parameters(rng.dirichlet(np.ones(k)), _alphas(rng, k), Sizes(bins, masses))


def _whitened(rng: np.random.Generator) -> WhitenedScore:
    mixture = _mixture(rng)
    shape = mixture.n_coordinates, int(rng.integers(1, 60))
    whitener = rng.normal(size=shape) * 10.0 ** rng.uniform(-150, 149)
    return WhitenedScore(mixture, whitener, 10.0 ** rng.uniform(-150, 150), MAX_SIZE)


def _sketch(rng: np.random.Generator) -> Sketch:
    directions = rng.normal(size=(int(rng.integers(1, 60)), 4)) * 10.0 ** rng.uniform(-150, 149)
    prototypes = rng.normal(size=directions.shape) * 10.0 ** rng.uniform(-150, 149)
    return Sketch(prototypes, directions, 10.0 ** rng.uniform(-150, 150), MAX_SIZE)


def _group(rng: np.random.Generator) -> Group:
    k = int(rng.integers(1, 60))
    directions = rng.normal(size=(k, 6)) * 10.0 ** rng.uniform(-150, 149)
    return Group(directions, rng.normal(size=k), SizeBins([1, MAX_SIZE + 1]))


def _column(rng: np.random.Generator) -> RecordColumn:
    """Edges around one number of one client, or as far apart as they may be."""
    at = one_of(rng, (0.0, 0.125, -3.0, 1e6, 1e150))
    edges = np.unique(
        [at, np.nextafter(at, -np.inf), *rng.normal(size=3) * 10.0 ** rng.uniform(-150, 149)]
    )
    return RecordColumn(int(rng.integers(5)), one_of(rng, (5, 5, 6)), edges)


def _contrast(rng: np.random.Generator) -> Contrast:
    column = _column(rng)
    return Contrast(int(one_of(rng, (4, 4, 2))), column.n_bins, column)


# Questions that can be read, with parameters that no honest method would ask about.
_EXTREME = {
    "extreme expect": lambda rng: Expect(_parameters(rng)),
    "extreme score": lambda rng: Score((_parameters(rng).mdm(), _parameters(rng).mdm())),
    "extreme whitened score": _whitened,
    "extreme differences": lambda rng: Differences(
        (_mixture(rng), _mixture(rng)), (10.0 ** rng.uniform(-150, 150),), MAX_SIZE
    ),
    "extreme size membership": lambda rng: SizeMembership(
        _mixture(rng), SizeBins([1, MAX_SIZE + 1])
    ),
    "extreme sketch": _sketch,
    "extreme group": _group,
    "extreme spread": lambda rng: Spread(4, _column(rng)),
    "extreme contrast": _contrast,
    "extreme scaled contrast": lambda rng: Scaled(_contrast(rng)),
}


def _asked(owner: str, data: bytes, declared: int) -> None:
    replies = [_reply(node, data, declared) for node in _nodes(owner)]
    first, other = ((reply.refusal, len(reply.body)) for reply in replies)
    assert first == other, f"a client more changes what comes back: {first} and {other}"
    if replies[0].refusal is not None:
        raise InputError(f"expected a question that is allowed; {replies[0].refusal.text}")
    objection = _POLICIES[owner].objection(
        decode_query(data), secure=False, max_size=MAX_SIZE, clients_per_node=CLIENTS_PER_NODE
    )
    assert objection is None, f"an answer to what the owner refuses: {objection}"


def _reply(node: Node, data: bytes, declared: int) -> Reply:
    return opened(node.answer("plain", Ask(declared, data).encode(tag=bytes(16), node=1)))


@functools.cache
def _nodes(owner: str) -> tuple[Node, Node]:
    folder = Path(tempfile.mkdtemp(prefix="nodes-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    few = [[3, 1, 0, 0], [1, 0, 0, 0], [2, 2, 2, 0], [0, 4, 4, 0]]
    both = (few, [*few, [0, 0, 0, MAX_SIZE]])
    return tuple(_node(folder, i, counts, _POLICIES[owner]) for i, counts in enumerate(both))


def _node(folder: Path, i: int, counts: list[list[int]], policy: NodePolicy) -> Node:
    labels = [label for client in counts for label, n in enumerate(client) for _ in range(n)]
    owners = np.repeat(np.arange(len(counts)), np.sum(counts, axis=1))
    features = np.random.default_rng(21).integers(-24, 25, (len(labels), 5)) / 8
    features[owners == 4] *= 1e6  # the one client more is far from all others
    held = Records(features, labels, owners, n_labels=4)
    return Node(
        1, held, ids=list(range(len(counts))), key=bytes(32), policy=policy, rng=0,
        log=NodeLogFile(folder / f"{i}.log"), max_size=MAX_SIZE, clients_per_node=CLIENTS_PER_NODE,
        signer=SigningKey.generate(), roster=Roster({}),  # no secure sums here
    )  # fmt: skip
