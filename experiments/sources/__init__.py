"""Federations that only the experiments are made on: read from a folder, or fetched.

Each function takes `root`, `download` and `on_progress` and returns a `polyurn.datasets.Dataset`, or a
`SplitDataset` where the source has records to test on.
"""

from sources.acs_pums import folktables as folktables
from sources.cifar import cifar10 as cifar10
from sources.download import Progress as Progress
from sources.emnist_writers import femnist as femnist
from sources.long_tables import histogram_table as histogram_table
from sources.qmnist import mnist_by_writer as mnist_by_writer
from sources.split_dataset import SplitDataset as SplitDataset
