"""Columns that might be modelled beside the label: which there are, and how numbers are cut."""

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from polyurn import Bins
from polyurn.client.candidates import label_by_column, lacking
from polyurn.client.layout import Columns, Layout
from polyurn.client.tables import table_layout
from polyurn.errors import CountsError, ParameterError

RNG = np.random.default_rng(0)
N = 400
FLIGHTS = pa.table(
    {
        "plane": RNG.integers(0, 60, N),
        "dest": RNG.choice(["ATL", "BOS", "LAX"], N),
        "origin": RNG.choice(["EWR", "JFK"], N),
        "hour": RNG.integers(5, 12, N),
        "minutes": RNG.integers(0, 1_000, N),
        "air_time": RNG.gamma(3.0, 40.0, N),
        "year": np.full(N, 2013),
        "id": [f"flight {i}" for i in range(N)],
        "note": pa.array([None, *["x"] * (N - 1)]),
    }
)
LAYOUT = Layout(
    "plane", "dest", unread=("origin", "hour", "minutes", "air_time", "year", "id", "note")
)


def by_name(found):
    return {candidate.name: candidate for candidate in found.found}


def test_each_cell_counts_the_points_of_a_client_with_a_label_and_a_value():
    (origin,) = label_by_column(FLIGHTS, LAYOUT, ["origin"]).found
    rows = FLIGHTS.to_pylist()
    labels, values, clients = (
        list(dict.fromkeys(row[name] for row in rows)) for name in ("dest", "origin", "plane")
    )
    expected = np.zeros((len(clients), 3, 2), int)
    for row in rows:
        where = clients.index(row["plane"]), None, values.index(row["origin"])
        expected[where[0], labels.index(row["dest"]), where[2]] += 1
    assert (origin.n_labels, origin.n_values, origin.bins) == (3, 2, None)
    assert_array_equal(origin.counts.toarray(), expected.reshape(len(clients), 6))


def test_all_other_columns_are_candidates_and_what_cannot_be_one_is_said():
    found = label_by_column(FLIGHTS, LAYOUT)
    assert [*by_name(found)] == ["origin", "hour", "minutes", "air_time"]
    said = " | ".join(found.remarks)
    assert "left out 'year': expected different values in column 'year', got one" in said
    assert "left out 'id': expected at most as many values as clients (60)" in said
    assert "left out 'note': 1 value is missing from column 'note'" in said


@pytest.mark.parametrize(
    ("name", "why"),
    [("year", "got one"), ("id", "got 400"), ("note", "missing"), ("nothing", "--candidates")],
)
def test_a_named_column_that_cannot_be_a_candidate_is_an_error(name, why):
    with pytest.raises(CountsError, match=why):
        label_by_column(FLIGHTS, LAYOUT, [name])


def test_few_whole_numbers_are_categories_and_other_numbers_are_cut_at_quantiles():
    found = by_name(label_by_column(FLIGHTS, LAYOUT, n_bins=5))
    assert found["hour"].bins is None
    assert found["hour"].n_values == 7
    for name in ("minutes", "air_time"):
        shares = np.bincount(found[name].bins.locate(FLIGHTS[name].to_numpy()), minlength=5)
        assert found[name].n_values == 5
        assert shares.min() > 70
        assert shares.sum() == N


def test_that_the_quantiles_are_the_tables_own_is_said_in_one_line():
    (said,) = label_by_column(FLIGHTS, LAYOUT, ["minutes", "air_time"]).remarks
    assert said.startswith("cut into 10 bins at quantiles of this table: minutes, air_time; only")
    assert "no server may measure quantiles of live clients" in said


def test_bins_are_those_of_the_servers_own_table_or_declared():
    proxy = pa.table({"air_time": np.linspace(0, 10, 101)})
    declared = {"minutes": Bins([0, 500, 1_000])}
    found = label_by_column(
        FLIGHTS, LAYOUT, ["minutes", "air_time"], edges=declared, n_bins=2, proxy=proxy
    )
    assert found.remarks == ()
    assert by_name(found)["air_time"].bins.edges.tolist() == [-np.inf, 5, np.inf]
    assert by_name(found)["minutes"].bins is declared["minutes"]


def test_a_number_outside_of_declared_bins_is_an_error():
    with pytest.raises(CountsError, match="column 'minutes' within its bins"):
        label_by_column(FLIGHTS, LAYOUT, ["minutes"], edges={"minutes": Bins([0, 1, 2])})


def test_counts_and_crossed_labels_are_read():
    long = pa.table(
        {
            "client": ["a", "a", "b", "c"],
            "x": [0, 0, 1, 1],
            "y": [0, 1, 1, 1],
            "f": ["u", "v", "v", "u"],
            "n": [2, 3, 4, 5],
        }
    )
    layout = table_layout(long, Columns("client", "x,y", "n"))
    (f,) = label_by_column(long, layout, ["f"]).found
    assert (f.n_labels, f.n_values) == (3, 2)  # 0 × 0, 0 × 1 and 1 × 1
    expected = [[2, 0, 0, 3, 0, 0], [0, 0, 0, 0, 0, 4], [0, 0, 0, 0, 5, 0]]
    assert f.counts.toarray().tolist() == expected


def test_a_label_that_all_points_share_is_nothing_to_model():
    with pytest.raises(CountsError, match="at least two labels"):
        label_by_column(FLIGHTS, Layout("plane", "year"), ["origin"])


def test_without_any_candidate_the_reasons_are_given():
    with pytest.raises(CountsError, match="candidate column, got none; left out 'year'"):
        label_by_column(FLIGHTS, Layout("plane", "dest", unread=("year",)))


def test_combinations_that_the_proxy_data_lack_are_counted():
    proxy = FLIGHTS.filter(pa.compute.not_equal(FLIGHTS["origin"], "JFK"))
    (origin,) = label_by_column(FLIGHTS, LAYOUT, ["origin"]).found
    assert lacking(FLIGHTS, proxy, ["dest"], [origin], origin) == ((), 3)
    assert lacking(FLIGHTS, FLIGHTS, ["dest"], [origin], origin) == ((), 0)
    less = proxy.drop_columns(["dest"])
    assert lacking(FLIGHTS, less, ["dest"], [origin], origin) == (("dest",), 0)
    assert lacking(FLIGHTS, less, ["dest"], [origin], None) == (("dest",), 0)


@pytest.mark.parametrize(
    ("name", "role"), [("plane", "client"), ("dest", "label"), ("n", "count"), ("Dest", "label")]
)
def test_the_columns_of_the_client_the_label_and_the_count_are_no_candidates(name, role):
    flights = FLIGHTS.append_column("n", pa.array(np.ones(N, int)))
    with pytest.raises(CountsError, match=f"beside the {role}, got"):
        label_by_column(flights, Layout("plane", "dest", "n"), ["origin", name])


def test_the_parts_of_a_crossed_label_are_no_candidates():
    with pytest.raises(CountsError, match="beside the label, got 'origin'"):
        label_by_column(FLIGHTS, Layout("plane", ("dest", "origin")), ["hour", "origin"])


def test_a_continuous_label_is_refused():
    with pytest.raises(CountsError, match="continuous numbers in column 'air_time'"):
        label_by_column(FLIGHTS, Layout("plane", "air_time"), ["origin"])


@pytest.mark.parametrize("label", ["minutes", "id", ("dest", "minutes")], ids=str)
def test_a_label_of_more_values_than_there_are_clients_is_refused(label):
    with pytest.raises(CountsError, match=r"as many labels as clients \(60\)"):
        label_by_column(FLIGHTS, Layout("plane", label), ["origin"])


def test_a_column_that_the_proxy_data_lack_is_cut_at_own_quantiles_with_advice_that_helps():
    proxy = pa.table({"dest": ["ATL"]})
    found = label_by_column(FLIGHTS, LAYOUT, ["minutes"], proxy=proxy)
    (said,) = found.remarks
    assert found.found[0].at_own_quantiles
    assert said.endswith("declare a range (--range), as the proxy data have no such column")


def test_what_is_wrong_with_the_proxy_data_is_said_of_them():
    proxy = pa.table({"minutes": ["1", "x"], "dest": ["ATL", None], "origin": ["EWR", "EWR"]})
    with pytest.raises(ParameterError, match=r"proxy data: .* numbers in column 'minutes'"):
        label_by_column(FLIGHTS, LAYOUT, ["minutes"], proxy=proxy)
    (origin,) = label_by_column(FLIGHTS, LAYOUT, ["origin"]).found
    with pytest.raises(ParameterError, match=r"proxy data: .* missing from column 'dest'"):
        lacking(FLIGHTS, proxy, ["dest"], [origin], origin)
