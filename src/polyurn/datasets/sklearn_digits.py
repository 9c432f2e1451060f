"""`digits`: handwritten digits that scikit-learn carries, 1,797 pictures of 8 x 8 pixels.

They have no writers, and no split of their own. Nothing is downloaded.
"""

import numpy as np

from polyurn.datasets.dataset import Dataset, Records
from polyurn.errors import MissingDependencyError


def digits() -> Dataset:
    """The digits of the installed scikit-learn: features of shape (1797, 64), from 0 to 1.

    Examples
    --------
    >>> digits().train
    Records(n_records=1797, n_clients=0)
    """
    try:
        from sklearn import datasets
    except ImportError as error:
        raise MissingDependencyError("scikit-learn", "demo", "the digits data") from error
    features, labels = datasets.load_digits(return_X_y=True)
    records = Records(labels.astype(np.int64), features / 16.0)
    return Dataset("digits", tuple("0123456789"), records)
