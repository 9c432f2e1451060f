"""Partitions of Hugging Face's datasets, with the real library."""

import numpy as np
import pytest

from partition_cases import COUNTS, LABELS, NAMES
from polyurn.errors import CountsError, ParameterError


def test_labels_come_from_a_class_label_with_its_names(proxy):
    from polyurn.integrations.huggingface import dataset_labels

    found = dataset_labels(proxy)
    assert np.array_equal(found.labels, LABELS)
    assert found.categories == tuple(NAMES)
    assert np.array_equal(
        dataset_labels(proxy.shuffle(seed=1)).labels, proxy.shuffle(seed=1)["label"]
    )
    with pytest.raises(CountsError, match="4 categories without names, 0 to 3, got the 3"):
        dataset_labels(proxy, categories=4)


def test_a_class_label_goes_by_name_and_never_by_position_in_silence(proxy):
    from polyurn.integrations.huggingface import dataset_labels

    turned = dataset_labels(proxy, categories=NAMES[::-1])
    assert np.array_equal(turned.labels, 2 - LABELS)
    assert turned.categories == tuple(NAMES[::-1])
    others = ["lion", "wolf", "owl"]
    with pytest.raises(CountsError, match=r"owl, where cat, dog do not match; .*match='position'"):
        dataset_labels(proxy, categories=others)
    asked = dataset_labels(proxy, categories=others, match="position")
    assert np.array_equal(asked.labels, LABELS)
    renamed = dataset_labels(proxy, categories=others[::-1], match={"cat": "lion", "dog": "wolf"})
    assert np.array_equal(renamed.labels, 2 - LABELS)


def test_texts_of_other_names_are_matched(proxy):
    from polyurn.integrations.huggingface import dataset_labels

    named = proxy.add_column("text", [NAMES[j] for j in LABELS])
    found = dataset_labels(
        named, "text", categories=["y", "x", "owl"], match={"cat": "x", "dog": "y"}
    )
    assert np.array_equal(found.labels, np.array([1, 0, 2])[LABELS])


def test_labels_come_from_text_and_from_numbers(proxy):
    from polyurn.integrations.huggingface import dataset_labels

    named = proxy.add_column("text", [NAMES[j] for j in LABELS])
    assert dataset_labels(named, "text").categories == tuple(NAMES)
    turned = dataset_labels(named, "text", categories=NAMES[::-1])
    assert np.array_equal(turned.labels, 2 - LABELS)
    assert dataset_labels(named, "row").categories[-1] == str(len(LABELS) - 1)
    with pytest.raises(CountsError, match=r"cat, dog, got .* where owl do not match"):
        dataset_labels(named, "text", categories=["cat", "dog"])
    with pytest.raises(CountsError, match="column 'breed', got row, label, text"):
        dataset_labels(named, "breed")


def test_missing_labels_are_refused(proxy):
    from polyurn.integrations.huggingface import dataset_labels

    holes = proxy.remove_columns("label").add_column("label", [None, *LABELS[1:]])
    with pytest.raises(CountsError, match="column 'label', the first in row 0"):
        dataset_labels(holes)


def test_each_client_becomes_a_dataset_with_its_histogram(proxy, parts, tmp_path):
    from datasets import DatasetDict, load_from_disk
    from polyurn.integrations.huggingface import client_datasets

    federation = client_datasets(proxy, parts, clients=["ann", "bob", "eve"])
    assert isinstance(federation, DatasetDict)
    for name, mine, counts in zip(federation, parts, COUNTS, strict=True):
        assert federation[name]["row"][:] == mine.tolist()
        assert np.bincount(federation[name]["label"][:], minlength=3).tolist() == counts.tolist()
    federation.save_to_disk(tmp_path / "federation")
    assert load_from_disk(tmp_path / "federation")["bob"]["row"][:] == parts[1].tolist()


def test_a_client_column_goes_out_and_comes_back_as_histograms(proxy, parts):
    from polyurn.integrations.huggingface import dataset_histograms, with_clients

    flat = with_clients(proxy, parts, clients=["ann", "bob", "eve"])
    back = dataset_histograms(flat)
    assert back.clients.tolist() == ["ann", "bob", "eve"]
    assert back.categories == tuple(NAMES)
    assert np.array_equal(back.counts.toarray(), COUNTS)
    with pytest.raises(ParameterError, match="has a column 'row' already"):
        with_clients(proxy, parts, column="row")
    with pytest.raises(ParameterError, match="expected 3 different client ids, got 2"):
        with_clients(proxy, parts, clients=["ann", "bob"])


@pytest.mark.parametrize("ids", [["ann", "ann", "eve"], [1, 1, 2]])
def test_two_clients_of_the_same_name_are_refused_and_none_is_lost(proxy, parts, ids):
    from polyurn.integrations.huggingface import client_datasets, with_clients

    for function in (client_datasets, with_clients):
        with pytest.raises(ParameterError, match="expected 3 different client ids, got 3, 2 of"):
            function(proxy, parts, clients=ids)


def test_the_partition_of_another_dataset_is_refused(proxy, parts):
    from polyurn.integrations.huggingface import client_datasets

    with pytest.raises(ParameterError, match="but the dataset has 5"):
        client_datasets(proxy.select(range(5)), parts)


def test_crossed_columns_go_by_the_names_of_a_class_label():
    from datasets import ClassLabel, Dataset, Features, Value
    from polyurn.integrations.huggingface import dataset_histograms, dataset_labels

    kinds = Features(
        {
            "client": Value("string"),
            "label": ClassLabel(names=["cat", "dog"]),
            "hour": Value("int64"),
        }
    )
    data = Dataset.from_dict({"client": list("aab"), "label": [1, 0, 1], "hour": [7, 7, 7]}, kinds)
    found = dataset_labels(data, ["label", "hour"])
    assert found.categories == ("cat × 7", "dog × 7")
    assert found.labels.tolist() == [1, 0, 1]
    made = dataset_histograms(data, label="label,hour")
    assert made.counts.toarray().tolist() == [[1, 1], [0, 1]]
    with pytest.raises(CountsError, match="another column for the label"):
        dataset_histograms(data, label=["client", "label"])
    declared = ["dog × 7", "dog × 8", "cat × 7"]
    assert dataset_labels(data, "label,hour", categories=declared).labels.tolist() == [0, 2, 0]
    with pytest.raises(CountsError, match=r"2 categories without names, .* cat × 7, dog × 7"):
        dataset_labels(data, ["label", "hour"], categories=2)
    renamed = dataset_labels(
        data, ["label", "hour"], categories=["wolf × 7", "cat × 7"], match={"dog": "wolf"}
    )
    assert renamed.labels.tolist() == [0, 1, 0]
