"""What a codebook carries of writers' styles, and whether labels stay right.

    python experiments/codebook_digits.py    # resumes; writes results/codebook_digits.jsonl and a table

Half of MNIST's writers are the server's pool, the others the clients. Each population has two numbers:
how much clients' features differ given their labels (n |mean residual|² / tr Cov, 1 without styles), and
how much their labels do (mean chi-square over its degrees of freedom, 1 for a multinomial). Needs the
pictures: see sources.mnist_by_writer.
"""

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import sources
from numpy.typing import NDArray

import polyurn as pu

sys.path.insert(0, __file__.rsplit("/", 1)[0])
import features
from records import run_all


@dataclass(frozen=True)
class Settings:
    """Those of our first trials: nothing was tuned."""

    pooled: int = 2  # pixels a side that become one
    n_features: int = 40  # principal components of the pool's residuals
    n_styles: int = 16
    n_components: int = 16
    seeds: tuple[int, ...] = (0, 1, 2)


SETTINGS = Settings()
NAMES = (
    "true", "the pool's own writers", "label oracle", "mixture over codes",
    "mixture over codes, given labels", "code oracle",
)  # fmt: skip


@dataclass(frozen=True)
class Side:
    """The points of the pool, or of the clients, and whose they are."""

    points: NDArray[Any]
    labels: NDArray[np.int64]
    owners: NDArray[np.int64]


def run(seed: int) -> dict[str, Any]:
    """Both numbers of every population, on one split of the writers."""
    pool, theirs = halves(seed)
    n_labels = int(pool.labels.max()) + 1
    means = np.stack([pool.points[pool.labels == label].mean(axis=0) for label in range(n_labels)])
    residuals = pool.points - means[pool.labels]
    basis = np.linalg.eigh(np.cov(residuals.T))[1][:, -SETTINGS.n_features :]
    book = pu.codebook(pool.points @ basis, pool.labels, SETTINGS.n_styles, rng=seed)
    codes, pool_codes = (book.encode(s.points @ basis, s.labels) for s in (theirs, pool))
    counts = pu.histograms(theirs.owners, codes, categories=book.n_categories).counts
    by_label = pu.histograms(theirs.owners, theirs.labels, categories=n_labels).counts
    mdm = pu.fit(
        pu.LocalAggregator(counts),
        n_components=SETTINGS.n_components,
        n_categories=book.n_categories,
        max_size=int(counts.sum(axis=1).max()),
        rng=seed,
    ).mdm
    n, given = counts.shape[0], book.given_labels(mdm, pu.Oracle(by_label), codes=pool_codes)
    simulated = {
        "label oracle": pu.partition(pool.labels, by_label, rng=seed),
        "mixture over codes": pu.partition(
            pool_codes, mdm, n_clients=n, shortfall="resample", rng=seed
        ),
        "mixture over codes, given labels": pu.partition(pool_codes, given, n_clients=n, rng=seed),
        "code oracle": pu.partition(pool_codes, pu.in_stock(counts, pool_codes), rng=seed),
    }
    parts = {"the pool's own writers": pu.Partition.by_owner(pool.owners)} | simulated
    scale = np.trace(np.cov((residuals @ basis).T))

    def both(side: Side, clients: pu.Partition) -> list[float]:
        rest = (side.points - means[side.labels]) @ basis
        values = dispersion(rest, clients, scale), label_index(side.labels, clients)
        return [round(value, 3) for value in values]

    return {
        "other": [float(book.is_other[c].mean().round(4)) for c in (codes, pool_codes)],
        "true": both(theirs, pu.Partition.by_owner(theirs.owners)),
        **{name: both(pool, clients) for name, clients in parts.items()},
    }


def halves(seed: int) -> tuple[Side, Side]:
    """The pool and the clients: no writer is in both."""
    records = sources.mnist_by_writer().records("train")
    assert records.clients is not None
    assert records.features is not None
    small = features.pooled(records.features, SETTINGS.pooled).reshape(records.n_records, -1)
    writers = np.random.default_rng(seed).permutation(np.unique(records.clients))
    mine = np.isin(records.clients, writers[: len(writers) // 2])
    pool, theirs = (Side(small[m], records.labels[m], records.clients[m]) for m in (mine, ~mine))
    return pool, theirs


def dispersion(residuals: NDArray[Any], clients: pu.Partition, scale: float) -> float:
    """The mean of n |mean residual|² over the trace of the pool's covariance."""
    centred = residuals - residuals.mean(axis=0)
    sums = [len(mine) * (centred[mine].mean(axis=0) ** 2).sum() for mine in clients]
    return float(np.mean(sums) / scale)


def label_index(labels: NDArray[np.int64], clients: pu.Partition) -> float:
    """The mean chi-square of clients' labels against those of all points, over L - 1."""
    shares = np.bincount(labels) / len(labels)
    counts = np.stack([np.bincount(labels[mine], minlength=len(shares)) for mine in clients])
    expected = counts.sum(axis=1, keepdims=True) * shares
    return float(((counts - expected) ** 2 / expected).sum(axis=1).mean() / (len(shares) - 1))


def main() -> None:
    """Run what is missing, then print the table."""
    records = list(run_all("codebook_digits", [{"seed": s} for s in SETTINGS.seeds], run))
    print("| clients | dispersion | label index |")
    print("|---|---|---|")
    for name in NAMES:
        rows = np.array([record[name] for record in records])
        print(f"| {name} | {' | '.join(_range(column) for column in rows.T)} |")
    theirs, pools = np.array([record["other"] for record in records]).T
    print(
        f"\nOther: {_range(100 * theirs)} % of clients' points, {_range(100 * pools)} % of pools'."
    )


def _range(values: NDArray[np.float64]) -> str:
    return f"{values.mean():.2f} ({values.min():.2f} to {values.max():.2f})"


if __name__ == "__main__":
    main()
