"""The settings of a fit, checked before any client is asked; and warnings about too few clients.

`fitting.py`, `search.py` and `paper.py` use the settings.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from polyurn.errors import ParameterError
from polyurn.model.sizes import SizeBins
from polyurn.model.trees import Tree
from polyurn.typed.arguments import checked
from polyurn.typed.declared import Above, AtLeast, Between, check_declared
from polyurn.typed.json_form import Count
from polyurn.wording import counted, ranges

# A result keeps every round; no fit has needed a thousand.
MOST_ROUNDS = 1_000_000
# With fewer clients per component, some component may have one or two: its Hessian is then poor, and
# its concentration may rise without end for hardly any gain.
CLIENTS_EACH = 10
# The standard error of fewer is not reliable.
_FEW_HELD_OUT = 30
# A standard error needs two held-out clients; if five are expected, there are fewer 4 times in 100.
_FEWEST_HELD_OUT, _ENOUGH_HELD_OUT = 2, 5

# K, C, and pseudo-clients or pseudo-tables.
NComponents: TypeAlias = Annotated[int, Between(1, 2**16 - 1)]
NCategories: TypeAlias = Annotated[int, AtLeast(2)]
Prior: TypeAlias = Annotated[float, Between(0, 1e9)]
_Some: TypeAlias = Annotated[int, AtLeast(1)]
_Positive: TypeAlias = Annotated[float, Above(0)]
# What components are, see `fit`.
Shape: TypeAlias = Literal["auto", "dirichlet", "tree", "laws"]
SizeModel: TypeAlias = Literal["exact", "binned", "shared"] | SizeBins


@checked
@dataclass(frozen=True)
class Policy:
    """The tuned numbers of the search: what it tries, how often, and when it has converged."""

    # Successive halving (Jamieson and Talwalkar, 2016): likelihood says little about a start at first.
    starts: _Some = 48  # random groupings of the clients
    halve_every: _Some = 2  # rounds after which half of the starts leave ...
    finalists: _Some = 6  # ... until so many are left; so many climbers take Newton steps

    # Recombination: the leader with one component of another start, present or retired.
    recombined: Count = 8  # starts in each round; a steady stream finds what generations miss
    recombined_from: Count = 4  # the round of trials in which the first begin
    unranked: Count = 3  # rounds in which they are not compared with the others

    # Newton steps (saddle-free: Dauphin et al., 2014), with Levenberg and Marquardt's damping.
    damping: _Positive = 1e-4  # of the first step, in the units of the mean Hessian's eigenvalues
    # Times the damping that was best last time.
    dampings: Annotated[tuple[float, ...], Above(0)] = (0.03, 1.0, 30.0)
    longest: _Positive = 3.0  # no logarithm of a parameter moves further in one step
    caution: _Positive = 0.25  # the fraction of an EM step that is tried after one that gained none

    # Stopping.
    # Climbers this close in every logarithm, and within tol, are at one optimum.
    met: Annotated[float, Between(0, math.inf)] = 0.1
    safety: _Positive = 10.0  # the remaining gain is an estimate, so it is taken tenfold

    # Screening on a part of the clients, where there are many.
    clients_per_parameter: _Some = 30  # in the part, which is then off by 1/60 nats per client
    fewest_clients: _Some = 1_000  # in the part
    screened_from: _Some = 8  # parts: with fewer clients than that, screening saves nothing

    # Sampled cohorts: stepwise EM and averaged Newton steps.
    averaging: _Positive = 0.6  # cohort n has weight n^-0.6 (Cappé and Moulines, 2009)
    full_weight: _Some = 20  # cohorts before this one count for less: their parameters were poor
    lag: _Some = 5  # rounds over which gains are compared with the noise of the cohorts

    def __post_init__(self) -> None:
        if not self.dampings:
            raise ParameterError("expected the policy's dampings, one or several, got none")


DEFAULT = Policy()


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How long a search goes on, which clients it asks, and how much they may send; see `fit`."""

    max_rounds: Annotated[int, Between(3, MOST_ROUNDS)] = 50
    cohort_size: int | None = None
    tol: _Positive = 1e-3
    patience: Count = 3
    max_upload: _Some = 50_000
    policy: Policy = DEFAULT
    shape: Shape = "dirichlet"
    tree: Tree | None = None

    def __post_init__(self) -> None:
        check_declared(self)


def size_bins(sizes: SizeModel, max_size: int) -> SizeBins:
    """The bins that a name of a size model stands for."""
    match sizes:
        case SizeBins():
            if sizes.max_size != max_size:
                raise ParameterError(
                    f"expected size bins that end at max_size {max_size}, got {sizes.max_size}"
                )
            return sizes
        case "exact":
            return SizeBins.exact(max_size)
        case "binned" | "shared":
            return SizeBins.logarithmic(max_size)


def few_clients(n_clients: float, n_components: Sequence[int]) -> str:
    """A warning if there are few clients for some of these numbers of components; else empty.

    >>> few_clients(3, [1])
    '3 clients are few for K = 1 (fewer than 10 for each component): the result describes these
    clients, and says little about others'
    >>> few_clients(1_000, [1, 2, 4])
    ''
    """
    crowded = [k for k in n_components if n_clients < CLIENTS_EACH * k]
    if not crowded:
        return ""
    return (
        f"{counted(n_clients, 'client is', 'clients are')} few for K = {ranges(crowded)} (fewer "
        f"than {CLIENTS_EACH} for each component): the result describes these clients, and says little "
        "about others"
    )


def few_held_out(n_held_out: int) -> str:
    """A warning if there are few held-out clients to choose the number of components; else empty.

    >>> few_held_out(5)
    '5 held-out clients are too few to tell one K from another, unless they differ by far'
    """
    if n_held_out >= _FEW_HELD_OUT:
        return ""
    return (
        f"{counted(n_held_out, 'held-out client')} are too few to tell one K from another, unless "
        "they differ by far"
    )


def largest_won(chosen: int, offered: Sequence[int]) -> str:
    """What to do where the largest of several numbers of components was chosen; else empty."""
    if len(offered) < 2 or chosen < max(offered):
        return ""
    more = ", ".join(map(str, sorted({chosen, chosen + (chosen + 1) // 2, 2 * chosen})))
    return (
        f"K = {chosen} is the largest that was offered, and more may be better: offer --components "
        f"{more.replace(' ', '')} (in Python n_components=[{more}])"
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
    """Refuse a selection with too few clients to fit, or too few that are held out."""
    if n_fitted < 1 or n_held_out < _FEWEST_HELD_OUT:
        enough = math.ceil(_ENOUGH_HELD_OUT / min(held_out, 1 - held_out))
        raise ParameterError(
            f"expected at least 1 client to fit and {_FEWEST_HELD_OUT} held out, got {n_fitted:.0f} "
            f"and {n_held_out:.0f}; held_out={held_out:g} needs {enough:,} clients or more; one "
            "number of components (--components 1, n_components=1) needs nobody held out"
        )
