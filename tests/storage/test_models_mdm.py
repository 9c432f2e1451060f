"""An MDM file: what comes back, and what is refused."""

import json
import os
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import polyurn
from polyurn import MDM, SizeBins, Sizes
from polyurn.errors import FileError, ParameterError
from polyurn.storage.models import load, load_saved, save
from polyurn.storage.provenance import Provenance
from strategies import mdms_with_zeros

BINNED = MDM([0.6, 0.4], [[1.0, 2.0], [3.0, 0.1]], Sizes(SizeBins([1, 3, 9]), [[0.5, 0.5]] * 2))
EXACT = MDM([1.0], [[0.1, 0.2, 0.7]], Sizes.constant(1_000_000))


@pytest.fixture
def damaged(tmp_path):
    """A function that saves an MDM, changes its record and returns the path."""

    def damage(change):
        save(BINNED, tmp_path / "mdm.json")
        record = json.loads((tmp_path / "mdm.json").read_text())
        change(record)
        (tmp_path / "mdm.json").write_text(json.dumps(record))
        return tmp_path / "mdm.json"

    return damage


# ------------------------------------------------------------------------------ all is well


@settings(max_examples=50)
@given(mdm=mdms_with_zeros())
def test_an_mdm_comes_back_equal_to_the_last_bit(folder, mdm):
    save(mdm, folder / "mdm.json")
    assert load(folder / "mdm.json") == mdm


@settings(max_examples=50)
@given(names=st.lists(st.text(), min_size=2, max_size=2, unique=True), seed=st.integers())
def test_category_names_and_provenance_come_back_as_they_were(folder, names, seed):
    save(
        BINNED, folder / "named.json", categories=names, provenance={"seed": seed, "command": "x y"}
    )
    saved = load_saved(folder / "named.json")
    assert saved.categories == tuple(names)
    assert saved.provenance == Provenance(polyurn=polyurn.__version__, seed=seed, command="x y")


def test_sizes_are_stored_sparsely(tmp_path):
    save(EXACT, tmp_path / "mdm.json")
    record = json.loads((tmp_path / "mdm.json").read_text())
    assert (record["sizes"]["masses"]["at"], len(json.dumps(record))) == (
        [999_999],
        pytest.approx(500, abs=200),
    )
    assert load(tmp_path / "mdm.json") == EXACT


def test_saving_twice_leaves_the_second_and_nothing_else(tmp_path):
    for mdm in (EXACT, BINNED):
        save(mdm, tmp_path / "mdm.json")
    assert load(tmp_path / "mdm.json") == BINNED
    assert os.listdir(tmp_path) == ["mdm.json"]


def test_half_a_surrogate_pair_is_an_error_in_a_name_and_kept_in_what_is_said_about_a_file(
    tmp_path,
):
    command = os.fsdecode(b"polyurn fit \xff.csv")
    save(BINNED, tmp_path / "mdm.json", provenance={"command": command})
    assert load_saved(tmp_path / "mdm.json").provenance.command == command
    with pytest.raises(ParameterError, match=r"category names in Unicode, got '\\ud800'"):
        save(BINNED, tmp_path / "named.json", categories=["\ud800", "b"])
    assert os.listdir(tmp_path) == ["mdm.json"]


# ------------------------------------------------------------------------------------ damage


def test_a_file_cut_off_anywhere_is_refused(tmp_path):
    save(BINNED, tmp_path / "whole.json", categories=["ä", "b"])
    whole = (tmp_path / "whole.json").read_bytes()
    for end in range(0, len(whole) - 1, 7):  # the last byte is only a newline
        (tmp_path / "cut.json").write_bytes(whole[:end])
        with pytest.raises(FileError, match=r"cut\.json"):
            load(tmp_path / "cut.json")


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (5, "version 5, newer than 4: upgrade polyurn"),
        (2, "version 2, and this polyurn reads 3: make the file again"),
        (0, "expected a format version"),
        ("3", "expected a format version"),
    ],
)
def test_a_file_of_another_or_no_version_is_refused(damaged, version, message):
    with pytest.raises(FileError, match=message):
        load(damaged(lambda record: record.update(version=version)))


@pytest.mark.parametrize(
    "content",
    [b"[]", b"3", b"null", b"{}", b'{"format": "other"}', b"", b"PAR1\x00\xff", b"[" * 200_000],
    ids=lambda content: repr(content[:12]),
)
def test_a_file_of_another_kind_is_refused(tmp_path, content):
    (tmp_path / "mdm.json").write_bytes(content)
    with pytest.raises(FileError, match="is not an MDM file"):
        load(tmp_path / "mdm.json")


@pytest.mark.parametrize(
    "key",
    ["weights", "alphas", "sizes", "categories", "features"],
)
def test_a_missing_key_is_refused(damaged, key):
    with pytest.raises(FileError, match="is damaged"):
        load(damaged(lambda record: record.pop(key)))


@pytest.mark.parametrize("key", ["weights", "alphas", "sizes"])
@pytest.mark.parametrize(
    "value",
    [
        None,
        "x",
        -1,
        float("nan"),
        10**400,
        [],
        [1.0, -2.0],
        {"9": 1.0},
        {"one": 1.0},
        [True, True],
        {"first": 1, "length": 10**30},
        {"first": 1, "length": -1},
        ["0.5", "0.5"],
        [[1.0], [1.0, 2.0]],
        {"shape": [10**9, 10**9], "most": 0.0, "at": [], "values": []},
        {"shape": [2], "most": 0.0, "at": [7], "values": [1.0]},
        {"shape": [2], "most": 0.0, "at": [0, 1], "values": [1.0]},
        {"shape": ["2"], "most": None, "at": ["x"], "values": [[]]},
    ],
    ids=lambda value: str(value)[:24],
)
def test_a_malformed_parameter_is_refused(damaged, key, value):
    with pytest.raises(FileError, match="is damaged"):
        load(damaged(lambda record: record.update({key: value})))
    with pytest.raises(FileError, match="is damaged"):
        load(damaged(lambda record: record["sizes"].update(masses=value)))
    with pytest.raises(FileError, match="is damaged"):
        load(damaged(lambda record: record["sizes"]["bins"].update(edges=value)))


@pytest.mark.parametrize(
    "change",
    [
        {"weights": [1.0]},
        {"alphas": [[1.0, 2.0]]},
        *({"categories": value} for value in (["only one"], "ab", [1, 2])),
    ],
    ids=str,
)
def test_contents_that_are_malformed_or_contradict_each_other_are_refused(damaged, change):
    with pytest.raises(FileError, match="is damaged"):
        load(damaged(lambda record: record.update(change)))


def test_an_mdm_never_loses_its_names_when_it_is_saved_and_loaded(tmp_path):
    names = ("cat", "dog")
    named = replace(BINNED, categories=names)
    save(named, tmp_path / "one.json")
    save(BINNED, tmp_path / "two.json", categories=names)
    assert load(tmp_path / "one.json") == load(tmp_path / "two.json") == named
    assert load(tmp_path / "one.json").categories == names
    save(load(tmp_path / "two.json"), tmp_path / "again.json")
    assert load_saved(tmp_path / "again.json").categories == names
    save(BINNED, tmp_path / "none.json")
    assert load(tmp_path / "none.json") == BINNED != named
    with pytest.raises(ParameterError, match=r"own names of categories, cat, dog, got dog, cat"):
        save(named, tmp_path / "three.json", categories=["dog", "cat"])
