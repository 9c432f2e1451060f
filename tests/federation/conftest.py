"""What tests of a federation share: a clock, and the folder of a federation."""

import pytest

from polyurn.errors import MissingDependencyError


@pytest.fixture
def clock(monkeypatch):
    """A clock that nobody waits for, where an aggregator looks again and again."""
    from played_federations import Clock
    from polyurn.federation import aggregator

    clock = Clock()
    monkeypatch.setattr(aggregator, "time", clock)
    return clock


@pytest.fixture(scope="session")
def federation(tmp_path_factory):
    """Files of a federation of four nodes, which tests do not change."""
    try:
        from polyurn.federation.folder import set_up
    except MissingDependencyError:
        pytest.skip("needs the extra federation")
    return set_up(
        tmp_path_factory.mktemp("federation") / "fed",
        address="localhost:8000",
        categories=("a", "b", "c"),
        max_size=20,
        clients_per_node=50,
        n_nodes=4,
    )


@pytest.fixture
def node_folder(federation, tmp_path):
    """A copy of a node's folder, which may be changed."""
    import shutil

    return shutil.copytree(federation.node("node-2"), tmp_path / "node-2")
