"""`polyurn codebook`: from proxy points and records to a book, codes, and simulated clients."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet
import pytest

from cli_walk import EXAMPLE, assert_leaves_no_trace, assert_refused
from polyurn import load, save
from polyurn.storage.codebook_json import load_codebook
from polyurn.storage.federation_folder import read_node
from polyurn.storage.mdm_json import load_saved
from polyurn.storage.partitions import load_partition
from polyurn.storage.tables import read_table

NAMES = np.array(["cat", "dog"])
MAKE = ("codebook", "make", "proxy.csv", "--styles", 2)
ENCODE = ("codebook", "encode", "book.json")
FIT = ("fit", "coded.parquet", "--rounds", 20)


def points(slants, rng):
    """Points of two labels whose second feature is a slant: features and labels."""
    labels = rng.integers(2, size=len(slants))
    return np.column_stack([9.0 * labels, slants]) + rng.normal(size=(len(slants), 2)), labels


def csv(features, labels, clients=None):
    lines = [f"{NAMES[y]},{x[0]},{x[1]}" for x, y in zip(features, labels, strict=True)]
    head = "label,width,slant"
    if clients is not None:
        head, lines = f"writer,{head}", [f"w{i},{s}" for i, s in zip(clients, lines, strict=True)]
    return "\n".join([head, *lines]) + "\n"


@pytest.fixture
def files(tmp_path):
    """A pool of both slants, and 200 clients who each have one of them, seven in ten the left."""
    rng = np.random.default_rng(0)
    pool, pool_labels = points(rng.choice([-4.0, 4.0], size=2000), rng)
    owner = np.repeat(np.arange(200), rng.integers(10, 30, size=200))
    slants = rng.choice([-4.0, 4.0], p=[0.7, 0.3], size=200)
    held, labels = points(slants[owner], rng)
    (tmp_path / "proxy.csv").write_text(csv(pool, pool_labels))
    (tmp_path / "records.csv").write_text(csv(held, labels, owner))
    np.savez(tmp_path / "proxy.npz", features=pool, labels=pool_labels)
    np.savez(tmp_path / "records.npz", features=held, labels=labels, clients=owner)
    images = {"label": NAMES[pool_labels], "pixels": list(pool)}
    pyarrow.parquet.write_table(pa.table(images), tmp_path / "proxy.parquet")


@pytest.fixture
def coded(run, files):
    """A book, encoded points of both sides, and fits to codes and to labels."""
    run(*MAKE, "-o", "book.json")
    run(*ENCODE, "proxy.csv", "-o", "pool.csv")
    run(*ENCODE, "records.csv", "--client", "writer", "-o", "coded.parquet")
    own = ("--client", "writer")
    fits = (
        ("--category", "code", "--categories", "book.json", "--components", 2, "-o", "codes.json"),
        ("--category", "label", "--components", 1, "-o", "labels.json"),
    )
    for options in fits:
        assert run(*FIT, *own, *options).code == 0
    assert run("sample", "labels.json", "--clients", 400, "-o", "simulated.csv").code == 0
    return run


def histograms(table, parts, column, names):
    """How many points of each category every client of a partition holds."""
    codes = np.array([list(names).index(v) for v in read_table(table)[column].to_pylist()])
    return parts.histograms(codes, n_categories=len(names))


def dispersion(counts):
    """Pearson's χ² of clients against all of them together, over its degrees of freedom."""
    counts = counts[:, counts.sum(axis=0) > 0]
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
    return ((counts - expected) ** 2 / expected).sum() / ((len(counts) - 1) * (counts.shape[1] - 1))


# ------------------------------------------------------------------------------- the whole way


def test_from_tables_to_clients_labels_are_exact_and_codes_as_dispersed_as_the_true_clients(coded):
    done = coded(
        "partition", "pool.csv", "simulated.csv", "--codebook", "book.json", "--codes", "codes.json",
        "-o", "parts.json",
    )  # fmt: skip
    assert done.code == 0
    parts = load_partition("parts.json")
    asked = coded("histogram", "simulated.csv", "--json").json()
    by_label = histograms("pool.csv", parts, "label", NAMES)
    assert by_label.tolist() == asked["counts"]
    book = load_codebook("book.json")
    simulated = histograms("pool.csv", parts, "code", book.categories)
    true = read_table("coded.parquet")
    rows = {who: i for i, who in enumerate(dict.fromkeys(true["writer"].to_pylist()))}
    held = np.zeros((len(rows), len(book.categories)))
    for who, code in zip(true["writer"].to_pylist(), true["code"].to_pylist(), strict=True):
        held[rows[who], book.categories.index(code)] += 1
    # Clients are of two kinds, which decides most of the χ²; the share of one kind has a standard error
    # of 3 %, and the χ² follows it. A fifth is six times that. Without styles the index is 1.
    assert dispersion(held) > 3
    assert dispersion(simulated) == pytest.approx(dispersion(held), rel=0.2)


def test_clients_of_a_table_keep_their_ids_and_label_totals(coded):
    coded(
        "partition", "pool.csv", "coded.parquet", "--client", "writer", "--category", "label",
        "--codebook", "book.json", "--codes", "codes.json", "-o", "parts.parquet",
    )  # fmt: skip
    parts, true = load_partition("parts.parquet"), read_table("coded.parquet").to_pylist()
    held = histograms("pool.csv", parts, "label", NAMES)
    for who, row in zip(parts.ids, held, strict=True):
        own = [one["label"] for one in true if one["writer"] == who]
        assert row.tolist() == [own.count("cat"), own.count("dog")]


def test_covering_every_point_draws_clients_with_codes_given_labels(coded):
    done = coded(
        "partition", "pool.csv", "labels.json", "--cover", "--codebook", "book.json", "--codes",
        "codes.json", "-o", "parts.json",
    )  # fmt: skip
    assert "2,000 points given, 2,000 of 2,000 proxy points used" in done.err
    simulated = histograms(
        "pool.csv", load_partition("parts.json"), "code", load_codebook("book.json").categories
    )
    assert dispersion(simulated) > 3


def test_sampled_clients_have_the_label_totals_of_the_fit_to_labels_and_no_code_that_proxies_lack(
    coded, tmp_path
):
    kept = [
        line
        for line in (tmp_path / "pool.csv").read_text().splitlines()
        if "cat × other" not in line
    ]
    (tmp_path / "pool.csv").write_text("\n".join(kept) + "\n")
    given = ("--codebook", "book.json", "--labels", "labels.json", "--clients", 400)
    coded("sample", "codes.json", *given, "--proxy", "pool.csv", "-o", "drawn.csv")
    drawn = read_table("drawn.csv").to_pylist()
    totals = np.zeros((400, 2), int)
    for row in drawn:
        totals[int(row["client"]), int(row["category"].startswith("dog"))] += int(row["count"])
    assert totals.tolist() == coded("histogram", "simulated.csv", "--json").json()["counts"]
    assert "cat × other" not in {row["category"] for row in drawn}
    free = coded("sample", "codes.json", *given)
    assert "cat × other" in free.out


def test_points_of_a_code_that_no_client_was_fitted_with_are_left_out(coded):
    table = read_table("coded.parquet")
    seen = pa.compute.not_equal(table["code"], "cat × other")
    pyarrow.parquet.write_table(table.filter(seen), "seen.parquet")
    coded(
        "fit", "seen.parquet", "--client", "writer", "--category", "code", "--components", 2,
        "--rounds", 5, "-o", "seen.json",
    )  # fmt: skip
    assert len(load_saved("seen.json").categories) == 5
    given = ("--codebook", "book.json", "--codes", "seen.json", "-o", "parts.json")
    done = coded("partition", "pool.csv", "simulated.csv", *given)
    n_other = read_table("pool.csv")["code"].to_pylist().count("cat × other")
    assert f"left out {n_other} proxy points of codes that are no category of seen.json" in done.err
    by_label = histograms("pool.csv", load_partition("parts.json"), "label", NAMES)
    assert by_label.tolist() == coded("histogram", "simulated.csv", "--json").json()["counts"]


# ------------------------------------------------------------------------------- make and encode


def test_make_writes_a_book_with_the_names_of_labels_and_columns(run, files):
    ran = run(*MAKE, "-o", "book.json")
    assert "2 features, from proxy.csv" in ran.err
    assert "wrote book.json: 6 categories of 2 labels" in ran.err
    saved = load_codebook("book.json")
    assert saved.labels == ("cat", "dog")
    assert saved.features == ("width", "slant")
    assert saved.categories[:3] == ("cat × style 0", "cat × style 1", "cat × other")
    assert load("book.json") == saved.book
    assert (
        "polyurn codebook make proxy.csv"
        in json.loads(Path("book.json").read_text())["made"]["command"]
    )


def test_a_book_is_shown_label_by_label(run, files):
    made = run(*MAKE)
    assert "codebook of 2 labels and 2 features" in " ".join(made.out.split())
    run(*MAKE, "-o", "book.json")
    assert run("show", "book.json").out == made.out
    record = run("show", "book.json", "--json").json()
    assert record == run(*MAKE, "--json").json()
    assert (record["labels"], record["n_styles"]) == (["cat", "dog"], [2, 2])


def test_encoded_points_are_the_rows_of_the_table_with_client_label_and_code(run, files):
    run(*MAKE, "-o", "book.json")
    ran = run(*ENCODE, "records.csv", "--client", "writer", "-o", "coded.csv")
    assert "of them are 'other'" in ran.err
    coded, records = read_table("coded.csv"), read_table("records.csv")
    assert coded.column_names == ["writer", "label", "code"]
    for name in ("writer", "label"):
        assert coded[name].to_pylist() == records[name].to_pylist()
    saved = load_codebook("book.json")
    features = np.column_stack([records[f].to_numpy().astype(float) for f in saved.features])
    labels = [saved.labels.index(name) for name in records["label"].to_pylist()]
    codes = saved.book.encode(features, labels)
    assert coded["code"].to_pylist() == [saved.categories[code] for code in codes]
    assert run(*ENCODE, "records.csv", "--client", "writer").out == Path("coded.csv").read_text()


def test_archives_give_the_same_styles_as_tables(run, files):
    run(*MAKE, "-o", "book.json")
    run("codebook", "make", "proxy.npz", "--styles", 2, "-o", "numbered.json")
    assert load("numbered.json") == load("book.json")
    run(*ENCODE, "records.csv", "-o", "a.csv")
    run("codebook", "encode", "numbered.json", "records.npz", "-o", "b.csv")
    a, b = read_table("a.csv"), read_table("b.csv")
    assert b.column_names == ["client", "label", "code"]
    as_names = [NAMES[int(code[0])] + code[1:] for code in b["code"].to_pylist()]
    assert a["code"].to_pylist() == as_names


def test_features_may_be_a_column_of_lists_whose_name_the_book_keeps(run, files):
    run(
        "codebook",
        "make",
        "proxy.parquet",
        "--features",
        "pixels",
        "--styles",
        2,
        "-o",
        "book.json",
    )
    assert load_codebook("book.json").features == ("pixels",)
    assert run(*ENCODE, "proxy.parquet", "-o", "coded.parquet").code == 0
    assert_refused(run(*ENCODE, "proxy.csv"), "proxy.csv", "'pixels'")


# ------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--styles", "0"], ["n_styles of at least 1"]),
        (["--coverage", "1.5"], ["expected a coverage above 0 and at most 1"]),
        (["--features", "width,no"], ["proxy.csv", "'no'"]),
        (["--features", "label"], ["expected numbers in column 'label'"]),
        (["--label", "word"], ["proxy.csv", "'word'"]),
        (["--categories", "cat,cow"], ["proxy.csv", "not in the declared categories"]),
    ],
    ids=str,
)
def test_a_book_that_cannot_be_made_is_one_line_and_no_file(run, files, tmp_path, options, words):
    make = ("codebook", "make", "proxy.csv", *options)
    assert_leaves_no_trace(tmp_path, run, make, *words)


def test_a_book_is_written_to_json_only_and_not_over_its_points(run, files):
    assert_refused(run(*MAKE, "-o", "book.csv"), "expected a .json file")
    run(*MAKE, "-o", "book.json")
    again = run(*ENCODE, "proxy.csv", "-o", "proxy.csv")
    assert_refused(again, "proxy.csv is read by this command")
    assert_refused(
        run(*ENCODE, "proxy.csv", "-o", "codes.json"), "expected a .parquet, .csv or .tsv"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["book.json", "cows.csv"], ["cows.csv: column 'label': book.json has no style", "line 3"]),
        (
            ["book.json", "proxy.csv", "--features", "width"],
            ["proxy.csv: expected points of 2 feat"],
        ),
        (["book.json", "words.csv"], ["words.csv: expected a column 'label'", "with --label"]),
        (["book.json", "proxy.csv", "--client", "who"], ["proxy.csv", "'who'", "with --client"]),
        (["book.json", "proxy.npz"], ["expected a table, whose labels have names"]),
        (["numbers.json", "proxy.csv"], ["expected --features, columns of proxy.csv"]),
        (["numbers.json", "proxy.npz", "--label", "x"], ["--label has no effect with .npz files"]),
        (
            ["numbers.json", "three.npz"],
            ["three.npz: column 'label': numbers.json has no style of the labels of 1 of 3 rows"],
        ),
        (
            ["numbers.json", "wide.npz"],
            ["wide.npz: expected points of 2 features, as in numbers.json"],
        ),
        (["book.json", "huge.csv"], ["huge.csv", "too large to square"]),
        (["mdm.json", "proxy.csv"], ["mdm.json is not a codebook file", "got 'polyurn.mdm'"]),
        (["proxy.csv", "proxy.csv"], ["proxy.csv is not a codebook file"]),
        (["none.json", "proxy.csv"], ["cannot read none.json"]),
        (["book.json", "proxy.csv", "--label", "slant", "--client", "none"], ["'none'"]),
    ],
    ids=str,
)
def test_points_that_cannot_be_encoded_are_one_line_and_no_file(
    run, files, tmp_path, arguments, words
):
    run(*MAKE, "-o", "book.json")
    run("codebook", "make", "proxy.npz", "--styles", 2, "-o", "numbers.json")
    save(EXAMPLE, "mdm.json")
    (tmp_path / "cows.csv").write_text("label,width,slant\ncat,1,2\ncow,1,2\n")
    (tmp_path / "huge.csv").write_text("label,width,slant\ncat,1,2\ncat,1e200,2\n")
    (tmp_path / "words.csv").write_text("word,width,slant\ncat,1,2\n")
    np.savez(tmp_path / "three.npz", features=np.zeros((3, 2)), labels=[0, 1, 2])
    np.savez(tmp_path / "wide.npz", features=np.zeros((2, 3)), labels=[0, 1])
    ran = run("codebook", "encode", *arguments, "-o", "out.csv")
    assert_refused(ran, *words)
    assert not (tmp_path / "out.csv").exists()


def test_a_column_that_is_called_code_already_is_not_written_over(run, files, tmp_path):
    run(*MAKE, "-o", "book.json")
    text = (tmp_path / "proxy.csv").read_text().replace("label", "code", 1)
    (tmp_path / "named.csv").write_text(text)
    refused = run(*ENCODE, "named.csv", "--label", "code")
    assert_refused(refused, "the column of codes will be called 'code'; rename")


PARTITION = ("partition", "pool.csv", "simulated.csv")
BOTH = ("--codebook", "book.json", "--codes", "codes.json")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ((*PARTITION, "--codebook", "book.json"), ["expected --codes"]),
        ((*PARTITION, "--codes", "codes.json"), ["--codes has no effect without --codebook"]),
        (
            ("partition", "pool.csv", "large.csv", *BOTH),
            ["clients that codes.json cannot have: a client holds 99 points"],
        ),
        ((*PARTITION, *BOTH, "--shortfall", "resample"), ["would change the labels of clients"]),
        ((*PARTITION, *BOTH, "--categories", "2"), ["--categories has no effect with --codebook"]),
        (("partition", "proxy.csv", "simulated.csv", *BOTH), ["has no column 'code'", "encode"]),
        (("partition", "other.csv", "simulated.csv", *BOTH), ["other.csv", "codes of book.json"]),
        (("partition", "swapped.csv", "simulated.csv", *BOTH), ["each point's own label", "line 2"]),
        (("partition", "cats.csv", "simulated.csv", *BOTH), ["no proxy point: dog"]),
        (("partition", "cats.csv", "labels.json", "--cover", *BOTH), ["labels", "dog"]),
        (
            (*PARTITION, "--codebook", "book.json", "--codes", "labels.json"),
            ["labels.json is no mixture over the codes of book.json", "--category code"],
        ),
        (
            ("sample", "codes.json", "--clients", 3, "--codebook", "book.json"),
            ["expected --labels"],
        ),
        (("sample", "codes.json", "--clients", 3, "--labels", "labels.json"), ["without --codebook"]),
        (
            ("sample", "codes.json", "--clients", 3, "--codebook", "book.json", "--labels",
             "codes.json"),
            ["expected clients with the labels of book.json, cat, dog, got cat × style 0"],
        ),
    ],
    ids=lambda value: " ".join(map(str, value)),
)  # fmt: skip
def test_clients_that_cannot_be_drawn_given_labels_are_one_line(coded, tmp_path, command, words):
    pool = (tmp_path / "pool.csv").read_text()
    (tmp_path / "other.csv").write_text(pool.replace("style 1", "style 7"))
    swapped = pool.replace('"cat"', '"x"').replace('"dog"', '"cat"').replace('"x"', '"dog"')
    (tmp_path / "swapped.csv").write_text(swapped)
    cats = [line for line in pool.splitlines() if "dog" not in line]
    (tmp_path / "large.csv").write_text("client,category,count\na,cat,99\n")
    (tmp_path / "cats.csv").write_text("\n".join(cats) + "\n")
    assert_refused(coded(*command), *words)


def test_a_federation_is_set_up_for_the_codes_of_a_book(run, files):
    run(*MAKE, "-o", "book.json")
    made = run(
        "federation", "init", "fed", "--nodes", 2, "--categories", "book.json", "--max-size", 30
    )
    assert made.code == 0
    declared = read_node(Path("fed/nodes/node-1")).federation.declared
    assert declared == load_codebook("book.json").categories


def test_declared_categories_in_a_file_of_another_kind_are_refused(run):
    save(EXAMPLE, "mdm.json")
    fitting = ("fit", "clients.csv", "--components", 1, "--categories")
    assert_refused(run(*fitting, "mdm.json"), "mdm.json is not a codebook file")
    assert_refused(run(*fitting, "none.json"), "cannot read none.json")


def test_several_names_are_names_even_if_the_last_ends_as_a_file_does(run):
    Path("files.csv").write_text("client,category,count\na,x.csv,5\na,y.json,1\nb,y.json,2\n")
    fitting = ("fit", "files.csv", "--components", 1, "--categories", "x.csv,y.json")
    assert run(*fitting, "-o", "mdm.json").code == 0
    assert load_saved("mdm.json").categories == ("x.csv", "y.json")
