"""Queries and answers to bytes and back, equal to the last bit: what any transport carries.

Size bins are written once in a message and are one object again afterwards, because a client answers
queries with the same bins together. A decoded query can be answered: its parameters are in range and fit
together. The bytes are `envelope.py`, the fields of each kind `query_writer.py` and `query_reader.py`,
and docs/wire.md specifies all of it; who may ask is not decided here.
"""

from typing import Any

from polyurn.errors import MessageError
from polyurn.typed.records import shown
from polyurn.wire.envelope import ANSWER, QUERY, seal, unseal
from polyurn.wire.queries import Query
from polyurn.wire.query_reader import QueryReader, check_fields
from polyurn.wire.query_writer import QueryWriter, kind_of
from polyurn.wire.statistics import S, Statistics

# A few words of header can ask a client for any number of numbers; 128 MB of them are enough.
_MOST_ASKED = 2**24


def encode_query(query: Query[Any]) -> bytes:
    """A query as bytes.

    Raises
    ------
    MessageError
        A query of no known kind, one with a number that is not finite or beyond 1e150, or a batch of
        so many queries that their header is larger than 1 MB.

    Examples
    --------
    >>> from polyurn.model.sizes import SizeBins
    >>> from polyurn.wire import Survey
    >>> data = encode_query(Survey(2, SizeBins.exact(3), pairs=True))
    >>> data[:4], len(data)
    (b'PUQU', 160)
    """
    writer = QueryWriter()
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
    >>> from polyurn.model.sizes import SizeBins
    >>> from polyurn.wire import Survey
    >>> decode_query(encode_query(Survey(2, SizeBins.exact(3), pairs=True)))
    Survey(n_categories=2, size_bins=SizeBins(n_bins=3, max_size=3), pairs=True)
    """
    header, numbers = unseal(data, QUERY)
    check_fields(header, ("bins", "query", "n_numbers"), "the header")
    reader = QueryReader(numbers)
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
    >>> data = encode_statistics(query.read([0.0] * query.n_numbers), query)
    >>> data[12:56]
    b'{"answer_to":"contrast","n_numbers":15}     '
    """
    vector = query.read(statistics.to_vector()).to_vector()
    return seal(ANSWER, {"answer_to": kind_of(query)}, [vector])


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
    >>> answer = query.read(range(15))
    >>> decode_statistics(encode_statistics(answer, query), query).pairs.tolist()
    [9.0, 10.0]
    """
    header, numbers = unseal(data, ANSWER)
    check_fields(header, ("answer_to", "n_numbers"), "the header")
    if header["answer_to"] != kind_of(query):
        raise MessageError(
            f"expected an answer to a query of kind {kind_of(query)}, "
            f"got one to {shown(header['answer_to'])}"
        )
    return query.read(numbers)
