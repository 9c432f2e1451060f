"""A report in which every text from outside is one that somebody chose, for the tests of the page.

Texts are made by a function of a number, so that no two of them are alike: the same page can be made of
harmless words and of markup.
"""

import itertools
from dataclasses import replace

import report_material as material
from polyurn.report.material import SavedComparison
from polyurn.report.page import report_on
from polyurn.storage.models import Saved
from polyurn.storage.provenance import DataProvenance, Provenance

# Each would run a script, ask the network or end an element, in one place of a page or another.
MARKUP = (
    "<script>window.hacked = 1</script>",
    "</script><script>window.hacked = 1</script>",
    "</title></style></script><img src=x onerror=window.hacked=1>",
    '"><img src="https://example.org/x" onerror="window.hacked=1">',
    "' onmouseover='window.hacked=1' autofocus onfocus='window.hacked=1",
    '" onload="window.hacked=1" style="background:url(https://example.org/x)',
    "<svg onload=window.hacked=1><animate onbegin=window.hacked=1>",
    "<!--<script>",
    "]]><iframe srcdoc='<script>parent.hacked=1</script>'>",
    "javascript:window.hacked=1",
    "{{ 7 * 7 }}{% include 'x' %}${window.hacked=1}",
    "</textarea></details></table><a href=javascript:window.hacked=1>x</a>",
    "&lt;script&gt;window.hacked=1&lt;/script&gt;",
    "datum['x'] + (window.hacked=1)",
    "\u2028window.hacked=1\u2029\\u003cscript>",
    "__proto__",
)


def markup():
    """A text with markup for each number."""
    return lambda i: f"{MARKUP[i % len(MARKUP)]}{i}"


def harmless():
    return lambda i: f"word{i}"


def page_of(text_of):
    """The report with all its sections, and every text from outside that is in it."""
    texts, numbers = [], itertools.count()

    def text():
        texts.append(text_of(next(numbers)))
        return texts[-1]

    names, populations = [text() for _ in range(10)], [text() for _ in range(2)]
    features = [text() for _ in range(36)]
    traffic = material.traffic_case()
    nodes = tuple(
        replace(node, name=text(), excluded=text() if i % 2 else None, refused=((text(), i + 1),))
        for i, node in enumerate(traffic.nodes)
    )
    rounds = tuple(replace(one, kind=text()) for one in traffic.rounds)
    table = DataProvenance(
        file=text(), n_clients=400, n_categories=10, n_points=8000, client=text(), category=text(),
        count=text(),
    )  # fmt: skip

    def made(**more):
        return Provenance(polyurn=text(), seed=text(), command=text(), **more)

    model = Saved(
        material.selection().mdm,
        tuple(names),
        made(
            data=table, fit=material.selection(), more={text(): text()},
            traffic=replace(traffic, nodes=nodes, rounds=rounds), left_out=(text(),),
        ),
    )  # fmt: skip
    metric = text()
    renamed = dict(zip(("mdm", "iid"), populations, strict=True))
    runs = [
        replace(
            run,
            population=renamed.get(run.population, run.population),
            engine=text(),
            metrics={metric: run.metrics["accuracy"]},
            final={metric: run.final["accuracy"]},
            settings={**run.settings, "server_options": {text(): 1.0}},
        )
        for run in material.runs()
    ]
    compared = material.comparison()
    rows = tuple(replace(row, name=renamed[row.name]) for row in compared.rows)
    clients = material.true_clients()
    pool_features, labels = material.pool()
    page = report_on(
        model,
        comparison=SavedComparison(replace(compared, rows=rows), made(data=text())),
        runs=runs,
        clients={"true": clients, populations[0]: clients[::2], populations[1]: clients[1::2]},
        match="position",
        style=Saved(material.style(), tuple(names), made(data=text()), tuple(features)),
        features=pool_features.reshape(len(labels), -1),
        labels=labels,
        metric=metric,
        title=text(),
        notes=[(text(), text())],
    )
    return page.html(), texts


def shape_of(elements):
    """Elements and the names of their attributes, without what they say."""
    return [
        (one["tag"], tuple(sorted(set(one) - {"tag", "text", "in"})), len(one["in"]))
        for one in elements
    ]
