"""Which alpha is realistic? How different the clients of real federations are, in a few numbers.

    python experiments/which_alpha.py  # renews the figure, and the tables of docs/which-alpha.md

Everything is from the cards of `polyurn.zoo`, which `python zoo/build.py` makes of all clients of each
table, and from its models, for what the usual cuts look like. Nothing else is measured here.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import polyurn as pu

DOCS = Path(__file__).parents[1] / "docs"
PAGE, PICTURE = DOCS / "which-alpha.md", DOCS / "pictures" / "real-alphas.png"
FIELD = (0.1, 0.5, 1.0)  # the alphas that papers use
N_CLIENTS, SEED = 2_000, 0
MARKS = re.compile(r"(<!-- (\w+) -->\n)(.*?)(<!-- end of \2 -->)", re.DOTALL)


def main() -> None:
    """Draw the figure, print the tables, and put those that the page has into it."""
    found = cards()
    parts = {"summary": summary(found), "alphas": alpha_table(found),
             "cuts": cut_table(found), "mixtures": mixture_table(found)}  # fmt: skip
    texts = {name: "\n".join(lines) for name, lines in parts.items()}
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(
        MARKS.sub(lambda mark: f"{mark[1]}\n{texts[mark[2]]}\n\n{mark[4]}", text), encoding="utf-8"
    )
    draw(found)
    print("\n\n".join(texts.values()))


def cards() -> list[Any]:
    """All cards, by their best α."""
    found = [pu.zoo.card(name) for name in pu.zoo.names()]
    return sorted(found, key=lambda card: (alpha(card).value, card.profile.dispersion.value * -1))


def alpha(card: Any) -> Any:
    """The best single α and its interval."""
    return card.profile.heterogeneity.alpha


def needs_kinds(card: Any) -> bool:
    """Whether one Dirichlet-multinomial is further from held-out clients than true ones are."""
    one = card.likeness["dirichlet"]
    return bool(one.energy_ratio > one.energy_null[1])


def summary(found: list[Any]) -> Iterator[str]:
    """What the tables say, counted."""
    finite = [card for card in found if np.isfinite(alpha(card).value)]
    inside = [card for card in found if FIELD[0] <= alpha(card).value <= FIELD[-1]]
    below = [card for card in found if alpha(card).value < FIELD[0]]
    words = [card.profile.in_words for card in found]
    even = [card.title for card in found if card.profile.in_words == "more even than chance"]
    kinds = [card for card in found if needs_kinds(card)]
    mend = [card for card in kinds
            if card.likeness["mdm"].energy_ratio <= card.likeness["mdm"].energy_null[1]]  # fmt: skip
    ratio = [card.likeness["dirichlet"].energy_ratio / card.likeness["mdm"].energy_ratio
             for card in kinds]  # fmt: skip
    n, quartiles = (
        len(found),
        np.quantile([alpha(card).value for card in finite], [0.25, 0.5, 0.75]),
    )
    yield (
        f"- **There is no realistic alpha.** The {n} go from {short(alpha(found[0]).value)} to "
        f"{short(alpha(found[-1]).value)}; of those with a finite one, half lie between "
        f"{short(quartiles[0])} and {short(quartiles[2])}, with the median at {short(quartiles[1])}."
    )
    yield (
        f"- **0.1 to 1.0 is the extreme end**: {len(inside)} of {n} are inside, {len(below)} below, and "
        f"{n - len(inside) - len(below)} above."
    )
    yield (
        f"- **Less than chance.** Clients of {len(even)} of {n} vary less than a multinomial does "
        f"({'; '.join(even) or 'none'}), which no α can say; in {words.count('as chance')} they vary "
        f"as one."
    )
    yield (
        f"- **Kinds.** One Dirichlet, even with an α for every category, can be told from held-out "
        f"clients in {len(kinds)} of {n}: its energy ratio is outside the range of true clients. The "
        f"model of the zoo is inside in {len(mend)} of these, and {np.median(ratio):.1f} times nearer "
        f"in the median."
    )


def alpha_table(found: list[Any]) -> Iterator[str]:
    """How different clients are."""
    yield "| clients | C | α (95 % interval) | ρ | dispersion |"
    yield "|---|---|---|---|---|"
    for card in found:
        value = alpha(card)
        cells = [
            card.title, str(card.n_categories),
            f"{short(value.value)} ({short(value.low)} to {short(value.high)})",
            f"{card.profile.correlation.value:.3f}", short(card.profile.dispersion.value),
        ]  # fmt: skip
        yield f"| {' | '.join(cells)} |"


def cut_table(found: list[Any]) -> Iterator[str]:
    """The effective number of categories of true clients, and of clients cut in the usual ways."""
    yield "| clients | true | " + " | ".join(f"Dirichlet({a})" for a in FIELD) + " |"
    yield "|---|---|" + "---|" * len(FIELD)
    for card in found:
        n = np.maximum(pu.zoo.load(card.name).sample(N_CLIENTS, rng=SEED).sum(axis=1), 1)
        rng = np.random.default_rng(SEED)
        values = [card.profile.heterogeneity.effective_categories.value]
        for a in FIELD:
            shares = rng.dirichlet(np.full(card.n_categories, a), size=N_CLIENTS)
            values.append(effective(rng.multinomial(n, shares)))
        yield f"| {card.title} | {' | '.join(f'{value:.1f}' for value in values)} |"


def effective(counts: np.ndarray) -> float:
    """The mean effective number of categories of a client, exp(entropy)."""
    shares = counts / counts.sum(axis=1, keepdims=True)
    logs = np.log(shares, where=shares > 0, out=np.zeros_like(shares))
    return float(np.exp(-(shares * logs).sum(axis=1)).mean())


def mixture_table(found: list[Any]) -> Iterator[str]:
    """How near IID clients, one Dirichlet and the zoo's model are to held-out clients."""
    heads = "IID | one Dirichlet | mixture | true clients | AUC, one Dirichlet | AUC, mixture | K"
    yield f"| clients | {heads} |"
    yield "|---|---|---|---|---|---|---|---|"
    for card in found:
        one, mdm = card.likeness["dirichlet"], card.likeness["mdm"]
        low, high = mdm.energy_null
        cells = [
            card.title, f"{card.likeness['iid'].energy_ratio:.2f}",
            f"{one.energy_ratio:.2f}", f"{mdm.energy_ratio:.2f}",
            f"{low:.2f} to {high:.2f}", f"{one.auc.value:.2f}",
            f"{mdm.auc.value:.2f}" + ("" if card.passes else " \\*"), str(card.n_components),
        ]  # fmt: skip
        yield f"| {' | '.join(cells)} |"


def short(value: float) -> str:
    """An alpha as tables show it: two digits, or whole from 100 on."""
    number = float(value)
    return f"{number:,.0f}" if 100 <= number < np.inf else f"{number:.2g}".replace("inf", "∞")


def draw(found: list[Any]) -> None:
    """Every federation's best α with its interval, against those that papers use."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from polyurn.report.charts import paper_colours

    colours = paper_colours()
    most = 1_000.0  # what is above, infinity included, stands at the edge
    figure, axes = plt.subplots(figsize=(7.2, 0.235 * len(found) + 1.3), layout="constrained")
    axes.axvspan(FIELD[0], FIELD[-1], color=colours["tone-2"], alpha=0.18, lw=0)
    for i, card in enumerate(reversed(found)):
        value = alpha(card)
        kinds = needs_kinds(card)
        even = card.profile.in_words == "more even than chance"
        tone = colours["tone-3"] if even else colours["tone-1"]
        low, at, high = (min(x, most) for x in (value.low, value.value, value.high))
        axes.plot([low, high], [i, i], color=tone, lw=2, solid_capstyle="round")
        axes.plot(at, i, "D" if even else "o", color=tone, ms=6.5, mew=1.6,
                  mfc=tone if kinds else "white", clip_on=False)  # fmt: skip
        if value.value > most:
            axes.text(most * 1.25, i, "∞" if np.isinf(value.value) else short(value.value),
                      va="center", fontsize=9, color=tone)  # fmt: skip
    axes.set(xscale="log", xlim=(0.015, most), ylim=(-0.8, len(found) - 0.2))
    axes.set_xlabel("best single α of Dirichlet(α), with 95 % interval")
    axes.set_yticks(range(len(found)), [card.title for card in reversed(found)], fontsize=8.5)
    axes.set_xticks([0.1, 0.5, 1, 10, 100, 1000], ["0.1", "0.5", "1", "10", "100", "1,000"])
    axes.minorticks_off()
    axes.text(np.sqrt(FIELD[0] * FIELD[-1]), len(found) - 0.1, "what papers use", ha="center",
              va="bottom", fontsize=9, color=colours["tone-2"])  # fmt: skip
    marks = [("o", "tone-1", True, "needs kinds of client"),
             ("o", "tone-1", False, "one Dirichlet will do"),
             ("D", "tone-3", True, "more even than chance")]  # fmt: skip
    handles = [plt.Line2D([], [], marker=m, color=colours[c], mfc=colours[c] if full else "white",
                          ls="", mew=1.6, label=label) for m, c, full, label in marks]  # fmt: skip
    axes.legend(handles=handles, loc="upper right", fontsize=8.5, frameon=False)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", lw=0.5, color=colours["line"])
    axes.set_axisbelow(True)
    figure.savefig(PICTURE, dpi=160)


if __name__ == "__main__":
    main()
