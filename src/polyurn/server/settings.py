"""What a caller may ask of a fit: size models by name, and settings that are in range.

Checked before any client is asked. What a setting does is in `fit.py`, `paper.py` and `select.py`.
"""

from typing import Literal, TypeAlias

import numpy as np

from polyurn.errors import ParameterError
from polyurn.model.sizes import SizeBins
from polyurn.server.search.policy import Policy

# Each of them is kept; no fit has needed a thousand.
MOST_ROUNDS = 1_000_000

# Of a policy's numbers; the others are above 0.
_MAY_BE_ZERO = ("children", "children_from", "childhood", "met", "full_weight")

SizeModel: TypeAlias = Literal["exact", "binned", "shared"] | SizeBins


def check_settings(
    *,
    n_components: int,
    n_categories: int,
    max_rounds: int,
    tol: float,
    patience: int,
    max_upload: int,
    size_prior: float,
    category_prior: float,
    policy: Policy,
) -> None:
    """Refuse settings of a search that are out of range."""
    check_model(
        n_components=n_components, n_categories=n_categories, size_prior=size_prior,
        category_prior=category_prior,
    )  # fmt: skip
    if not 3 <= max_rounds <= MOST_ROUNDS:
        raise ParameterError(f"expected max_rounds from 3 to {MOST_ROUNDS}, got {max_rounds}")
    if not tol > 0:  # NaN is not
        raise ParameterError(f"expected tol above 0, got {tol}")
    if max_upload < 1:
        raise ParameterError(f"expected max_upload of at least 1, got {max_upload}")
    if patience < 0:
        raise ParameterError(f"expected patience of at least 0 rounds, got {patience}")
    for name, value in vars(policy).items():
        numbers = value if isinstance(value, tuple) else (value,)
        low, bound = (0.0, "of at least 0") if name in _MAY_BE_ZERO else (1e-300, "above 0")
        if not numbers or not all(low <= number < np.inf for number in numbers):
            raise ParameterError(f"expected the policy's {name} {bound}, got {value!r}")


def check_model(
    *, n_components: int, n_categories: int, size_prior: float, category_prior: float
) -> None:
    """Refuse a number of components or categories, or a prior, out of range."""
    if not 1 <= n_components < 2**16:
        raise ParameterError(f"expected n_components of 1 to 65535, got {n_components}")
    if n_categories < 2:
        raise ParameterError(f"expected n_categories of at least 2, got {n_categories}")
    for name, prior in (("size_prior", size_prior), ("category_prior", category_prior)):
        if not (np.isfinite(prior) and prior >= 0):
            raise ParameterError(f"expected a finite {name} of at least 0, got {prior}")


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
        case _:
            raise ParameterError(
                f"expected sizes 'exact', 'binned', 'shared' or SizeBins, got {sizes!r}"
            )
