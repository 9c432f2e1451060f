"""What tests of several frameworks work on."""

import numpy as np
import pytest

from partition_cases import COUNTS, LABELS, NAMES
from polyurn import partition


@pytest.fixture
def parts():
    return partition(LABELS, COUNTS, rng=0)


@pytest.fixture
def proxy(monkeypatch, tmp_path):
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    features = datasets.Features(
        {"row": datasets.Value("int64"), "label": datasets.ClassLabel(names=NAMES)}
    )
    columns = {"row": np.arange(len(LABELS)), "label": LABELS}
    return datasets.Dataset.from_dict(columns, features=features)
