"""The examples of README.md are run in an empty folder, as `docs/conftest.py` does for the pages."""

import pytest


@pytest.fixture(autouse=True)
def empty_folder_for_the_first_page(request, monkeypatch):
    """Let README write what it shows where nothing else is."""
    if request.path.name == "README.md":
        monkeypatch.chdir(request.getfixturevalue("tmp_path"))
