"""Labels, histograms and a mixture for the tests of partitions in other frameworks."""

import numpy as np

from polyurn import MDM, Sizes

LABELS = np.tile([0, 1, 2, 0], 50)
COUNTS = np.array([[5, 1, 0], [0, 2, 7], [1, 1, 1]])
NAMES = ["cat", "dog", "owl"]
MIXTURE = MDM([0.5, 0.5], [[9.0, 1.0, 1.0], [1.0, 3.0, 9.0]], Sizes.constant(12, n_components=2))
