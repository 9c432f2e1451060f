"""A query of every kind with a client, for the tests of what crosses the wire, and its test vectors.

    python tests/wire_cases.py

writes tests/wire/vectors again: only when the format has a new version, or a new kind.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from polyurn import Records, answer
from polyurn.model.mdm import MDM
from polyurn.model.scores import Mixture
from polyurn.model.sizes import SizeBins, Sizes
from polyurn.model.splits import Laws, Splits
from polyurn.model.standing import Yardstick
from polyurn.model.style_coordinates import StyleSpace
from polyurn.model.trees import Tree
from polyurn.wire import (
    Affinity,
    Batch,
    BoundedStyle,
    BoundedSurvey,
    Contrast,
    Describe,
    Differences,
    Divide,
    Expect,
    Group,
    Initialise,
    Noised,
    Parameters,
    Part,
    Query,
    RecordColumn,
    Scaled,
    Score,
    Shares,
    SizeMembership,
    Sketch,
    Spread,
    Standing,
    StyleMoments,
    Survey,
    Update,
    WhitenedScore,
    encode_query,
    encode_statistics,
)

VECTORS = Path(__file__).parent / "wire" / "vectors"

EXACT = SizeBins.exact(12)
BINNED = SizeBins([1, 2, 4, 13])
SPIKED = SizeBins([1, 5, 13], fine=[1, 4, 5, 9, 10, 13], shares=[0.25, 0.75, 0.5, 0.25, 0.25])
CLIENT = [3, 0, 1, 5]
BUCKET = 0.375
# The same client's points, for questions about style: multiples of 1/8, which any language has exactly.
LABELS = [label for label, n in enumerate(CLIENT) for _ in range(n)]
FEATURES = (np.random.default_rng(21).integers(-24, 25, (len(LABELS), 5)) / 8).tolist()
COLUMN = RecordColumn(3, 5, np.array([-0.5, 0.875]))  # the second is a number of some points
HELD = Records(FEATURES, LABELS, np.zeros(len(LABELS), int), n_labels=len(CLIENT))


def _parameters(bins: SizeBins, seed: int) -> Parameters:
    rng = np.random.default_rng(seed)
    masses = Sizes.unchecked(bins, rng.dirichlet(np.ones(bins.n_bins), 3))
    return Parameters(rng.dirichlet(np.ones(3)), 10 ** rng.uniform(-3, 2, (3, 4)), masses)


def _mdm(bins: SizeBins, seed: int) -> MDM:
    return _parameters(bins, seed).mdm()


def _split(bins: SizeBins, seed: int, *, bent: bool) -> MDM:
    rng = np.random.default_rng(seed)
    laws = Laws([0, 1, 2, 5, 12], rng.normal(size=(2, 3, 2, 5))) if bent else None
    splits = Splits(Tree([[1, 3], [2, 4], [5, 6]]), rng.gamma(2.0, size=(2, 3, 2)), laws)
    sizes = Sizes(bins, np.full((2, bins.n_bins), 1 / bins.n_bins))
    return MDM([0.75, 0.25], None, sizes, splits=splits)


def _group(bins: SizeBins, seed: int) -> Group:
    rng = np.random.default_rng(seed)
    return Group(rng.normal(size=(3, 6)), rng.normal(size=3), bins)


def _mixture(seed: int) -> Mixture:
    parameters = _parameters(EXACT, seed)
    return Mixture(parameters.weights, parameters.alphas)


def _sketch(seed: int) -> Sketch:
    prototypes = np.random.default_rng(seed).dirichlet(np.ones(4), 3)
    return Sketch(prototypes, np.log(prototypes), 0.25, 12)


def _whitened(seed: int, clip: float) -> WhitenedScore:
    whitener = np.random.default_rng(seed).normal(size=(15, 6))
    return WhitenedScore(_mixture(seed), whitener, clip, 12)


def _space(seed: int, radius: float) -> StyleSpace:
    rng = np.random.default_rng(seed)
    whitening = rng.normal(size=(4, 3, 3)) / 3
    return StyleSpace(rng.normal(size=(4, 3)), rng.normal(size=(5, 3)), whitening, radius, 0.01)


_LACKING = MDM(
    [0.75, 0.25],
    [[0.5, 2.0, 0.0, 9.0], [1e-6, 1.0, 1e6, 0.1]],
    Sizes(BINNED, [[0, 0.5, 0.5], [1, 0, 0]]),
)
_NESTED = Batch(
    (
        Part(Batch((_group(SPIKED, 6), _group(SPIKED, 7))), 0.25, 0.5),
        Part(Expect(_parameters(SPIKED, 8), (1,)), 0.375, 1.0),
        Part(Batch((Part(Survey(4, EXACT, pairs=False), 0.0, 0.4),)), 0.4, 1.0),
        Expect(_parameters(SPIKED, 9)),
        Score((_mdm(EXACT, 10),)),
    )
)

# In a file each.
QUERIES: dict[str, Query[Any]] = {
    "initialise": Initialise(1, 4, BINNED),
    "survey": Survey(4, EXACT, pairs=False),
    "survey-pairs": Survey(4, SPIKED, pairs=True),
    "contrast": Contrast(2, 2),
    "contrast-column": Contrast(4, 3, COLUMN),
    "scaled-contrast": Scaled(Contrast(4, 3, COLUMN)),
    "spread": Spread(4, COLUMN),
    "group": _group(EXACT, 1),
    "update": Update(_mdm(SPIKED, 2)),
    "expect": Expect(_parameters(BINNED, 3)),
    "expect-curvature": Expect(_parameters(SPIKED, 4), (0, 2)),
    "score": Score((_mdm(EXACT, 5), _mdm(SPIKED, 5))),
    "style-moments": StyleMoments(_space(22, 2.0)),
    "style-moments-label-effect": StyleMoments(_space(23, 9.0), label_effect=True),
    "bounded-style": BoundedStyle(_space(24, 4.0), 3.0),
    "bounded-style-label-effect": BoundedStyle(_space(25, 4.0), 0.5, label_effect=True),
    "part-outside": Part(Contrast(2, 2), 0.5, 1.0),
    "nested": _NESTED,
    "bounded-survey": BoundedSurvey(4, BINNED),
    "sketch": _sketch(11),
    "whitened-score": _whitened(12, 1e3),
    "whitened-score-clipped": _whitened(13, 0.5),
    "differences": Differences((_mixture(14), _mixture(15), _mixture(16)), (50.0, 2.0), 12),
    "size-membership": SizeMembership(_mixture(17), BINNED),
    "shares": Shares(
        (_whitened(18, 9.0), _sketch(19), SizeMembership(_mixture(20), EXACT)), (0.5, 0.25, 0.125)
    ),
    "describe": Describe(4, BINNED),
    "standing": Standing(
        _mdm(EXACT, 26),
        BINNED,
        Yardstick(*np.random.default_rng(26).normal(-6, 3, (2, BINNED.n_bins)), 4.0),
    ),
}

# What a test vector would not show, or a plain client could not answer.
MORE: dict[str, Query[Any]] = {
    "noised": Noised(BoundedSurvey(4, BINNED), 2.0),
    "noised in shares": Noised(Scaled(Contrast(2, 2)), 0.5, "distributed", 10, 3),
    "many components": Initialise(5, 4, EXACT),
    "zeros": Update(_LACKING),
    "scored with zeros": Score((_LACKING, _LACKING)),
    "affinity": Affinity(4),
    "divide": Divide(_split(SPIKED, 26, bent=False)),
    "divide with laws": Divide(_split(BINNED, 27, bent=True)),
}


@dataclass(frozen=True)
class Vector:
    """A test vector as it stands in its file."""

    query: bytes
    counts: list[int]
    bucket: float
    answer: bytes
    features: list[list[float]] | None = None
    labels: list[int] | None = None


def made(query: Query[Any]) -> Vector:
    """The test vector of a query, from polyurn's own client."""
    said = answer(query, HELD, buckets=np.array([BUCKET]), rng=0)
    records = (FEATURES, LABELS) if query.n_features is not None else ()
    return Vector(encode_query(query), CLIENT, BUCKET, encode_statistics(said, query), *records)


def kept(name: str) -> Vector:
    """The test vector in a file."""
    record = json.loads((VECTORS / f"{name}.json").read_text())
    messages = (bytes.fromhex(record[part]) for part in ("query", "answer"))
    query, said = messages
    records = (record.get("features"), record.get("labels"))
    return Vector(query, record["counts"], record["bucket"], said, *records)


def write() -> None:
    VECTORS.mkdir(exist_ok=True)
    for name, query in QUERIES.items():
        vector = made(query)
        record = {
            "query": vector.query.hex(), "counts": vector.counts, "bucket": vector.bucket,
            "answer": vector.answer.hex(),
        }  # fmt: skip
        if vector.features is not None:
            record |= {"features": vector.features, "labels": vector.labels}
        (VECTORS / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    write()
