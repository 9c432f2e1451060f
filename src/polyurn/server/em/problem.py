"""What is to be fitted: the shape of the model, its priors, and the EM step that follows from them.

Nothing here knows of climbers or rounds.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from polyurn.errors import ParameterError
from polyurn.model.sizes import SizeBins
from polyurn.server.em.first_round import with_profile
from polyurn.server.em.m_step import Surrogate
from polyurn.wire import ExpectStatistics, Survey, SurveyStatistics
from polyurn.wording.numbers import counted

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

    def __post_init__(self) -> None:
        if self.category_prior == 0:
            raise ParameterError(
                "expected a positive category_prior, which keeps alphas above 0, got 0"
            )

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_components, self.n_categories

    @property
    def n_parameters(self) -> int:
        """Free parameters besides those of the sizes."""
        return self.n_components * (self.n_categories + 1) - 1

    @property
    def trial_cost(self) -> int:
        """How many numbers a client sends for one trial."""
        k, c = self.shape
        return 2 + k * (self.size_bins.n_bins + 3 * c + 2)

    def hessian_cost(self, n_components: int) -> int:
        """How many more it sends for the Hessian of some components."""
        n = n_components * (self.n_categories + 1)
        return n * (n + 1) // 2

    def check_upload(self, max_upload: int) -> None:
        """Refuse what a client may not send, before any is asked."""
        if self.trial_cost > max_upload:
            k, bins = self.n_components, self.size_bins.n_bins
            advice = "raise max_upload or take fewer components"
            if bins > self.n_categories:
                advice += f", or fewer size bins than {bins:,} (sizes='binned')"
            takes = counted(k, "component takes", "components take")
            raise ParameterError(
                f"{takes} "
                f"{self.trial_cost:,} numbers from a client, and {max_upload:,} are allowed; {advice}"
            )

    def surveyed(self, query: Survey, said: SurveyStatistics) -> "Problem":
        """The same, with the sizes inside each bin spread as the first round found them."""
        bins = with_profile(
            self.size_bins, query.size_bins, said.size_counts, size_prior=self.size_prior
        )
        return replace(self, size_bins=bins)

    def size_masses(self, size_counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """π_k from Σ ω by bin, drawn towards the sizes of all clients; of one model or of many."""
        b = size_counts.shape[-1]
        together = size_counts.sum(axis=-2, keepdims=True) + self.size_prior / b
        together = together / together.sum(axis=-1, keepdims=True)
        if self.shared_sizes:
            return np.broadcast_to(together, size_counts.shape)
        masses = size_counts + self.size_prior * together
        total = masses.sum(axis=-1, keepdims=True)
        return np.asarray(np.where(total > 0, masses / np.where(total > 0, total, 1.0), together))

    def weights(self, size_counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """τ from Σ ω by bin."""
        weights = size_counts.sum(axis=-1) + _WEIGHT_PRIOR
        return np.asarray(weights / weights.sum(axis=-1, keepdims=True))

    def em_step(
        self, alphas: NDArray[np.float64], sums: ExpectStatistics
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Where EM steps lead from many models: weights, alphas and the probabilities of sizes.

        Parameters
        ----------
        alphas : float array of shape (n_models, n_components, n_categories)
        sums : ExpectStatistics
            Stacked: those of n models are of shape (n, K, ...).
        """
        prior = self.category_prior / float(np.asarray(sums.n_clients).flat[0])
        after = Surrogate.of(alphas, sums).maximise(alphas, category_prior=prior)
        return self.weights(sums.size_counts), after, self.size_masses(sums.size_counts)
