"""A dataset whose source has records to train on and records to test on."""

from dataclasses import dataclass

from polyurn.datasets.dataset import Dataset, LabelledPoints


@dataclass(frozen=True, eq=False, kw_only=True)
class SplitDataset(Dataset):
    """`train` are the source's records to train on, and `test` those to test on."""

    test: LabelledPoints
