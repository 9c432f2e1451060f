"""Federations to try things on, out of installed packages: `digits` and `flights`.

>>> from polyurn import datasets
>>> datasets.flights().train
LabelledPoints(n_records=334264, n_clients=4043)
"""

from polyurn.datasets.dataset import Dataset as Dataset
from polyurn.datasets.dataset import LabelledPoints as LabelledPoints
from polyurn.datasets.dataset import digits as digits
from polyurn.datasets.dataset import flights as flights
