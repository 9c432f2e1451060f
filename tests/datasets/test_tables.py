"""Long tables of histograms, and the flights' table, whole and wrong."""

import zipfile

import pytest

from polyurn.datasets import flights, histogram_table
from polyurn.errors import CountsError, FileError

LONG = "client,category,count\na,0,2\nb,2,1\na,2,5\n"
CLASSES = 'category,label\n2,"low, or none"\n0,NA\n1,1.5\n'


def test_categories_are_called_what_stands_beside(tmp_path):
    (tmp_path / "histograms.csv").write_text(LONG)
    (tmp_path / "classes.csv").write_text(CLASSES)
    for path in (tmp_path, tmp_path / "histograms.csv"):
        made = histogram_table(path)
        assert made.counts.toarray().tolist() == [[2, 0, 5], [0, 0, 1]]
        assert made.clients.tolist() == ["a", "b"]
        assert made.categories == ("NA", "1.5", "low, or none")


def test_without_names_the_table_says_what_there_is(tmp_path):
    (tmp_path / "long.csv").write_text(LONG)
    assert histogram_table(tmp_path / "long.csv").shape == (2, 3)


@pytest.mark.parametrize(
    "classes",
    [
        "category,label\n0,a\n2,b\n",
        "category,label\n0,a\n0,b\n1,c\n",
        "category,label\n0,a\n1,\n2,c\n",
        "category,label\n0,a\n1,a\n2,c\n",
        "category,label\n0,a\nx,b\n2,c\n",
        "category,name\n0,a\n1,b\n2,c\n",
        "",
    ],
)
def test_classes_that_do_not_number_the_categories_are_refused(tmp_path, classes):
    (tmp_path / "histograms.csv").write_text(LONG)
    (tmp_path / "classes.csv").write_text(classes)
    with pytest.raises(FileError, match=r"classes\.csv"):
        histogram_table(tmp_path)


def test_a_category_without_a_name_is_refused(tmp_path):
    (tmp_path / "histograms.csv").write_text(LONG)
    (tmp_path / "classes.csv").write_text("category,label\n0,a\n1,b\n")
    with pytest.raises(CountsError, match="2 of 3 values"):
        histogram_table(tmp_path)


def test_a_folder_without_histograms_is_named(tmp_path):
    with pytest.raises(FileError, match=r"put histograms\.parquet into it"):
        histogram_table(tmp_path)


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
