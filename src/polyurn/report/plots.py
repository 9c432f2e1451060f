"""The page's figures on matplotlib, for papers: `plot_*(…, ax=None) -> Axes`.

Each draws on the axes that it is given, or on new ones, and returns them; titles, sizes and saving are
the caller's. What is drawn is computed by the same functions as for the page.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from polyurn.comparison.results import Comparison
from polyurn.counts import check_counts
from polyurn.errors import MissingDependencyError, ParameterError
from polyurn.model.mdm import MDM
from polyurn.report import model_rows, population_rows, sweep_rows
from polyurn.report.palette import FILLS, TONES, Look, fill_number, population_looks
from polyurn.report.parts import Rows
from polyurn.server.results import Fit, Selection
from polyurn.storage.run_log import RunRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKERS = {
    "circle": "o", "triangle-up": "^", "cross": "P", "square": "s", "diamond": "D",
    "triangle-down": "v",
}  # fmt: skip


def plot_weights(mdm: MDM, *, ax: "Axes | None" = None) -> "Axes":
    """The share of clients that each component stands for.

    Examples
    --------
    >>> from polyurn.model.paper_truths import truth
    >>> len(plot_weights(truth("medium/3")).patches)
    3
    """
    ax = _axes(ax)
    places = np.arange(mdm.n_components)
    ax.barh(places, mdm.weights, color=TONES[1])
    ax.set(xlabel="share of the clients", ylabel="component", yticks=places)
    ax.set_yticklabels([str(k + 1) for k in places])
    ax.invert_yaxis()
    return ax


def plot_profiles(
    mdm: MDM, *, categories: Sequence[str] | None = None, ax: "Axes | None" = None
) -> "Axes":
    """What a client of each component holds, in the mean."""
    ax = _axes(ax)
    rows = model_rows.profile_rows(mdm, _names(categories, mdm.n_categories))
    shown = _values(rows, "category")
    shares = np.array([row["share"] for row in rows]).reshape(mdm.n_components, len(shown))
    image = ax.imshow(shares, aspect="auto", cmap="Blues", vmin=0)
    ax.figure.colorbar(image, ax=ax, label="expected share")
    ax.set(ylabel="component", yticks=np.arange(mdm.n_components))
    ax.set_yticklabels([str(k + 1) for k in range(mdm.n_components)])
    ax.set_xticks(np.arange(len(shown)), shown, rotation=90)
    return ax


def plot_telling(
    mdm: MDM, *, categories: Sequence[str] | None = None, ax: "Axes | None" = None
) -> "Axes":
    """The categories that tell the components apart, the most telling at the top.

    Raises
    ------
    ParameterError
        The components do not differ, or there is only one.
    """
    rows = model_rows.telling_rows(mdm, _names(categories, mdm.n_categories))
    if not rows:
        raise ParameterError("expected components that differ: nothing tells these apart")
    ax = _axes(ax)
    shown = _values(rows, "category")
    for i, component in enumerate(_values(rows, "component")):
        mine = [row for row in rows if row["component"] == component]
        places = [shown.index(row["category"]) for row in mine]
        shares = [row["share"] for row in mine]
        ax.scatter(shares, places, color=TONES[i + 1], label=f"component {component}", zorder=2)
    ax.set(xlabel="expected share of a client's points")
    ax.set_yticks(np.arange(len(shown)), shown)
    ax.invert_yaxis()
    ax.legend()
    return ax


def plot_component_sizes(mdm: MDM, *, ax: "Axes | None" = None) -> "Axes":
    """The share of each component's clients that hold at most so many points."""
    ax = _axes(ax)
    rows = model_rows.size_rows(mdm)
    for i, component in enumerate(_values(rows, "component")):
        mine = [row for row in rows if row["component"] == component]
        _steps(ax, mine, color=TONES[i + 1], label=f"component {component}")
    return _size_axes(ax)


def plot_candidates(choice: Selection, *, ax: "Axes | None" = None) -> "Axes":
    """The held-out log-likelihood of each number of components, with 95 % intervals."""
    ax = _axes(ax)
    rows = model_rows.candidate_rows(choice)
    for row in rows:
        reach = row["high"] - row["log_likelihood"]
        ax.errorbar(
            row["n_components"],
            row["log_likelihood"],
            yerr=reach,
            color=TONES[2 if row["chosen"] else 1],
            marker="D" if row["chosen"] else "o",
            label="chosen" if row["chosen"] else None,
        )
    ax.set(xlabel="components, K", ylabel="held-out log-likelihood per client")
    ax.set_xticks([row["n_components"] for row in rows])
    ax.legend()
    return ax


def plot_paths(done: Fit | Selection, *, ax: "Axes | None" = None) -> "Axes":
    """The likelihood of every start, round by round; the one that won is heavy."""
    ax = _axes(ax)
    rows = model_rows.path_rows(done.paths)
    for start in _values(rows, "start"):
        mine = [row for row in rows if row["start"] == start]
        won = mine[0]["winner"]
        ax.plot(
            [row["round"] for row in mine],
            [row["log_likelihood"] for row in mine],
            color=TONES[1] if won else "0.7",
            linewidth=2.0 if won else 0.8,
            zorder=2 if won else 1,
        )
    ax.set(xlabel="round", ylabel="log-likelihood per client")
    return ax


def plot_plane(
    clients: Mapping[str, object],
    *,
    rng: int | np.random.Generator | None = 0,
    ax: "Axes | None" = None,
) -> "Axes":
    """The clients of several populations in one plane, by t-SNE of their normalised histograms.

    Parameters
    ----------
    clients : mapping of name to counts of shape (n_clients, n_categories)
    rng : int or numpy.random.Generator
    ax : matplotlib Axes, optional
    """
    ax = _axes(ax)
    places = population_rows.joint_plane(_dense(clients), rng=rng)
    looks = population_looks(places)
    for name, points in places.items():
        style: dict[str, Any] = {
            "c": TONES[looks[name].tone],
            "marker": _MARKERS[looks[name].shape],
        }
        ax.scatter(points[:, 0], points[:, 1], s=8, alpha=0.6, lw=0, label=name, **style)
    ax.set(xticks=[], yticks=[])
    ax.legend()
    return ax


def plot_strips(
    counts: object,
    *,
    categories: Sequence[str] | None = None,
    rng: int | np.random.Generator | None = 0,
    ax: "Axes | None" = None,
) -> "Axes":
    """What some clients of one population hold, one column each."""
    ax = _axes(ax)
    table = _dense({"": counts})
    names = _names(categories, table[""].shape[1])
    rows = population_rows.strip_rows(table, names, rng=np.random.default_rng(rng))
    shown = population_rows.strip_categories(rows)
    reached = np.zeros(max(row["client"] for row in rows))
    labels = {category: category for category in shown}
    for row in rows:
        i, category = row["client"] - 1, row["category"]
        ax.bar(
            i,
            row["share"],
            bottom=reached[i],
            width=0.92,
            color=FILLS[fill_number(shown.index(category), shown)],
            edgecolor="white",
            linewidth=0.2,
            label=labels.pop(category, None),
        )
        reached[i] += row["share"]
    ax.set(xticks=[], ylabel="share of a client's points", ylim=(0, 1))
    return ax


def plot_population_sizes(clients: Mapping[str, object], *, ax: "Axes | None" = None) -> "Axes":
    """The share of each population's clients that hold at most so many points."""
    ax = _axes(ax)
    rows = population_rows.population_size_rows(_dense(clients))
    for name, look in population_looks(_values(rows, "population")).items():
        mine = [row for row in rows if row["population"] == name]
        _steps(ax, mine, color=TONES[look.tone], linestyle=_line(look), label=name)
    return _size_axes(ax)


def plot_distances(comparison: Comparison, *, ax: "Axes | None" = None) -> "Axes":
    """How far each population is from the true clients, in units of the noise floor."""
    ax = _axes(ax)
    floors = comparison.floors
    measures = (
        ("energy", "energy_ratio", floors.energy),
        ("sliced Wasserstein", "sliced_wasserstein_ratio", floors.sliced_wasserstein),
        ("sizes", "size_ratio", floors.sizes),
    )
    for y, (_, _, floor) in enumerate(measures):
        ax.barh(y, floor.high - floor.low, left=floor.low, height=0.6, color="0.88", zorder=1)
    for name, look in population_looks(row.name for row in comparison.rows).items():
        ratios = [getattr(comparison[name], ratio) for _, ratio, _ in measures]
        style: dict[str, Any] = {"color": TONES[look.tone], "marker": _MARKERS[look.shape]}
        ax.scatter(ratios, np.arange(len(measures)), label=name, zorder=2, **style)
    ax.axvline(1.0, color="0.5", linewidth=1)
    ax.set(xlabel="distance to true clients / noise floor", xscale="log")
    ax.set_yticks(np.arange(len(measures)), [name for name, _, _ in measures])
    ax.legend()
    return ax


def plot_sweep(
    runs: Sequence[RunRecord], setting: str, *, metric: str = "accuracy", ax: "Axes | None" = None
) -> "Axes":
    """The metric against one hyper-parameter on each population, the true clients' dotted.

    Parameters
    ----------
    runs : sequence of RunRecord
    setting : str
        The hyper-parameter; for each of its values, the best over the others is shown.
    metric : str
    ax : matplotlib Axes, optional
    """
    ax = _axes(ax)
    rows = sweep_rows.profile_rows(runs, setting, metric=metric)
    for name, look in population_looks(_values(rows, "population")).items():
        mine = [row for row in rows if row["population"] == name]
        ax.errorbar(
            [row["value"] for row in mine],
            [row["metric"] for row in mine],
            yerr=[row["high"] - row["metric"] for row in mine],
            color=TONES[look.tone],
            linestyle=_line(look),
            marker=_MARKERS[look.shape],
            label=name,
        )
    ax.set(xlabel=setting.replace("_", " "), ylabel=metric)
    ax.legend()
    return ax


def plot_agreement(
    runs: Sequence[RunRecord],
    *,
    true: str = "true",
    metric: str = "accuracy",
    ax: "Axes | None" = None,
) -> "Axes":
    """Each setting's metric on simulated clients against the same on the true ones."""
    rows = sweep_rows.agreement_rows(runs, true=true, metric=metric)
    if not rows:
        raise ParameterError(f"expected runs on {true!r} and another population")
    ax = _axes(ax)
    for name, look in population_looks(_values(rows, "population")).items():
        mine = [row for row in rows if row["population"] == name]
        style: dict[str, Any] = {"color": TONES[look.tone], "marker": _MARKERS[look.shape]}
        ax.scatter([r["simulated"] for r in mine], [r["true"] for r in mine], label=name, **style)
    ends = [v for row in rows for v in (row["simulated"], row["true"])]
    ax.plot([min(ends), max(ends)], [min(ends), max(ends)], color="0.5", linestyle="--")
    ax.set(xlabel=f"{metric} on simulated clients", ylabel=f"{metric} on true clients")
    ax.legend()
    return ax


def _axes(ax: "Axes | None") -> "Axes":
    if ax is not None:
        return ax
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError("matplotlib", "report", "plots") from error
    return Figure(layout="constrained").add_subplot()


def _steps(ax: "Axes", rows: Rows, **style: Any) -> None:
    sizes, shares = [row["size"] for row in rows], [row["share"] for row in rows]
    ax.step(sizes, shares, where="post", **style)


def _size_axes(ax: "Axes") -> "Axes":
    ax.set(xlabel="points of a client", ylabel="clients with at most so many", xscale="log")
    ax.legend()
    return ax


def _line(look: Look) -> Any:
    return (0, look.dash) if look.dash else "-"


def _values(rows: Rows, field: str) -> list[Any]:
    return [*dict.fromkeys(row[field] for row in rows)]


def _names(categories: Sequence[str] | None, n_categories: int) -> Sequence[str]:
    return [str(j) for j in range(n_categories)] if categories is None else categories


def _dense(clients: Mapping[str, object]) -> dict[str, Any]:
    tables = {name: check_counts(counts) for name, counts in clients.items()}
    return {n: t if isinstance(t, np.ndarray) else t.toarray() for n, t in tables.items()}
