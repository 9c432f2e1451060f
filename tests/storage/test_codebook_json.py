"""A codebook file: what comes back, and what is refused."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyurn import MDM, Codebook, Guarantee, Sizes, load
from polyurn.errors import FileError, ParameterError
from polyurn.storage.models import Saved, codes_of, labels_of, load_saved, save

BOOK = Codebook([[0.1, 1 / 3], [4.0, 1e-300], [9.0, -9.0]], [2, 0, 1], [0.1 + 0.2, 0.0, 4.0])


@pytest.fixture
def damaged(tmp_path):
    """A function that saves a codebook, changes its record and returns the path."""

    def damage(change):
        save(BOOK, tmp_path / "codebook.json")
        record = json.loads((tmp_path / "codebook.json").read_text())
        change(record)
        (tmp_path / "codebook.json").write_text(json.dumps(record))
        return tmp_path / "codebook.json"

    return damage


@settings(max_examples=30)
@given(st.integers(0, 2**32))
def test_a_codebook_comes_back_equal_to_the_last_bit(folder, seed):
    rng = np.random.default_rng(seed)
    n_styles = rng.integers(1, 4, size=3)
    centres = rng.normal(size=(n_styles.sum(), 5)) * 10.0 ** rng.integers(-90, 90)
    book = Codebook(centres, n_styles, rng.random(3))
    save(book, folder / "codebook.json", made={"seed": seed})
    back = load(folder / "codebook.json")
    assert back == book
    assert back.centres.tobytes() == book.centres.tobytes()
    assert back.reach.tobytes() == book.reach.tobytes()


def test_a_book_without_a_style_comes_back_too(tmp_path):
    book = Codebook(np.zeros((0, 3)), [0, 0], [0.0, 0.0])
    save(book, tmp_path / "codebook.json")
    assert load(tmp_path / "codebook.json") == book


def test_load_tells_a_codebook_from_an_mdm(tmp_path):
    save(BOOK, tmp_path / "one.json")
    save(mdm := MDM([1.0], [[1.0, 2.0]], Sizes.constant(3)), tmp_path / "other.json")
    assert load(tmp_path / "one.json") == BOOK
    assert load(tmp_path / "other.json") == mdm


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record.pop("n_styles"),
        lambda record: record["n_styles"].append(1),
        lambda record: record["reach"].__setitem__(0, -1.0),
        lambda record: record["reach"].__setitem__(0, None),
        lambda record: record["centres"][0].append(1.0),
        lambda record: record["centres"].__setitem__(0, "nowhere"),
        lambda record: record["centres"].clear(),
    ],
)
def test_contents_that_are_malformed_or_contradict_each_other_are_refused(damaged, change):
    with pytest.raises(FileError, match=r"is damaged: .*write it again") as refused:
        load(damaged(change))
    assert "\n" not in str(refused.value)


def test_a_file_of_a_later_version_is_refused(damaged):
    with pytest.raises(FileError, match="newer than 3: upgrade polyurn"):
        load(damaged(lambda record: record.update(version=4)))


def test_names_of_labels_and_columns_come_back_and_name_the_categories(tmp_path):
    place = tmp_path / "codebook.json"
    save(BOOK, place, categories=["a", "b", "c"], features=["x", "y"])
    saved = load_saved(place, Codebook)
    assert (saved.model, saved.categories, saved.features) == (BOOK, ("a", "b", "c"), ("x", "y"))
    assert codes_of(saved) == (
        "a × style 0", "a × style 1", "a × other", "b × other", "c × style 0", "c × other",
    )  # fmt: skip
    save(BOOK, place, features=["pixels"])  # a column of lists
    saved = load_saved(place, Codebook)
    assert (saved.features, codes_of(saved)) == (("pixels",), BOOK.categories)


def test_the_label_of_some_categories_is_known_by_their_names():
    saved = Saved(BOOK, ("a", "b", "c"))
    assert labels_of(saved, ["c × other", "a × style 1", "b × other"]).tolist() == [2, 0, 1]
    with pytest.raises(ParameterError, match="such as 'a × style 0', got 'd × other'"):
        labels_of(saved, ["a × other", "d × other"])


@pytest.mark.parametrize(
    "names",
    [
        {"categories": ["a", "b"]},
        {"categories": ["a", "b", "b"]},
        {"features": ["x", "y", "z"]},
        {"features": []},
    ],
    ids=str,
)
def test_names_that_do_not_fit_are_refused(tmp_path, names):
    with pytest.raises(ParameterError, match="expected"):
        save(BOOK, tmp_path / "codebook.json", **names)


def test_a_codebook_has_no_guarantee(tmp_path):
    guarantee = Guarantee(
        epsilon=1.0, delta=1e-6, total_epsilon=1.0, record_epsilon=1.0, trust="central", n_rounds=1,
        n_numbers=1,
    )  # fmt: skip
    with pytest.raises(ParameterError, match="no guarantee with a style space or a codebook"):
        save(BOOK, tmp_path / "codebook.json", guarantee=guarantee)
