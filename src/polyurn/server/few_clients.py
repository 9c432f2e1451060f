"""What too few clients cannot give: in words, or as an error where they give nothing at all.

Numbers of clients in, sentences out; empty ones where there are enough.
"""

import math
from collections.abc import Sequence

from polyurn.errors import ParameterError
from polyurn.wording.numbers import counted

# With fewer for each component, some may have a client or two: the Hessian says little then, and a
# concentration may rise for ever with hardly a gain.
CLIENTS_EACH = 10
# Fewer have no standard error to speak of.
_FEW_HELD_OUT = 30
# A standard error needs two held-out clients; where five are expected, there are two but 4 times in 100.
_FEWEST_HELD_OUT, _ENOUGH_HELD_OUT = 2, 5


def few_clients(n_clients: float, n_components: Sequence[int]) -> str:
    """What so few clients cannot say about some of these numbers of components.

    Examples
    --------
    >>> few_clients(3, [1])
    '3 clients are few for K = 1 (fewer than 10 for each component): the result describes these
    clients, and says little about others'
    >>> few_clients(1_000, [1, 2, 4])
    ''
    """
    crowded = [str(k) for k in n_components if n_clients < CLIENTS_EACH * k]
    if not crowded:
        return ""
    return (
        f"{counted(n_clients, 'client is', 'clients are')} few for K = {', '.join(crowded)} (fewer "
        f"than {CLIENTS_EACH} for each component): the result describes these clients, and says little "
        "about others"
    )


def few_held_out(n_held_out: int) -> str:
    """What so few held-out clients cannot say about the number of components.

    Examples
    --------
    >>> few_held_out(5)
    '5 held-out clients are too few to tell one K from another, unless they differ by far'
    """
    if n_held_out >= _FEW_HELD_OUT:
        return ""
    return (
        f"{counted(n_held_out, 'held-out client')} are too few to tell one K from another, unless "
        "they differ by far"
    )


def check_components(n_clients: float, n_components: int) -> None:
    """Refuse fewer clients than components."""
    if n_clients < n_components:
        needs = counted(n_components, "component needs", "components need")
        raise ParameterError(
            f"{needs} at least as many clients, got {n_clients:,.0f}; take fewer components, or ask "
            "more clients"
        )


def check_parts(n_fitted: float, n_held_out: float, *, held_out: float) -> None:
    """Refuse too few clients in either part of a selection that holds out this share of them."""
    if n_fitted < 1 or n_held_out < _FEWEST_HELD_OUT:
        enough = math.ceil(_ENOUGH_HELD_OUT / min(held_out, 1 - held_out))
        raise ParameterError(
            f"expected at least 1 client to fit and {_FEWEST_HELD_OUT} held out, got {n_fitted:.0f} "
            f"and {n_held_out:.0f}; held_out={held_out:g} needs {enough:,} clients or more"
        )
