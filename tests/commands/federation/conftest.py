"""What tests of the commands of a federation share: a federation's folder beside the table."""

import pytest

CATEGORIES = "0,1,2"


@pytest.fixture
def fed(run, tmp_path):
    """A federation of two nodes for clients.csv, at a port that nothing listens on."""
    pytest.importorskip("aiohttp")
    from polyurn.federation.one_machine import free_port

    ran = run(
        "federation", "init", "fed", "--nodes", 2, "--categories", 3, "--max-size", 12,
        "--clients-per-node", 6, "--address", f"localhost:{free_port()}",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    return tmp_path / "fed"
