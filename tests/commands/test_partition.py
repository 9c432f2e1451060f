"""`polyurn partition`: the points of each client."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import polyurn
from cli_walk import COUNTS, EXAMPLE, HEAD, assert_leaves_no_trace, assert_refused
from polyurn import MDM, Sizes, load_partition, save
from style_cases import plain_style, style_rest

LABELS = np.tile([0, 1, 2], 20)


@pytest.fixture
def walk(run, tmp_path):
    """`run`, in a folder that has labels.csv too."""
    (tmp_path / "labels.csv").write_text("label\n" + "\n".join(map(str, LABELS)))
    return run


@pytest.mark.parametrize("name", ["p.parquet", "p.json"])
def test_partition_writes_points_that_have_each_clients_histogram(walk, name):
    ran = walk("partition", "labels.csv", "clients.csv", "-o", name)
    assert ran.code == 0
    assert ran.out == ""
    assert "wrote 6 clients" in ran.err
    assert "33 points given" in ran.err
    parts = load_partition(name)
    assert parts.ids.tolist() == list("abcdef")
    assert parts.histograms(LABELS, 3).tolist() == COUNTS


def test_partition_without_an_output_prints_the_json(walk):
    walk("partition", "labels.csv", "clients.csv", "--seed", 4, "-o", "p.json")
    printed = walk("partition", "labels.csv", "clients.csv", "--seed", 4).json()
    with open("p.json") as file:
        assert printed == json.load(file)


def test_the_report_is_all_there_is_on_stdout_with_json(walk):
    told = walk("partition", "labels.csv", "clients.csv", "--no-replace", "--json").json()
    assert told["n_clients"] == 6
    assert told["exact"]
    assert told["available"] == [20, 20, 20]
    assert told["asked"] == told["given"] == np.sum(COUNTS, axis=0).tolist()
    assert told["n_used"] == told["n_given"] == 33


def test_cover_takes_an_mdm_file_or_a_table(walk):
    save(EXAMPLE, "mdm.json")
    with open("two.csv", "w") as file:
        file.write("kind\n" + "0\n1\n" * 30)
    told = walk("partition", "two.csv", "mdm.json", "--category", "kind", "--cover", "--json")
    assert told.json()["n_used"] == told.json()["n_given"] == 60
    assert told.json()["cut"] == 3  # clients of 9
    assert "the last client holds 3 points fewer" in told.err
    assert walk("partition", "labels.csv", "clients.csv", "--cover", "-o", "p.json").code == 0
    assert sorted(load_partition("p.json").indices) == list(range(60))


@pytest.mark.parametrize("which", ["both", "points", "clients"])
def test_category_is_not_the_column_of_one_table_only(walk, tmp_path, which):
    columns = {"points": "label", "clients": "category"}
    columns |= dict.fromkeys(columns if which == "both" else [which], "kind")
    rows = "\n".join(f"{label},{label}" for label in LABELS)
    (tmp_path / "points.csv").write_text(f"{columns['points']},other\n{rows}\n")
    (tmp_path / "who.csv").write_text(f"client,{columns['clients']},count\na,0,3\nb,2,1\n")
    told = walk("partition", "points.csv", "who.csv", "--category", "kind", "--json")
    assert told.json()["given"] == [3, 0, 1]


def test_points_without_the_category_asked_for_are_not_read_by_another(walk, tmp_path):
    save(EXAMPLE, "mdm.json")
    (tmp_path / "two.csv").write_text("label\n" + "0\n1\n" * 30)
    refused = walk("partition", "two.csv", "mdm.json", "--clients", 3, "--category", "kind")
    assert_refused(refused, "two.csv: expected a column 'kind', got label")


def test_rows_with_missing_labels_are_not_left_out_unasked_or_unsaid(walk, tmp_path):
    (tmp_path / "gaps.csv").write_text("label,x\n0,1\n,2\n1,3\n")
    (tmp_path / "who.csv").write_text(HEAD + "a,0,1\nb,1,1\nc,,1\n")
    asked = ("partition", "gaps.csv", "who.csv")
    assert_refused(walk(*asked), "1 value is missing")
    ran = walk(*asked, "--drop-missing")
    assert ran.json() == {"a": [0], "b": [2]}
    assert ran.err.count("left out 1 of 3 rows, with missing values") == 2


def test_a_model_in_the_place_of_the_points_is_not_read_as_a_table(walk):
    save(EXAMPLE, "mdm.json")
    swapped = walk("partition", "mdm.json", "labels.csv", "--cover")
    assert_refused(
        swapped, "mdm.json is a model where a table is expected: data first, then models"
    )


def test_resample_puts_other_clients_of_the_table_in_the_place_of_the_late(walk, tmp_path):
    (tmp_path / "many.csv").write_text(
        HEAD + "".join(f"x{i},0,5\n" for i in range(6)) + "y,1,5\nz,2,5\n"
    )
    arguments = ("partition", "labels.csv", "many.csv", "--no-replace")
    told = walk(*arguments, "--shortfall", "resample", "--json").json()
    assert told["n_redrawn"] == 2
    assert told["given"][0] == 20
    assert told["n_used"] == told["n_given"] == 40


def test_partition_records_version_seed_and_command(walk):
    walk("partition", "labels.csv", "clients.csv", "--seed", 6, "-o", "p.parquet")
    made = json.loads(pyarrow.parquet.read_schema("p.parquet").metadata[b"polyurn"])
    command = "polyurn partition labels.csv clients.csv --seed 6 -o p.parquet"
    assert made == {"polyurn": polyurn.__version__, "seed": 6, "command": command}


def test_categories_are_those_of_both_tables_together(walk, tmp_path):
    (tmp_path / "named.csv").write_text("label\nowl\ncat\ndog\ncat\n")
    (tmp_path / "who.csv").write_text(HEAD + "a,cat,2\nb,owl,1\n")
    ran = walk("partition", "named.csv", "who.csv")
    assert "3 categories, from the tables" in ran.err
    assert sorted(ran.json()["a"]) == [1, 3]
    assert ran.json()["b"] == [0]


ANIMALS = MDM([1.0], [[9.0, 3.0, 1.0]], Sizes.constant(4))


@pytest.fixture
def other_names(run, tmp_path):
    """Three kinds of animals as an MDM knows them, and points that are called otherwise."""
    save(ANIMALS, "animals.json", categories=["bird", "cat", "dog"])
    (tmp_path / "other.csv").write_text("label\n" + "a tom\nowl\nduck\nhound\n" * 9)
    (tmp_path / "numbers.csv").write_text("label\n" + "10\n9\n8\n" * 9)
    return run


def test_points_of_other_names_are_mapped_to_the_categories_of_the_mdm(other_names):
    mapped = ("--map", "a tom=cat,owl=bird,duck=bird,hound=dog")
    told = other_names("partition", "other.csv", "animals.json", "--cover", "--json", *mapped)
    assert told.json()["available"] == [18, 9, 9]


def test_by_position_the_values_in_order_are_the_categories_and_that_is_said(other_names):
    names = ("partition", "numbers.csv", "animals.json", "--cover", "-o", "p.json")
    ran = other_names(*names, "--map", "by-position")
    assert "by position: 8 is bird, 9 is cat, 10 is dog" in ran.err
    rows = np.tile([2, 1, 0], 9)
    assert load_partition("p.json").histograms(rows, 3).sum(axis=0).tolist() == [9, 9, 9]
    shares = load_partition("p.json").histograms(rows, 3)[:3].sum(axis=0) / 12
    assert shares[0] > shares[2]  # birds are what clients hold most


def test_points_of_a_table_are_mapped_to_the_names_of_its_clients(other_names, tmp_path):
    (tmp_path / "who.csv").write_text(HEAD + "a,cat,2\nb,bird,1\n")
    mapped = ("--map", "a tom=cat,owl=bird,duck=bird,hound=cat")
    ran = other_names("partition", "other.csv", "who.csv", "--json", *mapped)
    assert ran.json()["available"] == [18, 18]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], ["the categories are bird, cat, dog: if", "--map OLD=NEW", "by-position"]),
        (["--map", "owl=bird"], ["expected the 3 categories", "a tom, duck, hound do not match;"]),
        (["--map", "owl=fish"], ["the 3 categories bird, cat, dog, got", "do not match; say what"]),
        (["--map", "owl"], ["--map as OLD=NEW", "got 'owl'"]),
        (["--map", ""], ["--map as OLD=NEW"]),
        (
            ["--map", "by-position"],
            ["expected the 3 categories", "a tom", "take as many"],
        ),
    ],
)
def test_names_that_do_not_match_are_refused_with_the_way_on(other_names, options, words):
    ran = other_names("partition", "other.csv", "animals.json", "--cover", *options)
    assert_refused(ran, *words)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--category", "kind"], ["expected a column 'kind', got client, category, count"]),
        (["--categories", 2], ["not in the declared categories", "line 4"]),
        (["--categories", 4, "--shortfall", "wish"], None),
        (["--cover", "--shortfall", "refuse"], ["--shortfall has no effect with --cover"]),
        (["--cover", "--no-replace"], ["--replace has no effect with --cover"]),
        (["--seed", -1], ["'--seed': -1 is not in the range"]),
    ],
)
def test_partition_refuses_and_leaves_no_trace(walk, tmp_path, options, words):
    arguments = ("partition", "labels.csv", "clients.csv", *options)
    if words is None:  # typer's own words
        assert walk(*arguments).code == 2
    else:
        assert_leaves_no_trace(tmp_path, walk, arguments, *words)


def test_a_category_that_is_short_or_absent_is_named(walk, tmp_path):
    (tmp_path / "few.csv").write_text("label\n0\n1\n1\n")
    assert_leaves_no_trace(
        tmp_path, walk, ("partition", "few.csv", "clients.csv"), "do not have: 2;"
    )
    refusing = ("partition", "labels.csv", "big.csv", "--categories", 3, "--shortfall", "refuse")
    (tmp_path / "big.csv").write_text(HEAD + "a,0,25\na,1,1\n")
    assert_refused(walk(*refusing), "short of 5 points: 5 of category 0")


def test_names_of_categories_and_options_are_in_the_messages(walk, tmp_path):
    (tmp_path / "named.csv").write_text("kind\nowl\ncat\ncat\n")
    (tmp_path / "who.csv").write_text(HEAD + "a,cat,3\nb,dog,1\n")
    arguments = ("partition", "named.csv", "who.csv", "--category", "kind")
    assert_refused(walk(*arguments), "do not have: dog;", "--shortfall resample")
    refusing = walk(*arguments, "--shortfall", "refuse")
    assert_refused(refusing, "short of 2 points: 1 of category cat, 1 of category dog")
    (tmp_path / "dogs.csv").write_text(HEAD + "b,dog,1\n")
    resampling = walk(
        "partition", "named.csv", "dogs.csv", *arguments[3:], "--shortfall", "resample"
    )
    assert_refused(resampling, "of which points are left (cat, owl)")
    declared = walk(*arguments, "--categories", "cat,dog")
    assert_refused(declared, "named.csv: column 'kind': 1 of 3 values are not in the declared")
    both = walk(*arguments, "--categories", "cat,owl")
    assert_refused(both, "who.csv: column 'category': 1 of 2 values are not in the declared")


def test_resample_draws_from_the_clients_of_the_table(walk, tmp_path):
    (tmp_path / "two.csv").write_text("label\n" + "0\n" * 4 + "1\n" * 20)
    (tmp_path / "late.csv").write_text(HEAD + "a,0,9\nb,1,9\n")
    arguments = ("partition", "two.csv", "late.csv", "--no-replace")
    drawn = walk(*arguments, "--shortfall", "resample", "--json").json()
    assert drawn["n_redrawn"] == 1
    assert drawn["n_used"] == drawn["n_given"] == 18


@pytest.mark.parametrize(
    "option",
    [
        ["--categories", 7],
        ["--drop-empty"],
        ["--client", "x"],
        ["--count", "x"],
    ],
    ids=str,
)
def test_what_an_mdm_file_would_ignore_is_refused(walk, option):
    save(EXAMPLE, "mdm.json")
    refused = walk("partition", "labels.csv", "mdm.json", "--cover", *option)
    assert_refused(refused, f"{option[0]} has no effect with the MDM file mdm.json: leave it out")


def test_partition_refuses_files_that_it_cannot_write_or_read(walk):
    arguments = ("partition", "labels.csv", "clients.csv")
    assert_refused(walk(*arguments, "-o", "p.csv"), ".parquet or .json")
    assert_refused(walk("partition", "absent.csv", "clients.csv"), "cannot read absent.csv")
    save(EXAMPLE, "mdm.json")
    assert_refused(walk("partition", "labels.csv", "mdm.json"), "--clients 500", "--cover")
    none = walk("partition", "labels.csv", "mdm.json", "--clients", 0)
    assert_refused(none, "'--clients': 0 is not in the range")
    of_table = walk("partition", "labels.csv", "clients.csv", "--clients", 3)
    assert_refused(of_table, "--clients has no effect with clients.csv")


def test_clients_of_an_mdm_file_are_those_that_sample_draws(walk, tmp_path):
    save(EXAMPLE, "mdm.json")
    (tmp_path / "two.csv").write_text("label\n" + "0\n1\n" * 30)
    at_once = walk("partition", "two.csv", "mdm.json", "--clients", 7, "--seed", 3).json()
    walk("sample", "mdm.json", "--clients", 7, "--seed", 3, "-o", "drawn.csv")
    in_two = walk("partition", "two.csv", "drawn.csv", "--categories", 2, "--seed", 3).json()
    assert at_once == in_two
    assert len(at_once) == 7


# ----------------------------------------------------------------------------- crossed columns

FLIGHTS = "plane,origin,dest\n" + "".join(
    f"p{i},{origin},{dest}\n"
    for i in range(12)
    for origin, dest in [("EWR", "ATL"), ("JFK", "ATL"), ("EWR", "BOS")][: 1 + i % 3]
)
PROXY = "dest,origin\n" + "ATL,EWR\nATL,JFK\nBOS,EWR\n" * 4


def test_an_mdm_of_crossed_columns_finds_them_again_in_other_tables(run, tmp_path):
    (tmp_path / "flights.csv").write_text(FLIGHTS)
    (tmp_path / "proxy.csv").write_text(PROXY)
    asked = ("--client", "plane", "--category", "origin,dest")
    fitted = run("fit", "flights.csv", *asked, "--components", 1, "-o", "mdm.json")
    assert fitted.code == 0
    with open("mdm.json") as file:
        record = json.load(file)
    assert record["categories"] == ["EWR × ATL", "EWR × BOS", "JFK × ATL"]
    assert record["provenance"]["data"]["category"] == "origin,dest"
    assert run("score", "flights.csv", "mdm.json", "--json").json()["n_clients"] == 12
    few = ("--draws", "splits=100", "--folds", 0, "--json")
    compared = run("compare", "flights.csv", "mdm=mdm.json", *few)
    assert compared.json()["n_clients"] == 12
    covered = run("partition", "proxy.csv", "mdm.json", "--cover", "--json")
    assert covered.json()["n_used"] == 12
    assert "the category is in column 'origin,dest'" in covered.err


def test_proxy_data_are_partitioned_by_crossed_columns(run, tmp_path):
    (tmp_path / "flights.csv").write_text(FLIGHTS)
    (tmp_path / "proxy.csv").write_text(PROXY)
    counted = run(
        "histogram", "flights.csv", "--client", "plane", "--category", "origin,dest", "-o", "c.csv"
    )
    assert counted.code == 0
    columns = ("--category", "origin,dest")
    told = run("partition", "proxy.csv", "c.csv", *columns, "-o", "p.json", "--json").json()
    assert told["exact"]
    assert told["available"] == [4, 4, 4]
    parts = load_partition("p.json")
    assert [len(parts[i]) for i in range(3)] == [1, 2, 3]


def test_bins_of_crossed_columns_are_one_line(run, tmp_path):
    (tmp_path / "flights.csv").write_text(FLIGHTS)
    asked = ("histogram", "flights.csv", "--client", "plane", "--category", "origin,dest")
    assert_refused(run(*asked, "--bins", "0:4:1"), "expected one column for numbers or bins")


def test_proxy_points_of_combinations_that_no_client_has_are_left_out_and_said(run, tmp_path):
    (tmp_path / "flights.csv").write_text(FLIGHTS)
    (tmp_path / "proxy.csv").write_text("dest,origin\nBOS,JFK\n" + PROXY.partition("\n")[2])
    asked = ("--client", "plane", "--category", "origin,dest")
    assert run("fit", "flights.csv", *asked, "--components", 1, "-o", "mdm.json").code == 0
    covered = run("partition", "proxy.csv", "mdm.json", "--cover", "-o", "p.json")
    assert covered.code == 0
    assert "left out 1 proxy point of combinations that are not categories" in covered.err
    given = load_partition("p.json").indices
    assert sorted(given) == [*range(1, 13)]  # all rows but the first, by their place in the file
    (tmp_path / "proxy.csv").write_text("dest,origin\nBOS,JFK\nBOS,JFK\n")
    assert_refused(run("partition", "proxy.csv", "mdm.json", "--cover"), "2 of 2 values are not in")


@pytest.fixture
def styled(run, tmp_path):
    """`run`, in a folder with proxy points of two features, a style of them, and clients."""
    rng = np.random.default_rng(0)
    labels, features = rng.integers(2, size=2000), rng.normal(size=(2000, 2))
    names = np.array(["yes", "no"])[labels]
    columns = {"label": names, "a": features[:, 0], "b": features[:, 1]}
    table = pa.table(columns | {"both": features.tolist()})
    pyarrow.parquet.write_table(table, tmp_path / "proxy.parquet")
    lines = [f"{c},{name},8" for c in range(40) for name in ("no", "yes")]
    (tmp_path / "held.csv").write_text("client,category,count\n" + "\n".join(lines))
    save(plain_style(n_labels=2), "unnamed.json")
    made = {"categories": ("no", "yes"), "features": ("a", "b")}
    save(plain_style(n_labels=2), "style.json", **made)
    return run, features


@pytest.mark.parametrize(
    "options",
    [
        ("--style", "style.json"),
        ("--style", "unnamed.json", "--features", "a, b"),
        ("--style", "unnamed.json", "--features", "both"),
        ("--style", "style.json", "--cover"),
    ],
)
def test_partition_gives_points_of_a_style(styled, options):
    run, features = styled
    ran = run("partition", "proxy.parquet", "held.csv", "-o", "p.parquet", "--json", *options)
    assert ran.code == 0
    assert style_rest(features, load_partition("p.parquet")) > 4
    assert ran.json()["style"]["n_directions_used"] == 2
    assert "styles along 2 directions; " in ran.err


def test_partition_takes_the_archive_that_a_style_was_made_of(styled):
    run, features = styled
    table = pyarrow.parquet.read_table("proxy.parquet")
    labels = (table["label"].to_numpy() == "yes").astype(int)
    np.savez("proxy.npz", features=features.reshape(-1, 2, 1), labels=labels)
    lines = [f"{c},{label},8" for c in range(40) for label in range(2)]
    with open("numbered.csv", "w") as file:
        file.write("client,category,count\n" + "\n".join(lines))
    asked = ("numbered.csv", "--style", "unnamed.json", "-o", "p.parquet")
    assert run("partition", "proxy.npz", *asked).code == 0
    parts = load_partition("p.parquet")
    assert style_rest(features, parts) > 4
    assert (parts.histograms(labels, 2) == 8).all()
    refused = run("partition", "proxy.npz", *asked, "--features", "a")
    assert_refused(refused, "--features has no effect with")


def test_partition_says_when_directions_were_left_out(styled):
    run, _ = styled
    with open("large.csv", "w") as file:
        file.write("client,category,count\na,no,700\nb,no,700\nb,yes,650\n")
    ran = run("partition", "proxy.parquet", "large.csv", "--style", "style.json", "-o", "p.json")
    assert ran.code == 0
    assert "find fewer proxy points of their style than they ask for" in " ".join(ran.err.split())
    assert "StyleWarning" not in ran.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--features", "a"), "--features"),
        (("--style", "unnamed.json"), "expected --features, columns of proxy.parquet"),
        (("--style", "style.json", "--features", "c"), "'c'"),
        (
            ("--style", "style.json", "--categories", "yes,no"),
            "categories no, yes, got the 2 categories yes, no",
        ),
        (("--style", "style.json", "--features", "a"), "points of 2 features"),
        (
            ("--style", "style.json", "--categories", "no,yes,so"),
            "got the 3 categories no, yes, so",
        ),
    ],
)
def test_partition_refuses_a_style_that_does_not_fit(styled, tmp_path, options, said):
    run, _ = styled
    ran = run("partition", "proxy.parquet", "held.csv", "-o", "p.json", *options)
    assert_refused(ran, said)
    assert not (tmp_path / "p.json").exists()


def test_an_unknown_label_of_an_archive_is_said_with_its_row(run):
    np.savez("points.npz", features=np.zeros((4, 2)), labels=[0, 1, 2, 7])
    ran = run("partition", "points.npz", "clients.csv", "--categories", 3)
    assert_refused(ran, "points.npz", "not in the declared categories", "row 3, counted from 0")


def test_labels_that_are_no_categories_are_not_refused_without_both_lists(run, tmp_path):
    (tmp_path / "clients.csv").write_text("client,category\n" + "a,burn\na,flu\nb,flu\n")
    assert run("fit", "clients.csv", "--components", 1, "-o", "mdm.json").code == 0
    (tmp_path / "proxy.csv").write_text("label\nGrippe\nBrand\n")
    lists = "its values are Brand, Grippe; the categories are burn, flu"
    assert_refused(run("partition", "proxy.csv", "mdm.json", "--clients", 2), lists)


def test_a_federations_name_without_zoo_is_not_taken_for_a_missing_option(walk):
    ran = walk("partition", "labels.csv", "rodents", "--clients", 3)
    assert_refused(ran, "did you mean zoo:rodents?")


def test_rows_that_clients_share_are_never_left_unsaid(walk):
    ran = walk("partition", "labels.csv", "zoo:rodents", "--clients", 9, "-o", "p.json")
    assert "rows are in more than one client" in ran.err
    assert "caution: " in ran.err
    assert "for clients that share no row: --cover" in ran.err
    ran = walk("partition", "labels.csv", "zoo:rodents", "--cover", "-o", "p.json")
    assert "share" not in ran.err


def test_test_rows_that_others_train_on_are_never_left_unsaid_even_quietly(walk):
    given = ("partition", "labels.csv", "zoo:rodents", "--test", 0.2, "-o", "p.json", "--quiet")
    ran = walk(*given, "--clients", 9)
    assert ran.code == 0
    assert "different test rows are rows that clients train on, too" in ran.err
    assert walk(*given, "--cover").err == ""


def test_a_text_that_may_stand_for_a_missing_label_is_remarked_on(walk):
    with open("na.csv", "w") as file:
        file.write("label\n" + "ant\nbee\nNA\n" * 9)
    ran = walk("partition", "na.csv", "zoo:rodents", "--cover", "-o", "p.json")
    assert "taken as labels, and not as missing values: NA" in ran.err
