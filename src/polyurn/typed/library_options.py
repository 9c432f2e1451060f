"""Options of a class of another library, chosen by its name: those that it has, by their names.

Their values are the library's business.
"""

import inspect
from collections.abc import Callable, Collection, Iterable
from typing import Any

from polyurn.errors import ParameterError
from polyurn.typed.json_form import shown


def check_options(
    name: str, made: Callable[..., Any], given: Iterable[str], *, ours: Collection[str] = ()
) -> None:
    """Refuse options that a class does not have.

    Parameters
    ----------
    name : str
        The class's in an error.
    made : class
    given : names of options
    ours : names of arguments, optional
        We pass them ourselves.

    Raises
    ------
    ParameterError
        It names those that there are.

    Examples
    --------
    >>> from fractions import Fraction
    >>> check_options("Fraction", Fraction, ["speed"], ours=["numerator"])
    Traceback (most recent call last):
    ...
    polyurn.errors.ParameterError: Fraction has no option 'speed'; expected one of denominator
    """
    names = inspect.signature(made).parameters
    known = [one for one in names if one not in ours and not one.startswith("_")]
    for option in given:
        if option not in known:
            raise ParameterError(
                f"{name} has no option {shown(option)}; expected one of {', '.join(known)}"
                if known
                else f"{name} has no option {shown(option)}; expected none"
            )
