"""Style: what clients differ in besides their labels, as a space of coordinates and a law in it.

A point of label l has the coordinates z = W_l^(-1/2) (P'f - c_l) in a `StyleSpace`, and in a `Style` the
law of point j of label l at client i is z_ilj = μ + u_i + v_il + e_ilj with u ~ N(0, B), the style that
all labels of a client share, v ~ N(0, V), how this client does this label, and e ~ N(0, E), within them.

Parameters in, coordinates and draws out. How a style is fitted is `server/style_fit.py`, and which
points are picked for it `partitioning/`.
"""

import math
from dataclasses import KW_ONLY, dataclass
from typing import Annotated

import numpy as np

from polyurn.counts import check_counts, client_sizes
from polyurn.errors import ParameterError
from polyurn.model.style_coordinates import StyleSpace
from polyurn.typed.arguments import checked, expected_as
from polyurn.typed.arrays import ShapedArrays
from polyurn.typed.declared import Between, Floats, Seed, Shape, check_declared

# Covariances come from eigenvectors: their rounding is larger than one in the last digit.
_ROUNDING = 1e-9
# The mean style is far from the proxy data's if it is half a standard deviation of their points away ...
_FAR_MEAN = 0.5
# ... by more than chance: four standard errors, one false alarm in 16,000.
_STANDARD_ERRORS = 4.0
# Points lie far from the proxy data if three times as many as of the proxy points are beyond the radius.
_FAR_SHARES = 3.0


@dataclass(frozen=True, eq=False)
class StyleErrors(ShapedArrays):
    """Standard errors of a style's numbers, the sampling of clients and noise for privacy in them; that
    of `far_share` is of noise alone.
    """

    mean: Annotated[Floats, Shape("n_directions")]
    shared: Annotated[Floats, Shape("n_directions", "n_directions")]
    by_label: Annotated[Floats, Shape("n_directions", "n_directions")]
    within: Annotated[Floats, Shape("n_directions", "n_directions")]
    far_share: Annotated[float, Between(0, math.inf)] = 0.0

    def __post_init__(self) -> None:
        self._check_arrays()
        check_declared(self)


@checked
@expected_as("a Style", advice="fit one with fit_style, or load one")
@dataclass(frozen=True, eq=False)
class Style(ShapedArrays):
    """The law of clients' styles in a space: z_ilj = μ + u_i + v_il + e_ilj.

    Parameters
    ----------
    space : StyleSpace
    mean : float array of shape (n_directions,)
        μ: the mean style of the clients; that of the proxy data is 0.
    shared : float array of shape (n_directions, n_directions)
        B: the covariance of what all labels of a client share.
    by_label : float array of shape (n_directions, n_directions)
        V: the covariance of what belongs to a client and a label.
    within : float array of shape (n_directions, n_directions)
        E: the covariance of points of one client and label.
    label_shares : float array of shape (n_labels,), optional
        p: the mean label shares of clients; given if label and style go together.
    label_covariance : float array of shape (n_labels, n_labels), optional
        The covariance of clients' label shares.
    label_effect : float array of shape (n_labels, n_directions), optional
        G: u is moved by G'(h - p) for a client of label shares h.
    errors : StyleErrors, optional
    n_clients : int
        Of how many clients it was fitted; 0 if it was not.
    far_share : float
        The share of the clients' points that lie beyond the space's radius; NaN if not known.

    Examples
    --------
    >>> space = StyleSpace([[0.0], [5.0]], [[1.0]], [[[1.0]], [[0.5]]], radius=4.0)
    >>> style = Style(space, [0.0], [[0.3]], [[0.1]], [[0.6]])
    >>> round(style.between, 3)
    0.4
    >>> style.clients([[5, 0], [2, 1]], rng=0).round(2).tolist()
    [[0.07], [-0.07]]
    """

    space: StyleSpace
    mean: Annotated[Floats, Shape("n_directions")]
    shared: Annotated[Floats, Shape("n_directions", "n_directions")]
    by_label: Annotated[Floats, Shape("n_directions", "n_directions")]
    within: Annotated[Floats, Shape("n_directions", "n_directions")]
    _: KW_ONLY
    label_shares: Annotated[Floats, Shape("n_labels")] | None = None
    label_covariance: Annotated[Floats, Shape("n_labels", "n_labels")] | None = None
    label_effect: Annotated[Floats, Shape("n_labels", "n_directions")] | None = None
    errors: StyleErrors | None = None
    n_clients: int = 0
    far_share: float = math.nan

    def __post_init__(self) -> None:
        self._check_arrays(n_directions=self.n_directions, n_labels=self.space.n_labels)
        label_effect = (self.label_shares, self.label_covariance, self.label_effect)
        if len({given is None for given in label_effect}) > 1:
            raise ParameterError(
                "expected label_shares, label_covariance and label_effect, or none of them"
            )
        for name in ("shared", "by_label", "within", "label_covariance"):
            _check_covariance(getattr(self, name), name)
        if self.errors is not None:
            self.errors._check_arrays(n_directions=self.n_directions)
        if self.n_clients < 0 or self.far_share < 0 or self.far_share > 1:
            raise ParameterError(
                "expected n_clients of at least 0 and far_share from 0 to 1, got "
                f"{self.n_clients} and {self.far_share}"
            )

    @property
    def n_directions(self) -> int:
        """The number of directions, m."""
        return self.space.n_directions

    @property
    def eigenvalues(self) -> Floats:
        """Of B, V and E, each from the largest to the smallest, shape (3, n_directions)."""
        listed = (self.shared, self.by_label, self.within)
        return np.array([np.linalg.eigvalsh(one)[::-1] for one in listed])

    @property
    def between(self) -> float:
        """The share of the points' variance that lies between clients, tr(B + V) / tr(B + V + E)."""
        clients = float(np.trace(self.shared + self.by_label))
        total = clients + float(np.trace(self.within))
        return clients / total if total > 0 else 0.0

    @property
    def carried(self) -> Floats:
        """The share of the clients' differences, tr(B + V), in each direction, shape (n_directions,)."""
        each = np.diag(self.shared + self.by_label)
        total = each.sum()
        return np.asarray(each / total if total > 0 else np.zeros_like(each))

    @property
    def by_label_root(self) -> Floats:
        """A matrix R with R R' = V: v = R x for a standard normal x. V may be singular."""
        return _root(self.by_label)

    @property
    def untied(self) -> Floats:
        """The covariance of u given the label shares: B - G' Cov(h) G, negative eigenvalues 0."""
        if self.label_effect is None or self.label_covariance is None:
            return self.shared
        return nearest_covariance(
            self.shared - self.label_effect.T @ self.label_covariance @ self.label_effect
        )

    def clients(self, counts: object, *, rng: Seed = None) -> Floats:
        """Draw the style μ + u_i of each client.

        Parameters
        ----------
        counts : int array or scipy.sparse of shape (n_clients, n_labels)
            The clients' label counts: with label_effect, a client's style depends on its label shares.
        rng : int or numpy.random.Generator

        Returns
        -------
        float array of shape (n_clients, n_directions)
        """
        table = check_counts(counts, n_categories=self.space.n_labels)
        rng = np.random.default_rng(rng)
        drawn = rng.standard_normal((table.shape[0], self.n_directions)) @ _root(self.untied).T
        if self.label_effect is not None and self.label_shares is not None:
            shares = table / np.maximum(client_sizes(table), 1)[:, None]
            drawn += np.asarray(shares @ self.label_effect) - self.label_shares @ self.label_effect
        return np.asarray(self.mean + drawn)

    @property
    def alarm(self) -> str | None:
        """Why the proxy data may not be able to show these clients' style, in one line; None if they
        can.

        The clients' mean style is not the proxy data's if it lies half a standard deviation of the
        proxy points away, and four standard errors. Clients' points are far from the proxy data if
        three times as many of them as of the proxy points are beyond the radius, by more than noise.
        """
        away = float(np.linalg.norm(self.mean))
        error = 0.0 if self.errors is None else float(np.linalg.norm(self.errors.mean))
        if away > max(_FAR_MEAN, _STANDARD_ERRORS * error):
            worst = int(np.argmax(np.abs(self.mean)))
            return (
                f"the clients' mean style is not the proxy data's: it lies {away:.2f} standard "
                f"deviations of the proxy points away, most of it in direction {worst + 1}"
            )
        noise = 0.0 if self.errors is None else _STANDARD_ERRORS * self.errors.far_share
        if self.far_share - noise > _FAR_SHARES * max(self.space.proxy_far_share, 1e-3):
            return (
                f"{self.far_share:.1%} of the clients' points lie far from the proxy data, beyond "
                f"{self.space.radius:.3g}; of the proxy points, {self.space.proxy_far_share:.1%}"
            )
        return None

    def __repr__(self) -> str:
        return (
            f"Style(n_directions={self.n_directions}, between={self.between:.3f}, "
            f"carried={self.carried.round(3).tolist()}, n_clients={self.n_clients})"
        )


def nearest_covariance(matrix: Floats) -> Floats:
    """The matrix, made symmetric, with its negative eigenvalues set to 0.

    >>> nearest_covariance(np.array([[2.0, 0.0], [0.0, -1.0]])).tolist()
    [[2.0, 0.0], [0.0, 0.0]]
    """
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    nearest = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return np.asarray((nearest + nearest.T) / 2)


def _check_covariance(given: Floats | None, what: str) -> None:
    if given is None:
        return
    size = np.abs(given).max(initial=0.0)
    if np.abs(given - given.T).max(initial=0.0) > _ROUNDING * size:
        raise ParameterError(
            f"expected {what} as a covariance matrix, got one that is not symmetric"
        )
    if np.linalg.eigvalsh(given)[0] < -_ROUNDING * len(given) * max(size, 1.0):
        raise ParameterError(
            f"expected {what} as a covariance matrix, got one with a negative eigenvalue"
        )


def _root(covariance: Floats) -> Floats:
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
