"""The examples of each page are run in an empty folder, so that they may write what they show."""

import pytest


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
