"""A server that lies to a federation of real processes: it asks what no method of ours would."""

import secrets

import numpy as np

from federations import opened
from polyurn import SizeBins
from polyurn.federation.https.asking import HttpsExchange
from polyurn.federation.messages import Ask, Invitation
from polyurn.model.scores import Mixture
from polyurn.wire import BoundedSurvey, Group, Noised, Survey, WhitenedScore, encode_query


def questions(n_categories, max_size, clients_per_node):
    """What is asked: its name, the question as bytes, and the claimed number of clients of a node."""
    c, bins = n_categories, SizeBins.exact(max_size)
    survey = BoundedSurvey(c, bins)
    local = encode_query(Noised(survey, 1000.0, "local"))
    prototypes = np.random.default_rng(0).dirichlet(np.full(c, 0.6), size=2400)
    directions = np.column_stack([2 * prototypes, np.zeros((2400, 2))])
    many = Mixture(np.full(60_000, 1 / 60_000), np.ones((60_000, c)))
    asked = {
        "x1: noise in 2**31 parts": local.replace(b'"n_reporters":1', b'"n_reporters":2147483647'),
        "x4: sixty thousand components": encode_query(
            Noised(
                WhitenedScore(many, np.zeros((many.n_coordinates, 1)), 1.0, max_size),
                5e5, "distributed", n_reporters=2,
            )
        ),
        "x5: a group of one client": encode_query(
            Group(directions, -(prototypes**2).sum(axis=1), SizeBins([1, max_size + 1]))
        ),
        "x6: an exact sum": encode_query(Survey(c, bins, pairs=False)),
        "another size": encode_query(Noised(BoundedSurvey(c, SizeBins([1, 9])), 100.0, "local")),
    }  # fmt: skip
    yield from ((name, data, clients_per_node) for name, data in asked.items())
    for n in (1, clients_per_node - 1, clients_per_node + 1, 2**16):
        yield f"x2: {n} clients", encode_query(Noised(survey, 100.0, "distributed", 3)), n


def attack(files):
    """Put every question to every node, in a secure sum that begins; the refusals, by their names."""
    declared, exchange, seen = files.read(), HttpsExchange(files), {}
    for name, data, claimed in questions(
        declared.n_categories, declared.max_size, declared.clients_per_node
    ):
        messages = {}
        for node in exchange.nodes():
            body = Invitation().encode(tag=secrets.token_bytes(16), node=node)
            ask = Ask(claimed, data, body)
            messages[node] = ask.encode(tag=secrets.token_bytes(16), node=node)
        replies = dict(exchange.ask("advertise", messages, timeout=60.0))
        refusals = {node: opened(reply).refusal for node, reply in replies.items()}
        seen[name] = {node: None if why is None else why.name for node, why in refusals.items()}
    return seen
