"""Fitting clients' styles: one question, and the moment equations of the two-level law.

With a, b and c the means over clients of Σ_l (n_l / n)², 1 / n and L_i / n, and T1, A and W those of the
matrices of `wire/styles.py`, the law of `model/style.py` gives

    E[W] = (1 - c) E,    E[A] = (1 - a) V + (c - b) E,    E[T1] = μμ' + B + a V + b E,

which are solved for E, V and B, whatever the sizes and labels of the clients. How sure that is, is
`style_errors.py`.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import FitError, ParameterError
from polyurn.model.style import Style, nearest_covariance
from polyurn.model.style_coordinates import StyleSpace
from polyurn.privacy.accounting import sigma_for
from polyurn.privacy.aggregator import PrivateAggregator
from polyurn.privacy.ledger import PrivacyLedger, Trust
from polyurn.privacy.noise import Noise, discrete_gaussian
from polyurn.server.style_errors import Clients, Estimates, standard_errors
from polyurn.typed.arguments import checked
from polyurn.wire import Aggregator, Noised
from polyurn.wire.styles import BoundedStyle, StyleMoments, StyleStatistics, square

# Less of the label shares' variance is rounding: shares add up to 1, so one direction has none.
_LEAST_SHARE = 1e-6
# Below this, 1 - a and 1 - c are rounding: every client has one label, or one point of each label.
_NOTHING = 1e-9
# 1 - c is seen through noise if it is so many standard deviations of it.
_SURE = 2.0


@checked
def fit_style(
    aggregator: Aggregator,
    space: StyleSpace,
    *,
    ties: bool = False,
    cohort_size: int | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    clip: float | None = None,
    trust: Trust = "central",
    ledger: PrivacyLedger | None = None,
    noise: Noise = discrete_gaussian,
) -> Style:
    """Learn how clients differ besides their labels, in one round.

    Clients with records send 5 + m + 3 m (m + 1) / 2 numbers, once. Negative eigenvalues of B, V and E
    are set to 0. Where every client has one label, B and V cannot be told apart, and all of it is B.

    Parameters
    ----------
    aggregator : Aggregator
        Of clients with records: `LocalAggregator(Records(...))`, say. With `epsilon` it may be a
        `PrivateAggregator`, whose ledger, trust model and noise then count, and whose `guarantee()`
        states what was spent.
    space : StyleSpace
        Made of the server's own proxy points: see `style_space`.
    ties : bool
        Whether label shares are asked for as well, so that style follows them: for federations where
        label and style go together. L + L (L + 1) / 2 + L m numbers more.
    cohort_size : int, optional
        How many clients are asked; all of them by default, and always with `epsilon`.
    epsilon, delta : float, optional
        Ask with (ε, δ)-differential privacy for one client added or removed. What the noise does to the
        estimates is in their standard errors.
    clip : float, optional
        With `epsilon`: the norm at which a client's second moments are cut; by default m, the mean of
        z'z in the pool. Larger ones are scaled down less often, and all have more noise.
    trust, ledger, noise
        With `epsilon`, as in `fit_private`.

    Returns
    -------
    Style

    Raises
    ------
    FitError
        Fewer than two clients answered, none has two points of one label, or there is more noise than
        signal.

    Examples
    --------
    >>> import polyurn as pu
    >>> rng = np.random.default_rng(0)
    >>> labels, clients = rng.integers(2, size=6000), np.repeat(np.arange(200), 30)
    >>> own = rng.normal(size=(200, 2))[clients]
    >>> features = own + rng.normal(size=(6000, 2)) + 3 * labels[:, None]
    >>> space = pu.style_space(features, labels, n_directions=2)
    >>> style = pu.fit_style(pu.LocalAggregator(pu.Records(features, labels, clients)), space)
    >>> style.n_clients, round(style.between, 1)
    (200, 0.5)
    """
    asked = _Private(epsilon, delta, clip, trust, ledger, noise)
    if epsilon is None:
        asked.refuse_unused(given=delta is not None or clip is not None or ledger is not None)
        sums, sigmas = aggregator.aggregate(StyleMoments(space, ties), cohort_size), None
    else:
        if cohort_size is not None:
            raise ParameterError(
                f"expected no cohort_size with epsilon, all clients are asked, got {cohort_size}"
            )
        sums, sigmas = asked.ask(aggregator, space, ties)
    return _fitted(space, sums, sigmas, asked.cut(space))


@dataclass(frozen=True)
class _Private:
    """What is asked with noise, if anything is."""

    epsilon: float | None
    delta: float | None
    clip: float | None
    trust: Trust
    ledger: PrivacyLedger | None
    noise: Noise

    def refuse_unused(self, *, given: bool) -> None:
        if given:
            raise ParameterError("expected epsilon with delta, clip and ledger: they are for noise")

    def cut(self, space: StyleSpace) -> float:
        """The norm at which a client's second moments are cut."""
        if self.epsilon is None:
            return math.inf
        return float(space.n_directions) if self.clip is None else self.clip

    def ask(
        self, aggregator: Aggregator, space: StyleSpace, ties: bool
    ) -> tuple[StyleStatistics, NDArray[np.float64]]:
        """The sums, and the standard deviation of the noise in each place of them."""
        if self.epsilon is None or self.delta is None:
            raise ParameterError(
                "expected delta with epsilon, well below one over the number of clients: 1e-6, say"
            )
        query = BoundedStyle(space, self.cut(space), ties)
        sigma = sigma_for(self.epsilon, self.delta)
        layer: Any = aggregator
        if not hasattr(aggregator, "guarantee"):  # neither private, nor a record of one that is
            ledger = self.ledger or PrivacyLedger(self.epsilon, self.delta)
            layer = PrivateAggregator(aggregator, ledger=ledger, trust=self.trust, noise=self.noise)
        sums = query.unscaled(layer.aggregate(Noised(query, sigma), None).values)
        if getattr(layer, "trust", self.trust) == "local":  # every client adds all of the noise
            sigma *= math.sqrt(max(float(sums.n_clients), 1.0))
        return sums, sigma / query.scales


def _fitted(
    space: StyleSpace, sums: StyleStatistics, sigmas: NDArray[np.float64] | None, clip: float
) -> Style:
    n_clients = float(sums.n_clients)
    if sigmas is None and not n_clients >= 2:
        raise FitError(
            "expected answers of two clients with records at least, a style is how they differ, got "
            f"{n_clients:g}"
        )
    if not n_clients >= 1:
        raise FitError("there is more noise than clients: ask more of them")
    vector = sums.to_vector()
    if sigmas is not None:
        noise = math.hypot(sigmas[0], sigmas[3])  # of the number of clients, and of the sum of c
        if n_clients - vector[3] < _SURE * noise:
            raise FitError(
                "there is more noise than signal: whether clients have two points of the same label "
                "cannot be told; ask more clients, or with a larger epsilon"
            )
    # Means of shares; noise may leave their range.
    vector[1:5] = np.clip(vector[1:5], 0.0, n_clients)
    b, a, c, far = (float(mean) for mean in vector[1:5] / n_clients)
    raw = solved(vector, space.n_directions)
    kept = Estimates(raw.mean, *map(nearest_covariance, (raw.shared, raw.by_label, raw.within)))
    clients = Clients(
        n_clients, squared_shares=a, inverse_size=b, labels_per_point=c, n_labels=space.n_labels
    )
    errors = standard_errors(kept, clients, vector, sigmas, solved, radius=space.radius, clip=clip)
    return Style(
        space, kept.mean, kept.shared, kept.by_label, kept.within,
        errors=errors, n_clients=round(n_clients),
        far_share=far,
        **_ties(space, sums, kept.mean, sigmas),
    )  # fmt: skip


def solved(sums: NDArray[np.float64], n_directions: int) -> Estimates:
    """The moment equations, from the sums as a vector; eigenvalues may be negative.

    Parameters
    ----------
    sums : float array of shape (n_numbers,)
        As `StyleStatistics.to_vector` has them.
    n_directions : int
    """
    m, n_lower = n_directions, n_directions * (n_directions + 1) // 2
    b, a, c, _, *_ = sums[1:5] / sums[0]
    mean = sums[5 : 5 + m] / sums[0]
    matrices = sums[5 + m : 5 + m + 3 * n_lower].reshape(3, n_lower) / sums[0]
    between_clients, between_labels, within_labels = (square(one, m) for one in matrices)
    if 1 - c < _NOTHING:
        raise FitError(
            "expected clients with two points of the same label, got none: what a client's points "
            "have in common cannot be told from chance; ask clients with more points"
        )
    within = within_labels / (1 - c)
    by_label = np.zeros((m, m))
    if 1 - a >= _NOTHING:
        by_label = (between_labels - (c - b) * within) / (1 - a)
    shared = between_clients - np.outer(mean, mean) - a * by_label - b * within
    return Estimates(mean, shared, by_label, within)


def _ties(
    space: StyleSpace,
    sums: StyleStatistics,
    mean: NDArray[np.float64],
    sigmas: NDArray[np.float64] | None,
) -> dict[str, NDArray[np.float64]]:
    """p, Cov(h) and G = Cov(h)^+ Cov(h, z̄), if they were asked for."""
    if not len(sums.ties):
        return {}
    n, m, n_clients = space.n_labels, space.n_directions, float(sums.n_clients)
    n_lower = n * (n + 1) // 2
    shares, products, means = np.split(sums.ties / n_clients, [n, n + n_lower])
    covariance = nearest_covariance(square(products, n) - np.outer(shares, shares))
    joint = means.reshape(n, m) - np.outer(shares, mean)
    values, vectors = np.linalg.eigh(covariance)
    least = _LEAST_SHARE * max(values[-1], 0.0)
    if sigmas is not None:
        # The largest eigenvalue of symmetric noise is twice its deviation times √n (Wigner 1955).
        of_products = sigmas[len(sigmas) - len(sums.ties) + n] / n_clients
        least = max(least, 2 * math.sqrt(n) * of_products)
    told = values > least
    inverse = (vectors[:, told] / values[told]) @ vectors[:, told].T
    return {"label_shares": shares, "label_covariance": covariance, "tie": inverse @ joint}
