"""What is to be fitted: the shape of the model, its priors, and the EM step that follows from them.

Nothing here knows of tracks or rounds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polyurn.server.poles import maximise, poles, stack
from polyurn.sizes import SizeBins, Sizes
from polyurn.wire import ExpectStatistics, Parameters

# An empty component keeps this many clients, so that its logarithm exists; it is dropped at the end.
_WEIGHT_PRIOR = 1e-6


@dataclass(frozen=True)
class Problem:
    """What is to be fitted, and with which priors.

    Attributes
    ----------
    n_components, n_categories : int
    size_bins : SizeBins
    shared_sizes : bool
        All components have the same sizes, so that sizes do not tell them apart.
    size_prior : float
        Pseudo-clients per component, with the sizes of all clients together.
    category_prior : float
        Pseudo-tables per category and component.
    """

    n_components: int
    n_categories: int
    size_bins: SizeBins
    shared_sizes: bool
    size_prior: float
    category_prior: float

    @property
    def trial_cost(self) -> int:
        """How many numbers a client sends for one trial."""
        k, c = self.n_components, self.n_categories
        return 2 + k * (self.size_bins.n_bins + 3 * c + 2)

    def newton_cost(self, n_components: int) -> int:
        """How many more it sends for the curvature of some components."""
        n = n_components * (self.n_categories + 1)
        return n * (n + 1) // 2

    def size_masses(self, size_counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """π_k from Σ ω by bin, drawn towards the sizes of all clients."""
        k, b = size_counts.shape
        together = size_counts.sum(axis=0) + self.size_prior / b
        together = together / together.sum()
        if self.shared_sizes:
            return np.tile(together, (k, 1))
        masses = size_counts + self.size_prior * together
        total = masses.sum(axis=1, keepdims=True)
        return np.asarray(np.where(total > 0, masses / np.where(total > 0, total, 1.0), together))

    def image(self, size_counts: NDArray[np.float64], alphas: NDArray[np.float64]) -> Parameters:
        """The parameters that an EM step leads to, once it has found the alphas."""
        weights = size_counts.sum(axis=1) + _WEIGHT_PRIOR
        masses = self.size_masses(size_counts)
        return Parameters(weights / weights.sum(), alphas, Sizes(self.size_bins, masses))

    def images(
        self, before: Sequence[Parameters], sums: Sequence[ExpectStatistics]
    ) -> list[Parameters]:
        """Where an EM step leads from each of the parameters; all M-steps are solved at once."""
        pairs = list(zip(before, sums, strict=True))
        functions = stack([poles(p.alphas, s) for p, s in pairs])
        alphas = maximise(
            functions,
            np.concatenate([p.alphas for p in before]),
            category_prior=self.category_prior,
        )
        after = np.split(alphas, len(before))
        return [self.image(s.size_counts, a) for (_, s), a in zip(pairs, after, strict=True)]
