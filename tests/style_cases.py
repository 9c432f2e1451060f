"""Clients whose styles have a known law, for the tests of styles."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from polyurn import Records, Style, StyleSpace


def whole_space(n_directions=4, n_labels=10, radius=None):
    """A space that takes features as they are; 99 % of a standard normal pool are within its radius."""
    m = n_directions
    radius = float(np.sqrt(chi2.ppf(0.99, m))) if radius is None else radius
    whitening = np.stack([np.eye(m)] * n_labels)
    return StyleSpace(np.zeros((n_labels, m)), np.eye(m), whitening, radius, 0.01)


def centres(style, counts, *, rng):
    """Where the points of each client and label are centred, drawn: t_il = μ + u_i + v_il."""
    rng = np.random.default_rng(rng)
    clients = style.clients(counts, rng=rng)
    shape = (len(clients), style.space.n_labels, style.n_directions)
    return clients[:, None] + rng.standard_normal(shape) @ style.by_label_root.T


@dataclass(frozen=True)
class World:
    """Clients' records, and the covariances that they were drawn with."""

    records: Records
    shared: np.ndarray
    by_label: np.ndarray
    within: np.ndarray

    def off(self, style):
        """How far B, V and E are off, as shares of their norms."""
        pairs = (
            (style.shared, self.shared),
            (style.by_label, self.by_label),
            (style.within, self.within),
        )
        return [float(np.linalg.norm(a - b) / np.linalg.norm(b)) for a, b in pairs]


def drawn_world(n_clients, *, sizes=(50, 51), n_directions=4, n_labels=10, mean=0.0, seed=0):
    """Clients of uneven labels, with eigenvalues like those of digits by writer."""
    rng, m = np.random.default_rng(seed), n_directions
    shared, by_label = _turned(rng, m, 0.45, 0.1), _turned(rng, m, 0.35, 0.2)
    within = np.eye(m) - shared - by_label
    points = rng.integers(*sizes, size=n_clients)
    owner = np.repeat(np.arange(n_clients), points)
    shares = rng.dirichlet(np.ones(n_labels), size=n_clients)
    labels = np.concatenate(
        [rng.choice(n_labels, n, p=p) for n, p in zip(points, shares, strict=True)]
    )
    zero = np.zeros(m)
    u = rng.multivariate_normal(zero, shared, size=n_clients)[owner]
    v = rng.multivariate_normal(zero, by_label, size=(n_clients, n_labels))[owner, labels]
    z = mean + u + v + rng.multivariate_normal(zero, within, size=len(owner))
    return World(Records(z, labels, owner, n_labels=n_labels), shared, by_label, within)


def _turned(rng, m, high, low):
    vectors = np.linalg.qr(rng.normal(size=(m, m)))[0]
    return (vectors * np.linspace(high, low, m)) @ vectors.T


def plain_style(n_labels, n_directions=2):
    """A style that differs most in the first direction, in features as they are."""
    shared = np.diag(np.linspace(0.6, 0.2, n_directions))
    by_label = 0.1 * np.eye(n_directions)
    within = np.eye(n_directions) - shared - by_label
    space = whole_space(n_directions, n_labels, radius=9.0)
    return Style(space, np.zeros(n_directions), shared, by_label, within)


def style_rest(features, parts):
    """n |mean|² / tr Cov of the clients, on average: 1 if they do not differ in style."""
    centred = features - features.mean(axis=0)
    spread = centred.var(axis=0).sum()
    return np.mean([len(p) * np.square(centred[p].mean(axis=0)).sum() / spread for p in parts])
