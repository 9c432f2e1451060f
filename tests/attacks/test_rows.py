"""One client more changes a private sum by its own vector, bit for bit, and nobody else's rounding.

A sum of rows on the grid is exact, so the answer of all clients has to be that of all but one plus that
of the one alone. BLAS computes a product of many rows in another order than one of few, at sizes that
depend on the processor: a hostile matrix made of it a sensitivity of 990 where 1 was claimed.
"""

import numpy as np
import pytest

from polyurn import MDM, Records, SizeBins, Sizes, StyleSpace, answer
from polyurn.model.scores import Mixture
from polyurn.model.standing import Yardstick
from polyurn.wire import (
    BoundedStyle,
    BoundedSurvey,
    Contrast,
    Describe,
    Differences,
    RecordColumn,
    Scaled,
    Shares,
    SizeMembership,
    Sketch,
    Spread,
    Standing,
    WhitenedScore,
)

C, LARGEST = 9, 40
BINS = SizeBins([1, 5, 12, LARGEST + 1])
# Where products of 100 x 10 with so many rows change kernels, blocks of clients end, and small ones.
N_CLIENTS = (2, 3, 4, 5, 8, 9, 16, 17, 33, 65, 129, 500, 999, 1000, 1001, 1002, 8193)


def mixture(rng, n_components):
    return Mixture(
        rng.dirichlet(np.ones(n_components)), 10.0 ** rng.uniform(-3, 3, (n_components, C))
    )


def whitened(rng):
    """Components twice, whose directions cancel but for rounding, with a clip that blows rounding up."""
    alphas = np.repeat(rng.uniform(0.5, 4, (5, C)), 2, axis=0)
    one = rng.normal(size=(5, C + 1, 10)) * 10.0 ** rng.uniform(-6, 6, (5, C + 1, 1))
    both = np.empty((10, C + 1, 10))
    both[0::2], both[1::2] = one, -one
    return WhitenedScore(Mixture(np.full(10, 0.1), alphas), both.reshape(-1, 10), 1e-100, LARGEST)


def sketch(rng):
    prototypes = rng.dirichlet(np.ones(C), 20)
    return Sketch(prototypes, rng.normal(size=(20, C)) * 10.0 ** rng.uniform(-9, 9), 1e-9, LARGEST)


def standing(rng):
    """A yardstick at a client's own log-likelihood, so short that it blows rounding up."""
    masses = rng.dirichlet(np.ones(3), size=6)
    mdm = MDM(np.full(6, 1 / 6), 10.0 ** rng.uniform(-3, 3, (6, C)), Sizes(BINS, masses))
    at = mdm.logpmf_given_size(clients(rng, 3))
    return Standing(mdm, BINS, Yardstick(at, at, 1e-13))


QUESTIONS = {
    "bounded_survey": lambda rng: BoundedSurvey(C, BINS),
    "sketch": sketch,
    "whitened_score": whitened,
    "differences": lambda rng: Differences(
        (mixture(rng, 3), mixture(rng, 2), mixture(rng, 1)), (1e-9, 1.0), LARGEST
    ),
    "size_membership": lambda rng: SizeMembership(mixture(rng, 4), BINS),
    "shares": lambda rng: Shares((whitened(rng), sketch(rng)), (0.5, 0.5)),
    "describe": lambda rng: Describe(C, BINS),
    "standing": standing,
}


def clients(rng, n):
    sizes = rng.integers(1, LARGEST + 1, size=n)
    shares = rng.dirichlet(np.full(C, 0.3), n)
    return np.array([rng.multinomial(s, p) for s, p in zip(sizes, shares, strict=True)])


@pytest.mark.parametrize("n", N_CLIENTS)
@pytest.mark.parametrize("kind", QUESTIONS)
def test_one_client_more_changes_nobody_elses_bits(kind, n):
    rng = np.random.default_rng([n, len(kind)])
    query, counts = QUESTIONS[kind](rng), clients(rng, n)
    parts = np.split(counts, sorted({1, n // 2, n - 1} - {0, n}))
    apart = sum(answer(query, part).to_vector() for part in parts)
    np.testing.assert_array_equal(answer(query, counts).to_vector(), apart)


@pytest.mark.parametrize("n", N_CLIENTS[:12])
@pytest.mark.parametrize("label_effect", [False, True])
def test_one_client_more_changes_nobody_elses_style(n, label_effect):
    rng = np.random.default_rng(n)
    space = StyleSpace(
        rng.normal(size=(3, 4)), rng.normal(size=(6, 4)),
        rng.normal(size=(3, 4, 4)) * 10.0 ** rng.uniform(-3, 3), 5.0,
    )  # fmt: skip
    query = BoundedStyle(space, 1e-9, label_effect)
    owner = np.repeat(np.arange(n), rng.integers(1, 9, size=n))
    x, labels = rng.normal(size=(len(owner), 6)) * 1e3, rng.integers(3, size=len(owner))

    def of(some):
        held = Records(x[some], labels[some], owner[some], n_labels=3)
        return answer(query, held).to_vector()

    apart = of(owner < n - 1) + of(owner == n - 1)
    np.testing.assert_array_equal(of(owner >= 0), apart)


@pytest.mark.parametrize("n", N_CLIENTS)
@pytest.mark.parametrize("kind", ["spread", "contrast"])
def test_one_client_more_changes_nobody_elses_bins(kind, n):
    rng = np.random.default_rng([n, len(kind)])
    owner = np.repeat(np.arange(n), rng.integers(1, 9, size=n))
    x, labels = rng.normal(size=(len(owner), 2)), rng.integers(3, size=len(owner))
    column = RecordColumn(1, 2, np.sort(rng.normal(size=6)))
    query = Spread(3, column) if kind == "spread" else Scaled(Contrast(3, 7, column))

    def of(some):
        held = Records(x[some], labels[some], owner[some], n_labels=3)
        return answer(query, held).to_vector()

    apart = of(owner < n - 1) + of(owner == n - 1)
    np.testing.assert_array_equal(of(owner >= 0), apart)


def test_every_question_that_noise_can_protect_is_tried_here():
    from polyurn.wire import Query

    tried = {*QUESTIONS, "bounded_style", "spread", "scaled"}
    assert {kind for kind, cls in Query.KINDS.items() if cls.unit_norm} == tried
