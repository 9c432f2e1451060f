import hashlib
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyurn import Codebook, LocalAggregator, codebook, fit, histograms, partition
from polyurn.errors import ParameterError, ShortfallError

BOOK = Codebook([[0.0, 0.0], [4.0, 0.0], [9.0, 9.0]], n_styles=[2, 0, 1], reach=[1.0, 0.0, 4.0])

# The vector instructions that numpy chose for this machine when it was loaded.
DISPATCHED = " ".join(np.show_config(mode="dicts")["SIMD Extensions"].get("found", ()))


def near_ties(n_points=400, n_features=50):
    """A book of two styles, and points as far from one as from the other but for rounding."""
    rng = np.random.default_rng(7)
    centres = rng.normal(size=(2, n_features))
    across = rng.normal(size=(n_points, n_features))
    direction = centres[1] - centres[0]
    across -= np.outer(across @ direction / (direction @ direction), direction)
    return Codebook(centres, [2], [1e9]), centres.mean(axis=0) + across


def naive_codes(book, features, labels):
    """Point after point, feature after feature, in Python's floats."""
    codes = []
    for point, label in zip(features.tolist(), labels, strict=True):
        first = sum(n + 1 for n in book.n_styles[:label].tolist())
        start, n_styles = sum(book.n_styles[:label].tolist()), int(book.n_styles[label])
        distances = []
        for centre in book.centres[start : start + n_styles].tolist():
            total = 0.0
            for a, b in zip(point, centre, strict=True):
                total += (a - b) * (a - b)
            distances.append(total)
        near = distances and min(distances) <= float(book.reach[label])
        codes.append(first + (distances.index(min(distances)) if near else n_styles))
    return codes


# ------------------------------------------------------------------------------ categories


def test_categories_are_label_by_label_its_styles_and_then_other():
    assert BOOK.categories == (
        "0 × style 0", "0 × style 1", "0 × other", "1 × other", "2 × style 0", "2 × other",
    )  # fmt: skip
    assert BOOK.n_categories == 6
    assert BOOK.label_of.tolist() == [0, 0, 0, 1, 2, 2]
    assert BOOK.is_other.tolist() == [False, False, True, True, False, True]


def test_categories_have_the_names_of_the_labels():
    assert BOOK.named(["cat", "dog", "owl"])[2:5] == ("cat × other", "dog × other", "owl × style 0")
    with pytest.raises(ParameterError, match="expected 3 different category names"):
        BOOK.named(["cat", "dog", "cat"])


def test_a_point_beyond_reach_and_one_of_a_label_without_styles_are_other():
    features = [[0.0, 1.0], [0.0, 1.0 + 1e-9], [3.5, 0.0], [0.0, 0.0], [9.0, 7.0], [9.0, 6.9]]
    assert BOOK.encode(features, [0, 0, 0, 1, 2, 2]).tolist() == [0, 2, 1, 3, 4, 5]


def test_of_styles_that_are_as_near_the_first_is_taken():
    book = Codebook([[1.0], [-1.0], [1.0]], [3], [4.0])
    assert book.encode([[0.0], [1.0], [-1.0]], [0, 0, 0]).tolist() == [0, 0, 1]


# ------------------------------------------------------------------------------ the same bits


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32))
def test_codes_are_those_of_a_naive_loop(seed):
    rng = np.random.default_rng(seed)
    n_styles = rng.integers(1, 4, size=3)
    n_styles[rng.integers(3)] = 0
    book = Codebook(rng.normal(size=(n_styles.sum(), 3)), n_styles, rng.random(3) * 3)
    features, labels = rng.normal(size=(40, 3)), rng.integers(3, size=40)
    assert book.encode(features, labels).tolist() == naive_codes(book, features, labels)


def test_rounding_decides_as_in_a_naive_loop_and_not_as_in_a_matrix_product():
    book, features = near_ties()
    codes = book.encode(features, np.zeros(len(features), int))
    assert codes.tolist() == naive_codes(book, features, [0] * len(features))
    # These points are a test: what is the same in exact arithmetic decides otherwise for some of them.
    product = ((book.centres**2).sum(axis=1) - 2 * features @ book.centres.T).argmin(axis=1)
    summed = ((features[:, None] - book.centres) ** 2).sum(axis=2).argmin(axis=1)
    assert (codes != product).any()
    assert (codes != summed).any()


def test_codes_do_not_depend_on_how_many_points_are_encoded_at_a_time_nor_on_their_layout():
    book, features = near_ties()
    labels = np.zeros(len(features), int)
    whole = book.encode(features, labels)
    one_by_one = [int(book.encode(point[None], [0])[0]) for point in features]
    assert whole.tolist() == one_by_one
    assert np.array_equal(book.encode(np.asfortranarray(features), labels), whole)
    assert np.array_equal(book.encode(features[::-1], labels)[::-1], whole)
    many = np.tile(features, (200, 1))  # more than one block of them
    assert np.array_equal(book.encode(many, np.tile(labels, 200)), np.tile(whole, 200))


def test_single_precision_and_pictures_are_encoded_as_their_values_are():
    book, features = near_ties()
    single, labels = features.astype(np.float32), np.zeros(len(features), int)
    assert np.array_equal(book.encode(single, labels), book.encode(single.astype(float), labels))
    pixels = np.arange(12, dtype=np.uint8).reshape(3, 2, 2)
    grey = Codebook([[0, 1, 2, 3], [8, 9, 10, 11]], [2], [64.0])
    assert grey.encode(pixels, [0, 0, 0]).tolist() == [0, 0, 1]


@pytest.mark.parametrize("n_threads", ["1", "2"])
@pytest.mark.parametrize("vectors", ["", DISPATCHED], ids=["all vectors", "plain"])
def test_codes_depend_neither_on_threads_nor_on_vector_instructions(n_threads, vectors):
    book, features = near_ties()
    here = hashlib.sha256(book.encode(features, np.zeros(len(features), int)).tobytes())
    code = (
        "import hashlib, pickle, sys; import numpy as np\n"
        "print(*np.show_config(mode='dicts')['SIMD Extensions'].get('found', ()))\n"
        "book, features = pickle.load(sys.stdin.buffer)\n"
        "codes = book.encode(features, [0] * len(features))\n"
        "print(hashlib.sha256(codes.tobytes()).hexdigest())"
    )
    machine = {"OMP_NUM_THREADS": n_threads, "OPENBLAS_NUM_THREADS": n_threads}
    there = subprocess.run(
        [sys.executable, "-c", code],
        input=pickle.dumps((book, features)), capture_output=True, check=True,
        env=os.environ | machine | {"NPY_DISABLE_CPU_FEATURES": vectors},
    )  # fmt: skip
    used, codes = there.stdout.decode().splitlines()
    assert used == ("" if vectors else DISPATCHED)
    assert codes == here.hexdigest()


# ------------------------------------------------------------------------------ from end to end


def test_from_points_to_clients_label_totals_are_exact_and_styles_are_those_of_the_clients():
    rng = np.random.default_rng(0)

    def points(slants, n_points):
        """Points of two labels, written by somebody of this slant each."""
        labels = rng.integers(2, size=n_points)
        places = np.column_stack([labels * 9.0, slants])
        return places + rng.normal(scale=0.3, size=(n_points, 2)), labels

    pool, pool_labels = points(rng.choice([-2.0, 2.0], size=2_000), 2_000)
    book = codebook(pool, pool_labels, n_styles=2, coverage=1.0, rng=0)
    pool_codes = book.encode(pool, pool_labels)
    assert not book.is_other[pool_codes].any()
    # Half of the clients slant to the left; a tenth writes as nobody in the pool does.
    owners = np.repeat(np.arange(200), 30)
    slants = rng.choice([-2.0, 2.0, 30.0], p=[0.5, 0.4, 0.1], size=200)
    features, labels = points(np.repeat(slants, 30), 6_000)
    counts = histograms(owners, book.encode(features, labels), categories=book.n_categories).counts
    label_counts = histograms(owners, labels, categories=2).counts
    mdm, label_mdm = (
        fit(
            LocalAggregator(table), n_components=k, n_categories=table.shape[1], max_size=30, rng=0
        ).mdm
        for table, k in ((counts, 3), (label_counts, 1))
    )
    other_share = mdm.mean()[book.is_other].sum() / mdm.mean().sum()
    assert other_share == pytest.approx((slants == 30.0).mean(), abs=0.01)

    with pytest.raises(ShortfallError, match="do not have"):
        partition(pool_codes, book.given_labels(mdm, label_mdm), n_clients=300, rng=1)
    clients = book.given_labels(mdm, label_mdm, codes=pool_codes)
    parts = partition(pool_codes, drawn := clients.sample(300, rng=1), rng=2)
    assert np.array_equal(parts.histograms(pool_codes, n_categories=book.n_categories), drawn)
    totals = label_mdm.sample(300, rng=1)  # the first thing that is drawn
    assert np.array_equal(parts.histograms(pool_labels, n_categories=2), totals)
    # Each simulated client slants to one side, as true ones do.
    sides = [np.mean(pool[mine, 1] > 0) for mine in parts]
    assert np.mean([side in (0.0, 1.0) for side in sides]) > 0.95
    # Those who cannot be served apart, five of nine slant to the left; 300 draws, s.e. 0.03.
    left = (slants == -2.0).sum() / (slants != 30.0).sum()
    assert np.mean([side < 0.5 for side in sides]) == pytest.approx(left, abs=0.1)


# ------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("features", "labels", "message"),
    [
        ([[0.0]], [0], "expected points of 2 features, as in the codebook, got 1"),
        ([0.0, 1.0], [0], "expected features of shape"),
        ([[0.0, np.nan]], [0], "finite, .* in point 0"),
        ([[0.0, 0.0], [1e200, 0.0]], [0, 0], "too large to square.* in point 1"),
        ([[0.0, 0.0]], [3], "expected labels from 0 to 2, got 3"),
        ([[0.0, 0.0]], [0, 1], "a label for each of 1 points"),
    ],
)
def test_points_that_the_book_does_not_know_are_refused(features, labels, message):
    with pytest.raises(ParameterError, match=message):
        BOOK.encode(features, labels)


@pytest.mark.parametrize(
    ("centres", "n_styles", "reach", "message"),
    [
        ([0.0, 1.0], [2], [1.0], "centres of shape"),
        ([[0.0], [1.0]], [3], [1.0], "sum to 2"),
        ([[0.0], [1.0]], [2.0], [1.0], "n_styles as integers"),
        ([[0.0], [1.0]], [-1, 3], [1.0, 1.0], "n_styles as integers"),
        ([[0.0], [1.0]], [1, 1], [1.0], "reach of shape"),
        ([[0.0], [1.0]], [2], [-1.0], "a reach of at least 0"),
        ([[0.0], [1e200]], [2], [1.0], "too large to square"),
        (np.zeros((0, 2)), [0], [0.0], "at least two categories"),
    ],
)
def test_a_book_that_contradicts_itself_is_refused(centres, n_styles, reach, message):
    with pytest.raises(ParameterError, match=message):
        Codebook(centres, n_styles, reach)
