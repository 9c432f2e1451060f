"""A query as the header and the numbers of a message: the fields of each kind, in their order.

docs/wire.md specifies them, and `query_reader.py` reads them back.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import MessageError
from polyurn.model.mdm import MDM
from polyurn.model.scores import Mixture
from polyurn.model.sizes import SizeBins
from polyurn.model.style_coordinates import StyleSpace
from polyurn.wire.bounded import (
    BoundedSurvey,
    Differences,
    Shares,
    SizeMembership,
    Sketch,
    WhitenedScore,
)
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

_KINDS: dict[type[Query[Any]], str] = {
    Initialise: "initialise",
    Update: "update",
    Survey: "survey",
    Group: "group",
    Expect: "expect",
    Score: "score",
    Contrast: "contrast",
    Batch: "batch",
    Part: "part",
    BoundedSurvey: "bounded_survey",
    Sketch: "sketch",
    WhitenedScore: "whitened_score",
    Differences: "differences",
    SizeMembership: "size_membership",
    Shares: "shares",
    Noised: "noised",
    Scaled: "scaled",
    StyleMoments: "style_moments",
    BoundedStyle: "bounded_style",
}


def kind_of(query: Query[Any]) -> str:
    """The name of a query's kind in a message; `MessageError` if it has none."""
    kind = _KINDS.get(type(query))
    if kind is None:
        raise MessageError(f"expected a query of polyurn.wire, got {type(query).__name__}")
    return kind


class QueryWriter:
    """Numbers and bins in the order in which a query's header names them."""

    def __init__(self) -> None:
        self.bins: list[dict[str, int]] = []
        self.bin_numbers: list[NDArray[np.float64]] = []
        self.numbers: list[NDArray[np.float64]] = []
        self._place_of: dict[int, int] = {}

    def query(self, query: Query[Any]) -> dict[str, Any]:
        return {"kind": kind_of(query), **self._fields(query)}

    def _fields(self, query: Query[Any]) -> dict[str, Any]:
        match query:
            case Initialise(k, c, bins):
                return {"n_components": int(k), "n_categories": int(c), "bins": self._bins(bins)}
            case Update(mdm):
                return self._parameters(mdm)
            case Survey(c, bins, pairs):
                return {"n_categories": int(c), "bins": self._bins(bins), "pairs": bool(pairs)}
            case Group(directions, offsets, bins):
                self.numbers += [directions, offsets]
                k, f = directions.shape
                return {"n_components": k, "n_categories": f - 2, "bins": self._bins(bins)}
            case Expect(parameters, curvature):
                asked = [int(k) for k in curvature]
                return {**self._parameters(parameters), "curvature": asked}
            case Score(mdms):
                return {"models": [self._parameters(mdm) for mdm in mdms]}
            case Contrast(n_labels, n_values):
                return {"n_labels": int(n_labels), "n_values": int(n_values)}
            case Batch(queries):
                return {"queries": [self.query(one) for one in queries]}
            case Part(inner, low, high):
                self.numbers.append(np.array([low, high]))
                return {"query": self.query(inner)}
            case StyleMoments(space, ties):
                return self._style(space, ties)
            case _:
                return self._private(query)

    def _private(self, query: Query[Any]) -> dict[str, Any]:
        """The fields of queries that noise can protect, or does."""
        match query:
            case Scaled(inner):
                return {"query": self.query(inner)}
            case Noised(inner, sigma, trust, n_reporters, n_colluding):
                self.numbers.append(np.array([sigma]))
                counts = {"n_reporters": int(n_reporters), "n_colluding": int(n_colluding)}
                return {"query": self.query(inner), "trust": trust, **counts}
            case BoundedStyle(space, clip, ties):
                self.numbers.append(np.array([clip]))
                return self._style(space, ties)
            case BoundedSurvey(c, bins):
                return {"n_categories": int(c), "bins": self._bins(bins)}
            case Sketch(prototypes, directions, radius, max_size):
                self.numbers += [prototypes, directions, np.array([radius])]
                g, c = prototypes.shape
                return {"n_groups": g, "n_categories": c, "max_size": int(max_size)}
            case WhitenedScore(mixture, whitener, clip, max_size):
                fields = self._mixture(mixture)
                self.numbers += [whitener, np.array([clip])]
                return {**fields, "n_directions": whitener.shape[1], "max_size": int(max_size)}
            case Differences(mixtures, bounds, max_size):
                models = [self._mixture(mixture) for mixture in mixtures]
                self.numbers.append(np.array(bounds))
                return {"models": models, "max_size": int(max_size)}
            case SizeMembership(mixture, bins):
                return {**self._mixture(mixture), "bins": self._bins(bins)}
            case Shares(queries, shares):
                self.numbers.append(np.array(shares))
                return {"queries": [self.query(one) for one in queries]}
            case _:
                raise MessageError(f"expected a query of polyurn.wire, got {type(query).__name__}")

    def _style(self, space: StyleSpace, ties: bool) -> dict[str, Any]:
        self.numbers += [np.array([space.radius, space.pool_far_share])]
        self.numbers += [space.centres, space.basis, space.whitening]
        lengths = {"n_labels": space.n_labels, "n_features": space.n_features}
        return {**lengths, "n_directions": space.n_directions, "ties": bool(ties)}

    def _mixture(self, mixture: Mixture) -> dict[str, int]:
        self.numbers += [mixture.weights, mixture.alphas]
        k, c = mixture.alphas.shape
        return {"n_components": k, "n_categories": c}

    def _parameters(self, given: MDM | Parameters) -> dict[str, int]:
        self.numbers += [given.weights, given.alphas, given.sizes.masses]
        k, c = given.alphas.shape
        return {"n_components": k, "n_categories": c, "bins": self._bins(given.sizes.bins)}

    def _bins(self, bins: SizeBins) -> int:
        """The place of these very bins among those of the message."""
        if id(bins) not in self._place_of:
            self._place_of[id(bins)] = len(self.bins)
            plain = np.array_equal(bins.fine, bins.edges) and bool((bins.shares == 1.0).all())
            self.bins.append({"n_bins": bins.n_bins, "n_fine": 0 if plain else len(bins.shares)})
            profile = [] if plain else [bins.fine, bins.shares]
            self.bin_numbers += [a.astype(np.float64) for a in (bins.edges, *profile)]
        return self._place_of[id(bins)]
