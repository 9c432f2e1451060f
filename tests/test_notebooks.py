"""The notebooks in examples/notebooks run, and their pages show them."""

import importlib
import socket
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted((ROOT / "examples" / "notebooks").glob("*.py"))
NEEDS = {
    "flower_partition": ("datasets", "flwr_datasets", "sklearn", "altair"),
    "private_federation": ("aiohttp", "cryptography", "opendp", "pyarrow", "altair"),
    "tune_trainer": ("sklearn", "joblib", "altair"),
    "twins_microbiome": ("sklearn", "altair"),
}
SAYS = {
    "flower_partition": "celebrities -> celeba_hair",
    "private_federation": "-differentially private for one client",
    "tune_trainer": "use these settings: rate",
    "twins_microbiome": "standard errors of the weights: [0.",
}


@pytest.fixture
def notebooks(monkeypatch):
    pytest.importorskip("PIL", reason="Pillow is not installed")
    monkeypatch.syspath_prepend(ROOT / "docs")
    return importlib.import_module("make_notebooks")


def test_there_are_four_notebooks_with_a_page_each():
    names = [script.stem for script in SCRIPTS]
    assert names == sorted(NEEDS)
    assert [page.stem for page in sorted((ROOT / "docs" / "notebooks").glob("*.md"))] == names


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_notebook_runs_and_its_page_shows_it(script, notebooks, tmp_path):
    for package in NEEDS[script.stem]:
        pytest.importorskip(package)
    if script.stem == "private_federation":
        _skip_if_taken(8417)
    page = notebooks.run(script, tmp_path)
    shown = (ROOT / "docs" / "notebooks" / f"{script.stem}.md").read_text(encoding="utf-8")
    again = f"run `python docs/make_notebooks.py {script.stem}`"
    assert notebooks.without_outputs(page) == notebooks.without_outputs(shown), again
    assert SAYS[script.stem] in " ".join(page.split())
    pictures = sorted(path.name for path in tmp_path.glob("*.png"))
    assert pictures
    kept = ROOT / "docs" / "pictures" / "notebooks"
    assert pictures == sorted(path.name for path in kept.glob(f"{script.stem}-*.png"))


def _skip_if_taken(port):
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", port)) == 0:
            pytest.skip(f"somebody listens on port {port}")
