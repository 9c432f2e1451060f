"""The exceptions that polyurn raises on purpose.

PolyurnError
├── InputError            (also a ValueError)   what the caller passed cannot be used
│   ├── CountsError                             histograms that are not histograms
│   │   └── RowError                            something wrong in one row of a table
│   ├── SizeError                               a client larger than the declared max_size
│   ├── PartitionError                          proxy data that cannot give clients what they ask for
│   │   └── ShortfallError                      categories of which there are too few points
│   ├── MemoryLimitError                               what was asked for does not fit into memory
│   ├── MessageError                            bytes that are no query and no answer
│   │   └── NumbersError                        a number in them is NaN, infinite or beyond 1e150
│   └── ParameterError                          parameters or settings out of range
├── FitError              (also a RuntimeError) the fit cannot go on
│   ├── EmptyComponentError                     a component received no client
│   ├── ZeroLikelihoodError                     a client is impossible under the current parameters
│   ├── NodesError                              too few nodes of a federation are there, or answer
│   └── BudgetError                             a question would cost more privacy than is left
├── TrainingError         (also a RuntimeError) a training run or a sweep cannot go on
├── SecureSumError        (also a RuntimeError) a secure sum cannot go on
│   ├── RefusedError                            a message that does not keep to the protocol
│   └── LostRoundError                          too few nodes are left for a sum
├── FederationError       (also a RuntimeError) processes of a federation cannot start or be reached
├── FileError             (also an OSError)     a file is unreadable, damaged or too new
└── MissingDependencyError (also an ImportError) an optional package is not installed

StyleWarning (a UserWarning) is no error: the proxy data could not serve all of the clients' styles.

All of them can be pickled: they come back from the workers of a sweep. Nothing is caught or logged here.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Self


class PolyurnError(Exception):
    """Base of every exception that polyurn raises on purpose.

    A pickle calls the class again with what it was called with: Python would call it with the message.
    """

    _called_with: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        error = super().__new__(cls, *args)
        error._called_with = args, kwargs
        return error

    def __reduce__(self) -> tuple[Any, ...]:
        args, kwargs = self._called_with
        return partial(type(self), **kwargs), args, self.__dict__


class InputError(PolyurnError, ValueError):
    """What the caller passed cannot be used."""


class CountsError(InputError):
    """Counts that are negative, fractional, missing, too large, empty or of the wrong shape."""


class RowError(CountsError):
    """Something wrong in a row of a table, counted from 0 without a header; the message goes around it.

    >>> error = RowError("got -3", 7, after="; drop it")
    >>> str(error), error.at("line 9")
    ('got -3 in row 7, counted from 0; drop it', 'got -3 in line 9; drop it')
    """

    def __init__(self, before: str, row: int, after: str = "") -> None:
        super().__init__(before, row, after)
        self.row = row

    def __str__(self) -> str:
        return self.at(f"row {self.row}, counted from 0")

    def at(self, row: str) -> str:
        """The message with another name for the row: its line in a file."""
        before, _, after = self.args
        return f"{before} in {row}{after}"


class SizeError(InputError):
    """A client holds more points than the declared `max_size`."""


class PartitionError(InputError):
    """Proxy data that cannot give clients what they ask for: labels out of range, too few points."""


class ShortfallError(PartitionError):
    """Categories of which there are too few points for what clients ask for.

    `text` is the message, with `{}` where it names the categories, by their numbers unless there are
    `names`; `missing` is how many points of each are missing, if the message says so.
    """

    _SHOWN = 8

    def __init__(
        self,
        text: str,
        categories: Sequence[int],
        missing: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        called = [str(j) if names is None else names[j] for j in categories[: self._SHOWN]]
        if missing is not None:
            called = [f"{n} of category {name}" for n, name in zip(missing, called, strict=False)]
        more = len(categories) - len(called)
        super().__init__(text.format(", ".join(called) + (f" and {more} more" if more > 0 else "")))
        self._parts = text, categories, missing

    def named(self, names: Sequence[str]) -> "ShortfallError":
        """The same error with the names of the categories instead of their numbers."""
        return ShortfallError(*self._parts, names)


class MemoryLimitError(InputError):
    """What was asked for does not fit into memory."""


class MessageError(InputError):
    """Bytes that are no query or answer, or a query or answer that cannot be sent as bytes."""


class NumbersError(MessageError):
    """A number in a message is NaN, infinite or beyond 1e150."""


class ParameterError(InputError):
    """Parameters of a distribution, or settings of a fit, are out of range."""


class FitError(PolyurnError, RuntimeError):
    """The fit cannot go on."""


class EmptyComponentError(FitError):
    """A component received no client, so that its parameters are not defined."""


class ZeroLikelihoodError(FitError):
    """A client of the cohort has probability zero under every component."""


class NodesError(FitError):
    """Too few nodes of a federation are there, or answer."""


class BudgetError(FitError):
    """A question would cost more privacy than the ledger's budget has left; it was not asked."""


class TrainingError(PolyurnError, RuntimeError):
    """A training run or a sweep cannot go on."""


class TrainerError(TrainingError):
    """A trainer of the user's crashed, hung or reported something else than metrics; `output` is what it
    printed, or its traceback.
    """

    def __init__(self, text: str, output: str = "") -> None:
        super().__init__(text)
        self.output = output


class SecureSumError(PolyurnError, RuntimeError):
    """A secure sum cannot go on; `node` is the one that the message is about, if it is about one."""

    def __init__(self, text: str, node: int | None = None) -> None:
        super().__init__(text)
        self.node = node


class RefusedError(SecureSumError):
    """A message that does not keep to the protocol of a secure sum; nothing was answered."""


class LostRoundError(SecureSumError):
    """Too few nodes are left for a secure sum, or their shares do not fit together."""


class FederationError(PolyurnError, RuntimeError):
    """The processes of a federation cannot be started, reached or joined."""


class FileError(PolyurnError, OSError):
    """A file cannot be read or written, is damaged, or was written by a later version."""


class MissingDependencyError(PolyurnError, ImportError):
    """An optional package is needed and not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}: pip install 'polyurn[{extra}]'")


class StyleWarning(UserWarning):
    """The proxy data have too few points of the clients' styles; part of the style was left out."""
