"""What a noised survey says: how many clients there are, their sizes, and one Dirichlet-multinomial.

From it the server draws simulated clients, which cost no privacy: everything that a later round needs
to know beforehand (information, clips, biases) is computed from them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polyurn.model.mdm import MDM
from polyurn.model.scores import Mixture
from polyurn.model.sizes import Sizes
from polyurn.wire.private import SURVEY_PARTS, BoundedSurvey

# A survey of so few clients is noise; a smaller number would only divide by zero later.
_FEWEST_CLIENTS = 10.0
# Agreement of pairs beyond these would be a concentration of 10^4 or of 1/20: left to the rounds.
_RHO = (1e-4, 0.95)
# A component this concentrated is a multinomial to clients of the median size: n² / α_0 is 1 % of n.
_CAP_IN_SIZES = 100.0


@dataclass(frozen=True)
class Population:
    """What is known of the clients as a whole.

    Attributes
    ----------
    n_clients : float
        As the noise left it: the true number is private.
    proportions : float array of shape (n_categories,)
        The mean of clients' proportions, positive.
    sizes : Sizes
        Of one component: the sizes of all clients.
    single : Mixture
        The Dirichlet-multinomial with the survey's moments.
    cap : float
        The largest α_0 that rounds go to.
    """

    n_clients: float
    proportions: NDArray[np.float64]
    sizes: Sizes
    single: Mixture
    cap: float

    @property
    def max_size(self) -> int:
        return self.sizes.max_size

    def simulate(self, mixture: Mixture, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Histograms of n clients of a mixture with these sizes, shape (n, n_categories)."""
        masses = np.repeat(self.sizes.masses, mixture.n_components, axis=0)
        sizes = Sizes.unchecked(self.sizes.bins, masses)
        return MDM(mixture.weights, mixture.alphas, sizes).sample(n, rng=rng)

    def capped(self, mixture: Mixture) -> Mixture:
        """The same with no α_0 beyond the cap."""
        scale = np.minimum(1.0, self.cap / mixture.concentrations)
        return Mixture(mixture.weights, mixture.alphas * scale[:, None])

    def floored(self, mixture: Mixture, floors: tuple[float, float]) -> Mixture:
        """The same with no alpha and no weight so small that it has no gradient to come back by."""
        of_alphas, of_weights = floors
        least = of_alphas * mixture.concentrations[:, None] * self.proportions
        weights = np.maximum(mixture.weights, of_weights / mixture.n_components)
        return Mixture(weights / weights.sum(), np.maximum(mixture.alphas, least))


def surveyed(query: BoundedSurvey, values: NDArray[np.float64], sigma: float) -> Population:
    """The population that a noised survey describes.

    α_0 follows from κ, the share of pairs of a client's points that agree: under a
    Dirichlet-multinomial E κ = Σ p² + ρ (1 - Σ p²) with ρ = 1 / (1 + α_0).

    Parameters
    ----------
    query : BoundedSurvey
    values : float array
        The noised sum of the answers.
    sigma : float
        The standard deviation of the noise.
    """
    of_clients, of_pairs, of_size, of_p = np.sqrt(SURVEY_PARTS)
    n_bins = query.size_bins.n_bins
    n = max(values[0] / of_clients, _FEWEST_CLIENTS)
    in_bins, p_sums = values[2 : 2 + n_bins] / of_size, values[2 + n_bins :] / of_p
    # Bins that noise alone would fill are left empty; simulated sizes would be spread over them.
    masses = np.maximum(in_bins - 2 * sigma / of_size, 0.0)
    masses = masses / masses.sum() if masses.sum() > 0 else np.full(n_bins, 1 / n_bins)
    p = np.maximum(p_sums / n, max(sigma / of_p / n, 1e-4 / query.n_categories))
    p /= p.sum()
    # Clients of one point have no pair: they are not in the mean.
    alone = masses[0] if query.size_bins.edges[1] == 2 else 0.0
    kappa = values[1] / of_pairs / (n * max(1 - alone, 0.01))
    squares = float((p * p).sum())
    rho = float(np.clip((kappa - squares) / (1 - squares), *_RHO))
    sizes = Sizes(query.size_bins, masses[None])
    middle = query.size_bins.means()[np.searchsorted(np.cumsum(masses), 0.5)]
    cap = _CAP_IN_SIZES * float(middle)
    single = Mixture(np.ones(1), p[None] * min(1 / rho - 1, cap))
    return Population(float(n), p, sizes, single, cap)
