"""`polyurn features`: what clients differ in, and what to model."""

import numpy as np
import pytest

from cli_walk import assert_refused


@pytest.fixture
def walk(run, tmp_path):
    """`run`, in a folder with clients that differ in region, and given the region in nothing."""
    rng = np.random.default_rng(0)
    plane = np.repeat(np.arange(80), 30)
    region = np.where(rng.random(2_400) < 0.8, plane % 3, rng.integers(0, 3, 2_400))
    label = rng.integers(0, 4, 2_400)
    hour = (label + rng.integers(0, 2, 2_400)) % 4
    wind = rng.normal(size=2_400).round(3) + 4 * region
    rows = [f"{row[0]},L{row[1]},r{row[2]},{row[3]},{row[4]:.3f}" for row in zip(
        plane, label, region, hour, wind, strict=True
    )]  # fmt: skip
    (tmp_path / "points.csv").write_text("\n".join(["plane,kind,region,hour,wind", *rows]))
    (tmp_path / "proxy.csv").write_text("\n".join(["plane,kind,region,hour,wind", *rows[:60]]))
    return run


ASKED = ("features", "points.csv", "--client", "plane", "--category", "kind")


def test_the_column_in_which_clients_differ_is_recommended(walk):
    ran = walk(*ASKED, "--candidates", "region,hour")
    assert ran.code == 0
    assert "how much 80 clients differ" in ran.out
    rows = [line.split("│")[1].strip() for line in ran.out.splitlines() if line.startswith("│")]
    assert rows == ["kind", "region", "hour"]
    assert "model kind × region: two points of one client with the same kind" in ran.err


def test_without_candidates_all_other_columns_are_looked_at(walk):
    told = walk(*ASKED, "--json")
    found = told.json()
    assert [*found["features"]] == ["region", "hour", "wind"]
    assert found["recommendation"]["feature"] == "region"
    assert found["features"]["region"]["given_label"]["low"] > 0.5
    assert abs(found["features"]["hour"]["given_label"]["value"]) < 0.02
    assert "cut into 10 bins at quantiles of this table: wind" in told.err


def test_columns_that_do_not_differ_leave_the_label_or_nothing_to_model(walk):
    told = walk(*ASKED, "--candidates", "hour", "--json")
    assert told.json()["recommendation"]["model"] == "IID"
    assert "IID clients will do" in told.err
    asked = ("features", "points.csv", "--client", "plane", "--category", "region")
    told = walk(*asked, "--candidates", "kind,hour")
    assert "model region alone: clients differ in it (" in told.err
    assert "about as those of one Dirichlet with α_0 = " in told.err


def test_a_crossed_label_says_whether_a_third_column_still_differs(walk):
    asked = ("features", "points.csv", "--client", "plane", "--category", "kind,region")
    told = walk(*asked, "--candidates", "hour,wind", "--range", "wind=-2:10", "--bins", 4, "--json")
    found = told.json()
    assert found["features"]["wind"]["n_categories"] <= 12 * 4
    assert "quantiles" not in told.err
    assert (
        walk(*asked, "--candidates", "hour", "--json").json()["recommendation"]["model"] == "label"
    )


def test_too_few_clients_are_not_told_that_iid_clients_will_do(walk, tmp_path):
    lines = (tmp_path / "points.csv").read_text().splitlines()
    (tmp_path / "few.csv").write_text("\n".join(lines[: 1 + 4 * 30]))
    told = walk(
        "features", "few.csv", "--client", "plane", "--category", "kind", "--candidates", "hour"
    )
    assert told.code == 0
    assert "cannot tell: 4 clients are too few; they may differ in kind (" in " ".join(
        told.err.split()
    )
    assert "IID clients will do" not in told.err
    assert "of one Dirichlet" not in told.err


def test_a_number_is_recommended_with_what_to_do_about_it(walk):
    told = walk(*ASKED, "--candidates", "wind", "--proxy", "proxy.csv")
    assert "model kind × wind" in told.err
    assert "wind is a number: add a column of its bins to your tables first" in told.err
    assert "quantiles" not in told.err


def test_categories_that_the_proxy_data_lack_are_said(walk):
    told = walk(*ASKED, "--candidates", "region", "--proxy", "proxy.csv")
    assert "proxy.csv has no points of" in told.err


@pytest.mark.parametrize(
    ("kept", "candidates", "lacking"),
    [
        (("plane", "kind"), "region", ["region"]),
        (("plane", "region"), "region", ["kind"]),
        (("kind", "region"), "region,wind", ["wind"]),
        (("hour",), "region,wind", ["kind", "wind", "region"]),
        (("kind", "region"), "region,hour", []),
    ],
)
def test_columns_that_the_proxy_data_lack_are_said(walk, tmp_path, kept, candidates, lacking):
    names, *rows = [row.split(",") for row in (tmp_path / "points.csv").read_text().splitlines()]
    places = [names.index(name) for name in kept]
    lines = [",".join(row[i] for i in places) for row in [names, *rows]]
    (tmp_path / "proxy.csv").write_text("\n".join(lines))
    told = walk(*ASKED, "--candidates", candidates, "--proxy", "proxy.csv")
    assert told.code == 0
    said = [line for line in told.err.splitlines() if "has no column" in line]
    assert said == [f"proxy.csv has no column {name!r}" for name in lacking]
    assert "--proxy" not in told.err


NOISED = ("--epsilon", 900, "--delta", 1e-6)
KINDS = ("--categories", "L0,L1,L2,L3")
REGIONS = ("--values", "region=r0,r1,r2")


def test_with_noise_everything_is_declared_and_the_ledger_charged(walk):
    ledger = ("--ledger", "privacy.ledger")
    declared = (*KINDS, *REGIONS, "--range", "wind=-2:10", "--bins", 4)
    shown = walk(*ASKED, *NOISED, *declared)
    assert "model kind × region: two points" in shown.err
    assert "differentially private for one client" in " ".join(shown.out.split())
    found = walk(*ASKED, *NOISED, *declared, *ledger, "--json").json()
    assert [*found["features"]] == ["region", "wind"]
    assert found["guarantee"]["n_rounds"] == 2
    assert_refused(walk(*ASKED, *NOISED, *declared, *ledger), "raise the budget")
    assert walk(*ASKED, "--candidates", "region", *ledger).code == 0  # an exact release


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((*NOISED, *REGIONS), "expected declared categories (--categories)"),
        ((*NOISED, *KINDS), "a column with declared values or bins (--values, --range)"),
        ((*NOISED, *KINDS, "--candidates", "wind"), "--range wind=LOW:HIGH"),
        ((*NOISED, *KINDS, *REGIONS, "--proxy", "proxy.csv"), "--proxy has no effect with"),
        ((*NOISED, *KINDS, *REGIONS, *REGIONS), "once for each column"),
        ((*KINDS,), "--categories has no effect without --epsilon"),
        ((*REGIONS,), "--values has no effect without --epsilon"),
    ],
)
def test_what_is_missing_with_noise_is_one_line(walk, options, said):
    assert_refused(walk(*ASKED, *options), said)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--candidates", "nothing"), "--candidates"),
        (("--bins", 1), "expected --bins from 2 to 1000, got 1"),
        (
            ("--range", "wind"),
            "expected --range as COLUMN=LOW:HIGH or COLUMN=-inf,0,10,inf, got 'wind'",
        ),
        (("--range", "wind=4:1"), "expected --range as COLUMN=LOW:HIGH"),
        (("--range", "wind=nan:1"), "expected --range as COLUMN=LOW:HIGH"),
        (("--range", "wnd=0:1"), "expected bins of candidates, got those of 'wnd'"),
        (("--candidates", "hour", "--bins", 5), "--bins has no effect"),
        (("--candidates", "hour", "--range", "wind=0:1"), "expected bins of candidates"),
        (
            ("--range", "wind=0:1", "--range", "wind=0:9"),
            "expected one --range of column 'wind', got two",
        ),
        (("--candidates", "plane"), "got 'plane', which is the client's own column"),
        (("--candidates", "hour,kind"), "got 'kind', which is the label's own column"),
    ],
)
def test_what_cannot_be_meant_is_one_line(walk, options, said):
    assert_refused(walk(*ASKED, *options), said)


@pytest.mark.parametrize(
    ("label", "said"),
    [
        (
            "nope",
            "expected a column 'nope', got plane, kind, region, hour, wind; name yours with --category",
        ),
        ("kind,nope", "name yours with --category"),
        ("kind,kind", "expected different columns to cross, got 'kind' twice"),
        ("plane", "expected another column for the category than the client's, got 'plane'"),
        ("kind,plane", "expected another column for the category than the client's, got 'plane'"),
        ("wind", "got continuous numbers in column 'wind'"),
    ],
)
def test_a_label_that_cannot_be_one_is_one_line_that_names_the_option(walk, label, said):
    ran = walk("features", "points.csv", "--client", "plane", "--category", label)
    assert_refused(ran, said)


def test_the_label_has_to_be_named(walk):
    assert_refused(walk("features", "points.csv", "--client", "plane"), "--category")
