"""The mixture as a scikit-learn estimator, for a table of counts that is at hand.

Rows are clients, columns are categories. The likelihood is of counts given their total, p(c | n): how
large rows are is not modelled. All learning is `polyurn.fit`'s; nothing is estimated here.
"""
# ruff: noqa: N803 - scikit-learn calls the table X

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaln, logsumexp, polygamma, psi

from polyurn.aggregate.local import LocalAggregator
from polyurn.counts import Counts, check_counts, client_sizes
from polyurn.errors import MissingDependencyError, ParameterError
from polyurn.integrations.fit_tables import fit
from polyurn.model.mdm import MDM, mixture_logpmf
from polyurn.model.sizes import Sizes
from polyurn.server.fit_results import Fit
from polyurn.typed.declared import Floats, Ints
from polyurn.wording import counted

try:
    from sklearn.base import BaseEstimator, DensityMixin
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise MissingDependencyError("scikit-learn>=1.6", "sklearn", "the estimator") from error

# Nothing leaves this process, so numbers sent cost only time: an upload may be large, and larger for a
# wide table, so that nearly every start fits into it.
_MAX_UPLOAD, _UPLOAD_PER_PARAMETER = 200_000, 150

_SHAPE, _RATE = 0.1, 0.1  # of the evidence's Gamma prior, as in `dmn`
_TOLERANCE, _MOST_ROUNDS = 1e-6, 100
_SMALLEST = 1e-8  # an alpha of 0 has no logarithm; the prior finds its own


class DirichletMultinomialMixture(DensityMixin, BaseEstimator):  # type: ignore[misc]
    """A mixture of Dirichlet-multinomials, with the interface of `sklearn.mixture.GaussianMixture`.

    X is an array or sparse matrix of counts, of shape (n_samples, n_features): whole numbers, not
    negative. Anything else is a ValueError; nothing is rounded or dropped. A row without counts cannot
    be fitted; under a fit its likelihood given its total is one, and its components are as likely as
    their weights.

    Parameters
    ----------
    n_components : int
    tol : float
        A fit has converged when less than this seems to be left to gain, in nats per row.
    max_iter : int
        Rounds of a fit, at least 3: the first two find where to start.
    n_init : int
        Independent fits, of which the likeliest is kept. One is a race of up to 48 random starts; more
        are worth their time where there are few rows for many features, and many local optima.
    random_state : int, RandomState or None
        For the random starts, and for `sample`.

    Attributes
    ----------
    weights_ : float array of shape (n_components,)
        Decreasing. Components left with less than half a row are dropped, so they may be fewer.
    alphas_ : float array of shape (n_components, n_features)
        Concentrations of each component.
    mdm_ : MDM
        The same, with the sizes of the rows in bins that all components share.
    converged_ : bool
    n_iter_ : int
        Rounds of the fit that was kept.
    lower_bound_ : float
        Mean log-likelihood of the rows it was fitted to.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Examples
    --------
    >>> from polyurn.model.paper_truths import truth
    >>> X = truth("medium/2").sample(500, rng=0)
    >>> mixture = DirichletMultinomialMixture(2, random_state=1).fit(X)
    >>> mixture.weights_.round(1).tolist(), mixture.alphas_.shape
    ([0.6, 0.4], (2, 10))
    >>> mixture.predict_proba(X[:2]).round(1).tolist()
    [[0.1, 0.9], [1.0, 0.0]]
    """

    def __init__(
        self,
        n_components: int = 1,
        *,
        tol: float = 1e-3,
        max_iter: int = 100,
        n_init: int = 1,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_components = n_components
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.random_state = random_state

    def fit(self, X: object, y: object = None) -> Self:
        """Learn the mixture from rows of counts; y is ignored."""
        counts = self._counts(X, reset=True)
        _check_at_least("max_iter", self.max_iter, 3)
        _check_at_least("n_init", self.n_init, 1)
        _check_at_least("n_samples", counts.shape[0], self.n_components)  # a row for each
        n_fits = 1 if self.n_components == 1 else self.n_init  # one component has one optimum
        fits = [self._fit_once(counts, rng) for rng in self._generators(n_fits)]
        scores = [float(logsumexp(_joint(counts, f.mdm), axis=1).mean()) for f in fits]
        best = int(np.argmax(scores))
        names = getattr(self, "feature_names_in_", None)
        self.mdm_ = replace(fits[best].mdm, categories=None if names is None else tuple(names))
        self.weights_, self.alphas_ = self.mdm_.weights, self.mdm_.alphas
        self.converged_, self.n_iter_ = fits[best].converged, fits[best].n_rounds
        self.lower_bound_ = scores[best]
        if not self.converged_:
            message = (
                f"kept the best of {counted(self.max_iter, 'round')}, before the fit converged"
            )
            warnings.warn(f"{message}; raise max_iter or tol", ConvergenceWarning, stacklevel=2)
        return self

    def fit_predict(self, X: object, y: object = None) -> Ints:
        """Learn the mixture, and say which component each row most likely came from."""
        return self.fit(X).predict(X)

    def predict(self, X: object) -> Ints:
        """The component that each row most likely came from, shape (n_samples,)."""
        return np.asarray(np.argmax(self._joint(X), axis=1))

    def predict_proba(self, X: object) -> Floats:
        """Probability that each row came from each component, shape (n_samples, n_components)."""
        joint = self._joint(X)
        return np.asarray(np.exp(joint - logsumexp(joint, axis=1, keepdims=True)))

    def score_samples(self, X: object) -> Floats:
        """Log-likelihood of each row given its total, log p(c | n), shape (n_samples,)."""
        return np.asarray(logsumexp(self._joint(X), axis=1))

    def score(self, X: object, y: object = None) -> float:
        """Mean log-likelihood of the rows given their totals; y is ignored."""
        return float(self.score_samples(X).mean())

    def aic(self, X: object) -> float:
        """Akaike's information criterion of the rows; the lower the better."""
        return float(2 * self._n_parameters() - 2 * self.score_samples(X).sum())

    def bic(self, X: object) -> float:
        """The Bayesian information criterion of the rows; the lower the better."""
        values = self.score_samples(X)
        return float(self._n_parameters() * np.log(len(values)) - 2 * values.sum())

    def laplace(self, X: object) -> float:
        """The negative log evidence of the rows by Laplace's approximation; the lower the better.

        As `dmn` of R's DirichletMultinomial has it (Holmes, Harris and Quince, PLoS ONE 7(2), 2012):
        each alpha has a Gamma(0.1, 0.1) prior, and the approximation is at the maximum of the posterior,
        which is sought from this mixture on. It is O(n_features³); sparse rows become dense.
        """
        check_is_fitted(self)
        counts = self._counts(X, reset=False)
        rows = counts if isinstance(counts, np.ndarray) else counts.toarray()
        return _negative_log_evidence(rows.astype(np.int64), self.mdm_)

    def sample(self, n_samples: int = 1) -> tuple[Ints, Ints]:
        """Draw rows, with totals like those of the rows the mixture was fitted to.

        Returns
        -------
        X : int array of shape (n_samples, n_features)
        y : int array of shape (n_samples,), the component of each row, in increasing order
        """
        check_is_fitted(self)
        _check_at_least("n_samples", n_samples, 1)
        (rng,) = self._generators(1)
        n_rows = rng.multinomial(n_samples, self.mdm_.weights)
        sizes = Sizes(self.mdm_.sizes.bins, self.mdm_.sizes.masses[:1])  # all components share them
        splits = self.mdm_.splits
        one_each = [
            MDM([1.0], [alpha], sizes, splits=splits and splits.some([k]))
            for k, alpha in enumerate(self.alphas_)
        ]
        rows = [one.sample(int(n), rng=rng) for one, n in zip(one_each, n_rows, strict=True)]
        return np.concatenate(rows), np.repeat(np.arange(len(n_rows)), n_rows)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    def _fit_once(self, counts: Counts, rng: np.random.Generator) -> Fit:
        play, starts = rng.spawn(2)
        return fit(
            LocalAggregator(counts, rng=play), n_components=self.n_components,
            n_categories=counts.shape[1], max_size=int(client_sizes(counts).max()),
            max_rounds=self.max_iter, tol=self.tol, rng=starts,
            sizes="shared",  # so that sizes do not tell components apart
            max_upload=max(
                _MAX_UPLOAD, _UPLOAD_PER_PARAMETER * self.n_components * counts.shape[1]
            ),
        )  # fmt: skip

    def _counts(self, X: object, *, reset: bool) -> Counts:
        fewest = 2 if reset else 1  # once fitted, X needs as many features as the fit had
        table = validate_data(
            self, X, reset=reset, accept_sparse="csr",
            ensure_non_negative=True, ensure_min_features=fewest,
        )  # fmt: skip
        return check_counts(table, allow_empty=not reset)

    def _joint(self, X: object) -> Floats:
        check_is_fitted(self)
        return _joint(self._counts(X, reset=False), self.mdm_)

    def _n_parameters(self) -> int:
        of_sizes = self.mdm_.n_components * (self.mdm_.sizes.bins.n_bins - 1)
        return self.mdm_.n_parameters - of_sizes

    def _generators(self, n: int) -> list[np.random.Generator]:
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        return np.random.default_rng(seed).spawn(n)


def _joint(counts: Counts, mdm: MDM) -> Floats:
    """Log τ_k + log p(c | n, α_k): without the sizes, so that rows may be larger than any before."""
    return np.asarray(np.log(mdm.weights) + mdm.log_shares(counts))


def _check_at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise ParameterError(f"expected {name} of at least {least}, got {name}={value}")


# ------------------------------------------------------------------------ the evidence of a mixture


def _negative_log_evidence(counts: Ints, mdm: MDM) -> float:
    """-log p(X | K) of a table of shape (n_clients, n_categories), from a fitted mixture on.

    Log alphas are the parameters; the Hessian is that of each component with the responsibilities as
    they are (Holmes, Harris and Quince, 2012).
    """
    weights, logs, before = mdm.weights, np.log(np.maximum(mdm.alphas, _SMALLEST)), np.inf
    for _ in range(_MOST_ROUNDS):
        joint = np.log(weights) + mixture_logpmf(counts, np.exp(logs))
        responsible = np.exp(joint - logsumexp(joint, axis=1, keepdims=True)).T
        weights = responsible.mean(axis=1)
        logs = np.stack([_best(counts, *one) for one in zip(responsible, logs, strict=True)])
        joint = np.log(weights) + mixture_logpmf(counts, np.exp(logs))
        value = -float(logsumexp(joint, axis=1).sum() + _log_prior(logs))
        if abs(before - value) < _TOLERANCE * len(counts):
            break
        before = value
    hessians = [_hessian(counts, *one) for one in zip(responsible, logs, strict=True)]
    curvature = sum(float(np.linalg.slogdet(one)[1]) for one in hessians)
    of_weights = float((np.log(len(counts)) - np.log(weights[1:])).sum())
    n_parameters = logs.size + len(weights) - 1
    return value + (curvature + of_weights - n_parameters * float(np.log(2 * np.pi))) / 2


def _log_prior(logs: Floats) -> float:
    constant = _SHAPE * np.log(_RATE) - gammaln(_SHAPE)
    return float((constant + _SHAPE * logs - _RATE * np.exp(logs)).sum())


def _best(counts: Ints, weights: Floats, logs: Floats) -> Floats:
    """The log alphas of the largest posterior, each client counting by its weight."""
    n = counts.sum(axis=1)

    def value(logs: Floats) -> tuple[float, Floats]:
        # Without the multinomial coefficient: an optimum does not depend on it.
        alpha = np.exp(logs)
        rises = (gammaln(counts + alpha) - gammaln(alpha)).sum(axis=1)
        energy = float(weights @ (gammaln(n + alpha.sum()) - gammaln(alpha.sum()) - rises))
        return energy - _log_prior(logs), _gradient(counts, weights, logs)

    return np.asarray(minimize(value, logs, jac=True, method="L-BFGS-B").x)


def _gradient(counts: Ints, weights: Floats, logs: Floats) -> Floats:
    """Of `_best`'s objective in the log alphas, shape (n_categories,)."""
    alpha, n = np.exp(logs), counts.sum(axis=1)
    of_sum = weights @ (psi(n + alpha.sum()) - psi(alpha.sum()))
    of_each = weights @ (psi(counts + alpha) - psi(alpha))
    return np.asarray(alpha * (of_sum - of_each + _RATE) - _SHAPE)


def _hessian(counts: Ints, weights: Floats, logs: Floats) -> Floats:
    """The same objective's, shape (n_categories, n_categories)."""
    alpha, n = np.exp(logs), counts.sum(axis=1)
    of_sum = weights @ (polygamma(1, n + alpha.sum()) - polygamma(1, alpha.sum()))
    of_each = weights @ (polygamma(1, alpha) - polygamma(1, counts + alpha))
    first = _gradient(counts, weights, logs) + _SHAPE  # alpha times the derivative by alpha
    return np.asarray(of_sum * np.outer(alpha, alpha) + np.diag(alpha**2 * of_each + first))
