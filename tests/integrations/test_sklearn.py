"""The estimator keeps scikit-learn's conventions, and its numbers are the mixture's."""

import pickle
import sys
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from polyurn import dirichlet_multinomial_logpmf
from polyurn.errors import MissingDependencyError
from polyurn.integrations.sklearn import DirichletMultinomialMixture
from polyurn.model.paper_truths import truth

TRUTH = truth("medium/2")
COUNTS = TRUTH.sample(600, rng=0)


@pytest.fixture(scope="module")
def fitted():
    return DirichletMultinomialMixture(2, random_state=1).fit(COUNTS)


class OnWholeNumbers(DirichletMultinomialMixture):
    """The estimator, with the tag by which scikit-learn's checks round the data that they make up.

    The tag speaks of categories as whole numbers, which counts are not: the estimator itself does not
    carry it. Nothing else is different here.
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags


# Their data, rounded, has rows of zeros, which is no client. What they check is tested below on counts.
_EMPTY_ROWS = dict.fromkeys(
    (
        "check_fit_score_takes_y",
        "check_pipeline_consistency",
        "check_estimators_pickle",
        "check_estimator_sparse_tag",
        "check_estimator_sparse_array",
        "check_estimator_sparse_matrix",
    ),
    "the check's data has rows without any counts, which cannot be fitted",
)


# Few rounds, as scikit-learn gives its own mixtures in these checks.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [OnWholeNumbers(2, max_iter=4)], expected_failed_checks=lambda _: _EMPTY_ROWS
)
def test_scikit_learns_own_checks_pass_on_whole_numbers(estimator, check):
    check(estimator)


def test_rows_score_what_the_naive_formula_says(fitted):
    naive = [
        np.log(
            sum(
                weight * np.exp(dirichlet_multinomial_logpmf(row, alpha))
                for weight, alpha in zip(fitted.weights_, fitted.alphas_, strict=True)
            )
        )
        for row in COUNTS[:50]
    ]
    np.testing.assert_allclose(fitted.score_samples(COUNTS[:50]), naive, rtol=1e-10)
    assert fitted.score(COUNTS[:50]) == pytest.approx(np.mean(naive))


def test_rows_score_what_the_mdm_says_given_their_size(fitted):
    given_size = fitted.mdm_.logpmf_given_size(COUNTS)
    np.testing.assert_allclose(fitted.score_samples(COUNTS), given_size, rtol=1e-9)
    np.testing.assert_allclose(fitted.predict_proba(COUNTS), fitted.mdm_.responsibilities(COUNTS))


def test_rows_larger_than_any_before_have_a_score(fitted):
    large = COUNTS[:3] * 50
    assert large.sum(axis=1).min() > fitted.mdm_.max_size
    assert np.isfinite(fitted.score_samples(large)).all()


def test_scores_of_all_rows_with_one_total_sum_to_one():
    counts = np.array([[a, b] for a in range(1, 9) for b in range(9)])
    mixture = DirichletMultinomialMixture(2, random_state=0, tol=0.1).fit(counts)
    rows = [[c, 30 - c] for c in range(31)]
    assert np.exp(mixture.score_samples(rows)).sum() == pytest.approx(1)


def test_probabilities_of_components_sum_to_one_and_the_largest_is_predicted(fitted):
    probabilities = fitted.predict_proba(COUNTS)
    assert probabilities.shape == (600, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_array_equal(fitted.predict(COUNTS), probabilities.argmax(axis=1))


def test_a_known_mixture_is_recovered():
    clients = TRUTH.sample(5_000, rng=3)
    mixture = DirichletMultinomialMixture(2, random_state=0).fit(clients)
    assert mixture.converged_
    # Over seeds, weights vary by 0.008 and no alpha by more than 7 %: five standard errors.
    np.testing.assert_allclose(mixture.weights_, TRUTH.weights, atol=0.04)
    np.testing.assert_allclose(mixture.alphas_, TRUTH.alphas, rtol=0.35)
    # At the maximum, twice the log-likelihood beyond the truth's is χ² with 21 degrees of freedom:
    # above 60 once in a hundred thousand seeds.
    beyond = 5_000 * (mixture.score(clients) - TRUTH.logpmf_given_size(clients).mean())
    assert 0 < 2 * beyond < 60


def test_attributes_are_those_of_the_mixture(fitted):
    assert fitted.weights_ is fitted.mdm_.weights
    assert fitted.alphas_ is fitted.mdm_.alphas
    assert fitted.n_features_in_ == 10
    assert 3 <= fitted.n_iter_ <= fitted.max_iter
    assert fitted.lower_bound_ == pytest.approx(fitted.score(COUNTS))


def test_sizes_of_rows_do_not_tell_components_apart():
    rng = np.random.default_rng(0)
    sizes = np.where(np.arange(400) % 2, 10, 1000)
    counts = rng.multinomial(sizes, rng.dirichlet([3.0, 2.0, 1.0], size=400))
    one, two = (DirichletMultinomialMixture(k, random_state=0).fit(counts) for k in (1, 2))
    assert two.bic(counts) > one.bic(counts)


def test_more_fits_are_never_worse_than_the_first():
    settings = {"n_components": 3, "max_iter": 4, "random_state": 0}
    with pytest.warns(ConvergenceWarning):
        one = DirichletMultinomialMixture(n_init=1, **settings).fit(COUNTS)
    with pytest.warns(ConvergenceWarning):
        three = DirichletMultinomialMixture(n_init=3, **settings).fit(COUNTS)
    assert three.lower_bound_ >= one.lower_bound_


def test_a_fit_out_of_rounds_says_so():
    mixture = DirichletMultinomialMixture(2, max_iter=3, random_state=0)
    with pytest.warns(ConvergenceWarning, match="3 rounds"):
        mixture.fit(COUNTS)
    assert not mixture.converged_
    assert mixture.n_iter_ == 3


def test_samples_have_rows_labels_and_sizes_of_the_mixture(fitted):
    rows, labels = fitted.sample(2_000)
    assert rows.shape == (2_000, 10)
    assert labels.shape == (2_000,)
    assert (np.diff(labels) >= 0).all()
    assert 1 <= rows.sum(axis=1).min() <= rows.sum(axis=1).max() <= 20
    # Standard error of a share of 2,000 rows is 0.011: a false alarm once in ten million seeds.
    np.testing.assert_allclose(np.bincount(labels) / 2_000, fitted.weights_, atol=0.06)
    for k in range(2):
        share = rows[labels == k].sum(axis=0) / rows[labels == k].sum()
        np.testing.assert_allclose(share, fitted.alphas_[k] / fitted.alphas_[k].sum(), atol=0.04)
    one, label = fitted.sample()
    assert one.shape == (1, 10)
    assert label.shape == (1,)


def test_the_same_random_state_gives_the_same_fit_and_the_same_samples(fitted):
    again = DirichletMultinomialMixture(2, random_state=1).fit(COUNTS)
    assert again.mdm_ == fitted.mdm_
    np.testing.assert_array_equal(again.sample(20)[0], fitted.sample(20)[0])
    state = np.random.RandomState(1)
    moving = clone(fitted).set_params(random_state=state).fit(COUNTS)
    assert not np.array_equal(moving.sample(20)[0], moving.sample(20)[0])


def test_information_criteria_count_weights_and_alphas(fitted):
    n_parameters = 1 + 2 * 10
    log_likelihood = 600 * fitted.score(COUNTS)
    assert fitted.aic(COUNTS) == pytest.approx(2 * n_parameters - 2 * log_likelihood)
    assert fitted.bic(COUNTS) == pytest.approx(n_parameters * np.log(600) - 2 * log_likelihood)


def test_a_pickled_estimator_predicts_the_same(fitted):
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(COUNTS), fitted.predict_proba(COUNTS))
    assert again.mdm_ == fitted.mdm_


def test_a_clone_has_the_settings_and_not_the_fit(fitted):
    fresh = clone(fitted)
    assert fresh.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        fresh.predict(COUNTS)


@pytest.mark.parametrize("as_sparse", [sparse.csr_matrix, sparse.csc_array])
def test_sparse_rows_give_what_dense_rows_give(fitted, as_sparse):
    table = as_sparse(COUNTS)
    again = clone(fitted).fit(table)
    assert again.mdm_ == fitted.mdm_
    np.testing.assert_array_equal(fitted.score_samples(table), fitted.score_samples(COUNTS))


def test_whole_floats_give_what_integers_give_and_y_is_ignored(fitted):
    again = clone(fitted).fit(COUNTS.astype(np.float64), y=COUNTS[:, 0])
    assert again.mdm_ == fitted.mdm_
    assert again.score(COUNTS, COUNTS[:, 0]) == fitted.score(COUNTS)
    np.testing.assert_array_equal(clone(fitted).fit_predict(COUNTS, None), fitted.predict(COUNTS))


def documents(n):
    """Texts of two kinds, each with its own taste in words; every one has the word "the"."""
    rng = np.random.default_rng(4)
    words = np.array(["the", "urn", "ball", "draw", "train", "client", "round", "server"])
    alphas = np.array([[4, 5, 5, 5, 0.5, 0.5, 0.5, 0.5], [4, 0.5, 0.5, 0.5, 5, 5, 5, 5]])
    kinds = np.arange(n) % 2
    texts = [" ".join(["the", *rng.choice(words, 30, p=rng.dirichlet(alphas[k]))]) for k in kinds]
    return texts, kinds


def test_a_pipeline_groups_texts_by_their_word_counts():
    texts, kinds = documents(200)
    mixture = DirichletMultinomialMixture(2, random_state=0)
    labels = make_pipeline(CountVectorizer(), mixture).fit_predict(texts)
    agreement = np.mean(labels == kinds)
    assert max(agreement, 1 - agreement) > 0.95


def test_a_grid_search_on_the_score_finds_the_number_of_components():
    texts, _ = documents(200)
    table = CountVectorizer().fit_transform(texts)
    mixture = DirichletMultinomialMixture(random_state=0)
    search = GridSearchCV(mixture, {"n_components": [1, 2]}, cv=3).fit(table)
    assert search.best_params_ == {"n_components": 2}
    assert search.best_score_ > DirichletMultinomialMixture().fit(table).score(table)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([[1.5, 2], [1, 3]], "fractions"),
        ([[-1, 2], [1, 3]], "Negative values"),
        ([[np.nan, 2], [1, 3]], "NaN"),
        ([[1], [3]], "minimum of 2"),
        ([1, 3], "Expected 2D"),
    ],
)
def test_what_is_not_a_table_of_counts_is_refused_in_every_method(fitted, counts, message):
    with pytest.raises(ValueError, match=message):
        clone(fitted).fit(counts)
    two = DirichletMultinomialMixture(tol=0.1).fit([[1, 3], [3, 1], [5, 0], [0, 5]])
    if message != "minimum of 2":
        for method in (two.predict, two.predict_proba, two.score_samples, two.score, two.aic):
            with pytest.raises(ValueError, match=message):
                method(counts)


def test_a_row_without_counts_cannot_be_fitted():
    with pytest.raises(ValueError, match="no points"):
        DirichletMultinomialMixture().fit([[0, 0], [1, 3]])


def test_a_row_without_counts_is_certain_given_its_total_and_as_likely_as_the_weights(fitted):
    rows = np.vstack([np.zeros(10, dtype=int), COUNTS[:3]])
    np.testing.assert_array_equal(fitted.score_samples(rows)[1:], fitted.score_samples(COUNTS[:3]))
    assert fitted.score_samples(rows)[0] == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(fitted.predict_proba(rows)[0], fitted.weights_, rtol=1e-12)
    assert fitted.predict(rows)[0] == 0  # weights decrease


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_components": 0}, "n_components"),
        ({"n_components": 1.5}, "n_components"),
        ({"n_components": 601}, "n_samples of at least 601"),
        ({"max_iter": 2}, "max_iter of at least 3"),
        ({"n_init": 0}, "n_init of at least 1"),
        ({"tol": 0.0}, "tol"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        DirichletMultinomialMixture(**settings).fit(COUNTS)


def test_no_samples_are_refused(fitted):
    with pytest.raises(ValueError, match="n_samples of at least 1"):
        fitted.sample(0)


def test_without_scikit_learn_the_import_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "polyurn.integrations.sklearn")
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'polyurn\[sklearn\]'"):
        import_module("polyurn.integrations.sklearn")


def test_a_mixture_of_a_data_frame_never_forgets_the_names_of_its_columns():
    frame = pd.DataFrame(truth("low/1").sample(60, rng=0)[:, :3] + 1, columns=["cat", "dog", "owl"])
    fitted = DirichletMultinomialMixture(1, random_state=0).fit(frame)
    assert fitted.mdm_.categories == ("cat", "dog", "owl")
    turned = frame[["owl", "dog", "cat"]]
    assert fitted.mdm_.logpmf(turned) == pytest.approx(fitted.mdm_.logpmf(frame))
    assert fitted.fit(frame.to_numpy()).mdm_.categories is None
