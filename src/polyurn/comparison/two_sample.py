"""A classifier two-sample test: can a classifier tell simulated clients from true ones?

Gradient-boosted trees see a client's normalised histogram and its size, and are judged on clients that
they were not trained on. An area under the ROC curve (AUC) of 0.5 is perfect: they cannot tell. One of
1 says that they always can. Distances, which have no classifier in them, are `distances.py`.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from polyurn.comparison.estimates import Estimate
from polyurn.errors import MissingDependencyError


def two_sample_auc(
    simulated: NDArray[np.float64],
    true: NDArray[np.float64],
    *,
    n_folds: int = 5,
    rng: int | np.random.Generator | None = None,
) -> Estimate:
    """Cross-validated AUC of telling simulated clients from true ones; 0.5 is perfect.

    The AUC of each fold is averaged. Its variance is DeLong's, from how each client is placed among
    those of the other kind in its fold, times Nadeau and Bengio's 1 + n_folds/(n_folds - 1): the
    folds' classifiers were trained on much the same clients.

    Parameters
    ----------
    simulated : float array of shape (n, n_features)
    true : float array of shape (m, n_features)
    n_folds : int
        At least 2, and at most as many as there are clients of the smaller kind.
    rng : int or numpy.random.Generator

    Raises
    ------
    MissingDependencyError
        scikit-learn is not installed.
    """
    rng = np.random.default_rng(rng)
    features = np.concatenate([simulated, true])
    kind = np.repeat([1, 0], [len(simulated), len(true)])
    placed: dict[int, list[NDArray[np.float64]]] = {0: [], 1: []}
    for train, test in _folds(kind, n_folds, rng):
        score = _scores(features, kind, train, test, seed=int(rng.integers(2**31)))
        placed[1].append(_placements(score[kind[test] == 1], score[kind[test] == 0]))
        placed[0].append(1 - _placements(score[kind[test] == 0], score[kind[test] == 1]))
    ones, zeros = np.concatenate(placed[1]), np.concatenate(placed[0])
    auc = (ones.mean() + zeros.mean()) / 2  # equal but for folds of unequal sizes
    variance = ones.var(ddof=1) / len(ones) + zeros.var(ddof=1) / len(zeros)
    error = 1.96 * np.sqrt(variance * (1 + n_folds / (n_folds - 1)))
    return Estimate(float(auc), float(max(auc - error, 0)), float(min(auc + error, 1)))


def _folds(
    kind: NDArray[np.int64], n_folds: int, rng: np.random.Generator
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """(train, test) of each fold; both kinds are dealt out evenly."""
    fold = np.empty(len(kind), dtype=np.int64)
    for k in (0, 1):
        mine = rng.permutation(np.flatnonzero(kind == k))
        fold[mine] = np.arange(len(mine)) % n_folds
    return [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(n_folds)]


def _placements(scores: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """The share of `others` below each score; ties count half."""
    both = rankdata(np.concatenate([scores, others]))[: len(scores)]
    return np.asarray((both - rankdata(scores)) / len(others))


def _scores(
    features: NDArray[np.float64],
    kind: NDArray[np.int64],
    train: NDArray[np.int64],
    test: NDArray[np.int64],
    *,
    seed: int,
) -> NDArray[np.float64]:
    """What a classifier trained on some clients says about others; higher is kind 1."""
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
        from threadpoolctl import threadpool_limits  # scikit-learn needs it, too
    except ImportError as error:
        raise MissingDependencyError("scikit-learn", "sklearn", "the two-sample test") from error
    # Small trees, few of them: clients are hundreds, and deep trees learn them by heart.
    tell = HistGradientBoostingClassifier(
        max_iter=60, max_leaf_nodes=8, min_samples_leaf=5, early_stopping=False, random_state=seed
    )
    # So small a task is over before threads have met; on a busy machine they wait for each other.
    with threadpool_limits(1, user_api="openmp"):
        tell.fit(features[train], kind[train])
        return np.asarray(tell.decision_function(features[test]))
