"""Federations with folders and without processes: a grid plays the nodes, each from its own folder."""

import numpy as np
from scipy import sparse

from federation_jobs import job_of
from flower_grids import Played, PlayedGrid
from polyurn.client.histogram import Histograms
from polyurn.integrations.flower.owned_node import open_node
from polyurn.integrations.flower.setting_up import set_up
from polyurn.model.paper_truths import truth
from polyurn.storage.federation_folder import read_node
from polyurn.storage.federation_job import JobFolder


class OnDisk:
    """A federation with folders, whose nodes a grid plays; with `policy`, each has that one."""

    def __init__(self, folder, clock, n_nodes=3, n_clients=20, policy=""):
        self.made = set_up(
            folder / "fed", address="localhost:8000", categories=10, max_size=20,
            clients_per_node=n_clients, n_nodes=n_nodes,
        )  # fmt: skip
        self.made.register({100 + i: i for i in range(1, n_nodes + 1)})
        nodes = {}
        for i in range(1, n_nodes + 1):
            counts = truth("medium/2").sample(n_clients, rng=i)
            clients = Histograms(
                sparse.csr_array(counts), np.arange(n_clients), tuple(map(str, range(10)))
            )
            folder = self.made.node(f"node-{i}")
            if policy:
                (folder / "policy.toml").write_text(policy)
            nodes[100 + i] = Played(open_node(read_node(folder), clients).answer)
        self.grid = PlayedGrid(nodes, clock)

    def job(self, **settings):
        return JobFolder.make(self.made.runs, job_of(self.made.path, **settings))
