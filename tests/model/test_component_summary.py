"""What a reader is shown of a mixture: a row for each of few components, a summary of many."""

import numpy as np

import polyurn as pu
from polyurn.model.component_summary import SHOWN, component_rows, many_components
from polyurn.model.paper_truths import truth


def mixture(n_components):
    alphas = np.random.default_rng(0).uniform(0.5, 5, (n_components, 3))
    weights = np.full(n_components, 1 / n_components)
    return pu.MDM(weights, alphas, pu.Sizes.constant(9, n_components=n_components))


def test_few_components_have_a_row_each_and_no_summary():
    mdm = truth("appendix-a")
    assert many_components(mdm) == ""
    assert len(component_rows(mdm)) == 3


def test_many_components_are_not_listed_one_by_one():
    mdm = mixture(96)
    assert len(component_rows(mdm)) == SHOWN
    assert many_components(mdm).startswith("48 components have half of the clients, the largest 1%")


def test_two_clients_of_equal_components_do_not_differ():
    equal = pu.MDM(np.full(20, 0.05), np.ones((20, 3)), pu.Sizes.constant(9, n_components=20))
    assert "components differ in 0% of the points" in many_components(equal)
