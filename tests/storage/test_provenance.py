"""What stands under "provenance" in our files."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import polyurn as pu
from polyurn.errors import ParameterError
from polyurn.model.paper_truths import truth
from polyurn.privacy.ledger import Charge
from polyurn.privacy.statement import Guarantee
from polyurn.storage.models import load_saved, save
from polyurn.storage.provenance import DataProvenance, Provenance
from report_material import fitted, selection, traffic_case

COUNTS = st.integers(0, 10**9)
DATA = st.builds(
    DataProvenance, file=st.text(), n_clients=COUNTS, n_categories=COUNTS, n_points=COUNTS
)
KNOWN = {
    "polyurn",
    "seed",
    "command",
    "data",
    "interrupted_after_round",
    "fit",
    "traffic",
    "more",
    "left_out",
}
MADE = st.builds(
    Provenance,
    polyurn=st.none() | st.text(),
    seed=st.none() | st.integers() | st.text(),
    command=st.none() | st.text(),
    data=st.none() | st.text() | DATA,
    interrupted_after_round=st.none() | COUNTS,
    fit=st.sampled_from([None, fitted(), selection()]),
    traffic=st.sampled_from([None, traffic_case()]),
    more=st.dictionaries(st.text().filter(lambda name: name not in KNOWN), COUNTS),
)


@given(MADE)
def test_how_a_file_came_about_comes_back_from_its_record(made):
    text = json.dumps(made.to_json(), allow_nan=False)
    assert Provenance.from_json(json.loads(text), model=fitted().mdm).to_json() == made.to_json()


def test_a_fit_that_is_read_has_the_guarantee_of_its_file(tmp_path):
    guarantee = Guarantee.of([Charge("survey", 6.0, 20)], 1e-6)
    done = replace(fitted(), guarantee=guarantee)
    save(done.mdm, tmp_path / "mdm.json", provenance=Provenance(fit=done), guarantee=guarantee)
    assert load_saved(tmp_path / "mdm.json").provenance.fit.guarantee == guarantee
    save(done.mdm, tmp_path / "mdm.json", provenance=Provenance(fit=fitted()))
    assert load_saved(tmp_path / "mdm.json").provenance.fit.guarantee is None


def test_an_mdm_file_keeps_it(tmp_path):
    made = Provenance(seed=2**100, command="x y", fit=fitted(), more={"weather": ["fine"]})
    save(fitted().mdm, tmp_path / "mdm.json", provenance=made.to_json())
    again = load_saved(tmp_path / "mdm.json").provenance
    assert again.to_json() == {"polyurn": pu.__version__, **made.to_json()}


@pytest.mark.parametrize(
    ("said", "data"),
    [
        ("survey 2024", "survey 2024"),
        (2024, "2024"),
        ({"name": "survey", "year": 2024}, "{'name': 'survey', 'year': 2024}"),
        (["a.csv", "b.csv"], "['a.csv', 'b.csv']"),
        (None, None),
    ],
    ids=str,
)
def test_what_a_user_says_about_the_data_is_taken_as_it_is(said, data):
    assert Provenance.from_json({"data": said}).data == data


@pytest.mark.parametrize("seed", [[1, 2], 1.5, {"a": 1}, True], ids=str)
def test_a_seed_of_any_kind_is_a_text(seed):
    assert Provenance.from_json({"seed": seed}).seed == repr(seed)


@pytest.mark.parametrize(
    ("record", "line"),
    [
        ({"fit": "by hand"}, "provenance.fit: expected an object, got 'by hand'"),
        ({"fit": {}}, "provenance.fit.rounds: expected a list, got nothing"),
        (
            {"data": {"file": "a.csv", "n_clients": "six", "n_categories": 2, "n_points": 9}},
            "provenance.data.n_clients: expected an integer of at least 0, got 'six'",
        ),
        ({"traffic": "the Rubicon"}, "provenance.traffic: expected an object, got 'the Rubicon'"),
        (
            {"interrupted_after_round": -1},
            "provenance.interrupted_after_round: expected an integer of at least 0, got -1",
        ),
    ],
    ids=str,
)
def test_a_foreign_record_is_one_line_its_section_left_out_and_it_is_not_written(
    tmp_path, record, line
):
    place = tmp_path / "mdm.json"
    save(truth("low/1"), place)
    whole = json.loads(place.read_text())
    place.write_text(json.dumps({**whole, "provenance": record}))
    read = load_saved(place)
    assert read.model == truth("low/1")
    assert read.provenance == Provenance(left_out=(line,))
    with pytest.raises(ParameterError) as error:
        save(truth("low/1"), place, provenance=record)
    assert str(error.value).startswith(f"{line}; ")
    assert str(error.value).endswith(": use another name")


def test_of_several_records_only_the_foreign_ones_are_left_out(tmp_path):
    made = {"seed": 3, "data": "survey", "fit": [], "interrupted_after_round": 4, "traffic": 0}
    read = Provenance.from_json({**made, "weather": "fine"})
    kept = {"seed": 3, "data": "survey", "interrupted_after_round": 4, "weather": "fine"}
    assert read.to_json() == kept
    assert [line.split(":")[0] for line in read.left_out] == [
        "provenance.fit",
        "provenance.traffic",
    ]
