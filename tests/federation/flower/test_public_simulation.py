"""The example's two apps in Flower's own simulation."""

import shutil
from pathlib import Path

import pytest

from polyurn.federation.flower import learning_app, node_app, public_grid
from polyurn.storage.models import load_saved
from polyurn.sweeps.flower_run import simulate

EXAMPLE = Path(__file__).parents[3] / "examples" / "flower_federation"


def test_the_example_learns_a_mixture_in_flowers_simulation(federation, tmp_path, capfd):
    pytest.importorskip(
        "ray", reason="Flower's simulation needs ray: pip install 'flwr[simulation]'"
    )
    whole, output = shutil.copytree(federation.path, tmp_path / "fed"), tmp_path / "mdm.json"
    for i in range(1, 5):
        folder = whole / "nodes" / f"node-{i}"
        rows = [f"{who},{what}\n" for who in range(10) for what in "aabc"[who % 3 :]]
        (folder / "clients.csv").write_text("client,category\n" + "".join(rows))
        (folder / "policy.toml").write_text("allow_exact = true\nfewest_clients = 1\n")
    settings = {"federation": str(whole), "output": str(output), "components": "1", "max_rounds": 3}
    environment = {"POLYURN_NODES": str(whole / "nodes")}
    simulate(EXAMPLE, settings, n_nodes=4, environment=environment, n_cpus=2)
    saved = load_saved(output)
    assert saved.provenance.fit.n_clients == 40
    assert saved.provenance.traffic.secure
    assert [node.excluded for node in saved.provenance.traffic.nodes] == [None] * 4


def test_nothing_but_flowers_documented_packages_is_imported():
    for module in (learning_app, node_app, public_grid):
        text = Path(module.__file__).read_text()
        lines = [
            line.split()[1] for line in text.splitlines() if "flwr" in line and "import" in line
        ]
        lines = [name for name in lines if name.startswith("flwr")]
        assert lines
        assert set(lines) <= {"flwr.app", "flwr.clientapp", "flwr.serverapp"}
