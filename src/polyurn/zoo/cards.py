"""What is known about a federation of the zoo: its card. Nothing is computed here but the profile."""

from dataclasses import dataclass

import numpy as np

from polyurn.comparison.estimates import Estimate, mean_estimate, resample_weights
from polyurn.comparison.summaries import (
    Heterogeneity,
    correlation_estimate,
    hellinger_estimate,
    heterogeneity,
)
from polyurn.counts import check_counts, client_sizes
from polyurn.typed.arguments import checked
from polyurn.typed.declared import Seed
from polyurn.typed.json_form import Count

# Fewer clients than this say little about the distribution that they come from.
FEW_CLIENTS = 300
# What is asked of a model: an energy ratio inside the range of true clients, and an AUC of at most this.
MOST_AUC = 0.60


@dataclass(frozen=True)
class Profile:
    """Where clients stand on the map of federations.

    Attributes
    ----------
    heterogeneity : Heterogeneity
        Of labels: the best single α, distances to the pooled shares, effective categories.
    hellinger : Estimate
        Mean Hellinger distance of a client to the pooled shares, 0 to 1.
    correlation : Estimate
        By how much likelier two points of one client agree than points of two clients, over what is
        possible: 1/(1 + α_0) for one Dirichlet, 0 for chance, below 0 for clients more even than
        chance. The map's first axis.
    dispersion : Estimate
        Mean over clients of Σ_j (c_j - n p_j)² / (n (1 - Σ_j p_j²)), p being the pooled shares: 1 is
        chance.
    size_variation : Estimate
        Standard deviation of the sizes over their mean: the map's second axis.
    """

    heterogeneity: Heterogeneity
    hellinger: Estimate
    correlation: Estimate
    dispersion: Estimate
    size_variation: Estimate

    @property
    def in_words(self) -> str:
        """Whether clients vary more than chance, as it, or less, by the interval of `correlation`."""
        if self.correlation.high < 0:
            return "more even than chance"
        return "more different than chance" if self.correlation.low > 0 else "as chance"


@checked
def profile(counts: object, *, n_bootstrap: int = 200, rng: Seed = None) -> Profile:
    """Measure how different clients are in labels and in sizes, by their counts of shape (n_clients,
    n_categories).

    >>> profile([[5, 5], [6, 4], [4, 6]], rng=0).in_words
    'more even than chance'
    """
    rng = np.random.default_rng(rng)
    table = check_counts(counts)
    n = client_sizes(table).astype(np.float64)
    weights = resample_weights(len(n), n_bootstrap, rng=rng)
    pooled = np.asarray(table.sum(axis=0)).reshape(-1) / n.sum()
    spread = 1 - (pooled**2).sum()
    squares = np.asarray((table.astype(np.float64) ** 2).sum(axis=1)).reshape(-1)
    deviation = squares - 2 * n * (table @ pooled) + n**2 * (1 - spread)
    return Profile(
        heterogeneity(table, n_bootstrap=n_bootstrap, rng=rng),
        hellinger_estimate(table, weights),
        correlation_estimate(table, weights),
        mean_estimate(deviation / (n * spread), weights),
        _variation(n, weights),
    )


def _variation(n: np.ndarray, weights: np.ndarray) -> Estimate:
    def of(weights: np.ndarray) -> np.ndarray:
        m = weights.sum(axis=1)
        mean = weights @ n / m
        return np.asarray(np.sqrt(np.maximum(weights @ n**2 / m - mean**2, 0)) / mean)

    low, high = np.quantile(of(weights), (0.025, 0.975))
    return Estimate(float(of(np.ones((1, len(n))))[0]), float(low), float(high))


@dataclass(frozen=True)
class CardLikeness:
    """How alike a population, learned from part of the clients, is to the others: see `Likeness`."""

    energy_ratio: float
    energy_null: tuple[float, float]
    auc: Estimate


@dataclass(frozen=True)
class Card:
    """What a federation of the zoo is, where it comes from, and how good its model is.

    The licence is that of the data, of which the zoo has nothing but fitted parameters. `sizes` are
    those of the smallest, median and largest client. `likeness` is of "mdm", "dirichlet" (the best
    single one) and "iid" to `n_held_out` clients that no model was fitted to.
    """

    name: str
    title: str
    client: str
    category: str
    source: str
    date: str
    licence: str
    caveat: str | None
    n_clients: Count
    n_points: Count
    n_categories: Count
    n_components: Count
    sizes: tuple[int, float, int]
    profile: Profile
    n_held_out: Count
    likeness: dict[str, CardLikeness]
    command: str

    @property
    def passes(self) -> bool:
        """Whether the energy ratio is in the range of true clients and the AUC at most 0.60."""
        mdm = self.likeness["mdm"]
        return mdm.energy_ratio <= mdm.energy_null[1] and mdm.auc.value <= MOST_AUC

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know before the model is used, a sentence each."""
        mdm, (low, high) = self.likeness["mdm"], self.likeness["mdm"].energy_null
        sentences = [] if self.caveat is None else [self.caveat]
        if self.n_clients < FEW_CLIENTS:
            sentences.append(f"Few clients: {self.n_clients}.")
        if mdm.energy_ratio > high:
            sentences.append(
                f"Simulated clients differ from true ones: energy ratio {mdm.energy_ratio:.2f}, true "
                f"clients {low:.2f} to {high:.2f}."
            )
        if (auc := mdm.auc).value > MOST_AUC:
            sentences.append(f"A classifier tells simulated clients from true ones: AUC {auc:.2f}.")
        return tuple(sentences)
