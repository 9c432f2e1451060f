"""Style files: equal to the last bit when read back, and refused when they are damaged."""

import json

import numpy as np
import pytest

from polyurn import LocalAggregator, PrivacyLedger, PrivateAggregator, Style, fit_style
from polyurn.errors import FileError, ParameterError
from polyurn.storage.models import load, load_saved, save
from style_cases import drawn_world, whole_space

WORLD = drawn_world(60, n_directions=2, n_labels=3, seed=1)
STYLE = fit_style(LocalAggregator(WORLD.records), whole_space(2, 3), label_effect=True)
PLAIN = Style(whole_space(2, 3), [0.1, 1 / 3], 0.3 * np.eye(2), 0.1 * np.eye(2), np.eye(2) / 3)


@pytest.mark.parametrize("style", [STYLE, PLAIN])
def test_a_style_comes_back_equal_to_the_last_bit(tmp_path, style):
    save(style, tmp_path / "style.json", categories=["a", "b", "c"], provenance={"seed": 1})
    saved = load_saved(tmp_path / "style.json", Style)
    assert saved.model == style
    assert saved.model.errors == style.errors
    assert saved.categories == ("a", "b", "c")
    assert saved.provenance.seed == 1


def test_a_space_comes_back_equal_to_the_last_bit(tmp_path):
    save(STYLE.space, tmp_path / "space.json")
    assert load(tmp_path / "space.json") == STYLE.space


def test_names_of_features_come_back_and_have_to_be_as_many(tmp_path):
    save(PLAIN, tmp_path / "style.json", features=["width", "slant"])
    assert load_saved(tmp_path / "style.json", Style).features == ("width", "slant")
    with pytest.raises(ParameterError, match=r"each of 2 features, .*, got 3"):
        save(PLAIN, tmp_path / "style.json", features=["width", "slant", "ink"])


def test_a_column_of_lists_comes_back_by_its_name(tmp_path):
    save(PLAIN, tmp_path / "style.json", features=["picture"])
    assert load_saved(tmp_path / "style.json", Style).features == ("picture",)


def test_standard_errors_of_uneven_length_are_damage(tmp_path):
    save(STYLE, tmp_path / "style.json")
    record = json.loads((tmp_path / "style.json").read_text())
    record["errors"]["shared"][0].append(0.1)
    (tmp_path / "style.json").write_text(json.dumps(record))
    with pytest.raises(FileError, match=r"is damaged: errors\.shared: expected an array"):
        load_saved(tmp_path / "style.json", Style)


def test_a_file_states_its_guarantee(tmp_path):
    clients = PrivateAggregator(LocalAggregator(WORLD.records), ledger=PrivacyLedger(50.0, 1e-6))
    style = fit_style(clients, whole_space(2, 3), epsilon=50.0, delta=1e-6)
    save(style, tmp_path / "style.json", guarantee=clients.guarantee())
    saved = load_saved(tmp_path / "style.json", Style)
    assert "(50, 1e-06)-differentially private" in saved.provenance.privacy_in_words
    assert saved.model.errors.far_share == style.errors.far_share > 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda r: r.pop("mean"), "mean: expected an array of finite numbers, got nothing"),
        (lambda r: r.update(shared=[[1.0, 2.0], [0.0, 1.0]]), "not symmetric"),
        (lambda r: r.update(version=4), "upgrade polyurn"),
        (lambda r: r.update(format="polyurn.mdm"), "not a style file"),
        (lambda r: r["space"].update(radius=-1.0), r"radius.* above 0"),
        (lambda r: r["space"].update(centres="none"), "space.centres"),
        (lambda r: r["errors"].update(mean=[1.0]), "of shape"),
        (lambda r: r.update(label_effect=None), "or none of them"),
        (lambda r: r.update(categories=["a"]), "3"),
    ],
)
def test_a_damaged_file_is_refused_in_one_line(tmp_path, change, said):
    save(STYLE, tmp_path / "style.json")
    record = json.loads((tmp_path / "style.json").read_text())
    change(record)
    (tmp_path / "style.json").write_text(json.dumps(record))
    with pytest.raises(FileError, match=said) as refused:
        load_saved(tmp_path / "style.json", Style)
    assert "\n" not in str(refused.value)
