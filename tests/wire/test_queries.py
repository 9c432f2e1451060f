"""Questions that nobody could answer."""

import pytest

from polyurn import SizeBins
from polyurn.errors import ParameterError
from polyurn.wire import Initialise


@pytest.mark.parametrize(("k", "c"), [(0, 3), (-1, 3), (1.5, 3), (1, 1)])
def test_impossible_dimensions_are_refused(k, c):
    with pytest.raises(ParameterError):
        Initialise(k, c, SizeBins.exact(3))
