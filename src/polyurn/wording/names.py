"""Lists of names in sentences."""

from collections.abc import Sequence


def differing(expected: Sequence[str], got: Sequence[str]) -> str:
    """How two lists of names differ, in so few of them that both can be shown.

    Examples
    --------
    >>> differing(["cat", "dog"], ["dog", "cat"])
    "in its order, number 0 being 'cat', got 'dog'"
    >>> differing(["cat", "dog"], ["cat", "dog", "owl"])
    "2 of them, got 3, 'owl' among them"
    """
    if len(expected) != len(got):
        other = next(n for n in (*expected, *got) if (n in expected) != (n in got))
        lack = "not " if other in expected else ""
        return f"{len(expected):,} of them, got {len(got):,}, {other!r} {lack}among them"
    k = next(k for k, names in enumerate(zip(expected, got, strict=True)) if len(set(names)) == 2)
    return f"in its order, number {k} being {expected[k]!r}, got {got[k]!r}"
