"""What a refusal does, and how long it takes, does not depend on the clients: no client is looked at.

No clock tells it: the lines of polyurn that run are recorded, for two nodes with other clients. What a
refusal says is in tests/federation/test_node.py.
"""

import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import polyurn
from federations import OPEN, Federation, opened
from polyurn import SizeBins
from polyurn.federation.messages import Ask, Invitation, Refusal
from polyurn.federation.policy import NodePolicy
from polyurn.storage.ledger_file import open_ledger
from polyurn.wire import (
    BoundedSurvey,
    Contrast,
    Noised,
    Part,
    StyleMoments,
    Survey,
    encode_query,
)
from style_cases import whole_space

SOURCE = Path(polyurn.__file__).parent
QUERY = Survey(10, SizeBins.exact(20), pairs=False)
PRIVATE = BoundedSurvey(10, SizeBins.logarithmic(20))
STRICT = NodePolicy(most_epsilon=0.0)
NOISED = NodePolicy(secure_only=False, least_noise=2.0, most_epsilon=0.0)
N_CLIENTS = 25


def unchanged(counts):
    return counts


def other_clients(counts):
    """As many clients, each with twenty points of one category: nothing is as it was."""
    changed = np.zeros_like(counts)
    changed[:, 3] = 20
    return changed


def one_client_less(counts):
    return counts[:-1]


def one_client_is_another(counts):
    changed = counts.copy()
    changed[4] = np.roll(changed[4], 3)
    return changed


DIFFERENT = (other_clients, one_client_less, one_client_is_another)

# What is refused, by its policy, its question and what the owner keeps.
REFUSED = {
    "secure only": (STRICT, QUERY, Refusal.SECURE_ONLY),
    "numbers": (replace(OPEN, most_numbers=40), QUERY, Refusal.TOO_MANY_NUMBERS),
    "part": (replace(OPEN, narrowest_part=0.1), Part(QUERY, 0.5, 0.55), Refusal.TOO_NARROW_PART),
    "categories": (OPEN, Contrast(2, 2), Refusal.OTHER_CATEGORIES),
    "records": (OPEN, StyleMoments(whole_space()), Refusal.NO_RECORDS),
    "too often": (replace(OPEN, rounds_per_day=0), QUERY, Refusal.TOO_OFTEN),
    "no noise": (NOISED, QUERY, Refusal.PRIVATE_ONLY),
    "little noise": (NOISED, Noised(PRIVATE, 1.0), Refusal.TOO_LITTLE_NOISE),
    "spent": (replace(NOISED, least_noise=0.1), Noised(PRIVATE, 0.2), Refusal.BUDGET_SPENT),
    "no query": (OPEN, b"no query", Refusal.UNREADABLE),
}  # fmt: skip


class Lines:
    """The lines of polyurn that run while it lasts, each as (file, function, number)."""

    def __enter__(self):
        self.seen, self.before = [], sys.gettrace()
        sys.settrace(self._call)
        return self

    def __exit__(self, *error):
        sys.settrace(self.before)

    @property
    def of_clients(self):
        """The functions that are those of `client/`, but for how many clients there are."""
        functions = {(file, name) for file, name, _ in self.seen if file.startswith("client")}
        return functions - {(os.path.join("client", "rows.py"), "n_clients")}

    def _call(self, frame, event, argument):
        path = frame.f_code.co_filename
        if not path.startswith(str(SOURCE)):
            return None
        file = path.removeprefix(f"{SOURCE}{os.sep}")

        def line(frame, event, argument):
            if event == "line":
                self.seen.append((file, frame.f_code.co_name, frame.f_lineno))
            return line

        return line


def asked(folder, policy, query, change, stage):
    """The refusal of a new node to one question, and the lines that ran."""
    folder.mkdir()
    federation = Federation(folder, 1, N_CLIENTS, policy=policy)
    federation.counts = change(federation.counts)
    federation.names = federation.names[: len(federation.counts)]
    private = isinstance(query, Noised)
    ledger = open_ledger(folder / "ledger", epsilon=1.0, delta=1e-6) if private else None
    node = federation.node(0, ledger=ledger)
    data = query if isinstance(query, bytes) else encode_query(query)
    body = Invitation().encode(tag=bytes(16), node=federation.ids[0]) if stage != "plain" else b""
    message = Ask(N_CLIENTS, data, body).encode(tag=bytes(16), node=federation.ids[0])
    with Lines() as lines:
        reply = node.answer(stage, message)
    return opened(reply), lines


def at_both_stages():
    for name in REFUSED:
        yield name, "plain"
        if name not in ("secure only", "spent"):  # in a secure sum these are not refused at once
            yield name, "advertise"


@pytest.mark.parametrize(("name", "stage"), list(at_both_stages()))
def test_no_client_is_looked_at_for_a_refusal_and_no_line_of_it_depends_on_one(
    tmp_path, name, stage
):
    policy, query, refusal = REFUSED[name]
    asked(tmp_path / "first", policy, query, unchanged, stage)  # fills what is worked out only once
    reply, lines = asked(tmp_path / "these", policy, query, unchanged, stage)
    assert (reply.refusal, reply.body) == (refusal, b"")
    assert lines.of_clients == set()
    for change in DIFFERENT:
        other, same = asked(tmp_path / change.__name__, policy, query, change, stage)
        assert other == reply, change.__name__
        assert same.seen == lines.seen, change.__name__


def test_the_same_lines_tell_an_answer_from_a_refusal(tmp_path):
    """Else the test above would pass whatever ran."""
    reply, lines = asked(tmp_path / "these", OPEN, QUERY, unchanged, "plain")
    assert reply.refusal is None
    assert (os.path.join("client", "answers.py"), "answer_rows") in lines.of_clients


def test_a_stage_of_a_round_that_the_node_is_not_in_looks_at_no_client(tmp_path):
    for stage in ("share", "mask", "confirm", "reveal"):
        reply, lines = asked(tmp_path / stage, OPEN, QUERY, unchanged, stage)
        assert reply.refusal is Refusal.OFF_PROTOCOL
        assert lines.of_clients == set()
