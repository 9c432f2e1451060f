"""Census records in the forms they come in, whole, cut off and wrong."""

import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from polyurn.errors import FileError, InputError, ParameterError
from sources import folktables

NAMES = [
    "RT", "SERIALNO", "PUMA", "ST", "ADJINC", "PWGTP", "AGEP", "COW", "MAR", "SCHL", "SEX", "WKHP",
    "ESR", "HISP", "PINCP", "RAC1P",
]  # fmt: skip
# As the Bureau writes them: quoted serial numbers, codes with leading zeros, nothing where a question
# does not apply.
ROWS = [
    'P,"2018GQ01",03701,06,1013097,16,30,1,3,21,1,40,1,01,000060000,1',
    'P,"2018GQ02",03701,06,1013097,43,17,,5,17,2,,6,02,,9',
    'P,"2018GQ03",00101,06,1013097,1,55,6,1,24,2,50,1,01,-4700,6',
    'P,"2018GQ04",00101,06,1013097,22,4,,5,2,1,,,01,,8',
    'P,"2018GQ05",00101,06,1013097,22,80,,2,16,1,,6,01,200000,1',
    'P,"2018GQ06",00101,06,1013097,22,45,2,2,16,1,20,1,01,50000,2',
]
OTHER_STATE = 'P,"2018GQ07",00101,01,1013097,9,40,1,1,20,2,99,1,24,4999,3'


def csv(rows=ROWS, names=NAMES):
    return "\n".join([",".join(names), *rows]) + "\n"


def columns(rows=ROWS):
    """The same as numbers, None where there is none."""
    cells = [row.split(",") for row in rows]
    return {
        name: [int(row[j]) if row[j] else None for row in cells]
        for j, name in enumerate(NAMES)
        if name not in ("RT", "SERIALNO")
    }


def write_csv(folder):
    (folder / "psam_p06.csv").write_text(csv())


def write_old_csv(folder):
    (folder / "ss14pca.csv").write_text(csv())


def write_zip(folder):
    with zipfile.ZipFile(folder / "csv_pca.zip", "w") as archive:
        archive.writestr("psam_p06.csv", csv())
        archive.writestr("ACS2018_PUMS_README.pdf", b"%PDF")


def write_parquet(folder):
    pa.parquet.write_table(pa.table(columns()), folder / "p_06.parquet")


def write_2023(folder):
    names = ["STATE" if name == "ST" else name for name in NAMES]
    (folder / "psam_p06.csv").write_text(csv(names=names))


def write_clients(folder):
    table = columns()
    whose = [f"{s:02d}-{p:05d}" for s, p in zip(table.pop("ST"), table.pop("PUMA"), strict=True)]
    coded = pa.array(whose).dictionary_encode()
    pa.parquet.write_table(pa.table({"client": coded, **table}), folder / "persons.parquet")


@pytest.fixture(
    params=[write_csv, write_old_csv, write_zip, write_parquet, write_2023, write_clients],
    ids=lambda write: write.__name__,
)
def folder(request, tmp_path):
    request.param(tmp_path)
    return tmp_path


def test_race_is_counted_by_area_in_every_form(folder):
    dataset = folktables(root=folder)
    assert dataset.train.client_ids.tolist() == ["06-00101", "06-03701"]
    assert dataset.train.clients.tolist() == [1, 1, 0, 0, 0, 0]
    assert dataset.train.labels.tolist() == [0, 8, 5, 7, 0, 1]
    assert dataset.n_categories == 9


def test_income_is_counted_where_there_is_one(folder):
    dataset = folktables(root=folder, feature="income")
    assert dataset.train.labels.tolist() == [12, 0, 40, 10]
    assert dataset.train.clients.tolist() == [1, 0, 0, 0]
    assert dataset.n_categories == 41
    assert dataset.categories[12] == "60000-64999"


def test_high_income_is_above_fifty_thousand(folder):
    dataset = folktables(root=folder, feature="high_income")
    assert dataset.train.labels.tolist() == [1, 0, 1, 0]
    assert dataset.n_categories == 2


@pytest.mark.parametrize("feature", ["race", "income", "high_income"])
def test_workers_are_the_same_rows_for_every_feature(folder, feature):
    dataset = folktables(root=folder, feature=feature, people="workers")
    expected = {"race": [0, 1], "income": [12, 10], "high_income": [1, 0]}
    assert dataset.train.labels.tolist() == expected[feature]


def test_features_are_encoded_as_documented(folder):
    dataset = folktables(root=folder, feature="income")
    rows = [dict(zip(dataset.feature_names, row, strict=True)) for row in dataset.train.features]
    first, _, old, _ = rows
    assert {name: value for name, value in first.items() if value} == {
        "AGEP": np.float32(30 / 99),
        "WKHP": np.float32(40 / 99),
        "SCHL": np.float32(21 / 24),
        "SEX=1": 1,
        "MAR=3": 1,
        "COW=1": 1,
        "ESR=1": 1,
        "RAC1P=1": 1,
    }
    assert old["WKHP"] == 0  # does not apply
    assert not any(value for name, value in old.items() if name.startswith("COW"))
    assert dataset.train.features.dtype == np.float32


def test_hispanic_origin_is_one_feature_and_the_label_is_none(folder):
    dataset = folktables(root=folder, feature="race")
    assert dataset.train.features[:, dataset.feature_names.index("HISP")].tolist() == [
        0,
        1,
        0,
        0,
        0,
        0,
    ]
    assert not any(name.startswith("RAC1P") for name in dataset.feature_names)
    assert dataset.train.features.shape == (6, len(dataset.feature_names))


def test_several_states_are_read_together(tmp_path):
    write_csv(tmp_path)
    (tmp_path / "psam_p01.csv").write_text(csv([OTHER_STATE]))
    (tmp_path / "psam_h01.csv").write_text("households are not read")
    dataset = folktables(root=tmp_path)
    assert dataset.train.client_ids.tolist() == ["01-00101", "06-00101", "06-03701"]
    assert dataset.train.n_records == 7
    only = folktables(root=tmp_path / "psam_p01.csv")
    assert only.train.labels.tolist() == [2]


def test_income_bins_are_those_of_the_paper(tmp_path):
    dollars = [-9999, -1, *(low + d for low in range(0, 205_001, 5_000) for d in (0, 4_999))]
    n = len(dollars)
    table = pa.table({"ST": [6] * n, "PUMA": [1] * n, "PINCP": dollars})
    pa.parquet.write_table(table, tmp_path / "persons.parquet")
    labels = folktables(root=tmp_path, feature="income").train.labels
    assert labels.tolist() == [min(40, max(0, value // 5_000)) for value in dollars]


def test_without_the_columns_for_features_there_are_none(tmp_path):
    kept = {name: columns()[name] for name in ("ST", "PUMA", "RAC1P")}
    pa.parquet.write_table(pa.table(kept), tmp_path / "persons.parquet")
    dataset = folktables(root=tmp_path)
    assert dataset.train.features is None
    assert dataset.feature_names == ()
    assert dataset.histograms().sum() == 6
    with pytest.raises(FileError, match="expected a column PINCP"):
        folktables(root=tmp_path, feature="income")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "psam_p06.csv"),
        (csv([]), "expected people"),
        (csv(names=["PUMA20" if name == "PUMA" else name for name in NAMES]), "vintage"),
        (csv([ROWS[0][:-1] + "0"]), "RAC1P from 1 to 9"),
        (csv([ROWS[0][:-1] + "x"]), "not a readable table"),
        (csv([ROWS[0].replace("03701", "")]), "a state and a PUMA in every row"),
        (csv([ROWS[0].replace(",06,", ",600,")]), "a state and a PUMA in every row"),
        (csv([ROWS[0].replace(",30,1,3,", ",30,1,7,")]), "expected MAR of at most 5"),
        (csv()[:-20], "not a readable table"),
    ],
)
def test_a_wrong_file_is_named(tmp_path, content, message):
    (tmp_path / "psam_p06.csv").write_text(content)
    with pytest.raises(FileError, match=message) as raised:
        folktables(root=tmp_path)
    assert str(tmp_path) in str(raised.value)


def test_names_that_are_not_utf_8_are_refused(tmp_path):
    (tmp_path / "psam_p06.csv").write_bytes(csv().replace("RT", "R\u00e9").encode("latin1"))
    with pytest.raises(FileError, match="not a readable table"):
        folktables(root=tmp_path)


def test_a_parquet_or_zip_file_that_was_cut_off_is_named(tmp_path):
    for write, name in ((write_parquet, "p_06.parquet"), (write_zip, "csv_pca.zip")):
        write(tmp_path)
        path = tmp_path / name
        whole = path.read_bytes()
        for end in (0, 20, len(whole) // 2, len(whole) - 4):
            path.write_bytes(whole[:end])
            with pytest.raises(FileError, match=name):
                folktables(root=tmp_path)
        path.unlink()


@pytest.mark.parametrize("client", ["California", "06-", None])
def test_a_client_that_is_no_area_is_refused(tmp_path, client):
    table = pa.table({"client": ["06-00101", client], "RAC1P": [1, 2]})
    pa.parquet.write_table(table, tmp_path / "persons.parquet")
    with pytest.raises(FileError, match=r"expected (clients such as|a client in every row)"):
        folktables(root=tmp_path)


def test_numbers_that_are_none_are_refused(tmp_path):
    table = pa.table({"ST": [1], "PUMA": [2], "RAC1P": ["white"]})
    pa.parquet.write_table(table, tmp_path / "persons.parquet")
    with pytest.raises(FileError, match="expected whole numbers in column RAC1P"):
        folktables(root=tmp_path)


def test_settings_that_do_not_exist_are_refused(tmp_path):
    with pytest.raises(ParameterError, match="high_income"):
        folktables(root=tmp_path, feature="age")
    with pytest.raises(ParameterError, match="workers"):
        folktables(root=tmp_path, people="adults")


def test_the_error_says_which_file_to_put_where(tmp_path):
    with pytest.raises(FileError, match=r"psam_pSS\.csv .*into .*folktables$"):
        folktables(root=tmp_path)
    (tmp_path / "notes.txt").touch()
    with pytest.raises(FileError, match=r"found no folktables in .*notes\.txt"):
        folktables(root=tmp_path / "notes.txt")
    with pytest.raises(InputError, match="folktables cannot be downloaded; put psam"):
        folktables(root=tmp_path, download=True)
