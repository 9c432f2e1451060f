"""What the tests of the report share: a small federation with everything that can be reported on."""

import json
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser

import numpy as np

import polyurn as pu
from polyurn.model.paper_truths import truth
from polyurn.model.style import StyleErrors
from polyurn.report.page import report_on
from polyurn.storage.models import Saved
from polyurn.storage.provenance import DataProvenance, Provenance
from polyurn.storage.run_log import FinishedRun
from polyurn.training.fedavg import FedAvg
from polyurn.wire.traffic import NodeTraffic, RoundTraffic, Traffic

NAMES = ("<b>zero</b>", "one & only", '"two"', "three", "4", "5", "6", "7", "8", "</script>")


@cache
def selection():
    clients = pu.LocalAggregator(truth("medium/2").sample(400, rng=0), rng=1)
    return pu.fit(clients, n_components=(1, 2), n_categories=10, max_size=20, max_rounds=12, rng=2)


@cache
def fitted():
    clients = pu.LocalAggregator(true_clients(), rng=1)
    return pu.fit(clients, n_components=2, n_categories=10, max_size=20, max_rounds=6, rng=0)


@cache
def saved():
    made = Provenance(
        polyurn="0.1.0",
        seed=5,
        command="polyurn fit 'my clients.csv'",
        data=DataProvenance(file="my clients.csv", n_clients=400, n_categories=10, n_points=8000),
        fit=selection(),
    )
    return Saved(selection().mdm, NAMES, made)


@cache
def true_clients():
    return truth("medium/2").sample(60, rng=3)


@cache
def comparison():
    iid = pu.IID(true_clients().sum(axis=0), sizes=[20]).sample(60, rng=4)
    populations = {"mdm": selection().mdm, "iid": iid}
    return pu.compare(populations, true_clients(), n_folds=0, n_splits=100, n_bootstrap=100, rng=5)


KINDS = (
    ("batch of 1 survey, 1 score", 114), ("part of 97 group", 5881), ("part of 97 expect", 11039),
    ("part of 89 expect", 15118), ("part of 65 expect", 12190), ("batch of 42 expect, 1 score", 9133),
)  # fmt: skip


def traffic_case(n_nodes=8, *, secure=True, kinds=KINDS, odd=2):
    """Traffic while a model was fitted over so many nodes; the first `odd` did not behave."""
    rounds = []
    for i, (kind, n_numbers) in enumerate(kinds):
        in_sum = n_nodes - odd if i else n_nodes
        up = n_nodes * (8 * n_numbers + 40 * n_nodes * secure)
        rounds.append(
            RoundTraffic(
                number=i + 1,
                kind=kind,
                n_numbers=n_numbers,
                n_nodes=in_sum,
                n_attempts=1 + (i == 1),
                bytes_down=up // 2,
                bytes_up=up,
                seconds=2.5 + 0.5 * i,
            )
        )
    nodes = tuple(
        NodeTraffic(
            node=2**64 - 1 - i,
            name=f"ward {i + 1}",
            n_summed=1 if i < odd else len(kinds),
            excluded="it did not reply in time" if i < odd and i % 2 == 0 else None,
            refused=(("a reply to an earlier message", 3), ("it answered twice", 1))
            if i < odd and i % 2
            else (),
        )
        for i in range(n_nodes)
    )
    n_attempts = sum(one.n_attempts for one in rounds)
    return Traffic(
        secure=secure,
        clients_per_node=50,
        n_asks=n_attempts * (5 if secure else 1),
        n_timeouts=(odd + 1) // 2,
        rounds=tuple(rounds),
        nodes=nodes,
    )


def federated(record=None):
    """The model of `saved`, as if it had been fitted over a federation."""
    provenance = replace(saved().provenance, traffic=record or traffic_case())
    return replace(saved(), provenance=provenance)


def runs(populations=("true", "mdm", "iid", "oracle"), seeds=(0, 1), styled=()):
    """Runs whose accuracy is a parabola in the learning rate's logarithm, shifted by population.

    The clients of the populations in `styled` have a style.
    """
    made = []
    for i, population in enumerate(populations):
        for seed in seeds:
            for rate in (0.01, 0.1, 1.0):
                for epochs in (1, 4):
                    best = -1 + 0.3 * i
                    score = 0.9 - 0.1 * (np.log10(rate) - best) ** 2 - 0.01 * seed - 0.002 * epochs
                    settings = FedAvg(
                        n_rounds=4, cohort_size=2, local_learning_rate=rate, local_epochs=epochs
                    ).to_json()
                    curve = {"accuracy": [float(score)]}
                    final = {"accuracy": float(score)}
                    made.append(
                        FinishedRun(
                            population,
                            seed,
                            settings,
                            "batched",
                            [4],
                            [0.1],
                            curve,
                            final,
                            None,
                            1.5,
                            styled=population in styled,
                        )
                    )
    return made


def everything():
    """The keywords of a report with all its sections."""
    return {
        "comparison": comparison(),
        "runs": runs(),
        "clients": {"true": true_clients()},
        "match": "position",
        "title": "A <federation>",
    }


def gathered(model=None, **given):
    """The material of a page about whatever is given."""
    return report_on(model, **given).material


def html_report(*things, **given):
    """The page about whatever is given."""
    return report_on(*things, **given).html()


@cache
def pool(n_points=900, *, shape=(6, 6), n_labels=10):
    """Proxy points: pictures whose left half is brighter the more a point has of its first direction."""
    rng = np.random.default_rng(11)
    labels = np.arange(n_points) % n_labels
    features = rng.normal(size=(n_points, int(np.prod(shape))))
    features[:, 0] += 4 * rng.normal(size=n_points)
    features[:, 1] += 3 * rng.normal(size=n_points)
    return (features + labels[:, None]).reshape(n_points, *shape), labels


@cache
def style(n_directions=2, *, mean=0.0, far_share=0.01, errors=True):
    """A style in the space of the pool, whose first direction carries three quarters."""
    features, labels = pool()
    space = pu.style_space(features, labels, n_directions=n_directions)
    shared, by_label, within = (
        np.diag(np.resize(values, n_directions)) for values in ([0.4, 0.1], [0.2, 0.1], [0.4, 0.8])
    )
    known = StyleErrors(
        np.full(n_directions, 0.05), *(0.1 * one for one in (shared, by_label, within))
    )
    return pu.Style(
        space,
        np.full(n_directions, mean),
        shared,
        by_label,
        within,
        errors=known if errors else None,
        n_clients=270,
        far_share=far_share,
    )


def styled(**given):
    """The keywords of a report about a style and its pool."""
    features, labels = pool()
    return {"style": style(), "features": features, "labels": labels, **given}


VOID = {"meta", "link", "input", "br", "img"}


class Page(HTMLParser):
    """A page as a list of elements, each with its attributes and text; unclosed tags are errors."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.scripts = [], [], []
        self.feed(text)
        self.close()
        assert self.open == [], "elements that are not closed"

    def handle_starttag(self, tag, attributes):
        element = {"tag": tag, "text": "", "in": [e["tag"] for e in self.open], **dict(attributes)}
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        assert self.open[-1]["tag"] == tag, f"</{tag}> closes <{self.open[-1]['tag']}>"
        self.open.pop()

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data

    def all(self, tag, **attributes):
        wanted = attributes.items()
        return [
            e for e in self.elements if e["tag"] == tag and all(e.get(k) == v for k, v in wanted)
        ]

    def sections(self):
        return [e["id"] for e in self.all("section")]

    def charts(self):
        return json.loads(self.all("script", id="charts")[0]["text"])
