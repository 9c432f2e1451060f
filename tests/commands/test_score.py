"""`polyurn score`: numbers that may be missing, and clients that do not fit."""

from cli_walk import EXAMPLE, HEAD, assert_refused
from polyurn import MDM, Sizes
from polyurn.storage.models import save


def test_what_a_single_client_leaves_open_is_null_in_json(run, tmp_path):
    save(EXAMPLE, "mdm.json")
    (tmp_path / "one.csv").write_text(HEAD + "a,0,9\n")
    scored = run("score", "one.csv", "mdm.json", "--json").json()
    assert scored["log_likelihood"] < 0
    assert scored["log_likelihood_standard_error"] is None


def test_the_score_of_an_impossible_client_is_null_in_json(run, tmp_path):
    save(EXAMPLE, "mdm.json")
    (tmp_path / "held-out.csv").write_text(HEAD + "a,0,3\nb,1,9\n")  # every client holds 9
    scored = run("score", "held-out.csv", "mdm.json", "--json").json()
    assert scored["n_clients"] == 2
    assert scored["log_likelihood"] is None


def test_a_client_larger_than_the_mdm_knows_is_one_line(run, tmp_path):
    save(EXAMPLE, "mdm.json", categories=["0", "1"])
    (tmp_path / "large.csv").write_text(HEAD + "a,0,10\n")
    assert_refused(run("score", "large.csv", "mdm.json"), "holds 10 points", "max_size is 9")


def test_clients_of_other_names_score_as_those_of_the_mdms_own(run, tmp_path):
    save(EXAMPLE, "mdm.json", categories=["bird", "cat"])
    (tmp_path / "own.csv").write_text(HEAD + "a,bird,5\na,cat,4\nb,cat,9\n")
    (tmp_path / "other.csv").write_text(HEAD + "a,owl,2\na,duck,3\na,tom,4\nb,tom,9\n")
    (tmp_path / "ranks.csv").write_text(HEAD + "a,1,5\na,2,4\nb,2,9\n")
    own = run("score", "own.csv", "mdm.json", "--json").json()
    mapped = ("--map", "owl=bird,duck=bird,tom=cat", "--json")
    assert run("score", "other.csv", "mdm.json", *mapped).json() == own
    assert run("score", "ranks.csv", "mdm.json", "--map", "by-position", "--json").json() == own
    assert_refused(run("score", "ranks.csv", "mdm.json"), "the categories are bird, cat", "--map")


def test_swapped_arguments_are_not_one_more_riddle(run):
    save(EXAMPLE, "mdm.json")
    swapped = run("score", "mdm.json", "clients.csv")
    assert_refused(
        swapped, "mdm.json is a model where a table is expected: data first, then models"
    )
    twice = run("score", "clients.csv", "clients.csv")
    assert_refused(
        twice, "clients.csv is a table where a model is expected: data first, then models"
    )


def test_columns_of_a_wide_table_never_count_for_another_category(run, tmp_path):
    save(EXAMPLE, "mdm.json", categories=["bird", "cat"])
    (tmp_path / "wide.csv").write_text("client,bird,cat\na,5,4\nb,0,9\n")
    (tmp_path / "turned.csv").write_text("client,cat,bird\na,4,5\nb,9,0\n")
    (tmp_path / "other.csv").write_text("client,owl,tom\na,5,4\nb,0,9\n")
    right = run("score", "wide.csv", "mdm.json").out
    assert run("score", "turned.csv", "mdm.json").out == right
    assert run("score", "other.csv", "mdm.json", "--map", "owl=bird,tom=cat").out == right
    by_position = run("score", "other.csv", "mdm.json", "--map", "by-position")
    assert by_position.out == right
    assert "by position: owl is bird, tom is cat" in by_position.err
    (tmp_path / "half.csv").write_text("client,bird,cat,Dog\na,5,4,1\nb,0,9,1\n")
    three = MDM([1.0], [[1.0, 1.0, 1.0]], Sizes.constant(10))
    save(three, "three.json", categories=["bird", "cat", "dog"])
    assert_refused(run("score", "half.csv", "three.json"), "got none for dog", "Dog; say", "--map")
    assert run("score", "half.csv", "three.json", "--map", "Dog=dog").code == 0
    save(EXAMPLE, "nameless.json")
    refused = run("score", "wide.csv", "nameless.json")
    assert_refused(refused, "2 categories without names", "bird, cat", "--map")
    nameless = run("score", "wide.csv", "nameless.json", "--map", "by-position").out
    assert nameless.splitlines()[:5] == right.splitlines()[:5]  # below, categories have names


def test_crossed_columns_are_mapped_by_their_parts_or_as_a_whole(run, tmp_path):
    save(EXAMPLE, "mdm.json", categories=["EWR × Atlanta", "JFK × Boston"])
    (tmp_path / "rows.csv").write_text("client,from,to\n" + "a,EWR,ATL\na,EWR,ATL\nb,JFK,BOS\n" * 3)
    (tmp_path / "long.csv").write_text(
        "client,category,count\na,EWR × Atlanta,6\nb,JFK × Boston,3\n"
    )
    right = run("score", "long.csv", "mdm.json").out
    crossed = ("score", "rows.csv", "mdm.json", "--category", "from,to")
    assert_refused(run(*crossed), "not in the declared categories", "--map")
    for asked in ("ATL=Atlanta,BOS=Boston", "EWR × ATL=EWR × Atlanta,BOS=Boston", "by-position"):
        assert run(*crossed, "--map", asked).out == right
