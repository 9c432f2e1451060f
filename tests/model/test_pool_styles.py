import numpy as np
import pytest

from polyurn import codebook
from polyurn.errors import ParameterError


def pool(n_points=3_000, n_labels=3, n_features=4):
    rng = np.random.default_rng(0)
    labels = rng.integers(n_labels, size=n_points)
    return rng.normal(size=(n_points, n_features)) + labels[:, None], labels


def test_of_each_label_one_percent_of_the_pool_is_other():
    features, labels = pool()
    book = codebook(features, labels, n_styles=8, rng=0)
    others = book.is_other[book.encode(features, labels)]
    for label in range(3):
        mine = labels == label
        assert others[mine].sum() == mine.sum() - np.ceil(0.99 * mine.sum())


def test_a_pool_of_few_points_or_full_coverage_has_no_other():
    features, labels = pool()
    book = codebook(features, labels, n_styles=8, coverage=1.0, rng=0)
    assert not book.is_other[book.encode(features, labels)].any()
    few, of_few = features[:150], labels[:150]  # fewer than 100 of each label
    book = codebook(few, of_few, rng=0)
    assert not book.is_other[book.encode(few, of_few)].any()


def test_points_that_the_pool_lacks_are_other():
    features, labels = pool()
    book = codebook(features, labels, rng=0)
    assert book.is_other[book.encode(features + 20.0, labels)].all()


def test_points_of_the_same_kind_as_the_pool_are_other_as_rarely():
    features, labels = pool(n_points=12_000)
    book = codebook(features[:6_000], labels[:6_000], n_styles=4, rng=0)
    fresh = book.encode(features[6_000:], labels[6_000:])
    # 6,000 points: s.e. 0.13 % of the share, and about as much of the pool's own quantile.
    assert book.is_other[fresh].mean() == pytest.approx(0.01, abs=0.008)


def test_the_styles_of_a_label_are_its_clusters_the_largest_first():
    rng = np.random.default_rng(2)
    which = rng.choice(3, p=[0.2, 0.5, 0.3], size=900)
    places = np.array([[0.0, 9.0], [9.0, 0.0], [-9.0, 0.0]])
    book = codebook(places[which] + rng.normal(size=(900, 2)), np.zeros(900, int), 3, rng=0)
    np.testing.assert_allclose(book.centres, places[[1, 2, 0]], atol=0.3)


def test_a_label_with_few_different_points_has_a_style_for_each_and_one_without_points_has_none():
    features = [[0.0], [0.0], [5.0], [1.0], [2.0], [3.0]]
    book = codebook(features, [0, 0, 0, 2, 2, 2], n_styles=3, n_labels=4, rng=0)
    assert book.n_styles.tolist() == [2, 0, 3, 0]
    assert book.categories[:4] == ("0 × style 0", "0 × style 1", "0 × other", "1 × other")
    assert book.encode([[0.0], [5.0], [5.0]], [0, 0, 3]).tolist() == [0, 1, 8]


def test_the_same_seed_gives_the_same_book_and_a_labels_styles_need_no_other_label():
    features, labels = pool()
    assert codebook(features, labels, rng=3) == codebook(features, labels, rng=3)
    assert codebook(features, labels, rng=3) != codebook(features, labels, rng=4)
    first = labels == 0
    alone = codebook(features[first], labels[first], rng=3)
    assert np.array_equal(alone.centres, codebook(features, labels, rng=3).centres[:16])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_styles": 0}, "n_styles of at least 1, got 3 and 0"),
        ({"coverage": 0.0}, "coverage above 0 and at most 1, got 0.0"),
        ({"coverage": 1.5}, "coverage above 0"),
        ({"n_labels": 2}, "labels from 0 to 1, got 2"),
        ({"features": np.zeros((0, 4)), "labels": []}, "expected proxy points with features"),
        ({"features": np.full((3_000, 2), np.inf)}, "finite"),
    ],
)
def test_settings_and_points_out_of_range_are_refused(changed, message):
    features, labels = pool()
    with pytest.raises(ParameterError, match=message):
        codebook(**({"features": features, "labels": labels, "rng": 0} | changed))
