"""How far off are B, V and E with noise of epsilon 1, and where should a client's moments be cut?

    python benchmarks/private_styles.py

Prints, for each seed and cut, the norms of the differences to the true matrices, as shares of the norms
of these, and the same of the standard errors. 10,000 clients of 20 to 80 points, ten labels, four
directions, delta 1e-6. The noise has a seed, and is none that would protect anybody.
"""

import numpy as np

import polyurn as pu

N_CLIENTS, N_LABELS, N_DIRECTIONS = 10_000, 10, 4
RADIUS = 3.644  # 99 % of a standard normal pool of four directions
CUTS = (None, 2.0, 3.0, 4.0, 6.0, RADIUS**2)  # None: without noise and without a cut


def main() -> None:
    """Print the table."""
    print("| seed | cut | B | V | E | errors: B | V | E |")
    print("|---|---|---|---|---|---|---|---|")
    one = np.eye(N_DIRECTIONS)
    centres, whitening = np.zeros((N_LABELS, N_DIRECTIONS)), np.stack([one] * N_LABELS)
    space = pu.StyleSpace(centres, one, whitening, RADIUS, 0.01)
    for seed in range(3):
        records, true = world(np.random.default_rng(seed))
        clients = pu.LocalAggregator(records)
        for cut in CUTS:
            noise = seeded(np.random.default_rng(seed))
            asked = {} if cut is None else {"epsilon": 1.0, "delta": 1e-6, "clip": cut}
            style = pu.fit_style(clients, space, noise=noise, **asked)
            found = (style.shared, style.by_label, style.within)
            off = [size(f - t) / size(t) for f, t in zip(found, true, strict=True)]
            of = (style.errors.shared, style.errors.by_label, style.errors.within)
            said = [size(e) / size(t) for e, t in zip(of, true, strict=True)]
            named = "none" if cut is None else f"{cut:.3g}"
            print("|", seed, "|", named, "|", " | ".join(f"{x:.1%}" for x in off + said), "|")


def world(rng: np.random.Generator) -> tuple[pu.Records, tuple[np.ndarray, ...]]:
    """Clients of uneven labels, with eigenvalues like those of digits by writer."""
    m, zero = N_DIRECTIONS, np.zeros(N_DIRECTIONS)
    shared, by_label = turned(rng, 0.45, 0.1), turned(rng, 0.35, 0.2)
    within = np.eye(m) - shared - by_label
    sizes = rng.integers(20, 81, size=N_CLIENTS)
    owner = np.repeat(np.arange(N_CLIENTS), sizes)
    shares = rng.dirichlet(np.ones(N_LABELS), size=N_CLIENTS)
    labels = np.concatenate(
        [rng.choice(N_LABELS, n, p=p) for n, p in zip(sizes, shares, strict=True)]
    )
    u = rng.multivariate_normal(zero, shared, size=N_CLIENTS)[owner]
    v = rng.multivariate_normal(zero, by_label, size=(N_CLIENTS, N_LABELS))[owner, labels]
    z = u + v + rng.multivariate_normal(zero, within, size=len(owner))
    return pu.Records(z, labels, owner, n_labels=N_LABELS), (shared, by_label, within)


def turned(rng: np.random.Generator, high: float, low: float) -> np.ndarray:
    """A covariance with eigenvalues from `high` to `low`, in random directions."""
    vectors = np.linalg.qr(rng.normal(size=(N_DIRECTIONS, N_DIRECTIONS)))[0]
    return (vectors * np.linspace(high, low, N_DIRECTIONS)) @ vectors.T


def seeded(rng: np.random.Generator):
    """Noise from a seed."""
    return lambda n, scale: np.rint(rng.normal(scale=scale, size=n)).astype(np.int64)


def size(matrix: np.ndarray) -> float:
    """The Frobenius norm."""
    return float(np.linalg.norm(matrix))


if __name__ == "__main__":
    main()
