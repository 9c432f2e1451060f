"""What differential privacy would cost, by simulation: nothing is spent, and no client is asked.

Federations are drawn from known mixtures and fitted with and without privacy. The loss is the difference
in log-likelihood of fresh clients between the known and the fitted parameters.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from polyurn.model.mdm import MDM
from polyurn.model.sizes import Sizes
from polyurn.privacy.noise import Noise
from polyurn.server.fit_settings import Settings
from polyurn.server.fitting import fit_sums
from polyurn.server.private.private_fit import fit_private
from polyurn.typed.arguments import checked
from polyurn.typed.declared import AtLeast
from polyurn.wire import Aggregator
from polyurn.wording import counted

# Fresh clients, to which nothing is fitted.
_N_FRESH = 20_000
# Concentrations of random components: from clients with few categories to clients almost alike.
_CONCENTRATIONS = (2.0, 50.0)
# The default of δ, as a power of the number of clients.
_DELTA_POWER = -1.1


@dataclass(frozen=True)
class ExpectedLoss:
    """What one ε costs, in nats per client below the truth; an ε of None is without privacy.

    `mean` and `worst` are over the simulated federations. `single` is the mean loss of one
    Dirichlet-multinomial, fitted without privacy: a mixture that does not lose less is not worth its
    budget.
    """

    epsilon: float | None
    mean: float
    worst: float
    single: float


@checked
def expected_losses(
    play: Callable[..., Any],
    epsilons: Sequence[float],
    *,
    n_clients: Annotated[int, AtLeast(100)],
    n_categories: int,
    n_components: int,
    size: Annotated[int, AtLeast(1)] = 20,
    delta: float | None = None,
    n_runs: Annotated[int, AtLeast(1)] = 3,
    like: MDM | None = None,
    rng: int = 0,
    on_run: Callable[[str], None] | None = None,
) -> list[ExpectedLoss]:
    """The expected loss of a private fit for each ε, the first one without privacy.

    `play` makes an aggregator of a table of histograms: `LocalAggregator`. Clients of `size` points each
    are drawn from `like`, which then sets the number of categories, or from random mixtures; the seed
    gives the same federations for every ε. δ is n_clients^-1.1 by default. `on_run` is called with a
    sentence after each run.
    """
    delta = n_clients**_DELTA_POWER if delta is None else delta
    streams = np.random.default_rng(rng).spawn(n_runs)
    names: list[float | None] = [None, *epsilons]
    losses = np.empty((n_runs, len(names) + 1))
    for i, stream in enumerate(streams):
        known = like or _random(n_components, n_categories, size, stream)
        counts, fresh = known.sample(n_clients, rng=stream), known.sample(_N_FRESH, rng=stream)
        best = known.logpmf_given_size(fresh).mean()
        bounds: dict[str, Any] = {"n_categories": known.n_categories, "max_size": known.max_size}
        clients: Aggregator = play(counts, rng=stream)

        def lost(mdm: MDM, fresh: Any = fresh, best: float = best) -> float:
            return float(best - mdm.logpmf_given_size(fresh).mean())

        losses[i, -1] = lost(fit_sums(clients, 1, settings=Settings(), rng=stream, **bounds).mdm)
        for j, epsilon in enumerate(names):
            if epsilon is None:
                done = fit_sums(clients, n_components, settings=Settings(), rng=stream, **bounds)
            else:
                done = fit_private(
                    clients, epsilon=epsilon, delta=delta, n_components=n_components,
                    noise=_seeded(stream), rng=stream, **bounds,
                )  # fmt: skip
            losses[i, j] = lost(done.mdm)
        if on_run is not None:
            on_run(f"simulated {counted(i + 1, 'federation')} of {n_runs}")
    means, worst = losses.mean(axis=0), losses.max(axis=0)
    return [
        ExpectedLoss(name, float(means[j]), float(worst[j]), float(means[-1]))
        for j, name in enumerate(names)
    ]


def _random(n_components: int, n_categories: int, size: int, rng: np.random.Generator) -> MDM:
    """A random mixture."""
    low, high = np.log(_CONCENTRATIONS)
    alphas = rng.dirichlet(np.ones(n_categories), n_components)
    alphas *= np.exp(rng.uniform(low, high, (n_components, 1)))
    weights = rng.dirichlet(np.full(n_components, 5.0))
    return MDM(weights, np.maximum(alphas, 1e-4), Sizes.constant(size, n_components=n_components))


def _seeded(rng: np.random.Generator) -> Noise:
    """Noise of simulated clients, who have nothing to hide: a normal rounded to the grid."""
    return lambda n, scale: np.rint(rng.standard_normal(n) * scale).astype(np.int64)
