"""A node that joins with its owner's files and misbehaves: a process for the tests.

    python hostile_node.py NODE_DIR

It answers the first question rightly; then it misbehaves in one way after the other, and at last hangs.
"""

import os
import sys
import time
from functools import partial

import numpy as np

from federations import garbage, impostor, numbers, short
from polyurn.client.tables import table_histograms
from polyurn.federation.folder import read_node
from polyurn.federation.https.link import Link, serve
from polyurn.federation.owned_node import open_node, warm_up
from polyurn.federation.processes import keep_pid
from polyurn.storage.table_files import read_table


class Hostile:
    """One fault for each question, in turn."""

    def __init__(self, honest):
        self._honest = honest
        self._first = None
        self._faults = [
            self._keep, numbers(np.nan), numbers(1e300), short, garbage, self._replay, impostor(1),
        ]  # fmt: skip

    def answer(self, stage, message):
        if not self._faults:
            time.sleep(10**6)
        return self._faults.pop(0)(stage, message, self._honest)

    def _keep(self, stage, message, honest):
        self._first = honest(stage, message)
        return self._first

    def _replay(self, stage, message, honest):
        return self._first


def main(path):
    folder = read_node(path)
    table = read_table(folder.path / "clients.csv")
    clients = table_histograms(table, categories=folder.federation.declared)
    hostile = Hostile(open_node(folder, clients).answer)
    warm_up()
    joined = partial(keep_pid, folder.pid, os.getpid())
    serve([Link(folder, hostile.answer, on_joined=joined)])


if __name__ == "__main__":
    main(sys.argv[1])
