"""The evidence of a mixture of Dirichlet-multinomials by Laplace's approximation, with Gamma priors.

The model and its approximation are those of Holmes, Harris and Quince (PLoS ONE 7(2): e30126, 2012): log
alphas are the parameters, each alpha has the prior Gamma(0.1, 0.1), and the Hessian is that of each
component with the responsibilities as they are. Nothing is learned here that is kept.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaln, logsumexp, polygamma, psi

from polyurn.model.mdm import MDM
from polyurn.typed.declared import Floats, Ints

_SHAPE, _RATE = 0.1, 0.1  # of the Gamma prior, as in `dmn`
_TOLERANCE, _MOST_ROUNDS = 1e-6, 100
_SMALLEST = 1e-8  # an alpha of 0 has no logarithm; the prior finds its own


def negative_log_evidence(counts: Ints, mdm: MDM) -> float:
    """-log p(X | K), of a table of shape (n_clients, n_categories), from a fitted mixture on."""
    weights, logs, before = mdm.weights, np.log(np.maximum(mdm.alphas, _SMALLEST)), np.inf
    for _ in range(_MOST_ROUNDS):
        joint = np.log(weights) - np.stack([_energies(counts, one) for one in logs], axis=1)
        total = logsumexp(joint, axis=1, keepdims=True)
        responsible = np.exp(joint - total)
        weights = responsible.mean(axis=0)
        logs = np.stack(
            [_best(counts, mine, one) for mine, one in zip(responsible.T, logs, strict=True)]
        )
        joint = np.log(weights) - np.stack([_energies(counts, one) for one in logs], axis=1)
        value = -float(logsumexp(joint, axis=1).sum() + _log_prior(logs))
        if abs(before - value) < _TOLERANCE * len(counts):
            break
        before = value
    n, n_parameters = counts.sum(axis=1), logs.size + len(weights) - 1
    fixed = gammaln(n + 1).sum() - gammaln(counts + 1).sum()
    of_weights = (np.log(len(counts)) - np.log(weights[1:])).sum()
    curvature = sum(
        float(np.linalg.slogdet(_hessian(counts, mine, one))[1])
        for mine, one in zip(responsible.T, logs, strict=True)
    )
    return float(
        value - fixed + (curvature + of_weights) / 2 - n_parameters * np.log(2 * np.pi) / 2
    )


def _energies(counts: Ints, logs: Floats) -> Floats:
    """-log p(c | n, alpha) of each client, without the multinomial coefficient."""
    alpha, n = np.exp(logs), counts.sum(axis=1)
    rises = (gammaln(counts + alpha) - gammaln(alpha)).sum(axis=1)
    return np.asarray(gammaln(n + alpha.sum()) - gammaln(alpha.sum()) - rises)


def _log_prior(logs: Floats) -> float:
    constant = _SHAPE * np.log(_RATE) - gammaln(_SHAPE)
    return float((constant + _SHAPE * logs - _RATE * np.exp(logs)).sum())


def _best(counts: Ints, weights: Floats, logs: Floats) -> Floats:
    """The log alphas of the largest posterior, each client counting by its weight."""

    def value(logs: Floats) -> tuple[float, Floats]:
        energy = float(weights @ _energies(counts, logs))
        return energy - _log_prior(logs), _gradient(counts, weights, logs)

    return np.asarray(minimize(value, logs, jac=True, method="L-BFGS-B").x)


def _gradient(counts: Ints, weights: Floats, logs: Floats) -> Floats:
    alpha, n = np.exp(logs), counts.sum(axis=1)
    of_sum = weights @ (psi(n + alpha.sum()) - psi(alpha.sum()))
    return np.asarray(
        alpha * (of_sum - weights @ (psi(counts + alpha) - psi(alpha)) + _RATE) - _SHAPE
    )


def _hessian(counts: Ints, weights: Floats, logs: Floats) -> Floats:
    """Of `_best`'s objective in the log alphas, shape (n_categories, n_categories)."""
    alpha, n = np.exp(logs), counts.sum(axis=1)
    of_sum = weights @ (polygamma(1, n + alpha.sum()) - polygamma(1, alpha.sum()))
    of_each = weights @ (polygamma(1, alpha) - polygamma(1, counts + alpha))
    first = _gradient(counts, weights, logs) + _SHAPE  # alpha times the derivative by alpha
    return np.asarray(of_sum * np.outer(alpha, alpha) + np.diag(alpha**2 * of_each + first))
