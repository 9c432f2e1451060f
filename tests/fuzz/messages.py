"""Whether an error is one that helps: one line, in our words, which says what to do.

The rule is mechanical, and so rather strict. It reads nothing but the text.
"""

import re

# A line that is longer than this hides what it says.
LONGEST = 700

# What was expected, or what to do. One of these has to be there.
_HELPS = re.compile(
    r"""
    \bexpected\b | \bneeds?\b | \bonly\b | \bat\ (least|most)\b | \bone\ of\b | \bbetween\b
    | \bis\ missing\b | \bis\ an?\ .*,\ got\b | \bbeyond\ the\ largest\b | \?$
    | ;\ it\ has\ \w | ;\ there\ are\ (?!none)
    | \(at\ (line|end)\b | \bdid\ you\ mean\b | \bhas\ no\ meaning\b
    | (^|\W)--?[a-z][a-z-]* | \bpip\ install\b
    | [;:,.]\ (or\ )?(please\ )?
      (allow|ask|check|choose|copy|declare|delete|draw|drop|export|fill|fit|give|leave|lower|make|merge
       |move|name|pass|put|quote|raise|remove|rename|repeat|replace|run|save|set|start|take|train
       |try|turn|unpack|upgrade|use|wait|wrap|write)\b
    """,
    re.VERBOSE | re.IGNORECASE,
)

# The system's own reasons say it all: the name of the file stands beside them.
_OF_THE_SYSTEM = re.compile(
    "No such file or directory|Is a directory|Not a directory|Permission denied|File name too long"
    "|No space left on device|Too many levels of symbolic links|File exists|Read-only file system"
)

# Words of the program, not of its user.
_INTERNAL = re.compile(
    r"""
    Traceback | \bat\ 0x[0-9a-f]+ | <class | \bNoneType\b | \bndarray\b | \bdtype\b
    | \bargument\ of\ type | \bunsupported\ operand | \bobject\ (is|has|cannot|does|of)\b
    | \bnot\ subscriptable
    | \bout\ of\ (range|bounds)\ for\b | \bindex\ out\ of\ range | \[Errno | positional\ argument
    | \bkeyword\ argument | \bunhashable | \bbroadcast | \binvalid\ literal | \bcodec\b
    | \bcould\ not\ convert | \bNot\ a\ Parquet\ | \bKeyError | \bArrow[A-Z] | \bnan\b\ is\ not
    """,
    re.VERBOSE,
)

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")


def fault(text: str, *, to_programmer: bool = False) -> str | None:
    """What is wrong with an error's text, or None.

    Parameters
    ----------
    text : str
    to_programmer : bool
        Raised by a call, not printed by a command: it may go over lines, and speak of arrays.

    Examples
    --------
    >>> fault("expected a seed of at least 0, got -1")
    >>> fault("the file is strange")
    'does not say what to do'
    >>> fault("expected a number, got 'NoneType' object is not subscriptable")
    "speaks of the inside: 'NoneType'"
    """
    if not text.strip():
        return "says nothing"
    if not (_HELPS.search(text) or _OF_THE_SYSTEM.search(text)):
        return "does not say what to do"
    if to_programmer:
        return None
    if len(text) > LONGEST:
        return f"longer than {LONGEST} characters"
    if _CONTROL.search(text):
        return "has control characters"
    inside = _INTERNAL.search(text)
    return f"speaks of the inside: {inside[0]!r}" if inside else None
