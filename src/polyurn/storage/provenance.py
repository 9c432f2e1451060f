"""How a file came about: what stands under "made" in an MDM or a comparison file.

The version, seed and command, the data, and the rounds of the fit or the selection. What a user adds is
kept as it is. Nothing is measured here, and no file is read or written.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Self

from polyurn.errors import FileError, ParameterError
from polyurn.server.records import FitRecord, SelectionRecord
from polyurn.typed.records import Count, read_record, shown, to_record


@dataclass(frozen=True, kw_only=True)
class DataRecord:
    """The table that was fitted: its name, three sums and the names of its columns, no client.

    Attributes
    ----------
    file : str
    n_clients, n_categories, n_points : int
    client, category, count : str or None
        The columns that were read, so that a similar table can be read without naming them again.
    """

    file: str
    n_clients: Count
    n_categories: Count
    n_points: Count
    client: str | None = None
    category: str | None = None
    count: str | None = None


@dataclass(frozen=True, kw_only=True)
class Made:
    """How a file came about; what it does not say is None.

    Attributes
    ----------
    polyurn : str or None
        The version that wrote it.
    seed : int or str or None
    command : str or None
    data : DataRecord, str or None
        The table that was fitted, or what the user says about it.
    interrupted_after_round : int or None
        The round after which the user ended the fit.
    fit : FitRecord or None
    selection : SelectionRecord or None
    more : mapping
        Whatever else the user had to say.

    Examples
    --------
    >>> made = Made.from_record({"seed": 1, "data": "survey 2024", "weather": "fine"})
    >>> made.seed, made.data, dict(made.more)
    (1, 'survey 2024', {'weather': 'fine'})
    >>> made.to_record()
    {'seed': 1, 'data': 'survey 2024', 'weather': 'fine'}
    """

    polyurn: str | None = None
    seed: int | str | None = None
    command: str | None = None
    data: DataRecord | str | None = None
    interrupted_after_round: Count | None = None
    fit: FitRecord | None = None
    selection: SelectionRecord | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rounds(self) -> FitRecord | SelectionRecord | None:
        """The rounds of the selection or the fit, if the file keeps them."""
        return self.selection or self.fit

    def to_record(self) -> dict[str, Any]:
        """What is said, for JSON."""
        record = to_record(self)
        del record["more"]
        said = {name: value for name, value in record.items() if value is not None}
        return {**said, **self.more}

    @classmethod
    def from_record(cls, record: object, *, where: str = "made") -> Self:
        """What `to_record` or a user wrote, checked.

        Version, seed, command and data are only ever shown: what a user says there is taken as a text.

        Raises
        ------
        FileError
            The record of the fit, the selection or the data is damaged.
        """
        if not isinstance(record, Mapping):
            raise FileError(f"{where}: expected an object, got {shown(record)}")
        known = {item.name for item in fields(cls)} - {"more"}
        seed = record.get("seed")
        parsed = {
            "polyurn": _text(record.get("polyurn")),
            "seed": seed if type(seed) is int else _text(seed),
            "command": _text(record.get("command")),
            "data": _data(record.get("data"), f"{where}.data"),
            "more": {name: value for name, value in record.items() if name not in known},
        }
        return read_record(cls, record, where=where, parsed=parsed)


def checked_made(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same record, if it can be read again.

    Raises
    ------
    ParameterError
        What stands in the place of one of our records is none.
    """
    try:
        Made.from_record(record)
    except FileError as error:
        raise ParameterError(str(error)) from error
    return record


def _text(value: object) -> str | None:
    return value if value is None or isinstance(value, str) else shown(value)


def _data(value: Any, where: str) -> DataRecord | str | None:
    """A table of ours has all our names; anything else is in the user's words."""
    names = {item.name for item in fields(DataRecord) if item.default is MISSING}
    if isinstance(value, Mapping) and names <= set(value):
        return read_record(DataRecord, value, where=where)
    return _text(value)
