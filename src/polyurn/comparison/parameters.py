"""How far two sets of parameters are apart: the paper's normalised error, components matched.

Nothing is fitted or drawn here.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from polyurn.errors import ParameterError
from polyurn.model.mdm import MDM
from polyurn.typed.arguments import checked
from polyurn.typed.declared import Floats


@dataclass(frozen=True)
class ParameterComparison:
    """Normalised errors of a fitted MDM's parameters against a reference.

    Attributes
    ----------
    weights, alphas, sizes : float
        NMSE of each block (Appendix C.1). Entries that are zero in the reference are left out,
        where the paper's definition would divide by zero.
    components : tuple of int
        The component of the fit that was matched to each component of the reference.
    """

    weights: float
    alphas: float
    sizes: float
    components: tuple[int, ...]


@checked
def compare_parameters(fitted: MDM, reference: MDM) -> ParameterComparison:
    """Compare the parameters of two MDMs, component by component.

    Components are matched so that the NMSE of the alphas is smallest.

    Examples
    --------
    >>> from polyurn.model.sizes import Sizes
    >>> a = MDM([0.5, 0.5], [[1.0, 2.0], [8.0, 4.0]], Sizes.constant(9, n_components=2))
    >>> b = MDM([0.5, 0.5], [[8.0, 4.0], [1.0, 2.0]], Sizes.constant(9, n_components=2))
    >>> compare_parameters(a, b)
    ParameterComparison(weights=0.0, alphas=0.0, sizes=0.0, components=(1, 0))
    """
    if fitted.alphas.shape != reference.alphas.shape:
        raise ParameterError(
            f"expected alphas of the same shape, got {fitted.alphas.shape} "
            f"and {reference.alphas.shape}"
        )
    if fitted.splits is not None or reference.splits is not None:
        raise ParameterError(
            "expected mixtures of Dirichlet-multinomials, got one with splits; compare clients instead"
        )
    if fitted.max_size != reference.max_size:
        raise ParameterError(
            f"expected the same max_size, got {fitted.max_size} and {reference.max_size}"
        )
    cost = [[nmse(a, b) ** 2 for a in fitted.alphas] for b in reference.alphas]
    _, matched = linear_sum_assignment(cost)
    return ParameterComparison(
        weights=nmse(fitted.weights[matched], reference.weights),
        alphas=nmse(fitted.alphas[matched], reference.alphas),
        sizes=nmse(fitted.sizes.table()[matched], reference.sizes.table()),
        components=tuple(int(k) for k in matched),
    )


def nmse(x: Floats, y: Floats) -> float:
    """Normalised error of x against y, sqrt(‖(x - y)/y‖²), where y is not zero (Appendix C.1).

    >>> round(nmse(np.array([1.1, 2.0]), np.array([1.0, 2.0])), 6)
    0.1
    """
    seen = y != 0
    return float(np.sqrt((((x[seen] - y[seen]) / y[seen]) ** 2).sum()))
