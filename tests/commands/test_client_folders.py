"""`polyurn partition --test` and `--folders`: what trainers that read files get."""

import json

import pyarrow.parquet as pq
import pytest

from cli_walk import assert_refused


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "images").mkdir()
    rows = []
    for i in range(60):
        label = "abc"[i % 3]
        (tmp_path / "images" / f"{i}.png").write_bytes(bytes([i]))
        rows.append(f"images/{i}.png,{label}")
    (tmp_path / "proxy.csv").write_text("\n".join(["path,label", *rows]) + "\n")
    counts = ["ann,a,4", "ann,b,6", "b/..,c,5", "cy,a,1"]
    (tmp_path / "clients.csv").write_text("\n".join(["client,category,count", *counts]) + "\n")
    return tmp_path


def test_a_test_part_has_the_clients_names_and_none_of_their_training_points(run, folder):
    ran = run("partition", "proxy.csv", "clients.csv", "--test", 0.2, "-o", "p.json")
    assert ran.code == 0, ran.err
    train = json.loads((folder / "p.json").read_text())
    test = json.loads((folder / "p-test.json").read_text())
    assert {name: len(held) for name, held in train.items()} == {"ann": 8, "b/..": 4, "cy": 1}
    assert {name: len(held) for name, held in test.items()} == {"ann": 2, "b/..": 1}
    assert not any(set(train[name]) & set(test[name]) for name in test)
    assert sorted(i % 3 for i in train["ann"] + test["ann"]) == [0] * 4 + [1] * 6


def test_folders_hold_each_clients_files_by_label_and_lead_nowhere_else(run, folder):
    given = ("--test", 0.2, "--folders", "out", "--files", "path")
    ran = run("partition", "proxy.csv", "clients.csv", *given)
    assert ran.code == 0, ran.err
    assert sorted(p.name for p in (folder / "out" / "train").iterdir()) == ["ann", "b%2F..", "cy"]
    held = list((folder / "out" / "train" / "ann").glob("*/*.png"))
    assert len(held) == 8
    assert {path.parent.name for path in held} == {"a", "b"}
    assert all("abc"[path.read_bytes()[0] % 3] == path.parent.name for path in held)
    assert len(list((folder / "out" / "test").glob("*/*/*.png"))) == 3


def test_folders_of_rows_are_parquet_tables(run, folder):
    assert run("partition", "proxy.csv", "clients.csv", "--folders", "out").code == 0
    table = pq.read_table(folder / "out" / "ann" / "rows.parquet")
    assert table.column_names == ["path", "label"]
    assert sorted(table["label"].to_pylist()) == ["a"] * 4 + ["b"] * 6


def test_what_cannot_be_written_is_said_and_nothing_is_lost(run, folder):
    call = ("partition", "proxy.csv", "clients.csv")
    assert_refused(run(*call, "--test", 0.2), "--test needs --output or --folders")
    assert_refused(run(*call, "--test", 2, "-o", "p.json"), "above 0 and below 1")
    (folder / "images" / "3.png").unlink()
    given = ("--folders", "out", "--files", "path")
    assert_refused(run(*call, *given), "there is no file 'images/3.png'")
    assert not (folder / "out").exists()
    assert_refused(run(*call, "--folders", "images"), "holds something else")
    assert_refused(run(*call, "-o", "p.json", "--files", "path"), "--files")
