"""Numbers with their nouns, as messages, tables and pages say them.

Nothing is measured or printed here.
"""


def counted(n: float, one: str, many: str = "") -> str:
    """A whole number and its noun, singular or plural, with commas between thousands.

    Parameters
    ----------
    n : float
    one : str
        What one is called, with its verb if it has one.
    many : str
        What several are called, if it is not `one` with -s or -ies.

    Examples
    --------
    >>> counted(1, "component"), counted(0, "category"), counted(12_345, "held-out client")
    ('1 component', '0 categories', '12,345 held-out clients')
    >>> counted(1, "client holds", "clients hold")
    '1 client holds'
    """
    return f"{n:,.0f} {one if n == 1 else many or _plural(one)}"


def _plural(noun: str) -> str:
    return f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2] not in "aeiou" else f"{noun}s"
