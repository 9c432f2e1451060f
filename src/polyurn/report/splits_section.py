"""A model's splits on the page: the tree, and what each split does against chance and the beta-binomial.

Rows first, which are numbers only, then the figures that are drawn of them.
"""

import json
from collections.abc import Sequence

import altair as alt
import numpy as np

from polyurn.model.mdm import MDM
from polyurn.model.split_findings import EVENNESS, SplitLaw, evenness, findings, split_laws
from polyurn.model.trees import Tree
from polyurn.report.charts import INK, LINE, Rows, chart, keyed, names_of, spec_of, tooltip
from polyurn.report.material import Material
from polyurn.report.parts import Column, Figure, Panel, Section, Table
from polyurn.wording import counted

_MOST_TREES, _MOST_LAWS, _MOST_SHOWN = 4, 12, 80
_NOTHING = 1e-4  # of the largest probability: not drawn
_TONES = (3, 0, 2)
_KINDS = ("law", "beta-binomial")


def splits_section(material: Material) -> Section | None:
    """The tree and the laws, if the model has splits."""
    mdm, names = material.mdm, material.categories
    if mdm is None or mdm.splits is None:
        return None
    laws = split_laws(mdm, range(mdm.n_components))
    return Section(
        name="splits",
        title="How clients split their points",
        lead=(
            "A client's points go down a tree over the categories. At each split, clients of a "
            "component may vary more or less than chance; categories below a split that varies little "
            "go together."
        ),
        facts=tuple(
            (f"Component {k + 1}", found.words(names)) for k, found in enumerate(findings(mdm))
        ),
        figures=(
            _tree(mdm, names, split_rows(mdm, names, laws)),
            *([_laws(mdm, names, laws)] if mdm.splits.laws is not None else []),
        ),
    )


# ------------------------------------------------------------------------ the tree


def split_rows(mdm: MDM, names: Sequence[str], laws: Sequence[SplitLaw]) -> Rows:
    """One row per component and split: who is on its sides, its concentration and variance."""
    assert mdm.splits is not None
    x, y = _places(mdm.splits.tree)
    return [
        {
            "component": str(one.component + 1),
            "split": _name(mdm.splits.tree, one.node, names),
            "x": float(x[one.node]),
            "y": float(y[one.node]),
            "concentration": concentration,
            "label": f"{concentration:.2g}" if concentration < 100 else f"{concentration:,.0f}",
            "left": float(one.law @ np.arange(one.total + 1)) / one.total,
            "points": one.total,
            "variance": one.variance,
            "evenness": evenness(one.variance),
        }
        for one in laws
        for concentration in [float(mdm.splits.of_inner[one.component, one.node])]
    ]


def branch_rows(tree: Tree) -> Rows:
    """The lines of a dendrogram: of each split one down its children, and one out to each of them."""
    x, y = _places(tree)
    lines = []
    for node, children in enumerate(tree.children):
        low, high = sorted(y[children])
        lines.append((x[node], x[node], low, high))
        lines += [(x[node], x[child], y[child], y[child]) for child in children]
    return [dict(zip(("x", "x2", "y", "y2"), map(float, line), strict=True)) for line in lines]


def _places(tree: Tree) -> tuple[np.ndarray, np.ndarray]:
    """Where each node stands: how deep, all categories at the same depth, and at which height."""
    order = tree.members()[0]
    x, y = np.zeros(2 * tree.n_splits + 1), np.empty(2 * tree.n_splits + 1)
    for node, children in enumerate(tree.children):
        x[children] = x[node] + 1
    x[tree.n_splits :] = x.max()
    y[tree.n_splits + np.array(order)] = np.arange(len(order))
    for node in range(tree.n_splits - 1, -1, -1):
        y[node] = y[tree.children[node]].mean()
    return x, y


def _name(tree: Tree, node: int, names: Sequence[str]) -> str:
    """The categories on both sides of a split, the first two of each."""
    members = tree.members()
    sides = [[names[j] for j in members[child]] for child in tree.children[node]]
    return " | ".join(
        ", ".join(side[:2]) + (f" + {len(side) - 2}" if len(side) > 2 else "") for side in sides
    )


def _tree(mdm: MDM, names: Sequence[str], rows: Rows) -> Figure:
    assert mdm.splits is not None
    tree = mdm.splits.tree
    drawn, lines = _dendrogram(tree, names), branch_rows(tree)
    of = {k: [row for row in rows if row["component"] == k] for k in names_of(rows, "component")}
    some = f" The {_MOST_TREES} heaviest components." if len(of) > _MOST_TREES else ""
    height = max(160, 20 * tree.n_categories)
    return Figure(
        name="tree",
        title="The tree",
        says=(
            "Every split has its concentration beside it: the larger it is, the less clients differ "
            "there. Shape and colour say whether they vary more or less than chance at the number of "
            f"points that arrive in the mean.{some}"
        ),
        panels=tuple(
            Panel(spec_of(drawn, mine, height=height, branches=lines), title=f"component {k}")
            for k, mine in [*of.items()][:_MOST_TREES]
        ),
        table=Table.of(
            "Every split: concentration, share to the left, and variance against chance",
            rows,
            [
                Column("component"),
                Column("split"),
                Column("concentration", show=".3g"),
                Column("left", "to the left", ".1%"),
                Column("points", "points in the mean", ",d"),
                Column("variance", "times chance's variance", ".2f"),
            ],
        ),
        wide=True,
    )


def _dendrogram(tree: Tree, names: Sequence[str]) -> alt.LayerChart:
    order = json.dumps([names[j] for j in tree.members()[0]])
    axis = alt.Axis(
        orient="right", values=[*range(tree.n_categories)], labelExpr=f"{order}[datum.value]",
        tickCount=tree.n_categories, grid=False, domain=False, ticks=False, labelOverlap=False,
        labelColor=INK,
    )  # fmt: skip
    places = {
        "x": alt.X("x:Q", axis=None, scale=alt.Scale(padding=14)),
        "y": alt.Y(
            "y:Q", title=None, axis=axis, scale=alt.Scale(reverse=True, nice=False, padding=10)
        ),
    }
    lines = chart("branches").mark_rule(color=LINE, strokeWidth=2)
    dots = chart().mark_point(size=90).encode(
        **places, **keyed("evenness", EVENNESS, tones=_TONES),
        tooltip=tooltip(
            "split", ("concentration", ".3~g"), ("left", ".1%", "to the left"), ("points", ",d"),
            ("variance", ".2f", "times chance's variance"),
        ),
    )  # fmt: skip
    texts = chart().mark_text(dx=8, dy=-8, align="left", color=INK)
    branches = lines.encode(**places, x2="x2:Q", y2="y2:Q")
    return branches + dots + texts.encode(**places, text="label:N")


# ------------------------------------------------------------------------ the laws


def law_rows(one: SplitLaw) -> Rows:
    """The law of a split and its beta-binomial; of many counts those that share the most probability."""
    likely = one.law + one.beta_binomial
    most = np.argsort(-likely, kind="stable")[:_MOST_SHOWN]
    shown = np.sort(most[likely[most] > _NOTHING * likely.max()])
    return [
        {"points": int(x), "kind": kind, "probability": float(values[x])}
        for kind, values in zip(_KINDS, (one.law, one.beta_binomial), strict=True)
        for x in shown
    ]


def _laws(mdm: MDM, names: Sequence[str], laws: Sequence[SplitLaw]) -> Figure:
    assert mdm.splits is not None
    tree = mdm.splits.tree
    drawn = chart().mark_line(strokeWidth=2.5, point={"size": 14}).encode(
        x=alt.X("points:Q", title="points that go left", axis=alt.Axis(tickMinStep=1, format="d")),
        y=alt.Y("probability:Q", title=None, axis=alt.Axis(format="~%")),
        **{n: c for n, c in keyed("kind", _KINDS).items() if n == "color"},
        tooltip=tooltip("kind", ("points", ",d"), ("probability", ".2%")),
    )  # fmt: skip
    ordered = sorted(laws, key=lambda one: -one.bend)

    def title(one: SplitLaw) -> str:
        return f"component {one.component + 1}: {_name(tree, one.node, names)}"

    return Figure(
        name="laws",
        title="Laws against beta-binomials",
        says=(
            "How many of the points that arrive at a split go left, by its law and by the beta-binomial "
            f"of its two concentrations. The {min(len(laws), _MOST_LAWS)} that differ most of "
            f"{counted(len(laws), 'law')}; the table has all of them."
        ),
        panels=tuple(
            Panel(spec_of(drawn, law_rows(one), height=150), title=title(one))
            for one in ordered[:_MOST_LAWS]
        ),
        table=Table.of(
            "Every law, by how much probability it moves",
            [
                {
                    "split": title(one),
                    "moved": one.bend,
                    "points": one.total,
                    "variance": one.variance,
                }
                for one in ordered
            ],
            [
                Column("split"),
                Column("moved", "probability moved", ".1%"),
                Column("points", "points in the mean", ",d"),
                Column("variance", "times chance's variance", ".2f"),
            ],
        ),
        wide=True,
    )  # fmt: skip
