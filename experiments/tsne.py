"""True, IID and MDM clients in one plane: the paper's t-SNE pictures of the census clients.

    python experiments/tsne.py          # resumes; writes results/tsne.jsonl and draws from it
    python experiments/tsne.py --draw   # draws what is kept, computes nothing

For each K the normalised histograms of as many true (held-out), IID and simulated clients are put into
one embedding. The pictures, docs/pictures/tsne_*.png, are for the eye; `populations.py` has the numbers.
Needs the extra `experiments`.
"""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import polyurn as pu
from polyurn.counts import client_sizes

sys.path.insert(0, __file__.rsplit("/", 1)[0])
from populations import FEDERATIONS, read_counts
from records import run_all

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"


@dataclass(frozen=True)
class Settings:
    """The paper's K; everything else is ours."""

    federations: tuple[str, ...] = ("race", "income")
    n_components: tuple[int, ...] = (1, 3, 5, 7)
    n_clients: int = 300
    perplexity: float = 30.0
    seed: int = 0


SETTINGS = Settings()
COLOURS = {"true": "#222222", "iid": "#d95f02", "mdm": "#1b9e77"}


def run(federation: str) -> dict[str, Any]:
    """The fits of every K in the same rounds, and an embedding for each."""
    seed, n = SETTINGS.seed, SETTINGS.n_clients
    counts = read_counts(federation)
    split = pu.split_clients(counts, held_out=n / counts.shape[0], rng=[seed, 1])
    choice = pu.fit(
        pu.LocalAggregator(split.fitted, rng=[seed, 2]),
        n_components=SETTINGS.n_components,
        n_categories=FEDERATIONS[federation].n_categories,
        max_size=int(client_sizes(counts).max()),
        rng=[seed, 3],
    )
    rng = np.random.default_rng([seed, 4])
    fixed = {"true": split.held_out.toarray(), "iid": pu.IID.like(split.fitted).sample(n, rng=rng)}
    return {
        "places": {
            str(candidate.n_components): _embedded(
                {**fixed, "mdm": candidate.mdm.sample(n, rng=rng)}
            )
            for candidate in choice.candidates
        }
    }


def _embedded(clients: dict[str, NDArray[np.int64]]) -> dict[str, list[list[float]]]:
    """Places in one plane for all of them, to a tenth."""
    from sklearn.manifold import TSNE

    together = np.concatenate([*clients.values()])
    shares = together / together.sum(axis=1, keepdims=True)
    embedding = TSNE(perplexity=SETTINGS.perplexity, init="pca", random_state=SETTINGS.seed)
    places = embedding.fit_transform(shares).astype(np.float64).round(1)
    ends = np.cumsum([len(counts) for counts in clients.values()])[:-1]
    return {name: part.tolist() for name, part in zip(clients, np.split(places, ends), strict=True)}


def draw(record: dict[str, Any]) -> Path:
    """A panel for each K."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    federation, panels = record["settings"]["federation"], record["places"]
    figure, axes = plt.subplots(1, len(panels), figsize=(3.2 * len(panels), 3.4), squeeze=False)
    for axis, (k, kinds) in zip(axes[0], panels.items(), strict=True):
        for kind, places in kinds.items():
            axis.scatter(*np.transpose(places), s=4, c=COLOURS[kind], label=kind, alpha=0.6, lw=0)
        axis.set_title(f"K = {k}")
        axis.set_xticks([])
        axis.set_yticks([])
    figure.suptitle(f"{federation}: {SETTINGS.n_clients} clients of each kind")
    figure.legend(
        *axes[0][0].get_legend_handles_labels(), loc="lower center", ncols=3, markerscale=3
    )
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    PICTURES.mkdir(exist_ok=True)
    path = PICTURES / f"tsne_{federation}.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


def _never(federation: str) -> dict[str, Any]:
    raise SystemExit(f"no record of {federation}: run without --draw first")


def main() -> None:
    """Run what is missing, then draw from the records."""
    parser = argparse.ArgumentParser(description="t-SNE of true, IID and MDM clients.")
    parser.add_argument("--draw", action="store_true", help="only draw what is kept")
    only_draw = parser.parse_args().draw
    grid = [{"federation": name} for name in SETTINGS.federations]
    for record in run_all("tsne", grid, _never if only_draw else run):
        print(f"wrote {draw(record).name}")


if __name__ == "__main__":
    main()
