"""Long tables of histograms, and names for their categories."""

import pytest

from polyurn.errors import CountsError, FileError
from sources import histogram_table

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
