"""Federations to try things on: one function per source, all called in the same way.

>>> from polyurn import datasets
>>> datasets.flights().train
Records(n_records=334264, n_clients=4043)

Each function takes `root`, `download` and `on_progress` and returns a `Dataset`. `digits` and `flights`
come out of installed packages; the others are read from a folder.
"""

from polyurn.datasets.acs_pums import folktables as folktables
from polyurn.datasets.cifar import cifar10 as cifar10
from polyurn.datasets.dataset import Dataset as Dataset
from polyurn.datasets.dataset import Records as Records
from polyurn.datasets.download import Progress as Progress
from polyurn.datasets.emnist_writers import femnist as femnist
from polyurn.datasets.long_tables import histogram_table as histogram_table
from polyurn.datasets.nycflights import flights as flights
from polyurn.datasets.qmnist import mnist_by_writer as mnist_by_writer
from polyurn.datasets.sklearn_digits import digits as digits
