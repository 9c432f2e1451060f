"""Words of messages, tables and pages: numbers with their nouns, bytes, times and lists of names."""

from collections.abc import Collection, Sequence

_LONGEST = 40  # letters of a name in a list


def counted(n: float, one: str, many: str = "") -> str:
    """A whole number and its noun, singular or plural, with commas between thousands.

    `one` is what one is called, with its verb if it has one; `many` are several, if it is not `one` with
    -s or -ies.

    >>> counted(1, "component"), counted(0, "category"), counted(12_345, "held-out client")
    ('1 component', '0 categories', '12,345 held-out clients')
    >>> counted(1, "client holds", "clients hold")
    '1 client holds'
    """
    return f"{n:,.0f} {one if n == 1 else many or _plural(one)}"


def in_bytes(n: int) -> str:
    """A number of bytes in the largest unit that it fills; a kB is a thousand.

    >>> in_bytes(812), in_bytes(48_000), in_bytes(2_390_104), in_bytes(12 * 10**9)
    ('812 B', '48.0 kB', '2.4 MB', '12.0 GB')
    """
    if n < 1_000:
        return f"{n} B"
    for unit, size in (("kB", 10**3), ("MB", 10**6)):
        if n < 999.95 * size:  # 999.96 would be shown as 1000.0
            return f"{n / size:.1f} {unit}"
    return f"{n / 10**9:,.1f} GB"


def in_time(seconds: float) -> str:
    """A time for which somebody waited.

    >>> in_time(3.21), in_time(119), in_time(1_500), in_time(7_200)
    ('3.2 s', '119 s', '25 min', '2.0 h')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7_200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3_600:,.1f} h"


def listed(names: Sequence[object], most: int = 8) -> str:
    """So many names, long ones cut, and the number of the others.

    >>> listed(["a", "b", "c" * 50]), listed(range(9), 2), listed([])
    ('a, b, cccccccccccccccccccccccccccccccccccccccc...', '0, 1 and 7 more', 'none')
    """
    texts = map(str, names[:most])
    short = [name if len(name) <= _LONGEST else f"{name[:_LONGEST]}..." for name in texts]
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{', '.join(short)}{more}" if short else "none"


def span(numbers: Sequence[int]) -> str:
    """The smallest and the largest of some numbers.

    >>> span([9, 7, 9]), span([9, 9])
    ('7 to 9', '9')
    """
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def aligned(rows: Sequence[Sequence[str]], *, left: Collection[int] = (0,)) -> list[str]:
    """Lines of a table in columns; those of texts (`left`) begin at the left.

    >>> aligned([("", "n"), ("owls", "12")])
    ['       n', 'owls  12']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if j in left else cell.rjust(width)
            for j, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def ranges(numbers: Sequence[int], most: int = 8) -> str:
    """Whole numbers in increasing order, those of a run of three or more as its ends.

    >>> ranges([1, 2, 3, 4, 8, 9]), ranges(range(138, 401)), ranges(range(0, 40, 2), 3)
    ('1 to 4, 8, 9', '138 to 400', '0, 2, 4 and 17 more')
    """
    runs: list[list[int]] = []
    for n in numbers:
        if runs and n == runs[-1][-1] + 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    parts = [f"{r[0]} to {r[-1]}" if len(r) > 2 else ", ".join(map(str, r)) for r in runs]
    return listed(parts, most)


def _plural(noun: str) -> str:
    return f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2] not in "aeiou" else f"{noun}s"


def capital(text: str) -> str:
    """The text with a capital letter first.

    >>> capital("one sentence.")
    'One sentence.'
    """
    return f"{text[:1].upper()}{text[1:]}"
