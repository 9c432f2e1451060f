"""The pictures of docs/results.md on style: simulated writers along each direction, and the forecast.

    python experiments/style_pictures.py   # a minute; trains nothing

Writers are simulated from the fitted style of the first split of `styled_digits.py`; the forecast is
drawn from the records that are kept.
"""

import sys
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray

import polyurn as pu
import sources

mpl.use("Agg")
import matplotlib.pyplot as plt

sys.path.insert(0, __file__.rsplit("/", 1)[0])
import style_tables as tables
import styled_digits
import styles
from training_tables import COLOURS, FOLDER, PICTURES

N_WRITERS = 600  # of whom the most extreme are shown
N_OF_EACH = 11  # digits of each kind that a writer has
SHOWN = {
    "iid": ("IID", COLOURS["iid"]),
    "oracle": ("label oracle (the paper's)", COLOURS["oracle route"]),
    "style": ("label MDM and style, 4 directions", COLOURS["mdm"]),
    "style 8": ("8 directions", COLOURS["mdm destination"]),
    "true": ("the true writers", COLOURS["true"]),
}


def main() -> None:
    """Draw both pictures."""
    draw_directions()
    draw_forecast()


def draw_directions() -> None:
    """The simulated writers at the ends of each direction, and one in its middle."""
    split = styled_digits.SETTINGS.splits[0]
    there = styled_digits.federation(split)
    style = styles.learned_style(there, styled_digits.SETTINGS.n_directions)
    pool = there.pool
    labels, features = there.data.labels[pool], there.features[pool]
    counts = np.full((N_WRITERS, 10), N_OF_EACH)
    writers = pu.partition(labels, counts, style=style, features=features, rng=0)
    located = style.space.coordinates(features, labels)
    means = np.stack([located[held].mean(axis=0) for held in writers])
    records = sources.mnist_by_writer(root=FOLDER).train
    assert records.features is not None
    pictures = records.features[pool]
    figure, axes = plt.subplots(2, 2, figsize=(9, 5.2), layout="constrained")
    for k, axis in enumerate(axes.flat):
        order = np.argsort(means[:, k])
        chosen = [order[0], order[1], order[N_WRITERS // 2], order[-2], order[-1]]
        rows = [_one_of_each(writers[i], labels, pictures) for i in chosen]
        axis.imshow(np.concatenate(rows), cmap="gray_r", vmin=0, vmax=255)
        axis.set_xticks([])
        axis.set_yticks([14 + 28 * i for i in range(5)], [f"{means[i, k]:+.1f}" for i in chosen])
        axis.set_title(f"direction {k + 1}: {style.carried[k]:.0%} of the differences", fontsize=10)
        axis.tick_params(length=0, labelsize=8)
        axis.set_ylabel("mean of the writer", fontsize=8)
    _save(figure, "style_directions")


def _one_of_each(
    held: NDArray[np.int64], labels: NDArray[np.int64], pictures: NDArray[np.uint8]
) -> NDArray[np.uint8]:
    """A writer's first picture of each digit, side by side."""
    return np.concatenate([pictures[held[labels[held] == digit][0]] for digit in range(10)], axis=1)


def draw_forecast() -> None:
    """How far each population is above natural writers, setting by setting."""
    panels = (("styled_digits", "softmax and perceptron"), ("styled_network", "network"))
    found = [(tables.scores(name), title) for name, title in panels if tables.kept(name)]
    widths = [len(next(iter(scores["natural"].values()))) + 1 for scores, _ in found]
    figure, axes = plt.subplots(
        1, len(found), figsize=(9.5, 3.6), sharey=True, squeeze=False, layout="constrained",
        width_ratios=widths,
    )  # fmt: skip
    for axis, (scores, title) in zip(axes[0], found, strict=True):
        _forecast(axis, scores)
        axis.set_title(title, fontsize=10)
    axes[0][0].set_ylabel("points above natural writers")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    _save(figure, "style_forecast")


def _forecast(axis: Any, scores: tables.Scores) -> None:
    named: Sequence[Any] = ()
    shown = [name for name in SHOWN if name in scores]
    for k, name in enumerate(shown):
        each = tables.differences(scores, name, "natural")
        named = each.settings
        words, colour = SHOWN[name]
        errors = each.values.std(axis=0, ddof=1) / np.sqrt(len(each.values))
        at = np.arange(len(named)) + 0.14 * (k - (len(shown) - 1) / 2)
        axis.errorbar(at, each.by_setting, errors, fmt="o", ms=4, c=colour, label=words)
    axis.axhline(0, color="0.6", lw=1)
    axis.set_xlim(-0.6, len(named) - 0.4)
    said = [f"{model}\n{epochs} ep.\n{rate:g}" for model, epochs, rate in named]
    axis.set_xticks(range(len(named)), said, fontsize=8)
    axis.spines[["top", "right"]].set_visible(False)


def _save(figure: Any, name: str) -> None:
    figure.savefig(PICTURES / f"{name}.png", dpi=100, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
