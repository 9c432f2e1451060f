"""A model's splits on the page: the tree, and what each split does against chance and the beta-binomial.

Rows first, which are numbers only, then the figures that are drawn of them.
"""

import json
from collections.abc import Sequence

import altair as alt
import numpy as np

from polyurn.model.split_findings import EVENNESS, SplitLaw, evenness, findings, split_laws
from polyurn.model.splits import Splits
from polyurn.model.trees import Tree
from polyurn.report.charts import INK, LINE, Column, Rows, chart, keyed, names_of, spec_of, tooltip
from polyurn.report.material import Material
from polyurn.report.parts import Figure, Panel, Section, Table
from polyurn.typed.declared import Floats

_MOST_TREES, _MOST_LAWS, _MOST_SHOWN = 4, 12, 80
_NOTHING = 1e-4  # of the largest probability: not drawn
_KINDS = ("law", "beta-binomial")
_COLUMNS = [
    Column("component"),
    Column("split"),
    Column("concentration", show=".3g"),
    Column("left", "to the left", ".1%"),
    Column("points", "points in the mean", ",d"),
    Column("variance", "times chance's variance", ".2f"),
]


def splits_section(material: Material) -> Section | None:
    """The tree and the laws, if the model has splits."""
    mdm, names = material.mdm, material.categories
    if mdm is None or mdm.splits is None:
        return None
    laws = split_laws(mdm)
    rows = split_rows(mdm.splits, names, laws)
    figures = [_tree(mdm.splits.tree, names, rows)]
    figures += [] if mdm.splits.laws is None else [_laws(laws, rows)]
    return Section(
        name="splits",
        title="How clients split their points",
        lead=(
            "A client's points go down a tree over the categories. At each split, clients of a "
            "component may vary more or less than chance; categories below a split that varies little "
            "go together."
        ),
        facts=tuple(
            (f"Component {k}", one.words(names)) for k, one in enumerate(findings(mdm), start=1)
        ),
        figures=tuple(figures),
    )


def split_rows(splits: Splits, names: Sequence[str], laws: Sequence[SplitLaw]) -> Rows:
    """One row per component and split: where it stands, and what it does."""
    (x, y), below = _places(splits.tree), splits.tree.members()
    rows = []
    for one in laws:
        sides = [[names[j] for j in below[child]] for child in splits.tree.children[one.node]]
        texts = [", ".join(s[:2]) + (f" + {len(s) - 2}" if len(s) > 2 else "") for s in sides]
        a = float(splits.of_inner[one.component, one.node])
        rows.append(
            {
                "component": str(one.component + 1), "split": " | ".join(texts),
                "x": float(x[one.node]), "y": float(y[one.node]),
                "concentration": a, "label": f"{a:.2g}" if a < 100 else f"{a:,.0f}",
                "left": float(one.law @ np.arange(one.total + 1)) / one.total,
                "points": one.total, "variance": one.variance, "evenness": evenness(one.variance),
                "moved": float(np.abs(one.law - one.beta_binomial).sum() / 2),
            }
        )  # fmt: skip
    return rows


def branch_rows(tree: Tree) -> Rows:
    """The lines of a dendrogram: of each split one down its children, and one out to each of them."""
    x, y = _places(tree)
    lines = []
    for node, children in enumerate(tree.children):
        lines.append((x[node], x[node], *y[children]))
        lines += [(x[node], x[child], y[child], y[child]) for child in children]
    return [dict(zip(("x", "x2", "y", "y2"), map(float, line), strict=True)) for line in lines]


def _places(tree: Tree) -> Floats:
    """How deep each node stands, all categories as deep as the deepest, and at which height."""
    x = np.zeros(2 * tree.n_splits + 1)
    for node, children in enumerate(tree.children):
        x[children] = x[node] + 1
    x[tree.n_splits :] = x.max()
    heights = np.argsort(tree.members()[0]).astype(float)
    return np.array([x, tree.joined([*heights], lambda left, right: (left + right) / 2)])


def _tree(tree: Tree, names: Sequence[str], rows: Rows) -> Figure:
    order = json.dumps([names[j] for j in tree.members()[0]])
    axis = alt.Axis(
        orient="right", values=[*range(tree.n_categories)], labelExpr=f"{order}[datum.value]",
        tickCount=tree.n_categories, grid=False, domain=False, ticks=False, labelOverlap=False,
        labelColor=INK,
    )  # fmt: skip
    down = alt.Scale(reverse=True, nice=False, padding=10)
    places = {
        "x": alt.X("x:Q", axis=None, scale=alt.Scale(padding=14)),
        "y": alt.Y("y:Q", title=None, axis=axis, scale=down),
    }
    shown = tooltip("split", *_COLUMNS[2:])
    lines = chart("branches").mark_rule(color=LINE, strokeWidth=2)
    dots = chart().mark_point(size=90).encode(
        **places, **keyed("evenness", EVENNESS, tones=(3, 0, 2), columns=1), tooltip=shown
    )  # fmt: skip
    texts = chart().mark_text(dx=8, dy=-8, align="left", color=INK).encode(**places, text="label:N")
    drawn = lines.encode(**places, x2="x2:Q", y2="y2:Q") + dots + texts
    height, branches = 20 * tree.n_categories + 120, branch_rows(tree)
    components = names_of(rows, "component")
    panels = [
        Panel(
            spec_of(
                drawn,
                [row for row in rows if row["component"] == k],
                height=height,
                branches=branches,
            ),
            f"component {k}",
        )
        for k in components[:_MOST_TREES]
    ]
    return Figure(
        name="tree",
        title="The tree",
        says=(
            "Every split has its concentration beside it: the larger it is, the less clients differ "
            "there. Shape and colour say whether they vary more or less than chance at the number of "
            "points that arrive in the mean."
            + (f" The {_MOST_TREES} heaviest components." if len(components) > _MOST_TREES else "")
        ),
        panels=tuple(panels),
        table=Table.of("Every split, and its variance against chance", rows, _COLUMNS),
        wide=True,
    )


def law_rows(one: SplitLaw) -> Rows:
    """The law of a split and its beta-binomial; of many counts those that share the most probability."""
    likely = one.law + one.beta_binomial
    most = np.argsort(-likely, kind="stable")[:_MOST_SHOWN]
    return [
        {"points": int(x), "kind": kind, "probability": float(values[x])}
        for kind, values in zip(_KINDS, (one.law, one.beta_binomial), strict=True)
        for x in np.sort(most[likely[most] > _NOTHING * likely.max()])
    ]


def _laws(laws: Sequence[SplitLaw], rows: Rows) -> Figure:
    drawn = chart().mark_line(strokeWidth=2.5, point={"size": 14}).encode(
        x=alt.X("points:Q", title="points that go left", axis=alt.Axis(tickMinStep=1, format="d")),
        y=alt.Y("probability:Q", title=None, axis=alt.Axis(format="~%")),
        color=keyed("kind", _KINDS)["color"],
        tooltip=tooltip("kind", ("points", ",d"), ("probability", ".2%")),
    )  # fmt: skip
    ordered = sorted(zip(rows, laws, strict=True), key=lambda pair: -pair[0]["moved"])
    return Figure(
        name="laws",
        title="Laws against beta-binomials",
        says=(
            "How many of the points that arrive at a split go left, by its law and by the beta-binomial "
            f"of its two concentrations. The {min(len(laws), _MOST_LAWS)} that differ most of "
            f"{len(laws)}; the table has all of them."
        ),
        panels=tuple(
            Panel(
                spec_of(drawn, law_rows(law), height=150),
                f"component {k['component']}: {k['split']}",
            )
            for k, law in ordered[:_MOST_LAWS]
        ),
        table=Table.of(
            "Every law, by how much probability it moves",
            [row for row, _ in ordered],
            [*_COLUMNS, Column("moved", "probability moved", ".1%")],
        ),
        wide=True,
    )
