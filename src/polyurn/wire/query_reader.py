"""A query from the header and the numbers of a message, if a client could answer it.

The fields of each kind are those of `query_writer.py`, and docs/wire.md specifies them. Every number is
checked here, once; whether the owner of a client agrees to the question is `client/node_policy.py`.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import MessageError
from polyurn.model.mdm import MDM
from polyurn.model.scores import Mixture
from polyurn.model.sizes import SUM_TOLERANCE, SizeBins, Sizes
from polyurn.model.style_coordinates import StyleSpace
from polyurn.typed.records import shown
from polyurn.wire.bounded import (
    Bounded,
    BoundedSurvey,
    Differences,
    Shares,
    SizeMembership,
    Sketch,
    WhitenedScore,
)
from polyurn.wire.envelope import LARGEST
from polyurn.wire.queries import (
    Batch,
    Contrast,
    Expect,
    Group,
    Initialise,
    Noised,
    Parameters,
    Part,
    Query,
    Score,
    Survey,
    Update,
)
from polyurn.wire.scaled import Scaled
from polyurn.wire.styles import BoundedStyle, StyleMoments

# A search in parts of the clients nests five deep.
_DEEPEST = 8
_LARGEST_WHOLE = 2**31 - 1


class QueryReader:
    """Takes numbers one array after the other, as a header names them."""

    def __init__(self, numbers: NDArray[np.float64]) -> None:
        self._numbers, self._at = numbers, 0
        self._bins: list[SizeBins] = []

    @property
    def n_left(self) -> int:
        return len(self._numbers) - self._at

    def read_bins(self, records: Any) -> None:
        if not isinstance(records, list):
            raise MessageError(f"expected a list of size bins, got {shown(records)}")
        for record in records:
            check_fields(record, ("n_bins", "n_fine"), "size bins")
            n_bins, n_fine = _whole(record, "n_bins", 1), _whole(record, "n_fine", 0)
            edges = self._take(n_bins + 1)
            profile = (self._take(n_fine + 1), self._take(n_fine)) if n_fine else ()
            self._bins.append(SizeBins(edges, *profile))

    def query(self, record: Any, depth: int) -> Query[Any]:
        if depth > _DEEPEST:
            raise MessageError(f"expected queries nested at most {_DEEPEST} deep, got more")
        kind = record.get("kind") if isinstance(record, dict) else None
        if not isinstance(kind, str) or kind not in _READERS:
            raise MessageError(
                f"expected a query of one of the kinds {', '.join(_READERS)}, got {shown(kind)}; "
                "upgrade polyurn if it is a newer one"
            )
        names, read = _READERS[kind]
        check_fields(record, ("kind", *names), f"a query of kind {kind}")
        return read(self, record, depth)

    def initialise(self, record: Any, _: int) -> Query[Any]:
        k = _whole(record, "n_components", 1)
        return Initialise(k, _whole(record, "n_categories", 2), self._bins_of(record))

    def update(self, record: Any, _: int) -> Query[Any]:
        return Update(self._mdm(record))

    def survey(self, record: Any, _: int) -> Query[Any]:
        pairs = _true_or_false(record, "pairs")
        return Survey(_whole(record, "n_categories", 2), self._bins_of(record), pairs)

    def group(self, record: Any, _: int) -> Query[Any]:
        k, c = _whole(record, "n_components", 1), _whole(record, "n_categories", 2)
        return Group(self._take(k, c + 2), self._take(k), self._bins_of(record))

    def expect(self, record: Any, _: int) -> Query[Any]:
        parameters = self._parameters(record)
        asked, k = record["curvature"], len(parameters.weights)
        if not isinstance(asked, list) or not all(type(i) is int and 0 <= i < k for i in asked):
            raise MessageError(f"expected curvature as a list of components from 0 to {k - 1}")
        if any(i >= j for i, j in pairwise(asked)):
            raise MessageError("expected the components of curvature in increasing order")
        if not (parameters.alphas[asked] > 0).all():
            raise MessageError("expected positive alphas where curvature is asked for, got 0")
        return Expect(parameters, tuple(asked))

    def score(self, record: Any, _: int) -> Query[Any]:
        models = _some(record, "models")
        for model in models:
            check_fields(model, _MODEL, "a model")
        mdms = tuple(self._mdm(model) for model in models)
        _check_same_categories([mdm.n_categories for mdm in mdms])
        return Score(mdms)

    def contrast(self, record: Any, _: int) -> Query[Any]:
        return Contrast(_whole(record, "n_labels", 2), _whole(record, "n_values", 2))

    def batch(self, record: Any, depth: int) -> Query[Any]:
        queries = tuple(self.query(inner, depth + 1) for inner in _some(record, "queries"))
        _check_same_categories([query.dimensions.n_categories for query in queries])
        return Batch(queries)

    def part(self, record: Any, depth: int) -> Query[Any]:
        low, high = self._take(2).tolist()
        if not 0 <= low <= high <= 1:
            raise MessageError(f"expected a part from 0 to 1, got one from {low:g} to {high:g}")
        return Part(self.query(record["query"], depth + 1), low, high)

    def bounded_survey(self, record: Any, _: int) -> Query[Any]:
        return BoundedSurvey(_whole(record, "n_categories", 2), self._bins_of(record))

    def sketch(self, record: Any, _: int) -> Query[Any]:
        g, c = _whole(record, "n_groups", 1), _whole(record, "n_categories", 2)
        prototypes, directions, (radius,) = self._take(g, c), self._take(g, c), self._take(1)
        return Sketch(prototypes, directions, float(radius), _whole(record, "max_size", 1))

    def whitened_score(self, record: Any, _: int) -> Query[Any]:
        mixture = self._mixture(record)
        n_directions = _whole(record, "n_directions", 1)
        whitener, (clip,) = self._take(mixture.n_coordinates, n_directions), self._take(1)
        return WhitenedScore(mixture, whitener, float(clip), _whole(record, "max_size", 1))

    def differences(self, record: Any, _: int) -> Query[Any]:
        models = _some(record, "models")
        for model in models:
            check_fields(model, _MIXTURE, "a model")
        mixtures = tuple(self._mixture(model) for model in models)
        _check_same_categories([mixture.n_categories for mixture in mixtures])
        bounds = tuple(self._take(len(models) - 1).tolist())
        return Differences(mixtures, bounds, _whole(record, "max_size", 1))

    def size_membership(self, record: Any, _: int) -> Query[Any]:
        return SizeMembership(self._mixture(record), self._bins_of(record))

    def shares(self, record: Any, depth: int) -> Query[Any]:
        inside = _some(record, "queries")
        shares = tuple(self._take(len(inside)).tolist())
        queries = tuple(self.query(inner, depth + 1) for inner in inside)
        bounded = tuple(query for query in queries if isinstance(query, Bounded))
        if len(bounded) < len(queries):
            raise MessageError("expected queries whose answers are bounded in shares, got others")
        _check_same_categories([query.n_categories for query in bounded])
        return Shares(bounded, shares)

    def _mixture(self, record: Any) -> Mixture:
        k, c = _whole(record, "n_components", 1), _whole(record, "n_categories", 2)
        weights, alphas = self._take(k), self._take(k, c)
        if not ((weights > 0).all() and abs(weights.sum() - 1) <= SUM_TOLERANCE):
            raise MessageError("expected weights above 0 that sum to 1")
        if not (alphas >= 1 / LARGEST).all():
            raise MessageError(f"expected alphas of at least {1 / LARGEST:g}")
        return Mixture(weights, alphas)

    def scaled(self, record: Any, depth: int) -> Query[Any]:
        return Scaled(self.query(record["query"], depth + 1))

    def noised(self, record: Any, depth: int) -> Query[Any]:
        if depth > 1:
            raise MessageError(
                "expected a noised query as the whole question, got one inside another"
            )
        (sigma,) = self._take(1).tolist()
        trust = record["trust"]
        if trust not in ("local", "distributed"):
            raise MessageError(f"expected trust local or distributed, got {shown(trust)}")
        n_reporters = _whole(record, "n_reporters", 1)
        n_colluding = _whole(record, "n_colluding", 0)
        return Noised(
            self.query(record["query"], depth + 1), sigma, trust, n_reporters, n_colluding
        )

    def style_moments(self, record: Any, _: int) -> Query[Any]:
        return StyleMoments(self._space(record), _true_or_false(record, "ties"))

    def bounded_style(self, record: Any, _: int) -> Query[Any]:
        (clip,) = self._take(1).tolist()
        return BoundedStyle(self._space(record), clip, _true_or_false(record, "ties"))

    def _space(self, record: Any) -> StyleSpace:
        n_labels, n_features = _whole(record, "n_labels", 2), _whole(record, "n_features", 1)
        m = _whole(record, "n_directions", 1)
        radius, far_share = self._take(2).tolist()
        centres, basis = self._take(n_labels, m), self._take(n_features, m)
        return StyleSpace(centres, basis, self._take(n_labels, m, m), radius, far_share)

    def _mdm(self, record: Any) -> MDM:
        parameters = self._parameters(record)
        if not (parameters.weights[1:] <= parameters.weights[:-1]).all():
            raise MessageError("expected the components of an MDM in order of decreasing weight")
        return parameters.mdm()

    def _parameters(self, record: Any) -> Parameters:
        k, c = _whole(record, "n_components", 1), _whole(record, "n_categories", 2)
        bins = self._bins_of(record)
        weights, alphas = self._take(k), self._take(k, c)
        masses = self._take(k, bins.n_bins)
        _check_parameters(weights, alphas, masses)
        return Parameters(weights, alphas, Sizes.unchecked(bins, masses))

    def _bins_of(self, record: Any) -> SizeBins:
        place = _whole(record, "bins", 0)
        if place >= len(self._bins):
            raise MessageError(f"expected bins below {len(self._bins)}, got {place}")
        return self._bins[place]

    def _take(self, *shape: int) -> NDArray[np.float64]:
        n = 1
        for length in shape:
            n *= length
        if n > self.n_left:
            raise MessageError(
                f"expected {n:,} more numbers, got {self.n_left:,}; send the message again"
            )
        self._at += n
        return self._numbers[self._at - n : self._at].reshape(shape)


_MIXTURE = ("n_components", "n_categories")
_MODEL = (*_MIXTURE, "bins")
_STYLE = ("n_labels", "n_features", "n_directions", "ties")
_READERS: dict[str, tuple[tuple[str, ...], Callable[[QueryReader, Any, int], Query[Any]]]] = {
    "initialise": (_MODEL, QueryReader.initialise),
    "update": (_MODEL, QueryReader.update),
    "survey": (("n_categories", "bins", "pairs"), QueryReader.survey),
    "group": (_MODEL, QueryReader.group),
    "expect": ((*_MODEL, "curvature"), QueryReader.expect),
    "score": (("models",), QueryReader.score),
    "contrast": (("n_labels", "n_values"), QueryReader.contrast),
    "batch": (("queries",), QueryReader.batch),
    "part": (("query",), QueryReader.part),
    "bounded_survey": (("n_categories", "bins"), QueryReader.bounded_survey),
    "sketch": (("n_groups", "n_categories", "max_size"), QueryReader.sketch),
    "whitened_score": ((*_MIXTURE, "n_directions", "max_size"), QueryReader.whitened_score),
    "differences": (("models", "max_size"), QueryReader.differences),
    "size_membership": (_MODEL, QueryReader.size_membership),
    "shares": (("queries",), QueryReader.shares),
    "scaled": (("query",), QueryReader.scaled),
    "style_moments": (_STYLE, QueryReader.style_moments),
    "bounded_style": (_STYLE, QueryReader.bounded_style),
    "noised": (("query", "trust", "n_reporters", "n_colluding"), QueryReader.noised),
}


def check_fields(record: Any, names: tuple[str, ...], where: str) -> None:
    """Refuse a record with other fields than these; `where` says of what it is one."""
    if not isinstance(record, dict) or record.keys() != set(names):
        arrived = sorted(record) if isinstance(record, dict) else record
        raise MessageError(f"expected {', '.join(names)} in {where}, got {shown(arrived)}")


def _whole(record: dict[str, Any], name: str, least: int) -> int:
    value = record[name]
    if type(value) is not int or not least <= value <= _LARGEST_WHOLE:
        raise MessageError(
            f"expected {name} as a whole number from {least} to {_LARGEST_WHOLE}, got {shown(value)}"
        )
    return value


def _true_or_false(record: dict[str, Any], name: str) -> bool:
    value = record[name]
    if not isinstance(value, bool):
        raise MessageError(f"expected true or false for {name}, got {shown(value)}")
    return value


def _some(record: dict[str, Any], name: str) -> list[Any]:
    value = record[name]
    if not isinstance(value, list) or not value:
        raise MessageError(f"expected at least one of {name} in a list, got {shown(value)}")
    return value


def _check_same_categories(n_categories: list[int]) -> None:
    """Kernels of a client go by the first: another would read beyond the end of an array."""
    if len(set(n_categories)) > 1:
        raise MessageError("expected queries about the same number of categories, got several")


def _check_parameters(
    weights: NDArray[np.float64], alphas: NDArray[np.float64], masses: NDArray[np.float64]
) -> None:
    off = max(abs(weights.sum() - 1), np.abs(masses.sum(axis=1) - 1).max())
    if not ((weights >= 0).all() and (masses >= 0).all() and off <= SUM_TOLERANCE):
        raise MessageError(
            "expected weights, and size probabilities of each component, of at least 0 that sum to 1"
        )
    positive = alphas >= 1 / LARGEST
    if not ((positive | (alphas == 0)).all() and positive.any(axis=1).all()):
        raise MessageError(
            f"expected alphas of 0 or at least {1 / LARGEST:g}, with a positive one in each row"
        )
