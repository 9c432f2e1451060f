"""What to model, from a data frame: what the command says, and what a Python user works with."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import polyurn as pu
from polyurn import table_features
from polyurn.errors import CountsError, ParameterError


def flights():
    """80 clients that differ in the region, and given the region in nothing."""
    rng = np.random.default_rng(0)
    plane = np.repeat(np.arange(80), 30)
    region = np.where(rng.random(2_400) < 0.8, plane % 3, rng.integers(0, 3, 2_400))
    kind = rng.integers(0, 4, 2_400)
    wind = rng.normal(size=2_400) + 4 * region
    return {"plane": plane, "kind": kind, "region": region, "wind": wind}


FLIGHTS = flights()
FLIGHTS_ARROW = pa.table(FLIGHTS)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_any_frame_gives_the_differences_and_the_recommendation(frame):
    found = table_features(frame(FLIGHTS), client="plane", label="kind", rng=0)
    assert [*found.differences] == ["region", "wind"]
    assert found.recommendation == pu.recommend_feature(found.differences, label="kind")
    assert found.recommendation.feature == "region"
    assert (found.label, found.n_labels) == ("kind", 4)
    assert found.sentences == (found.recommendation.sentence,)
    assert found.bins["wind"].n_bins == 10
    assert "cut into 10 bins at quantiles of this table: wind" in found.remarks[0]


def test_the_differences_are_those_of_the_histograms_of_label_and_column():
    found = table_features(
        FLIGHTS_ARROW, client="plane", label="kind", candidates=["region"], rng=3
    )
    cell = [f"{y} × {f}" for y in range(4) for f in range(3)]
    counts = pu.table_histograms(
        FLIGHTS_ARROW, categories=cell, client="plane", category=["kind", "region"], count="1"
    ).counts
    clients = pu.LocalAggregator(counts, rng=3)
    expected = pu.feature_differences(clients, n_labels=4, n_values=3)
    assert found.differences["region"].given_label.value == pytest.approx(
        expected.given_label.value
    )
    assert found.differences["region"].label.high == pytest.approx(expected.label.high)


def test_one_dirichlet_is_mentioned_only_if_clients_differ_in_the_label():
    """Of a review: 3 clients with 0.43 (-1.25 to 2.11) differed "as those of one Dirichlet"."""
    crossed = table_features(FLIGHTS_ARROW, client="plane", label=["region"], candidates=["kind"])
    assert crossed.sentences[0].startswith(
        "clients differ in region about as those of one Dirichlet"
    )
    few = FLIGHTS_ARROW.filter(np.isin(FLIGHTS["plane"], [0, 1, 3]))  # of two alike, and another
    said = table_features(few, client="plane", label="region", candidates=["wind"], n_bins=3, rng=0)
    assert said.recommendation.model == "cannot tell"
    assert said.differences["wind"].label.value > 0.05 > said.differences["wind"].label.low
    assert said.sentences == (said.recommendation.sentence,)


def test_a_crossed_label_goes_by_its_columns():
    found = table_features(FLIGHTS_ARROW, client="plane", label=["kind", "region"], rng=0)
    assert (found.label, found.n_labels) == ("kind × region", 12)


def test_what_the_proxy_data_lack_is_told():
    asked = {"client": "plane", "label": "kind", "rng": 0}
    proxy = FLIGHTS_ARROW.filter(pa.compute.not_equal(FLIGHTS_ARROW["region"], 2))
    found = table_features(FLIGHTS_ARROW, proxy=proxy, **asked)
    assert (found.lacking_columns, found.n_lacking) == ((), 4)
    found = table_features(FLIGHTS_ARROW, proxy=proxy.select(["kind"]), **asked)
    assert (found.lacking_columns, found.n_lacking) == (("wind", "region"), 0)
    declared = {"wind": pu.Bins([-np.inf, 2.0, 6.0, np.inf])}
    found = table_features(FLIGHTS_ARROW, proxy=proxy.select(["kind"]), bins=declared, **asked)
    assert found.lacking_columns == ("region",)
    assert table_features(FLIGHTS_ARROW, **asked).lacking_columns == ()


DECLARED = {
    "client": "plane", "label": "kind", "categories": 4, "values": {"region": ["0", "1", "2"]},
    "bins": {"wind": pu.Bins([0.0, 2.0, 6.0, 8.0])},
}  # fmt: skip


def test_with_noise_what_is_declared_is_measured_and_charged_once():
    ledger = pu.PrivacyLedger(900.0, 1e-6)
    found = table_features(
        FLIGHTS_ARROW, epsilon=900.0, delta=1e-6, **DECLARED,
        through=lambda clients: pu.PrivateAggregator(clients, ledger=ledger),
    )  # fmt: skip
    exact = table_features(FLIGHTS_ARROW, client="plane", label="kind", candidates=["region"])
    own = exact.differences["region"].given_label.value
    assert found.differences["region"].given_label.value == pytest.approx(own, abs=0.03)
    assert [*found.differences] == ["region", "wind"]
    assert found.recommendation.feature == "region"
    assert (found.remarks, found.lacking_columns, found.n_lacking) == ((), (), 0)
    assert len(ledger.charges) == found.guarantee.n_rounds == 2
    crossed = DECLARED | {
        "label": ["kind", "region"], "values": None,
        "categories": [f"{kind} × {region}" for kind in range(4) for region in range(3)],
    }  # fmt: skip
    again = table_features(FLIGHTS_ARROW, epsilon=900.0, delta=1e-6, **crossed)
    assert (again.label, again.n_labels, [*again.differences]) == ("kind × region", 12, ["wind"])


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"categories": None}, "declared categories"),
        ({"proxy": FLIGHTS_ARROW}, "no proxy with epsilon"),
        ({"values": None, "bins": None}, "a column with declared values or bins"),
        ({"candidates": ["region", "wind"], "bins": None}, "got neither"),
        ({"candidates": ["region"]}, "expected bins of candidates, got those of 'wind'"),
        ({"candidates": ["wind"]}, "values of a declared column"),
        ({"values": {"region": ["0"]}}, "two different ones or more, got region=0"),
        ({"values": {"wind": ["0", "1"]}}, "got both"),
        ({"epsilon": None}, "expected epsilon with categories"),
        ({"delta": None}, "expected delta with epsilon"),
    ],
)
def test_what_is_not_declared_is_refused_with_noise(changed, said):
    with pytest.raises(ParameterError, match=said):
        table_features(FLIGHTS_ARROW, **{"epsilon": 2.0, "delta": 1e-6, **DECLARED, **changed})


def test_counts_are_refused_with_noise():
    counted = pa.table(FLIGHTS | {"count": np.full(2_400, 2)})
    with pytest.raises(CountsError, match="one row per point with epsilon, got counts"):
        table_features(counted, epsilon=2.0, delta=1e-6, **DECLARED)
    table_features(counted, epsilon=2.0, delta=1e-6, count="1", **DECLARED)


def test_what_cannot_be_meant_is_refused():
    with pytest.raises(ParameterError, match="expected n_bins as an integer from 2 to 1000, got 1"):
        table_features(FLIGHTS_ARROW, client="plane", label="kind", n_bins=1)
    with pytest.raises(CountsError, match="which is the client's own column"):
        table_features(FLIGHTS_ARROW, client="plane", label="kind", candidates=["plane"])
    with pytest.raises(CountsError, match="at most as many labels as clients"):
        table_features(FLIGHTS_ARROW.slice(0, 90), client="plane", label="kind")
