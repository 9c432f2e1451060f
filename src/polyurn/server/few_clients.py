"""What too few clients cannot give, in words.

Numbers of clients in, sentences out; empty ones where there are enough. Nothing is refused here.
"""

from collections.abc import Sequence

from polyurn.wording.numbers import counted

# With fewer for each component, some may have a client or two: the Hessian says little then, and a
# concentration may rise for ever with hardly a gain.
CLIENTS_EACH = 10
# Fewer have no standard error to speak of.
_FEW_HELD_OUT = 30


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
