"""Ten real federations over the same ten labels, beside the cuts that papers use.

    python experiments/zoo_strips.py  # writes ../docs/pictures/partitions.png

60,000 points of ten equally frequent labels, as CIFAR-10 has them. Each panel has forty clients drawn at
random, ordered by their largest label; a bar has the shares of a client. Federations
are laid over the labels by rank and keep their sizes, but for those of more than 1,000 points, which are
scaled to 500. Dirichlet clients and the others have 100 points.
"""

from pathlib import Path

import matplotlib
import numpy as np
from numpy.typing import NDArray

import polyurn as pu
from polyurn.report.charts import paper_colours

matplotlib.use("Agg")
import matplotlib.pyplot as plt

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "partitions.png"
LABELS = np.repeat(np.arange(10), 6_000)
N_SHOWN, SIZE, SEED = 40, 100, 0
FEDERATIONS = (
    "celeba_hair", "flights", "airlines", "rodents", "chat_acts", "census_race", "un_votes",
    "movielens_rating", "lecturers", "digits",
)  # fmt: skip


def main() -> None:
    """Draw the picture."""
    panels = {
        "Dirichlet(0.1)": dirichlet(0.1), "Dirichlet(0.5)": dirichlet(0.5),
        "Dirichlet(1.0)": dirichlet(1.0), "pathological: two labels each": pathological(),
        "shards: two of 200 sorted": shards(),
    }  # fmt: skip
    panels |= {pu.zoo.card(name).title: federation(name) for name in FEDERATIONS}
    colours = paper_colours()
    fills = [colours[f"fill-{i}"] for i in range(9)] + [colours["quiet"]]
    figure, axes = plt.subplots(5, 3, figsize=(8.4, 7.6), layout="constrained")
    for place, (title, counts) in zip(axes.T.flat, panels.items(), strict=True):
        shares = ordered(counts / counts.sum(axis=1, keepdims=True))
        bottom = np.zeros(len(shares))
        for label, fill in enumerate(fills):
            place.bar(range(len(shares)), shares[:, label], 1.0, bottom, color=fill)
            bottom += shares[:, label]
        place.set(xlim=(-0.5, len(shares) - 0.5), ylim=(0, 1), xticks=[], yticks=[])
        place.set_title(title, fontsize=9.5, loc="left")
        place.spines[:].set_visible(False)
    figure.savefig(PICTURE, dpi=150)


def dirichlet(alpha: float) -> NDArray[np.int64]:
    """Clients of Dirichlet(α) per label."""
    rng = np.random.default_rng(SEED)
    return rng.multinomial(SIZE, rng.dirichlet(np.full(10, alpha), size=N_SHOWN))


def pathological() -> NDArray[np.int64]:
    """Clients of two random labels, half and half."""
    rng = np.random.default_rng(SEED)
    counts = np.zeros((N_SHOWN, 10), dtype=np.int64)
    for client in counts:
        client[rng.choice(10, size=2, replace=False)] = SIZE // 2
    return counts


def shards() -> NDArray[np.int64]:
    """Two shards each of the points sorted by label (McMahan et al. 2017): maybe of the same label."""
    rng = np.random.default_rng(SEED)
    mine = rng.permutation(np.repeat(np.arange(10), 20)).reshape(-1, 2)[:N_SHOWN]
    return np.stack([np.bincount(two, minlength=10) for two in mine])


def federation(name: str) -> NDArray[np.int64]:
    """Clients of a federation of the zoo."""
    large = pu.zoo.card(name).sizes[1] > 1_000
    mdm = pu.zoo.like(name, LABELS, mean_size=500 if large else None)
    return mdm.sample(N_SHOWN, rng=SEED)


def ordered(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Clients by their largest label, and by how large it is."""
    top = shares.argmax(axis=1)
    return shares[np.lexsort((-shares.max(axis=1), top))]


if __name__ == "__main__":
    main()
