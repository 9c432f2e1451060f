"""The ground truths of the paper's synthetic experiments, for demos, tests and benchmarks.

Nine settings of Table 1 (Appendix C.3; low, medium and high heterogeneity with one to three
components) and the one of Appendix A. Sizes are not part of the table, so they are given here.
"""

from polyurn.errors import ParameterError
from polyurn.model.mdm import MDM
from polyurn.model.sizes import Sizes

_SKEWED = [0.1, 0.2, 0.6, 1.0, 2.0, 0.1, 1.0, 2.0, 0.5, 0.5]
_EVEN = [2.5, 2.6, 2.7, 2.8, 3.0, 2.5, 2.0, 3.0, 1.0, 0.9]
_SPARSE = [0.1, 0.2, 0.15, 0.18, 0.1, 0.05, 0.08, 0.4, 0.2, 0.12]
_BROAD = [2.5, 2.6, 2.0, 3.2, 1.5, 0.9, 0.8, 1.3, 3.1, 2.4]

_TRUTHS: dict[str, tuple[list[float], list[list[float]]]] = {
    "low/1": ([1.0], [[1.0] * 10]),
    "low/2": ([0.5, 0.5], [[0.5] * 10, [2.5] * 10]),
    # The paper prints three weights and two rows of A; the third row is our choice.
    "low/3": ([0.333, 0.334, 0.333], [[2.5] * 10, [0.5] * 10, [1.0] * 10]),
    "medium/1": ([1.0], [_SKEWED]),
    "medium/2": ([0.4, 0.6], [_SKEWED, _EVEN]),
    "medium/3": (
        [0.5, 0.2, 0.3],
        [[5.0, 4.0, 5.0, 1.0, 1.0, 1.0, 5.0, 4.0, 5.0, 1.0], _SKEWED, _EVEN],
    ),
    "high/1": ([1.0], [_SPARSE]),
    "high/2": ([0.1, 0.9], [_SPARSE, _BROAD]),
    "high/3": (
        [0.8, 0.05, 0.15],
        [[5.0, 5.0, 0.2, 0.2, 3.1, 3.0, 3.2, 0.8, 0.9, 5.0], _SPARSE, _BROAD],
    ),
    "appendix-a": (
        [0.2, 0.5, 0.3],
        [[0.1, 0.2, 0.1, 0.3, 0.1], [1.0, 4.0, 1.0, 2.0, 0.5], [10.0, 5.0, 3.0, 2.0, 30.0]],
    ),
}

NAMES = tuple(_TRUTHS)
TABLE_1 = NAMES[:9]


def truth(name: str, *, size: int | None = None) -> MDM:
    """One of the paper's ground truths: `NAMES` has them, "medium/3" say (heterogeneity / components).

    `size` is the points per client; 100 in Appendix A, as the paper says, and 20 elsewhere.

    >>> truth("high/2").weights.tolist()
    [0.9, 0.1]
    """
    if name not in _TRUTHS:
        raise ParameterError(f"expected one of {', '.join(NAMES)}, got {name!r}")
    weights, alphas = _TRUTHS[name]
    if size is None:
        size = 100 if name == "appendix-a" else 20
    return MDM(weights, alphas, Sizes.constant(size, n_components=len(weights)))
