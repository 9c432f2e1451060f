"""What tests of Flower's messages share: an identity."""

import pytest


@pytest.fixture(autouse=True)
def identity(monkeypatch):
    """Flower makes messages in its own processes only, which know who they are."""
    identities = pytest.importorskip("flwr.supercore.task_identity")
    for name, value in {"_run_id": 7, "_task_id": 7, "_node_id": 1}.items():
        monkeypatch.setattr(identities.TaskIdentity, name, value)
