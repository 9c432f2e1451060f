"""Where a source's files are, or which file to put where."""

import pytest
from sources.local import Layout, Source, locate

from polyurn.errors import FileError, InputError

LAYOUT = Layout("only", ("data.bin",), "data.bin")


def find(source, root, *, download=False):
    return locate(source, root=root, download=download, on_progress=None)


def test_missing_files_are_downloaded_when_asked_for(server, tmp_path):
    source = Source("mine", (LAYOUT,), remote=(server.remote(),))
    with pytest.raises(FileError, match=r"data\.bin into .*mine, .* download=True"):
        find(source, tmp_path)
    assert server.asked == []
    found = find(source, tmp_path, download=True)
    assert found.one_each() == (tmp_path / "mine" / "data.bin",)
    assert find(source, tmp_path).one_each() == found.one_each()


def test_what_has_no_address_says_what_to_put_where(tmp_path):
    with pytest.raises(InputError, match=r"mine cannot be downloaded; put data\.bin into"):
        find(Source("mine", (LAYOUT,)), tmp_path, download=True)


def test_files_are_found_in_the_folder_below_it_and_by_the_variable(tmp_path, monkeypatch):
    source = Source("mine", (LAYOUT,), also_in=("ours",))
    for folder in ("ours", "mine", "."):  # each goes before the one that was made earlier
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "data.bin").touch()
        assert find(source, tmp_path).one_each() == (tmp_path / folder / "data.bin",)
    monkeypatch.setenv("POLYURN_DATA", str(tmp_path))
    assert find(source, None).one_each() == (tmp_path / "data.bin",)
    assert find(source, tmp_path / "data.bin").one_each() == (tmp_path / "data.bin",)


def test_neither_root_nor_variable_is_said(monkeypatch):
    monkeypatch.delenv("POLYURN_DATA", raising=False)
    with pytest.raises(InputError, match=r"root= or .* variable POLYURN_DATA"):
        find(Source("mine", (LAYOUT,)), None)


def test_a_layout_counts_only_when_it_is_whole(tmp_path):
    layouts = (Layout("two", ("a", "b"), "a and b"), Layout("one", ("c*",), "c"))
    (tmp_path / "a").touch()
    (tmp_path / "c1").touch()
    (tmp_path / "c2").touch()
    found = find(Source("mine", layouts), tmp_path)
    assert found.layout == "one"
    assert found.paths == ((tmp_path / "c1", tmp_path / "c2"),)
    (tmp_path / "b").touch()
    assert find(Source("mine", layouts), tmp_path).layout == "two"
