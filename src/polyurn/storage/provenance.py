"""How a file came about: the field "provenance" of a model's file or of a comparison.

The version, seed and command, the data, the rounds of the fit, and the traffic between a federation's
nodes and the server. What a user adds is kept as it is. Nothing is measured here, and no
file is read or written.
"""

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any, Self

from polyurn.errors import FileError, ParameterError
from polyurn.privacy.private_aggregator import PrivateAggregator
from polyurn.privacy.statement import Guarantee, in_words
from polyurn.server.fit_results import Fit
from polyurn.typed.json_form import Count, Finite, from_json, read_value, shown, to_json
from polyurn.wire import Aggregator
from polyurn.wire.traffic import Traffic

UNKNOWN_ORIGIN = "no guarantee: the file does not say how it was made"


@dataclass(frozen=True, kw_only=True)
class DataProvenance:
    """The table that was fitted: its name, three sums and the names of its columns, no client.

    With the columns a similar table can be read without naming them again; `category` is
    "origin,destination" where the category is that of crossed columns. `held_out` is the share of
    clients that only scored; an aggregator with the file's seed draws them again.
    """

    file: str
    n_clients: Count
    n_categories: Count
    n_points: Count
    client: str | None = None
    category: str | None = None
    count: str | None = None
    held_out: Finite | None = None


@dataclass(frozen=True, kw_only=True)
class PrivacyProvenance:
    """The guarantee of the releases that a model was made of, in words and in numbers.

    Programs use `guarantee` and make the words anew; None means that nothing is guaranteed.

    >>> PrivacyProvenance.of(None).statement[:13]
    'no guarantee:'
    """

    statement: str
    guarantee: Guarantee | None

    @classmethod
    def of(cls, guarantee: Guarantee | None) -> Self:
        """The section for a fit's guarantee, or for a fit without one."""
        return cls(statement=in_words(guarantee), guarantee=guarantee)

    @classmethod
    def by(cls, asked: Aggregator) -> Self:
        """Of what was asked so far, which guarantees something if the aggregator is private."""
        return cls.of(asked.guarantee() if isinstance(asked, PrivateAggregator) else None)


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """How a file came about; a fact that the file does not state is None.

    `polyurn` is the version that wrote it, `data` the table that was fitted, or what the user says about
    it; `interrupted_after_round` is the round after which the user ended the fit. `traffic` is that of a
    model that was fitted over the nodes of a federation. `more` is whatever else the user has added.
    `left_out` has a line for each part under a name of ours that could not be read; it is not written
    again.

    >>> provenance = Provenance.from_json({"seed": 1, "data": "survey 2024", "weather": "fine"})
    >>> provenance.seed, provenance.data, dict(provenance.more)
    (1, 'survey 2024', {'weather': 'fine'})
    >>> provenance.to_json()
    {'seed': 1, 'data': 'survey 2024', 'weather': 'fine'}
    >>> Provenance.from_json({"seed": 1, "fit": "by hand"}).left_out
    ("provenance.fit: expected an object, got 'by hand'",)
    """

    polyurn: str | None = None
    seed: int | str | None = None
    command: str | None = None
    data: DataProvenance | str | None = None
    interrupted_after_round: Count | None = None
    fit: Fit | None = None
    privacy: PrivacyProvenance | None = None
    traffic: Traffic | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(cls, learned: Fit, **others: Any) -> Self:
        """The provenance of a mixture that was just learned; `others` are more of the fields."""
        more = {"candidates": [asdict(one) for one in learned.raced]} if learned.raced else {}
        privacy = PrivacyProvenance.of(learned.guarantee)
        return cls(fit=learned, privacy=privacy, more=more, **others)

    @property
    def privacy_in_words(self) -> str:
        """What is guaranteed to a client; nothing if the file does not state it."""
        if self.privacy is not None:
            return in_words(self.privacy.guarantee)
        return in_words(None) if self.fit is not None else UNKNOWN_ORIGIN

    def to_json(self) -> dict[str, Any]:
        """What is known, for JSON."""
        document = to_json(self)
        del document["more"], document["left_out"]
        known = {name: value for name, value in document.items() if value is not None}
        return {**known, **self.more}

    @classmethod
    def from_json(cls, document: object, *, model: Any = None, where: str = "provenance") -> Self:
        """Read what `to_json` or a user wrote; `left_out` names the parts that could not be read.

        Version, seed, command and data are only shown, so that any value of a user is taken as a text. A
        fit gets the `model` and the guarantee of the file.
        """
        if not isinstance(document, Mapping):
            return cls(left_out=(f"{where}: expected an object, got {shown(document)}",))
        seed = document.get("seed")
        values: dict[str, Any] = {
            "polyurn": _text(document.get("polyurn")),
            "seed": seed if type(seed) is int else _text(seed),
            "command": _text(document.get("command")),
        }
        left_out = []
        for name, kind in _SECTIONS.items():
            value = document.get(name)
            at = f"{where}.{name}"
            try:
                if value is None or (name == "data" and not _is_table(value)):
                    values[name] = _text(value)
                elif name == "fit":
                    known = {"mdm": model}
                    if (privacy := values.get("privacy")) is not None:
                        known["guarantee"] = privacy.guarantee
                    values[name] = from_json(kind, value, where=at, parsed=known)
                else:
                    values[name] = read_value(kind, value, at)
            except FileError as error:
                left_out.append(str(error))
        more = {name: value for name, value in document.items() if name not in _KNOWN}
        return cls(**values, more=more, left_out=tuple(left_out))

    @classmethod
    def check(cls, document: Mapping[str, Any], model: Any) -> None:
        """Refuse a value under one of our names that could not be read again."""
        if left_out := cls.from_json(document, model=model).left_out:
            names = ", ".join(_SECTIONS)
            raise ParameterError(f"{left_out[0]}; {names} are names of ours: use another name")


def _text(value: object) -> str | None:
    return value if value is None or isinstance(value, str) else shown(value)


def _is_table(value: object) -> bool:
    """Whether it is a table of ours, which has all our names; other data are in the user's words."""
    names = {item.name for item in fields(DataProvenance) if item.default is MISSING}
    return isinstance(value, Mapping) and names <= set(value)


# The sections with a form of ours; each can be left out alone. A fit has the guarantee of `privacy`.
_SECTIONS: dict[str, Any] = {
    "data": DataProvenance,
    "interrupted_after_round": Count,
    "privacy": PrivacyProvenance,
    "fit": Fit,
    "traffic": Traffic,
}
_KNOWN = {item.name for item in fields(Provenance)} - {"more", "left_out"}
