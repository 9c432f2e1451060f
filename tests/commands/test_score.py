"""`polyurn score`: numbers that may be missing, and clients that do not fit."""

from cli_walk import EXAMPLE, HEAD, assert_refused
from polyurn.storage.models import save


def test_what_a_single_client_leaves_open_is_null_in_json(run, tmp_path):
    save(EXAMPLE, "mdm.json")
    (tmp_path / "one.csv").write_text(HEAD + "a,0,9\n")
    scored = run("score", "mdm.json", "one.csv", "--json").json()
    assert scored["log_likelihood"] < 0
    assert scored["log_likelihood_standard_error"] is None


def test_the_score_of_an_impossible_client_is_null_in_json(run, tmp_path):
    save(EXAMPLE, "mdm.json")
    (tmp_path / "held-out.csv").write_text(HEAD + "a,0,3\nb,1,9\n")  # every client holds 9
    scored = run("score", "mdm.json", "held-out.csv", "--json").json()
    assert scored["n_clients"] == 2
    assert scored["log_likelihood"] is None


def test_a_client_larger_than_the_mdm_knows_is_one_line(run, tmp_path):
    save(EXAMPLE, "mdm.json", categories=["0", "1"])
    (tmp_path / "large.csv").write_text(HEAD + "a,0,10\n")
    assert_refused(run("score", "mdm.json", "large.csv"), "holds 10 points", "max_size is 9")
