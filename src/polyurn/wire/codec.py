"""Queries and answers to bytes and back, equal to the last bit: what any transport carries.

Size bins are written once in a message and are one object again afterwards, because a client answers
queries with the same bins together. A decoded query can be answered: its parameters are in range and fit
together. The bytes are `envelope.py`, and docs/wire.md specifies both; who may ask is not decided here.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import MessageError
from polyurn.model.mdm import MDM
from polyurn.model.sizes import SUM_TOLERANCE, SizeBins, Sizes
from polyurn.typed.records import shown
from polyurn.wire.envelope import ANSWER, LARGEST, QUERY, seal, unseal
from polyurn.wire.queries import (
    Batch,
    Contrast,
    Expect,
    Group,
    Initialise,
    Parameters,
    Part,
    Query,
    Score,
    Survey,
    Update,
)
from polyurn.wire.statistics import S, Statistics

# A search in parts of the clients nests five deep.
_DEEPEST = 8
# A few words of header can ask a client for any number of numbers; 128 MB of them are enough.
_MOST_ASKED = 2**24
_LARGEST_WHOLE = 2**31 - 1

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
}


def encode_query(query: Query[Any]) -> bytes:
    """A query as bytes.

    Raises
    ------
    MessageError
        A query of no known kind, one with a number that is not finite or beyond 1e150, or a batch of
        so many queries that their header is larger than 1 MB.

    Examples
    --------
    >>> from polyurn.wire import Survey
    >>> data = encode_query(Survey(2, SizeBins.exact(3), pairs=True))
    >>> data[:4], len(data)
    (b'PUQU', 160)
    """
    writer = _Writer()
    tree = writer.query(query)
    header = {"bins": writer.bins, "query": tree}
    return seal(QUERY, header, [*writer.bin_numbers, *writer.numbers])


def decode_query(data: bytes) -> Query[Any]:
    """The query that `encode_query` wrote.

    Raises
    ------
    InputError
        The bytes are damaged, of a later version, or a query that no client could answer: one line says
        what was expected and what arrived. No more than 64 MB are allocated on top of what the numbers
        in the message take.

    Examples
    --------
    >>> from polyurn.wire import Survey
    >>> decode_query(encode_query(Survey(2, SizeBins.exact(3), pairs=True)))
    Survey(n_categories=2, size_bins=SizeBins(n_bins=3, max_size=3), pairs=True)
    """
    header, numbers = unseal(data, QUERY)
    _check_fields(header, ("bins", "query", "n_numbers"), "the header")
    reader = _Reader(numbers)
    reader.read_bins(header["bins"])
    query = reader.query(header["query"], depth=1)
    if reader.n_left:
        raise MessageError(f"expected no numbers after the query's own, got {reader.n_left}")
    if query.n_numbers > _MOST_ASKED:
        raise MessageError(
            f"expected a query that asks for at most {_MOST_ASKED:,} numbers, got one that asks for "
            f"{query.n_numbers:,}; lower max_upload"
        )
    return query


def encode_statistics(statistics: Statistics, query: Query[Any]) -> bytes:
    """An answer to a query as bytes.

    Raises
    ------
    InputError
        Not as many finite numbers as the query asks for: of a client that has probability zero under
        the parameters it was asked about, say.

    Examples
    --------
    >>> from polyurn.wire import Contrast
    >>> query = Contrast(2, 2)
    >>> data = encode_statistics(query.read(np.zeros(query.n_numbers)), query)
    >>> data[12:56]
    b'{"answer_to":"contrast","n_numbers":15}     '
    """
    vector = query.read(statistics.to_vector()).to_vector()
    return seal(ANSWER, {"answer_to": _kind_of(query)}, [vector])


def decode_statistics(data: bytes, query: Query[S]) -> S:
    """The answer to a query that `encode_statistics` wrote.

    Raises
    ------
    InputError
        The bytes are damaged, of a later version, or answer another query. The line never has a value
        of the answer in it.

    Examples
    --------
    >>> from polyurn.wire import Contrast
    >>> query = Contrast(2, 2)
    >>> answer = query.read(np.arange(15.0))
    >>> decode_statistics(encode_statistics(answer, query), query).pairs.tolist()
    [9.0, 10.0]
    """
    header, numbers = unseal(data, ANSWER)
    _check_fields(header, ("answer_to", "n_numbers"), "the header")
    if header["answer_to"] != _kind_of(query):
        raise MessageError(
            f"expected an answer to a query of kind {_kind_of(query)}, "
            f"got one to {shown(header['answer_to'])}"
        )
    return query.read(numbers)


def _kind_of(query: Query[Any]) -> str:
    kind = _KINDS.get(type(query))
    if kind is None:
        raise MessageError(f"expected a query of polyurn.wire, got {type(query).__name__}")
    return kind


# ----------------------------------------------------------------------------------------- writing


class _Writer:
    """Numbers and bins in the order in which a query's header names them."""

    def __init__(self) -> None:
        self.bins: list[dict[str, int]] = []
        self.bin_numbers: list[NDArray[np.float64]] = []
        self.numbers: list[NDArray[np.float64]] = []
        self._place_of: dict[int, int] = {}

    def query(self, query: Query[Any]) -> dict[str, Any]:
        return {"kind": _kind_of(query), **self._fields(query)}

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
            case _:
                raise MessageError(f"expected a query of polyurn.wire, got {type(query).__name__}")

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


# ----------------------------------------------------------------------------------------- reading


class _Reader:
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
            _check_fields(record, ("n_bins", "n_fine"), "size bins")
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
        _check_fields(record, ("kind", *names), f"a query of kind {kind}")
        return read(self, record, depth)

    def initialise(self, record: Any, _: int) -> Query[Any]:
        k = _whole(record, "n_components", 1)
        return Initialise(k, _whole(record, "n_categories", 2), self._bins_of(record))

    def update(self, record: Any, _: int) -> Query[Any]:
        return Update(self._mdm(record))

    def survey(self, record: Any, _: int) -> Query[Any]:
        pairs = record["pairs"]
        if not isinstance(pairs, bool):
            raise MessageError(f"expected true or false for pairs, got {shown(pairs)}")
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
            _check_fields(model, _MODEL, "a model")
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


_MODEL = ("n_components", "n_categories", "bins")
_READERS: dict[str, tuple[tuple[str, ...], Callable[[_Reader, Any, int], Query[Any]]]] = {
    "initialise": (_MODEL, _Reader.initialise),
    "update": (_MODEL, _Reader.update),
    "survey": (("n_categories", "bins", "pairs"), _Reader.survey),
    "group": (_MODEL, _Reader.group),
    "expect": ((*_MODEL, "curvature"), _Reader.expect),
    "score": (("models",), _Reader.score),
    "contrast": (("n_labels", "n_values"), _Reader.contrast),
    "batch": (("queries",), _Reader.batch),
    "part": (("query",), _Reader.part),
}


def _check_fields(record: Any, names: tuple[str, ...], where: str) -> None:
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
