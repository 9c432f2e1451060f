"""Which colour, dash and shape stand for which population, component and category.

Okabe and Ito's colours, which colour-blind people tell apart; never colour alone. The page knows them as
CSS variables (`style.css` has lighter ones for a dark page), papers as numbers. Nothing is drawn here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Populations that every page has in the same colours: the paper's.
_KNOWN = ("true", "mdm", "iid", "oracle")
# For a light page or paper; style.css has the same under --tone-0, --tone-1, ...
TONES = (
    "#1b1f24", "#0072b2", "#d55e00", "#007a5a", "#b0497f", "#7a5c00", "#2f86c6", "#5b5ea6", "#6b7280",
)  # fmt: skip
# Categories: paler, because they fill areas.
FILLS = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c7ae6", "#b8a800", "#b4bac4",
)  # fmt: skip
_DASHES: tuple[tuple[int, ...], ...] = ((2, 3), (), (8, 3), (8, 3, 2, 3), (5, 2), (1, 1))
_SHAPES = ("circle", "triangle-up", "cross", "square", "diamond", "triangle-down")


@dataclass(frozen=True)
class Look:
    """How one population is drawn.

    Attributes
    ----------
    tone : int
        Which of `TONES`.
    dash : tuple of int
        Of lines; the true clients' are dotted, as in the paper.
    shape : str
        Of points, by Vega's name.
    """

    tone: int
    dash: tuple[int, ...]
    shape: str


def population_looks(names: Iterable[str]) -> dict[str, Look]:
    """A look for each population, the same on every page for those that the paper has.

    Examples
    --------
    >>> [look.tone for look in population_looks(["iid", "mine", "true"]).values()]
    [0, 2, 4]
    """
    given = dict.fromkeys(names)
    known = [name for name in _KNOWN if name in given]
    looks = {name: _look(_KNOWN.index(name)) for name in known}
    for i, name in enumerate(name for name in given if name not in _KNOWN):
        looks[name] = _look(len(_KNOWN) + i)
    return looks


def tone(number: int) -> str:
    """The CSS variable of a population's or component's colour."""
    return f"var(--tone-{number % len(TONES)})"


def fills(names: Sequence[str]) -> list[str]:
    """The CSS variables of the categories' colours; the last name, of all others, is grey."""
    return [f"var(--fill-{fill_number(i, names)})" for i in range(len(names))]


def fill_number(i: int, names: Sequence[str]) -> int:
    """Which of `FILLS` the i-th of these categories has."""
    grey = len(FILLS) - 1
    return grey if names[i] == "other" and i == len(names) - 1 else i % grey


def shapes(n: int) -> list[str]:
    """The shapes of so many kinds of points; the first six differ."""
    return [_SHAPES[i % len(_SHAPES)] for i in range(n)]


def _look(number: int) -> Look:
    return Look(number, _DASHES[number % len(_DASHES)], _SHAPES[number % len(_SHAPES)])
