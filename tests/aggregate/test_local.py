import numpy as np
import pytest

from polyurn import LocalAggregator, SizeBins, answer
from polyurn.errors import CountsError, ParameterError
from polyurn.model.paper_truths import truth
from polyurn.wire import Batch, Expect, Initialise, Parameters, Update

MDM = truth("high/3")
COUNTS = MDM.sample(2_000, rng=0)


@pytest.mark.parametrize("n_threads", [2, 3, 7])
def test_the_sum_does_not_depend_on_the_number_of_threads(n_threads):
    one = LocalAggregator(COUNTS).aggregate(Update(MDM), None).to_vector()
    many = LocalAggregator(COUNTS, n_threads=n_threads).aggregate(Update(MDM), None).to_vector()
    np.testing.assert_allclose(many, one, rtol=1e-12, atol=0)


@pytest.mark.parametrize("n_queries", [1, 2, 5])
@pytest.mark.parametrize("n_threads", [2, 3])
def test_neither_do_the_sums_about_many_models(n_queries, n_threads):
    asked = Expect(Parameters(MDM.weights, MDM.alphas, MDM.sizes), curvature=(0, 2))
    others = [
        Expect(Parameters(MDM.weights, MDM.alphas + i, MDM.sizes)) for i in range(1, n_queries)
    ]
    query = Batch((asked, *others))
    one, many = (
        LocalAggregator(COUNTS, n_threads=t).aggregate(query, None) for t in (1, n_threads)
    )
    for a, b in zip(one.answers, many.answers, strict=True):
        np.testing.assert_allclose(b.to_vector(), a.to_vector(), rtol=1e-11, atol=1e-9)


def test_a_full_cohort_is_everyone():
    got = LocalAggregator(COUNTS, rng=3).aggregate(Update(MDM), None)
    np.testing.assert_array_equal(got.to_vector(), answer(Update(MDM), COUNTS).to_vector())


def test_a_fixed_cohort_has_the_asked_number_of_different_clients():
    # Sizes tell the clients apart: client i holds i + 1 points.
    counts = np.stack([np.arange(1, 51), np.zeros(50, int)], axis=1)
    clients = LocalAggregator(counts, rng=0)
    query = Initialise(1, 2, SizeBins.exact(50))
    cohorts = [clients.aggregate(query, 20).size_counts[0] for _ in range(200)]
    assert all(c.sum() == 20 and c.max() == 1 for c in cohorts)
    # Each client is in 40 % of the cohorts; 4.5 standard errors over 50 clients: alarm < 1e-3.
    often = np.mean(cohorts, axis=0)
    assert (np.abs(often - 0.4) < 4.5 * np.sqrt(0.24 / 200)).all()


def test_poisson_cohorts_vary_in_size_around_the_asked_number():
    clients = LocalAggregator(COUNTS, rng=0, sampling="poisson")
    sizes = [clients.aggregate(Update(MDM), 500).n_clients for _ in range(100)]
    assert len(set(sizes)) > 10
    assert np.mean(sizes) == pytest.approx(500, abs=4.5 * np.sqrt(375 / 100))


def test_the_same_seed_asks_the_same_clients():
    def rounds():
        clients = LocalAggregator(COUNTS, rng=5)
        return [clients.aggregate(Update(MDM), 100).to_vector() for _ in range(3)]

    first, second = rounds(), rounds()
    np.testing.assert_array_equal(first, second)
    assert (first[0] != first[1]).any()


@pytest.mark.parametrize("cohort_size", [0, -1, 2_001])
def test_a_cohort_that_cannot_be_drawn_is_refused(cohort_size):
    with pytest.raises(ParameterError, match=r"cohort of 1 to 2,000 clients, got"):
        LocalAggregator(COUNTS).aggregate(Update(MDM), cohort_size)


def test_bad_settings_are_refused():
    with pytest.raises(ParameterError, match="sampling"):
        LocalAggregator(COUNTS, sampling="some")
    with pytest.raises(ParameterError, match="n_threads"):
        LocalAggregator(COUNTS, n_threads=0)
    with pytest.raises(CountsError, match="hold no points"):
        LocalAggregator([[1, 2], [0, 0]])


def test_nothing_of_the_clients_is_shown():
    assert repr(LocalAggregator(COUNTS)) == "LocalAggregator(2,000 clients, sampling='fixed')"
