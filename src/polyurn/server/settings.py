"""What a caller may ask of a fit: size models by name, and settings that are in range.

Checked before any client is asked. What a setting does is in `fit.py`, `paper.py` and `select.py`.
"""

from typing import Literal, TypeAlias

import numpy as np

from polyurn.errors import ParameterError
from polyurn.model.sizes import SizeBins

SizeModel: TypeAlias = Literal["exact", "binned", "shared"] | SizeBins


def check_settings(
    *,
    n_components: int,
    max_rounds: int,
    tol: float,
    patience: int,
    max_upload: int,
    size_prior: float,
    category_prior: float,
) -> None:
    """Refuse settings of a search that are out of range."""
    check_model(n_components=n_components, size_prior=size_prior, category_prior=category_prior)
    if max_rounds < 3:
        raise ParameterError(f"expected max_rounds of at least 3, got {max_rounds}")
    if not (tol > 0 and max_upload >= 1):
        raise ParameterError("expected a positive tol and max_upload")
    if patience < 0:
        raise ParameterError(f"expected patience of at least 0 rounds, got {patience}")


def check_model(*, n_components: int, size_prior: float, category_prior: float) -> None:
    """Refuse a number of components or a prior out of range."""
    if not (hasattr(n_components, "__index__") and 1 <= n_components < 2**16):
        raise ParameterError(f"expected n_components of 1 to 65535, got {n_components}")
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
