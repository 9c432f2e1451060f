"""Whether clients vary less than a component allows."""

import numpy as np
import pytest

from polyurn import MDM, Sizes
from polyurn.comparison.summaries import dispersion, dispersion_index


@pytest.mark.parametrize("alpha_0", [4.0, 60.0, 1e9])
def test_the_index_of_simulated_clients_is_the_one_of_their_components(alpha_0):
    # E = 1 + (n - 1)/(1 + α_0); 4,000 clients, 5 standard errors.
    mdm = MDM([1.0], [alpha_0 * np.array([0.2, 0.3, 0.5])], Sizes.constant(30))
    index = dispersion_index(mdm.sample(4000, rng=0), mdm)
    error = index.std() / np.sqrt(len(index))
    assert index.mean() == pytest.approx(1 + 29 / (1 + alpha_0), abs=5 * error)


def test_clients_more_even_than_chance_have_an_index_below_one():
    mdm = MDM([0.5, 0.5], [[90.0, 10.0], [10.0, 90.0]], Sizes.constant(10, n_components=2))
    even = np.array([[9, 1], [1, 9]] * 30)
    found = dispersion(mdm, true=even, simulated=mdm.sample(500, rng=0), rng=1)
    assert found.true.high < 0.05
    assert found.simulated.low > 0.9


def test_a_component_of_one_category_varies_as_a_multinomial_does():
    mdm = MDM([1.0], [[2.0, 0.0]], Sizes.constant(30))
    assert dispersion_index([[30, 0]], mdm).tolist() == [1.0]
