"""`save` and `load`: each kind of model to its own format, and back."""

import pytest

import polyurn as pu
from api_calls import mdm, space, style
from polyurn.errors import FileError, ParameterError


@pytest.mark.parametrize("example", [mdm, style, space])
def test_every_kind_of_model_comes_back_as_it_was(tmp_path, example):
    model = example()
    pu.save(model, tmp_path / "model.json")
    assert pu.load(tmp_path / "model.json") == model


def test_a_space_has_as_many_names_as_labels(tmp_path):
    with pytest.raises(ParameterError, match=r"expected . different category names"):
        pu.save(space(), tmp_path / "nowhere.json", categories=["a"])


def test_a_file_of_no_model_is_said_to_be_none(tmp_path):
    (tmp_path / "no.json").write_text("{}")
    with pytest.raises(FileError, match="not an MDM file"):
        pu.load(tmp_path / "no.json")
