"""The digits that scikit-learn carries."""

import numpy as np

from polyurn import datasets


def test_digits_are_those_of_scikit_learn():
    digits = datasets.digits()
    assert digits.train.features.shape == (1797, 64)
    assert (digits.train.features.min(), digits.train.features.max()) == (0.0, 1.0)
    assert np.bincount(digits.train.labels).sum() == 1797
    assert digits.n_categories == 10
