"""`polyurn zoo`, `zoo show`, `compare-to-zoo`, and zoo:NAME in the place of an MDM file."""

import json

import numpy as np
import pytest

from cli_walk import assert_refused
from polyurn import __version__, load_partition, zoo
from polyurn.zoo.cards import MOST_AUC

LABELS = [["cat", "dog", "bird"][i] for i in np.random.default_rng(0).integers(0, 3, 900)]


@pytest.fixture
def labels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "labels.csv").write_text("label\n" + "\n".join(LABELS) + "\n")
    return "labels.csv"


def test_the_list_has_every_federation(run):
    ran = run("zoo")
    assert ran.code == 0
    assert all(name in ran.out for name in zoo.names())
    listed = run("zoo", "--json").json()["federations"]
    assert [one["name"] for one in listed] == list(zoo.names())


def test_a_card_has_source_licence_and_likeness(run):
    for name in ("celeba_hair", "zoo:celeba_hair"):
        ran = run("zoo", "show", name)
        assert ran.code == 0
        for word in ("a celebrity", "ICCV 2015", "non-commercial", "AUC", "zoo/build.py"):
            assert word in ran.out
    assert run("zoo", "show", "celeba_hair", "--json").json()["n_categories"] == 7


def test_the_list_says_what_its_columns_and_its_star_are(run):
    said = run("zoo").out
    assert "median size" in said
    for words in (
        "α: best single Dirichlet",
        "C: categories",
        "energy ratio above the range",
    ):
        assert words in said
    assert f"*: the AUC is above {MOST_AUC:.2f}" in said


@pytest.mark.parametrize(
    ("name", "kind"),
    [("flights", "Dirichlet-multinomials with"), ("rodents", "Dirichlet-tree multinomials with"),
     ("digits", "Dirichlet-tree multinomials (with laws on splits) with")],
)  # fmt: skip
def test_a_card_ends_with_methods_for_a_paper_and_the_source_in_bibtex(run, name, kind):
    said = " ".join(run("zoo", "show", name).out.partition("We partition")[2].split())
    card = zoo.card(name)
    mdm = card.likeness["mdm"]
    for words in (
        f"{kind} K = {card.n_components} components",
        f"fitted to {card.n_clients:,} natural clients (polyurn {__version__}, zoo:{name})",
        f"an energy ratio of {mdm.energy_ratio:.2f}",
        f"AUC of {mdm.auc.value:.2f}",
        f"@misc{{{name}, key = {{{name}}}, title = {{{card.title}}}",
        f"howpublished = {{{card.source}}}, note = {{Date of the data: {card.date}}} }}",
    ):
        assert words in said
    alpha = card.profile.heterogeneity.alpha.value
    assert ("about α = ∞ (∞ to ∞)" in said) == np.isinf(alpha)


def test_an_unknown_federation_is_one_line(run, labels):
    assert_refused(run("zoo", "show", "celeba_hare"), "did you mean celeba_hair")
    assert_refused(run("partition", labels, "zoo:celeba", "--clients", "3"), "no federation")


def test_a_partition_takes_the_labels_of_the_data(run, labels):
    told = run("partition", labels, "zoo:celeba_hair", "--clients", 50, "-o", "parts.json")
    assert told.code == 0
    found = load_partition("parts.json")
    n = found.histograms(np.unique(LABELS, return_inverse=True)[1], 3).sum(axis=1)
    assert len(found) == 50
    assert 5 <= n.min() <= n.max() <= 35


def test_the_command_and_python_give_the_same_clients(run, labels):
    options = ("--match", "marginal", "--mean-size", 40, "--seed", 5)
    run("partition", labels, "zoo:flights", "--clients", 20, *options, "-o", "parts.json")
    mdm = zoo.like("flights", LABELS, match="marginal", mean_size=40)
    counts = load_partition("parts.json").histograms(np.unique(LABELS, return_inverse=True)[1], 3)
    assert counts.tolist() == mdm.sample(20, rng=5).tolist()


def test_samples_have_as_many_labels_as_are_asked_for(run, labels):
    options = ("--clients", 4, "--categories", "cat,dog", "--mean-size", 9, "--json")
    assert np.shape(run("sample", "zoo:flights", *options).json()["counts"]) == (4, 2)
    assert_refused(run("sample", "zoo:flights", "--clients", 4, "--match", "rank"), "--categories")


def test_a_plan_is_made_for_clients_like_those_of_a_federation(run):
    options = (
        "--clients",
        2000,
        "--categories",
        3,
        "--components",
        2,
        "--epsilon",
        "4",
        "--runs",
        1,
    )
    told = run("privacy", "plan", *options, "--like", "zoo:lecturers", "--match", "rank", "--json")
    assert told.code == 0
    assert len(told.json()["losses"]) == 2


def test_options_of_mixtures_are_refused_with_a_table(run, labels):
    table = "clients.csv"
    with open(table, "w") as file:
        file.write("client,category,count\na,cat,3\nb,dog,2\n")
    assert_refused(run("partition", labels, table, "--match", "rank"), "--match has no effect")


def test_a_partition_a_table_and_a_mixture_are_compared_to_the_zoo(run, labels):
    run("partition", labels, "zoo:celeba_hair", "--clients", 300, "-o", "parts.json")
    run("sample", "zoo:lecturers", "--clients", 300, "-o", "clients.csv")
    cases = (("celeba_hair", "parts.json", "--labels", labels), ("lecturers", "clients.csv"),
             ("lecturers", "zoo:lecturers"))  # fmt: skip
    for name, *arguments in cases:
        rows = run("compare-to-zoo", *arguments, "--json").json()["rows"]
        assert name in [row["name"] for row in rows[:3]]
    ran = run("compare-to-zoo", "clients.csv")
    assert "Hellinger" in ran.err
    assert "about Dirichlet(" in ran.err
    json.loads(run("compare-to-zoo", "clients.csv", "--json").out)


def test_the_page_is_written_and_opened_only_at_a_terminal(run, tmp_path, monkeypatch):
    opened = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("webbrowser.open", opened.append)
    ran = run("zoo", "--page")
    assert ran.code == 0
    assert (tmp_path / "zoo.html").read_text("utf-8").startswith("<!doctype html>")
    assert (tmp_path / "zoo.html").resolve().as_uri() in ran.err
    assert opened == []
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert run("zoo", "--page").code == 0
    assert opened == [(tmp_path / "zoo.html").resolve().as_uri()]
    assert_refused(run("zoo", "--page", "--json"), "--page has no effect with --json")
