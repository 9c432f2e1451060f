"""The evidence by Laplace's approximation: against an integral, and choosing K."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import gammaln, logsumexp

from polyurn.integrations.sklearn import DirichletMultinomialMixture
from polyurn.model.mdm import dirichlet_multinomial_logpmf
from polyurn.model.paper_truths import truth


def test_the_evidence_of_one_component_is_that_of_an_integral():
    """Over both log alphas on a grid; Gamma(0.1, 0.1) priors."""
    rng = np.random.default_rng(0)
    counts = rng.multinomial(20, rng.dirichlet([2.0, 5.0], size=150))
    grid = np.linspace(-1.0, 4.0, 161)
    first, second = np.meshgrid(grid, grid, indexing="ij")
    alphas = np.exp(np.stack([first, second], axis=-1))
    prior = (0.1 * np.log(0.1) - gammaln(0.1) + 0.1 * np.log(alphas) - 0.1 * alphas).sum(axis=-1)
    likelihood = sum(dirichlet_multinomial_logpmf(row, alphas) for row in counts)
    evidence = logsumexp(likelihood + prior) + 2 * np.log(grid[1] - grid[0])
    mixture = DirichletMultinomialMixture(1, random_state=0).fit(counts)
    assert mixture.laplace(counts) == pytest.approx(-evidence, abs=0.05)


def test_the_true_number_of_components_has_the_most_evidence():
    counts = truth("medium/2").sample(600, rng=0)
    found = {
        k: DirichletMultinomialMixture(k, random_state=0).fit(counts).laplace(counts)
        for k in (1, 2, 3)
    }
    assert min(found, key=found.get) == 2


def test_a_sparse_table_has_the_same_evidence():
    counts = truth("medium/2").sample(80, rng=0)
    mixture = DirichletMultinomialMixture(2, random_state=0).fit(counts)
    assert mixture.laplace(sparse.csr_array(counts)) == pytest.approx(mixture.laplace(counts))
