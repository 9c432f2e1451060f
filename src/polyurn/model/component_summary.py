"""A mixture for a reader: a row for each component, and what many components amount to.

Numbers as texts; terminal, notebook and page show them. Nothing is drawn or written here.
"""

from collections.abc import Sequence

import numpy as np

from polyurn.model.mdm import MDM
from polyurn.wording import counted

# With more components a summary says more than a row for each; then so many have one.
FEW, SHOWN = 12, 10
# A number shown with ± has a 95 % interval: this many standard errors to each side.
HALF_WIDTH = 1.96
HEADS = (
    "component",
    "weight",
    "concentration α₀",
    "mean size",
    "largest categories (expected share)",
)


def component_rows(mdm: MDM, categories: Sequence[str] | None = None) -> list[tuple[str, ...]]:
    """A row for each component under `HEADS`; of many components, for the ten heaviest.

    After ± is half of a 95 % interval, where the mixture has standard errors.

    >>> from polyurn.model.sizes import Sizes
    >>> component_rows(MDM([1.0], [[2.0, 6.0]], Sizes.constant(4), categories=["flu", "burn"]))
    [('1', '1.000', '8', '4.0', 'burn 75%, flu 25%')]
    """
    names = categories or mdm.categories or tuple(map(str, range(mdm.n_categories)))
    shares, sizes = mdm.shares, mdm.sizes.mean()
    largest = np.argsort(-shares, axis=1, kind="stable")[:, :5]
    n = mdm.n_components if mdm.n_components <= FEW else SHOWN
    nothing, errors = np.full(mdm.n_components, np.nan), mdm.standard_errors
    of_weights = nothing if errors is None or mdm.n_components == 1 else errors.weights
    of_concentrations = nothing if errors is None else errors.concentrations
    return [
        (
            str(k + 1),
            f"{mdm.weights[k]:.3f}{_within(of_weights[k], '.3f')}",
            f"{mdm.alphas[k].sum():.4g}{_within(of_concentrations[k], '.2g')}",
            f"{sizes[k]:.1f}",
            ", ".join(f"{names[j]} {shares[k, j]:.0%}" for j in largest[k]),
        )
        for k in sorted(np.argsort(-mdm.weights, kind="stable")[:n].tolist())
    ]


def _within(error: float, show: str) -> str:
    return "" if np.isnan(error) else f" ± {HALF_WIDTH * error:{show}}"


def many_components(mdm: MDM) -> str:
    """How uneven and how different many components are, in a sentence; "" of few.

    The difference is the total variation distance between the expected shares of the components of two
    random clients.
    """
    if mdm.n_components <= FEW:
        return ""
    half = int(np.searchsorted(np.sort(mdm.weights)[::-1].cumsum(), 0.5)) + 1
    apart = np.abs(mdm.shares[:, None] - mdm.shares[None]).sum(axis=2) / 2
    mean = float(mdm.weights @ apart @ mdm.weights)
    low, high = np.quantile(mdm.alphas.sum(axis=1), (0.1, 0.9))
    return (
        f"{counted(half, 'component has', 'components have')} half of the clients, the largest "
        f"{mdm.weights.max():.0%}; two random clients' components differ in {mean:.0%} of the points; "
        f"concentrations are mostly {low:.3g} to {high:.3g}"
    )
